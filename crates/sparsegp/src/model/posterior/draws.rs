//! Posteriors that were sampled: even mixtures of what is known at every draw, all at the same
//! hyperparameters.

use super::InputGradients;
use super::closed_form::ClosedForm;
use super::gaussian::Gaussian;
use super::law::{Drawn, Joint, Law, Marginals, Work};
use super::pathwise::Bundle;
use super::process::Process;
use super::rounding::{around, part, roots_of};
use crate::error::{Error, Result};
use crate::kernels::covariances;
use crate::likelihoods::Likelihood;
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, Par, add_row_dots, column, column_mut, gemm,
    mirror_lower, par_for,
};
use crate::model::Model;
use crate::rng;
use rand::Rng;

/// Draws of the whitened variables of points, a set for every latent function.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    /// Their moments; one process for each latent function.
    gaussian: Gaussian,
    /// M×L each.
    draws: Vec<Mat<f64>>,
}

/// Refuses a draw with fewer values than there are points.
pub(super) fn unfit(points: usize, latents: usize, draw: &Mat<f64>) -> Error {
    Error::Shape {
        what: "posterior.draws".into(),
        expected: format!("{points}×{latents}"),
        found: format!("{}×{}", draw.nrows(), draw.ncols()),
    }
}

impl Draws {
    /// Creates draws of a model's inducing points, or of rows `x`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for no draws, [`Error::Shape`] for some that do not fit,
    /// [`Error::NotPositiveDefinite`].
    pub(super) fn new(model: &Model, x: Option<&Mat<f64>>, draws: Vec<Mat<f64>>) -> Result<Self> {
        let count = draws.len() as f64;
        let Some(first) = draws.first() else {
            return Err(Error::Invalid("a posterior needs at least one draw".into()));
        };
        let latents = first.ncols();
        let mut q_mu = Mat::zeros(first.nrows(), latents);
        draws.iter().for_each(|z| q_mu += z);
        q_mu *= faer::Scale(1.0 / count);
        let mut processes = Vec::new();
        for l in 0..latents {
            let (points, factor) = model.points_and_factor(x, l)?;
            let m = points.nrows();
            if m > first.nrows() || draws.iter().any(|z| z.ncols() != latents || z.nrows() < m) {
                return Err(unfit(m, latents, first));
            }
            let kernel = model.kernel_of(l).clone_box();
            let mut covariance = Mat::zeros(m, m);
            let apart = Mat::from_fn(m, draws.len(), |i, s| draws[s][(i, l)] - q_mu[(i, l)]);
            let out = covariance.as_mut();
            gemm(out, Accum::Replace, apart.as_ref(), apart.transpose(), 1.0 / count, par_for(m));
            // fewer draws than points leave it without full rank, and draws that are all the same without any
            let same = draws.iter().all(|draw| draw.col_as_slice(l) == first.col_as_slice(l));
            let root = match same {
                true => Mat::zeros(m, m),
                false => Cholesky::new(covariance.as_ref(), Jitter::Relative(1e-10), "draws")?.l,
            };
            let mean = q_mu.as_ref().subcols(l, 1).subrows(0, m);
            processes.push(Process::new(l..l + 1, kernel, points, factor, vec![root], mean));
        }
        Ok(Self { gaussian: Gaussian::new(model, q_mu, processes), draws })
    }

    /// Returns only the moments.
    pub(super) fn into_gaussian(self) -> Gaussian {
        self.gaussian
    }

    /// Returns the mean function at rows, B×L.
    fn prior(&self, x: MatRef<f64>) -> Mat<f64> {
        let mut prior = Mat::zeros(x.nrows(), self.gaussian.latents());
        self.gaussian.mean.evaluate(x, prior.as_mut());
        prior
    }
}

impl Law for Draws {
    fn gaussian(&self) -> Option<&Gaussian> {
        Some(&self.gaussian)
    }

    fn count(&self) -> usize {
        self.draws.len()
    }

    fn closed_forms<'a>(&'a self, _: &'a dyn Likelihood) -> Result<Vec<ClosedForm<'a>>> {
        Err(Error::Invalid(
            "a closed formula of predictions is not known of a posterior of draws (`gibbs`, `ess`, …): fit with `svgp`, \
             or with `exact` for Gaussian noise"
                .into(),
        ))
    }

    fn components<'a>(&'a self, x: MatRef<'_, f64>, work: Work<'_, 'a>) -> Result<()> {
        let n = x.nrows();
        let prior = self.prior(x);
        let mut unexplained = Mat::zeros(n, prior.ncols());
        let mut means = vec![prior; self.draws.len()];
        for (l, p) in self.gaussian.processes.iter().enumerate() {
            let phi = p.features(x);
            let m = phi.ncols();
            let z = Mat::from_fn(m, self.draws.len(), |i, s| self.draws[s][(i, l)]);
            let mut f = Mat::zeros(n, self.draws.len());
            gemm(f.as_mut(), Accum::Replace, phi.as_ref(), z.as_ref(), 1.0, Par::Seq);
            for (s, mean) in means.iter_mut().enumerate() {
                let own = column_mut(mean.as_mut(), l).iter_mut();
                own.zip(column(f.as_ref(), s)).for_each(|(t, v)| *t += v);
            }
            let left = column_mut(unexplained.as_mut(), l);
            let mut explained = vec![0.0; n];
            add_row_dots(phi.as_ref(), phi.as_ref(), &mut explained);
            p.kernel.diag(x, left);
            let part = part(m);
            left.iter_mut().zip(&explained).for_each(|(r, e)| *r = (*r - e).max(part * *r));
        }
        // the same at every draw
        let mut own = Marginals { mean: Mat::new(), variance: unexplained };
        for mean in means {
            own.mean = mean;
            work(None, &own);
        }
        Ok(())
    }

    fn sweep<'a>(&'a self, x: MatRef<'_, f64>, work: Work<'_, 'a>) -> Result<Marginals> {
        self.components(x, work)?;
        self.marginals(x)
    }

    fn marginals(&self, x: MatRef<f64>) -> Result<Marginals> {
        Ok(self.gaussian.marginals(x))
    }

    fn means(&self, x: MatRef<f64>) -> Result<Mat<f64>> {
        Ok(self.gaussian.means(x))
    }

    /// Draws each one from a draw that is picked at random.
    fn sample<'a>(
        &'a self,
        x: MatRef<'_, f64>,
        samples: usize,
        rng: &mut dyn Rng,
    ) -> Result<Vec<Drawn<'a>>> {
        let n = x.nrows();
        let of: Vec<usize> = (0..samples).map(|_| rng::below(rng, self.draws.len())).collect();
        let mut means = vec![self.prior(x); samples];
        let mut unexplained = Vec::with_capacity(self.gaussian.latents());
        for (l, p) in self.gaussian.processes.iter().enumerate() {
            let phi = p.features(x);
            for (mean, of) in means.iter_mut().zip(&of) {
                let z = self.draws[*of].as_ref().subcols(l, 1).subrows(0, phi.ncols());
                let own = mean.as_mut().subcols_mut(l, 1);
                gemm(own, Accum::Add, phi.as_ref(), z, 1.0, Par::Seq);
            }
            let mut left = covariances(&*p.kernel, x, None);
            gemm(left.as_mut(), Accum::Add, phi.as_ref(), phi.transpose(), -1.0, par_for(n));
            mirror_lower(left.as_mut());
            unexplained.push(left);
        }
        let roots = roots_of(&unexplained, &self.gaussian.prior_sizes(x))?;
        let one = |mean| Drawn { likelihood: None, f: around(mean, &roots, rng) };
        Ok(means.into_iter().map(one).collect())
    }

    fn joint(&self, x: MatRef<f64>) -> Result<Joint> {
        self.gaussian.joint(x)
    }

    fn gradients(&self, x: MatRef<f64>) -> Result<InputGradients> {
        self.gaussian.gradients(x)
    }

    fn functions(&self, samples: usize, waves: usize, rng: &mut dyn Rng) -> Result<Vec<Bundle>> {
        let all = (0..samples).collect();
        Ok(vec![self.gaussian.bundle(all, waves, &self.draws, rng)?])
    }

    fn draws(&self) -> &[Mat<f64>] {
        &self.draws
    }
}

//! A conditioned Gaussian process.

use super::closed_form::ClosedForm;
use super::law::{Drawn, Joint, Law, Marginals, Work, check_columns};
use super::operands::Rounded;
use super::pathwise::Bundle;
use super::process::Process;
use super::rounding::{around, part, raise, roots_of};
use super::single::Single;
use super::trend::Trend;
use super::whitened::Whitened;
use super::{InputGradients, PredictedTerm, mixing};
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::inverse_free::LSpace;
use crate::kernels::covariances;
use crate::likelihoods::Likelihood;
use crate::linalg::{
    Accum, Cholesky, Mat, MatRef, add_row_dots, column, column_mut, gemm, invert_lower,
    mirror_lower, par_for, product,
};
use crate::means::Mean;
use crate::model::Model;
use rand::Rng;
use std::sync::Arc;

/// q(f(x)) = N(m(x) + φᵀm, k(x, x) − ‖φ‖² + ‖Rᵀφ‖²) of every latent function, with φ = L⁻¹k(P, x).
/// For sparse methods P are the inducing points, L the factor of Kuu and q(v) = N(m, RRᵀ); for
/// exact inference P are the training inputs, L the factor of K + σ²I, and there is no R. For
/// L-SVGP L is the factor of Kuu + Λ, without R either; for R-SVGP φ = Lᵀk(P, x) is a product, and
/// the variance k(x, x) − ‖φ‖² + φᵀEφ.
#[derive(Clone, Debug)]
pub(in crate::model) struct Gaussian {
    pub(super) mean: Box<dyn Mean>,
    /// W, where latent functions are mixed.
    pub(super) mixing: Option<Mat<f64>>,
    pub(super) processes: Arc<Vec<Process>>,
    /// Whitened means, M×L.
    pub(super) q_mu: Mat<f64>,
    /// Variances of the noise of the rows of exact inference, where they differ; else empty.
    pub(super) row_noise: Vec<f64>,
    /// Variance of the noise of the rows of exact inference, where it is the same for all.
    pub(super) noise: Option<f64>,
    /// What is not known of the mean function.
    pub(super) trend: Option<Trend>,
    /// What single rows are predicted with in mixed precision; none in double precision.
    pub(super) single: Option<Single>,
}

/// Means of latent functions, and both parts of their variances (B×L each).
pub(in crate::model) struct Split {
    pub(in crate::model) mean: Mat<f64>,
    /// What comes from q.
    pub(in crate::model) s: Mat<f64>,
    /// What the inducing points leave unexplained, which is 0 without inducing points.
    pub(in crate::model) r: Mat<f64>,
}

impl Gaussian {
    pub(super) fn new(model: &Model, q_mu: Mat<f64>, processes: Vec<Process>) -> Self {
        Self {
            mean: model.mean.clone(),
            mixing: mixing::matrix(&*model.likelihood),
            processes: Arc::new(processes),
            q_mu,
            row_noise: Vec::new(),
            noise: None,
            trend: None,
            single: None,
        }
    }

    /// Creates the process from a model whose q(u) is a parameter, of its last layer.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it has none, [`Error::NotPositiveDefinite`].
    pub(super) fn of_q(model: &Model) -> Result<Self> {
        let q = model.q.as_ref().ok_or_else(|| Error::Invalid("the model has no q".into()))?;
        if q.pseudo().is_some() {
            let (points, jitter) = (model.inducing_points()?, model.jitter.absolute());
            let kuu = covariances(model.kernel(), points.as_ref(), None);
            let mut own = LSpace::default();
            q.read_lspace(kuu.as_ref(), jitter, &mut Mat::new(), &mut own)?;
            let process = Process::of_pseudo(model.kernels[0].clone(), points, &own, jitter);
            return Ok(Self::new(model, own.mean().to_owned(), vec![process]));
        }
        let mut q_mu = Mat::zeros(q.points(), q.latents());
        let mut processes = Vec::new();
        for latents in model.processes(q.latents()) {
            let (points, factor) = model.points_and_factor(None, latents.start)?;
            let parts = q.whitened(latents.clone(), &factor)?;
            let own = q_mu.as_mut().subcols_mut(latents.start, latents.len());
            { own }.copy_from(&parts.mean);
            let kernel = model.kernel_of(latents.start).clone_box();
            let mean = parts.mean.as_ref();
            processes.push(Process::new(latents, kernel, points, factor, parts.roots, mean));
        }
        Ok(Self::new(model, q_mu, processes))
    }

    /// Returns the rows of exact inference, whose targets are m(X) + L q_mu; noises of rows differ
    /// by their weights or by known variances.
    pub(super) fn rows(&self, weighted: bool) -> InMemory {
        let (x, factor) = self.points();
        let mut y = Mat::zeros(x.nrows(), self.q_mu.ncols());
        self.mean.evaluate(x, y.as_mut());
        y += product(factor.l.as_ref(), self.q_mu.as_ref());
        let noise = self.noise.unwrap_or(0.0);
        let (mut weights, mut extra) = (Vec::new(), Vec::new());
        match weighted {
            true => weights = self.row_noise.iter().map(|v| noise / v).collect(),
            false => extra = self.row_noise.iter().map(|v| v - noise).collect(),
        }
        InMemory { x: x.to_owned(), y, weights, extra }
    }

    /// Returns the number of latent functions, mixed ones where there is mixing.
    pub(super) fn latents(&self) -> usize {
        self.mixing.as_ref().map_or(self.q_mu.ncols(), |w| w.nrows())
    }

    /// Returns the number of input columns.
    pub(super) fn inputs(&self) -> usize {
        self.processes[0].inputs()
    }

    /// Does what [`Law::check`] does.
    pub(super) fn check(&self, x: MatRef<f64>) -> Result<()> {
        check_columns(x, self.inputs())?;
        self.processes.iter().try_for_each(|p| p.kernel.check(x))
    }

    /// Returns only means, B×L.
    pub(super) fn means(&self, x: MatRef<f64>) -> Mat<f64> {
        let mut mean = self.start(x);
        for p in &*self.processes {
            let own = mean.as_mut().subcols_mut(p.latents.start, p.latents.len());
            p.add_mean(p.covariances(x).as_ref(), own);
        }
        self.mixed(x, mean)
    }

    /// Returns the means and variances, in double precision.
    pub(super) fn marginals(&self, x: MatRef<f64>) -> Marginals {
        self.marginals_by(x, None)
    }

    /// Returns the same, with what the processes have in single precision where that is given.
    fn marginals_by(&self, x: MatRef<f64>, single: Option<&[Rounded]>) -> Marginals {
        let mut mean = self.start(x);
        let mut variance = Mat::zeros(x.nrows(), self.unmixed());
        for (at, p) in self.processes.iter().enumerate() {
            let mut k = p.covariances(x);
            let own = mean.as_mut().subcols_mut(p.latents.start, p.latents.len());
            p.add_mean(k.as_ref(), own);
            let own = variance.as_mut().subcols_mut(p.latents.start, p.latents.len());
            let mut prior = vec![0.0; x.nrows()];
            p.kernel.diag(x, &mut prior);
            match single {
                None => p.variances(&prior, &k, own),
                Some(all) => all[at].variances(p, &prior, &mut k, own),
            }
        }
        Marginals { mean: self.mixed(x, mean), variance: self.mixed_variances(variance) }
    }

    /// Returns the means and variances in the precision of its products, with what is not known of
    /// the mean function.
    pub(super) fn widened(&self, x: MatRef<f64>) -> Marginals {
        let mut own = self.marginals_by(x, self.single.as_ref().map(|all| &all[..]));
        if let Some(trend) = &self.trend {
            trend.widen(self, x, &mut own);
        }
        own
    }

    /// Returns the same with both parts of the variances, the mean function being certain.
    ///
    /// # Errors
    /// As for [`Law::check`].
    pub(in crate::model) fn split(&self, x: MatRef<f64>) -> Result<Split> {
        self.check(x)?;
        let Marginals { mean, variance: mut s } = self.marginals(x);
        let mut r = Mat::zeros(x.nrows(), self.latents());
        for p in self.processes.iter().filter(|p| !p.roots.is_empty()) {
            let phi = p.features(x);
            for (at, l) in p.latents.clone().enumerate() {
                let left = column_mut(r.as_mut(), l);
                let mut explained = vec![0.0; x.nrows()];
                add_row_dots(phi.as_ref(), phi.as_ref(), &mut explained);
                p.kernel.diag(x, left);
                left.iter_mut().zip(&explained).for_each(|(r, e)| *r -= e);
                if let Some(root) = p.root(at) {
                    let image = product(phi.as_ref(), root.as_ref());
                    let own = column_mut(s.as_mut(), l);
                    own.fill(0.0);
                    add_row_dots(image.as_ref(), image.as_ref(), own);
                }
            }
        }
        Ok(Split { mean, s, r })
    }

    /// Returns, without inducing points, diag G⁻¹ and G⁻¹(f − m) at the points, N×L each, where G
    /// is the matrix whose factor is kept.
    pub(in crate::model) fn at_points(&self) -> (Mat<f64>, Mat<f64>) {
        let n = self.q_mu.nrows();
        let (mut diagonal, mut alpha) =
            (Mat::zeros(n, self.latents()), Mat::zeros(n, self.latents()));
        for p in &*self.processes {
            let mut inverse = Mat::zeros(n, n);
            invert_lower(inverse.as_mut(), p.factor.l.as_ref(), par_for(n));
            let first = p.latents.start;
            alpha.as_mut().subcols_mut(first, p.latents.len()).copy_from(&p.weights);
            for l in p.latents.clone() {
                let own = column_mut(diagonal.as_mut(), l);
                for (i, d) in own.iter_mut().enumerate() {
                    *d = inverse.col_as_slice(i)[i..].iter().map(|v| v * v).sum();
                }
            }
        }
        (diagonal, alpha)
    }

    /// Returns the means and the covariances of the functions before they are mixed, B×B for each.
    fn unmixed_joint(&self, x: MatRef<f64>) -> (Mat<f64>, Vec<Mat<f64>>) {
        let n = x.nrows();
        let par = par_for(n);
        let mut mean = self.start(x);
        let mut all = Vec::with_capacity(self.unmixed());
        for p in &*self.processes {
            let mut phi = p.covariances(x);
            let own = mean.as_mut().subcols_mut(p.latents.start, p.latents.len());
            p.add_mean(phi.as_ref(), own);
            let prior = covariances(&*p.kernel, x, None);
            let part = part(p.points.nrows());
            let floors: Vec<f64> = (0..n).map(|i| part * prior[(i, i)]).collect();
            if p.pseudo.is_some() {
                let mut shared = p.conditional(phi, prior);
                raise(&mut shared, &floors);
                all.extend(std::iter::repeat_n(shared, p.latents.len()));
                continue;
            }
            p.project(phi.as_mut(), par);
            let mut prior = prior;
            gemm(prior.as_mut(), Accum::Add, phi.as_ref(), phi.transpose(), -1.0, par);
            for at in 0..p.latents.len() {
                let mut covariance = prior.clone();
                if let Some(root) = p.root(at) {
                    let s = product(phi.as_ref(), root.as_ref());
                    gemm(covariance.as_mut(), Accum::Add, s.as_ref(), s.transpose(), 1.0, par);
                }
                mirror_lower(covariance.as_mut());
                raise(&mut covariance, &floors);
                if let Some(trend) = &self.trend {
                    trend.add_covariances(p.latents.start + at, p, x, covariance.as_mut());
                }
                all.push(covariance);
            }
        }
        (mean, all)
    }

    /// Returns the means and covariances.
    pub(super) fn full(&self, x: MatRef<f64>) -> Joint {
        let (mean, own) = self.unmixed_joint(x);
        Joint { mean: self.mixed(x, mean), own, mixing: self.mixing.clone() }
    }

    /// Makes joint draws, B×L each.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`].
    pub(super) fn draw(
        &self,
        x: MatRef<f64>,
        samples: usize,
        rng: &mut dyn Rng,
    ) -> Result<Vec<Mat<f64>>> {
        let (mean, covariances) = self.unmixed_joint(x);
        let roots = roots_of(&covariances, &self.prior_sizes(x))?;
        Ok((0..samples).map(|_| self.mixed(x, around(mean.clone(), &roots, rng))).collect())
    }

    /// Returns the lower roots of the whitened covariances of q, M×M each: one that all share or
    /// one for each.
    pub(super) fn roots(&self) -> Vec<MatRef<'_, f64>> {
        self.processes.iter().flat_map(|p| p.roots.iter().map(|r| r.as_ref())).collect()
    }

    /// Returns q(u) = N(L m, L R Rᵀ Lᵀ): means M×L and the covariance of every function; none for
    /// exact inference.
    pub(super) fn q_u(&self) -> Option<(Mat<f64>, Vec<Mat<f64>>)> {
        let mut mean = Mat::zeros(self.q_mu.nrows(), self.unmixed());
        let mut covariances = Vec::new();
        for process in &*self.processes {
            if let Some(pseudo) = &process.pseudo {
                let (own, covariance) = process.pseudo_q(pseudo);
                mean.copy_from(&own);
                covariances.extend(std::iter::repeat_n(covariance, self.unmixed()));
                continue;
            }
            let l = process.factor.l.as_ref();
            let own = self.q_mu.as_ref().subcols(process.latents.start, process.latents.len());
            let target = mean.as_mut().subcols_mut(process.latents.start, process.latents.len());
            gemm(target, Accum::Replace, l, own, 1.0, par_for(l.nrows()));
            for at in 0..process.latents.len() {
                let root = product(l, process.root(at)?.as_ref());
                covariances.push(product(root.as_ref(), root.transpose()));
            }
        }
        Some((mean, covariances))
    }

    /// Returns the whitened q of latent function `l`; none for exact inference and
    /// pseudo-observations.
    pub(super) fn whitened(&self, l: usize) -> Option<Whitened<'_>> {
        let process = self.processes.iter().find(|p| p.latents.contains(&l))?;
        if process.pseudo.is_some() {
            return None;
        }
        Some(Whitened {
            points: process.points.as_ref(),
            factor: &process.factor,
            mean: column(self.q_mu.as_ref(), l),
            root: process.root(l - process.latents.start)?,
        })
    }

    /// Returns the points of the first process, and L.
    pub(super) fn points(&self) -> (MatRef<'_, f64>, &Cholesky) {
        (self.processes[0].points.as_ref(), &self.processes[0].factor)
    }
}

impl Law for Gaussian {
    fn gaussian(&self) -> Option<&Gaussian> {
        Some(self)
    }

    fn alone(&self) -> Option<&Gaussian> {
        Some(self)
    }

    fn components<'a>(&'a self, x: MatRef<'_, f64>, work: Work<'_, 'a>) -> Result<()> {
        self.sweep(x, work)?;
        Ok(())
    }

    fn sweep<'a>(&'a self, x: MatRef<'_, f64>, work: Work<'_, 'a>) -> Result<Marginals> {
        let own = self.known(x);
        work(None, &own);
        Ok(own)
    }

    fn marginals(&self, x: MatRef<f64>) -> Result<Marginals> {
        Ok(self.known(x))
    }

    fn means(&self, x: MatRef<f64>) -> Result<Mat<f64>> {
        Ok(self.means(x))
    }

    fn sample<'a>(
        &'a self,
        x: MatRef<'_, f64>,
        samples: usize,
        rng: &mut dyn Rng,
    ) -> Result<Vec<Drawn<'a>>> {
        let one = |f| Drawn { likelihood: None, f };
        Ok(self.draw(x, samples, rng)?.into_iter().map(one).collect())
    }

    fn joint(&self, x: MatRef<f64>) -> Result<Joint> {
        self.check(x)?;
        Ok(self.full(x))
    }

    fn gradients(&self, x: MatRef<f64>) -> Result<InputGradients> {
        self.check(x)?;
        Ok(self.slopes(x))
    }

    fn terms(&self, x: MatRef<f64>, names: &[String], centred: bool) -> Result<Vec<PredictedTerm>> {
        self.check(x)?;
        self.parts_by_term(x, names, centred)
    }

    fn closed_forms<'a>(&'a self, likelihood: &'a dyn Likelihood) -> Result<Vec<ClosedForm<'a>>> {
        Ok(vec![self.closed_form(likelihood, 1)?])
    }

    fn functions(&self, samples: usize, waves: usize, rng: &mut dyn Rng) -> Result<Vec<Bundle>> {
        Ok(vec![self.bundle((0..samples).collect(), waves, &[], rng)?])
    }
}

//! What a model believes after seeing data.

mod before;
mod gradients;
mod hidden;
mod mixing;
mod noisy;
mod observations;
mod pathwise;
mod process;
mod quantiles;
mod rounding;
mod sampled;
mod whitened;

pub use gradients::InputGradients;
pub use observations::Judgement;
pub use pathwise::{DEFAULT_WAVES, Functions};

use super::Model;
use crate::error::{Error, Result};
use crate::inverse_free::LSpace;
use crate::kernels::Tape;
use crate::likelihoods::{Likelihood, mixing_shape};
use crate::linalg::{
    Accum, Cholesky, Mat, MatRef, add_row_dots, column_mut, gemm, invert_lower, mirror_lower,
    par_for, product, solve_lower,
};
use crate::means::Mean;
use before::Before;
use process::Process;
use rounding::{around, part, raise, roots_of};
use std::sync::Arc;

/// A conditioned Gaussian process: for every latent function q(f(x)) = N(m(x) + φᵀm, k(x, x) − ‖φ‖² +
/// ‖Rᵀφ‖²) with φ = L⁻¹k(P, x). For sparse methods P are the inducing points, L the factor of Kuu and
/// q(v) = N(m, RRᵀ); for exact inference P are the training inputs, L the factor of K + σ²I, and
/// there is no R. For L-SVGP L is the factor of Kuu + Λ, without R either; for R-SVGP φ = Lᵀk(P, x) is a
/// product, and the variance k(x, x) − ‖φ‖² + φᵀEφ.
#[derive(Clone, Debug)]
pub struct Posterior {
    mean: Box<dyn Mean>,
    likelihood: Box<dyn Likelihood>,
    processes: Vec<Process>,
    /// Whitened means, M×L.
    q_mu: Mat<f64>,
    /// Variances of the noise of the rows of exact inference, where they differ; else empty.
    row_noise: Vec<f64>,
    /// Variance of the noise of the rows of exact inference, where it is the same for all.
    noise: Option<f64>,
    /// Draws of the whitened variables, M×L each, where the posterior was sampled: it is the even mixture of
    /// what is known at each. Mean and roots are their moments then.
    draws: Vec<Mat<f64>>,
    /// What is known at every draw, where hyperparameters were sampled too.
    each: Vec<Self>,
    /// Those hyperparameters, in the order of [`crate::model::hyperparameters`].
    hyperparameters: Vec<Vec<f64>>,
    /// Layers that rows go through first, of which all else here is the last one, or errors of their inputs.
    before: Option<Arc<Before>>,
}

impl Posterior {
    /// Where all latent functions share everything, from its parts: points (M×D), factor of their
    /// covariance, whitened mean (M×L) and, but for exact inference, lower root of the whitened
    /// covariance (M×M).
    pub fn new(
        model: &Model,
        points: Mat<f64>,
        factor: Cholesky,
        q_mu: Mat<f64>,
        q_sqrt: Option<Mat<f64>>,
    ) -> Self {
        let kernel = model.kernels[0].clone();
        let roots = q_sqrt.into_iter().collect();
        let process = Process::new(0..q_mu.ncols(), kernel, points, factor, roots, q_mu.as_ref());
        let noise = process.roots.is_empty().then(|| model.noise()).filter(|v| !v.is_nan());
        Self { noise, ..Self::assemble(model, q_mu, vec![process]) }
    }

    /// From a model whose q(u) is a parameter.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it has none, [`Error::NotPositiveDefinite`].
    pub fn of_q(model: &Model) -> Result<Self> {
        let q = model.q.as_ref().ok_or_else(|| Error::Invalid("the model has no q".into()))?;
        let latents = q.latents();
        if q.pseudo().is_some() {
            let (points, jitter) = (model.inducing_points()?, model.jitter.absolute());
            let mut kuu = Mat::zeros(points.nrows(), points.nrows());
            model.kernel().evaluate(points.as_ref(), None, kuu.as_mut(), &mut Tape::off());
            let mut own = LSpace::default();
            q.read_lspace(kuu.as_ref(), jitter, &mut Mat::new(), &mut own)?;
            let process = Process::of_pseudo(model.kernels[0].clone(), points, &own, jitter);
            let own = Self::assemble(model, own.mean().to_owned(), vec![process]);
            return if model.hidden.is_empty() { Ok(own) } else { own.with_hidden(model) };
        }
        let shared = model.kernels.len() == 1 && model.inducing.len() == 1;
        let mut q_mu = Mat::zeros(q.points(), latents);
        let mut processes = Vec::new();
        let count = if shared { 1 } else { latents };
        for l in 0..count {
            let points = model.inducing_set(l)?;
            let kernel = if model.kernels.len() == 1 { 0 } else { l };
            let mut k = Mat::zeros(points.nrows(), points.nrows());
            model.kernels[kernel].evaluate(points.as_ref(), None, k.as_mut(), &mut Tape::off());
            let factor = Cholesky::new(k.as_ref(), model.jitter, "Kuu")?;
            let own = if shared { 0..latents } else { l..l + 1 };
            let parts = q.whitened(own.clone(), &factor)?;
            q_mu.as_mut().subcols_mut(own.start, own.len()).copy_from(&parts.mean);
            let kernel = model.kernels[kernel].clone();
            let mean = parts.mean.as_ref();
            processes.push(Process::new(own, kernel, points, factor, parts.roots, mean));
        }
        let own = Self::assemble(model, q_mu, processes);
        if model.hidden.is_empty() { Ok(own) } else { own.with_hidden(model) }
    }

    /// Without inducing points: at the inputs of all rows, from a factor L and a mean m for every latent
    /// function, q(f(x)) = N(m(x) + φᵀm, k(x, x) − ‖φ‖²) with φ = L⁻¹k(X, x).
    pub(crate) fn of_rows(model: &Model, x: &Mat<f64>, factors: Vec<(Cholesky, Mat<f64>)>) -> Self {
        let mut q_mu = Mat::zeros(x.nrows(), factors.len());
        let mut processes = Vec::with_capacity(factors.len());
        for (l, (factor, mean)) in factors.into_iter().enumerate() {
            q_mu.as_mut().subcols_mut(l, 1).copy_from(&mean);
            let kernel = model.kernels[if model.kernels.len() == 1 { 0 } else { l }].clone();
            let own = l..l + 1;
            processes.push(Process::new(own, kernel, x.clone(), factor, vec![], mean.as_ref()));
        }
        Self::assemble(model, q_mu, processes)
    }

    fn assemble(model: &Model, q_mu: Mat<f64>, processes: Vec<Process>) -> Self {
        let (mean, likelihood) = (model.mean.clone(), model.likelihood.clone());
        Self {
            mean,
            likelihood,
            processes,
            q_mu,
            row_noise: Vec::new(),
            noise: None,
            draws: Vec::new(),
            each: Vec::new(),
            hyperparameters: Vec::new(),
            before: None,
        }
    }

    /// Of exact inference on rows whose noise differs: its variances, to be kept with the inputs.
    #[must_use]
    pub fn with_row_noise(mut self, row_noise: Vec<f64>) -> Self {
        self.row_noise = row_noise;
        self
    }

    /// Variances of the noise of the rows of exact inference, where they differ; else empty.
    pub fn row_noise(&self) -> &[f64] {
        &self.row_noise
    }

    /// Number of latent functions L, mixed ones where [`Likelihood::mixing`] says so.
    pub fn latents(&self) -> usize {
        self.likelihood.mixing().map_or(self.q_mu.ncols(), |w| mixing_shape(w).0)
    }

    /// Number of target columns P.
    pub fn outputs(&self) -> usize {
        self.latents() / self.likelihood.latents()
    }

    /// Number of input columns D.
    pub fn inputs(&self) -> usize {
        self.before.as_ref().map_or_else(|| self.processes[0].inputs(), |before| before.inputs())
    }

    /// The observation model.
    pub fn likelihood(&self) -> &dyn Likelihood {
        &*self.likelihood
    }

    /// Inducing points, or training inputs for exact inference; the first set of several.
    pub fn points(&self) -> MatRef<'_, f64> {
        self.processes[0].points.as_ref()
    }

    /// Whitened mean of q, M×L; for L-SVGP and R-SVGP in the coordinates of their features.
    pub fn q_mu(&self) -> MatRef<'_, f64> {
        self.q_mu.as_ref()
    }

    /// Lower roots of the whitened covariances of q, M×M each: one that all latent functions share or
    /// one for each; none for exact inference, L-SVGP and R-SVGP.
    pub fn q_sqrt(&self) -> Vec<MatRef<'_, f64>> {
        self.processes.iter().flat_map(|p| p.roots.iter().map(|r| r.as_ref())).collect()
    }

    /// The factor of Kuu (of K + σ²I for exact inference, of Kuu + Λ for L-SVGP); the first of several. That of
    /// R-SVGP, which has none, is empty.
    pub fn factor(&self) -> &Cholesky {
        &self.processes[0].factor
    }

    /// q(u) = N(L m, L R Rᵀ Lᵀ) of the inducing variables u = f(Z) − m(Z): means M×L and the
    /// covariance of every latent function, M×M. None for exact inference.
    pub fn q_u(&self) -> Option<(Mat<f64>, Vec<Mat<f64>>)> {
        let mut mean = Mat::zeros(self.q_mu.nrows(), self.unmixed());
        let mut covariances = Vec::new();
        for process in &self.processes {
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

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        if x.ncols() == self.inputs() {
            // what rows go through first looks at them itself
            let own =
                &self.processes[..if self.before.is_some() { 0 } else { self.processes.len() }];
            return own.iter().try_for_each(|p| p.kernel.check(x));
        }
        Err(Error::Shape {
            what: "inputs to predict at".into(),
            expected: format!("{} columns", self.inputs()),
            found: format!("{} columns", x.ncols()),
        })
    }

    /// Means of the latent functions alone, B×L. 2M multiply-adds per row and function.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict_mean(&self, x: MatRef<f64>) -> Result<Mat<f64>> {
        self.check(x)?;
        if self.before.is_some() {
            return Ok(self.predict_f(x)?.0);
        }
        if !self.each.is_empty() {
            let mut mean = Mat::zeros(x.nrows(), self.latents());
            let share = faer::Scale(1.0 / self.each.len() as f64);
            for own in &self.each {
                mean += share * own.predict_mean(x)?;
            }
            return Ok(mean);
        }
        let mut mean = self.start(x);
        for p in &self.processes {
            let own = mean.as_mut().subcols_mut(p.latents.start, p.latents.len());
            p.add_mean(p.covariances(x).as_ref(), own);
        }
        Ok(self.mixed(x, mean))
    }

    /// Means and variances of the latent functions, B×L each. No variance is below its rounding, some
    /// (4 + √M)2⁻⁵² of the prior variance.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict_f(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        self.check(x)?;
        if let Some(own) = self.exact_moments(x)? {
            return Ok(own);
        }
        if !self.each.is_empty() || self.before.is_some() {
            return self.pooled_f(x);
        }
        let mut mean = self.start(x);
        let mut variance = Mat::zeros(x.nrows(), self.unmixed());
        for p in &self.processes {
            let k = p.covariances(x);
            let own = mean.as_mut().subcols_mut(p.latents.start, p.latents.len());
            p.add_mean(k.as_ref(), own);
            let own = variance.as_mut().subcols_mut(p.latents.start, p.latents.len());
            p.variances(x, &k, own);
        }
        Ok((self.mixed(x, mean), self.mixed_variances(variance)))
    }

    /// Means and variances where rows go through something first, and neither needs a mixture.
    fn exact_moments(&self, x: MatRef<f64>) -> Result<Option<(Mat<f64>, Mat<f64>)>> {
        self.before.as_ref().map_or(Ok(None), |before| before.moments(x))
    }

    /// Means (B×L) and both parts of the variances, s and r (B×L each): what comes from q, and what the
    /// inducing points leave unexplained, which is 0 without inducing points.
    pub(super) fn split(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>, Mat<f64>)> {
        let (mean, mut s) = self.predict_f(x)?;
        let mut r = Mat::zeros(x.nrows(), self.latents());
        for p in self.processes.iter().filter(|p| !p.roots.is_empty()) {
            let mut phi = p.covariances(x);
            p.project(phi.as_mut());
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
        Ok((mean, s, r))
    }

    /// Without inducing points: diag G⁻¹ and G⁻¹(f − m) at the points, N×L each, where G is the matrix whose
    /// factor is kept.
    pub(super) fn at_points(&self) -> (Mat<f64>, Mat<f64>) {
        let n = self.q_mu.nrows();
        let (mut diagonal, mut alpha) =
            (Mat::zeros(n, self.latents()), Mat::zeros(n, self.latents()));
        for p in &self.processes {
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

    /// Means (B×L) and the full covariance (B×B) of every latent function.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict_f_full(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
        let (mean, covariances) = self.unmixed_full(x)?;
        Ok((self.mixed(x, mean), self.mixed_matrices(covariances, |w| w * w)))
    }

    /// The same of the latent functions before they are mixed.
    fn unmixed_full(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
        self.check_shallow("a covariance of rows")?;
        self.check(x)?;
        let n = x.nrows();
        let par = par_for(n);
        if !self.each.is_empty() {
            return self.pooled_f_full(x);
        }
        let mut mean = self.start(x);
        let mut covariances = Vec::with_capacity(self.unmixed());
        for p in &self.processes {
            let mut phi = p.covariances(x);
            let own = mean.as_mut().subcols_mut(p.latents.start, p.latents.len());
            p.add_mean(phi.as_ref(), own);
            let mut prior = Mat::zeros(n, n);
            p.kernel.evaluate(x, None, prior.as_mut(), &mut Tape::off());
            let part = part(p.points.nrows());
            let floors: Vec<f64> = (0..n).map(|i| part * prior[(i, i)]).collect();
            if p.pseudo.is_some() {
                let mut shared = p.conditional(phi, prior);
                raise(&mut shared, &floors);
                covariances.extend(std::iter::repeat_n(shared, p.latents.len()));
                continue;
            }
            solve_lower(p.factor.l.as_ref(), phi.as_mut().transpose_mut(), par);
            gemm(prior.as_mut(), Accum::Add, phi.as_ref(), phi.transpose(), -1.0, par);
            for at in 0..p.latents.len() {
                let mut covariance = prior.clone();
                if let Some(root) = p.root(at) {
                    let s = product(phi.as_ref(), root.as_ref());
                    gemm(covariance.as_mut(), Accum::Add, s.as_ref(), s.transpose(), 1.0, par);
                }
                mirror_lower(covariance.as_mut());
                raise(&mut covariance, &floors);
                covariances.push(covariance);
            }
        }
        Ok((mean, covariances))
    }

    /// The further number of row i.
    fn extra(&self, extra: &[f64], i: usize) -> f64 {
        let default = self.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        extra.get(i).copied().unwrap_or(default)
    }

    /// Calls `f` with every row, target column and the latent means and variances there.
    fn observations(
        &self,
        mean: MatRef<f64>,
        variance: MatRef<f64>,
        mut f: impl FnMut(usize, usize, &[f64], &[f64]),
    ) {
        let k = self.likelihood.latents();
        let (mut own_mean, mut own_variance) = (vec![0.0; k], vec![0.0; k]);
        for p in 0..self.outputs() {
            for i in 0..mean.nrows() {
                for l in 0..k {
                    own_mean[l] = mean[(i, p * k + l)];
                    own_variance[l] = variance[(i, p * k + l)];
                }
                f(i, p, &own_mean, &own_variance);
            }
        }
    }

    /// Joint samples of the latent functions: one B×L matrix per sample. Where the posterior was sampled each is of one of
    /// its draws; of a deep model all layers are drawn.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs, [`Error::NotPositiveDefinite`] if the
    /// covariance cannot be factorised.
    pub fn sample_f(
        &self,
        x: MatRef<f64>,
        samples: usize,
        rng: &mut impl rand::Rng,
    ) -> Result<Vec<Mat<f64>>> {
        if let Some(before) = &self.before {
            self.check(x)?;
            return (0..samples).map(|_| before.sample(x, rng)).collect();
        }
        if !self.draws.is_empty() {
            return Ok(self.sample_of_draws(x, samples, rng)?.1);
        }
        let (mean, covariances) = self.unmixed_full(x)?;
        let roots = roots_of(&covariances, &self.prior_sizes(x))?;
        Ok((0..samples).map(|_| self.mixed(x, around(mean.clone(), &roots, rng))).collect())
    }
}

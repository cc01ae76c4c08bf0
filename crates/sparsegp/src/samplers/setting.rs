//! What samplers of a posterior share: the whitened variables z of f = μ + Aᵀz + e, with the features of every
//! kernel, the prior means and the targets.

use super::conditional::Features;
use super::slice::Block;
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::kernels::{Tape, covariances, of_latent, read_features};
use crate::likelihoods::{self, Slopes};
use crate::linalg::{Cholesky, Mat, add_row_dots, sized};
use crate::model::Model;

/// The law that a chain with inducing points has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The optimal q(u, ω) ∏ p(fᵢ | u) of variational inference, q(u) of any shape: u has the density
    /// ∝ p(u) exp Σ ℓᵢ with the ℓ of [`crate::likelihoods::augmented`].
    #[default]
    Variational,
    /// The posterior of the model p(u) ∏ p(fᵢ | u) p(yᵢ | fᵢ): FITC.
    Fitc,
}

/// Why rows are refused.
pub(super) const WEIGHTS: &str = "sampling knows no weights of rows: repeat rows, or use `cavi`";

/// Returns what is observed of row i and target column p, unless that is missing.
pub(super) fn observed(
    model: &Model,
    rows: &InMemory,
    i: usize,
    p: usize,
) -> Option<likelihoods::Target> {
    let y = rows.y[(i, p)];
    let default = model.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
    let extra = rows.extra.get(i).copied().unwrap_or(default);
    (!y.is_nan()).then_some(likelihoods::Target { y, extra })
}

/// A model with its rows, ready to be sampled: features and prior means at the model's parameters.
#[derive(Clone, Debug)]
pub struct Setting<'a> {
    pub(super) model: Model,
    pub(super) rows: &'a InMemory,
    /// One for each kernel.
    features: Vec<Features>,
    /// N×L.
    pub(super) mu: Mat<f64>,
    /// Likelihood's latent values for one target column.
    pub(super) each: usize,
    pub(super) target: Target,
    /// Of the last covariance: its memory.
    factor: Cholesky,
}

impl<'a> Setting<'a> {
    /// Creates the setting at the model's parameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] for rows with weights; what factorising covariances gives.
    pub fn new(model: &Model, rows: &'a InMemory, target: Target) -> Result<Self> {
        model.check_shallow("sampling")?;
        if rows.weights.iter().any(|w| *w != 1.0) {
            return Err(Error::Invalid(WEIGHTS.into()));
        }
        let (n, latents) = (rows.x.nrows(), model.latents(rows.y.ncols()));
        let none = || Features { a: Mat::new(), k: Mat::new(), unexplained: vec![0.0; n] };
        let mut setting = Self {
            model: model.clone(),
            rows,
            features: (0..model.kernels.len()).map(|_| none()).collect(),
            mu: Mat::zeros(n, latents),
            each: model.likelihood.latents(),
            target,
            factor: Cholesky::of_factor(Mat::new()),
        };
        setting.renew_mean();
        (0..model.kernels.len()).try_for_each(|at| setting.renew_kernel(at))?;
        Ok(setting)
    }

    /// Renews the prior means at the present parameters of the mean function.
    pub(super) fn renew_mean(&mut self) {
        self.model.mean.evaluate(self.rows.x.as_ref(), self.mu.as_mut());
    }

    /// Renews the features of a kernel at its present parameters.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], after which the features are invalid until they are renewed.
    pub(super) fn renew_kernel(&mut self, at: usize) -> Result<()> {
        let (kernel, x) = (&self.model.kernels[at], self.rows.x.as_ref());
        let Features { a, k, unexplained } = &mut self.features[at];
        let (n, factor, jitter) = (x.nrows(), &mut self.factor, self.model.jitter);
        if !self.model.method.is_sparse() {
            sized(k, n, n);
            k.fill(0.0);
            kernel.evaluate(x, None, k.as_mut(), &mut Tape::off());
            factor.renew(k.as_ref(), jitter, "K")?;
            (0..n).for_each(|i| k[(i, i)] += factor.jitter);
            sized(a, n, n);
            a.copy_from(&factor.l);
            return Ok(());
        }
        let z = self.model.inducing_set(at)?;
        factor.renew(covariances(&**kernel, z.as_ref(), None).as_ref(), jitter, "Kuu")?;
        read_features(&**kernel, z.as_ref(), factor, x, a);
        let mut explained = vec![0.0; n];
        add_row_dots(a.as_ref(), a.as_ref(), &mut explained);
        unexplained.fill(0.0);
        kernel.diag(x, unexplained);
        unexplained.iter_mut().zip(&explained).for_each(|(r, e)| *r = (*r - e).max(0.0));
        Ok(())
    }

    /// Returns the number of latent functions.
    pub fn latents(&self) -> usize {
        self.mu.ncols()
    }

    /// Returns the features of a latent function.
    pub(super) fn features(&self, latent: usize) -> &Features {
        of_latent(&self.features, latent)
    }

    /// Returns what the bound takes for E[log p] and FITC for the variance of f given u: α of
    /// [`conditional`](super::conditional).
    pub(super) fn alpha(&self) -> f64 {
        match self.target {
            Target::Variational => 0.0,
            Target::Fitc => 1.0,
        }
    }

    /// Turns of a sweep ([`Augmented::turns`](likelihoods::augmented::Augmented::turns)).
    pub(super) fn turns(&self) -> usize {
        self.model.likelihood.augmented().map_or(0, |a| a.turns())
    }

    /// Returns the turn of a latent function.
    pub(super) fn turn(&self, latent: usize) -> usize {
        self.model.likelihood.augmented().map_or(0, |a| a.turn(latent % self.each))
    }

    /// Returns the latent functions whose kernel or mean a block of hyperparameters is of.
    pub(super) fn latents_of(&self, block: Block) -> std::ops::Range<usize> {
        match block {
            Block::Likelihood => 0..0,
            Block::Kernel(_) if self.features.len() == 1 => 0..self.latents(),
            Block::Kernel(l) | Block::Mean(l) => l..l + 1,
        }
    }

    /// Returns Σ log p(yᵢ | fᵢ), or the bound ℓ on its mean over f given u where the law takes
    /// that.
    pub(super) fn log_likelihood(&self, f: &Mat<f64>) -> f64 {
        let (likelihood, k) = (&self.model.likelihood, self.each);
        if likelihood.in_blocks() {
            return self.log_likelihood_together(f);
        }
        let (mut own, mut variance) = (vec![0.0; k], vec![0.0; k]);
        let (mut slope, mut by_variance) = (vec![0.0; k], vec![0.0; k]);
        let mut params = vec![0.0; likelihood.num_params()];
        let mut sum = 0.0;
        for p in 0..self.rows.y.ncols() {
            for i in 0..f.nrows() {
                let Some(target) = self.observed(i, p) else { continue };
                for j in 0..k {
                    own[j] = f[(i, p * k + j)];
                    variance[j] = self.averaged(i, p * k + j);
                }
                let augmented =
                    likelihood.augmented().filter(|_| variance.iter().any(|v| *v > 0.0));
                sum += augmented.map_or_else(
                    || likelihood.log_prob(target, &own),
                    |augmented| {
                        let (mean, variances) = (&mut slope[..], &mut by_variance[..]);
                        let out = Slopes { mean, variance: variances, params: &mut params };
                        augmented.expect(target, &own, &variance, out)
                    },
                );
            }
        }
        sum
    }

    /// Returns the same for likelihoods that answer for all rows at once, which have no augmented
    /// form.
    fn log_likelihood_together(&self, f: &Mat<f64>) -> f64 {
        let (mut targets, mut values) = (Vec::new(), Vec::new());
        for p in 0..self.rows.y.ncols() {
            for i in 0..f.nrows() {
                let Some(target) = self.observed(i, p) else { continue };
                targets.push(target);
                values.extend((0..self.each).map(|j| f[(i, p * self.each + j)]));
            }
        }
        if targets.is_empty() {
            return 0.0;
        }
        let mut logs = vec![f64::NAN; targets.len()];
        self.model.likelihood.log_probs(&targets, &values, &mut logs);
        logs.iter().sum()
    }

    /// Returns the number of whitened variables of every latent function.
    pub(super) fn whitened(&self, latent: usize) -> usize {
        self.features(latent).a.ncols()
    }

    /// Returns the most of them.
    pub(super) fn widest(&self) -> usize {
        self.features.iter().map(|f| f.a.ncols()).max().unwrap_or(0)
    }

    /// Returns what is observed of row i and target column p, unless that is missing.
    pub(super) fn observed(&self, i: usize, p: usize) -> Option<likelihoods::Target> {
        observed(&self.model, self.rows, i, p)
    }

    /// Returns the variance of fᵢ given u where the law takes expectations over it, else 0.
    pub(super) fn averaged(&self, i: usize, latent: usize) -> f64 {
        match self.target {
            Target::Variational => self.features(latent).unexplained[i],
            Target::Fitc => 0.0,
        }
    }
}

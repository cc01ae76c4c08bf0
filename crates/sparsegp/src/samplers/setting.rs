//! What samplers of a posterior share: the whitened variables z of f = μ + Aᵀz + e, with the features of every
//! kernel, the prior means and the targets.

use super::conditional::Features;
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::kernels::Tape;
use crate::likelihoods;
use crate::linalg::{Cholesky, Mat, Par, add_row_dots, solve_lower};
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
}

impl<'a> Setting<'a> {
    /// At the model's parameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] for rows with weights; what factorising covariances gives.
    pub fn new(model: &Model, rows: &'a InMemory, target: Target) -> Result<Self> {
        if rows.weights.iter().any(|w| *w != 1.0) {
            return Err(Error::Invalid(
                "sampling knows no weights of rows: repeat rows, or use `cavi`".into(),
            ));
        }
        let (n, latents) = (rows.x.nrows(), model.latents(rows.y.ncols()));
        let mut mu = Mat::zeros(n, latents);
        model.mean.evaluate(rows.x.as_ref(), mu.as_mut());
        let each = (0..model.kernels.len()).map(|at| features(model, rows, at));
        let features = each.collect::<Result<Vec<_>>>()?;
        let each = model.likelihood.latents();
        Ok(Self { model: model.clone(), rows, features, mu, each, target })
    }

    /// Number of latent functions.
    pub fn latents(&self) -> usize {
        self.mu.ncols()
    }

    /// Features of a latent function.
    pub(super) fn features(&self, latent: usize) -> &Features {
        &self.features[if self.features.len() == 1 { 0 } else { latent }]
    }

    /// What the bound takes for E[log p] and FITC for the variance of f given u: α of
    /// [`conditional`](super::conditional).
    pub(super) fn alpha(&self) -> f64 {
        match self.target {
            Target::Variational => 0.0,
            Target::Fitc => 1.0,
        }
    }

    /// Number of whitened variables of every latent function.
    pub(super) fn whitened(&self, latent: usize) -> usize {
        self.features(latent).a.ncols()
    }

    /// The most of them.
    pub(super) fn widest(&self) -> usize {
        self.features.iter().map(|f| f.a.ncols()).max().unwrap_or(0)
    }

    /// What is observed of row i and target column p, unless that is missing.
    pub(super) fn observed(&self, i: usize, p: usize) -> Option<likelihoods::Target> {
        let y = self.rows.y[(i, p)];
        let default = self.model.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        let extra = self.rows.extra.get(i).copied().unwrap_or(default);
        (!y.is_nan()).then_some(likelihoods::Target { y, extra })
    }

    /// The variance of fᵢ given u where the law takes expectations over it, else 0.
    pub(super) fn averaged(&self, i: usize, latent: usize) -> f64 {
        match self.target {
            Target::Variational => self.features(latent).unexplained[i],
            Target::Fitc => 0.0,
        }
    }
}

/// Features of one kernel.
fn features(model: &Model, rows: &InMemory, at: usize) -> Result<Features> {
    let (kernel, x) = (&model.kernels[at], rows.x.as_ref());
    let n = rows.x.nrows();
    let mut tape = Tape::off();
    if !model.method.is_sparse() {
        let mut k = Mat::zeros(n, n);
        kernel.evaluate(x, None, k.as_mut(), &mut tape);
        let factor = Cholesky::new(k.as_ref(), model.jitter, "K")?;
        (0..n).for_each(|i| k[(i, i)] += factor.jitter);
        return Ok(Features { a: factor.l, k, unexplained: vec![0.0; n] });
    }
    let z = model.inducing_set(at)?;
    let m = z.nrows();
    let mut kuu = Mat::zeros(m, m);
    kernel.evaluate(z.as_ref(), None, kuu.as_mut(), &mut tape);
    let factor = Cholesky::new(kuu.as_ref(), model.jitter, "Kuu")?;
    let mut a = Mat::zeros(n, m);
    kernel.evaluate(x, Some(z.as_ref()), a.as_mut(), &mut tape);
    solve_lower(factor.l.as_ref(), a.as_mut().transpose_mut(), Par::Seq);
    let mut explained = vec![0.0; n];
    add_row_dots(a.as_ref(), a.as_ref(), &mut explained);
    let mut unexplained = vec![0.0; n];
    kernel.diag(x, &mut unexplained);
    unexplained.iter_mut().zip(&explained).for_each(|(r, e)| *r = (*r - e).max(0.0));
    Ok(Features { a, k: Mat::new(), unexplained })
}

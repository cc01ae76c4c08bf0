//! Means and variances of the terms of latent functions.
//!
//! Of f = m + Σ_t f_t with independent f_t, the covariance of f_t(x) with the values at the points is that of the
//! term by itself, k_t(x, P): so all formulas of f hold with k_t in the place of k, whatever the points are and
//! however q was found. Means add up to that of f; variances do not, since terms are known less well than their sum.

use super::Posterior;
use super::gaussian::Gaussian;
use crate::error::{Error, Result};
use crate::kernels::covariances;
use crate::kernels::terms::terms;
use crate::linalg::{Mat, MatRef, column};
use std::ops::Range;

/// Moments of one term of one latent function at rows.
#[derive(Clone, Debug)]
pub struct PredictedTerm {
    /// What it is ([`crate::kernels::Term`]), or [`PredictedTerm::MEAN_FUNCTION`].
    pub name: String,
    /// The latent function that it is a term of.
    pub latent: usize,
    /// Means at the rows.
    pub mean: Vec<f64>,
    /// Variances at the rows.
    pub variance: Vec<f64>,
}

impl PredictedTerm {
    /// Name of the mean function.
    pub const MEAN_FUNCTION: &'static str = "mean function";
}

/// Moments of a term of all latent functions before they are mixed, B×L each; NaN of functions that have no such term.
struct Unmixed {
    name: String,
    mean: Mat<f64>,
    variance: Mat<f64>,
    /// The functions that have it.
    latents: Range<usize>,
}

impl Gaussian {
    /// Moments of all terms, those of a latent function together, the mean function first.
    ///
    /// # Errors
    /// [`Error::Invalid`] where functions that are mixed have kernels of other terms.
    pub(super) fn parts_by_term(
        &self,
        x: MatRef<f64>,
        names: &[String],
    ) -> Result<Vec<PredictedTerm>> {
        let mut means = Mat::zeros(x.nrows(), self.latents());
        self.mean.evaluate(x, means.as_mut());
        let of_mean = |latent: usize| {
            let mut variance = vec![0.0; x.nrows()];
            if let Some(trend) = &self.trend {
                trend.add_own(latent, x, &mut variance);
            }
            let mean = column(means.as_ref(), latent).to_vec();
            PredictedTerm { name: PredictedTerm::MEAN_FUNCTION.into(), latent, mean, variance }
        };
        let mut all: Vec<PredictedTerm> = (0..self.latents()).map(of_mean).collect();
        for own in self.mixed_terms(self.unmixed_terms(x, names))? {
            all.extend(own.latents.map(|latent| PredictedTerm {
                name: own.name.clone(),
                latent,
                mean: column(own.mean.as_ref(), latent).to_vec(),
                variance: column(own.variance.as_ref(), latent).to_vec(),
            }));
        }
        all.sort_by_key(|term| term.latent);
        Ok(all)
    }

    /// The terms of every process, one process after the other.
    fn unmixed_terms(&self, x: MatRef<f64>, names: &[String]) -> Vec<Unmixed> {
        let mut all = Vec::new();
        for p in &*self.processes {
            let latents = p.latents.clone();
            for term in terms(&*p.kernel, names) {
                let k = covariances(&*term.kernel, x, Some(p.points.as_ref()));
                let mut mean = Mat::full(x.nrows(), self.unmixed(), f64::NAN);
                let mut variance = mean.clone();
                let mut own = mean.as_mut().subcols_mut(latents.start, latents.len());
                own.fill(0.0);
                p.add_mean(k.as_ref(), own);
                let own = variance.as_mut().subcols_mut(latents.start, latents.len());
                p.variances(&*term.kernel, x, &k, own);
                for l in latents.clone() {
                    if let Some(trend) = &self.trend {
                        trend.add_of_term(l, k.as_ref(), variance.col_as_slice_mut(l));
                    }
                }
                all.push(Unmixed { name: term.name, mean, variance, latents: latents.clone() });
            }
        }
        all
    }

    /// Of functions that are mixed the same term of all of them as one.
    fn mixed_terms(&self, all: Vec<Unmixed>) -> Result<Vec<Unmixed>> {
        let Some(w) = &self.mixing else { return Ok(all) };
        let count = all.len() / self.processes.len();
        let mut shared: Vec<Unmixed> = Vec::with_capacity(count);
        for (t, term) in all.into_iter().enumerate() {
            if t < count {
                shared.push(term);
                continue;
            }
            let own = &mut shared[t % count];
            if own.name != term.name {
                return Err(Error::Invalid(format!(
                    "a prediction of terms is for mixed functions whose kernels have the same terms, and `{}` and `{}` are in \
                     the same place: give every function the same sum",
                    own.name, term.name
                )));
            }
            for l in term.latents {
                own.mean.col_as_slice_mut(l).copy_from_slice(term.mean.col_as_slice(l));
                own.variance.col_as_slice_mut(l).copy_from_slice(term.variance.col_as_slice(l));
            }
        }
        let mixed = |own: Unmixed| Unmixed {
            name: own.name,
            mean: own.mean * w.transpose(),
            variance: self.mixed_variances(own.variance),
            latents: 0..self.latents(),
        };
        Ok(shared.into_iter().map(mixed).collect())
    }
}

impl Posterior {
    /// Returns moments of the terms of the latent functions at rows (B×D): of the mean function, and of every summand of the
    /// kernel ([`crate::kernels::Kernel::terms`]), those of a latent function together. Means add up to that of the latent
    /// function, variances do not. `names` are those of the inputs.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs; [`Error::Invalid`] for deep models, draws, inputs with errors, and
    /// mixed latent functions whose kernels have other terms.
    pub fn predict_terms(&self, x: MatRef<f64>, names: &[String]) -> Result<Vec<PredictedTerm>> {
        self.law.terms(x, names)
    }
}

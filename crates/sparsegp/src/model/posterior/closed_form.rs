//! The numbers that predictions are a closed formula of, where they are one, for those who write the formula down elsewhere.

use super::Posterior;
use super::gaussian::Gaussian;
use super::rounding::part;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, place_of};
use crate::likelihoods::Likelihood;
use crate::linalg::{Mat, MatRef};
use crate::means::Mean;
use std::ops::Range;

/// A component of a posterior whose latent functions have the means m(x) + Σⱼ wⱼ k(x, zⱼ) and the variances k(x, x) less
/// what is explained of them ([`Explained`]), raised to [`ClosedProcess::floor`] of k(x, x).
pub(crate) struct ClosedForm<'a> {
    /// How many of the components of the mixture it is.
    pub(crate) times: usize,
    pub(crate) likelihood: &'a dyn Likelihood,
    pub(crate) mean: &'a dyn Mean,
    /// W (P×Q), where functions are mixed: the mean function is then that of the mixtures.
    pub(crate) mixing: Option<&'a Mat<f64>>,
    pub(crate) processes: Vec<ClosedProcess<'a>>,
    /// What is not known of the mean function.
    pub(crate) trend: Option<ClosedTrend<'a>>,
}

/// Functions that share kernel and points.
pub(crate) struct ClosedProcess<'a> {
    pub(crate) latents: Range<usize>,
    pub(crate) kernel: &'a dyn Kernel,
    /// M×D.
    pub(crate) points: MatRef<'a, f64>,
    /// w, M×l.
    pub(crate) weights: MatRef<'a, f64>,
    /// Of every function, or one that all have.
    pub(crate) explained: Vec<Explained<'a>>,
    /// The least variance, as a part of k(x, x).
    pub(crate) floor: f64,
}

/// What points explain of a variance, of covariances k with them.
pub(crate) enum Explained<'a> {
    /// ‖Gk‖², G lower triangular, of Gᵀ.
    Product(MatRef<'a, f64>),
    /// ‖L⁻¹k‖², less ‖RᵀL⁻¹k‖² where there is a root R.
    Solution(MatRef<'a, f64>, Option<MatRef<'a, f64>>),
}

/// Variances are higher by ‖Cᵀ(h(x) − Wᵀk)‖², where h has the inputs, if there are slopes, and then 1, if there is a constant.
pub(crate) struct ClosedTrend<'a> {
    pub(crate) slopes: bool,
    pub(crate) constant: bool,
    /// W (M×K) and C (K×K) of every function.
    pub(crate) own: Vec<(&'a Mat<f64>, &'a Mat<f64>)>,
}

impl Gaussian {
    /// Returns what it predicts with, as so many components of a mixture.
    ///
    /// # Errors
    /// [`Error::Invalid`] where q is kept with an inverse by products.
    pub(super) fn closed_form<'a>(
        &'a self,
        likelihood: &'a dyn Likelihood,
        times: usize,
    ) -> Result<ClosedForm<'a>> {
        let mut processes = Vec::with_capacity(self.processes.len());
        for p in &*self.processes {
            if p.products().is_some() {
                return Err(Error::Invalid(
                    "the posterior has an inverse by products (`rsvgp`), of which there is no closed formula here: fit \
                     with `svgp` or `titsias2025`"
                        .into(),
                ));
            }
            let distinct = if p.roots.len() < 2 { 1 } else { p.latents.len() };
            let of = |at: usize| match p.explained.get(place_of(p.explained.len(), at)) {
                Some(Some(g)) => Explained::Product(g.as_ref()),
                _ => Explained::Solution(p.factor.l.as_ref(), p.root(at).map(Mat::as_ref)),
            };
            processes.push(ClosedProcess {
                latents: p.latents.clone(),
                kernel: &*p.kernel,
                points: p.points.as_ref(),
                weights: p.weights.as_ref(),
                explained: (0..distinct).map(of).collect(),
                floor: part(p.points.nrows()),
            });
        }
        let (mean, mixing, trend) = (&*self.mean, self.mixing.as_ref(), self.closed_trend());
        Ok(ClosedForm { times, likelihood, mean, mixing, processes, trend })
    }
}

impl Posterior {
    /// Returns what its components predict with, the times of which are those of an even mixture.
    ///
    /// # Errors
    /// [`Error::Invalid`] that says which posteriors have no closed formula, and what to use instead.
    pub(crate) fn closed_forms(&self) -> Result<Vec<ClosedForm<'_>>> {
        self.law.closed_forms(&*self.likelihood)
    }
}

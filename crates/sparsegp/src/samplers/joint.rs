//! Log densities of everything unknown at fixed hyperparameters, with gradients: what samplers that need no more
//! than that are given.
//!
//! With f = μ + Aᵀz (Galy-Fajou 2022, §7.3; Hensman et al. 2015 for inducing points, where log p is averaged over
//! f given u):
//!
//! ```text
//! original    log π(z)    = log N(z; 0, I) + Σ log p(yᵢ | fᵢ)
//! augmented   log π(z, t) = log N(z; 0, I) + Σ [log C + g fᵢ − hᵢ² e^{tᵢ} + log π_φ(e^{tᵢ} | 0) + tᵢ],   t = log ω
//! ```
//! The last tᵢ is the Jacobian of the logarithm. The gradient in z is −z + A ∂_f.

use super::setting::{Setting, Target};
use crate::distributions::{Mixing, Tilted};
use crate::error::{Error, Result};
use crate::likelihoods::together::at_once;
use crate::likelihoods::{Likelihood, Slopes, augmented::Form};
use crate::linalg::{Mat, column, column_mut};
use crate::model::Model;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::TAU;

/// A log density on ℝⁿ, up to a constant or with it.
pub trait LogDensity {
    /// Returns n.
    fn dim(&self) -> usize;
    /// Returns the log density at a position (n numbers).
    fn value(&mut self, position: &[f64]) -> f64;
    /// Returns the same with its gradient, which is overwritten.
    fn evaluate(&mut self, position: &[f64], gradient: &mut [f64]) -> f64;
}

/// Which variables a [`Joint`] density has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variables {
    /// z.
    #[default]
    Original,
    /// z and the logarithms of the local variables, of super-Gaussian likelihoods.
    Augmented,
}

/// The log density of z, or of z and t = log ω, with all constants. A position holds the whitened variables of
/// every latent function, one after the other, then t of every observed target, column by column.
#[derive(Debug)]
pub struct Joint<'a> {
    setting: &'a Setting<'a>,
    variables: Variables,
    /// Row and target column of every t; of every observation.
    observed: Vec<(usize, usize)>,
    /// Number of whitened variables.
    whitened: usize,
    /// N×L.
    f: Mat<f64>,
    slope: Mat<f64>,
    own: Own,
}

/// Of one observation.
#[derive(Clone, Debug, Default)]
struct Own {
    f: Vec<f64>,
    variance: Vec<f64>,
    slope: Vec<f64>,
    by_variance: Vec<f64>,
    params: Vec<f64>,
}

/// ω̄ is infinite at h = 0 for some φ.
const LEAST_SQUARE: f64 = 1e-6;

/// Refuses a model whose likelihood has no variables to add.
pub(super) fn check(model: &Model) -> Result<()> {
    let likelihood = &model.likelihood;
    let invalid = |text: String| Err(Error::Invalid(text));
    if likelihood.as_gaussian().is_some() {
        return invalid(format!(
            "`{}` is Gaussian already: there are no variables to add",
            likelihood.name()
        ));
    }
    match likelihood.augmented().and_then(|own| own.super_gaussian()) {
        Some(_) => Ok(()),
        None => invalid(format!(
            "`{}` has no local variables with a density: use the original variables",
            likelihood.name()
        )),
    }
}

impl<'a> Joint<'a> {
    /// Creates the density of a model at its hyperparameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] for augmented variables of a likelihood that is not super-Gaussian, or is Gaussian, and for
    /// [`Target::Fitc`] with inducing points, whose f are variables too.
    pub fn new(setting: &'a Setting<'a>, variables: Variables) -> Result<Self> {
        let likelihood = &setting.model.likelihood;
        let invalid = |text: String| Err(Error::Invalid(text));
        if variables == Variables::Augmented {
            check(&setting.model)?;
        }
        if setting.model.method.is_sparse() && setting.target == Target::Fitc {
            return invalid(
                "the law `fitc` has no density of u by itself: use `variational`".into(),
            );
        }
        let (n, latents) = (setting.mu.nrows(), setting.latents());
        let outputs = setting.rows.y.ncols();
        let all = (0..outputs).flat_map(|p| (0..n).map(move |i| (i, p)));
        let observed = all.filter(|(i, p)| setting.observed(*i, *p).is_some()).collect();
        let zeros = vec![0.0; setting.each];
        let own = Own {
            f: zeros.clone(),
            variance: zeros.clone(),
            slope: zeros.clone(),
            by_variance: zeros,
            params: vec![0.0; likelihood.num_params()],
        };
        let whitened = (0..latents).map(|l| setting.whitened(l)).sum();
        let (f, slope) = (Mat::zeros(n, latents), Mat::zeros(n, latents));
        Ok(Self { setting, variables, observed, whitened, f, slope, own })
    }

    /// Returns a draw of z from the prior; with it every ω at its mean given f.
    pub fn start(&mut self, rng: &mut impl rand::Rng) -> Vec<f64> {
        let mut position: Vec<f64> = StandardNormal.sample_iter(rng).take(self.whitened).collect();
        if self.variables == Variables::Augmented {
            self.latent_values_of(&position);
            for at in 0..self.observed.len() {
                let mut t = 0.0;
                self.with(at, |f, r, form, mixing| {
                    let square = form.square(f, r).max(LEAST_SQUARE * form.gamma);
                    t = mixing.mean(square).ln();
                });
                position.push(t);
            }
        }
        position
    }

    /// Returns only the log likelihood of a position of the original variables: what
    /// [`LogDensity::value`] adds to the prior.
    pub(super) fn log_likelihood(&mut self, position: &[f64]) -> f64 {
        self.latent_values_of(position);
        self.original()
    }

    /// Returns the latent values of the position that was evaluated last, N×L (with inducing points
    /// their means given u).
    pub fn latent_values(&self) -> &Mat<f64> {
        &self.f
    }

    /// Returns the latent values of a position, which count as evaluated last.
    pub(super) fn latent_values_at(&mut self, position: &[f64]) -> &Mat<f64> {
        self.latent_values_of(position);
        &self.f
    }

    /// Returns the whitened variables of a position, M×L.
    pub fn whitened(&self, position: &[f64]) -> Mat<f64> {
        let mut z = Mat::zeros(self.setting.widest(), self.setting.latents());
        let mut rest = position;
        for l in 0..self.setting.latents() {
            let (own, tail) = rest.split_at(self.setting.whitened(l));
            z.col_as_slice_mut(l)[..own.len()].copy_from_slice(own);
            rest = tail;
        }
        z
    }

    /// Computes f = μ + Aᵀz.
    fn latent_values_of(&mut self, position: &[f64]) {
        self.f.copy_from(&self.setting.mu);
        let mut rest = position;
        for l in 0..self.setting.latents() {
            let features = self.setting.features(l);
            let f = column_mut(self.f.as_mut(), l);
            let (own, tail) = rest.split_at(features.a.ncols());
            for (j, z) in own.iter().enumerate() {
                let from = features.first_row(j);
                let column = &features.a.col_as_slice(j)[from..];
                f[from..].iter_mut().zip(column).for_each(|(f, a)| *f += a * z);
            }
            rest = tail;
        }
    }

    /// Calls `work` with f, what is averaged over, form and φ of an observation.
    fn with(&self, at: usize, mut work: impl FnMut(f64, f64, &Form, &dyn Mixing)) {
        let (i, p) = self.observed[at];
        let augmented = self.setting.model.likelihood.augmented();
        let law = augmented.and_then(|a| a.super_gaussian());
        if let (Some(law), Some(target)) = (law, self.setting.observed(i, p)) {
            let (f, r) = (self.f[(i, p)], self.setting.averaged(i, p));
            law.with(target, &mut |form, mixing| work(f, r, form, mixing));
        }
    }

    /// Returns Σ log p(yᵢ | fᵢ), or its mean over f given u, with slopes by f.
    fn original(&mut self) -> f64 {
        at_once(&*self.setting.model.likelihood, |likelihood| self.original_by(likelihood))
    }

    fn original_by(&mut self, likelihood: &dyn Likelihood) -> f64 {
        let (setting, own) = (self.setting, &mut self.own);
        let mut sum = 0.0;
        for &(i, p) in &self.observed {
            let Some(target) = setting.observed(i, p) else { continue };
            let start = p * setting.each;
            for k in 0..setting.each {
                own.f[k] = self.f[(i, start + k)];
                own.variance[k] = setting.averaged(i, start + k);
            }
            sum += if own.variance.iter().all(|v| *v == 0.0) {
                likelihood.log_prob_slope(target, &own.f, &mut own.slope)
            } else {
                let out = Slopes {
                    mean: &mut own.slope,
                    variance: &mut own.by_variance,
                    params: &mut own.params,
                };
                likelihood.expect(target, &own.f, &own.variance, out)
            };
            for k in 0..setting.each {
                self.slope[(i, start + k)] = own.slope[k];
            }
        }
        sum
    }

    /// Returns the sum over observations with augmented variables t; slopes by t, if asked for.
    fn augmented(&mut self, t: &[f64], mut by_t: Option<&mut [f64]>) -> f64 {
        let mut sum = 0.0;
        for (at, t) in t.iter().enumerate() {
            let (mut value, mut slope, mut own) = (0.0, 0.0, 0.0);
            self.with(at, |f, r, form, mixing| {
                let (omega, square) = (t.exp(), form.square(f, r));
                let [log, by_omega] = mixing.log_density(omega).unwrap_or_else(|| {
                    let law = Tilted::new(mixing, 0.0);
                    law.map_or([f64::NAN; 2], |law| law.log_density_with_slope(omega))
                });
                value = form.log_c + form.g * f - square * omega + log + t;
                slope = form.g - 2.0 * form.gamma * omega * (f - form.centre);
                own = omega * (by_omega - square) + 1.0;
            });
            sum += value;
            self.slope[self.observed[at]] = slope;
            if let Some(by_t) = by_t.as_deref_mut() {
                by_t[at] = own;
            }
        }
        sum
    }

    fn prior(&self, z: &[f64]) -> f64 {
        -0.5 * z.iter().map(|z| z * z).sum::<f64>() - 0.5 * z.len() as f64 * TAU.ln()
    }
}

impl LogDensity for Joint<'_> {
    fn dim(&self) -> usize {
        match self.variables {
            Variables::Original => self.whitened,
            Variables::Augmented => self.whitened + self.observed.len(),
        }
    }

    fn value(&mut self, position: &[f64]) -> f64 {
        self.latent_values_of(position);
        let (z, t) = position.split_at(self.whitened);
        let data = match self.variables {
            Variables::Original => self.original(),
            Variables::Augmented => self.augmented(t, None),
        };
        self.prior(z) + data
    }

    fn evaluate(&mut self, position: &[f64], gradient: &mut [f64]) -> f64 {
        self.latent_values_of(position);
        let (z, t) = position.split_at(self.whitened);
        let (mut by_z, by_t) = gradient.split_at_mut(self.whitened);
        let data = match self.variables {
            Variables::Original => self.original(),
            Variables::Augmented => self.augmented(t, Some(by_t)),
        };
        let mut rest = z;
        for l in 0..self.setting.latents() {
            let features = self.setting.features(l);
            let slope = column(self.slope.as_ref(), l);
            let (own, tail) = rest.split_at(features.a.ncols());
            let (out, after) = by_z.split_at_mut(own.len());
            for (j, (out, z)) in out.iter_mut().zip(own).enumerate() {
                let from = features.first_row(j);
                let column = &features.a.col_as_slice(j)[from..];
                *out = dot(column, &slope[from..]) - z;
            }
            (rest, by_z) = (tail, after);
        }
        self.prior(z) + data
    }
}

/// Returns Σ aᵢbᵢ by eight sums, which the processor adds side by side.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (left, right) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f64 = left.remainder().iter().zip(right.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in left.zip(right) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + tail
}

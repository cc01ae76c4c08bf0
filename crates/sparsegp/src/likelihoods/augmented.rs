//! Likelihoods that local variables make Gaussian in the latent values (Galy-Fajou 2022, chapters 3–5
//! and 7): p(y | f) = ∫ p(y, ω | f) dω with p(y, ω | f) ∝ exp(a f − ½ λ f²), where the site (a, λ) is a
//! function of y and ω.
//!
//! Inference asks an [`Augmented`] likelihood two things. For variational inference ℓ(μ, v), the
//! bound on E[log p(y | f)] that remains when q(ω) is at its optimum, with slopes: by the envelope
//! theorem ∂ℓ/∂μ = a − λμ and ∂ℓ/∂v = −½λ with (a, λ) at the mean of q(ω), which is how the sites
//! are read off. For Gibbs sampling a draw of ω given f, as the site that it leaves.
//!
//! Most are *super-Gaussian* (ibid., chapter 5): log p(y | f) = log C + g f + log φ(h²), h² = γ(f − t)² + δ,
//! with a completely monotone φ = ∫ e^{−rω} π_φ(ω) dω; everything follows from C, g, h and φ:
//!
//! ```text
//! c² = E h² = γ((μ − t)² + v) + δ     ω̄ = −(log φ)′(c²)     ℓ = log C + gμ + log φ(c²)
//! a = g + 2γtω                        λ = 2γω               ω | f ~ π_φ(ω | h) ∝ e^{−h²ω} π_φ(ω)
//! ```
//!
//! # Defining a likelihood
//!
//! From log φ, real and complex, follow the density, coordinate ascent, stochastic steps and exact draws. φ is
//! admitted by [`crate::distributions::mixing::check`].
//!
//! ```
//! use sparsegp::distributions::mixing::{Complex64, Mixing, check};
//! use sparsegp::likelihoods::augmented::{self, Augmented, Form, SuperGaussian, log_constant};
//! use sparsegp::likelihoods::custom::{Custom, LogProb};
//! use sparsegp::likelihoods::dual::Real;
//! use sparsegp::likelihoods::{Likelihood, Target};
//!
//! /// φ(r) = exp(1 − (1 + r)^p): noise with stretched tails.
//! struct Phi(f64);
//!
//! impl Mixing for Phi {
//!     fn log_phi(&self, r: f64) -> f64 {
//!         1.0 - (1.0 + r).powf(self.0)
//!     }
//!     fn log_phi_complex(&self, s: Complex64) -> Complex64 {
//!         1.0 - (1.0 + s).powf(self.0)
//!     }
//! }
//!
//! #[derive(Clone, Debug)]
//! struct Stretched {
//!     power: f64,
//!     log_c: f64,
//! }
//!
//! impl SuperGaussian for Stretched {
//!     fn with(&self, target: Target, work: &mut dyn FnMut(&Form, &dyn Mixing)) {
//!         work(&Form::of_residual(self.log_c, target.y), &Phi(self.power));
//!     }
//! }
//!
//! impl LogProb for Stretched {
//!     fn name(&self) -> &'static str {
//!         "stretched"
//!     }
//!     fn log_prob<T: Real>(&self, y: f64, extra: f64, f: &[T], _: &[T]) -> T {
//!         augmented::log_prob(self, Target { y, extra }, f[0])
//!     }
//!     fn augmented(&self) -> Option<&dyn Augmented> {
//!         Some(self)
//!     }
//! }
//!
//! check(&Phi(0.4))?;
//! let likelihood = Custom::new(Stretched { power: 0.4, log_c: log_constant(&Phi(0.4)) })?;
//! assert!(likelihood.augmented().is_some()); // a model of it trains by `cavi`, `svi` and `gibbs`
//! # Ok::<(), sparsegp::Error>(())
//! ```

use super::dual::Real;
use super::{Slopes, Target, registry};
use crate::distributions::{Mixing, PolyaGamma, Tilted};
use rand_distr::Distribution;

/// A site: the potential a and the precision λ ≥ 0 of exp(a f − ½ λ f²).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Site {
    /// a.
    pub potential: f64,
    /// λ.
    pub precision: f64,
}

/// Sums over rows of updates in closed form ([`Augmented::powers`]), one entry for each number among the parameters.
#[derive(Debug)]
pub struct Ratios<'a> {
    /// What the present row counts.
    pub weight: f64,
    /// Σ over.
    pub over: &'a mut [f64],
    /// Σ under.
    pub under: &'a mut [f64],
}

impl Ratios<'_> {
    /// Adds what the present row says of a number.
    pub fn add(&mut self, index: usize, over: f64, under: f64) {
        self.over[index] += self.weight * over;
        self.under[index] += self.weight * under;
    }
}

/// What local variables make Gaussian. Slices hold K numbers, one for each latent value.
pub trait Augmented: Send + Sync {
    /// Returns the bound ℓ on E[log p(y | f)] under fₖ ~ N(meanₖ, varianceₖ), with all constants,
    /// and its slopes. ∂ℓ/∂variance ≤ 0.
    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64;

    /// Returns the likelihood by its C, g, h and φ, if it is super-Gaussian.
    fn super_gaussian(&self) -> Option<&dyn SuperGaussian> {
        None
    }

    /// Returns for every number among the parameters the power p of its update in closed form,
    /// where it has one: θ ← (Σ over / Σ under)ᵖ with the sums of [`Augmented::add_ratios`] over
    /// the rows. At the present q(f) it never lowers the sum of the bounds, and it stays where
    /// their slope is 0. Empty if no parameter has one.
    fn powers(&self) -> Vec<Option<f64>> {
        Vec::new()
    }

    /// Adds what a row says of these updates.
    fn add_ratios(&self, target: Target, mean: &[f64], variance: &[f64], out: &mut Ratios<'_>) {
        let _ = (target, mean, variance, out);
    }

    /// Returns in how many turns the latent values move ([`Augmented::turn`]): one unless the local
    /// variables of some are to be renewed after others have moved.
    fn turns(&self) -> usize {
        1
    }

    /// Returns the turn of a latent value.
    fn turn(&self, latent: usize) -> usize {
        let _ = latent;
        0
    }

    /// Draws the local variables of a turn and writes the sites of the latent values that move in it
    /// (other entries stay). `f` are the latent values; where `variance` is not 0 they are means, and
    /// the local variables have the law that is optimal for q(f) = N(f, variance).
    fn draw(
        &self,
        turn: usize,
        target: Target,
        f: &[f64],
        variance: &[f64],
        rng: &mut dyn rand::Rng,
        out: &mut [Site],
    );
}

/// Returns [`updated`] by these rows: targets with means and variances of their latent values.
pub fn closed_form<'a>(
    likelihood: &dyn Augmented,
    rows: impl IntoIterator<Item = (Target, &'a [f64], &'a [f64])>,
) -> Vec<Option<f64>> {
    let count = likelihood.powers().len();
    let (mut over, mut under) = (vec![0.0; count], vec![0.0; count]);
    for (target, mean, variance) in rows {
        let mut sums = Ratios { weight: 1.0, over: &mut over, under: &mut under };
        likelihood.add_ratios(target, mean, variance, &mut sums);
    }
    updated(likelihood, &over, &under)
}

/// Returns what the numbers among the parameters become by the sums of [`Augmented::add_ratios`];
/// none for those that stay: they have no update in closed form, or these rows say nothing of them.
pub fn updated(likelihood: &dyn Augmented, over: &[f64], under: &[f64]) -> Vec<Option<f64>> {
    let ratios = over.iter().zip(under).map(|(over, under)| over / under);
    let each = likelihood.powers().into_iter().zip(ratios);
    each.map(|(power, ratio)| power.map(|p| ratio.powf(p)).filter(|v| v.is_finite() && *v > 0.0))
        .collect()
}

/// The parts of log p(y | f) = log C + g f + log φ(γ(f − t)² + δ) that are not φ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Form {
    /// log C.
    pub log_c: f64,
    /// g.
    pub g: f64,
    /// t.
    pub centre: f64,
    /// γ > 0.
    pub gamma: f64,
    /// δ ≥ 0.
    pub floor: f64,
}

impl Form {
    /// Creates the form of h² = (y − f)²: noise around f.
    pub fn of_residual(log_c: f64, y: f64) -> Self {
        Self { log_c, g: 0.0, centre: y, gamma: 1.0, floor: 0.0 }
    }

    /// Creates the form of h² = α − βf + γf² for γ > 0, as the thesis writes it.
    pub fn of_polynomial(log_c: f64, g: f64, [alpha, beta, gamma]: [f64; 3]) -> Self {
        let centre = 0.5 * beta / gamma;
        Self { log_c, g, centre, gamma, floor: (alpha - gamma * centre * centre).max(0.0) }
    }

    /// Returns E h² under f ~ N(mean, variance).
    pub fn square(&self, mean: f64, variance: f64) -> f64 {
        let d = mean - self.centre;
        self.gamma * (d * d + variance) + self.floor
    }

    /// Returns the site of a local variable.
    pub fn site(&self, omega: f64) -> Site {
        let precision = 2.0 * self.gamma * omega;
        Site { potential: self.g + precision * self.centre, precision }
    }
}

/// A density of one latent value that is super-Gaussian.
pub trait SuperGaussian: Send + Sync {
    /// Calls `work` with the form of p(y | ·) and its φ.
    fn with(&self, target: Target, work: &mut dyn FnMut(&Form, &dyn Mixing));

    /// Computes slopes of ℓ with respect to the parameters at fixed moments of f; `square` is c²
    /// and `omega` ω̄. Overwrites `out`.
    fn slopes(&self, target: Target, mean: f64, square: f64, omega: f64, out: &mut [f64]) {
        let _ = (target, mean, square, omega, out);
    }

    /// Returns [`Augmented::powers`].
    fn powers(&self) -> Vec<Option<f64>> {
        Vec::new()
    }

    /// Adds what [`Augmented::add_ratios`] adds of a row, by its c².
    fn add_ratio(&self, target: Target, square: f64, out: &mut Ratios<'_>) {
        let _ = (target, square, out);
    }

    /// Returns log p(y | f) with its first and second derivative by f: g − 2γω̄(f − t) and κ₂(2γ(f
    /// − t))² − 2γω̄ with κ₂ = (log φ)″.
    fn log_density(&self, target: Target, f: f64) -> [f64; 3] {
        let mut out = [0.0; 3];
        self.with(target, &mut |form, mixing| {
            let (d, r) = (f - form.centre, form.square(f, 0.0));
            let omega = mixing.mean(r);
            let slope = 2.0 * form.gamma * d;
            out = [
                form.log_c + form.g * f + mixing.log_phi(r),
                if d == 0.0 { form.g } else { form.g - slope * omega },
                if d == 0.0 {
                    -2.0 * form.gamma * omega
                } else {
                    mixing.variance(r) * slope * slope - 2.0 * form.gamma * omega
                },
            ];
        });
        out
    }
}

/// Returns log p(y | f) of a super-Gaussian density with its derivatives by f, for
/// [`LogProb`](super::custom::LogProb).
pub fn log_prob<T: Real>(law: &dyn SuperGaussian, target: Target, f: T) -> T {
    let [value, first, second] = law.log_density(target, f.value());
    f.chain(value, first, second)
}

/// Returns log C of noise around f whose density is C φ((y − f)²): −log ∫ φ(x²) dx, by the double
/// exponential rule on the half line (Takahasi & Mori 1974).
pub fn log_constant(phi: &dyn Mixing) -> f64 {
    // where φ has fallen to e⁻¹, in logarithms of x
    let (mut low, mut high) = (-300.0_f64, 300.0_f64);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if phi.log_phi(middle.exp().powi(2)) > -1.0 { low = middle } else { high = middle }
    }
    let scale = low.exp();
    let (step, half_pi) = (1.0 / 64.0, std::f64::consts::FRAC_PI_2);
    let sum: f64 = (-320..=320)
        .map(|j| {
            let t = step * f64::from(j);
            let x = (half_pi * t.sinh()).exp();
            let weight = half_pi * t.cosh() * x;
            let term = weight * phi.log_phi((scale * x).powi(2)).exp();
            if term.is_finite() { term } else { 0.0 }
        })
        .sum();
    -(2.0 * scale * step * sum).ln()
}

/// ω̄ is infinite at c = 0 for some φ; a variance of 0 beside a residual of 0 must not make NaN of it.
const LEAST_SQUARE: f64 = 1e-24;

impl<S: SuperGaussian> Augmented for S {
    fn super_gaussian(&self) -> Option<&dyn SuperGaussian> {
        Some(self)
    }

    fn powers(&self) -> Vec<Option<f64>> {
        SuperGaussian::powers(self)
    }

    fn add_ratios(&self, target: Target, mean: &[f64], variance: &[f64], out: &mut Ratios<'_>) {
        self.with(target, &mut |form, _| {
            self.add_ratio(target, form.square(mean[0], variance[0]), out);
        });
    }

    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        let (mean, variance) = (mean[0], variance[0]);
        let mut value = 0.0;
        let Slopes { mean: by_mean, variance: by_variance, params } = out;
        self.with(target, &mut |form, mixing| {
            let square = form.square(mean, variance).max(LEAST_SQUARE * form.gamma);
            let omega = mixing.mean(square);
            let precision = 2.0 * form.gamma * omega;
            by_mean[0] = form.g - precision * (mean - form.centre);
            by_variance[0] = -0.5 * precision;
            self.slopes(target, mean, square, omega, params);
            value = form.log_c + form.g * mean + mixing.log_phi(square);
        });
        value
    }

    fn draw(
        &self,
        _: usize,
        target: Target,
        f: &[f64],
        variance: &[f64],
        rng: &mut dyn rand::Rng,
        out: &mut [Site],
    ) {
        self.with(target, &mut |form, mixing| {
            let square = form.square(f[0], variance[0]).max(LEAST_SQUARE * form.gamma);
            out[0] = form.site(omega(mixing, square.sqrt(), rng));
        });
    }
}

/// Returns a draw of π_φ(ω | c), by inversion of its Laplace transform where there is no direct
/// way.
fn omega(mixing: &dyn Mixing, c: f64, rng: &mut dyn rand::Rng) -> f64 {
    mixing.sample(c, rng).unwrap_or_else(|| {
        Tilted::new(mixing, c).map_or(f64::NAN, |law| law.sample_by_inversion(rng))
    })
}

/// Returns a draw of PG(shape, tilt).
pub(super) fn polya_gamma(shape: f64, tilt: f64, rng: &mut dyn rand::Rng) -> f64 {
    PolyaGamma::new(shape, tilt).map_or(f64::NAN, |law| law.sample(rng))
}

/// Returns the names of the likelihoods that have local variables.
pub fn names() -> Vec<&'static str> {
    registry::REGISTRY.iter().filter(|e| e.augmented).map(|e| e.name).collect()
}

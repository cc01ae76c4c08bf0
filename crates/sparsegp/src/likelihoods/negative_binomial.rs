//! Negative binomial (type 2 of Cameron & Trivedi): counts of mean μ = exposure·eᶠ and variance
//! μ + αμ²,
//!
//! ```text
//! log p(y | f) = Σ_{j<y} log(1 + αj) − log y! + y log μ − (y + 1/α) log(1 + αμ)
//! ```
//! which is lnΓ(y + 1/α) − lnΓ(1/α) − … without its cancellation, and Poisson for α → 0.

use super::augmented::{Augmented, Form, SuperGaussian};
use super::registry::{Args, Entry};
use super::single::{EXPOSURE, OPTIONS, Scalar, Single, count, spread, start};
use super::{Extra, Likelihood, Support, Target, poisson};
use crate::distributions::functions::{log_sigma_tilde, pg_mean};
use crate::distributions::mixing::{Mixing, SechPower};
use crate::error::Result;
use crate::params::{Param, Transform, Visitor, VisitorMut};
use crate::special::{inverse_softplus, log_add_exp, log_factorial, sigmoid, softplus};
use rand_distr::Distribution;
use serde_json::Value;
use statrs::function::gamma::{digamma, ln_gamma};
use std::f64::consts::{LN_2, PI};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "negative-binomial",
    aliases: &["negative_binomial", "negativebinomial", "negbin"],
    about: "counts of variance μ + dispersion·μ², μ = exposure·exp(f)",
    targets: "counts (0, 1, 2, …)",
    latents: "1",
    augmented: true,
    build,
};

/// α has its lower bound where the counts cannot be distinguished from Poisson's.
const TRANSFORM: Transform = Transform::Softplus { lower: 1e-6 };
/// Counts up to here are summed one by one.
const SUMMED: f64 = 256.0;

/// Counts with a dispersion.
#[derive(Clone, Debug)]
pub struct NegativeBinomial {
    /// α, above 10⁻⁶.
    pub dispersion: Param,
}

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&["dispersion"], &OPTIONS)?;
    let dispersion = args.scalar("dispersion", 1.0, TRANSFORM)?;
    Single::boxed(NegativeBinomial { dispersion }, &args)
}

impl NegativeBinomial {
    fn alpha(&self) -> f64 {
        self.dispersion.scalar()
    }

    /// Returns log αμ.
    fn log_odds(&self, exposure: f64, f: f64) -> f64 {
        f + (self.alpha() * exposure).ln()
    }
}

/// Returns (log(1 + u) − u/(1 + u))/u² for u = eᵗ, without cancellation for small u.
fn curvature(t: f64) -> f64 {
    if t < -6.0 {
        // Σ (−1)ᵏ (k+1)/(k+2) uᵏ
        let u = t.exp();
        (0..8).rev().fold(0.0, |sum, k| {
            let k = f64::from(k);
            (k + 1.0) / (k + 2.0) - u * sum
        })
    } else {
        (softplus(t) - sigmoid(t)) * (-2.0 * t).exp()
    }
}

impl Scalar for NegativeBinomial {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn extra(&self) -> Option<Extra> {
        Some(EXPOSURE)
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"dispersion", &self.dispersion);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"dispersion", &mut self.dispersion);
    }

    fn initialise(&mut self, targets: &[Target]) -> f64 {
        let log_rate = poisson::log_rate(targets);
        // var(y/e) = μ/e + αμ², of which the inputs will explain a part
        let (mean, variance) = spread(targets.iter().map(|t| t.y / t.extra));
        let excess =
            variance - targets.iter().map(|t| mean / t.extra).sum::<f64>() / targets.len() as f64;
        start(&mut self.dispersion, (0.5 * excess / (mean * mean)).clamp(0.05, 5.0));
        log_rate
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        count(target)
    }

    fn write(&self, json: &mut Value) {
        json["dispersion"] = self.dispersion.to_json(TRANSFORM);
    }

    fn constant(&self, target: Target) -> f64 {
        let (y, alpha) = (target.y, self.alpha());
        let rising = if y <= SUMMED {
            (1..y as u64).map(|j| (alpha * j as f64).ln_1p()).sum()
        } else {
            ln_gamma(y + 1.0 / alpha) - ln_gamma(1.0 / alpha) + y * alpha.ln()
        };
        rising - log_factorial(y) + y * target.extra.ln()
    }

    fn at(&self, target: Target, f: f64) -> [f64; 3] {
        let t = self.log_odds(target.extra, f);
        let total = target.y + 1.0 / self.alpha();
        let share = sigmoid(t);
        [target.y * f - total * softplus(t), target.y - total * share, -total * share * sigmoid(-t)]
    }

    fn constant_slopes(&self, target: Target, out: &mut [f64]) {
        let (y, alpha) = (target.y, self.alpha());
        out[0] = if y <= SUMMED {
            (1..y as u64).map(|j| j as f64 / (1.0 + alpha * j as f64)).sum()
        } else {
            let r = 1.0 / alpha;
            (y - r * (digamma(y + r) - digamma(r))) / alpha
        };
    }

    fn add_slopes(&self, target: Target, f: f64, weight: f64, out: &mut [f64]) {
        // log(1 + αμ)/α² − (y + 1/α) μ/(1 + αμ) = μ² (log(1 + u) − u/(1 + u))/u² − yμ/(1 + u)
        let t = self.log_odds(target.extra, f);
        let alpha = self.alpha();
        let first = if t < -6.0 {
            let rate = target.extra * f.exp();
            rate * rate * curvature(t)
        } else {
            (softplus(t) - sigmoid(t)) / (alpha * alpha)
        };
        out[0] += weight * (first - target.y * sigmoid(t) / alpha);
    }

    fn pole(&self) -> f64 {
        PI
    }

    fn moments(&self, extra: f64, f: f64) -> (f64, f64) {
        let rate = extra * f.exp();
        (rate, rate + self.alpha() * rate * rate)
    }

    fn closed_moments(&self, extra: f64, mean: f64, variance: f64) -> Option<(f64, f64)> {
        let rate = extra * (mean + 0.5 * variance).exp();
        // in logarithms: nothing times infinity
        let spread = log_add_exp(inverse_softplus(variance), self.alpha().ln() + variance);
        Some((rate, rate + (2.0 * (extra.ln() + mean) + variance + spread).exp()))
    }

    fn cdf(&self, extra: f64, y: f64, f: f64) -> f64 {
        let t = self.log_odds(extra, f);
        match sigmoid(-t) {
            _ if y < 0.0 => 0.0,
            p if p >= 1.0 => 1.0,
            p if p <= 0.0 => 0.0,
            p => statrs::function::beta::beta_reg(1.0 / self.alpha(), y.floor() + 1.0, p),
        }
    }

    fn support(&self, _: f64) -> Support {
        Support::Counts
    }

    fn augmented(&self) -> Option<&dyn Augmented> {
        Some(self)
    }

    fn sample(&self, extra: f64, f: f64, rng: &mut dyn rand::Rng) -> f64 {
        // Poisson of a rate that is gamma distributed with mean μ and shape 1/α
        let alpha = self.alpha();
        let rate = rand_distr::Gamma::new(1.0 / alpha, alpha * extra * f.exp())
            .map_or(0.0, |gamma| gamma.sample(rng));
        poisson::draw(rate, rng)
    }
}

/// With t = f + log αe, e the exposure, and r = 1/α it is Γ(y + r)/y!Γ(r) σ(t)ʸσ(−t)ʳ, of which
/// σ(t)ʸσ(−t)ʳ = 2^{−(y + r)} e^{(y − r)t/2} sech^{y + r}(t/2) (Polson, Scott & Windle 2013).
impl SuperGaussian for NegativeBinomial {
    fn with(&self, target: Target, work: &mut dyn FnMut(&Form, &dyn Mixing)) {
        let (y, r) = (target.y, 1.0 / self.alpha());
        let shift = self.log_odds(target.extra, 0.0);
        let g = 0.5 * (y - r);
        let form = Form {
            // `constant` has y log μ split off, which is y(f + log e)
            log_c: self.constant(target) - y * target.extra.ln() - y * self.alpha().ln()
                + g * shift
                - (y + r) * LN_2,
            g,
            centre: -shift,
            gamma: 1.0,
            floor: 0.0,
        };
        work(&form, &SechPower::new(y + r, 1.0).expect("a count and more"));
    }

    fn slopes(&self, target: Target, mean: f64, square: f64, _: f64, out: &mut [f64]) {
        // ℓ = log Γ(y + r)/y!Γ(r) + y log σ̃(t, v) + r log σ̃(−t, v), where α moves r and t
        let (y, alpha) = (target.y, self.alpha());
        let r = 1.0 / alpha;
        let t = self.log_odds(target.extra, mean);
        let variance = (square - t * t).max(0.0);
        let rising = if y <= SUMMED {
            (0..y as u64).map(|j| 1.0 / (r + j as f64)).sum()
        } else {
            digamma(y + r) - digamma(r)
        };
        let by_r: f64 = rising + log_sigma_tilde(-t, variance);
        let by_t = 0.5 * (y - r) - (y + r) * pg_mean(square.sqrt()) * t;
        out[0] = (by_t - r * by_r) / alpha;
    }
}

//! Counts of a bounded rate: y ~ Poisson(exposure·λσ(f)) with the logistic function σ (Donner & Opper 2018;
//! Galy-Fajou 2022, §7.1).
//!
//! Local variables in two steps: e^{−Λσ(f)} = Σₙ σ(−f)ⁿ Po(n | Λ), Λ = exposure·λ, and Pólya-Gamma variables
//! for σ(f)ʸσ(−f)ⁿ. With σ̃(m, v) = e^{m/2}/2cosh(c/2), c² = m² + v, the bound on E[log p(y | f)] and its site:
//!
//! ```text
//! ℓ = y log Λ − log y! + y log σ̃(μ, v) − Λ(1 − σ̃(−μ, v))
//! n̄ = Λσ̃(−μ, v)      a = (y − n̄)/2      λ = (y + n̄) θ(c),   θ(c) = tanh(c/2)/2c
//! ```

use super::augmented::{Augmented, Ratios, Site, polya_gamma};
use super::poisson::{cdf, draw};
use super::registry::{Args, Entry};
use super::single::{EXPOSURE, OPTIONS, Scalar, Single, count, start};
use super::{Extra, Likelihood, Slopes, Support, Target};
use crate::distributions::functions::{log_sigma_tilde, one_minus_sigma_tilde, pg_mean};
use crate::error::Result;
use crate::params::{Param, Transform, Visitor, VisitorMut};
use crate::special::{log_factorial, sigmoid, softplus};
use serde_json::Value;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "poisson-logistic",
    aliases: &["bounded-poisson", "sigmoidal-poisson"],
    about: "counts of the rate exposure·rate·sigmoid(f), which is bounded",
    targets: "counts (0, 1, 2, …)",
    latents: "1",
    augmented: true,
    build,
};

/// Counts of a bounded rate.
#[derive(Clone, Debug)]
pub struct PoissonLogistic {
    /// The largest rate per exposure, λ > 0.
    pub rate: Param,
}

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&["rate"], &OPTIONS)?;
    let rate = args.scalar("rate", 1.0, Transform::POSITIVE)?;
    Single::boxed(PoissonLogistic { rate }, &args)
}

impl PoissonLogistic {
    /// Returns Λ.
    fn most(&self, exposure: f64) -> f64 {
        exposure * self.rate.scalar()
    }
}

impl Scalar for PoissonLogistic {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn extra(&self) -> Option<Extra> {
        Some(EXPOSURE)
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"rate", &self.rate);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"rate", &mut self.rate);
    }

    /// Sets the largest rate to twice what the busiest twentieth of the rows have, so that σ(f)
    /// need not be near 1 anywhere.
    fn initialise(&mut self, targets: &[Target]) -> f64 {
        let mut rates: Vec<f64> = targets.iter().map(|t| t.y / t.extra).collect();
        let mean = super::poisson::log_rate(targets).exp();
        let place = (rates.len() - 1) * 19 / 20;
        let high = *rates.select_nth_unstable_by(place, f64::total_cmp).1;
        start(&mut self.rate, 2.0 * high.max(mean));
        let share = (mean / self.rate.scalar()).clamp(1e-6, 0.9);
        share.ln() - (-share).ln_1p()
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        count(target)
    }

    fn write(&self, json: &mut Value) {
        json["rate"] = self.rate.to_json(Transform::POSITIVE);
    }

    fn constant(&self, target: Target) -> f64 {
        target.y * self.most(target.extra).ln() - log_factorial(target.y)
    }

    fn at(&self, target: Target, f: f64) -> [f64; 3] {
        let (up, down, most) = (sigmoid(f), sigmoid(-f), self.most(target.extra));
        let curve = up * down;
        [
            -target.y * softplus(-f) - most * up,
            target.y * down - most * curve,
            -target.y * curve - most * curve * (down - up),
        ]
    }

    fn constant_slopes(&self, target: Target, out: &mut [f64]) {
        out[0] = target.y / self.rate.scalar();
    }

    fn add_slopes(&self, target: Target, f: f64, weight: f64, out: &mut [f64]) {
        out[0] -= weight * target.extra * sigmoid(f);
    }

    fn pole(&self) -> f64 {
        std::f64::consts::PI
    }

    fn moments(&self, extra: f64, f: f64) -> (f64, f64) {
        let rate = self.most(extra) * sigmoid(f);
        (rate, rate)
    }

    fn cdf(&self, extra: f64, y: f64, f: f64) -> f64 {
        cdf(y, self.most(extra) * sigmoid(f))
    }

    fn support(&self, _: f64) -> Support {
        Support::Counts
    }

    fn augmented(&self) -> Option<&dyn Augmented> {
        Some(self)
    }

    fn sample(&self, extra: f64, f: f64, rng: &mut dyn rand::Rng) -> f64 {
        draw(self.most(extra) * sigmoid(f), rng)
    }
}

impl Augmented for PoissonLogistic {
    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        let (m, v, most) = (mean[0], variance[0], self.most(target.extra));
        let events = most * log_sigma_tilde(-m, v).exp();
        let precision = (target.y + events) * pg_mean((m * m + v).sqrt());
        out.mean[0] = 0.5 * (target.y - events) - precision * m;
        out.variance[0] = -0.5 * precision;
        let missed = one_minus_sigma_tilde(-m, v);
        out.params[0] = target.y / self.rate.scalar() - target.extra * missed;
        self.constant(target) + target.y * log_sigma_tilde(m, v) - most * missed
    }

    /// Uses λ = Σ y / Σ exposure·(1 − σ̃(−μ, v)).
    fn powers(&self) -> Vec<Option<f64>> {
        vec![Some(1.0)]
    }

    fn add_ratios(&self, target: Target, mean: &[f64], variance: &[f64], out: &mut Ratios<'_>) {
        out.add(0, target.y, target.extra * one_minus_sigma_tilde(-mean[0], variance[0]));
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
        let (m, v) = (f[0], variance[0]);
        let events = draw(self.most(target.extra) * log_sigma_tilde(-m, v).exp(), rng);
        let tilt = (m * m + v).sqrt();
        let precision = polya_gamma(target.y + events, tilt, rng);
        out[0] = Site { potential: 0.5 * (target.y - events), precision };
    }
}

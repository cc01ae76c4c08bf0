//! Zero-inflated Poisson (Lambert 1992): 0 with probability π, else a Poisson count of the rate
//! λ = exposure·eᶠ.

use super::registry::{Args, Entry};
use super::single::{EXPOSURE, OPTIONS, Scalar, Single, count, start};
use super::{Extra, Likelihood, Support, Target, poisson};
use crate::error::Result;
use crate::params::{Param, Transform, Visitor, VisitorMut};
use crate::special::{inverse_softplus, log_add_exp, log_factorial, softplus};
use rand::RngExt;
use serde_json::Value;
use std::f64::consts::PI;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "zero-inflated-poisson",
    aliases: &["zero_inflated_poisson", "zip"],
    about: "counts that are 0 with probability zero, else Poisson of rate exposure·exp(f)",
    targets: "counts (0, 1, 2, …)",
    latents: "1",
    augmented: false,
    build,
};

const TRANSFORM: Transform = Transform::Interval { lower: 0.0, upper: 1.0 };

/// Counts with more zeros than Poisson's.
#[derive(Clone, Debug)]
pub struct ZeroInflatedPoisson {
    /// π, the probability of a zero that is not a count.
    pub zero: Param,
}

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&["zero"], &OPTIONS)?;
    Single::boxed(ZeroInflatedPoisson { zero: args.scalar("zero", 0.2, TRANSFORM)? }, &args)
}

impl ZeroInflatedPoisson {
    fn pi(&self) -> f64 {
        self.zero.scalar()
    }

    /// Returns log p(0 | f) and log P(the zero is a Poisson count).
    fn zero_at(&self, exposure: f64, f: f64) -> (f64, f64) {
        let extra = self.pi().ln();
        let counted = (-self.pi()).ln_1p() - exposure * f.exp();
        (log_add_exp(extra, counted), -softplus(extra - counted))
    }
}

impl Scalar for ZeroInflatedPoisson {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn extra(&self) -> Option<Extra> {
        Some(EXPOSURE)
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"zero", &self.zero);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"zero", &mut self.zero);
    }

    fn initialise(&mut self, targets: &[Target]) -> f64 {
        let n = targets.len() as f64;
        let log_rate = poisson::log_rate(targets);
        let zeros = targets.iter().filter(|t| t.y == 0.0).count() as f64 / n;
        // zeros that Poisson counts of one rate would show
        let plain = targets.iter().map(|t| (-t.extra * log_rate.exp()).exp()).sum::<f64>() / n;
        start(&mut self.zero, ((zeros - plain) / (1.0 - plain)).clamp(0.05, 0.9));
        log_rate - (-self.pi()).ln_1p()
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        count(target)
    }

    fn write(&self, json: &mut Value) {
        json["zero"] = self.zero.to_json(TRANSFORM);
    }

    fn constant(&self, target: Target) -> f64 {
        if target.y == 0.0 {
            0.0
        } else {
            (-self.pi()).ln_1p() + target.y * target.extra.ln() - log_factorial(target.y)
        }
    }

    fn at(&self, target: Target, f: f64) -> [f64; 3] {
        let exposure = target.extra;
        if target.y > 0.0 {
            let rate = exposure * f.exp();
            return [target.y * f - rate, target.y - rate, -rate];
        }
        let (value, log_counted) = self.zero_at(exposure, f);
        // −λw and −λw + λ²w(1 − w) with w = P(counted), in logarithms: λ may be huge where w is 0
        let log_rate = f + exposure.ln();
        let first = -(log_rate + log_counted).exp();
        let log_other = self.pi().ln() - value;
        [value, first, first + (2.0 * log_rate + log_counted + log_other).exp()]
    }

    fn constant_slopes(&self, target: Target, out: &mut [f64]) {
        out[0] = if target.y == 0.0 { 0.0 } else { -1.0 / (1.0 - self.pi()) };
    }

    fn add_slopes(&self, target: Target, f: f64, weight: f64, out: &mut [f64]) {
        if target.y == 0.0 {
            let (value, _) = self.zero_at(target.extra, f);
            out[0] -= weight * (-target.extra * f.exp()).exp_m1() * (-value).exp();
        }
    }

    fn pole(&self) -> f64 {
        // zeros of π + (1 − π) e^{−λ}: λ = log((1 − π)/π) ± iπ, f = log λ
        let odds = ((1.0 - self.pi()) / self.pi()).ln();
        PI.atan2(odds)
    }

    fn moments(&self, extra: f64, f: f64) -> (f64, f64) {
        let rate = extra * f.exp();
        let mean = (1.0 - self.pi()) * rate;
        (mean, mean * (1.0 + self.pi() * rate))
    }

    fn closed_moments(&self, extra: f64, mean: f64, variance: f64) -> Option<(f64, f64)> {
        let rate = extra * (mean + 0.5 * variance).exp();
        let counted = 1.0 - self.pi();
        // E[var] + var[mean], with E[λ²] = rate² e^v
        let spread =
            log_add_exp(self.pi().ln() + variance, counted.ln() + inverse_softplus(variance));
        // in logarithms: nothing times infinity
        let square = (2.0 * (extra.ln() + mean) + variance + spread).exp();
        Some((counted * rate, counted * (rate + square)))
    }

    fn cdf(&self, extra: f64, y: f64, f: f64) -> f64 {
        if y < 0.0 {
            return 0.0;
        }
        self.pi() + (1.0 - self.pi()) * poisson::cdf(y, extra * f.exp())
    }

    fn support(&self, _: f64) -> Support {
        Support::Counts
    }

    fn sample(&self, extra: f64, f: f64, rng: &mut dyn rand::Rng) -> f64 {
        if rng.random::<f64>() < self.pi() { 0.0 } else { poisson::draw(extra * f.exp(), rng) }
    }
}

//! Gamma: p(y | f) = y^{k−1} e^{−y/θ}/(Γ(k) θᵏ) with scale θ = link(f), eᶠ or u log(1 + eᶠ) with the unit u of the targets;
//! exponential is k = 1.
//!
//! With the link exp: E log p = (k − 1) log y − lnΓ(k) − kμ − y e^{−μ+v/2}.

use super::links::Positive;
use super::registry::{Args, Entry};
use super::single::{OPTIONS, Scalar, Single, positive, spread, start};
use super::{Likelihood, Slopes, Support, Target};
use crate::error::Result;
use crate::params::{Param, Shape, Transform, Visitor, VisitorMut};
use crate::special::incomplete_gamma;
use rand_distr::Distribution;
use serde_json::Value;
use statrs::function::gamma::{digamma, ln_gamma};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "gamma",
    aliases: &[],
    about: "positive numbers of a given shape; the latent function is the scale (link exp or softplus)",
    targets: "positive numbers",
    latents: "1",
    augmented: false,
    build: |args| build(&args, false),
};

/// Registry entry.
pub const EXPONENTIAL: Entry = Entry {
    name: "exponential",
    aliases: &[],
    about: "waiting times; the latent function is the mean (link exp or softplus)",
    targets: "positive numbers",
    latents: "1",
    augmented: false,
    build: |args| build(&args, true),
};

/// Gamma, or exponential.
#[derive(Clone, Debug)]
pub struct Gamma {
    /// Shape k; 1 and no parameter for the exponential.
    pub shape: Param,
    /// Link from f to the scale θ.
    pub link: Positive,
    /// Whether the shape is 1 for good.
    pub exponential: bool,
}

fn build(args: &Args<'_>, exponential: bool) -> Result<Box<dyn Likelihood>> {
    args.allow(if exponential { &["link", "unit"] } else { &["link", "unit", "shape"] }, &OPTIONS)?;
    let shape = if exponential {
        Param::with(vec![1.0], Shape::Scalar, Transform::POSITIVE)
    } else {
        args.scalar("shape", 1.0, Transform::POSITIVE)?
    };
    Single::boxed(Gamma { shape, link: args.positive_link()?, exponential }, args)
}

impl Gamma {
    fn k(&self) -> f64 {
        self.shape.scalar()
    }
}

impl Scalar for Gamma {
    fn name(&self) -> &'static str {
        if self.exponential { EXPONENTIAL.name } else { ENTRY.name }
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        if !self.exponential {
            visitor(&"shape", &self.shape);
        }
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        if !self.exponential {
            visitor(&"shape", &mut self.shape);
        }
    }

    fn adopt_unit(&mut self, targets: &[Target]) {
        let mut own = self.clone();
        own.initialise(targets);
        self.link.adopt_unit(spread(targets.iter().map(|t| t.y)).0 / own.k());
    }

    fn initialise(&mut self, targets: &[Target]) -> f64 {
        // moments: k = mean²/variance, of a variance that the inputs will explain in part
        let (mean, variance) = spread(targets.iter().map(|t| t.y));
        if !self.exponential {
            start(&mut self.shape, (2.0 * mean * mean / variance).clamp(0.1, 100.0));
        }
        self.link.inverse(mean / self.k())
    }

    fn latent_variance(&self, targets: &[Target]) -> f64 {
        let (mean, variance) = spread(targets.iter().map(|t| t.y / self.k()));
        self.link.latent_variance(mean, variance)
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        positive(target)
    }

    fn write(&self, json: &mut Value) {
        self.link.write(json);
        if !self.exponential {
            json["shape"] = self.shape.to_json(Transform::POSITIVE);
        }
    }

    fn constant(&self, target: Target) -> f64 {
        (self.k() - 1.0) * target.y.ln() - ln_gamma(self.k())
    }

    fn at(&self, target: Target, f: f64) -> [f64; 3] {
        let [log, first, second] = self.link.log(f);
        let ratio = (target.y.ln() - log).exp();
        let excess = ratio - self.k();
        // (ratio − k) L″ without 0·∞ for the link exp
        let bend = if second == 0.0 { 0.0 } else { excess * second };
        [-self.k() * log - ratio, excess * first, bend - ratio * first * first]
    }

    fn constant_slopes(&self, target: Target, out: &mut [f64]) {
        if let [shape] = out {
            *shape = target.y.ln() - digamma(self.k());
        }
    }

    fn add_slopes(&self, _: Target, f: f64, weight: f64, out: &mut [f64]) {
        out[0] -= weight * self.link.log(f)[0];
    }

    fn closed(
        &self,
        target: Target,
        mean: f64,
        variance: f64,
        out: &mut Slopes<'_>,
    ) -> Option<f64> {
        let Positive::Exp = self.link else { return None };
        let ratio = (target.y.ln() - mean + 0.5 * variance).exp();
        out.mean[0] = ratio - self.k();
        out.variance[0] = -0.5 * ratio;
        self.constant_slopes(target, out.params);
        out.params.iter_mut().for_each(|slope| *slope -= mean);
        Some(self.constant(target) - self.k() * mean - ratio)
    }

    fn pole(&self) -> f64 {
        self.link.pole()
    }

    fn moments(&self, _: f64, f: f64) -> (f64, f64) {
        let scale = self.link.value(f)[0];
        (self.k() * scale, self.k() * scale * scale)
    }

    fn closed_moments(&self, _: f64, mean: f64, variance: f64) -> Option<(f64, f64)> {
        let (scale, spread) = self.link.moments(mean, variance)?;
        let k = self.k();
        Some((k * scale, k * (scale * scale + spread) + k * k * spread))
    }

    fn cdf(&self, _: f64, y: f64, f: f64) -> f64 {
        let ratio = (y.ln() - self.link.log(f)[0]).exp();
        if ratio > 1e300 {
            1.0
        } else if ratio > 0.0 {
            incomplete_gamma(self.k(), ratio).0
        } else {
            0.0
        }
    }

    fn support(&self, _: f64) -> Support {
        Support::Positive
    }

    fn sample(&self, _: f64, f: f64, rng: &mut dyn rand::Rng) -> f64 {
        rand_distr::Gamma::new(self.k(), self.link.value(f)[0])
            .map_or(f64::NAN, |gamma| gamma.sample(rng))
    }
}

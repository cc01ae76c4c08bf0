//! Logistic noise: y = f + s·ε with ε standard logistic,
//!
//! ```text
//! log p(y | f) = −log 4s − 2 log cosh((y − f)/2s)
//! ```
//! Tails of Laplace's, without its kink; its variance is π²s²/3.

use super::augmented::{Augmented, Form, SuperGaussian};
use super::registry::{Args, Entry};
use super::single::{OPTIONS, Scalar, Single, finite, robust_spread, start};
use super::student_t::SCALE;
use super::{Likelihood, Support, Target};
use crate::distributions::mixing::{Mixing, SechPower};
use crate::error::Result;
use crate::params::{Param, Visitor, VisitorMut};
use crate::special::{sigmoid, softplus};
use rand::RngExt;
use serde_json::Value;
use std::f64::consts::{LN_2, PI};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "logistic",
    aliases: &["logistic-noise", "sech2"],
    about: "noise with exponential tails, normal near 0",
    targets: "numbers",
    latents: "1",
    augmented: true,
    build,
};

/// Logistic noise.
#[derive(Clone, Debug)]
pub struct Logistic {
    /// Scale s, above 10⁻⁶; the variance of the noise is π²s²/3.
    pub scale: Param,
}

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&["scale"], &OPTIONS)?;
    Single::boxed(Logistic { scale: args.scalar("scale", 1.0, SCALE)? }, &args)
}

impl Logistic {
    fn s(&self) -> f64 {
        self.scale.scalar()
    }
}

impl Scalar for Logistic {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn standardises(&self) -> bool {
        true
    }

    fn bears_outliers(&self) -> bool {
        true
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"scale", &self.scale);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"scale", &mut self.scale);
    }

    fn units(&self) -> Vec<i32> {
        vec![1]
    }

    fn initialise(&mut self, targets: &[Target]) -> f64 {
        let (median, distance) = robust_spread(targets);
        // π²s²/3 is a tenth of the variance of a normal of that spread
        start(&mut self.scale, 0.3_f64.sqrt() / PI * 1.4826 * distance);
        median
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        finite(target)
    }

    fn write(&self, json: &mut Value) {
        json["scale"] = self.scale.to_json(SCALE);
    }

    fn constant(&self, _: Target) -> f64 {
        -(4.0 * self.s()).ln()
    }

    fn at(&self, target: Target, f: f64) -> [f64; 3] {
        let (x, s) = ((target.y - f) / (2.0 * self.s()), self.s());
        // −2 log cosh x, cosh x = eˣ(1 + e⁻²ˣ)/2
        let (tanh, value) = (x.tanh(), -2.0 * (x.abs() + softplus(-2.0 * x.abs()) - LN_2));
        let sech = 4.0 * sigmoid(2.0 * x) * sigmoid(-2.0 * x);
        [value, tanh / s, -0.5 * sech / (s * s)]
    }

    fn constant_slopes(&self, _: Target, out: &mut [f64]) {
        out[0] = -1.0 / self.s();
    }

    fn add_slopes(&self, target: Target, f: f64, weight: f64, out: &mut [f64]) {
        let x = (target.y - f) / (2.0 * self.s());
        out[0] += weight * 2.0 * x * x.tanh() / self.s();
    }

    fn rule(&self) -> super::quadrature::Rule {
        super::quadrature::Rule::Trapezoid
    }

    fn pole(&self) -> f64 {
        PI * self.s()
    }

    fn moments(&self, _: f64, f: f64) -> (f64, f64) {
        (f, (PI * self.s()).powi(2) / 3.0)
    }

    fn closed_moments(&self, extra: f64, mean: f64, variance: f64) -> Option<(f64, f64)> {
        Some((mean, variance + self.moments(extra, mean).1))
    }

    fn cdf(&self, _: f64, y: f64, f: f64) -> f64 {
        sigmoid((y - f) / self.s())
    }

    fn support(&self, _: f64) -> Support {
        Support::Real
    }

    fn augmented(&self) -> Option<&dyn Augmented> {
        Some(self)
    }

    fn sample(&self, _: f64, f: f64, rng: &mut dyn rand::Rng) -> f64 {
        // the middle of a cell is not 0
        let u = rng.random::<f64>() + 0.25 * f64::EPSILON;
        f + self.s() * (u.ln() - (-u).ln_1p())
    }
}

impl SuperGaussian for Logistic {
    fn with(&self, target: Target, work: &mut dyn FnMut(&Form, &dyn Mixing)) {
        let phi = SechPower::new(2.0, self.s()).expect("above 0 by its transform");
        work(&Form::of_residual(self.constant(target), target.y), &phi);
    }

    fn slopes(&self, _: Target, _: f64, square: f64, _: f64, out: &mut [f64]) {
        let x = square.sqrt() / (2.0 * self.s());
        out[0] = (2.0 * x * x.tanh() - 1.0) / self.s();
    }
}

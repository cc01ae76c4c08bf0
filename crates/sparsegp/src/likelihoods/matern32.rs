//! Matérn-3/2 noise: the density of y − f has the shape of the Matérn-3/2 correlation (Galy-Fajou,
//! Wenzel & Opper 2020, Table 1, with the constant √3/4ρ):
//!
//! ```text
//! log p(y | f) = log √3/4ρ + log(1 + u) − u,   u = √3 |y − f|/ρ
//! ```
//! Between normal and Laplace: quadratic at 0, with exponential tails. P(y − f ≤ −x) = ½ e⁻ᵘ(1 + u/2).

use super::augmented::{Augmented, Form, SuperGaussian};
use super::registry::{Args, Entry};
use super::single::{OPTIONS, Scalar, Single, finite, robust_spread, start};
use super::student_t::SCALE;
use super::{Likelihood, Support, Target};
use crate::distributions::mixing::{Matern32 as Phi, Mixing};
use crate::error::Result;
use crate::params::{Param, Visitor, VisitorMut};
use rand::RngExt;
use rand_distr::{Distribution, Exp1};
use serde_json::Value;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "matern32",
    aliases: &["matern-3/2"],
    about: "noise with exponential tails, smooth at 0",
    targets: "numbers",
    latents: "1",
    augmented: true,
    build,
};

/// Matérn-3/2 noise.
#[derive(Clone, Debug)]
pub struct Matern32 {
    /// Scale ρ, above 10⁻⁶; the variance of the noise is 4ρ²/3.
    pub scale: Param,
}

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&["scale"], &OPTIONS)?;
    Single::boxed(Matern32 { scale: args.scalar("scale", 1.0, SCALE)? }, &args)
}

impl Matern32 {
    fn rho(&self) -> f64 {
        self.scale.scalar()
    }

    /// Returns u.
    fn distance(&self, residual: f64) -> f64 {
        3_f64.sqrt() * residual.abs() / self.rho()
    }
}

impl Scalar for Matern32 {
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
        // 4ρ²/3 is a tenth of the variance of a normal of that spread
        start(&mut self.scale, 0.075_f64.sqrt() * 1.4826 * distance);
        median
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        finite(target)
    }

    fn write(&self, json: &mut Value) {
        json["scale"] = self.scale.to_json(SCALE);
    }

    fn constant(&self, _: Target) -> f64 {
        (3_f64.sqrt() / (4.0 * self.rho())).ln()
    }

    fn at(&self, target: Target, f: f64) -> [f64; 3] {
        let (d, u) = (target.y - f, self.distance(target.y - f));
        let unit = 3.0 / (self.rho() * self.rho() * (1.0 + u));
        [u.ln_1p() - u, unit * d, -unit / (1.0 + u)]
    }

    fn constant_slopes(&self, _: Target, out: &mut [f64]) {
        out[0] = -1.0 / self.rho();
    }

    fn add_slopes(&self, target: Target, f: f64, weight: f64, out: &mut [f64]) {
        let u = self.distance(target.y - f);
        out[0] += weight * u * u / (self.rho() * (1.0 + u));
    }

    fn kinks(&self, target: Target) -> [Option<f64>; 2] {
        [Some(target.y), None]
    }

    fn pole(&self) -> f64 {
        // where 1 + u = 0 on the continuation of either side
        self.rho() / 3_f64.sqrt()
    }

    fn moments(&self, _: f64, f: f64) -> (f64, f64) {
        (f, 4.0 / 3.0 * self.rho() * self.rho())
    }

    fn closed_moments(&self, extra: f64, mean: f64, variance: f64) -> Option<(f64, f64)> {
        Some((mean, variance + self.moments(extra, mean).1))
    }

    fn cdf(&self, _: f64, y: f64, f: f64) -> f64 {
        let u = self.distance(y - f);
        let tail = 0.5 * (-u).exp() * (1.0 + 0.5 * u);
        if y < f { tail } else { 1.0 - tail }
    }

    fn support(&self, _: f64) -> Support {
        Support::Real
    }

    fn augmented(&self) -> Option<&dyn Augmented> {
        Some(self)
    }

    fn sample(&self, _: f64, f: f64, rng: &mut dyn rand::Rng) -> f64 {
        // (1 + u) e⁻ᵘ/2 is an even mixture of Ga(1, 1) and Ga(2, 1)
        let (one, other): (f64, f64) = (Exp1.sample(rng), Exp1.sample(rng));
        let u = one + if rng.random::<bool>() { other } else { 0.0 };
        let d = u * self.rho() / 3_f64.sqrt();
        f + if rng.random::<bool>() { d } else { -d }
    }
}

impl SuperGaussian for Matern32 {
    fn with(&self, target: Target, work: &mut dyn FnMut(&Form, &dyn Mixing)) {
        let phi = Phi::new(self.rho()).expect("above 0 by its transform");
        work(&Form::of_residual(self.constant(target), target.y), &phi);
    }

    fn slopes(&self, _: Target, _: f64, square: f64, _: f64, out: &mut [f64]) {
        let u = self.distance(square.sqrt());
        out[0] = (u * u / (1.0 + u) - 1.0) / self.rho();
    }
}

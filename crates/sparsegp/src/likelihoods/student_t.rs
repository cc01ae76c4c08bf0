//! Student-t noise: y = f + scale·ε, ε ~ t(ν) (Jylänki, Vanhatalo & Vehtari 2011):
//!
//! ```text
//! log p(y | f) = lnΓ((ν+1)/2) − lnΓ(ν/2) − ½ log νπ − log ς − (ν+1)/2 log(1 + (y − f)²/νς²)
//! ```
//! Not log-concave. Its poles at f = y ± i√ν ς defeat Gauss–Hermite where the latent standard deviation
//! exceeds about 2ς, so the trapezoidal rule is the default.

use super::augmented::{Augmented, Form, Ratios, SuperGaussian};
use super::quadrature::Rule;
use super::registry::{Args, Entry};
use super::single::{OPTIONS, Scalar, Single, finite, robust_spread, start};
use super::{Likelihood, Support, Target};
use crate::distributions::mixing::{Mixing, StudentT as Phi};
use crate::error::Result;
use crate::params::{Param, Transform, Visitor, VisitorMut};
use rand_distr::Distribution;
use serde_json::Value;
use statrs::function::gamma::{digamma, ln_gamma};
use std::f64::consts::PI;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "student-t",
    aliases: &["studentt", "student_t", "student"],
    about: "noise with heavy tails: outliers pull little",
    targets: "numbers",
    latents: "1",
    augmented: true,
    build,
};

/// With more than two degrees of freedom y has a variance.
const DF: Transform = Transform::Softplus { lower: 2.0 };
/// Transform of scales in the target's unit.
pub const SCALE: Transform = Transform::Softplus { lower: 1e-6 };

/// Student-t noise.
#[derive(Clone, Debug)]
pub struct StudentT {
    /// Degrees of freedom ν, above 2; trained unless frozen.
    pub df: Param,
    /// Scale ς, above 10⁻⁶; the variance of the noise is ς²ν/(ν − 2).
    pub scale: Param,
}

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&["df", "scale"], &OPTIONS)?;
    let model =
        StudentT { df: args.scalar("df", 4.0, DF)?, scale: args.scalar("scale", 1.0, SCALE)? };
    Single::boxed(model, &args)
}

impl StudentT {
    /// ν, ς and (y − f)²/νς².
    fn parts(&self, target: Target, f: f64) -> (f64, f64, f64) {
        let (df, scale) = (self.df.scalar(), self.scale.scalar());
        let t = (target.y - f) / scale;
        (df, scale, t * t / df)
    }

    fn noise(&self) -> f64 {
        let (df, scale) = (self.df.scalar(), self.scale.scalar());
        scale * scale * df / (df - 2.0)
    }
}

impl Scalar for StudentT {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn standardises(&self) -> bool {
        true
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"df", &self.df);
        visitor(&"scale", &self.scale);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"df", &mut self.df);
        visitor(&"scale", &mut self.scale);
    }

    fn units(&self) -> Vec<i32> {
        vec![0, 1]
    }

    fn initialise(&mut self, targets: &[Target]) -> f64 {
        let (median, distance) = robust_spread(targets);
        // a tenth of the variance, as for Gaussian noise; 1.4826 for a normal
        start(&mut self.scale, 0.1_f64.sqrt() * 1.4826 * distance);
        median
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        finite(target)
    }

    fn write(&self, json: &mut Value) {
        json["df"] = self.df.to_json(DF);
        json["scale"] = self.scale.to_json(SCALE);
    }

    fn constant(&self, _: Target) -> f64 {
        let (df, scale) = (self.df.scalar(), self.scale.scalar());
        ln_gamma(0.5 * (df + 1.0)) - ln_gamma(0.5 * df) - 0.5 * (df * PI).ln() - scale.ln()
    }

    fn at(&self, target: Target, f: f64) -> [f64; 3] {
        let (df, scale, q) = self.parts(target, f);
        let unit = (df + 1.0) / (df * scale * scale * (1.0 + q));
        [
            -0.5 * (df + 1.0) * q.ln_1p(),
            unit * (target.y - f),
            // as a ratio: q may be huge
            unit * (1.0 - 2.0 / (1.0 + q)),
        ]
    }

    fn constant_slopes(&self, _: Target, out: &mut [f64]) {
        let (df, scale) = (self.df.scalar(), self.scale.scalar());
        out[0] = 0.5 * (digamma(0.5 * (df + 1.0)) - digamma(0.5 * df) - 1.0 / df);
        out[1] = -1.0 / scale;
    }

    fn add_slopes(&self, target: Target, f: f64, weight: f64, out: &mut [f64]) {
        let (df, scale, q) = self.parts(target, f);
        let share = q / (1.0 + q);
        out[0] += weight * 0.5 * ((df + 1.0) / df * share - q.ln_1p());
        out[1] += weight * (df + 1.0) / scale * share;
    }

    fn rule(&self) -> Rule {
        Rule::Trapezoid
    }

    fn pole(&self) -> f64 {
        self.df.scalar().sqrt() * self.scale.scalar()
    }

    fn moments(&self, _: f64, f: f64) -> (f64, f64) {
        (f, self.noise())
    }

    fn closed_moments(&self, _: f64, mean: f64, variance: f64) -> Option<(f64, f64)> {
        Some((mean, variance + self.noise()))
    }

    fn cdf(&self, _: f64, y: f64, f: f64) -> f64 {
        // with x = ν/(ν + t²): I_x(ν/2, ½)/2 in the lower tail (Abramowitz & Stegun 26.7.1)
        let (df, scale) = (self.df.scalar(), self.scale.scalar());
        let t = (y - f) / scale;
        let tail = 0.5 * statrs::function::beta::beta_reg(0.5 * df, 0.5, 1.0 / (1.0 + t * t / df));
        if t < 0.0 { tail } else { 1.0 - tail }
    }

    fn support(&self, _: f64) -> Support {
        Support::Real
    }

    fn augmented(&self) -> Option<&dyn Augmented> {
        Some(self)
    }

    fn sample(&self, _: f64, f: f64, rng: &mut dyn rand::Rng) -> f64 {
        let t = rand_distr::StudentT::new(self.df.scalar()).map_or(f64::NAN, |t| t.sample(rng));
        f + self.scale.scalar() * t
    }
}

impl SuperGaussian for StudentT {
    fn with(&self, target: Target, work: &mut dyn FnMut(&Form, &dyn Mixing)) {
        let phi =
            Phi::new(self.df.scalar(), self.scale.scalar()).expect("above 0 by their transforms");
        work(&Form::of_residual(self.constant(target), target.y), &phi);
    }

    fn slopes(&self, target: Target, _: f64, square: f64, _: f64, out: &mut [f64]) {
        self.constant_slopes(target, out);
        // at a residual whose square is c²
        self.add_slopes(target, target.y - square.sqrt(), 1.0, out);
    }

    /// σ² ← mean of (ν + 1) c²/(ν + c²/σ²), as by expectation maximisation with the precisions of the rows.
    fn powers(&self) -> Vec<Option<f64>> {
        vec![None, Some(0.5)]
    }

    fn add_ratio(&self, _: Target, square: f64, out: &mut Ratios<'_>) {
        let (df, scale) = (self.df.scalar(), self.scale.scalar());
        out.add(1, (df + 1.0) * square / (df + square / (scale * scale)), 1.0);
    }
}

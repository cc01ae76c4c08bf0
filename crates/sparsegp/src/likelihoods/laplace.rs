//! Laplace noise: p(y | f) = exp(−|y − f|/b)/2b, everything in closed form.
//!
//! With d = y − μ, s = √v: E|y − f| = d erf(d/s√2) + 2sφ(d/s), the mean of a folded normal, with
//! slopes −erf(d/s√2) in μ and φ(d/s)/s in v. The sum of normal and Laplace (Reed 2006) has the tails
//! T± = exp(v/2b² ∓ d/b) Φ(±d/s − s/b), the density (T₊ + T₋)/2b and the distribution function
//! Φ(d/s) − ½T₊ + ½T₋.

use super::augmented::{Augmented, Form, Ratios, SuperGaussian};
use super::registry::{Args, Entry};
use super::single::{Scalar, Single, finite, robust_spread, start};
use super::student_t::SCALE;
use super::{Likelihood, Slopes, Support, Target};
use crate::distributions::mixing::{Laplace as Phi, Mixing};
use crate::error::Result;
use crate::params::{Param, Visitor, VisitorMut};
use crate::special::{
    HALF_LOG_TAU, log_add_exp, log_mills, log_normal_cdf, normal_cdf, normal_density,
};
use rand::RngExt;
use serde_json::Value;
use statrs::function::erf::erf;
use std::f64::consts::FRAC_1_SQRT_2;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "laplace",
    aliases: &["double-exponential"],
    about: "noise with exponential tails: the median is modelled",
    targets: "numbers",
    latents: "1",
    augmented: true,
    build,
};

/// Laplace noise.
#[derive(Clone, Debug)]
pub struct Laplace {
    /// Scale b, above 10⁻⁶; the variance of the noise is 2b².
    pub scale: Param,
}

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&["scale"], &[])?;
    Single::boxed(Laplace { scale: args.scalar("scale", 1.0, SCALE)? }, &args)
}

/// Returns the logarithm of exp(s²/2b² − d/b) Φ(d/s − s/b), with `ratio` = s/b and `z` = d/s.
fn log_tail(ratio: f64, z: f64) -> f64 {
    let t = ratio - z;
    if t > 0.0 {
        // = log φ(z) + log R(t): the squares have cancelled
        -0.5 * z * z - HALF_LOG_TAU + log_mills(t)
    } else {
        ratio * (0.5 * ratio - z) + log_normal_cdf(-t)
    }
}

impl Laplace {
    fn b(&self) -> f64 {
        self.scale.scalar()
    }
}

impl Scalar for Laplace {
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
        // 2b² is a tenth of the variance of a normal of that spread
        start(&mut self.scale, 0.05_f64.sqrt() * 1.4826 * distance);
        median
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        finite(target)
    }

    fn write(&self, json: &mut Value) {
        json["scale"] = self.scale.to_json(SCALE);
    }

    fn constant(&self, _: Target) -> f64 {
        -(2.0 * self.b()).ln()
    }

    fn at(&self, target: Target, f: f64) -> [f64; 3] {
        let d = target.y - f;
        let sign = if d == 0.0 { 0.0 } else { d.signum() };
        [-d.abs() / self.b(), sign / self.b(), 0.0]
    }

    fn closed(
        &self,
        target: Target,
        mean: f64,
        variance: f64,
        out: &mut Slopes<'_>,
    ) -> Option<f64> {
        let (d, s, b) = (target.y - mean, variance.sqrt(), self.b());
        let (distance, sign, density) = if s > 0.0 {
            let (sign, density) = (erf(d / s * FRAC_1_SQRT_2), normal_density(d / s));
            (d * sign + 2.0 * s * density, sign, density / s)
        } else {
            (d.abs(), if d == 0.0 { 0.0 } else { d.signum() }, 0.0)
        };
        out.mean[0] = sign / b;
        out.variance[0] = -density / b;
        out.params[0] = (distance / b - 1.0) / b;
        Some(self.constant(target) - distance / b)
    }

    fn moments(&self, _: f64, f: f64) -> (f64, f64) {
        (f, 2.0 * self.b() * self.b())
    }

    fn closed_moments(&self, _: f64, mean: f64, variance: f64) -> Option<(f64, f64)> {
        Some((mean, variance + 2.0 * self.b() * self.b()))
    }

    fn closed_log_density(&self, target: Target, mean: f64, variance: f64) -> Option<f64> {
        let (d, s) = (target.y - mean, variance.sqrt());
        let log = if s > 0.0 {
            log_add_exp(log_tail(s / self.b(), d / s), log_tail(s / self.b(), -d / s))
        } else {
            -d.abs() / self.b()
        };
        Some(self.constant(target) + log)
    }

    fn cdf(&self, _: f64, y: f64, f: f64) -> f64 {
        let d = (y - f) / self.b();
        if d < 0.0 { 0.5 * d.exp() } else { 1.0 - 0.5 * (-d).exp() }
    }

    fn closed_cdf(&self, extra: f64, y: f64, mean: f64, variance: f64) -> Option<f64> {
        let (d, s) = (y - mean, variance.sqrt());
        if s == 0.0 {
            return Some(self.cdf(extra, y, mean));
        }
        let (ratio, z) = (s / self.b(), d / s);
        Some(normal_cdf(z) - 0.5 * log_tail(ratio, z).exp() + 0.5 * log_tail(ratio, -z).exp())
    }

    fn support(&self, _: f64) -> Support {
        Support::Real
    }

    fn augmented(&self) -> Option<&dyn Augmented> {
        Some(self)
    }

    fn sample(&self, _: f64, f: f64, rng: &mut dyn rand::Rng) -> f64 {
        let u: f64 = rng.random::<f64>() - 0.5;
        f - self.b() * u.signum() * (-2.0 * u.abs()).ln_1p()
    }
}

impl SuperGaussian for Laplace {
    fn with(&self, target: Target, work: &mut dyn FnMut(&Form, &dyn Mixing)) {
        let phi = Phi::new(self.b()).expect("above 0 by its transform");
        work(&Form::of_residual(self.constant(target), target.y), &phi);
    }

    fn slopes(&self, _: Target, _: f64, square: f64, _: f64, out: &mut [f64]) {
        out[0] = (square.sqrt() / self.b() - 1.0) / self.b();
    }

    /// Uses that the scale is the mean of c.
    fn powers(&self) -> Vec<Option<f64>> {
        vec![Some(1.0)]
    }

    fn add_ratio(&self, _: Target, square: f64, out: &mut Ratios<'_>) {
        out.add(0, square.sqrt(), 1.0);
    }
}

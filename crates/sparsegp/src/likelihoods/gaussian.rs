//! Gaussian noise: y = f + ε, ε ~ N(0, σ²), or N(0, σ² + τᵢ) with variances τᵢ that come with the rows.

use super::augmented::{Augmented, Form, Ratios, SuperGaussian};
use super::registry::{Args, Entry};
use super::{Extra, Likelihood, Slopes, Support, Target};
use crate::distributions::mixing::{Complex64, Mixing};
use crate::error::Result;
use crate::metrics::standard_normal_quantile;
use crate::params::{Param, Shape, Transform, Visitor, VisitorMut};
use crate::special::normal_cdf;
use serde_json::{Value, json};
use std::f64::consts::TAU;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "gaussian",
    aliases: &["normal"],
    about: "Gaussian noise; a row may bring a known variance that is added",
    targets: "numbers",
    latents: "1",
    augmented: true,
    build,
};

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&["variance"], &[])?;
    let mut gaussian = Gaussian::new(1.0);
    if args.number("variance") == Some(0.0) {
        gaussian = Gaussian::none();
    }
    args.read("variance", &mut gaussian.variance)?;
    gaussian.variance.frozen |= gaussian.variance.scalar() == 0.0;
    Ok(Box::new(gaussian))
}

/// Gaussian noise with one variance for all rows and target columns, to which a known variance of the
/// row may be added.
#[derive(Clone, Debug)]
pub struct Gaussian {
    /// σ²: positive, or a frozen 0, which only exact inference allows.
    pub variance: Param,
}

impl Gaussian {
    /// The least noise variance that is learnt from rows, as a part of the variance of their targets: below, the sparse bounds
    /// divide by rounding errors. One that is given may be smaller.
    pub const SMALLEST: f64 = 1e-8;
    /// Transform of a noise variance that is given.
    pub const TRANSFORM: Transform = Transform::POSITIVE;

    /// Creates the noise of the given (positive) variance.
    pub fn new(variance: f64) -> Self {
        Self { variance: Param::with(vec![variance], Shape::Scalar, Self::TRANSFORM) }
    }

    /// Creates no noise: a variance of 0 that is kept.
    pub fn none() -> Self {
        let mut variance = Param::with(vec![0.0], Shape::Scalar, Transform::Identity);
        variance.frozen = true;
        Self { variance }
    }

    /// Creates the noise from which learning starts for targets of this variance: at a tenth of it,
    /// above [`Gaussian::SMALLEST`] of the nearest power of ten.
    pub fn of_targets(variance: f64) -> Self {
        let power = Self::SMALLEST.log10().round() + variance.log10().round();
        let transform = Transform::Softplus { lower: 10_f64.powi(power as i32) };
        Self { variance: Param::with(vec![0.1 * variance], Shape::Scalar, transform) }
    }

    /// Starts the variance where [`Gaussian::of_targets`] does, within the bounds that were given.
    pub fn start(&mut self, targets: f64) {
        if self.variance.bounds().any() {
            return self.variance.start(&[0.1 * targets]);
        }
        let fresh = Self::of_targets(targets).variance;
        let own = std::mem::replace(&mut self.variance, fresh);
        (self.variance.prior, self.variance.frozen) = (own.prior, own.frozen);
    }

    /// Makes room for a value that is given: any positive one, or 0, which is kept.
    pub fn make_room(&mut self, value: f64) {
        let bounded = self.variance.bounds().any();
        if bounded || (self.variance.transform().contains(value) && value != 0.0) {
            return;
        }
        let own = std::mem::replace(&mut self.variance, Param::positive(1.0));
        self.variance = if value == 0.0 { Self::none() } else { Self::new(own.scalar()) }.variance;
        self.variance.prior = own.prior;
        self.variance.frozen |= own.frozen;
    }

    fn total(&self, extra: f64) -> f64 {
        self.variance.scalar() + extra
    }
}

/// Returns log N(y; mean, variance).
fn log_normal(y: f64, mean: f64, variance: f64) -> f64 {
    let residual = y - mean;
    -0.5 * ((TAU * variance).ln() + residual * residual / variance)
}

/// φ(r) = e^{−ωr}: the local variable is known.
struct PointMass {
    omega: f64,
}

impl Mixing for PointMass {
    fn log_phi(&self, r: f64) -> f64 {
        -self.omega * r
    }

    fn log_phi_complex(&self, s: Complex64) -> Complex64 {
        -self.omega * s
    }

    fn mean(&self, _: f64) -> f64 {
        self.omega
    }

    fn variance(&self, _: f64) -> f64 {
        0.0
    }

    fn sample(&self, _: f64, _: &mut dyn rand::Rng) -> Option<f64> {
        Some(self.omega)
    }
}

/// With ω = 1/2σ².
impl SuperGaussian for Gaussian {
    fn with(&self, target: Target, work: &mut dyn FnMut(&Form, &dyn Mixing)) {
        let precision = 1.0 / self.total(target.extra);
        let form = Form::of_residual(0.5 * (precision.ln() - TAU.ln()), target.y);
        work(&form, &PointMass { omega: 0.5 * precision });
    }

    fn slopes(&self, target: Target, _: f64, square: f64, _: f64, out: &mut [f64]) {
        let precision = 1.0 / self.total(target.extra);
        out[0] = 0.5 * precision * (square * precision - 1.0);
    }

    /// Uses that σ² is the mean of c², where no row has a known variance.
    fn powers(&self) -> Vec<Option<f64>> {
        vec![Some(1.0)]
    }

    fn add_ratio(&self, target: Target, square: f64, out: &mut Ratios<'_>) {
        out.add(0, if target.extra == 0.0 { square } else { f64::NAN }, 1.0);
    }
}

impl Likelihood for Gaussian {
    fn name(&self) -> &'static str {
        "gaussian"
    }

    fn standardises(&self) -> bool {
        true
    }

    fn extra(&self) -> Option<Extra> {
        Some(Extra { name: "variance", default: Some(0.0) })
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"variance", &self.variance);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"variance", &mut self.variance);
    }

    fn units(&self) -> Vec<i32> {
        vec![2]
    }

    fn initialise(&mut self, targets: &[Target]) -> Vec<f64> {
        let known: Vec<f64> = targets.iter().map(|t| t.y).filter(|y| y.is_finite()).collect();
        let n = known.len().max(1) as f64;
        let mean = known.iter().sum::<f64>() / n;
        let variance = known.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / n;
        if !self.variance.given {
            let variance = if variance > 0.0 && variance.is_finite() { variance } else { 1.0 };
            self.start(variance);
        }
        vec![mean]
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        match (target.y.is_finite(), target.extra >= 0.0 && target.extra.is_finite()) {
            (true, true) => Ok(()),
            (false, _) => Err("is not a finite number".into()),
            (_, false) => {
                Err(format!("has the noise variance {}, which must be ≥ 0", target.extra))
            }
        }
    }

    fn log_prob(&self, target: Target, f: &[f64]) -> f64 {
        log_normal(target.y, f[0], self.total(target.extra))
    }

    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        let precision = 1.0 / self.total(target.extra);
        let residual = target.y - mean[0];
        let square = residual * residual + variance[0];
        out.mean[0] = residual * precision;
        out.variance[0] = -0.5 * precision;
        out.params[0] = 0.5 * precision * (square * precision - 1.0);
        0.5 * (precision.ln() - TAU.ln() - square * precision)
    }

    fn predict(&self, extra: f64, mean: &[f64], variance: &[f64]) -> (f64, f64) {
        (mean[0], variance[0] + self.total(extra))
    }

    fn predict_log_density(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        log_normal(target.y, mean[0], variance[0] + self.total(target.extra))
    }

    fn support(&self, _: f64) -> Support {
        Support::Real
    }

    fn cdf(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        let (mean, variance) = self.predict(target.extra, mean, variance);
        normal_cdf((target.y - mean) / variance.sqrt())
    }

    fn quantile(&self, extra: f64, mean: &[f64], variance: &[f64], level: f64) -> f64 {
        let (mean, variance) = self.predict(extra, mean, variance);
        mean + variance.sqrt() * standard_normal_quantile(level)
    }

    fn sample(&self, extra: f64, f: &[f64], rng: &mut dyn rand::Rng) -> f64 {
        let normal: f64 = rand_distr::Distribution::sample(&rand_distr::StandardNormal, rng);
        f[0] + self.total(extra).sqrt() * normal
    }

    fn augmented(&self) -> Option<&dyn Augmented> {
        Some(self)
    }

    fn as_gaussian(&self) -> Option<&Gaussian> {
        Some(self)
    }

    fn as_gaussian_mut(&mut self) -> Option<&mut Gaussian> {
        Some(self)
    }

    fn to_json(&self) -> Value {
        json!({ "type": "gaussian", "variance": self.variance.to_json(Self::TRANSFORM) })
    }

    fn clone_box(&self) -> Box<dyn Likelihood> {
        Box::new(self.clone())
    }
}

//! Student-t noise: y = f + scale·ε, ε ~ t(ν) (Jylänki, Vanhatalo & Vehtari 2011):
//!
//! ```text
//! log p(y | f) = lnΓ((ν+1)/2) − lnΓ(ν/2) − ½ log νπ − log ς − (ν+1)/2 log(1 + (y − f)²/νς²)
//! ```
//! Not log-concave. Its poles at f = y ± i√ν ς defeat Gauss–Hermite where the latent standard deviation
//! exceeds about 2ς, so the trapezoidal rule is the default.

use super::augmented::{Augmented, Form, Ratios, SuperGaussian};
use super::multi::LogSum;
use super::quadrature::Rule;
use super::registry::{Args, Entry};
use super::single::{
    Formula, Many, OPTIONS, Scalar, Single, TOGETHER, finite, robust_spread, start,
};
use super::{Likelihood, Support, Target};
use crate::distributions::mixing::{Mixing, StudentT as Phi};
use crate::error::Result;
use crate::linalg::exp;
use crate::params::{Param, Transform, Visitor, VisitorMut};
use rand_distr::Distribution;
use serde_json::Value;
use statrs::function::gamma::{digamma, ln_gamma};
use std::f64::consts::{PI, TAU};

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
    /// Returns ν, ς and (y − f)²/νς².
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

/// [`Scalar::at`] of [`StudentT`].
struct Heavy {
    y: f64,
    df: f64,
    scale: f64,
}

impl Formula for Heavy {
    #[inline(always)]
    fn at<const FMA: bool>(&self, f: f64) -> [f64; 3] {
        let Self { y, df, scale } = *self;
        let unit = (df + 1.0) / (df * scale * scale);
        let t = (y - f) / scale;
        let q = t * t / df;
        let rest = 1.0 / (1.0 + q);
        [
            -0.5 * (df + 1.0) * exp::ln_1p::<FMA>(q),
            unit * rest * (y - f),
            unit * rest * (1.0 - 2.0 * rest),
        ]
    }
}

/// Returns P(y − μ < distance), f ~ N(μ, variance), for t noise of this scale; with digits in the
/// lower tail.
pub(super) fn tail_below(distance: f64, variance: f64, scale: f64, df: f64) -> f64 {
    let size = distance.abs();
    let tail = exp::dispatch(Tail { distance: size, variance, noise: scale * scale, df });
    if distance < 0.0 { tail } else { 1.0 - tail }
}

/// P(y − μ < −distance), f ~ N(μ, variance), for t noise as a scale mixture (Andrews & Mallows 1974): y ~ N(μ, variance + ς²/λ), λ ~ Gamma(ν/2, ν/2).
/// The integral over x = log λ, whose density is ∝ exp(ν/2 (x − eˣ)), by the trapezoidal rule: the integrand is analytic for
/// |Im x| < π/2 and has the width √(2/ν), so the error falls as exp(−π²/step).
struct Tail {
    distance: f64,
    variance: f64,
    /// ς².
    noise: f64,
    df: f64,
}

/// 0, 1, …: counting in a loop, which builds for tests check, would keep it from being vectorised.
const COUNTED: [f64; TOGETHER] = {
    let mut all = [0.0; TOGETHER];
    let mut j = 0;
    while j < TOGETHER {
        all[j] = j as f64;
        j += 1;
    }
    all
};

impl exp::Vectorised for Tail {
    type Output = f64;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> f64 {
        let Self { distance, variance, noise, df } = self;
        let (low, high, step) = log_precisions(df);
        let count = ((high - low) / step).ceil() as usize + 1;
        let (mut mass, mut tail) = (0.0, 0.0);
        for first in (0..count).step_by(TOGETHER) {
            let (mut weights, mut tails) = ([0.0; TOGETHER], [0.0; TOGETHER]);
            let start = low + step * first as f64;
            for ((j, weight), tail) in COUNTED.iter().zip(&mut weights).zip(&mut tails) {
                let x = start + step * j;
                let precision = exp::exp::<FMA>(x);
                let w = exp::exp::<FMA>(0.5 * df * (x - precision + 1.0));
                let t = distance / (variance + noise / precision).sqrt();
                *weight = w;
                *tail = w * exp::mills::<FMA>(t) * exp::exp::<FMA>(-0.5 * t * t) / TAU.sqrt();
            }
            mass += weights.iter().sum::<f64>();
            tail += tails.iter().sum::<f64>();
        }
        tail / mass
    }
}

/// Returns log √2π times the density of y at a distance from μ, f ~ N(μ, variance), for t noise of
/// this scale: the mixture of [`Tail`], with x from where the density of x falls off to either side
/// of what a residual of that size says of λ.
pub(super) fn log_mixture(distance: f64, variance: f64, scale: f64, df: f64) -> f64 {
    let (low, high, step) = log_precisions(df);
    // of y = f + noise with the noise the distance, λ is Gamma((ν + 1)/2, (ν + z²)/2)
    let z = distance / scale.hypot(variance.sqrt());
    let low = low - (z * z / df).ln_1p();
    let count = ((high - low) / step).ceil() as usize;
    let [mass, total] =
        exp::dispatch(Mixture { distance, variance, noise: scale * scale, df, low, step, count });
    // far from the smallest numbers, as nearly always
    if total > 1e-280 && total.is_finite() {
        return (total / mass).ln();
    }
    let (mut mass, mut total) = (LogSum::EMPTY, LogSum::EMPTY);
    for i in 0..=count {
        let x = low + step * i as f64;
        let log = 0.5 * df * (x - x.exp());
        let deviation = variance.sqrt().hypot(scale * (-0.5 * x).exp());
        let z = distance / deviation;
        mass.add(log, 1.0);
        total.add(log - deviation.ln() - 0.5 * z * z, 1.0);
    }
    total.ln() - mass.ln()
}

/// Sums over nodes of x of its density, and of that times √2π N(distance; 0, variance + ς²/λ).
struct Mixture {
    distance: f64,
    variance: f64,
    /// ς².
    noise: f64,
    df: f64,
    low: f64,
    step: f64,
    count: usize,
}

impl exp::Vectorised for Mixture {
    type Output = [f64; 2];

    #[inline(always)]
    fn run<const FMA: bool>(self) -> [f64; 2] {
        let Self { distance, variance, noise, df, low, step, count } = self;
        let (mut mass, mut total) = (0.0, 0.0);
        for first in (0..=count).step_by(TOGETHER) {
            let (mut weights, mut densities) = ([0.0; TOGETHER], [0.0; TOGETHER]);
            let start = low + step * first as f64;
            for ((j, weight), density) in COUNTED.iter().zip(&mut weights).zip(&mut densities) {
                let x = start + step * j;
                let w = exp::exp::<FMA>(0.5 * df * (x - exp::exp::<FMA>(x) + 1.0));
                let spread = variance + noise * exp::exp::<FMA>(-x);
                *weight = w;
                *density = w * exp::exp::<FMA>(-0.5 * distance * distance / spread) / spread.sqrt();
            }
            mass += weights.iter().sum::<f64>();
            total += densities.iter().sum::<f64>();
        }
        [mass, total]
    }
}

/// Returns where the density of x = log λ, ∝ exp(ν/2 (x − eˣ)), has fallen to e⁻⁴¹ of its largest
/// value, eˣ − x − 1 = c, to either side, and a step.
fn log_precisions(df: f64) -> (f64, f64, f64) {
    let c = 82.0 / df;
    let root = (2.0 * c).sqrt();
    let low = -(1.0 + c).min(root * (1.0 + root));
    (low, (1.0 + c + root).ln(), (1.0 / df.sqrt()).min(0.25))
}

impl Scalar for StudentT {
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

    fn at_all(&self, target: Target, f: &[f64], out: &mut Many) {
        let (df, scale, _) = self.parts(target, 0.0);
        out.add(Heavy { y: target.y, df, scale }, f);
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

    fn add_all_slopes(&self, target: Target, f: &[f64], weights: &[f64], out: &mut [f64]) {
        let (df, scale, _) = self.parts(target, 0.0);
        let mut many = Many::ZERO;
        many.add(Heavy { y: target.y, df, scale }, f);
        for (j, weight) in weights.iter().enumerate() {
            // from the value −½(ν + 1) log(1 + q)
            let t = (target.y - f[j]) / scale;
            let q = t * t / df;
            let share = q / (1.0 + q);
            out[0] += weight * ((0.5 * (df + 1.0) / df) * share + many.value[j] / (df + 1.0));
            out[1] += weight * (df + 1.0) / scale * share;
        }
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

    fn closed_cdf(&self, _: f64, y: f64, mean: f64, variance: f64) -> Option<f64> {
        Some(tail_below(y - mean, variance, self.scale.scalar(), self.df.scalar()))
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

    /// Uses σ² ← mean of (ν + 1) c²/(ν + c²/σ²), as by expectation maximisation with the precisions
    /// of the rows.
    fn powers(&self) -> Vec<Option<f64>> {
        vec![None, Some(0.5)]
    }

    fn add_ratio(&self, _: Target, square: f64, out: &mut Ratios<'_>) {
        let (df, scale) = (self.df.scalar(), self.scale.scalar());
        out.add(1, (df + 1.0) * square / (df + square / (scale * scale)), 1.0);
    }
}

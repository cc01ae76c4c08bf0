//! The Bayesian support vector machine (Polson & Scott 2011; Wenzel et al. 2017): two classes ỹ = ±1 with
//! the pseudo-likelihood L(ỹ, f) = exp(−2 max(0, 1 − ỹf)) of the hinge loss. It is none of y: L(1, f) + L(−1, f)
//! is not 1. Inference takes L as it stands, predictions are of p(ỹ | f) = L(ỹ, f)/(L(1, f) + L(−1, f)).
//!
//! With t = (1 − ỹμ)/√v, E log L = −2{(1 − ỹμ) Φ(t) + √v φ(t)}.

use super::augmented::{Augmented, Form, SuperGaussian};
use super::predict;
use super::registry::{Args, Entry};
use super::single::{Scalar, Single};
use super::{Likelihood, Slopes, Support, Target};
use crate::distributions::mixing::{Laplace as Phi, Mixing};
use crate::error::Result;
use crate::special::{normal_cdf, normal_density, sigmoid, softplus};
use rand::RngExt;
use serde_json::Value;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "svm",
    aliases: &["bayesian-svm", "hinge"],
    about: "two classes by the hinge loss: the Bayesian support vector machine",
    targets: "0 or 1",
    latents: "1",
    augmented: true,
    build,
};

/// The hinge loss.
#[derive(Clone, Debug)]
pub struct Svm;

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&[], &[])?;
    Single::boxed(Svm, &args)
}

fn sign(target: Target) -> f64 {
    2.0 * target.y - 1.0
}

/// Returns log L(ỹ, f).
fn loss(sign: f64, f: f64) -> f64 {
    -2.0 * (1.0 - sign * f).max(0.0)
}

/// Returns p(ỹ = 1 | f).
fn probability(f: f64) -> f64 {
    sigmoid(loss(1.0, f) - loss(-1.0, f))
}

impl Scalar for Svm {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn classes(&self) -> Option<usize> {
        Some(2)
    }

    fn normalised(&self) -> bool {
        false
    }

    fn initialise(&mut self, targets: &[Target]) -> f64 {
        let ones: f64 = targets.iter().map(|t| t.y).sum();
        let n = targets.len() as f64;
        // between the margins log p(1 | f)/p(−1 | f) = 4f
        (((ones + 0.5) / (n - ones + 0.5)).ln() / 4.0).clamp(-1.0, 1.0)
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        match target.y == 0.0 || target.y == 1.0 {
            true => Ok(()),
            false => Err("is not a class (0 or 1)".into()),
        }
    }

    fn write(&self, _: &mut Value) {}

    fn at(&self, target: Target, f: f64) -> [f64; 3] {
        let sign = sign(target);
        [loss(sign, f), if sign * f < 1.0 { 2.0 * sign } else { 0.0 }, 0.0]
    }

    fn closed(
        &self,
        target: Target,
        mean: f64,
        variance: f64,
        out: &mut Slopes<'_>,
    ) -> Option<f64> {
        let (sign, deviation) = (sign(target), variance.sqrt());
        let gap = 1.0 - sign * mean;
        if deviation == 0.0 {
            let [value, slope, _] = self.at(target, mean);
            (out.mean[0], out.variance[0]) = (slope, 0.0);
            return Some(value);
        }
        let t = gap / deviation;
        let (below, density) = (normal_cdf(t), normal_density(t));
        out.mean[0] = 2.0 * sign * below;
        out.variance[0] = -density / deviation;
        Some(-2.0 * (gap * below + deviation * density))
    }

    fn moments(&self, _: f64, f: f64) -> (f64, f64) {
        (probability(f), probability(f) * probability(-f))
    }

    fn closed_moments(&self, _: f64, mean: f64, variance: f64) -> Option<(f64, f64)> {
        let log = |y: f64| self.closed_log_density(Target { y, extra: 1.0 }, mean, variance);
        let (p, q) = (log(1.0)?.exp(), log(0.0)?.exp());
        Some((p, p * q))
    }

    fn closed_log_density(&self, target: Target, mean: f64, variance: f64) -> Option<f64> {
        let (sign, deviation) = (sign(target), variance.sqrt());
        if deviation == 0.0 {
            return Some(-softplus(loss(-sign, mean) - loss(sign, mean)));
        }
        let kinks = [-1.0, 1.0].map(|at| Some((at - mean) / deviation));
        let at = |f: f64| {
            let odds = loss(sign, f) - loss(-sign, f);
            // of the odds: 4 between the margins, 2 beyond them
            let slope = sign * if f.abs() < 1.0 { 4.0 } else { 2.0 };
            [-softplus(-odds), slope * sigmoid(-odds), 0.0]
        };
        // the nearest poles are where 4f = iπ
        Some(predict::log_expectation(mean, variance, 0.5, &kinks, &[-1.0, 1.0], at))
    }

    fn cdf(&self, _: f64, y: f64, f: f64) -> f64 {
        match y {
            y if y < 0.0 => 0.0,
            y if y < 1.0 => probability(-f),
            _ => 1.0,
        }
    }

    fn closed_cdf(&self, _: f64, y: f64, mean: f64, variance: f64) -> Option<f64> {
        match y {
            y if y < 0.0 => Some(0.0),
            y if y < 1.0 => {
                let target = Target { y: 0.0, extra: 1.0 };
                self.closed_log_density(target, mean, variance).map(f64::exp)
            }
            _ => Some(1.0),
        }
    }

    fn support(&self, _: f64) -> Support {
        Support::Classes(2)
    }

    fn augmented(&self) -> Option<&dyn Augmented> {
        Some(self)
    }

    fn sample(&self, _: f64, f: f64, rng: &mut dyn rand::Rng) -> f64 {
        f64::from(u8::from(rng.random::<f64>() < probability(f)))
    }
}

impl SuperGaussian for Svm {
    /// Uses −2 max(0, 1 − ỹf) = −(1 − ỹf) − |1 − ỹf|, and (1 − ỹf)² = (f − ỹ)².
    fn with(&self, target: Target, work: &mut dyn FnMut(&Form, &dyn Mixing)) {
        let sign = sign(target);
        let form = Form { log_c: -1.0, g: sign, centre: sign, gamma: 1.0, floor: 0.0 };
        work(&form, &Phi::new(1.0).expect("1 is above 0"));
    }
}

//! Options of [`super::Adam`].

use super::progress::Progress;
use super::vector::first_wrong;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// How the learning rate changes with the number t = 0, 1, … of the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// It stays.
    #[default]
    Constant,
    /// It is multiplied by `factor`ᵗ.
    Exponential {
        /// Factor per step, above 0 and at most 1.
        factor: f64,
    },
    /// It falls along half a cosine to `last` times its first value at step `steps`, and stays there
    /// (Loshchilov & Hutter 2017, equation (5), without restarts).
    Cosine {
        /// Steps until the fall ends.
        steps: usize,
        /// Share of the learning rate that is left, from 0 to 1.
        last: f64,
    },
    /// It is divided by (1 + t/`after`)^`exponent`: what converges with noisy gradients has an exponent above ½ and at
    /// most 1 (Robbins & Monro 1951).
    Power {
        /// Steps, above 0.
        after: f64,
        /// At least 0.
        exponent: f64,
    },
    /// It is multiplied by 1 − e^{−`speed` (t + 1)}, from next to nothing: where first steps of full length go astray.
    Ramp {
        /// Above 0.
        speed: f64,
    },
}

impl Schedule {
    /// Returns the factor of the learning rate in step `step` = 0, 1, ….
    pub fn factor(&self, step: usize) -> f64 {
        match *self {
            Schedule::Constant => 1.0,
            Schedule::Exponential { factor } => factor.powf(step as f64),
            Schedule::Cosine { steps: 0, .. } => 1.0,
            Schedule::Cosine { steps, last } => {
                let phase = step.min(steps) as f64 / steps as f64 * std::f64::consts::PI;
                last + (1.0 - last) * 0.5 * (1.0 + phase.cos())
            }
            Schedule::Power { after, exponent } => (1.0 + step as f64 / after).powf(-exponent),
            Schedule::Ramp { speed } => -(-speed * (step + 1) as f64).exp_m1(),
        }
    }

    /// Returns the factor in step `step`, or in a later one where a time limit will end a fall
    /// before its steps do. What has no end by its steps has none by time.
    pub fn factor_within(&self, step: usize, progress: &Progress) -> f64 {
        match *self {
            Schedule::Cosine { steps, .. } => self.factor(progress.step(step, steps)),
            _ => self.factor(step),
        }
    }

    /// Returns whether its numbers are in range.
    pub(crate) fn is_valid(&self) -> bool {
        let positive = |v: f64| v > 0.0 && v.is_finite();
        match *self {
            Schedule::Constant => true,
            Schedule::Exponential { factor } => factor > 0.0 && factor <= 1.0,
            Schedule::Cosine { steps, last } => steps > 0 && (0.0..=1.0).contains(&last),
            Schedule::Power { after, exponent } => {
                positive(after) && exponent >= 0.0 && exponent.is_finite()
            }
            Schedule::Ramp { speed } => positive(speed),
        }
    }
}

/// Criterion for noisy objectives: windows of `window` steps follow each other, and the mean value
/// over one must be lower than over the one before by more than `tolerance` times max(1, |mean|).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plateau {
    /// Steps per window; the longer, the less noise decides.
    pub window: usize,
    /// Relative fall that still counts as progress.
    pub tolerance: f64,
}

/// Options of [`super::Adam`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AdamOptions {
    /// Learning rate α; 0.01 by default.
    pub learning_rate: f64,
    /// Factor of the learning rate for each parameter; empty (the default) means 1 for all.
    pub multipliers: Vec<f64>,
    /// Decay β₁ of the first moment; 0.9 by default.
    pub beta1: f64,
    /// Decay β₂ of the second moment; 0.999 by default.
    pub beta2: f64,
    /// β₁ of every parameter, where they differ; empty for `beta1` everywhere.
    pub momenta: Vec<f64>,
    /// ε beside the root of the second moment; 1e-8 by default.
    pub epsilon: f64,
    /// Change of the learning rate; constant by default.
    pub schedule: Schedule,
    /// Converged when no gradient component exceeds this times max(1, |value|). The default 0 asks
    /// for a gradient of exactly zero, because a small gradient of one minibatch means little.
    pub gradient_tolerance: f64,
    /// Converged when the mean value no longer falls; off by default.
    pub plateau: Option<Plateau>,
    /// Times that a move is halved when it leads to a point without a value; 20 by default.
    pub halvings: usize,
}

impl Default for AdamOptions {
    fn default() -> Self {
        Self {
            learning_rate: 0.01,
            multipliers: Vec::new(),
            beta1: 0.9,
            momenta: Vec::new(),
            beta2: 0.999,
            epsilon: 1e-8,
            schedule: Schedule::Constant,
            gradient_tolerance: 0.0,
            plateau: None,
            halvings: 20,
        }
    }
}

impl AdamOptions {
    pub(super) fn check(&self, dim: usize) -> Result<()> {
        let invalid =
            |what: &str, value: f64| Err(Error::Invalid(format!("Adam: {what}, found {value}")));
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return invalid("the learning rate must be a positive number", self.learning_rate);
        }
        for (name, beta) in [("beta1", self.beta1), ("beta2", self.beta2)] {
            if !(0.0..1.0).contains(&beta) {
                return invalid(&format!("{name} must be at least 0 and below 1"), beta);
            }
        }
        if !(self.epsilon > 0.0 && self.epsilon.is_finite()) {
            return invalid("epsilon must be a positive number", self.epsilon);
        }
        if !(self.gradient_tolerance >= 0.0 && self.gradient_tolerance.is_finite()) {
            return invalid("gradient_tolerance must be a number ≥ 0", self.gradient_tolerance);
        }
        if !self.schedule.is_valid() {
            return Err(Error::Invalid(format!(
                "Adam: the schedule {:?} is not possible: factor must be in (0, 1], steps at least 1, last in \
                 [0, 1], after and speed above 0, exponent at least 0",
                self.schedule
            )));
        }
        match self.plateau {
            Some(Plateau { window: 0, .. }) => {
                return Err(Error::Invalid("Adam: the plateau window must be at least 1".into()));
            }
            Some(Plateau { tolerance, .. }) if !tolerance.is_finite() => {
                return invalid("the plateau tolerance must be a number", tolerance);
            }
            _ => {}
        }
        if !self.multipliers.is_empty() && self.multipliers.len() != dim {
            return Err(Error::Shape {
                what: "learning-rate multipliers of Adam".into(),
                expected: format!("{dim} values, one per free parameter, or none"),
                found: format!("{} values", self.multipliers.len()),
            });
        }
        if !self.momenta.is_empty() && self.momenta.len() != dim {
            return Err(Error::Shape {
                what: "momenta of Adam".into(),
                expected: format!("{dim} values, one per free parameter, or none"),
                found: format!("{} values", self.momenta.len()),
            });
        }
        if let Some(at) = first_wrong(&self.momenta, |m| (0.0..1.0).contains(&m)) {
            return invalid("momenta must be at least 0 and below 1", self.momenta[at]);
        }
        match first_wrong(&self.multipliers, |m| (0.0..f64::INFINITY).contains(&m)) {
            Some(at) => {
                invalid("learning-rate multipliers must be numbers ≥ 0", self.multipliers[at])
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_start_at_one_and_fall_but_for_ramps() {
        let cosine = Schedule::Cosine { steps: 10, last: 0.1 };
        for (schedule, step, factor) in [
            (Schedule::Constant, 1000, 1.0),
            (Schedule::Exponential { factor: 0.5 }, 0, 1.0),
            (Schedule::Exponential { factor: 0.5 }, 3, 0.125),
            (cosine, 0, 1.0),
            (cosine, 5, 0.55),
            (cosine, 10, 0.1),
            (cosine, 99, 0.1),
            (Schedule::Power { after: 10.0, exponent: 0.5 }, 0, 1.0),
            (Schedule::Power { after: 10.0, exponent: 0.5 }, 30, 0.5),
            (Schedule::Ramp { speed: 0.5 }, 1, 1.0 - (-1.0_f64).exp()),
        ] {
            assert!((schedule.factor(step) - factor).abs() < 1e-15, "{schedule:?} {step}");
        }
        assert!((1..=10).all(|t| cosine.factor(t) < cosine.factor(t - 1)));
    }

    #[test]
    fn impossible_options_are_refused_with_a_sentence() {
        let good = AdamOptions::default();
        good.check(3).unwrap();
        AdamOptions { multipliers: vec![0.0, 1.0, 2.0], ..good.clone() }.check(3).unwrap();
        let plateau = |window, tolerance| Some(Plateau { window, tolerance });
        for (options, word) in [
            (AdamOptions { learning_rate: 0.0, ..good.clone() }, "learning rate"),
            (AdamOptions { learning_rate: f64::NAN, ..good.clone() }, "learning rate"),
            (AdamOptions { beta1: 1.0, ..good.clone() }, "beta1"),
            (AdamOptions { beta2: -0.1, ..good.clone() }, "beta2"),
            (AdamOptions { epsilon: 0.0, ..good.clone() }, "epsilon"),
            (AdamOptions { gradient_tolerance: f64::INFINITY, ..good.clone() }, "gradient_tol"),
            (
                AdamOptions { schedule: Schedule::Exponential { factor: 1.1 }, ..good.clone() },
                "1.1",
            ),
            (
                AdamOptions { schedule: Schedule::Cosine { steps: 0, last: 0.0 }, ..good.clone() },
                "sched",
            ),
            (
                AdamOptions {
                    schedule: Schedule::Power { after: 0.0, exponent: 1.0 },
                    ..good.clone()
                },
                "after",
            ),
            (AdamOptions { schedule: Schedule::Ramp { speed: -1.0 }, ..good.clone() }, "speed"),
            (AdamOptions { plateau: plateau(0, 0.1), ..good.clone() }, "window"),
            (AdamOptions { plateau: plateau(5, f64::NAN), ..good.clone() }, "plateau"),
            (AdamOptions { multipliers: vec![1.0], ..good.clone() }, "multipliers"),
            (AdamOptions { momenta: vec![0.5], ..good.clone() }, "momenta"),
            (AdamOptions { momenta: vec![0.5, 1.0, 0.2], ..good.clone() }, "momenta"),
            (AdamOptions { multipliers: vec![1.0, -1.0, 1.0], ..good.clone() }, "multipliers"),
        ] {
            let error = options.check(3).unwrap_err();
            assert!(error.to_string().contains(word) && !error.is_recoverable(), "{error}");
        }
    }

    #[test]
    fn missing_options_have_their_defaults() {
        let options: AdamOptions = serde_json::from_str(r#"{"learning_rate": 0.5}"#).unwrap();
        assert_eq!(options, AdamOptions { learning_rate: 0.5, ..AdamOptions::default() });
    }
}

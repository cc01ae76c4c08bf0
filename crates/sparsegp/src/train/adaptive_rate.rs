//! Learning rates and stops of stochastic variational inference that follow the noise of its gradients.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The rate of natural-gradient steps of Ranganath, Wang, Blei & Xing 2013: ρ = ‖ḡ‖²/h̄, the running
/// mean of the natural gradients against that of their squared norms.
///
/// The gradient g is the difference between what a minibatch's step of length 1 leads to and where q
/// is, in natural parameters (η₁, η₂), as one list of numbers; a symmetric matrix has all its entries there,
/// those off the diagonal twice. One state for each latent function. ρ is near 1 far from the optimum,
/// where gradients agree, and falls with their noise.
///
/// ```
/// use sparsegp::train::AdaptiveRate;
///
/// let mut rate = AdaptiveRate::default();
/// // some minibatches at the initial parameters
/// for gradient in [[1.0, 2.0], [1.2, 1.8]] {
///     rate.initialise(gradient)?;
/// }
/// let step = rate.update([1.1, 1.7])?;
/// assert!(step > 0.9 && step <= 1.0);
/// # Ok::<(), sparsegp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdaptiveRate {
    /// ḡ.
    mean: Vec<f64>,
    /// h̄.
    square: f64,
    /// τ: about how many gradients the means remember.
    memory: f64,
    /// The rate is not below this.
    floor: f64,
    /// Whether [`AdaptiveRate::update`] has been called.
    running: bool,
}

impl Default for AdaptiveRate {
    /// Sets the floor 10⁻³.
    fn default() -> Self {
        Self { mean: Vec::new(), square: 0.0, memory: 0.0, floor: 1e-3, running: false }
    }
}

impl AdaptiveRate {
    /// Creates the rate with a floor in [0, 1] that the rate does not fall below.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another number.
    pub fn with_floor(floor: f64) -> Result<Self> {
        if (0.0..=1.0).contains(&floor) {
            Ok(Self { floor, ..Self::default() })
        } else {
            Err(Error::Invalid(format!("the floor of a rate must be in [0, 1], not {floor}")))
        }
    }

    /// Takes in a gradient at the initial parameters, before any step: the means start as plain means of
    /// these, and τ as their number (50 or so).
    ///
    /// # Errors
    /// [`Error::Invalid`] after the first [`AdaptiveRate::update`]; else as there.
    pub fn initialise(&mut self, gradient: impl IntoIterator<Item = f64>) -> Result<()> {
        if self.running {
            return Err(Error::Invalid(
                "gradients at the initial parameters come before the first step".into(),
            ));
        }
        self.memory += 1.0;
        self.take_in(gradient)
    }

    /// Takes in the gradient of a step and returns its rate ρ, in [floor, 1]: with τ, ḡ ← (1 − 1/τ)ḡ + g/τ,
    /// h̄ likewise with ‖g‖², ρ = ‖ḡ‖²/h̄, τ ← τ(1 − ρ) + 1. Without initial gradients the first rate is 1.
    ///
    /// # Errors
    /// [`Error::Shape`] for a gradient of another length than before, [`Error::NonFinite`] for one that is
    /// not finite; the state is then of no more use.
    pub fn update(&mut self, gradient: impl IntoIterator<Item = f64>) -> Result<f64> {
        self.running = true;
        self.memory = self.memory.max(1.0);
        self.take_in(gradient)?;
        let norm: f64 = self.mean.iter().map(|g| g * g).sum();
        // no gradient at all: at the optimum, where any step stays
        let rate = if self.square > 0.0 { (norm / self.square).min(1.0) } else { 1.0 };
        self.memory = self.memory * (1.0 - rate) + 1.0;
        Ok(rate.max(self.floor))
    }

    fn take_in(&mut self, gradient: impl IntoIterator<Item = f64>) -> Result<()> {
        let weight = 1.0 / self.memory;
        let first = self.mean.is_empty();
        let (mut square, mut count) = (0.0, 0);
        for g in gradient {
            square += g * g;
            if first {
                self.mean.push(weight * g);
            } else if let Some(mean) = self.mean.get_mut(count) {
                *mean += weight * (g - *mean);
            }
            count += 1;
        }
        if count != self.mean.len() {
            return Err(Error::Shape {
                what: "the gradient of an adaptive rate".into(),
                expected: format!("{} numbers", self.mean.len()),
                found: count.to_string(),
            });
        }
        if !square.is_finite() {
            let what = "the squared norm of the natural gradient".into();
            return Err(Error::NonFinite { what, value: square });
        }
        self.square += weight * (square - self.square);
        Ok(())
    }

    /// Returns τ.
    pub fn memory(&self) -> f64 {
        self.memory
    }

    /// Returns h̄.
    pub fn mean_square(&self) -> f64 {
        self.square
    }
}

/// Stops when the parameters no longer change: with δₜ the mean over parameters of |ϑₜ − ϑₜ₋₁| /
/// ½(|ϑₜ| + |ϑₜ₋₁|) (0 for 0/0), when the mean of the last W values of δ is below ε.
///
/// ϑ are the means of q(u) and its variances, or a score on held-out rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelativeChange {
    window: usize,
    tolerance: f64,
    previous: Vec<f64>,
    /// The last W values of δ, oldest first.
    changes: Vec<f64>,
}

impl Default for RelativeChange {
    /// Sets W = 5, ε = 10⁻⁴: minibatches.
    fn default() -> Self {
        Self { window: 5, tolerance: 1e-4, previous: Vec::new(), changes: Vec::new() }
    }
}

impl RelativeChange {
    /// Creates it with W ≥ 1 and ε ≥ 0; W = 1 suits full batches.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other numbers.
    pub fn new(window: usize, tolerance: f64) -> Result<Self> {
        if window >= 1 && tolerance >= 0.0 {
            Ok(Self { window, tolerance, ..Self::default() })
        } else {
            Err(Error::Invalid(format!(
                "a stop needs a window of at least 1 and a tolerance of at least 0, not {window} and {tolerance}"
            )))
        }
    }

    /// Takes in the parameters and returns the mean of the last δ's (at most W of them); nothing the first
    /// time, as there is no change yet.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of parameters than before.
    pub fn update(&mut self, parameters: impl IntoIterator<Item = f64>) -> Result<Option<f64>> {
        let first = self.previous.is_empty();
        let (mut sum, mut count) = (0.0, 0);
        for new in parameters {
            if first {
                self.previous.push(new);
            } else if let Some(old) = self.previous.get_mut(count) {
                let size = 0.5 * (new.abs() + old.abs());
                let change = (new - *old).abs();
                sum += if change == 0.0 { 0.0 } else { change / size };
                *old = new;
            }
            count += 1;
        }
        if count != self.previous.len() {
            return Err(Error::Shape {
                what: "the parameters of a stop".into(),
                expected: format!("{} numbers", self.previous.len()),
                found: count.to_string(),
            });
        }
        if first || count == 0 {
            return Ok(None);
        }
        if self.changes.len() == self.window {
            self.changes.remove(0);
        }
        self.changes.push(sum / count as f64);
        Ok(Some(self.mean()))
    }

    fn mean(&self) -> f64 {
        self.changes.iter().sum::<f64>() / self.changes.len() as f64
    }

    /// Returns the last δ, if there is one.
    pub fn last(&self) -> Option<f64> {
        self.changes.last().copied()
    }

    /// Returns whether W changes are there and their mean is below ε.
    pub fn converged(&self) -> bool {
        self.changes.len() == self.window && self.mean() < self.tolerance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{stream, uniform};

    #[test]
    fn the_rate_is_high_for_a_signal_and_low_for_noise() {
        let mut rng = stream(5, "gradients");
        let mut noise = |scale: f64| -> Vec<f64> {
            (0..40).map(|_| scale * (2.0 * uniform(&mut rng) - 1.0)).collect()
        };
        let mut rate = AdaptiveRate::default();
        for _ in 0..50 {
            rate.initialise(noise(0.1).iter().map(|g| g + 3.0)).unwrap();
        }
        assert_eq!(rate.memory(), 50.0);
        assert!(rate.update(noise(0.1).iter().map(|g| g + 3.0)).unwrap() > 0.99);
        let mut last = 1.0;
        for _ in 0..400 {
            last = rate.update(noise(3.0)).unwrap();
            assert!((1e-3..=1.0).contains(&last));
        }
        assert!(last < 0.05, "{last}");
        // a signal again
        for _ in 0..300 {
            last = rate.update(noise(0.1).iter().map(|g| g + 3.0)).unwrap();
        }
        assert!(last > 0.9, "{last}");
    }

    #[test]
    fn states_survive_json_and_errors_name_the_culprit() {
        let mut rate = AdaptiveRate::with_floor(0.25).unwrap();
        rate.initialise([1.0, -1.0]).unwrap();
        rate.update([0.3, 0.1]).unwrap();
        let json = serde_json::to_string(&rate).unwrap();
        let mut copy: AdaptiveRate = serde_json::from_str(&json).unwrap();
        assert_eq!(rate.update([-5.0, 0.7]).unwrap(), copy.update([-5.0, 0.7]).unwrap());
        assert_eq!(rate, copy);
        assert!(rate.initialise([0.0, 0.0]).unwrap_err().to_string().contains("before the first"));
        let message = rate.update([1.0]).unwrap_err().to_string();
        assert!(message.contains("expected 2 numbers, found 1"), "{message}");
        assert!(rate.update([1.0, 2.0, 3.0]).is_err());
        assert!(rate.update([f64::NAN, 0.0]).unwrap_err().to_string().contains("norm"));
        assert!(AdaptiveRate::with_floor(1.5).is_err());
        // exactly opposite gradients: the floor
        let mut rate = AdaptiveRate::with_floor(0.25).unwrap();
        rate.initialise([1.0]).unwrap();
        rate.initialise([-1.0]).unwrap();
        rate.initialise([1.0]).unwrap();
        assert_eq!(rate.update([-0.5]).unwrap(), 0.25);
        // nothing but zeros: no division by 0
        assert_eq!(AdaptiveRate::default().update([0.0, 0.0]).unwrap(), 1.0);
    }

    #[test]
    fn the_stop_waits_for_a_full_window_of_small_changes() {
        let mut stop = RelativeChange::new(2, 1e-3).unwrap();
        assert_eq!(stop.update([2.0, 0.0]).unwrap(), None);
        // |1|/2.5 and 0/0
        assert_eq!(stop.update([3.0, 0.0]).unwrap(), Some(0.2));
        assert!(!stop.converged());
        assert_eq!(stop.update([3.0, 0.0]).unwrap(), Some(0.1));
        assert_eq!(stop.last(), Some(0.0));
        assert!(!stop.converged());
        stop.update([3.0, 0.0]).unwrap();
        assert!(stop.converged());
        let copy: RelativeChange =
            serde_json::from_str(&serde_json::to_string(&stop).unwrap()).unwrap();
        assert_eq!(copy, stop);
        assert!(stop.update([1.0]).unwrap_err().to_string().contains("expected 2"));
        assert!(RelativeChange::new(0, 1e-3).is_err());
        let mut one = RelativeChange::new(1, 1e-3).unwrap();
        one.update([1.0]).unwrap();
        one.update([1.0005]).unwrap();
        assert!(one.converged());
    }
}

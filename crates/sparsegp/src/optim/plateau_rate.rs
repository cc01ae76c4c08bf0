//! Learning rates that fall where the objective does.

use serde::{Deserialize, Serialize};

/// Multiplies a learning rate by `factor` whenever `patience` values in a row were not below the lowest so far,
/// down to `least`. After a fall the count begins again, the lowest value stays.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlateauRate {
    /// Above 0, below 1.
    pub factor: f64,
    /// Values without progress.
    pub patience: usize,
    /// The smallest rate.
    pub least: f64,
}

/// A rate that falls by a [`PlateauRate`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FallingRate {
    rate: f64,
    best: Option<f64>,
    waited: usize,
}

impl PlateauRate {
    /// Starts from this rate.
    pub fn start(&self, rate: f64) -> FallingRate {
        FallingRate { rate, best: None, waited: 0 }
    }
}

impl FallingRate {
    /// Returns the rate now.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Sees a value of what is minimised; returns the rate after it.
    pub fn see(&mut self, rule: &PlateauRate, value: f64) -> f64 {
        if self.best.is_none_or(|best| value < best) {
            (self.best, self.waited) = (Some(value), 0);
            return self.rate;
        }
        self.waited += 1;
        if self.waited >= rule.patience {
            self.rate = f64::max(self.rate * rule.factor, rule.least.min(self.rate));
            self.waited = 0;
        }
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_fall_only_on_plateaus() {
        let rule = PlateauRate { factor: 0.1, patience: 2, least: 5e-3 };
        let mut rate = rule.start(1.0);
        let seen: Vec<f64> = [3.0, 2.0, 2.0, 2.5, f64::NAN, 1.0, 4.0, 4.0, 4.0, 4.0, 9.0, 9.0]
            .map(|v| rate.see(&rule, v))
            .to_vec();
        let expected = [1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.1, 0.01, 0.01, 5e-3, 5e-3, 5e-3];
        assert!(seen.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{seen:?}");
        // a rate below the least does not rise
        let mut low = rule.start(1e-3);
        assert!([1.0, 1.0, 1.0, 1.0].iter().all(|v| low.see(&rule, *v) == 1e-3));
    }
}

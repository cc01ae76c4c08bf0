//! Monotone functions of targets: what a model sees is the standardised value of one.

use super::Scaler;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// A rising function of a target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetTransform {
    /// The logarithm, of positive targets.
    Log,
    /// That of Yeo & Johnson (2000) of z = (y − centre)/scale: ((1 + z)^λ − 1)/λ for z ≥ 0, −((1 − z)^(2 − λ) − 1)/(2 − λ) below.
    YeoJohnson {
        /// λ, from 0 to 2; 1 changes nothing but the scale.
        lambda: f64,
        /// The mean of the targets.
        centre: f64,
        /// Their standard deviation.
        scale: f64,
    },
}

/// Returns ((1 + z)^λ − 1)/λ for z ≥ 0, log(1 + z) for λ = 0.
fn power(z: f64, lambda: f64) -> f64 {
    let log = z.ln_1p();
    if lambda == 0.0 { log } else { (lambda * log).exp_m1() / lambda }
}

/// Inverts [`power`].
fn root(g: f64, lambda: f64) -> f64 {
    if lambda == 0.0 { g.exp_m1() } else { ((lambda * g).ln_1p() / lambda).exp_m1() }
}

impl TargetTransform {
    /// Refuses numbers that no learning gives.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self) -> Result<()> {
        match *self {
            Self::YeoJohnson { lambda, centre, scale }
                if !((0.0..=2.0).contains(&lambda)
                    && centre.is_finite()
                    && scale > 0.0
                    && scale.is_finite()) =>
            {
                Err(Error::Invalid(format!(
                    "a transform of targets with λ = {lambda}, centre {centre} and scale {scale}: λ is from 0 to 2, and the \
                     scale above 0"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns the value of a target; −∞ for one that cannot be.
    pub fn of(&self, y: f64) -> f64 {
        match *self {
            Self::Log if y <= 0.0 => f64::NEG_INFINITY,
            Self::Log => y.ln(),
            Self::YeoJohnson { lambda, centre, scale } => {
                let z = (y - centre) / scale;
                if z < 0.0 { -power(-z, 2.0 - lambda) } else { power(z, lambda) }
            }
        }
    }

    /// Returns the target of a value.
    pub fn inverse(&self, g: f64) -> f64 {
        match *self {
            Self::Log => g.exp(),
            Self::YeoJohnson { lambda, centre, scale } => {
                let z = if g < 0.0 { -root(-g, 2.0 - lambda) } else { root(g, lambda) };
                centre + scale * z
            }
        }
    }

    /// Returns the logarithm of the slope at a target; 0 at one that cannot be.
    pub fn log_slope(&self, y: f64) -> f64 {
        match *self {
            Self::Log if y <= 0.0 => 0.0,
            Self::Log => -y.ln(),
            Self::YeoJohnson { lambda, centre, scale } => {
                let z = (y - centre) / scale;
                let own = (lambda - 1.0) * z.signum() * z.abs().ln_1p();
                if own.is_nan() { own } else { own - scale.ln() }
            }
        }
    }
}

impl std::fmt::Display for TargetTransform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Log => write!(f, "the logarithm"),
            Self::YeoJohnson { lambda, .. } => write!(f, "Yeo–Johnson with λ = {lambda:.2}"),
        }
    }
}

impl Scaler {
    /// Returns the function of a target that is standardised, if it is not the target itself.
    pub fn transform(&self, target: usize) -> Option<&TargetTransform> {
        self.y_transform.get(target)?.as_ref()
    }

    /// Tells whether functions of targets are standardised.
    pub fn is_transformed(&self) -> bool {
        self.y_transform.iter().any(Option::is_some)
    }

    /// Returns a standardised value in the target's own units: of quantiles and draws, not of means.
    pub fn unscaled(&self, target: usize, value: f64) -> f64 {
        let own = value * self.y_scale[target] + self.y_mean[target];
        self.transform(target).map_or(own, |transform| transform.inverse(own))
    }

    /// Returns the logarithm of the slope of a standardised value in the target, at the target.
    pub fn log_slope(&self, target: usize, y: f64) -> f64 {
        let own = self.transform(target).map_or(0.0, |transform| transform.log_slope(y));
        own - self.y_scale[target].ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<TargetTransform> {
        let lambdas = [0.0, 0.3, 1.0, 1.6, 2.0].into_iter();
        let powers =
            lambdas.map(|lambda| TargetTransform::YeoJohnson { lambda, centre: 3.0, scale: 2.5 });
        std::iter::once(TargetTransform::Log).chain(powers).collect()
    }

    #[test]
    fn inverses_give_targets_back_and_slopes_are_those_of_differences() {
        for own in all() {
            for y in [0.02, 0.7, 2.9, 3.1, 8.0, 40.0] {
                let back = own.inverse(own.of(y));
                assert!((back - y).abs() < 1e-12 * (1.0 + y), "{own:?} {y}: {back}");
                let step = 1e-6 * y;
                let slope = (own.of(y + step) - own.of(y - step)) / (2.0 * step);
                let error = own.log_slope(y) - slope.ln();
                assert!(error.abs() < 1e-7, "{own:?} {y}: {error}");
            }
        }
    }

    #[test]
    fn the_power_one_is_the_standardised_target() {
        let own = TargetTransform::YeoJohnson { lambda: 1.0, centre: 3.0, scale: 2.5 };
        for y in [-7.0, 0.0, 3.0, 11.0] {
            assert!((own.of(y) - (y - 3.0) / 2.5).abs() < 1e-14);
        }
    }

    #[test]
    fn what_cannot_be_has_no_density() {
        assert_eq!(TargetTransform::Log.of(-1.0), f64::NEG_INFINITY);
        assert_eq!(TargetTransform::Log.log_slope(0.0), 0.0);
        // a missing target is missing
        assert!(TargetTransform::Log.of(f64::NAN).is_nan());
    }
}

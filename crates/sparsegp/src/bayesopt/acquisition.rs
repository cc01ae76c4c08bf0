//! How much a point promises: acquisition functions of means and standard deviations, with their slopes.

use crate::error::{Error, Result};
use crate::special::{log_normal_cdf_slopes, log_normal_excess};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How the next points are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Acquisition {
    /// The logarithm of the expected improvement on the best point so far, plus the log probability that constraints hold
    /// (`ei`).
    #[default]
    ExpectedImprovement,
    /// The upper confidence bound, `beta` standard deviations above the mean, where constraints may hold by their own bounds
    /// (`ucb(beta=2)`).
    UpperBound {
        /// Standard deviations.
        beta: f64,
    },
    /// The best point of a function drawn from the posterior, where constraints drawn likewise hold (`thompson`).
    Thompson,
}

/// Standard deviations of [`Acquisition::UpperBound`] unless a number is given.
const BETA: f64 = 2.0;

impl FromStr for Acquisition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let beta = plain.strip_prefix("ucb(beta=").and_then(|rest| rest.strip_suffix(')'));
        match (plain.as_str(), beta.map(str::parse::<f64>)) {
            ("ei", _) => Ok(Self::ExpectedImprovement),
            ("ucb", _) => Ok(Self::UpperBound { beta: BETA }),
            ("thompson", _) => Ok(Self::Thompson),
            (_, Some(Ok(beta))) if beta >= 0.0 && beta.is_finite() => Ok(Self::UpperBound { beta }),
            _ => Err(Error::Invalid(format!(
                "there is no acquisition function `{text}`: choose `ei`, `ucb`, `ucb(beta=3)` (standard deviations, a \
                 number that is not negative) or `thompson`"
            ))),
        }
    }
}

impl fmt::Display for Acquisition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExpectedImprovement => f.write_str("ei"),
            Self::UpperBound { beta } => write!(f, "ucb(beta={beta})"),
            Self::Thompson => f.write_str("thompson"),
        }
    }
}

impl From<Acquisition> for String {
    fn from(own: Acquisition) -> Self {
        own.to_string()
    }
}

impl TryFrom<String> for Acquisition {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

/// A value with its slopes in a mean and in a standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slopes {
    /// The value.
    pub value: f64,
    /// Its slope in the mean.
    pub mean: f64,
    /// Its slope in the standard deviation.
    pub sd: f64,
}

/// Returns log E[max(0, f − best)] for f ~ N(mean, sd²), sd > 0, with its slopes.
///
/// With u = (mean − best)/sd it is log sd + log{φ(u) + uΦ(u)} (Jones, Schonlau & Welch 1998, Eq. 15), which has all its digits
/// wherever u is: where the expected improvement itself is 0 by rounding its logarithm still has a slope (Ament et al. 2023,
/// "Unexpected improvements to expected improvement", Eq. 9).
///
/// ```
/// use sparsegp::bayesopt::log_expected_improvement;
/// // fifty standard deviations below the best
/// let far = log_expected_improvement(-5.0, 0.1, 0.0);
/// assert!((far.value - -1261.05).abs() < 0.01 && far.mean > 0.0);
/// ```
pub fn log_expected_improvement(mean: f64, sd: f64, best: f64) -> Slopes {
    let [log, cdf, density] = log_normal_excess((mean - best) / sd);
    Slopes { value: sd.ln() + log, mean: cdf / sd, sd: density / sd }
}

/// Returns log P(c ≤ bound) for c ~ N(mean, sd²), sd > 0, with its slopes.
pub fn log_probability_below(mean: f64, sd: f64, bound: f64) -> Slopes {
    let z = (bound - mean) / sd;
    let [log, rho, _] = log_normal_cdf_slopes(z);
    Slopes { value: log, mean: -rho / sd, sd: -rho * z / sd }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slopes against differences, in the middle and far out.
    #[test]
    fn slopes_are_those_of_differences() {
        for (mean, sd, other) in [
            (0.3, 0.7, 0.9),
            (2.0, 0.5, -1.0),
            (-3.0, 0.2, 1.0),
            (-40.0, 0.05, 3.0),
            (1.0, 2.0, 1.0),
        ] {
            for of in [log_expected_improvement, log_probability_below] {
                let Slopes { value, mean: by_mean, sd: by_sd } = of(mean, sd, other);
                assert!(value.is_finite());
                let h = 1e-6;
                let numeric =
                    (of(mean + h, sd, other).value - of(mean - h, sd, other).value) / (2.0 * h);
                assert!(
                    (by_mean - numeric).abs() < 1e-5 * numeric.abs().max(1e-3),
                    "{by_mean} {numeric}"
                );
                let h = 1e-6 * sd;
                let numeric =
                    (of(mean, sd + h, other).value - of(mean, sd - h, other).value) / (2.0 * h);
                assert!(
                    (by_sd - numeric).abs() < 1e-5 * numeric.abs().max(1e-3),
                    "{by_sd} {numeric}"
                );
            }
        }
    }

    /// The expectation by a sum over a grid.
    #[test]
    fn the_expected_improvement_is_the_expectation() {
        let (mean, sd, best) = (-0.4, 1.3, 0.8);
        let step = 1e-4;
        let sum: f64 = (0..120_000)
            .map(|i| best + f64::from(i) * step)
            .map(|f| (f - best) * (-0.5 * ((f - mean) / sd).powi(2)).exp() * step)
            .sum();
        let expected = sum / (sd * std::f64::consts::TAU.sqrt());
        let found = log_expected_improvement(mean, sd, best).value.exp();
        assert!((found - expected).abs() < 1e-7, "{found} {expected}");
    }

    #[test]
    fn names_are_read_and_written() {
        for text in ["ei", "ucb(beta=3.5)", "thompson"] {
            assert_eq!(text.parse::<Acquisition>().expect("a name").to_string(), text);
        }
        assert_eq!("ucb".parse::<Acquisition>().expect("a name").to_string(), "ucb(beta=2)");
        for text in ["pi", "ucb(beta=-1)", "ucb(beta=x)", "ucb(3)"] {
            let refused = text.parse::<Acquisition>().expect_err("no name").to_string();
            assert!(refused.contains("choose `ei`"), "{refused}");
        }
    }
}

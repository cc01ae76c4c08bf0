//! What likelihoods of one latent value ask of their targets: checks, spreads and starting values.

use super::{Extra, Target};
use crate::params::Param;

/// Sets a starting value from the data, unless the specification gave one or it is out of range.
pub fn start(param: &mut Param, value: f64) {
    if !param.given && param.transform().contains(value) {
        // in range and of the right length
        let set = param.set("", &[value]);
        debug_assert!(set.is_ok());
    }
}

/// Returns the mean and variance of numbers.
pub fn spread(numbers: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = numbers.clone().count().max(1) as f64;
    let mean = numbers.clone().sum::<f64>() / n;
    (mean, numbers.map(|y| (y - mean) * (y - mean)).sum::<f64>() / n)
}

/// Returns the median and median distance from it.
pub fn robust_spread(targets: &[Target]) -> (f64, f64) {
    let median = |mut numbers: Vec<f64>| {
        let middle = numbers.len() / 2;
        *numbers.select_nth_unstable_by(middle, f64::total_cmp).1
    };
    let centre = median(targets.iter().map(|t| t.y).collect());
    (centre, median(targets.iter().map(|t| (t.y - centre).abs()).collect()))
}

/// Checks a real number.
pub fn finite(target: Target) -> std::result::Result<(), String> {
    if target.y.is_finite() { Ok(()) } else { Err("is not a finite number".into()) }
}

/// Checks a positive number.
pub fn positive(target: Target) -> std::result::Result<(), String> {
    if target.y > 0.0 && target.y.is_finite() {
        Ok(())
    } else {
        Err("is not a positive finite number".into())
    }
}

/// Checks a count with an exposure.
pub fn count(target: Target) -> std::result::Result<(), String> {
    if !crate::special::is_count(target.y) {
        Err("is not a count (0, 1, 2, …)".into())
    } else if !(target.extra > 0.0 && target.extra.is_finite()) {
        Err(format!("has the exposure {}, which must be positive and finite", target.extra))
    } else {
        Ok(())
    }
}

/// The exposure that a row may bring.
pub const EXPOSURE: Extra = Extra { name: "exposure", default: Some(1.0) };

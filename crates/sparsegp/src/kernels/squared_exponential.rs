//! Squared exponential: k = σ² exp(−ϱ²/2).

use super::radial::{Profile, build};
use super::registry::Entry;
use crate::linalg::exp::exp;

/// κ(ϱ²) = exp(−ϱ²/2).
#[derive(Clone, Copy, Debug, Default)]
pub struct SquaredExponential;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: SquaredExponential::NAME,
    aliases: &["squared_exponential", "squaredexponential", "se", "gaussian"],
    about: "squared exponential, variance·exp(−ϱ²/2): very smooth functions",
    build: build::<SquaredExponential>,
};

impl Profile for SquaredExponential {
    const NAME: &'static str = "rbf";
    const SLOPE_OVER_VALUE: Option<f64> = Some(-0.5);
    const EXACT_DISTANCES: bool = false;
    const IS_SQUARED_EXPONENTIAL: bool = true;

    #[inline(always)]
    fn value_and_slope<const FMA: bool>(d2: f64) -> (f64, f64) {
        let value = exp::<FMA>(-0.5 * d2);
        (value, -0.5 * value)
    }

    fn frequency_scale(_: &mut dyn rand::Rng) -> Option<f64> {
        Some(1.0)
    }
}

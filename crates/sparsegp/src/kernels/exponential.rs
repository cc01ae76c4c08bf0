//! Exponential: k = σ² exp(−ϱ/2), the convention of GPflow (Matthews et al. 2017): a Matérn kernel of
//! order 1/2 whose lengthscale is twice as long. (`matern12` is exp(−ϱ).)

use super::matern::student_t_scale;
use super::radial::{Profile, build};
use super::registry::Entry;
use crate::linalg::exp::exp;

/// κ = e^{−ϱ/2}.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exponential;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: Exponential::NAME,
    aliases: &[],
    about: "exponential, variance·exp(−ϱ/2): matern12 with twice the lengthscale",
    build: build::<Exponential>,
};

impl Profile for Exponential {
    const NAME: &'static str = "exponential";
    const STATES: Option<(usize, f64)> = Some((1, 0.5));
    const SLOPE_OVER_VALUE: Option<f64> = None;
    const EXACT_DISTANCES: bool = true;

    #[inline(always)]
    fn value_and_slope<const FMA: bool>(d2: f64) -> (f64, f64) {
        let r = d2.sqrt();
        let value = exp::<FMA>(-0.5 * r);
        // −e^{−ϱ/2}/(4ϱ) has no limit at 0: coincident points exert no force, as a subgradient
        let slope = if d2 > 0.0 { -0.25 * value / r } else { 0.0 };
        (value, slope)
    }

    fn frequency_scale(rng: &mut dyn rand::Rng) -> Option<f64> {
        student_t_scale(1.0, rng).map(|scale| 0.5 * scale)
    }
}

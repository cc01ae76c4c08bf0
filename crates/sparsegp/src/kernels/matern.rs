//! Matérn kernels of order 1/2, 3/2 and 5/2 (Rasmussen & Williams 2006, Eq. 4.17).

use super::radial::{Profile, build};
use super::registry::Entry;
use crate::linalg::exp::exp;
use rand_distr::{ChiSquared, Distribution};

/// κ = e^{−ϱ}.
#[derive(Clone, Copy, Debug, Default)]
pub struct Matern12;
/// κ = (1 + √3ϱ) e^{−√3ϱ}.
#[derive(Clone, Copy, Debug, Default)]
pub struct Matern32;
/// κ = (1 + √5ϱ + 5ϱ²/3) e^{−√5ϱ}.
#[derive(Clone, Copy, Debug, Default)]
pub struct Matern52;

/// Registry entry.
pub const ENTRY_12: Entry = Entry {
    name: Matern12::NAME,
    aliases: &["matern-1/2", "exponential_covariance", "ou"],
    about: "Matérn 1/2, variance·exp(−ϱ): rough, continuous functions",
    build: build::<Matern12>,
};
/// Registry entry.
pub const ENTRY_32: Entry = Entry {
    name: Matern32::NAME,
    aliases: &["matern-3/2"],
    about: "Matérn 3/2: functions with one derivative",
    build: build::<Matern32>,
};
/// Registry entry.
pub const ENTRY_52: Entry = Entry {
    name: Matern52::NAME,
    aliases: &["matern-5/2", "matern"],
    about: "Matérn 5/2: functions with two derivatives",
    build: build::<Matern52>,
};

/// Draws t: the spectral density of order ν is a multivariate Student t of 2ν degrees of freedom
/// (Rasmussen & Williams 2006, Eq. 4.15): t = √(2ν/u), u ~ χ² of 2ν degrees.
pub(super) fn student_t_scale(df: f64, rng: &mut dyn rand::Rng) -> Option<f64> {
    let u: f64 = ChiSquared::new(df).ok()?.sample(rng);
    Some((df / u).sqrt())
}

const SQRT_3: f64 = 1.732_050_807_568_877_2;
const SQRT_5: f64 = 2.236_067_977_499_79;

impl Profile for Matern12 {
    const NAME: &'static str = "matern12";
    const STATES: Option<(usize, f64)> = Some((1, 1.0));
    const SLOPE_OVER_VALUE: Option<f64> = None;
    const EXACT_DISTANCES: bool = true;

    #[inline(always)]
    fn value_and_slope<const FMA: bool>(d2: f64) -> (f64, f64) {
        let r = d2.sqrt();
        let value = exp::<FMA>(-r);
        // −e^{−ϱ}/(2ϱ) has no limit at 0: coincident points exert no force, as a subgradient
        let slope = if d2 > 0.0 { -0.5 * value / r } else { 0.0 };
        (value, slope)
    }

    fn frequency_scale(rng: &mut dyn rand::Rng) -> Option<f64> {
        student_t_scale(1.0, rng)
    }
}

impl Profile for Matern32 {
    const NAME: &'static str = "matern32";
    const STATES: Option<(usize, f64)> = Some((2, SQRT_3));
    const SLOPE_OVER_VALUE: Option<f64> = None;
    const EXACT_DISTANCES: bool = false;

    #[inline(always)]
    fn value_and_slope<const FMA: bool>(d2: f64) -> (f64, f64) {
        let t = SQRT_3 * d2.sqrt();
        let e = exp::<FMA>(-t);
        ((1.0 + t) * e, -1.5 * e)
    }

    fn frequency_scale(rng: &mut dyn rand::Rng) -> Option<f64> {
        student_t_scale(3.0, rng)
    }
}

impl Profile for Matern52 {
    const NAME: &'static str = "matern52";
    const STATES: Option<(usize, f64)> = Some((3, SQRT_5));
    const SLOPE_OVER_VALUE: Option<f64> = None;
    const EXACT_DISTANCES: bool = false;

    #[inline(always)]
    fn value_and_slope<const FMA: bool>(d2: f64) -> (f64, f64) {
        let t = SQRT_5 * d2.sqrt();
        let e = exp::<FMA>(-t);
        ((1.0 + t + 5.0 / 3.0 * d2) * e, -5.0 / 6.0 * (1.0 + t) * e)
    }

    fn frequency_scale(rng: &mut dyn rand::Rng) -> Option<f64> {
        student_t_scale(5.0, rng)
    }
}

//! γ-exponential (Rasmussen & Williams 2006, Eq. 4.18): k = σ² exp(−ϱ^γ), 0 < γ < 2. γ = 1 is Matérn 1/2; γ → 2
//! is a squared exponential, with lengthscales √2 times those of `rbf`.

use super::radial::{Correlation, build};
use super::registry::Entry;
use crate::linalg::exp::{exp, ln};
use crate::params::{Param, Shape, Transform};
use rand_distr::{Distribution, Exp1};

const NAME: &str = "gamma_exponential";

/// Squared distances that count as 0: the slope has no limit there, and its powers would overflow.
const NEAR: f64 = 1e-60;

/// κ(ϱ²) = exp(−(ϱ²)^{γ/2}).
#[derive(Clone, Copy, Debug)]
pub struct GammaExponential {
    gamma: f64,
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: NAME,
    aliases: &["gammaexponential", "gamma-exponential", "powered_exponential"],
    about: "γ-exponential, variance·exp(−ϱ^gamma), 0 < gamma < 2: rough functions, the smoother the larger gamma",
    build: build::<GammaExponential>,
};

impl Default for GammaExponential {
    /// Creates the kernel as rough as `matern12`.
    fn default() -> Self {
        Self { gamma: 1.0 }
    }
}

impl Correlation for GammaExponential {
    const SLOPE_OVER_VALUE: Option<f64> = None;
    const EXACT_DISTANCES: bool = true;

    fn name(&self) -> &'static str {
        NAME
    }

    fn shapes(&self) -> Vec<(&'static str, Param)> {
        let range = Transform::Interval { lower: 0.0, upper: 2.0 };
        vec![("gamma", Param::with(vec![self.gamma], Shape::Scalar, range))]
    }

    fn at(&self, shapes: &[(&'static str, Param)]) -> Self {
        Self { gamma: shapes[0].1.scalar() }
    }

    #[inline(always)]
    fn value_and_slope<const FMA: bool>(&self, d2: f64) -> (f64, f64) {
        let apart = if d2 > NEAR { d2 } else { 1.0 };
        let power = exp::<FMA>(0.5 * self.gamma * ln::<FMA>(apart));
        let value = exp::<FMA>(-power);
        // ∂ϱ^γ/∂ϱ² = ½γ ϱ^γ/ϱ²; coincident points exert no force, as a subgradient
        let slope = -0.5 * self.gamma * power / apart * value;
        (if d2 > NEAR { value } else { 1.0 }, if d2 > NEAR { slope } else { 0.0 })
    }

    /// Uses exp(−(ϱ²)^a) = E exp(−Sϱ²) with a positive a-stable S, a = γ/2 (drawn by Kanter 1975):
    /// t = √(2S).
    fn frequency_scale(&self, rng: &mut dyn rand::Rng) -> Option<f64> {
        let a = 0.5 * self.gamma;
        // inside (0, π)
        let u = std::f64::consts::PI * (1.0 - crate::rng::uniform(&mut *rng)).min(1.0 - 1e-16);
        let w: f64 = Exp1.sample(rng);
        let stable =
            (a * u).sin() / u.sin().powf(1.0 / a) * (((1.0 - a) * u).sin() / w).powf((1.0 - a) / a);
        Some((2.0 * stable).sqrt())
    }

    /// Returns ∂ϱ^γ/∂γ = ϱ^γ log ϱ.
    #[inline(always)]
    fn shape_slope<const FMA: bool>(&self, _: usize, d2: f64) -> f64 {
        let apart = if d2 > NEAR { d2 } else { 1.0 };
        let log = ln::<FMA>(apart);
        let power = exp::<FMA>(0.5 * self.gamma * log);
        -exp::<FMA>(-power) * power * 0.5 * log
    }
}

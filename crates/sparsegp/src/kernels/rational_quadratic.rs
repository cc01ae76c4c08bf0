//! Rational quadratic (Rasmussen & Williams 2006, Eq. 4.19): k = σ² (1 + ϱ²/2α)^{−α}, a mixture of squared
//! exponentials of all lengthscales; α → ∞ is the squared exponential.

use super::radial::{Correlation, build};
use super::registry::Entry;
use crate::linalg::exp::{exp, ln_1p};
use crate::params::Param;
use rand_distr::{Distribution, Gamma};

const NAME: &str = "rational_quadratic";

/// κ(ϱ²) = (1 + ϱ²/2α)^{−α}.
#[derive(Clone, Copy, Debug)]
pub struct RationalQuadratic {
    alpha: f64,
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: NAME,
    aliases: &["rationalquadratic", "rational-quadratic", "rq"],
    about: "rational quadratic, variance·(1 + ϱ²/2α)^−α: smooth functions on many scales at once",
    build: build::<RationalQuadratic>,
};

impl Default for RationalQuadratic {
    fn default() -> Self {
        Self { alpha: 1.0 }
    }
}

impl Correlation for RationalQuadratic {
    const SLOPE_OVER_VALUE: Option<f64> = None;
    const EXACT_DISTANCES: bool = false;

    fn name(&self) -> &'static str {
        NAME
    }

    fn shapes(&self) -> Vec<(&'static str, Param)> {
        vec![("alpha", Param::positive(self.alpha))]
    }

    fn at(&self, shapes: &[(&'static str, Param)]) -> Self {
        Self { alpha: shapes[0].1.scalar() }
    }

    #[inline(always)]
    fn value_and_slope<const FMA: bool>(&self, d2: f64) -> (f64, f64) {
        let t = 0.5 * d2 / self.alpha;
        let value = exp::<FMA>(-self.alpha * ln_1p::<FMA>(t));
        (value, -0.5 * value / (1.0 + t))
    }

    /// Uses (1 + ϱ²/2α)^{−α} = E exp(−½τϱ²) with τ ~ Gamma of shape α and mean 1.
    fn frequency_scale(&self, rng: &mut dyn rand::Rng) -> Option<f64> {
        let gamma = Gamma::new(self.alpha, 1.0 / self.alpha).ok()?;
        let precision: f64 = gamma.sample(rng);
        Some(precision.sqrt())
    }

    /// Returns ∂κ/∂α = κ {t/(1 + t) − log(1 + t)}: with t = ϱ²/2α, log κ = −α log(1 + t).
    #[inline(always)]
    fn shape_slope<const FMA: bool>(&self, _: usize, d2: f64) -> f64 {
        let t = 0.5 * d2 / self.alpha;
        let log = ln_1p::<FMA>(t);
        exp::<FMA>(-self.alpha * log) * (t / (1.0 + t) - log)
    }
}

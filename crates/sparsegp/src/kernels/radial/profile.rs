//! What tells a stationary kernel from the others: κ and its slopes.

use crate::params::Param;

/// κ and its slope.
pub trait Profile: Copy + Default + Send + Sync + std::fmt::Debug + 'static {
    /// Name of the kernel.
    const NAME: &'static str;
    /// `Some(c)` where κ′ = c·κ, so that the slope needs no memory.
    const SLOPE_OVER_VALUE: Option<f64>;
    /// Whether distances must be exact near 0 (κ has a kink there), whatever it costs.
    const EXACT_DISTANCES: bool;
    /// Whether κ = exp(−ϱ²/2), whose expectations under Gaussian inputs are known.
    const IS_SQUARED_EXPONENTIAL: bool = false;
    /// How many numbers the state of the Markov process has that the kernel is in one input, and λℓ ([`super::super::state_space`]).
    const STATES: Option<(usize, f64)> = None;
    /// Returns (κ(ϱ²), κ′(ϱ²)) without branches or calls; at ϱ² = 0 the slope must be finite.
    /// Implementations are `#[inline(always)]`.
    fn value_and_slope<const FMA: bool>(squared_distance: f64) -> (f64, f64);

    /// Draws as [`Correlation::frequency_scale`] does.
    fn frequency_scale(rng: &mut dyn rand::Rng) -> Option<f64> {
        let _ = rng;
        None
    }
}

/// κ with its own shape parameters. The object holds their values.
pub trait Correlation: Clone + Send + Sync + std::fmt::Debug + 'static {
    /// `Some(c)` where κ′ = c·κ whatever the shape, so that the slope needs no memory.
    const SLOPE_OVER_VALUE: Option<f64>;
    /// Whether distances must be exact near 0 (κ has a kink there), whatever it costs.
    const EXACT_DISTANCES: bool;
    /// Whether κ = exp(−ϱ²/2), whose expectations under Gaussian inputs are known.
    const IS_SQUARED_EXPONENTIAL: bool = false;

    /// As for [`Profile::STATES`].
    const STATES: Option<(usize, f64)> = None;

    /// Returns the name of the kernel.
    fn name(&self) -> &'static str;

    /// Returns the shape parameters with their names and starting values: scalars.
    fn shapes(&self) -> Vec<(&'static str, Param)> {
        Vec::new()
    }

    /// Returns this κ at other values of the shape parameters.
    #[must_use]
    fn at(&self, shapes: &[(&'static str, Param)]) -> Self {
        debug_assert!(shapes.is_empty());
        self.clone()
    }

    /// Returns (κ(ϱ²), κ′(ϱ²)) without branches or calls; at ϱ² = 0 the slope must be finite (it is
    /// multiplied by differences of 0). Implementations are `#[inline(always)]`.
    fn value_and_slope<const FMA: bool>(&self, squared_distance: f64) -> (f64, f64);

    /// Draws t ≥ 0 where κ(ϱ²) = E exp(−½t²ϱ²), a mixture of squared exponentials: then ω_q = t
    /// z_q/ℓ_q, with independent standard normal z_q and one t for all inputs, has the spectral
    /// density of the kernel. None for a κ that is not known to be one.
    fn frequency_scale(&self, rng: &mut dyn rand::Rng) -> Option<f64> {
        let _ = rng;
        None
    }

    /// Returns ∂κ(ϱ²)/∂ the shape parameter of this index, in the same manner.
    fn shape_slope<const FMA: bool>(&self, index: usize, squared_distance: f64) -> f64 {
        let _ = (index, squared_distance);
        0.0
    }
}

impl<P: Profile> Correlation for P {
    const SLOPE_OVER_VALUE: Option<f64> = P::SLOPE_OVER_VALUE;
    const EXACT_DISTANCES: bool = P::EXACT_DISTANCES;
    const IS_SQUARED_EXPONENTIAL: bool = P::IS_SQUARED_EXPONENTIAL;
    const STATES: Option<(usize, f64)> = P::STATES;

    fn name(&self) -> &'static str {
        P::NAME
    }

    #[inline(always)]
    fn value_and_slope<const FMA: bool>(&self, squared_distance: f64) -> (f64, f64) {
        P::value_and_slope::<FMA>(squared_distance)
    }

    fn frequency_scale(&self, rng: &mut dyn rand::Rng) -> Option<f64> {
        P::frequency_scale(rng)
    }
}

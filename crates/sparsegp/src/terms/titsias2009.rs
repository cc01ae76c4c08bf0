//! Titsias (2009); Titsias (2025), Eq. 8: ρ = Σ rᵢ / 2σ².

use super::{Penalty, Pooling, Term};

/// The classical bound.
pub struct Titsias2009;

impl Term for Titsias2009 {
    fn name(&self) -> &'static str {
        "titsias2009"
    }
    fn pooling(&self) -> Pooling {
        Pooling::Total
    }
    fn penalty(&self, r: f64, _: f64, noise: f64) -> Penalty {
        let by_r = 0.5 / noise;
        Penalty { value: by_r * r, by_r, by_noise: -by_r * r / noise }
    }
}

//! Titsias (2025), Eq. 16: ρ = ½ Σ log(1 + rᵢ/σ²), from the optimal factor of every row,
//! vᵢ = 1/(1 + rᵢ/σ²). It is the spherical penalty taken row by
//! row.

use super::spherical::log_penalty;
use super::{Penalty, Pooling, Term};

/// The tighter bound.
pub struct Titsias2025;

impl Term for Titsias2025 {
    fn name(&self) -> &'static str {
        "titsias2025"
    }
    fn pooling(&self) -> Pooling {
        Pooling::Rows
    }
    fn penalty(&self, r: f64, _: f64, noise: f64) -> Penalty {
        log_penalty(r, 1.0, noise)
    }
}

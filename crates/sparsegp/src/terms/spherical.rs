//! The spherical bound (Artemev, Burt & van der Wilk 2021; Titsias 2025 with V = vI):
//! ρ = (N/2) log(1 + Σ rᵢ / Nσ²) (Titsias 2025, Eq. 24).

use super::{Penalty, Pooling, Term};

/// One common factor for the unexplained variance of all rows.
pub struct Spherical;

/// Returns (n/2) log(1 + r/nσ²) with its slopes.
pub(super) fn log_penalty(r: f64, n: f64, noise: f64) -> Penalty {
    let mean = r / n;
    Penalty {
        value: 0.5 * n * (mean / noise).ln_1p(),
        by_r: 0.5 / (noise + mean),
        by_noise: -0.5 * r / (noise * (noise + mean)),
    }
}

impl Term for Spherical {
    fn name(&self) -> &'static str {
        "spherical"
    }
    fn pooling(&self) -> Pooling {
        Pooling::Total
    }
    fn penalty(&self, r: f64, rows: f64, noise: f64) -> Penalty {
        log_penalty(r, rows, noise)
    }
}

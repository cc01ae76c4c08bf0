//! The terms that tell the bounds of the collapsed family apart.
//!
//! With Gaussian noise σ² every bound is log N(y; 0, Q + σ²I) − Σ ρ, where ρ charges for the part
//! of the prior variance, rᵢ = k(xᵢ, xᵢ) − ‖φᵢ‖², that the inducing points do not explain
//! (Titsias 2025, Eq. 8, 16, 24). To add one: one file and one line in [`REGISTRY`].

mod spherical;
mod titsias2009;
mod titsias2025;

pub use spherical::Spherical;
pub use titsias2009::Titsias2009;
pub use titsias2025::Titsias2025;

use crate::error::{Error, Result};

/// Over what a penalty is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// Over the sum Σ rᵢ of all rows: its slope is one number, known after the first pass.
    Total,
    /// Over every row by itself: its slope differs from row to row.
    Rows,
}

/// A penalty with its slopes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty {
    /// ρ.
    pub value: f64,
    /// ∂ρ/∂r.
    pub by_r: f64,
    /// ∂ρ/∂σ².
    pub by_noise: f64,
}

/// One bound of the collapsed family.
pub trait Term: Send + Sync {
    /// Returns the name of the bound.
    fn name(&self) -> &'static str;
    /// Returns over what [`Term::penalty`] is taken.
    fn pooling(&self) -> Pooling;
    /// Returns ρ for unexplained variance `r`, summed over `rows` rows (1 for [`Pooling::Rows`]),
    /// at noise variance `noise`, for one target column.
    fn penalty(&self, r: f64, rows: f64, noise: f64) -> Penalty;
}

/// Every term.
pub const REGISTRY: &[&dyn Term] = &[&Titsias2009, &Spherical, &Titsias2025];

/// Returns the term of a name.
///
/// # Errors
/// [`Error::Invalid`] for a name that none has.
pub fn find(name: &str) -> Result<&'static dyn Term> {
    let own = REGISTRY.iter().find(|term| term.name() == name);
    own.copied().ok_or_else(|| Error::Invalid(format!("there is no term `{name}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_match_differences_and_the_bounds_are_ordered() {
        for term in REGISTRY {
            for (r, rows, noise) in [(0.3, 1.0, 0.2), (5.0, 7.0, 0.05), (1e-9, 1.0, 2.5)] {
                let p = term.penalty(r, rows, noise);
                let h = 1e-6 * noise;
                let by = |f: &dyn Fn(f64) -> f64| (f(h) - f(-h)) / (2.0 * h);
                let by_r = by(&|h| term.penalty(r + h, rows, noise).value);
                let by_noise = by(&|h| term.penalty(r, rows, noise + h).value);
                assert!((p.by_r - by_r).abs() < 1e-6 * (1.0 + by_r.abs()), "{}", term.name());
                assert!((p.by_noise - by_noise).abs() < 1e-6 * (1.0 + by_noise.abs()));
            }
        }
        // Jensen: per row ≤ pooled ≤ linear
        let (r, noise) = ([0.1, 0.9, 2.0], 0.3);
        let total = r.iter().sum();
        let rows: f64 = r.iter().map(|r| Titsias2025.penalty(*r, 1.0, noise).value).sum();
        let pooled = Spherical.penalty(total, 3.0, noise).value;
        let linear = Titsias2009.penalty(total, 3.0, noise).value;
        assert!(rows < pooled && pooled < linear);
    }
}

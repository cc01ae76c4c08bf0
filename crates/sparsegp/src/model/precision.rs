//! What rounding leaves of a log evidence, and where a search for hyperparameters has to stop for it.
//!
//! In double precision the factor of G = K + σ²I is that of some G + E. The entries of E are roundings: of the
//! covariances, and of the factorisation, whose backward error is bounded by γₙ₊₁|L||Lᵀ| (Higham 2002, Theorem 10.3),
//! no entry of which is above γₙ₊₁√(gᵢᵢgⱼⱼ). So let the Eᵢⱼ be independent with the standard deviation ε√(kᵢᵢkⱼⱼ), ε =
//! 2⁻⁵²: roundings add up at random, and not to n times one of them (Higham & Mary 2019). Relative to G they have the size
//!
//! ```text
//! φ = {⟨‖G^{−½} E G^{−½}‖²_F⟩}^{½} = ε Σᵢ kᵢᵢ (G⁻¹)ᵢᵢ
//! ```
//!
//! and φ is all there is to know. The first-order change −½tr(G⁻¹E) + ½αᵀEα of the log evidence (α = G⁻¹y) has standard
//! deviations ½φ and less in its two parts, means change by some φ standard deviations, variances by some fraction φ, and
//! at φ < 1 the factor exists. (The a priori bound (G⁻¹)ᵢᵢ ≤ 1/σ² gives φ ≤ ε tr K/σ², which at long lengthscales is
//! larger by factors of 10² to 10⁴. Against arithmetic of 80 digits φ itself is above the errors by 1 to 10.)
//!
//! Where the data are smooth and precise the evidence rises with the kernel's variance and its lengthscales far beyond
//! φ = 1, where what rises is rounding. A training therefore climbs F − b, with a barrier b that is 0 up to
//! φ = [`NEAR`], reaches a nat halfway to [`LIMIT`], and has no value from there on. So the search can go along the limit.

use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Mat, dot, solve_lower};

/// φ from which no training continues: a tenth of a nat, of a standard deviation, of a variance.
pub const LIMIT: f64 = 0.1;

/// φ from which on trainings are held back.
pub const NEAR: f64 = 0.01;

/// Returns φ, from the prior variances of the rows and the diagonal of G⁻¹.
pub(crate) fn rounding(prior: &[f64], inverse: impl Iterator<Item = f64>) -> f64 {
    f64::EPSILON * prior.iter().zip(inverse).map(|(k, g)| k.abs() * g).sum::<f64>()
}

/// Returns the barrier b and its slope in φ; none where there is no barrier yet.
///
/// # Errors
/// [`Error::Imprecise`] from [`LIMIT`] on.
pub(crate) fn barrier(rounding: f64, matrix: &'static str, size: usize) -> Result<(f64, f64)> {
    if rounding <= NEAR {
        return Ok((0.0, 0.0));
    }
    if rounding < LIMIT {
        // {(φ − a)/(l − φ)}²
        let left = LIMIT - rounding;
        let ratio = (rounding - NEAR) / left;
        return Ok((ratio * ratio, 2.0 * ratio * (LIMIT - NEAR) / (left * left)));
    }
    Err(Error::Imprecise { matrix, size, rounding })
}

/// Signs that φ is estimated with.
const PROBES: usize = 16;

/// Returns φ from only the factor of G, in O(N²): ε⟨‖L⁻¹D^{½}z‖²⟩ over vectors z of random signs,
/// with D = diag(k) (Hutchinson 1990). Of one eigenvalue of G that outweighs all others its
/// standard deviation is √(2/[`PROBES`]), a third; of several less.
pub(crate) fn estimate(factor: &Cholesky, prior: &[f64]) -> f64 {
    let mut rng = crate::rng::stream(0, "signs");
    let mut z = Mat::from_fn(prior.len(), PROBES, |i, _| {
        let size = prior[i].abs().sqrt();
        if crate::rng::uniform(&mut rng) < 0.5 { -size } else { size }
    });
    solve_lower(factor.l.as_ref(), z.as_mut(), crate::linalg::par_for(prior.len()));
    f64::EPSILON * dot(z.as_ref(), z.as_ref()) / PROBES as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slopes against differences, and what the documentation says of the barrier.
    #[test]
    fn the_barrier_is_smooth_and_ends_at_the_limit() {
        let at = |rounding| barrier(rounding, "G", 3).map(|(value, _)| value);
        assert_eq!(at(0.009).unwrap(), 0.0);
        assert!((at(0.5 * (NEAR + LIMIT)).unwrap() - 1.0).abs() < 1e-12);
        for rounding in [0.0101, 0.03, 0.08, 0.095] {
            let h = 1e-7;
            let difference = (at(rounding + h).unwrap() - at(rounding - h).unwrap()) / (2.0 * h);
            let (_, slope) = barrier(rounding, "G", 3).unwrap();
            assert!((slope / difference - 1.0).abs() < 1e-5, "{rounding} {slope} {difference}");
        }
        for rounding in [LIMIT, 7.0, f64::INFINITY, f64::NAN] {
            let error = at(rounding).unwrap_err();
            assert!(error.is_recoverable() && error.to_string().contains("rounding"), "{error}");
        }
    }

    #[test]
    fn probes_estimate_what_the_diagonals_give() {
        let n = 40;
        let prior: Vec<f64> = (0..n).map(|i| 3.0 + (i as f64).sin()).collect();
        for noise in [1e-9, 0.3] {
            // nearly of rank one, with eigenvalues of the size of the noise
            let g = Mat::from_fn(n, n, |i, j| {
                (prior[i] * prior[j]).sqrt() + if i == j { noise } else { 0.0 }
            });
            let factor = Cholesky::new(g.as_ref(), crate::linalg::Jitter::Absolute(0.0), "G");
            let factor = factor.unwrap();
            let inverse = factor.inverse();
            let exact = rounding(&prior, (0..n).map(|i| inverse[(i, i)]));
            let found = estimate(&factor, &prior);
            assert!((found / exact - 1.0).abs() < 0.3, "{found:e} {exact:e}");
        }
    }
}

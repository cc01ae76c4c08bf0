//! How far R-SVGP is below L-SVGP with the same λ and mean weights.

use crate::linalg::{Accum, Mat, MatRef, Par, add_row_dots, gemm, sized, times_triangular};

/// Returns bounds on vᴿ − vᴸ ≥ 0 for a block of rows, from ρ ≥ ‖E‖ (spectral norm), ρ < 1:
/// ‖Eφᵢ‖²/(1 − ρ), since the difference is φᵀE(I + E)⁻¹Eφ. `phi` are features (B×M). Infinite where
/// ρ is no less than 1.
pub fn variance_gaps(phi: MatRef<f64>, e: MatRef<f64>, rho: f64) -> Vec<f64> {
    let mut image = Mat::zeros(phi.nrows(), phi.ncols());
    gemm(image.as_mut(), Accum::Replace, phi, e, 1.0, Par::Seq);
    let mut gaps = vec![0.0; phi.nrows()];
    add_row_dots(image.as_ref(), image.as_ref(), &mut gaps);
    let factor = if rho < 1.0 { 1.0 / (1.0 - rho) } else { f64::INFINITY };
    gaps.iter_mut().for_each(|gap| *gap *= factor);
    gaps
}

/// Returns a bound on KLᴿ − KLᴸ ≥ 0 of `latents` latent functions: ½P‖E‖²_F {1 + 1/2(1 − ρ)}, ρ ≥
/// ‖E‖. With H = I + E it is ½P {tr(EH⁻¹E(H − J)) + tr E − log|H|}, of which the first part is at
/// most ‖E‖²_F as 0 ⪯ H − J = LᵀKuuL ⪯ H, and tr E − log|I + E| ≤ ½‖E‖²_F/(1 − ρ).
pub fn kl_gap(frobenius: f64, rho: f64, latents: usize) -> f64 {
    if rho >= 1.0 {
        return f64::INFINITY;
    }
    0.5 * latents as f64 * frobenius * frobenius * (1.0 + 0.5 / (1.0 - rho))
}

/// Computes the variance slacks Δᵢ = ‖kᵢ − K̃Tkᵢ‖²/s of a block of covariances with the inducing
/// points (B×M), s = min λ: vᴿ − Δ ≤ vᴸ ≤ vᴿ (Cortinovis et al., Proposition 3). With Gaussian
/// noise the variances' share of the bound's gap is at most ΣΔᵢ/2σ². `product` is K̃L; B×M work in
/// `features` and `slack`.
pub fn variance_slacks(
    k: MatRef<f64>,
    l: MatRef<f64>,
    product: MatRef<f64>,
    smallest: f64,
    features: &mut Mat<f64>,
    slack: &mut Mat<f64>,
    out: &mut Vec<f64>,
) {
    let (n, m) = (k.nrows(), k.ncols());
    sized(features, n, m);
    sized(slack, n, m);
    times_triangular(features.as_mut(), Accum::Replace, k, l, false, Par::Seq);
    slack.copy_from(k);
    gemm(slack.as_mut(), Accum::Add, features.as_ref(), product.transpose(), -1.0, Par::Seq);
    out.clear();
    out.resize(n, 0.0);
    add_row_dots(slack.as_ref(), slack.as_ref(), out);
    out.iter_mut().for_each(|v| *v /= smallest);
}

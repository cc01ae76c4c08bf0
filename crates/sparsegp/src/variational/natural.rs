//! Natural-gradient steps on q(u) in closed form.
//!
//! In whitened coordinates, with what a pass over the rows gives, Φa and G = Φ diag(b) Φᵀ (a = ∂ℓ/∂μ,
//! b = ∂ℓ/∂s, both with the scale of a minibatch), the natural gradient of the bound is the difference
//! of natural parameters (Khan & Lin 2017; Adam, Chang, Khan & Solin 2021, Eq. 21–23):
//!
//! ```text
//! S′⁻¹ = (1 − ρ) S⁻¹ + ρ (I − 2G)        m′ = m + ρ S′ (Φa − m)
//! ```
//!
//! Natural gradients do not depend on the coordinates, so that the step in u is the same one.

use super::Parts;
use crate::error::Result;
use crate::linalg::{Cholesky, Jitter, Mat, MatRef, inner_gram, invert_lower, par_for, product};

/// What the rows say about q of some latent functions.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Φa, M×l.
    pub phi_a: Mat<f64>,
    /// Φ diag(b) Φᵀ of each, both triangles.
    pub grams: Vec<Mat<f64>>,
}

/// The whitened q after a natural-gradient step of size `rate` (0 < ρ ≤ 1).
///
/// # Errors
/// [`crate::Error::NotPositiveDefinite`] if the new precision is none: the rows' curvature is negative
/// (likelihoods that are not log-concave) and the step too long.
pub fn natural_step(q: &Parts, rows: &Statistics, rate: f64) -> Result<Parts> {
    let m = q.mean.nrows();
    let mut mean = q.mean.clone();
    let mut roots = Vec::with_capacity(q.roots.len());
    for (l, (root, gram)) in q.roots.iter().zip(&rows.grams).enumerate() {
        let precision = new_precision(root.as_ref(), gram.as_ref(), rate);
        let what = "the precision of q after a natural-gradient step";
        let root = Cholesky::inverse_root(precision.as_ref(), Jitter::Absolute(0.0), what)?;
        let pull = Mat::from_fn(m, 1, |i, _| rate * (rows.phi_a[(i, l)] - q.mean[(i, l)]));
        let shift = product(root.as_ref(), product(root.transpose(), pull.as_ref()).as_ref());
        (0..m).for_each(|i| mean[(i, l)] += shift[(i, 0)]);
        roots.push(root);
    }
    Ok(Parts { mean, roots })
}

/// Lower triangle of (1 − ρ) (RRᵀ)⁻¹ + ρ (I − 2G).
fn new_precision(root: MatRef<f64>, gram: MatRef<f64>, rate: f64) -> Mat<f64> {
    let m = root.nrows();
    let mut precision = if rate < 1.0 {
        inner_gram(invert_lower(root, par_for(m)).as_ref(), par_for(m))
    } else {
        Mat::zeros(m, m)
    };
    for j in 0..m {
        for (i, p) in precision.col_as_slice_mut(j).iter_mut().enumerate() {
            *p *= 1.0 - rate;
            *p += rate * (f64::from(u8::from(i == j)) - 2.0 * gram[(i, j)]);
        }
    }
    precision
}

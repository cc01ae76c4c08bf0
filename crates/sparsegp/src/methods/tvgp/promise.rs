//! What a step of sites of all rows promises.

use super::{Look, Sited, Tvgp, covariances, sites};
use crate::error::Result;
use crate::kernels::of_latent;
use crate::linalg::{Accum, Mat, gemm, par_for, product, scale_rows, solve_lower};
use crate::model::Model;

impl Tvgp {
    /// Returns what [`crate::methods::Step::promise`] does, after a look at inputs `x`: with δ = α
    /// − d and Δ = −2 ∂ℓ/∂v − λ₂ the gradients of the bound are δ in m and −½ diag Δ in S, so that
    /// it is δᵀSδ + ½ Σᵢⱼ Δᵢ Sᵢⱼ² Δⱼ of every latent function, S = K − KTK.
    ///
    /// # Errors
    /// As for [`crate::methods::Method::evaluate`].
    pub fn promise(&self, look: &Look, model: &Model, x: &Mat<f64>) -> Result<f64> {
        let q = sites(model)?;
        let n = q.points();
        let covariances = covariances(model, x, false);
        let mut all = 0.0;
        for l in 0..q.latents() {
            let (_, k, _) = of_latent(&covariances, l);
            let (first, second) = (&q.first.value()[l * n..][..n], &q.second.value()[l * n..][..n]);
            let own = Sited::new(k, first, second)?;
            let mut a = Mat::zeros(n, n);
            scale_rows(a.as_mut(), k.as_ref(), &own.w);
            solve_lower(own.factor.l.as_ref(), a.as_mut(), par_for(n));
            let mut s = k.clone();
            gemm(s.as_mut(), Accum::Add, a.transpose(), a.as_ref(), -1.0, par_for(n));
            let slope = Mat::from_fn(n, 1, |i, _| look.a[(i, l)] - look.d[(i, l)]);
            let moved = product(s.as_ref(), slope.as_ref());
            all += (0..n).map(|i| slope[(i, 0)] * moved[(i, 0)]).sum::<f64>().max(0.0);
            let apart = |i: usize| -2.0 * look.b[(i, l)] - second[i];
            let sums = (0..n)
                .map(|j| apart(j) * (0..n).map(|i| apart(i) * s[(i, j)] * s[(i, j)]).sum::<f64>());
            all += 0.5 * sums.sum::<f64>().max(0.0);
        }
        Ok(all)
    }
}

//! What a natural-gradient step of q promises.

use super::Step;
use crate::linalg::{Accum, Mat, column, gemm, mirror_lower, par_for, product};

impl Step {
    /// Returns the squared length of the natural gradient, ∇ᵀF⁻¹∇ in the metric of the Fisher
    /// information F: by how much the bound would rise in a step of size 1 if it were linear. It
    /// does not depend on units or coordinates, and is 0 at an optimum of q. With Φa and G of the
    /// rows, ‖Rᵀ(Φa − m)‖² + ½‖Rᵀ(I − 2G)R − I‖² of every latent function, since the gradients are
    /// Φa − m and −½{(I − 2G) − S⁻¹}, and F is S⁻¹ and ½ S⁻¹ ⊗ S⁻¹. After a pass with statistics.
    pub fn promise(&self) -> f64 {
        let pairs = self.processes.iter().zip(&self.passed.processes);
        let mut all = 0.0;
        for (own, sums) in pairs.filter(|(_, sums)| !sums.grams.is_empty()) {
            let m = own.z.nrows();
            for (at, (root, gram)) in own.parts.roots.iter().zip(&sums.grams).enumerate() {
                if gram.nrows() != m {
                    continue;
                }
                let (a, mean) =
                    (column(sums.phi_a.as_ref(), at), column(own.parts.mean.as_ref(), at));
                let slope = Mat::from_fn(m, 1, |i, _| a[i] - mean[i]);
                all += squares(&product(root.transpose(), slope.as_ref()));
                let mut full = gram.clone();
                mirror_lower(full.as_mut());
                let mut y = root.clone();
                gemm(y.as_mut(), Accum::Add, full.as_ref(), root.as_ref(), -2.0, par_for(m));
                let mut apart = product(root.transpose(), y.as_ref());
                (0..m).for_each(|i| apart[(i, i)] -= 1.0);
                all += 0.5 * squares(&apart);
            }
        }
        all
    }
}

/// Returns ‖a‖².
pub(in crate::methods) fn squares(a: &Mat<f64>) -> f64 {
    (0..a.ncols()).map(|j| column(a.as_ref(), j).iter().map(|v| v * v).sum::<f64>()).sum()
}

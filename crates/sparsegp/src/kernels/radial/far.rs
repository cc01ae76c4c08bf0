//! The way back where rows are many lengthscales from each other.

use super::loops::FLOOR;
use super::{Correlation, FAR, Radial};
use crate::kernels::Cotangents;
use crate::linalg::{MatRef, column};

/// Whether a row is so far from the origin that differences are taken ([`FAR`]).
pub(super) fn is_far(x: MatRef<f64>) -> bool {
    let square = |i: usize| (0..x.ncols()).map(|q| x[(i, q)] * x[(i, q)]).sum::<f64>();
    (0..x.nrows()).any(|i| square(i) > FAR)
}

impl<C: Correlation> Radial<C> {
    /// From H, the cotangent of ϱ², to lengthscales and inputs, by the differences themselves: Σ h (x̃ − z̃)² as a sum of
    /// squares less products has the rounding ε‖x̃‖² Σ|h|, also where all rows are apart and the sum is 0. Covariances
    /// `k` at their floor have no slope. `same` where z̃ is x̃, which receives both parts.
    pub(super) fn pull_differences(
        &self,
        [xs, zs]: [MatRef<'_, f64>; 2],
        same: bool,
        [h, k]: [MatRef<'_, f64>; 2],
        sinks: &mut Cotangents<'_>,
    ) {
        let single = self.lengthscales.len() == 1;
        let floor = self.variance.scalar() * FLOOR;
        for (q, &dim) in self.dims.iter().enumerate() {
            let (x, z, inverse) = (column(xs, q), column(zs, q), self.inverse_lengthscale(q));
            let mut total = 0.0;
            for (j, zj) in z.iter().enumerate() {
                let mut to_z = 0.0;
                let pairs = column(h, j).iter().zip(column(k, j));
                for (i, (xi, (h, k))) in x.iter().zip(pairs).enumerate() {
                    // a difference may have no square, and 0 times ∞ is no number
                    if *k <= floor || *h == 0.0 {
                        continue;
                    }
                    let along = h * (xi - zj);
                    total += along * (xi - zj);
                    to_z -= along;
                    if let Some(sink) = &mut sinks.x {
                        sink[(i, dim)] += 2.0 * inverse * along;
                    }
                }
                // ∂ϱ²/∂z = 2 (z̃ − x̃)/ℓ
                let sink = if same { &mut sinks.x } else { &mut sinks.z };
                if let Some(sink) = sink {
                    sink[(j, dim)] += 2.0 * inverse * to_z;
                }
            }
            // ∂ϱ²/∂ℓ = −2 (x̃ − z̃)²/ℓ
            sinks.params[1 + if single { 0 } else { q }] -= 2.0 * inverse * total;
        }
    }
}

//! The way back by differences: where rows are many lengthscales from each other, and where κ′ has no bound.

use super::loops::FLOOR;
use super::{Correlation, FAR, Radial};
use crate::kernels::Cotangents;
use crate::linalg::{MatRef, column, column_mut, sum, sum_of_products};
use faer::reborrow::ReborrowMut;

/// Whether a row is so far from the origin that differences are taken ([`FAR`]).
pub(super) fn is_far(x: MatRef<f64>) -> bool {
    let square = |i: usize| (0..x.ncols()).map(|q| x[(i, q)] * x[(i, q)]).sum::<f64>();
    (0..x.nrows()).any(|i| square(i) > FAR)
}

/// Differences from a place, and these times h; 0 where `far` rows have a covariance at its floor, which has no slope: a difference
/// may have no square, and 0 times ∞ is no number.
fn differences(
    [x, h, k]: [&[f64]; 3],
    place: f64,
    floor: Option<f64>,
    [apart, along]: [&mut [f64]; 2],
) {
    for (i, (apart, along)) in apart.iter_mut().zip(along.iter_mut()).enumerate() {
        *apart = x[i] - place;
        *along = h[i] * *apart;
    }
    let Some(floor) = floor else { return };
    for (i, (apart, along)) in apart.iter_mut().zip(along).enumerate() {
        if k[i] <= floor || h[i] == 0.0 {
            (*apart, *along) = (0.0, 0.0);
        }
    }
}

impl<C: Correlation> Radial<C> {
    /// From H, the cotangent of ϱ², to lengthscales and inputs, by the differences themselves: Σ h (x̃ − z̃)² as a sum of
    /// squares less products has the rounding ε‖x̃‖² Σ|h|, also where all rows are apart and the sum is 0, or where they are so near
    /// that h alone is large. `same` where z̃ is x̃, which receives both parts; `far` as [`is_far`] finds it.
    pub(super) fn pull_differences(
        &self,
        [xs, zs]: [MatRef<'_, f64>; 2],
        same: bool,
        far: bool,
        [h, k]: [MatRef<'_, f64>; 2],
        sinks: &mut Cotangents<'_>,
    ) {
        let single = self.lengthscales.len() == 1;
        let floor = far.then(|| self.variance.scalar() * FLOOR);
        let [mut apart, mut along] = [vec![0.0; xs.nrows()], vec![0.0; xs.nrows()]];
        for (q, &dim) in self.dims.iter().enumerate() {
            let (x, z, inverse) = (column(xs, q), column(zs, q), self.inverse_lengthscale(q));
            let mut total = 0.0;
            for (j, zj) in z.iter().enumerate() {
                let of = [x, column(h, j), column(k, j)];
                differences(of, *zj, floor, [&mut apart, &mut along]);
                total += sum_of_products(&along, &apart);
                if let Some(sink) = &mut sinks.x {
                    let pairs = column_mut(sink.rb_mut(), dim).iter_mut().zip(&along);
                    pairs.for_each(|(sink, along)| *sink += 2.0 * inverse * along);
                }
                // ∂ϱ²/∂z = 2 (z̃ − x̃)/ℓ
                let sink = if same { &mut sinks.x } else { &mut sinks.z };
                if let Some(sink) = sink {
                    sink[(j, dim)] -= 2.0 * inverse * sum(&along, |a| a);
                }
            }
            // ∂ϱ²/∂ℓ = −2 (x̃ − z̃)²/ℓ
            sinks.params[1 + if single { 0 } else { q }] -= 2.0 * inverse * total;
        }
    }
}

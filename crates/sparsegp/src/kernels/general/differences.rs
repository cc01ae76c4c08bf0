//! Slopes by central differences of the values.

use super::General;
use crate::kernels::Cotangents;
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut, dot};
use crate::params::{Param, STEP};
use faer::reborrow::ReborrowMut;

/// Returns a step along a column of inputs, from what the rows span there.
fn step_along(columns: [&[f64]; 2]) -> f64 {
    let values = || columns.into_iter().flatten();
    let least = values().fold(f64::INFINITY, |least, v| least.min(*v));
    let most = values().fold(f64::NEG_INFINITY, |most, v| most.max(*v));
    let span = most - least;
    let scale = if span.is_finite() && span > 0.0 { span } else { most.abs().max(1.0) };
    // rounding of the inputs themselves
    (STEP * scale).max(STEP * STEP * most.abs().max(least.abs()))
}

/// Returns rows with one column moved, and the exact move.
fn moved(rows: MatRef<f64>, q: usize, h: f64) -> Mat<f64> {
    let mut moved = rows.to_owned();
    moved.col_as_slice_mut(q).iter_mut().for_each(|v| *v += h);
    moved
}

impl General {
    /// Adds the slopes of a sum that depends on the parameters.
    fn along_parameters(&self, slopes: &mut [f64], sum: impl Fn(&[&[f64]]) -> f64) {
        Param::differences(&self.params, sum, |at, up, down, apart| {
            slopes[at] += (up - down) / apart
        });
    }

    /// Adds slopes of Σ w∘k(X, Z) in everything.
    pub(super) fn by_differences(
        &self,
        rows: [MatRef<f64>; 2],
        weights: MatRef<f64>,
        sinks: &mut Cotangents<'_>,
    ) {
        self.by_differences_of_parameters(rows, weights, sinks.params);
        self.by_differences_of_x(rows, weights, sinks.x.as_mut());
        let [x, z] = rows;
        let Some(sink) = sinks.z.as_mut() else { return };
        for (q, &d) in self.dims.iter().enumerate() {
            let h = step_along([column(x, q), column(z, q)]);
            let slope = |h: f64| self.values([x, moved(z, q, h).as_ref()]);
            let (up, down) = (slope(h), slope(-h));
            let target = column_mut(sink.rb_mut(), d);
            for (j, t) in target.iter_mut().enumerate() {
                let pairs = up.col_as_slice(j).iter().zip(down.col_as_slice(j));
                let sum = pairs.zip(column(weights, j)).map(|((a, b), w)| w * (a - b)).sum::<f64>();
                *t += sum / (2.0 * h);
            }
        }
    }

    fn values(&self, [x, z]: [MatRef<f64>; 2]) -> Mat<f64> {
        let mut out = Mat::zeros(x.nrows(), z.nrows());
        self.covariance.values(&self.numbers(), x, z, out.as_mut());
        out
    }

    /// Adds slopes of Σ w∘k(X, Z) in the parameters.
    pub(super) fn by_differences_of_parameters(
        &self,
        [x, z]: [MatRef<f64>; 2],
        weights: MatRef<f64>,
        slopes: &mut [f64],
    ) {
        let mut out = Mat::zeros(x.nrows(), z.nrows());
        // one number after the other: the block is used again
        let out = std::cell::RefCell::new(&mut out);
        self.along_parameters(slopes, |parameters| {
            let mut out = out.borrow_mut();
            self.covariance.values(parameters, x, z, out.as_mut());
            dot(out.as_ref(), weights)
        });
    }

    /// Adds slopes of Σ w∘k(X, Z) in X, where they are asked for.
    pub(super) fn by_differences_of_x(
        &self,
        [x, z]: [MatRef<f64>; 2],
        weights: MatRef<f64>,
        sink: Option<&mut MatMut<'_, f64>>,
    ) {
        let Some(sink) = sink else { return };
        for (q, &d) in self.dims.iter().enumerate() {
            let h = step_along([column(x, q), column(z, q)]);
            let (up, down) = (
                self.values([moved(x, q, h).as_ref(), z]),
                self.values([moved(x, q, -h).as_ref(), z]),
            );
            let target = column_mut(sink.rb_mut(), d);
            for j in 0..z.nrows() {
                let pairs = up.col_as_slice(j).iter().zip(down.col_as_slice(j));
                for ((t, (a, b)), w) in target.iter_mut().zip(pairs).zip(column(weights, j)) {
                    *t += w * (a - b) / (2.0 * h);
                }
            }
        }
    }

    /// Adds slopes of Σ wᵢ k(xᵢ, xᵢ).
    pub(super) fn variances_by_differences(
        &self,
        x: MatRef<f64>,
        weights: &[f64],
        sinks: &mut Cotangents<'_>,
    ) {
        let of = |parameters: &[&[f64]], x: MatRef<f64>| {
            let mut out = vec![0.0; x.nrows()];
            self.covariance.variances(parameters, x, &mut out);
            out
        };
        self.along_parameters(sinks.params, |parameters| {
            of(parameters, x).iter().zip(weights).map(|(v, w)| v * w).sum()
        });
        let Some(sink) = sinks.x.as_mut() else { return };
        for (q, &d) in self.dims.iter().enumerate() {
            let h = step_along([column(x, q), column(x, q)]);
            let at = |h: f64| of(&self.numbers(), moved(x, q, h).as_ref());
            let (up, down) = (at(h), at(-h));
            let target = column_mut(sink.rb_mut(), d);
            for ((t, (a, b)), w) in target.iter_mut().zip(up.iter().zip(&down)).zip(weights) {
                *t += w * (a - b) / (2.0 * h);
            }
        }
    }
}

//! Weighted inner products Σ_q w_q x_q x′_q, which several kernels are functions of.

use super::registry::Args;
use super::{Tape, Unit};
use crate::error::Result;
use crate::linalg::{Accum, Mat, MatMut, MatRef, Par, column, column_mut, gemm, mirror_lower};
use crate::params::Param;
use faer::reborrow::ReborrowMut;

/// The weights, one or one for each active input, and which inputs are active.
#[derive(Clone, Debug)]
pub struct Inner {
    /// w.
    pub weights: Param,
    /// The active input columns.
    pub dims: Vec<usize>,
    /// Whether they were given.
    pub dims_given: bool,
}

impl Inner {
    /// Reads the weights from the entry called `name`, one for all unless `ard` says otherwise.
    ///
    /// # Errors
    /// As for [`super::build`].
    pub fn read(args: &Args<'_>, name: &str) -> Result<Self> {
        let (dims, dims_given) = args.active_dims()?;
        let weights = args.positive(name, Some(dims.len()), args.ard(false)?)?;
        Ok(Self { weights, dims, dims_given })
    }

    fn w(&self, q: usize) -> f64 {
        self.weights.value()[self.slot(q)]
    }

    fn slot(&self, q: usize) -> usize {
        if self.weights.len() == 1 { 0 } else { q }
    }

    fn active(&self, x: MatRef<f64>, tape: &mut Tape) -> Mat<f64> {
        let mut active = tape.buffer(x.nrows(), self.dims.len());
        for (q, &d) in self.dims.iter().enumerate() {
            active.col_as_slice_mut(q).copy_from_slice(column(x, d));
        }
        active
    }

    /// Computes the products of all rows of `x` and `z` into `out`; without `z` those of `x` with
    /// itself, exactly symmetric.
    pub fn products(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        mut out: MatMut<f64>,
        tape: &mut Tape,
    ) {
        let mut own = self.active(x, tape);
        let other = self.active(z.unwrap_or(x), tape);
        for q in 0..self.dims.len() {
            let w = self.w(q);
            own.col_as_slice_mut(q).iter_mut().for_each(|v| *v *= w);
        }
        gemm(out.rb_mut(), Accum::Replace, own.as_ref(), other.transpose(), 1.0, Par::Seq);
        if z.is_none() {
            mirror_lower(out);
        }
        [own, other].into_iter().for_each(|used| tape.recycle(used));
    }

    /// Pulls `h`, the cotangent of the products, back: to the weights (in `params`), and to the inputs.
    /// Without `z` the first sink receives both parts.
    pub fn pull(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        h: MatRef<f64>,
        tape: &mut Tape,
        params: &mut [f64],
        [x_sink, z_sink]: [Option<&mut MatMut<'_, f64>>; 2],
    ) {
        let xa = self.active(x, tape);
        let za = self.active(z.unwrap_or(x), tape);
        // (HᵀX)_jq = Σᵢ hᵢⱼ xᵢ
        let mut htx = tape.buffer(za.nrows(), self.dims.len());
        gemm(htx.as_mut(), Accum::Replace, h.transpose(), xa.as_ref(), 1.0, Par::Seq);
        for q in 0..self.dims.len() {
            let both = htx.col_as_slice(q).iter().zip(za.col_as_slice(q));
            params[self.slot(q)] += both.map(|(p, z)| p * z).sum::<f64>();
        }
        let add = |sink: &mut MatMut<'_, f64>, product: &Mat<f64>| {
            for (q, &d) in self.dims.iter().enumerate() {
                let w = self.w(q);
                let target = column_mut(sink.rb_mut(), d);
                target.iter_mut().zip(product.col_as_slice(q)).for_each(|(t, p)| *t += w * p);
            }
        };
        if let Some(sink) = x_sink {
            let mut hz = tape.buffer(xa.nrows(), self.dims.len());
            gemm(hz.as_mut(), Accum::Replace, h, za.as_ref(), 1.0, Par::Seq);
            add(sink, &hz);
            tape.recycle(hz);
            if z.is_none() {
                add(sink, &htx);
            }
        }
        if let (Some(sink), Some(_)) = (z_sink, z) {
            add(sink, &htx);
        }
        [xa, za, htx].into_iter().for_each(|used| tape.recycle(used));
    }

    /// Adds the products of rows with themselves, Σ w x².
    pub fn add_squares(&self, x: MatRef<f64>, out: &mut [f64]) {
        for (q, &d) in self.dims.iter().enumerate() {
            let w = self.w(q);
            out.iter_mut().zip(column(x, d)).for_each(|(o, x)| *o += w * x * x);
        }
    }

    /// Pulls the cotangent of Σ w x² back to weights and inputs.
    pub fn pull_squares(
        &self,
        x: MatRef<f64>,
        weights: &[f64],
        params: &mut [f64],
        mut sink: Option<&mut MatMut<'_, f64>>,
    ) {
        for (q, &d) in self.dims.iter().enumerate() {
            let (w, column) = (self.w(q), column(x, d));
            let sum: f64 = weights.iter().zip(column).map(|(a, x)| a * x * x).sum();
            params[self.slot(q)] += sum;
            if let Some(sink) = sink.as_deref_mut() {
                let target = column_mut(sink.rb_mut(), d);
                for ((t, a), x) in target.iter_mut().zip(weights).zip(column) {
                    *t += 2.0 * w * a * x;
                }
            }
        }
    }

    /// Returns the units of the weights where the product has this power of the target's unit, if
    /// it has one.
    pub fn units(&self, output: Option<i32>) -> Vec<Option<Unit>> {
        match output {
            Some(output) if self.weights.len() == self.dims.len() => {
                self.dims.iter().map(|&d| Some(Unit::input(d, -2).times_output(output))).collect()
            }
            _ => vec![None; self.weights.len()],
        }
    }

    /// Returns the mean square of the active columns, summed: Σ w x² has this mean where w is 1 and
    /// columns are centred.
    pub fn squares(&self, spreads: &[f64]) -> f64 {
        self.dims.iter().map(|&d| spreads[d] * spreads[d]).sum()
    }
}

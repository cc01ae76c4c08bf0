//! Linear: k = Σ_q v_q x_q x′_q.

use super::registry::{Args, Entry, object};
use super::{Cotangents, Kernel, Tape, Unit};
use crate::error::Result;
use crate::linalg::{Accum, Mat, MatMut, MatRef, Par, column, column_mut, gemm};
use crate::params::{Param, Visitor, VisitorMut};
use faer::reborrow::ReborrowMut;
use serde_json::Value;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "linear",
    aliases: &["dot_product", "dotproduct"],
    about: "linear, Σ variance·x·x′: linear functions through the origin",
    build,
};

/// The linear kernel, with one variance or one per active input.
#[derive(Clone, Debug)]
pub struct Linear {
    variance: Param,
    dims: Vec<usize>,
    dims_given: bool,
}

fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    args.allow(&["variance", "active_dims", "ard"])?;
    let (dims, dims_given) = args.active_dims()?;
    let ard = args.ard(false)?;
    let variance = args.positive("variance", Some(dims.len()), ard)?;
    Ok(Box::new(Linear { variance, dims, dims_given }))
}

impl Linear {
    fn v(&self, q: usize) -> f64 {
        let values = self.variance.value();
        if values.len() == 1 { values[0] } else { values[q] }
    }

    fn slot(&self, q: usize) -> usize {
        if self.variance.len() == 1 { 0 } else { q }
    }

    fn active(&self, x: MatRef<f64>) -> Mat<f64> {
        Mat::from_fn(x.nrows(), self.dims.len(), |i, q| x[(i, self.dims[q])])
    }

    /// Adds v_q·(A B)_q to the columns of `sink`; A is n×m, B m×d.
    fn add_scaled(&self, sink: &mut MatMut<'_, f64>, a: MatRef<f64>, b: MatRef<f64>) {
        let mut product = Mat::zeros(a.nrows(), b.ncols());
        gemm(product.as_mut(), Accum::Replace, a, b, 1.0, Par::Seq);
        for (q, &d) in self.dims.iter().enumerate() {
            let v = self.v(q);
            let target = column_mut(sink.rb_mut(), d);
            for (t, p) in target.iter_mut().zip(column(product.as_ref(), q)) {
                *t += v * p;
            }
        }
    }
}

impl Kernel for Linear {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"variance", &self.variance);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"variance", &mut self.variance);
    }

    fn evaluate(&self, x: MatRef<f64>, z: Option<MatRef<f64>>, out: MatMut<f64>, _: &mut Tape) {
        let active = self.active(x);
        let scaled = Mat::from_fn(x.nrows(), self.dims.len(), |i, q| self.v(q) * active[(i, q)]);
        let other = z.map_or_else(|| active.clone(), |z| self.active(z));
        gemm(out, Accum::Replace, scaled.as_ref(), other.transpose(), 1.0, Par::Seq);
    }

    fn vjp(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        _: MatRef<f64>,
        k_bar: MatMut<f64>,
        _: &mut Tape,
        sinks: &mut Cotangents<'_>,
    ) {
        let k_bar = k_bar.as_ref();
        let xa = self.active(x);
        let za = z.map_or_else(|| xa.clone(), |z| self.active(z));
        let mut product = Mat::zeros(za.nrows(), self.dims.len());
        gemm(product.as_mut(), Accum::Replace, k_bar.transpose(), xa.as_ref(), 1.0, Par::Seq);
        for q in 0..self.dims.len() {
            let dot: f64 = column(product.as_ref(), q)
                .iter()
                .zip(column(za.as_ref(), q))
                .map(|(p, z)| p * z)
                .sum();
            sinks.params[self.slot(q)] += dot;
        }
        if let Some(sink) = &mut sinks.x {
            self.add_scaled(sink, k_bar, za.as_ref());
            if z.is_none() {
                self.add_scaled(sink, k_bar.transpose(), xa.as_ref());
            }
        }
        if let (Some(sink), Some(_)) = (&mut sinks.z, z) {
            self.add_scaled(sink, k_bar.transpose(), xa.as_ref());
        }
    }

    fn diag(&self, x: MatRef<f64>, out: &mut [f64]) {
        out.fill(0.0);
        for (q, &d) in self.dims.iter().enumerate() {
            let v = self.v(q);
            for (o, x) in out.iter_mut().zip(column(x, d)) {
                *o += v * x * x;
            }
        }
    }

    fn diag_vjp(&self, x: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        for (q, &d) in self.dims.iter().enumerate() {
            let column = column(x, d);
            let sum: f64 = weights.iter().zip(column).map(|(w, x)| w * x * x).sum();
            sinks.params[self.slot(q)] += sum;
            if let Some(sink) = &mut sinks.x {
                let v = self.v(q);
                let target = column_mut(sink.rb_mut(), d);
                for ((t, w), x) in target.iter_mut().zip(weights).zip(column) {
                    *t += 2.0 * v * w * x;
                }
            }
        }
    }

    fn units(&self) -> Vec<Option<Unit>> {
        if self.variance.len() == self.dims.len() {
            self.dims.iter().map(|&d| Some(Unit { input: Some((d, -2)), output: 2 })).collect()
        } else {
            vec![None]
        }
    }

    fn initialise(&mut self, spreads: &[f64], variance: f64) {
        // the mean of Σ v x² over rows is `variance` for centred columns
        let squares: f64 = self.dims.iter().map(|&q| spreads[q] * spreads[q]).sum();
        super::spec::initialise(&mut self.variance, &[variance / squares]);
    }

    fn to_json(&self) -> Value {
        object(ENTRY.name, &[("variance", &self.variance)], self.dims_given.then_some(&self.dims))
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}

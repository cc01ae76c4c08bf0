//! Fixed mean functions of hidden layers: what goes through a layer whose process is 0 (Salimbeni & Deisenroth 2017,
//! in their experiments: the identity, or the leading right singular vectors of the running inputs where the layer is narrower).

use crate::error::{Error, Result};
use crate::linalg::{
    Accum, Mat, MatMut, MatRef, Par, column, column_mut, gemm, product, symmetric_eigen,
};
use crate::means::{Mean, check_shape};
use crate::params::{Param, Role, Shape, Transform, Visitor, VisitorMut};
use faer::reborrow::ReborrowMut;

/// m(x) = x, for as many outputs as inputs.
#[derive(Clone, Debug)]
pub struct Identity;

impl Mean for Identity {
    fn name(&self) -> &'static str {
        "identity"
    }
    fn visit<'a>(&'a self, _: Visitor<'a, '_>) {}
    fn visit_mut<'a>(&'a mut self, _: VisitorMut<'a, '_>) {}
    fn evaluate(&self, x: MatRef<f64>, mut out: MatMut<f64>) {
        out.copy_from(x);
    }
    fn vjp(&self, _: MatRef<f64>, _: MatRef<f64>, _: &mut [f64]) {}
    fn add_slopes(&self, _: MatRef<f64>, output: usize, out: MatMut<f64>) {
        column_mut(out, output).iter_mut().for_each(|slope| *slope += 1.0);
    }
    fn pull_inputs(&self, _: MatRef<f64>, a: MatRef<f64>, mut out: MatMut<f64>) {
        for p in 0..a.ncols() {
            let target = column_mut(out.rb_mut(), p);
            target.iter_mut().zip(column(a, p)).for_each(|(t, a)| *t += a);
        }
    }
    fn check(&self, inputs: usize, outputs: usize) -> Result<()> {
        check_shape(self, [inputs, outputs], [inputs, inputs])
    }
    fn clone_box(&self) -> Box<dyn Mean> {
        Box::new(self.clone())
    }
}

/// m(x) = Wᵀx with a W (D×P) that training does not change.
#[derive(Clone, Debug)]
pub struct Projection {
    weights: Param,
    inputs: usize,
}

impl Projection {
    /// Makes it of W, D×P.
    pub fn new(weights: MatRef<f64>) -> Self {
        let (d, p) = (weights.nrows(), weights.ncols());
        let values = (0..p).flat_map(|j| (0..d).map(move |i| weights[(i, j)])).collect();
        let mut weights =
            Param::with(values, Shape::Matrix(d, p), Transform::Identity).of(Role::Projection);
        weights.frozen = true;
        Self { weights, inputs: d }
    }

    /// Returns W, D×P.
    pub fn weights(&self) -> MatRef<'_, f64> {
        let outputs = self.weights.len() / self.inputs.max(1);
        MatRef::from_column_major_slice(self.weights.value(), self.inputs, outputs)
    }
}

impl Mean for Projection {
    fn name(&self) -> &'static str {
        "projection"
    }
    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"weights", &self.weights);
    }
    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"weights", &mut self.weights);
    }
    fn evaluate(&self, x: MatRef<f64>, out: MatMut<f64>) {
        gemm(out, Accum::Replace, x, self.weights(), 1.0, Par::Seq);
    }
    fn vjp(&self, x: MatRef<f64>, a: MatRef<f64>, gradient: &mut [f64]) {
        let own = MatMut::from_column_major_slice_mut(gradient, x.ncols(), a.ncols());
        gemm(own, Accum::Add, x.transpose(), a, 1.0, Par::Seq);
    }
    fn add_slopes(&self, _: MatRef<f64>, output: usize, mut out: MatMut<f64>) {
        for (q, w) in column(self.weights(), output).iter().enumerate() {
            column_mut(out.rb_mut(), q).iter_mut().for_each(|slope| *slope += w);
        }
    }
    fn pull_inputs(&self, _: MatRef<f64>, a: MatRef<f64>, out: MatMut<f64>) {
        gemm(out, Accum::Add, a, self.weights().transpose(), 1.0, Par::Seq);
    }
    fn check(&self, inputs: usize, outputs: usize) -> Result<()> {
        let own = self.weights();
        check_shape(self, [inputs, outputs], [own.nrows(), own.ncols()])
    }
    fn clone_box(&self) -> Box<dyn Mean> {
        Box::new(self.clone())
    }
}

/// Returns the fixed mean function of a hidden layer with so many outputs over running inputs (N×D), as its W (D×P): the
/// identity, the leading right singular vectors of the inputs as they are (not centred; the largest entry of each is
/// positive) where P < D, or [I 0] where P > D.
///
/// # Errors
/// [`Error::NonFinite`] for inputs that are not finite, [`Error::Invalid`] without rows or outputs.
pub fn projected(x: MatRef<f64>, outputs: usize) -> Result<Mat<f64>> {
    let d = x.ncols();
    if x.nrows() == 0 || d == 0 || outputs == 0 {
        return Err(Error::Invalid(format!(
            "a mean function of {outputs} outputs over {}×{d} inputs: none of these may be 0",
            x.nrows()
        )));
    }
    if outputs >= d {
        return Ok(Mat::from_fn(d, outputs, |i, j| f64::from(u8::from(i == j))));
    }
    if let Some(bad) =
        (0..d).flat_map(|j| (0..x.nrows()).map(move |i| x[(i, j)])).find(|v| !v.is_finite())
    {
        return Err(Error::NonFinite { what: "an input of the first layer".into(), value: bad });
    }
    let (values, vectors) = symmetric_eigen(product(x.transpose(), x).as_ref())?;
    let mut order: Vec<usize> = (0..d).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    let mut weights = Mat::zeros(d, outputs);
    for (j, from) in order[..outputs].iter().enumerate() {
        let own = column(vectors.as_ref(), *from);
        let largest = own.iter().fold(0.0_f64, |m, v| if v.abs() > m.abs() { *v } else { m });
        for i in 0..d {
            weights[(i, j)] = own[i] * largest.signum();
        }
    }
    Ok(weights)
}

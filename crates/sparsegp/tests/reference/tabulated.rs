//! A kernel of given matrices, for files that have covariances instead of inputs: an input is the number of
//! its row.

use crate::support::Outcome;
use serde_json::{Value, json};
use sparsegp::kernels::{Cotangents, Kernel, Tape};
use sparsegp::linalg::{Mat, MatMut, MatRef};
use sparsegp::params::{Visitor, VisitorMut};

/// Covariances of N rows and M points.
#[derive(Clone, Debug)]
pub struct Tabulated {
    /// K of the points with themselves, M×M.
    pub own: Mat<f64>,
    /// K between rows and points, N×M.
    pub cross: Mat<f64>,
    /// Variances of the rows.
    pub diag: Vec<f64>,
}

impl Tabulated {
    /// Of rows that are their own points.
    pub fn full(k: Mat<f64>) -> Self {
        let diag = (0..k.nrows()).map(|i| k[(i, i)]).collect();
        Self { own: k.clone(), cross: k, diag }
    }

    /// The numbers 0, 1, …, as inputs.
    pub fn indices(count: usize) -> Mat<f64> {
        Mat::from_fn(count, 1, |i, _| i as f64)
    }

    /// With these parts.
    pub fn sparse(own: Mat<f64>, cross: Mat<f64>, diag: Vec<f64>) -> Outcome<Self> {
        if cross.ncols() != own.nrows() || cross.nrows() != diag.len() {
            return Err("covariances of shapes that do not fit together".into());
        }
        Ok(Self { own, cross, diag })
    }
}

impl Kernel for Tabulated {
    fn name(&self) -> &'static str {
        "tabulated"
    }

    fn visit<'a>(&'a self, _: Visitor<'a, '_>) {}

    fn visit_mut<'a>(&'a mut self, _: VisitorMut<'a, '_>) {}

    fn evaluate(&self, x: MatRef<f64>, z: Option<MatRef<f64>>, mut out: MatMut<f64>, _: &mut Tape) {
        let at = |a: MatRef<f64>, i: usize| a[(i, 0)] as usize;
        for j in 0..out.ncols() {
            for i in 0..out.nrows() {
                out[(i, j)] = match z {
                    Some(z) => self.cross[(at(x, i), at(z, j))],
                    None => self.own[(at(x, i), at(x, j))],
                };
            }
        }
    }

    fn vjp(
        &self,
        _: MatRef<f64>,
        _: Option<MatRef<f64>>,
        _: MatRef<f64>,
        _: MatMut<f64>,
        _: &mut Tape,
        _: &mut Cotangents<'_>,
    ) {
    }

    fn diag(&self, x: MatRef<f64>, out: &mut [f64]) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = self.diag[x[(i, 0)] as usize];
        }
    }

    fn diag_vjp(&self, _: MatRef<f64>, _: &[f64], _: &mut Cotangents<'_>) {}

    fn initialise(&mut self, _: &[f64], _: f64) {}

    fn to_json(&self) -> Value {
        json!({ "type": "tabulated" })
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}

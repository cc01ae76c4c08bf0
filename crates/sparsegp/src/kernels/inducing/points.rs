//! Values of the functions at points, or of another domain where the kernel has one there.

use super::{Inducing, Variables, kernel_path};
use crate::error::Result;
use crate::kernels::{Cotangents, Kernel, Tape};
use crate::linalg::{MatMut, MatRef};
use crate::params::{Param, Role, Transform, Visitor, VisitorMut, prefixed, prefixed_mut};

/// Values of the functions at points Z that somebody else keeps. Gradients are those of the kernel's hyperparameters, then
/// of Z, column by column.
#[derive(Clone, Copy)]
pub struct AtPoints<'a> {
    /// The kernel of the functions.
    pub kernel: &'a dyn Kernel,
    /// Z, M×D.
    pub z: MatRef<'a, f64>,
}

impl AtPoints<'_> {
    /// Returns the parts of a gradient.
    fn parts<'b>(&self, gradient: &'b mut [f64]) -> (&'b mut [f64], MatMut<'b, f64>) {
        let (params, z_bar) = gradient.split_at_mut(self.kernel.num_params());
        let (m, d) = (self.z.nrows(), self.z.ncols());
        (params, MatMut::from_column_major_slice_mut(z_bar, m, d))
    }
}

impl Inducing for AtPoints<'_> {
    fn len(&self) -> usize {
        self.z.nrows()
    }
    fn inputs(&self) -> usize {
        let columns = self.z.ncols();
        let other = self.kernel.interdomain().filter(|own| own.columns == columns);
        other.map_or(columns, |own| own.inputs)
    }
    fn num_params(&self) -> usize {
        self.kernel.num_params() + self.z.nrows() * self.z.ncols()
    }
    fn kuu(&self, out: MatMut<f64>, tape: &mut Tape) {
        self.kernel.evaluate(self.z, None, out, tape);
    }
    fn kuf(&self, x: MatRef<f64>, out: MatMut<f64>, tape: &mut Tape) {
        self.kernel.evaluate(x, Some(self.z), out, tape);
    }
    fn kff(&self, x: MatRef<f64>, out: &mut [f64]) {
        self.kernel.diag(x, out);
    }
    fn pull_kuu(&self, k: MatRef<f64>, bar: MatMut<f64>, tape: &mut Tape, gradient: &mut [f64]) {
        let (params, z_bar) = self.parts(gradient);
        let mut sinks = Cotangents { params, x: Some(z_bar), z: None };
        self.kernel.vjp(self.z, None, k, bar, tape, &mut sinks);
    }
    fn pull_kuf(
        &self,
        x: MatRef<f64>,
        (k, bar): (MatRef<f64>, MatMut<f64>),
        tape: &mut Tape,
        gradient: &mut [f64],
        x_bar: Option<MatMut<f64>>,
    ) {
        let (params, z_bar) = self.parts(gradient);
        let mut sinks = Cotangents { params, x: x_bar, z: Some(z_bar) };
        self.kernel.vjp(x, Some(self.z), k, bar, tape, &mut sinks);
    }
    fn pull_kff(
        &self,
        x: MatRef<f64>,
        weights: &[f64],
        gradient: &mut [f64],
        x_bar: Option<MatMut<f64>>,
    ) {
        let params = &mut gradient[..self.kernel.num_params()];
        self.kernel.diag_vjp(x, weights, &mut Cotangents { params, x: x_bar, z: None });
    }
    fn at_points(&self) -> Option<AtPoints<'_>> {
        Some(*self)
    }
}

/// Values of the functions at points Z.
#[derive(Clone, Debug)]
pub struct Points {
    /// The kernel of the functions.
    pub kernel: Box<dyn Kernel>,
    /// Z, M×D.
    pub z: Param,
}

impl Points {
    /// Makes them of a kernel and Z, M×D.
    pub fn new(kernel: Box<dyn Kernel>, z: MatRef<f64>) -> Self {
        Self { kernel, z: Param::of_matrix(z, Transform::Identity).of(Role::Points) }
    }

    /// Returns Z, M×D.
    pub fn z(&self) -> MatRef<'_, f64> {
        self.z.matrix()
    }

    fn at(&self) -> AtPoints<'_> {
        AtPoints { kernel: &*self.kernel, z: self.z() }
    }
}

impl Inducing for Points {
    fn len(&self) -> usize {
        self.at().len()
    }
    fn inputs(&self) -> usize {
        self.at().inputs()
    }
    fn num_params(&self) -> usize {
        self.at().num_params()
    }
    fn kuu(&self, out: MatMut<f64>, tape: &mut Tape) {
        self.at().kuu(out, tape);
    }
    fn kuf(&self, x: MatRef<f64>, out: MatMut<f64>, tape: &mut Tape) {
        self.at().kuf(x, out, tape);
    }
    fn kff(&self, x: MatRef<f64>, out: &mut [f64]) {
        self.at().kff(x, out);
    }
    fn pull_kuu(&self, k: MatRef<f64>, bar: MatMut<f64>, tape: &mut Tape, gradient: &mut [f64]) {
        self.at().pull_kuu(k, bar, tape, gradient);
    }
    fn pull_kuf(
        &self,
        x: MatRef<f64>,
        blocks: (MatRef<f64>, MatMut<f64>),
        tape: &mut Tape,
        gradient: &mut [f64],
        x_bar: Option<MatMut<f64>>,
    ) {
        self.at().pull_kuf(x, blocks, tape, gradient, x_bar);
    }
    fn pull_kff(
        &self,
        x: MatRef<f64>,
        weights: &[f64],
        gradient: &mut [f64],
        x_bar: Option<MatMut<f64>>,
    ) {
        self.at().pull_kff(x, weights, gradient, x_bar);
    }
    fn at_points(&self) -> Option<AtPoints<'_>> {
        Some(self.at())
    }
}

impl Variables for Points {
    fn visit<'a>(&'a self, index: &str, visitor: Visitor<'a, '_>) {
        prefixed(&kernel_path(index), visitor, |v| self.kernel.visit(v));
        visitor(&format!("inducing.points{index}"), &self.z);
    }
    fn visit_mut<'a>(&'a mut self, index: &str, visitor: VisitorMut<'a, '_>) {
        prefixed_mut(&kernel_path(index), visitor, |v| self.kernel.visit_mut(v));
        visitor(&format!("inducing.points{index}"), &mut self.z);
    }
    fn check(&self) -> Result<()> {
        // of variables of another domain there are no inputs
        if self.inputs() == self.z().ncols() { self.kernel.check(self.z()) } else { Ok(()) }
    }
    fn as_points(&self) -> Option<&Points> {
        Some(self)
    }
    fn clone_box(&self) -> Box<dyn Variables> {
        Box::new(self.clone())
    }
}

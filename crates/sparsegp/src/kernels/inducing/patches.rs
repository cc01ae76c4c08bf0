//! Values of the function of patches in a convolutional kernel.

use super::{Inducing, Variables, kernel_path};
use crate::error::{Error, Result};
use crate::kernels::convolutional::Convolutional;
use crate::kernels::{Cotangents, Kernel, Tape};
use crate::linalg::{MatMut, MatRef};
use crate::params::{Param, Role, Transform, Visitor, VisitorMut, count, prefixed, prefixed_mut};
use faer::reborrow::Reborrow;

/// Values of the function g of a convolutional kernel at patches Z (van der Wilk, Rasmussen & Hensman 2017, their inducing
/// patches): Kuu is the kernel of g at Z, Kuf a weighted sum over the patches of an image.
#[derive(Clone, Debug)]
pub struct Patches {
    /// The kernel of images.
    pub kernel: Convolutional,
    /// Z, M×d.
    pub z: Param,
    /// A variance of the functions that no inducing variable explains, if there is one: it is only
    /// in k(x, x).
    pub white: Option<Param>,
}

impl Patches {
    /// Makes them of a kernel and Z, M×d, without white variance.
    ///
    /// # Errors
    /// [`Error::Shape`] for patches of another size.
    pub fn new(kernel: Convolutional, z: MatRef<f64>) -> Result<Self> {
        let own = Self {
            kernel,
            z: Param::of_matrix(z, Transform::Identity).of(Role::Points),
            white: None,
        };
        own.check()?;
        Ok(own)
    }

    /// Returns Z, M×d.
    pub fn z(&self) -> MatRef<'_, f64> {
        self.z.matrix()
    }

    /// Returns the parts of a gradient that are the kernel's, those of Z, and of the white
    /// variance.
    fn parts<'a>(
        &self,
        gradient: &'a mut [f64],
    ) -> (&'a mut [f64], MatMut<'a, f64>, &'a mut [f64]) {
        let z = self.z();
        let (kernel, rest) = gradient.split_at_mut(self.kernel.num_params());
        let (points, white) = rest.split_at_mut(self.z.len());
        (kernel, MatMut::from_column_major_slice_mut(points, z.nrows(), z.ncols()), white)
    }
}

impl Inducing for Patches {
    fn len(&self) -> usize {
        self.z().nrows()
    }
    fn inputs(&self) -> usize {
        self.kernel.grid().pixels()
    }
    fn kuu(&self, out: MatMut<f64>, tape: &mut Tape) {
        self.kernel.base().evaluate(self.z(), None, out, tape);
    }
    fn kuf(&self, x: MatRef<f64>, out: MatMut<f64>, _: &mut Tape) {
        self.kernel.cross(x, self.z(), out);
    }
    fn kff(&self, x: MatRef<f64>, out: &mut [f64]) {
        self.kernel.diag(x, out);
        let white = self.white.as_ref().map_or(0.0, Param::scalar);
        out.iter_mut().for_each(|v| *v += white);
    }
    fn pull_kuu(&self, k: MatRef<f64>, bar: MatMut<f64>, tape: &mut Tape, gradient: &mut [f64]) {
        let base = self.kernel.base();
        let (params, z_bar, _) = self.parts(gradient);
        let params = &mut params[..base.num_params()];
        let mut sinks = Cotangents { params, x: Some(z_bar), z: None };
        base.vjp(self.z(), None, k, bar, tape, &mut sinks);
    }
    fn pull_kuf(
        &self,
        x: MatRef<f64>,
        (_, bar): (MatRef<f64>, MatMut<f64>),
        _: &mut Tape,
        gradient: &mut [f64],
        x_bar: Option<MatMut<f64>>,
    ) {
        let (params, z_bar, _) = self.parts(gradient);
        let mut sinks = Cotangents { params, x: x_bar, z: Some(z_bar) };
        self.kernel.cross_vjp(x, self.z(), bar.rb(), &mut sinks);
    }
    fn pull_kff(
        &self,
        x: MatRef<f64>,
        weights: &[f64],
        gradient: &mut [f64],
        x_bar: Option<MatMut<f64>>,
    ) {
        let (params, _, white) = self.parts(gradient);
        self.kernel.diag_vjp(x, weights, &mut Cotangents { params, x: x_bar, z: None });
        white.iter_mut().for_each(|white| *white += weights.iter().sum::<f64>());
    }
    fn num_params(&self) -> usize {
        count(|v| self.visit("", v))
    }
}

impl Variables for Patches {
    fn visit<'a>(&'a self, index: &str, visitor: Visitor<'a, '_>) {
        prefixed(&kernel_path(index), visitor, |v| self.kernel.visit(v));
        visitor(&format!("inducing.points{index}"), &self.z);
        self.white.iter().for_each(|white| visitor(&format!("white{index}"), white));
    }
    fn visit_mut<'a>(&'a mut self, index: &str, visitor: VisitorMut<'a, '_>) {
        prefixed_mut(&kernel_path(index), visitor, |v| self.kernel.visit_mut(v));
        visitor(&format!("inducing.points{index}"), &mut self.z);
        self.white.iter_mut().for_each(|white| visitor(&format!("white{index}"), white));
    }
    fn check(&self) -> Result<()> {
        self.kernel.grid().fits(self.inputs())?;
        let (found, expected) = (self.z().ncols(), self.kernel.grid().size());
        if found == expected {
            return Ok(());
        }
        let expected = format!("{expected} columns, the entries of a patch");
        Err(Error::shape("inducing patches", expected, found))
    }
    fn clone_box(&self) -> Box<dyn Variables> {
        Box::new(self.clone())
    }
}

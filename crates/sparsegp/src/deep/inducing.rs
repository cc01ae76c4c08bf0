//! What the inducing variables of a layer are: values of its functions at points, values of a function of patches, or both
//! side by side (inducing patches: van der Wilk, Rasmussen & Hensman 2017).

use crate::error::{Error, Result};
use crate::kernels::convolutional::Convolutional;
use crate::kernels::{Cotangents, Kernel, Tape};
use crate::linalg::{MatMut, MatRef};
use crate::params::{Param, Role, Transform, Visitor, VisitorMut, count, prefixed, prefixed_mut};
use faer::reborrow::{Reborrow, ReborrowMut};

/// M inducing variables with their covariances (Kuu, Kuf and the diagonal of Kff of the sparse process: interdomain ones
/// where they are no values of f). Rows are B×D; gradients are lists of [`Inducing::num_params`] numbers, by the
/// constrained parameters in the order of [`Inducing::visit`], and added. What a pull-back takes of its evaluation is on
/// the tape.
pub trait Inducing: Send + Sync + std::fmt::Debug {
    /// Returns the number of variables M.
    fn len(&self) -> usize;
    /// Returns whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the number of columns of rows D.
    fn inputs(&self) -> usize;
    /// Shows the parameters with their paths; `index` (such as `[1]`, or empty) is put where a layer has several kernels.
    fn visit<'a>(&'a self, index: &str, visitor: Visitor<'a, '_>);
    /// The same, to change them.
    fn visit_mut<'a>(&'a mut self, index: &str, visitor: VisitorMut<'a, '_>);
    /// Writes Kuu into `out` (M×M), without jitter.
    fn kuu(&self, out: MatMut<f64>, tape: &mut Tape);
    /// Writes the covariances of the functions at rows (B×D) with the variables into `out` (B×M).
    fn kuf(&self, x: MatRef<f64>, out: MatMut<f64>, tape: &mut Tape);
    /// Writes the variances of the functions at rows (B×D) into `out` (B numbers).
    fn kff(&self, x: MatRef<f64>, out: &mut [f64]);
    /// Pulls the cotangent `bar` of Kuu = `k` (M×M each) back to `gradient`. `bar` is scratch afterwards.
    fn pull_kuu(&self, k: MatRef<f64>, bar: MatMut<f64>, tape: &mut Tape, gradient: &mut [f64]);
    /// Pulls the cotangent of covariances with rows back to `gradient` and, if asked for, to rows (`x_bar`, B×D). `blocks` are
    /// the covariances and their cotangent, B×M each; the latter is scratch afterwards.
    fn pull_kuf(
        &self,
        x: MatRef<f64>,
        blocks: (MatRef<f64>, MatMut<f64>),
        tape: &mut Tape,
        gradient: &mut [f64],
        x_bar: Option<MatMut<f64>>,
    );
    /// Pulls the cotangent `weights` of variances (B numbers) back, likewise.
    fn pull_kff(
        &self,
        x: MatRef<f64>,
        weights: &[f64],
        gradient: &mut [f64],
        x_bar: Option<MatMut<f64>>,
    );
    /// Refuses what does not fit together.
    ///
    /// # Errors
    /// [`Error::Shape`] with both numbers, or what the kernel says.
    fn check(&self) -> Result<()>;
    /// Returns these, if they are values at points.
    fn as_points(&self) -> Option<&Points> {
        None
    }
    /// Returns a copy.
    fn clone_box(&self) -> Box<dyn Inducing>;

    /// Returns the number of numbers among the parameters.
    fn num_params(&self) -> usize {
        count(|v| self.visit("", v))
    }
}

impl Clone for Box<dyn Inducing> {
    fn clone(&self) -> Self {
        self.clone_box()
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

    /// Z, M×D.
    pub fn z(&self) -> MatRef<'_, f64> {
        self.z.matrix()
    }
}

fn plural(index: &str) -> &'static str {
    if index.is_empty() { "" } else { "s" }
}

impl Inducing for Points {
    fn len(&self) -> usize {
        self.z().nrows()
    }
    fn inputs(&self) -> usize {
        self.z().ncols()
    }
    fn visit<'a>(&'a self, index: &str, visitor: Visitor<'a, '_>) {
        let name = format!("kernel{}{index}", plural(index));
        prefixed(&name, visitor, |v| self.kernel.visit(v));
        visitor(&format!("inducing.points{index}"), &self.z);
    }
    fn visit_mut<'a>(&'a mut self, index: &str, visitor: VisitorMut<'a, '_>) {
        let name = format!("kernel{}{index}", plural(index));
        prefixed_mut(&name, visitor, |v| self.kernel.visit_mut(v));
        visitor(&format!("inducing.points{index}"), &mut self.z);
    }
    fn kuu(&self, out: MatMut<f64>, tape: &mut Tape) {
        self.kernel.evaluate(self.z(), None, out, tape);
    }
    fn kuf(&self, x: MatRef<f64>, out: MatMut<f64>, tape: &mut Tape) {
        self.kernel.evaluate(x, Some(self.z()), out, tape);
    }
    fn kff(&self, x: MatRef<f64>, out: &mut [f64]) {
        self.kernel.diag(x, out);
    }
    fn pull_kuu(&self, k: MatRef<f64>, bar: MatMut<f64>, tape: &mut Tape, gradient: &mut [f64]) {
        let (z, (params, z_bar)) = (self.z(), gradient.split_at_mut(self.kernel.num_params()));
        let z_bar = MatMut::from_column_major_slice_mut(z_bar, z.nrows(), z.ncols());
        let mut sinks = Cotangents { params, x: Some(z_bar), z: None };
        self.kernel.vjp(z, None, k, bar, tape, &mut sinks);
    }
    fn pull_kuf(
        &self,
        x: MatRef<f64>,
        (k, bar): (MatRef<f64>, MatMut<f64>),
        tape: &mut Tape,
        gradient: &mut [f64],
        x_bar: Option<MatMut<f64>>,
    ) {
        let (z, (params, z_bar)) = (self.z(), gradient.split_at_mut(self.kernel.num_params()));
        let z_bar = MatMut::from_column_major_slice_mut(z_bar, z.nrows(), z.ncols());
        let mut sinks = Cotangents { params, x: x_bar, z: Some(z_bar) };
        self.kernel.vjp(x, Some(z), k, bar, tape, &mut sinks);
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
    fn check(&self) -> Result<()> {
        self.kernel.check(self.z())
    }
    fn as_points(&self) -> Option<&Points> {
        Some(self)
    }
    fn clone_box(&self) -> Box<dyn Inducing> {
        Box::new(self.clone())
    }
}

/// Values of the function g of a convolutional kernel at patches Z (van der Wilk, Rasmussen & Hensman 2017, their inducing
/// patches): Kuu is the kernel of g at Z, Kuf a weighted sum over the patches of an image.
#[derive(Clone, Debug)]
pub struct Patches {
    /// The kernel of images.
    pub kernel: Convolutional,
    /// Z, M×d.
    pub z: Param,
    /// A variance of the functions that no inducing variable explains, if there is one: it is in k(x, x) alone.
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

    /// Z, M×d.
    pub fn z(&self) -> MatRef<'_, f64> {
        self.z.matrix()
    }

    /// The parts of a gradient that are the kernel's, those of Z, and of the white variance.
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
    fn visit<'a>(&'a self, index: &str, visitor: Visitor<'a, '_>) {
        let name = format!("kernel{}{index}", plural(index));
        prefixed(&name, visitor, |v| self.kernel.visit(v));
        visitor(&format!("inducing.points{index}"), &self.z);
        self.white.iter().for_each(|white| visitor(&format!("white{index}"), white));
    }
    fn visit_mut<'a>(&'a mut self, index: &str, visitor: VisitorMut<'a, '_>) {
        let name = format!("kernel{}{index}", plural(index));
        prefixed_mut(&name, visitor, |v| self.kernel.visit_mut(v));
        visitor(&format!("inducing.points{index}"), &mut self.z);
        self.white.iter_mut().for_each(|white| visitor(&format!("white{index}"), white));
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
    fn check(&self) -> Result<()> {
        self.kernel.grid().fits(self.inputs())?;
        let (found, expected) = (self.z().ncols(), self.kernel.grid().size());
        if found == expected {
            return Ok(());
        }
        let expected = format!("{expected} columns, the entries of a patch");
        Err(Error::shape("inducing patches", expected, found))
    }
    fn clone_box(&self) -> Box<dyn Inducing> {
        Box::new(self.clone())
    }
}

/// Two independent functions whose sum is f, each with variables of its own: Kuu is block diagonal, and q may couple them.
#[derive(Clone, Debug)]
pub struct Stacked {
    /// The parts; the variables of the first come first.
    pub parts: [Box<dyn Inducing>; 2],
}

impl Stacked {
    /// The parts of a gradient.
    fn split<'a>(&self, gradient: &'a mut [f64]) -> [&'a mut [f64]; 2] {
        let (first, second) = gradient.split_at_mut(self.parts[0].num_params());
        [first, second]
    }
}

impl Inducing for Stacked {
    fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }
    fn inputs(&self) -> usize {
        self.parts[0].inputs()
    }
    fn visit<'a>(&'a self, index: &str, visitor: Visitor<'a, '_>) {
        for (i, part) in self.parts.iter().enumerate() {
            prefixed(&format!("parts[{i}]"), visitor, |v| part.visit(index, v));
        }
    }
    fn visit_mut<'a>(&'a mut self, index: &str, visitor: VisitorMut<'a, '_>) {
        for (i, part) in self.parts.iter_mut().enumerate() {
            prefixed_mut(&format!("parts[{i}]"), visitor, |v| part.visit_mut(index, v));
        }
    }
    fn kuu(&self, out: MatMut<f64>, tape: &mut Tape) {
        let m = self.parts[0].len();
        let (first, mut above, mut below, second) = out.split_at_mut(m, m);
        above.fill(0.0);
        below.fill(0.0);
        self.parts[0].kuu(first, tape);
        self.parts[1].kuu(second, tape);
    }
    fn kuf(&self, x: MatRef<f64>, out: MatMut<f64>, tape: &mut Tape) {
        let (first, second) = out.split_at_col_mut(self.parts[0].len());
        self.parts[0].kuf(x, first, tape);
        self.parts[1].kuf(x, second, tape);
    }
    fn kff(&self, x: MatRef<f64>, out: &mut [f64]) {
        let mut second = vec![0.0; out.len()];
        self.parts[0].kff(x, out);
        self.parts[1].kff(x, &mut second);
        out.iter_mut().zip(second).for_each(|(t, v)| *t += v);
    }
    fn pull_kuu(&self, k: MatRef<f64>, bar: MatMut<f64>, tape: &mut Tape, gradient: &mut [f64]) {
        let m = self.parts[0].len();
        let [first, second] = self.split(gradient);
        let (k1, _, _, k2) = k.split_at(m, m);
        let (bar1, _, _, bar2) = bar.split_at_mut(m, m);
        // from the tape in opposite order
        self.parts[1].pull_kuu(k2, bar2, tape, second);
        self.parts[0].pull_kuu(k1, bar1, tape, first);
    }
    fn pull_kuf(
        &self,
        x: MatRef<f64>,
        (k, bar): (MatRef<f64>, MatMut<f64>),
        tape: &mut Tape,
        gradient: &mut [f64],
        mut x_bar: Option<MatMut<f64>>,
    ) {
        let m = self.parts[0].len();
        let [first, second] = self.split(gradient);
        let ((k1, k2), (bar1, bar2)) = (k.split_at_col(m), bar.split_at_col_mut(m));
        let own = x_bar.as_mut().map(|x| x.rb_mut());
        self.parts[1].pull_kuf(x, (k2, bar2), tape, second, own);
        self.parts[0].pull_kuf(x, (k1, bar1), tape, first, x_bar);
    }
    fn pull_kff(
        &self,
        x: MatRef<f64>,
        weights: &[f64],
        gradient: &mut [f64],
        mut x_bar: Option<MatMut<f64>>,
    ) {
        let [first, second] = self.split(gradient);
        let own = x_bar.as_mut().map(|x| x.rb_mut());
        self.parts[0].pull_kff(x, weights, first, own);
        self.parts[1].pull_kff(x, weights, second, x_bar);
    }
    fn check(&self) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.check())?;
        let [first, second] = [self.parts[0].inputs(), self.parts[1].inputs()];
        if first == second {
            return Ok(());
        }
        let expected = format!("{first} input columns, as the first");
        Err(Error::shape("the second of two functions that are added", expected, second))
    }
    fn clone_box(&self) -> Box<dyn Inducing> {
        Box::new(self.clone())
    }
}

//! Mean functions m(x), one value per target column. They are added to predictions; the inducing
//! variables do not include them (u = f(Z) − m(Z)).

pub mod general;
mod registry;

pub(crate) use registry::of_outputs;
pub use registry::{Args, Entry, REGISTRY, by_name, from_json, names, register, to_json};

use crate::error::{Error, Result};
use crate::linalg::{Accum, Mat, MatMut, MatRef, Par, add_scaled_rows, column, column_mut, gemm};
use crate::params::{
    Named, NamedMut, Param, Role, Shape, Transform, Visitor, VisitorMut, count, listed, listed_mut,
};
use faer::reborrow::ReborrowMut;
use serde_json::{Value, json};

/// A mean function of D inputs with P outputs.
pub trait Mean: Send + Sync + std::fmt::Debug {
    /// Returns the name in specifications.
    fn name(&self) -> &'static str;
    /// Shows the parameters with their paths, in a fixed order.
    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>);
    /// Shows the same, to change them.
    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>);
    /// Computes m(xᵢ) into `out` (B×P).
    fn evaluate(&self, x: MatRef<f64>, out: MatMut<f64>);
    /// Adds the gradient with respect to the parameters, from the cotangent `a` of the values (B×P).
    fn vjp(&self, x: MatRef<f64>, a: MatRef<f64>, gradient: &mut [f64]);
    /// Adds ∂m_p/∂x of the output p at every row to `out` (B×D).
    fn add_slopes(&self, x: MatRef<f64>, output: usize, out: MatMut<f64>);
    /// Adds the gradient with respect to the rows to `out` (B×D), from the cotangent `a` of the values (B×P).
    fn pull_inputs(&self, x: MatRef<f64>, a: MatRef<f64>, mut out: MatMut<f64>) {
        let mut slopes = Mat::zeros(x.nrows(), x.ncols());
        for p in 0..a.ncols() {
            slopes.fill(0.0);
            self.add_slopes(x, p, slopes.as_mut());
            add_scaled_rows(out.rb_mut(), slopes.as_ref(), column(a, p), 1.0);
        }
    }
    /// Refuses to be the mean function of D inputs and P outputs, if its parameters are of other numbers of them.
    ///
    /// # Errors
    /// [`Error::Shape`] with both numbers.
    fn check(&self, inputs: usize, outputs: usize) -> Result<()>;
    /// Tries the mean function at some of the rows before a fit, at its starting values: those of others may have no numbers there.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the mean function and says what is wrong.
    fn trial(&self, x: MatRef<f64>, outputs: usize) -> Result<()> {
        let _ = (x, outputs);
        Ok(())
    }
    /// Returns its name and its parameters, which [`from_json`] reads.
    fn to_json(&self) -> Value {
        let mut object = json!({ "type": self.name() });
        for (path, param) in listed(|v| self.visit(v)) {
            object[path] = param.to_json(Transform::Identity);
        }
        object
    }
    /// Returns a copy.
    fn clone_box(&self) -> Box<dyn Mean>;

    /// Returns the list of what [`Mean::visit`] shows.
    fn params(&self) -> Vec<Named<'_>> {
        listed(|v| self.visit(v))
    }

    /// Returns the same, to change them.
    fn params_mut(&mut self) -> Vec<NamedMut<'_>> {
        listed_mut(|v| self.visit_mut(v))
    }

    /// Returns the number of numbers among the parameters.
    fn num_params(&self) -> usize {
        count(|v| self.visit(v))
    }
}

impl Clone for Box<dyn Mean> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

/// Compares a shape of parameters of a mean function with the one that its inputs and outputs ask for.
pub(crate) fn check_shape(mean: &dyn Mean, expected: [usize; 2], found: [usize; 2]) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    let of = |[inputs, outputs]: [usize; 2]| format!("{inputs}×{outputs}");
    let expected = format!("{}, inputs by outputs", of(expected));
    Err(Error::shape(format!("the mean function `{}`", mean.name()), expected, of(found)))
}

/// m(x) = 0.
#[derive(Clone, Debug)]
pub struct Zero;

impl Mean for Zero {
    fn name(&self) -> &'static str {
        "zero"
    }
    fn visit<'a>(&'a self, _: Visitor<'a, '_>) {}
    fn visit_mut<'a>(&'a mut self, _: VisitorMut<'a, '_>) {}
    fn evaluate(&self, _: MatRef<f64>, mut out: MatMut<f64>) {
        out.fill(0.0);
    }
    fn vjp(&self, _: MatRef<f64>, _: MatRef<f64>, _: &mut [f64]) {}
    fn add_slopes(&self, _: MatRef<f64>, _: usize, _: MatMut<f64>) {}
    fn pull_inputs(&self, _: MatRef<f64>, _: MatRef<f64>, _: MatMut<f64>) {}
    fn check(&self, _: usize, _: usize) -> Result<()> {
        Ok(())
    }
    fn clone_box(&self) -> Box<dyn Mean> {
        Box::new(self.clone())
    }
}

/// m(x) = c, one number per output.
#[derive(Clone, Debug)]
pub struct Constant {
    constant: Param,
}

impl Constant {
    /// Creates all zeros.
    pub fn new(outputs: usize) -> Self {
        let constant = Param::with(vec![0.0; outputs], Shape::Vector(outputs), Transform::Identity)
            .of(Role::Constant);
        Self { constant }
    }
}

fn add_column_sums(a: MatRef<f64>, sums: &mut [f64]) {
    for (p, sum) in sums.iter_mut().enumerate() {
        *sum += column(a, p).iter().sum::<f64>();
    }
}

impl Mean for Constant {
    fn name(&self) -> &'static str {
        "constant"
    }
    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"constant", &self.constant);
    }
    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"constant", &mut self.constant);
    }
    fn evaluate(&self, _: MatRef<f64>, mut out: MatMut<f64>) {
        for (p, c) in self.constant.value().iter().enumerate() {
            column_mut(out.rb_mut(), p).fill(*c);
        }
    }
    fn vjp(&self, _: MatRef<f64>, a: MatRef<f64>, gradient: &mut [f64]) {
        add_column_sums(a, gradient);
    }
    fn add_slopes(&self, _: MatRef<f64>, _: usize, _: MatMut<f64>) {}
    fn pull_inputs(&self, _: MatRef<f64>, _: MatRef<f64>, _: MatMut<f64>) {}
    fn check(&self, inputs: usize, outputs: usize) -> Result<()> {
        check_shape(self, [inputs, outputs], [inputs, self.constant.len()])
    }
    fn clone_box(&self) -> Box<dyn Mean> {
        Box::new(self.clone())
    }
}

/// m(x) = Wᵀx + c with W D×P.
#[derive(Clone, Debug)]
pub struct Linear {
    weights: Param,
    constant: Param,
}

impl Linear {
    /// Creates all zeros.
    pub fn new(inputs: usize, outputs: usize) -> Self {
        let weights = Param::with(
            vec![0.0; inputs * outputs],
            Shape::Matrix(inputs, outputs),
            Transform::Identity,
        )
        .of(Role::Slopes);
        Self { weights, constant: Constant::new(outputs).constant }
    }
}

impl Mean for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }
    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"weights", &self.weights);
        visitor(&"constant", &self.constant);
    }
    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"weights", &mut self.weights);
        visitor(&"constant", &mut self.constant);
    }
    fn evaluate(&self, x: MatRef<f64>, mut out: MatMut<f64>) {
        let d = x.ncols();
        for (p, c) in self.constant.value().iter().enumerate() {
            let target = column_mut(out.rb_mut(), p);
            target.fill(*c);
            for (q, w) in self.weights.value()[p * d..(p + 1) * d].iter().enumerate() {
                target.iter_mut().zip(column(x, q)).for_each(|(t, v)| *t += w * v);
            }
        }
    }
    fn vjp(&self, x: MatRef<f64>, a: MatRef<f64>, gradient: &mut [f64]) {
        let (d, p) = (x.ncols(), a.ncols());
        let mut product = Mat::zeros(d, p);
        gemm(product.as_mut(), Accum::Replace, x.transpose(), a, 1.0, Par::Seq);
        for j in 0..p {
            let own = &mut gradient[j * d..(j + 1) * d];
            own.iter_mut().zip(column(product.as_ref(), j)).for_each(|(g, v)| *g += v);
        }
        add_column_sums(a, &mut gradient[d * p..]);
    }
    fn add_slopes(&self, x: MatRef<f64>, output: usize, mut out: MatMut<f64>) {
        let d = x.ncols();
        for (q, w) in self.weights.value()[output * d..(output + 1) * d].iter().enumerate() {
            column_mut(out.rb_mut(), q).iter_mut().for_each(|slope| *slope += w);
        }
    }
    fn pull_inputs(&self, x: MatRef<f64>, a: MatRef<f64>, out: MatMut<f64>) {
        let (d, p) = (x.ncols(), a.ncols());
        let w = MatRef::from_column_major_slice(&self.weights.value()[..d * p], d, p);
        gemm(out, Accum::Add, a, w.transpose(), 1.0, Par::Seq);
    }
    fn check(&self, inputs: usize, outputs: usize) -> Result<()> {
        let found = self.constant.len();
        check_shape(self, [inputs, outputs], [self.weights.len() / found.max(1), found])
    }
    fn clone_box(&self) -> Box<dyn Mean> {
        Box::new(self.clone())
    }
}

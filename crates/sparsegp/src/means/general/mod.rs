//! Mean functions that are given by their values on arrays.
//!
//! A type implements [`Function`]; [`General`] makes a mean function of it: slopes are central differences of the values, or those
//! that the type gives.
//!
//! ```
//! use sparsegp::linalg::{Mat, MatMut, MatRef};
//! use sparsegp::means::Mean;
//! use sparsegp::means::general::{Function, General};
//! use sparsegp::params::Param;
//!
//! /// m(x) = height · exp(−rate x₀).
//! #[derive(Clone, Debug)]
//! struct Decay;
//!
//! impl Function for Decay {
//!     fn name(&self) -> &'static str {
//!         "decay"
//!     }
//!     fn parameters(&self, _columns: usize) -> Vec<(String, Param)> {
//!         vec![("height".into(), Param::real(1.0)), ("rate".into(), Param::positive(0.5))]
//!     }
//!     fn values(&self, p: &[&[f64]], x: MatRef<f64>, mut out: MatMut<f64>) {
//!         for i in 0..x.nrows() {
//!             out[(i, 0)] = p[0][0] * (-p[1][0] * x[(i, 0)]).exp();
//!         }
//!     }
//! }
//!
//! let mean = General::new(Decay, 1, 1);
//! let (x, mut out) = (Mat::from_fn(2, 1, |i, _| i as f64), Mat::zeros(2, 1));
//! mean.evaluate(x.as_ref(), out.as_mut());
//! assert!((out[(1, 0)] - (-0.5f64).exp()).abs() < 1e-15);
//! ```
//!
//! [`super::register`] gives such a mean function a name in options and model files.

use super::{Args, Mean};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut, dot};
use crate::params::{Param, STEP, Transform, Visitor, VisitorMut};
use faer::reborrow::ReborrowMut;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Where [`Function::pull_back`] adds.
#[derive(Debug)]
pub struct Slopes<'a> {
    /// In the numbers of the parameters.
    pub parameters: &'a mut [f64],
    /// In the inputs, B×D.
    pub x: MatMut<'a, f64>,
}

/// A function of inputs by its values. Only `name`, `parameters` and `values` must be given.
///
/// `parameters` are values in the order of [`Function::parameters`]. Methods may be called from several threads at once.
pub trait Function: Send + Sync + std::fmt::Debug + 'static {
    /// Returns the name in options, model files and messages.
    fn name(&self) -> &'static str;

    /// Returns the names of the parameters for D input columns, with starting values.
    fn parameters(&self, columns: usize) -> Vec<(String, Param)>;

    /// Computes m(xᵢ) into `out` (B×P), every row by itself.
    fn values(&self, parameters: &[&[f64]], x: MatRef<f64>, out: MatMut<f64>);

    /// Returns whether [`Function::pull_back`] gives slopes; else they are differences.
    fn has_pull_back(&self) -> bool {
        false
    }

    /// Adds to `slopes` those of Σ wᵢₚ mₚ(xᵢ) for weights w (B×P), in the parameters and in `x`.
    fn pull_back(
        &self,
        parameters: &[&[f64]],
        x: MatRef<f64>,
        weights: MatRef<f64>,
        slopes: Slopes<'_>,
    ) {
        let _ = (parameters, x, weights, slopes);
    }

    /// Returns the further entries of the specification, which the builder of the mean function
    /// reads: what is not a parameter.
    fn entries(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// The mean function of a [`Function`].
#[derive(Clone, Debug)]
pub struct General {
    function: Arc<dyn Function>,
    names: Vec<String>,
    params: Vec<Param>,
    /// Ranges as the function gave them.
    ranges: Vec<Transform>,
    inputs: usize,
    outputs: usize,
}

/// Rows that are looked at before a fit.
const ROWS: usize = 5;
/// Slopes agree with differences to this, and values of rows with those of single rows.
const CLOSE: f64 = 1e-4;

impl General {
    /// Makes the mean function of D inputs and P outputs, with its starting values.
    pub fn new(function: impl Function, inputs: usize, outputs: usize) -> Self {
        Self::of(Arc::new(function), inputs, outputs)
    }

    fn of(function: Arc<dyn Function>, inputs: usize, outputs: usize) -> Self {
        let (names, params): (Vec<String>, Vec<Param>) =
            function.parameters(inputs).into_iter().unzip();
        let ranges = params.iter().map(Param::natural).collect();
        Self { function, names, params, ranges, inputs, outputs }
    }

    /// Reads what [`Mean::to_json`] writes: the parameters. The function itself is code and comes with `function`, as do its
    /// [`entries`](Function::entries).
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown entry, [`Error::InvalidParameter`] for bad values.
    pub fn read(function: impl Function, args: &Args<'_>) -> Result<Self> {
        let mut own = Self::new(function, args.inputs, args.outputs);
        let entries = own.function.entries();
        args.read(own.params_mut(), entries.keys().map(String::as_str))?;
        Ok(own)
    }

    /// Returns the function.
    pub fn function(&self) -> &dyn Function {
        &*self.function
    }

    fn numbers(&self) -> Vec<&[f64]> {
        self.params.iter().map(Param::value).collect()
    }

    fn values(&self, x: MatRef<f64>, outputs: usize) -> Mat<f64> {
        let mut out = Mat::full(x.nrows(), outputs, f64::NAN);
        self.function.values(&self.numbers(), x, out.as_mut());
        out
    }

    /// Returns the slopes of Σ w∘m(X): in the parameters, and in the inputs.
    fn pulled(&self, x: MatRef<f64>, weights: MatRef<f64>) -> (Vec<f64>, Mat<f64>) {
        let mut parameters = vec![0.0; self.num_params()];
        let mut of_x = Mat::zeros(x.nrows(), x.ncols());
        let slopes = Slopes { parameters: &mut parameters, x: of_x.as_mut() };
        self.function.pull_back(&self.numbers(), x, weights, slopes);
        (parameters, of_x)
    }

    fn parameters_by_differences(&self, x: MatRef<f64>, weights: MatRef<f64>) -> Vec<f64> {
        let mut slopes = vec![0.0; self.num_params()];
        let sum = |numbers: &[&[f64]]| {
            let mut out = Mat::zeros(x.nrows(), weights.ncols());
            self.function.values(numbers, x, out.as_mut());
            out
        };
        // differences of values, not of their sum, lose fewer digits
        Param::differences(&self.params, sum, |at, up, down, apart| {
            slopes[at] = dot((&up - &down).as_ref(), weights) / apart;
        });
        slopes
    }

    fn inputs_by_differences(&self, x: MatRef<f64>, weights: MatRef<f64>) -> Mat<f64> {
        let mut of_x = Mat::zeros(x.nrows(), x.ncols());
        for q in 0..x.ncols() {
            let mut moved = [STEP, -STEP].map(|step| {
                let mut rows = x.to_owned();
                rows.col_as_slice_mut(q).iter_mut().for_each(|v| *v += step * v.abs().max(1.0));
                let values = self.values(rows.as_ref(), weights.ncols());
                (rows, values)
            });
            let [(above, up), (below, down)] = &mut moved;
            for (i, slope) in of_x.col_as_slice_mut(q).iter_mut().enumerate() {
                let sum: f64 = (0..weights.ncols())
                    .map(|p| weights[(i, p)] * (up[(i, p)] - down[(i, p)]))
                    .sum();
                *slope = sum / (above[(i, q)] - below[(i, q)]);
            }
        }
        of_x
    }

    /// Returns slopes in the inputs of Σ w∘m(X).
    fn of_inputs(&self, x: MatRef<f64>, weights: MatRef<f64>) -> Mat<f64> {
        match self.function.has_pull_back() {
            true => self.pulled(x, weights).1,
            false => self.inputs_by_differences(x, weights),
        }
    }

    fn wrong(&self, what: &str) -> Error {
        Error::Invalid(format!(
            "the mean function `{}` {what}; `sparsegp::testing` (in Python `sparsegp.testing.check_mean`) checks it in full",
            self.function.name()
        ))
    }
}

impl Mean for General {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        self.names.iter().zip(&self.params).for_each(|(name, param)| visitor(name, param));
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        self.names.iter().zip(&mut self.params).for_each(|(name, param)| visitor(name, param));
    }

    fn evaluate(&self, x: MatRef<f64>, out: MatMut<f64>) {
        self.function.values(&self.numbers(), x, out);
    }

    fn vjp(&self, x: MatRef<f64>, a: MatRef<f64>, gradient: &mut [f64]) {
        if self.params.is_empty() {
            return;
        }
        let slopes = match self.function.has_pull_back() {
            true => self.pulled(x, a).0,
            false => self.parameters_by_differences(x, a),
        };
        gradient.iter_mut().zip(slopes).for_each(|(g, s)| *g += s);
    }

    fn add_slopes(&self, x: MatRef<f64>, output: usize, mut out: MatMut<f64>) {
        let one = |_, p: usize| f64::from(u8::from(p == output));
        let weights = Mat::from_fn(x.nrows(), self.outputs, one);
        self.pull_inputs(x, weights.as_ref(), out.rb_mut());
    }

    fn pull_inputs(&self, x: MatRef<f64>, a: MatRef<f64>, mut out: MatMut<f64>) {
        let slopes = self.of_inputs(x, a);
        for q in 0..x.ncols() {
            let target = column_mut(out.rb_mut(), q);
            target.iter_mut().zip(column(slopes.as_ref(), q)).for_each(|(t, s)| *t += s);
        }
    }

    fn check(&self, inputs: usize, outputs: usize) -> Result<()> {
        super::check_shape(self, [inputs, outputs], [self.inputs, self.outputs])
    }

    fn trial(&self, x: MatRef<f64>, outputs: usize) -> Result<()> {
        let count = ROWS.min(x.nrows());
        let rows = Mat::from_fn(count, x.ncols(), |i, q| x[(i * x.nrows() / count, q)]);
        let rows = rows.as_ref();
        let values = self.values(rows, outputs);
        for i in 0..count {
            let alone = self.values(rows.subrows(i, 1), outputs);
            for p in 0..outputs {
                let (own, other) = (values[(i, p)], alone[(0, p)]);
                if !own.is_finite() {
                    return Err(self.wrong(&format!("is {own} for row {}", i * x.nrows() / count)));
                }
                if (own - other).abs() > CLOSE * (1.0 + own.abs()) {
                    return Err(self.wrong(&format!(
                        "is {own} for a row among others and {other} for the row alone: it must look at every row by itself"
                    )));
                }
            }
        }
        if !self.function.has_pull_back() || count == 0 {
            return Ok(());
        }
        let weights =
            Mat::from_fn(count, outputs, |i, p| 1.0 + (1.7 * i as f64 + 5.1 * p as f64).sin());
        let weights = weights.as_ref();
        let (own, of_x) = self.pulled(rows, weights);
        let differs = |a: f64, b: f64| (a - b).is_nan() || (a - b).abs() > CLOSE * (1.0 + b.abs());
        let named = self.names.iter().zip(&self.params);
        let names = named.flat_map(|(name, param)| vec![name; param.len()]);
        let each = own.iter().zip(self.parameters_by_differences(rows, weights)).zip(names);
        for ((a, b), name) in each {
            if differs(*a, b) {
                return Err(self.wrong(&format!(
                    "has the slope {a} in `{name}`, where differences of its values give {b}"
                )));
            }
        }
        let other = self.inputs_by_differences(rows, weights);
        for (i, q) in (0..count).flat_map(|i| (0..x.ncols()).map(move |q| (i, q))) {
            let (a, b) = (of_x[(i, q)], other[(i, q)]);
            if differs(a, b) {
                return Err(self.wrong(&format!(
                    "has the slope {a} in input column {q}, where differences of its values give {b}"
                )));
            }
        }
        Ok(())
    }

    fn to_json(&self) -> Value {
        let mut object = json!({ "type": self.name() });
        for (name, entry) in self.function.entries() {
            object[name] = entry;
        }
        for ((name, param), range) in self.names.iter().zip(&self.params).zip(&self.ranges) {
            object[name] = param.to_json(*range);
        }
        object
    }

    fn clone_box(&self) -> Box<dyn Mean> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;

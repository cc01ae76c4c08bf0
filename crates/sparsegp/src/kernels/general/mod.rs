//! Kernels that are given by their values.
//!
//! A type implements [`Covariance`]; [`General`] makes a kernel of it: named parameters with ranges, priors and bounds, active
//! columns, a symmetric K(X). Slopes are those that [`Covariance::pull_back`] gives, else central differences of the values,
//! which cost two evaluations for each parameter and each input. For stationary kernels [`super::custom`] is faster and knows
//! more (spectral densities, Markov forms); this one asks for nothing but values.
//!
//! ```
//! use sparsegp::kernels::general::{Covariance, General};
//! use sparsegp::kernels::{Inputs, Kernel, Tape};
//! use sparsegp::linalg::{Mat, MatMut, MatRef};
//! use sparsegp::params::{Param, Role};
//!
//! /// The Wiener process: k = σ² min(x, x′), for positive inputs.
//! #[derive(Clone, Debug)]
//! struct Wiener;
//!
//! impl Covariance for Wiener {
//!     fn name(&self) -> &'static str {
//!         "wiener"
//!     }
//!     fn parameters(&self, _columns: usize) -> Vec<(String, Param)> {
//!         vec![("variance".into(), Param::positive(1.0).of(Role::Variance))]
//!     }
//!     fn values(&self, parameters: &[&[f64]], x: MatRef<f64>, z: MatRef<f64>, mut out: MatMut<f64>) {
//!         for j in 0..z.nrows() {
//!             for i in 0..x.nrows() {
//!                 out[(i, j)] = parameters[0][0] * x[(i, 0)].min(z[(j, 0)]);
//!             }
//!         }
//!     }
//! }
//!
//! let kernel = General::new(Wiener, Inputs::unnamed(1))?;
//! let x = Mat::from_fn(2, 1, |i, _| 1.0 + i as f64);
//! let mut k = Mat::zeros(2, 2);
//! kernel.evaluate(x.as_ref(), None, k.as_mut(), &mut Tape::off());
//! assert_eq!((k[(0, 1)], k[(1, 1)]), (1.0, 2.0));
//! # Ok::<(), sparsegp::Error>(())
//! ```
//!
//! [`super::register`] gives such a kernel a name in specifications and model files.

mod differences;
mod trial;

use super::registry::{Args, object};
use super::{Cotangents, Inputs, Kernel, Tape, Unit, check_columns, spec};
use crate::error::Result;
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut, mirror_lower};
use crate::params::{Param, Role, Transform, Visitor, VisitorMut};
use faer::reborrow::ReborrowMut;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Where [`Covariance::pull_back`] adds slopes.
pub struct Slopes<'a> {
    /// In the constrained parameters, in the order of [`Covariance::parameters`], the numbers of each one after the other.
    pub parameters: &'a mut [f64],
    /// In the first inputs, B×d.
    pub x: MatMut<'a, f64>,
    /// In the second inputs, M×d.
    pub z: MatMut<'a, f64>,
}

/// A covariance function k(x, x′) by its values. Only `name`, `parameters` and `values` must be given.
///
/// Inputs have only the d active columns. `parameters` are values in the order of
/// [`Covariance::parameters`]. Methods may be called from several threads at once.
pub trait Covariance: Send + Sync + std::fmt::Debug + 'static {
    /// Returns the name in specifications, model files and messages.
    fn name(&self) -> &'static str;

    /// Returns the names of the parameters of so many columns, with starting values. Of the roles
    /// [`Role::Variance`] and [`Role::Lengthscales`] those that are not [`given`](Param::given)
    /// start from the data, as in the kernels of this crate.
    fn parameters(&self, columns: usize) -> Vec<(String, Param)>;

    /// Computes k(xᵢ, zⱼ) into `out` (B×M), for every i and j by itself. `z` may be `x`.
    fn values(&self, parameters: &[&[f64]], x: MatRef<f64>, z: MatRef<f64>, out: MatMut<f64>);

    /// Computes k(xᵢ, xᵢ) into `out`; by default from `values` of a few rows at a time.
    fn variances(&self, parameters: &[&[f64]], x: MatRef<f64>, out: &mut [f64]) {
        variances_of_values(self, parameters, x, out);
    }

    /// Returns whether [`Covariance::pull_back`] gives slopes; else they are differences.
    fn has_pull_back(&self) -> bool {
        false
    }

    /// Adds to `slopes` those of Σᵢⱼ wᵢⱼ k(xᵢ, zⱼ) for weights w (B×M): of the parameters, of `x` and of `z`.
    fn pull_back(
        &self,
        parameters: &[&[f64]],
        x: MatRef<f64>,
        z: MatRef<f64>,
        weights: MatRef<f64>,
        slopes: Slopes<'_>,
    ) {
        let _ = (parameters, x, z, weights, slopes);
    }

    /// Returns the further entries of the specification, which the builder of the kernel reads:
    /// what is not a parameter.
    fn entries(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// Rows whose variances are taken from one block of values.
const AT_ONCE: usize = 32;

/// Computes k(xᵢ, xᵢ) into `out` from [`Covariance::values`] of a few rows at a time.
pub fn variances_of_values<C: Covariance + ?Sized>(
    covariance: &C,
    parameters: &[&[f64]],
    x: MatRef<f64>,
    out: &mut [f64],
) {
    for (start, out) in (0..x.nrows()).step_by(AT_ONCE).zip(out.chunks_mut(AT_ONCE)) {
        let rows = x.subrows(start, out.len());
        let mut k = Mat::zeros(out.len(), out.len());
        covariance.values(parameters, rows, rows, k.as_mut());
        out.iter_mut().enumerate().for_each(|(i, v)| *v = k[(i, i)]);
    }
}

/// The kernel of a [`Covariance`].
#[derive(Clone, Debug)]
pub struct General {
    covariance: Arc<dyn Covariance>,
    names: Vec<String>,
    params: Vec<Param>,
    /// Ranges as the covariance gave them.
    ranges: Vec<Transform>,
    dims: Vec<usize>,
    dims_given: bool,
}

impl General {
    /// Makes a kernel of all inputs, with its starting values.
    ///
    /// # Errors
    /// None that inputs can cause.
    pub fn new(covariance: impl Covariance, inputs: Inputs<'_>) -> Result<Self> {
        let name = covariance.name();
        Self::read(covariance, &Args::new(name, &Map::new(), inputs))
    }

    /// Reads what [`Kernel::to_json`] writes: the parameters and `active_dims`. The function itself is code and comes with
    /// `covariance`, as do its [`entries`](Covariance::entries).
    ///
    /// # Errors
    /// As for [`super::build`].
    pub fn read(covariance: impl Covariance, args: &Args<'_>) -> Result<Self> {
        Self::of(Arc::new(covariance), args)
    }

    fn of(covariance: Arc<dyn Covariance>, args: &Args<'_>) -> Result<Self> {
        let (dims, dims_given) = args.active_dims()?;
        let (names, mut params): (Vec<String>, Vec<Param>) =
            covariance.parameters(dims.len()).into_iter().unzip();
        let entries = covariance.entries();
        let own = entries.keys().map(String::as_str);
        let known: Vec<&str> =
            names.iter().map(String::as_str).chain(["active_dims"]).chain(own).collect();
        args.allow(&known)?;
        let ranges = params.iter().map(Param::natural).collect();
        for (name, param) in names.iter().zip(&mut params) {
            args.read(name, param)?;
        }
        Ok(Self { covariance, names, params, ranges, dims, dims_given })
    }

    /// Returns the function.
    pub fn covariance(&self) -> &dyn Covariance {
        &*self.covariance
    }

    /// Returns the present values.
    fn numbers(&self) -> Vec<&[f64]> {
        self.params.iter().map(Param::value).collect()
    }

    fn active(&self, x: MatRef<f64>) -> Mat<f64> {
        let mut active = Mat::zeros(x.nrows(), self.dims.len());
        for (q, &d) in self.dims.iter().enumerate() {
            active.col_as_slice_mut(q).copy_from_slice(column(x, d));
        }
        active
    }

    /// Adds slopes of active columns to those of all.
    fn spread(&self, active: MatRef<f64>, sink: Option<&mut MatMut<'_, f64>>) {
        let Some(sink) = sink else { return };
        for (q, &d) in self.dims.iter().enumerate() {
            let target = column_mut(sink.rb_mut(), d);
            target.iter_mut().zip(column(active, q)).for_each(|(t, s)| *t += s);
        }
    }

    /// Returns the slopes of Σ w∘k(X, Z), by the covariance's own pull-back.
    fn pulled(
        &self,
        [x, z]: [MatRef<f64>; 2],
        weights: MatRef<f64>,
        parameters: &mut [f64],
    ) -> [Mat<f64>; 2] {
        let [mut x_bar, mut z_bar] = [x, z].map(|rows| Mat::zeros(rows.nrows(), rows.ncols()));
        let slopes = Slopes { parameters, x: x_bar.as_mut(), z: z_bar.as_mut() };
        self.covariance.pull_back(&self.numbers(), x, z, weights, slopes);
        [x_bar, z_bar]
    }

    /// Returns the slopes of Σ wᵢ k(xᵢ, xᵢ), by the covariance's own pull-back.
    fn pulled_variances(
        &self,
        x: MatRef<f64>,
        weights: &[f64],
        parameters: &mut [f64],
    ) -> Mat<f64> {
        let mut all = Mat::zeros(x.nrows(), x.ncols());
        for (start, weights) in (0..x.nrows()).step_by(AT_ONCE).zip(weights.chunks(AT_ONCE)) {
            let rows = x.subrows(start, weights.len());
            let mut diagonal = Mat::zeros(weights.len(), weights.len());
            weights.iter().enumerate().for_each(|(i, w)| diagonal[(i, i)] = *w);
            let [own, other] = self.pulled([rows, rows], diagonal.as_ref(), parameters);
            let mut part = all.as_mut().subrows_mut(start, weights.len());
            part.copy_from(&own + &other);
        }
        all
    }
}

impl Kernel for General {
    fn name(&self) -> &'static str {
        self.covariance.name()
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        self.names.iter().zip(&self.params).for_each(|(name, param)| visitor(name, param));
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        self.names.iter().zip(&mut self.params).for_each(|(name, param)| visitor(name, param));
    }

    fn evaluate(&self, x: MatRef<f64>, z: Option<MatRef<f64>>, mut out: MatMut<f64>, _: &mut Tape) {
        let own = self.active(x);
        if let Some(z) = z {
            let other = self.active(z);
            return self.covariance.values(&self.numbers(), own.as_ref(), other.as_ref(), out);
        }
        self.covariance.values(&self.numbers(), own.as_ref(), own.as_ref(), out.rb_mut());
        // values by products of inputs are symmetric up to rounding only
        mirror_lower(out.rb_mut());
        let mut variances = vec![0.0; x.nrows()];
        self.diag(x, &mut variances);
        variances.iter().enumerate().for_each(|(i, v)| out[(i, i)] = *v);
    }

    fn vjp(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        _: MatRef<f64>,
        mut k_bar: MatMut<f64>,
        _: &mut Tape,
        sinks: &mut Cotangents<'_>,
    ) {
        let own = self.active(x);
        if let Some(z) = z {
            let other = self.active(z);
            let rows = [own.as_ref(), other.as_ref()];
            if self.covariance.has_pull_back() {
                let [x_bar, z_bar] = self.pulled(rows, k_bar.as_ref(), sinks.params);
                self.spread(x_bar.as_ref(), sinks.x.as_mut());
                self.spread(z_bar.as_ref(), sinks.z.as_mut());
            } else {
                self.by_differences(rows, k_bar.as_ref(), sinks);
            }
            return;
        }
        // the diagonal is that of the variances
        let weights: Vec<f64> = (0..x.nrows()).map(|i| k_bar[(i, i)]).collect();
        self.diag_vjp(x, &weights, sinks);
        (0..x.nrows()).for_each(|i| k_bar[(i, i)] = 0.0);
        let rows = [own.as_ref(), own.as_ref()];
        if self.covariance.has_pull_back() {
            let [x_bar, z_bar] = self.pulled(rows, k_bar.as_ref(), sinks.params);
            self.spread((&x_bar + &z_bar).as_ref(), sinks.x.as_mut());
        } else {
            // k(xᵢ, xⱼ) = k(xⱼ, xᵢ): what moves a column moves a row
            let mut both = k_bar.as_ref().to_owned();
            both += k_bar.as_ref().transpose();
            self.by_differences_of_parameters(rows, k_bar.as_ref(), sinks.params);
            self.by_differences_of_x(rows, both.as_ref(), sinks.x.as_mut());
        }
    }

    fn diag(&self, x: MatRef<f64>, out: &mut [f64]) {
        self.covariance.variances(&self.numbers(), self.active(x).as_ref(), out);
    }

    fn diag_vjp(&self, x: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        let own = self.active(x);
        if self.covariance.has_pull_back() {
            let x_bar = self.pulled_variances(own.as_ref(), weights, sinks.params);
            return self.spread(x_bar.as_ref(), sinks.x.as_mut());
        }
        self.variances_by_differences(own.as_ref(), weights, sinks);
    }

    fn units(&self) -> Vec<Option<Unit>> {
        let of = |param: &Param| match param.role() {
            Role::Variance => vec![Some(Unit::VARIANCE); param.len()],
            Role::Lengthscales if param.len() == self.dims.len() => {
                self.dims.iter().map(|&d| Some(Unit::input(d, 1))).collect()
            }
            _ => vec![None; param.len()],
        };
        self.params.iter().flat_map(of).collect()
    }

    fn relevance(&self, relevance: &mut [f64]) {
        let lengthscales = self.params.iter().filter(|param| param.role() == Role::Lengthscales);
        for param in lengthscales.filter(|param| [1, self.dims.len()].contains(&param.len())) {
            for (q, &d) in self.dims.iter().enumerate() {
                let own = param.value()[if param.len() == 1 { 0 } else { q }];
                relevance[d] = relevance[d].max(1.0 / own);
            }
        }
    }

    fn initialise(&mut self, spreads: &[f64], variance: f64) {
        // as stationary kernels start
        let factor = (self.dims.len() as f64).sqrt();
        let own: Vec<f64> = self.dims.iter().map(|&d| factor * spreads[d]).collect();
        let mean = (own.iter().map(|l| l.ln()).sum::<f64>() / own.len() as f64).exp();
        for param in &mut self.params {
            match param.role() {
                Role::Variance => spec::initialise(param, &[variance]),
                Role::Lengthscales if param.len() == own.len() => spec::initialise(param, &own),
                Role::Lengthscales => spec::initialise(param, &[mean]),
                _ => {}
            }
        }
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        check_columns(self.name(), &self.dims, x)
    }

    fn trial(&self, x: MatRef<f64>) -> Result<()> {
        self.check(x)?;
        self.tried(self.active(x).as_ref())
    }

    fn to_json(&self) -> Value {
        let mut json = object(self.name(), &[], self.dims_given.then_some(&self.dims));
        for (name, entry) in self.covariance.entries() {
            json[name] = entry;
        }
        for ((name, param), range) in self.names.iter().zip(&self.params).zip(&self.ranges) {
            json[name] = json!(param.to_json(*range));
        }
        json
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;

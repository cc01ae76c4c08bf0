//! A Gaussian-process model: slots for kernel, mean, noise, inducing points and method, and the
//! posterior it is conditioned to.

mod builder;
mod deep;
mod hyperparameters;
mod latents;
mod leave_one_out;
mod method;
mod posterior;
pub mod precision;
mod row_noise;
mod series;

pub use builder::Builder;
pub(crate) use hyperparameters::start_hyperparameters;
pub use hyperparameters::{hyperparameter_names, hyperparameters, set_hyperparameters};
pub use leave_one_out::LeaveOneOut;
pub(crate) use method::finite;
pub use method::{Diagnostics, Evaluation, Keeps, Method, RowSite, Sampler, WithQ};
#[cfg(feature = "files")]
pub(crate) use posterior::SavedTrend;
pub(crate) use posterior::{ClosedForm, ClosedProcess, ClosedTrend, Explained};
pub use posterior::{
    Conditional, ConditioningRows, DEFAULT_WAVES, Functions, InputGradients, Judgement, Left,
    Moments, Posterior, Predicted, PredictedTerm,
};
pub(crate) use row_noise::{RowNoise, weighty};

use crate::data::Source;
use crate::deep::Layer;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, place_of};
use crate::likelihoods::{Gaussian, Likelihood, mixing_shape};
use crate::linalg::{Jitter, Mat, MatRef, sized};
use crate::means::Mean;
use crate::params::{
    Named, NamedMut, Param, Role, Transform, Visitor, VisitorMut, assumed_log_prior, count,
    free_count, free_gradient, free_values, in_group, listed, listed_mut, log_prior, prefixed,
    prefixed_mut, set_free_values, unknown,
};
use crate::variational::Variational;
use std::fmt::Display;

/// A model of P target columns as functions of D input columns, through L latent functions: K for
/// each target column, where K is what the likelihood asks for ([`Likelihood::latents`]). Those of
/// target column p are p·K, …, p·K + K − 1. Or Q in all, which a matrix mixes ([`Likelihood::mixing`]).
#[derive(Clone, Debug)]
pub struct Model {
    /// Covariance functions: one that all latent functions share, or one for each.
    pub kernels: Vec<Box<dyn Kernel>>,
    /// Mean function, with L outputs (one for each target column where latent functions are mixed).
    pub mean: Box<dyn Mean>,
    /// Observation model.
    pub likelihood: Box<dyn Likelihood>,
    /// Inducing inputs, M×D: none for methods without, one set that all latent functions share, or
    /// one for each.
    pub inducing: Vec<Param>,
    /// q(u), for the methods that train it.
    pub q: Option<Variational>,
    /// How it is trained and conditioned.
    pub method: &'static dyn Method,
    /// Jitter of Kuu.
    pub jitter: Jitter,
    /// Layers that rows go through first, in a deep model; none in others. Kernels and inducing points are then of what
    /// the last of them gives.
    pub hidden: Vec<Layer>,
}

/// A part of a model that has parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The hidden layer of this index.
    Layer(usize),
    /// The kernel of this index.
    Kernel(usize),
    /// The mean function.
    Mean,
    /// The likelihood.
    Likelihood,
    /// The set of inducing points of this index.
    Inducing(usize),
    /// q(u).
    Q,
}

/// Gradients of a model's parts, in the order of [`Model::params`].
#[derive(Debug)]
pub struct Gradient<'a> {
    /// Kernels, one after the other.
    pub kernel: &'a mut [f64],
    /// Mean function.
    pub mean: &'a mut [f64],
    /// Likelihood.
    pub likelihood: &'a mut [f64],
    /// Inducing points, column by column, one set after the other.
    pub inducing: &'a mut [f64],
    /// q(u).
    pub q: &'a mut [f64],
}

/// Returns a parameter that holds inducing points (M×D).
pub fn inducing_param(z: MatRef<f64>) -> Param {
    Param::of_matrix(z, Transform::Identity).of(Role::Points)
}

/// Reads the points in a parameter (M×D), into `out`.
fn points(param: &Param, out: &mut Mat<f64>) {
    let own = param.matrix();
    sized(out, own.nrows(), own.ncols());
    out.copy_from(own);
}

/// The path of a component: its name where there is one, with the index where there are several
/// (`kernel`, `kernels[2]`, `inducing.points`, `inducing.points[2]`).
struct Numbered(&'static str, usize, usize);

impl std::fmt::Display for Numbered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(name, index, of) = self;
        match (*of, *name) {
            (1, name) => f.write_str(name),
            (_, "kernel") => write!(f, "kernels[{index}]"),
            (_, name) => write!(f, "{name}[{index}]"),
        }
    }
}

impl Model {
    /// Returns the covariance function that all latent functions share; the first of several.
    pub fn kernel(&self) -> &dyn Kernel {
        &*self.kernels[0]
    }

    /// Returns the variance of Gaussian noise; NaN for another likelihood.
    pub fn noise(&self) -> f64 {
        self.likelihood.as_gaussian().map_or(f64::NAN, |g| g.variance.scalar())
    }

    /// Returns the Gaussian likelihood that a method needs.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names a method for other likelihoods.
    pub fn gaussian(&self) -> Result<&Gaussian> {
        self.likelihood.as_gaussian().ok_or_else(|| {
            Error::Invalid(format!(
                "method `{}` is for Gaussian noise, and the likelihood is `{}`; use `svgp`",
                self.method.name(),
                self.likelihood.name()
            ))
        })
    }

    /// Returns the number of latent functions with their own q for so many target columns: K for
    /// each, or as many as are mixed ([`Likelihood::mixing`]).
    pub fn latents(&self, outputs: usize) -> usize {
        match self.likelihood.mixing() {
            Some(mixing) => mixing_shape(mixing).1,
            None => self.likelihood.latents() * outputs,
        }
    }

    /// Shows the parameters with the part that they are of, in the order of [`Model::visit`].
    pub fn visit_parts<'a>(&'a self, visitor: &mut dyn FnMut(Part, &dyn Display, &'a Param)) {
        for (l, layer) in self.hidden.iter().enumerate() {
            let of = Part::Layer(l);
            prefixed(&format!("layers[{l}]"), &mut |path, p| visitor(of, path, p), |v| {
                layer.visit(v)
            });
        }
        let count = self.kernels.len();
        for (l, kernel) in self.kernels.iter().enumerate() {
            let (of, name) = (Part::Kernel(l), Numbered("kernel", l, count));
            prefixed(&name, &mut |path, p| visitor(of, path, p), |v| kernel.visit(v));
        }
        prefixed(&"mean", &mut |path, p| visitor(Part::Mean, path, p), |v| self.mean.visit(v));
        let of = Part::Likelihood;
        prefixed(&"likelihood", &mut |path, p| visitor(of, path, p), |v| self.likelihood.visit(v));
        for (l, z) in self.inducing.iter().enumerate() {
            let name = Numbered("inducing.points", l, self.inducing.len());
            visitor(Part::Inducing(l), &name, z);
        }
        if let Some(q) = &self.q {
            prefixed(&"q", &mut |path, p| visitor(Part::Q, path, p), |v| q.visit(v));
        }
    }

    /// Shows the parameters with their paths: those of hidden layers first (`layers[l].kernel.…`, [`Layer::visit`]), then
    /// `kernel.…` (`kernels[l].…` where there are several), `mean.…`, `likelihood.…`, `inducing.points`
    /// (`inducing.points[l]`), `q.…`.
    pub fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        self.visit_parts(&mut |_, path, param| visitor(path, param));
    }

    /// Shows the same, to change them.
    pub fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        for (l, layer) in self.hidden.iter_mut().enumerate() {
            prefixed_mut(&format!("layers[{l}]"), visitor, |v| layer.visit_mut(v));
        }
        let (kernels, sets) = (self.kernels.len(), self.inducing.len());
        for (l, kernel) in self.kernels.iter_mut().enumerate() {
            prefixed_mut(&Numbered("kernel", l, kernels), visitor, |v| kernel.visit_mut(v));
        }
        prefixed_mut(&"mean", visitor, |v| self.mean.visit_mut(v));
        prefixed_mut(&"likelihood", visitor, |v| self.likelihood.visit_mut(v));
        for (l, z) in self.inducing.iter_mut().enumerate() {
            visitor(&Numbered("inducing.points", l, sets), z);
        }
        if let Some(q) = &mut self.q {
            prefixed_mut(&"q", visitor, |v| q.visit_mut(v));
        }
    }

    /// Returns the list of what [`Model::visit`] shows.
    pub fn params(&self) -> Vec<Named<'_>> {
        listed(|v| self.visit(v))
    }

    /// Returns the same, to change them.
    pub fn params_mut(&mut self) -> Vec<NamedMut<'_>> {
        listed_mut(|v| self.visit_mut(v))
    }

    /// Returns the number of numbers among the parameters.
    pub fn num_params(&self) -> usize {
        count(|v| self.visit(v))
    }

    /// Returns the parts of a gradient with respect to all constrained parameters, in the order of
    /// [`Model::params`].
    pub fn parts_of<'a>(&self, gradient: &'a mut [f64]) -> Gradient<'a> {
        let kernels = self.kernels.iter().map(|k| k.num_params()).sum();
        let (kernel, rest) = gradient.split_at_mut(kernels);
        let (mean, rest) = rest.split_at_mut(self.mean.num_params());
        let (likelihood, rest) = rest.split_at_mut(self.likelihood.num_params());
        let (inducing, q) = rest.split_at_mut(self.inducing.iter().map(Param::len).sum());
        Gradient { kernel, mean, likelihood, inducing, q }
    }

    /// Returns the inducing points, M×D; the first set of several.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the model has none.
    pub fn inducing_points(&self) -> Result<Mat<f64>> {
        self.inducing_set(0)
    }

    /// Returns the inducing points of a latent function, M×D.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the model has none.
    pub fn inducing_set(&self, latent: usize) -> Result<Mat<f64>> {
        let mut set = Mat::new();
        self.read_inducing_set(latent, &mut set)?;
        Ok(set)
    }

    /// Reads the same, into `out`.
    ///
    /// # Errors
    /// As for [`Model::inducing_set`].
    pub fn read_inducing_set(&self, latent: usize, out: &mut Mat<f64>) -> Result<()> {
        let none =
            || Error::Invalid(format!("method `{}` needs inducing points", self.method.name()));
        let index = place_of(self.inducing.len(), latent);
        points(self.inducing.get(index).ok_or_else(none)?, out);
        Ok(())
    }

    /// Sets the parameter at `path`; one number is spread over all of its values.
    ///
    /// # Errors
    /// [`Error::UnknownParameter`] with the nearest paths, [`Error::InvalidParameter`].
    pub fn set(&mut self, path: &str, value: &[f64]) -> Result<()> {
        let error = unknown(path, &self.params());
        match self.params_mut().into_iter().find(|(p, _)| p == path) {
            Some((_, param)) => param.set(path, value),
            None => Err(error),
        }
    }

    /// Applies `change` to every parameter in the group that `pattern` names (a path or the
    /// beginning of one, such as `kernel`, which names several kernels too).
    ///
    /// # Errors
    /// [`Error::UnknownParameter`] if there is none.
    pub fn for_group(&mut self, pattern: &str, mut change: impl FnMut(&mut Param)) -> Result<()> {
        let error = unknown(pattern, &self.params());
        let mut found = false;
        let pattern = match pattern {
            "kernel" if self.kernels.len() > 1 => "kernels",
            other => other,
        };
        for (_, param) in self.params_mut().into_iter().filter(|(p, _)| in_group(p, pattern)) {
            change(param);
            found = true;
        }
        if found { Ok(()) } else { Err(error) }
    }

    /// Keeps a group of parameters as they are (`true`) or trains them (`false`).
    ///
    /// # Errors
    /// As for [`Model::for_group`]; [`Error::Invalid`] for sites.
    pub fn freeze(&mut self, pattern: &str, frozen: bool) -> Result<()> {
        let sites = self.q.as_ref().is_some_and(|q| q.tying().is_some());
        if sites && (pattern == "q" || pattern.starts_with("q.lambda")) {
            return Err(Error::Invalid(format!(
                "`{pattern}`: sites are moved by separate steps, whatever is frozen; for a q that can \
                 be frozen use `svgp`"
            )));
        }
        self.for_group(pattern, |param| param.frozen = frozen)
    }

    /// Returns the free numbers of the parameters that are trained.
    pub fn free_values(&self) -> Vec<f64> {
        free_values(|v| self.visit(v))
    }

    /// Returns how many there are.
    pub fn free_count(&self) -> usize {
        free_count(|v| self.visit(v))
    }

    /// Sets the parameters that are trained from free numbers.
    pub fn set_free_values(&mut self, free: &[f64]) {
        set_free_values(|v| self.visit_mut(v), free);
    }

    /// Returns the method's objective at the current parameters (log evidence or bound, without
    /// priors) and its gradient with respect to all constrained parameters.
    ///
    /// # Errors
    /// As for [`Method::evaluate`].
    pub fn evaluate(&self, engine: &dyn Engine, data: &dyn Source) -> Result<Evaluation> {
        self.method.evaluate(self, engine, data)
    }

    /// Returns the sum of the log densities of the priors.
    pub fn log_prior(&self) -> f64 {
        log_prior(|v| self.visit(v), &mut vec![0.0; self.num_params()])
    }

    /// Returns the part of [`Model::log_prior`] that was not asked for ([`Param::assumed`]).
    pub fn assumed_log_prior(&self) -> f64 {
        assumed_log_prior(|v| self.visit(v))
    }

    /// Adds the slopes of the log prior to a gradient with respect to all constrained parameters, and
    /// writes that with respect to the free numbers into `free`. Returns the log prior.
    pub fn free_gradient(&self, constrained: &mut [f64], free: &mut [f64]) -> f64 {
        let prior = log_prior(|v| self.visit(v), constrained);
        free_gradient(|v| self.visit(v), constrained, free);
        prior
    }

    /// Returns the objective plus log prior, and the gradient with respect to the free numbers.
    ///
    /// # Errors
    /// As for [`Method::evaluate`]; [`Error::NonFinite`] if value or gradient are not finite.
    pub fn evaluate_free(
        &self,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<(Evaluation, Vec<f64>)> {
        let evaluation = self.evaluate(engine, data)?;
        self.freed(evaluation)
    }

    /// Returns the same of what a training climbs, with its barrier ([`Method::climb`]).
    ///
    /// # Errors
    /// As for [`Method::climb`] and [`Model::evaluate_free`].
    pub fn climb_free(
        &self,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<(Evaluation, Vec<f64>, f64)> {
        let (evaluation, barrier) = self.method.climb(self, engine, data)?;
        let (evaluation, gradient) = self.freed(evaluation)?;
        Ok((evaluation, gradient, barrier))
    }

    fn freed(&self, mut evaluation: Evaluation) -> Result<(Evaluation, Vec<f64>)> {
        let mut gradient = vec![0.0; self.free_count()];
        evaluation.value += self.free_gradient(&mut evaluation.gradient, &mut gradient);
        let value = evaluation.value;
        if !value.is_finite() {
            return Err(Error::NonFinite { what: "the objective".into(), value });
        }
        if let Some(bad) = gradient.iter().find(|g| !g.is_finite()) {
            return Err(Error::NonFinite { what: "the gradient".into(), value: *bad });
        }
        Ok((evaluation, gradient))
    }

    /// Returns the posterior at the current parameters.
    ///
    /// # Errors
    /// As for [`Method::posterior`].
    pub fn posterior(&self, engine: &dyn Engine, data: &dyn Source) -> Result<Posterior> {
        self.method.posterior(self, engine, data)
    }
}

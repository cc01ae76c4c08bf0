//! A Gaussian-process model: slots for kernel, mean, noise, inducing points and method, and the
//! posterior it is conditioned to.

mod posterior;

pub use posterior::Posterior;

use crate::data::Source;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::likelihoods::{Gaussian, Likelihood};
use crate::linalg::{Jitter, Mat, MatRef, column};
use crate::means::Mean;
use crate::methods::{Evaluation, Method};
use crate::params::{
    Named, NamedMut, Param, Shape, Transform, free_gradient, free_values, in_group, log_prior,
    prefixed, set_free_values, unknown,
};
use crate::variational::Variational;

/// A model of P target columns as functions of D input columns, through L latent functions: K for
/// each target column, where K is what the likelihood asks for ([`Likelihood::latents`]). Those of
/// target column p are p·K, …, p·K + K − 1.
#[derive(Clone, Debug)]
pub struct Model {
    /// Covariance functions: one that all latent functions share, or one for each.
    pub kernels: Vec<Box<dyn Kernel>>,
    /// Mean function, with L outputs.
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
}

/// Gradients of a model's parts, in the order of [`Model::params`].
#[derive(Clone, Debug, Default)]
pub struct Gradient {
    /// Kernels, one after the other.
    pub kernel: Vec<f64>,
    /// Mean function.
    pub mean: Vec<f64>,
    /// Likelihood.
    pub likelihood: Vec<f64>,
    /// Inducing points, column by column, one set after the other.
    pub inducing: Vec<f64>,
    /// q(u).
    pub q: Vec<f64>,
}

impl Gradient {
    /// Sets the part of the inducing points, where there is one set.
    pub fn set_inducing(&mut self, z: MatRef<f64>) {
        self.inducing = (0..z.ncols()).flat_map(|q| column(z, q)).copied().collect();
    }

    /// One vector.
    pub fn concat(self) -> Vec<f64> {
        let Self { mut kernel, mean, likelihood, inducing, q } = self;
        kernel.extend(mean);
        kernel.extend(likelihood);
        kernel.extend(inducing);
        kernel.extend(q);
        kernel
    }
}

/// A parameter that holds inducing points (M×D).
pub fn inducing_param(z: MatRef<f64>) -> Param {
    let values = (0..z.ncols()).flat_map(|q| (0..z.nrows()).map(move |i| z[(i, q)])).collect();
    Param::with(values, Shape::Matrix(z.nrows(), z.ncols()), Transform::Identity)
}

/// The points in a parameter, M×D.
fn points(param: &Param) -> Mat<f64> {
    let (m, d) = match param.shape() {
        Shape::Matrix(m, d) => (m, d),
        _ => (param.len(), 1),
    };
    Mat::from_fn(m, d, |i, q| param.value()[q * m + i])
}

/// `name` where there is one, `name[index]` where there are several.
fn numbered(name: &str, index: usize, of: usize) -> String {
    if of == 1 { name.to_owned() } else { format!("{name}[{index}]") }
}

/// The path that a kernel's parameters begin with.
fn kernel_prefix(index: usize, of: usize) -> String {
    if of == 1 { "kernel".into() } else { format!("kernels[{index}]") }
}

impl Model {
    /// The covariance function that all latent functions share; the first of several.
    pub fn kernel(&self) -> &dyn Kernel {
        &*self.kernels[0]
    }

    /// The variance of Gaussian noise; NaN for another likelihood.
    pub fn noise(&self) -> f64 {
        self.likelihood.as_gaussian().map_or(f64::NAN, |g| g.variance.scalar())
    }

    /// The Gaussian likelihood that a method needs.
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

    /// Number of latent functions L for so many target columns.
    pub fn latents(&self, outputs: usize) -> usize {
        self.likelihood.latents() * outputs
    }

    /// Parameters with their paths: `kernel.…` (`kernels[l].…` where there are several), `mean.…`,
    /// `likelihood.…`, `inducing.points` (`inducing.points[l]`), `q.…`.
    pub fn params(&self) -> Vec<Named<'_>> {
        let mut all: Vec<Named<'_>> = Vec::new();
        for (l, kernel) in self.kernels.iter().enumerate() {
            all.extend(prefixed(&kernel_prefix(l, self.kernels.len()), kernel.params()));
        }
        all.extend(prefixed("mean", self.mean.params()));
        all.extend(prefixed("likelihood", self.likelihood.params()));
        let sets = self.inducing.len();
        let path = |l| numbered("inducing.points", l, sets);
        all.extend(self.inducing.iter().enumerate().map(|(l, z)| (path(l), z)));
        all.extend(self.q.iter().flat_map(|q| prefixed("q", q.params())));
        all
    }

    /// The same, to change them.
    pub fn params_mut(&mut self) -> Vec<NamedMut<'_>> {
        let mut all: Vec<NamedMut<'_>> = Vec::new();
        let (kernels, sets) = (self.kernels.len(), self.inducing.len());
        for (l, kernel) in self.kernels.iter_mut().enumerate() {
            all.extend(prefixed(&kernel_prefix(l, kernels), kernel.params_mut()));
        }
        all.extend(prefixed("mean", self.mean.params_mut()));
        all.extend(prefixed("likelihood", self.likelihood.params_mut()));
        let path = |l| numbered("inducing.points", l, sets);
        all.extend(self.inducing.iter_mut().enumerate().map(|(l, z)| (path(l), z)));
        all.extend(self.q.iter_mut().flat_map(|q| prefixed("q", q.params_mut())));
        all
    }

    /// A zero gradient of the right lengths.
    pub fn gradient_slots(&self) -> Gradient {
        let zeros = |params: Vec<Named<'_>>| vec![0.0; params.iter().map(|(_, p)| p.len()).sum()];
        Gradient {
            kernel: vec![0.0; self.kernels.iter().map(|k| k.num_params()).sum()],
            mean: zeros(self.mean.params()),
            likelihood: zeros(self.likelihood.params()),
            inducing: vec![0.0; self.inducing.iter().map(Param::len).sum()],
            q: self.q.as_ref().map_or_else(Vec::new, |q| zeros(q.params())),
        }
    }

    /// The inducing points, M×D; the first set of several.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the model has none.
    pub fn inducing_points(&self) -> Result<Mat<f64>> {
        self.inducing_set(0)
    }

    /// The inducing points of a latent function, M×D.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the model has none.
    pub fn inducing_set(&self, latent: usize) -> Result<Mat<f64>> {
        let none =
            || Error::Invalid(format!("method `{}` needs inducing points", self.method.name()));
        let index = if self.inducing.len() == 1 { 0 } else { latent };
        self.inducing.get(index).map(points).ok_or_else(none)
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
    /// beginning of one, such as `kernel`).
    ///
    /// # Errors
    /// [`Error::UnknownParameter`] if there is none.
    pub fn for_group(&mut self, pattern: &str, mut change: impl FnMut(&mut Param)) -> Result<()> {
        let error = unknown(pattern, &self.params());
        let mut found = false;
        for (_, param) in self.params_mut().into_iter().filter(|(p, _)| in_group(p, pattern)) {
            change(param);
            found = true;
        }
        if found { Ok(()) } else { Err(error) }
    }

    /// Keeps a group of parameters as they are (`true`) or trains them (`false`).
    ///
    /// # Errors
    /// As for [`Model::for_group`].
    pub fn freeze(&mut self, pattern: &str, frozen: bool) -> Result<()> {
        self.for_group(pattern, |param| param.frozen = frozen)
    }

    /// Free numbers of the parameters that are trained.
    pub fn free_values(&self) -> Vec<f64> {
        free_values(&self.params())
    }

    /// Sets the parameters that are trained from free numbers.
    pub fn set_free_values(&mut self, free: &[f64]) {
        set_free_values(self.params_mut(), free);
    }

    /// How far each free number goes for a typical change of the objective, up to a common factor:
    /// what makes the variables of a quasi-Newton method alike. A hyperparameter changes on its
    /// logarithm's scale; an inducing point by a part of a lengthscale that grows with √M, since the
    /// objective is the flatter in each point the more of them there are. (The factor 1/100 between
    /// the two is an empirical optimum: with it 120 iterations go further than 300 without.)
    pub fn typical_steps(&self) -> Vec<f64> {
        let d = match self.inducing.first().map(Param::shape) {
            Some(Shape::Matrix(_, d)) => d,
            _ => 0,
        };
        let mut relevance = vec![0.0; d];
        if d > 0 {
            self.kernels.iter().for_each(|kernel| kernel.relevance(&mut relevance));
        }
        let mut steps = Vec::new();
        for (path, param) in self.params().into_iter().filter(|(_, p)| !p.frozen) {
            if path.starts_with("inducing.points") {
                let m = (param.len() / d.max(1)).max(1);
                for r in &relevance {
                    let length = if *r > 0.0 { 1.0 / r } else { 1.0 };
                    steps.extend(std::iter::repeat_n(0.01 * length * (m as f64).sqrt(), m));
                }
                continue;
            }
            let transform = param.transform();
            for v in param.value() {
                let by_logarithm = match transform {
                    Transform::Identity => 1.0,
                    _ => v / transform.slope_at(*v),
                };
                steps.push(by_logarithm);
            }
        }
        steps
    }

    /// The method's objective at the current parameters (log evidence or bound, without priors) and
    /// its gradient with respect to all constrained parameters.
    ///
    /// # Errors
    /// As for [`Method::evaluate`].
    pub fn evaluate(&self, engine: &dyn Engine, data: &dyn Source) -> Result<Evaluation> {
        self.method.evaluate(self, engine, data)
    }

    /// Objective plus log prior, and the gradient with respect to the free numbers.
    ///
    /// # Errors
    /// As for [`Method::evaluate`]; [`Error::NonFinite`] if value or gradient are not finite.
    pub fn evaluate_free(
        &self,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<(Evaluation, Vec<f64>)> {
        let mut evaluation = self.evaluate(engine, data)?;
        let params = self.params();
        evaluation.value += log_prior(&params, &mut evaluation.gradient);
        let gradient = free_gradient(&params, &evaluation.gradient);
        let value = evaluation.value;
        if !value.is_finite() {
            return Err(Error::NonFinite { what: "the objective".into(), value });
        }
        if let Some(bad) = gradient.iter().find(|g| !g.is_finite()) {
            return Err(Error::NonFinite { what: "the gradient".into(), value: *bad });
        }
        Ok((evaluation, gradient))
    }

    /// The posterior at the current parameters.
    ///
    /// # Errors
    /// As for [`Method::posterior`].
    pub fn posterior(&self, engine: &dyn Engine, data: &dyn Source) -> Result<Posterior> {
        self.method.posterior(self, engine, data)
    }
}

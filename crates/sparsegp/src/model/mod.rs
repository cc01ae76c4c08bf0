//! A Gaussian-process model: slots for kernel, mean, noise, inducing points and method, and the
//! posterior it is conditioned to.

mod posterior;

pub use posterior::Posterior;

use crate::data::Source;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::likelihoods::Gaussian;
use crate::linalg::{Jitter, Mat, MatRef, column};
use crate::means::Mean;
use crate::methods::{Evaluation, Method};
use crate::params::{
    Named, NamedMut, Param, Shape, Transform, free_gradient, free_values, in_group, log_prior,
    prefixed, set_free_values, unknown,
};

/// A model of P target columns, which share everything, as functions of D input columns.
#[derive(Clone, Debug)]
pub struct Model {
    /// Covariance function.
    pub kernel: Box<dyn Kernel>,
    /// Mean function.
    pub mean: Box<dyn Mean>,
    /// Observation noise.
    pub likelihood: Gaussian,
    /// Inducing inputs, M×D, for sparse methods.
    pub inducing: Option<Param>,
    /// How it is trained and conditioned.
    pub method: &'static dyn Method,
    /// Jitter of Kuu.
    pub jitter: Jitter,
}

/// Gradients of a model's parts, in the order of [`Model::params`].
#[derive(Clone, Debug)]
pub struct Gradient {
    /// Kernel.
    pub kernel: Vec<f64>,
    /// Mean function.
    pub mean: Vec<f64>,
    /// Noise variance.
    pub noise: f64,
    /// Inducing points, column by column.
    pub inducing: Vec<f64>,
}

impl Gradient {
    /// Sets the part of the inducing points.
    pub fn set_inducing(&mut self, z: MatRef<f64>) {
        self.inducing = (0..z.ncols()).flat_map(|q| column(z, q)).copied().collect();
    }

    /// One vector.
    pub fn concat(self) -> Vec<f64> {
        let Self { mut kernel, mean, noise, inducing } = self;
        kernel.extend(mean);
        kernel.push(noise);
        kernel.extend(inducing);
        kernel
    }
}

/// A parameter that holds inducing points (M×D).
pub fn inducing_param(z: MatRef<f64>) -> Param {
    let values = (0..z.ncols()).flat_map(|q| (0..z.nrows()).map(move |i| z[(i, q)])).collect();
    Param::with(values, Shape::Matrix(z.nrows(), z.ncols()), Transform::Identity)
}

impl Model {
    /// Parameters with their paths: `kernel.…`, `mean.…`, `likelihood.variance`, `inducing.points`.
    pub fn params(&self) -> Vec<Named<'_>> {
        let mut all: Vec<Named<'_>> = prefixed("kernel", self.kernel.params()).collect();
        all.extend(prefixed("mean", self.mean.params()));
        all.push(("likelihood.variance".into(), &self.likelihood.variance));
        all.extend(self.inducing.iter().map(|z| ("inducing.points".to_owned(), z)));
        all
    }

    /// The same, to change them.
    pub fn params_mut(&mut self) -> Vec<NamedMut<'_>> {
        let mut all: Vec<NamedMut<'_>> = prefixed("kernel", self.kernel.params_mut()).collect();
        all.extend(prefixed("mean", self.mean.params_mut()));
        all.push(("likelihood.variance".into(), &mut self.likelihood.variance));
        all.extend(self.inducing.iter_mut().map(|z| ("inducing.points".to_owned(), z)));
        all
    }

    /// A zero gradient of the right lengths.
    pub fn gradient_slots(&self) -> Gradient {
        Gradient {
            kernel: vec![0.0; self.kernel.num_params()],
            mean: vec![0.0; self.mean.params().iter().map(|(_, p)| p.len()).sum()],
            noise: 0.0,
            inducing: vec![0.0; self.inducing.as_ref().map_or(0, Param::len)],
        }
    }

    /// The inducing points, M×D.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the model has none.
    pub fn inducing_points(&self) -> Result<Mat<f64>> {
        let none =
            || Error::Invalid(format!("method `{}` needs inducing points", self.method.name()));
        let param = self.inducing.as_ref().ok_or_else(none)?;
        let Shape::Matrix(m, d) = param.shape() else { return Err(none()) };
        Ok(Mat::from_fn(m, d, |i, q| param.value()[q * m + i]))
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
        let d = self.inducing.as_ref().map_or(0, |z| match z.shape() {
            Shape::Matrix(_, d) => d,
            _ => 0,
        });
        let mut relevance = vec![0.0; d];
        if d > 0 {
            self.kernel.relevance(&mut relevance);
        }
        let mut steps = Vec::new();
        for (path, param) in self.params().into_iter().filter(|(_, p)| !p.frozen) {
            if path == "inducing.points" {
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

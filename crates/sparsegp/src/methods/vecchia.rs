//! Rows given their nearest neighbours ([`mod@crate::vecchia`]): an approximate log evidence with Gaussian noise, and predictions, in
//! O(Nm³); and the same of what inducing points do not explain ([`vecchia::FullScale`]), whose Z stays where it starts unless it is asked
//! to move.
//!
//! **Neighbours while a training climbs.** Order and neighbours depend on ratios of lengthscales. If they followed every
//! point that a line search tries, the objective would jump between them, by far more than what the last steps gain. So a
//! training holds them where it starts ([`Method::hold`]), climbs, chooses again where it ended, and climbs on if a ratio has
//! moved by more than [`held::MOVED`]: each climb is of one function, the log density of one process. Of many rows it sees the densities
//! of a sample, each given its neighbours among all rows ([`Plan::of_sample`]). Elsewhere, and in the end, the objective is that
//! of the neighbours at the parameters themselves, so that it depends on nothing but these. Predictions take the nearest rows in any case.
//!
//! Weights and known variances of noise are as for [`super::Exact`].
//!
//! With another likelihood the objective is the best bound that any normal q(f) has on the evidence under the prior that neighbours
//! make of the rows ([`vecchia::Latent`]), at the best sites of all rows.

mod held;
mod known;
mod options;
mod sited;

use super::training_rows::TrainingRows;
use super::{Diagnostics, Evaluation, Method, sites};
use crate::data::{InMemory, Source};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::linalg::{Mat, MatRef, column, sum_of_products};
use crate::model::{Conditional, ConditioningRows, Model, Posterior, weighty};
use crate::vecchia::{self, Coupled, Features, FullScale, Metric, Plan, Solver};
use held::{Held, hold};
use known::{Seen, view};
use std::sync::Arc;

/// Neighbours of a row unless another number is asked for.
pub const DEFAULT_NEIGHBOURS: usize = 30;

/// The same where the function is conditioned on its own values, which have no noise that more of them would average.
pub const DEFAULT_LATENT_NEIGHBOURS: usize = 16;

/// Inducing points beside the neighbours unless another number is asked for.
pub const DEFAULT_POINTS: usize = 200;

/// Most neighbours: a block of them is to stay in cache.
const MOST_NEIGHBOURS: usize = 500;

/// Input columns with a lengthscale, at most: in more of them the nearest of 10⁵ rows are hardly nearer than the others.
pub const MOST_INPUTS: usize = 10;

/// Conditioning on nearest neighbours.
#[derive(Debug)]
pub struct Vecchia {
    pub(super) name: &'static str,
    /// Where somebody has asked for a number.
    pub(super) neighbours: Option<usize>,
    /// Inducing points that explain what is far, where it has any.
    pub(super) points: Option<Placed>,
    /// Whether Gaussian noise is taken as other likelihoods are.
    pub(super) latent: bool,
    /// How the precision of the function at all rows is solved with.
    pub(super) solver: Solver,
    /// Rows whose densities a training sees.
    pub(super) training_rows: TrainingRows,
}

/// What becomes of inducing points beside neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    /// They stay where they start: what they leave unexplained the neighbours see.
    Fixed,
    /// They are trained.
    Moving,
}

impl Vecchia {
    /// Makes the method without options.
    pub(super) const fn usual(name: &'static str, points: Option<Placed>) -> Self {
        let training_rows = TrainingRows::USUAL;
        Self { name, neighbours: None, points, latent: false, solver: Solver::Auto, training_rows }
    }

    fn neighbours(&self) -> usize {
        self.neighbours.unwrap_or(DEFAULT_NEIGHBOURS)
    }

    fn latent_neighbours(&self) -> usize {
        self.neighbours.unwrap_or(DEFAULT_LATENT_NEIGHBOURS)
    }

    /// Returns whether the function is conditioned on its own values, by sites of all rows.
    fn has_sites(&self, model: &Model) -> bool {
        self.points.is_none() && (self.latent || model.likelihood.as_gaussian().is_none())
    }

    /// Refuses inputs in which nothing is near.
    fn metric(&self, kernel: &dyn Kernel, inputs: usize) -> Result<Metric> {
        let metric = Metric::of(kernel, inputs);
        match metric.dims() {
            dims if dims > MOST_INPUTS => Err(Error::Invalid(format!(
                "method `{}` is for few inputs: the kernel has lengthscales of {dims} columns (at most {MOST_INPUTS}), among \
                 which no rows are near; use a sparse method such as `titsias2025`, or a kernel of fewer columns \
                 (active_dims)",
                self.name
            ))),
            _ => Ok(metric),
        }
    }

    /// Returns the inducing points of a model, if it has any.
    fn features(&self, model: &Model) -> Result<Option<Features>> {
        if self.points.is_none() {
            return Ok(None);
        }
        Features::new(model.kernel(), model.inducing_points()?, model.jitter).map(Some)
    }

    /// Returns the plan that is held for these rows, or that at the model's parameters.
    fn plan(&self, model: &Model, engine: &dyn Engine, x: MatRef<f64>) -> Result<Arc<Plan>> {
        let metric = self.metric(model.kernel(), x.ncols())?;
        if let Some(held) = Held::of(engine, 0, self.neighbours(), x) {
            return Ok(held);
        }
        Ok(Arc::new(Plan::new(x, metric, self.neighbours())))
    }
}

/// Returns what inducing points explain of rows.
fn explained(
    kernel: &dyn Kernel,
    features: &Features,
    phi: &Mat<f64>,
    x: MatRef<f64>,
) -> Diagnostics {
    let mut prior = vec![0.0; x.nrows()];
    kernel.diag(x, &mut prior);
    let total: f64 = prior.iter().sum();
    let least = -1e-8 * total / prior.len().max(1) as f64;
    let left = prior.iter().enumerate().map(|(i, prior)| {
        let own = column(phi.as_ref(), i);
        prior - sum_of_products(own, own)
    });
    let left: Vec<f64> = left.collect();
    Diagnostics {
        jitter: features.jitter(),
        unexplained: left.iter().sum(),
        prior_variance: Some(total),
        negative: left.iter().filter(|own| **own < least).count(),
        ..Diagnostics::default()
    }
}

impl Method for Vecchia {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_sparse(&self) -> bool {
        self.points.is_some()
    }

    fn moves_points(&self) -> bool {
        self.points == Some(Placed::Moving)
    }

    fn keeps_rows(&self) -> bool {
        true
    }

    fn usual_points(&self) -> Option<usize> {
        self.points.map(|_| DEFAULT_POINTS)
    }

    fn is_bound(&self) -> bool {
        false
    }

    fn training_rows(&self, model: &Model, rows: usize) -> usize {
        if self.points.is_some() || self.has_sites(model) {
            return rows;
        }
        self.training_rows.of(rows, true)
    }

    fn divides_by_noise(&self) -> bool {
        self.latent
    }

    fn takes_kernels(&self) -> bool {
        self.points.is_none()
    }

    /// Returns `false` with inducing points. Without, Gaussian noise in the response form takes
    /// none, and says so where it meets one.
    fn takes_missing(&self) -> bool {
        self.points.is_none()
    }

    fn check(&self, model: &Model) -> Result<()> {
        if self.has_sites(model) {
            if self.training_rows.is_asked() {
                return Err(Error::Invalid(format!(
                    "method `{}`: `training_rows` is for Gaussian noise whose targets are conditioned on targets; leave it out",
                    self.name
                )));
            }
            return sites::check(model, sited::BOUND);
        }
        model.gaussian()?;
        if self.solver != Solver::Auto {
            return Err(Error::Invalid(format!(
                "method `{}`: `solver` is for other likelihoods than Gaussian noise, and with latent=true; leave it out",
                self.name
            )));
        }
        if model.kernels.len() > 1 {
            return Err(Error::Invalid(format!(
                "{} kernels were given; method `{}` takes one with Gaussian noise, `svgp` one for each latent function",
                model.kernels.len(),
                self.name
            )));
        }
        let columns = model.inducing_points().map_or(0, |z| z.ncols());
        let other = model.kernel().interdomain().is_some_and(|own| own.columns == columns);
        if self.points.is_some() && other {
            return Err(Error::Invalid(format!(
                "method `{}` has inducing points among the inputs, and these are of another domain; use `titsias2025`",
                self.name
            )));
        }
        Ok(())
    }

    fn hold(&self, model: &Model, engine: &dyn Engine, data: &dyn Source) -> Result<bool> {
        if self.has_sites(model) {
            return sited::hold(self, model, engine, &weighty(super::collect(data)?));
        }
        let seen = Seen::new(model, ConditioningRows::of(model, super::collect(data)?)?.0);
        let x = seen.places().x;
        let metric = self.metric(model.kernel(), x.ncols())?;
        let (neighbours, rows) = (self.neighbours(), self.training_rows(model, x.nrows()));
        hold(engine, neighbours, vec![(metric, x)], |metric, x| {
            Ok(Arc::new(Plan::of_sample(x, metric, neighbours, rows)))
        })
    }

    fn release(&self, engine: &dyn Engine) {
        engine.shelf().remove::<Held<Plan>>();
        engine.shelf().remove::<Held<Coupled>>();
    }

    fn evaluate(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Evaluation> {
        if self.has_sites(model) {
            return sited::evaluate(self, model, engine, weighty(super::collect(data)?));
        }
        let (rows, noise) = ConditioningRows::of(model, super::collect(data)?)?;
        let seen = Seen::new(model, rows);
        let plan = self.plan(model, engine, seen.places().x)?;
        let watch = || engine.go_on();
        let mut diagnostics = Diagnostics::default();
        let (density, mut slopes) = match self.features(model)? {
            None => vecchia::with_slopes(model.kernel(), &plan, seen.places(), &watch)?,
            Some(features) => {
                let (kernel, rows) = (model.kernel(), seen.places());
                let phi = &features.of(kernel, rows.x);
                diagnostics = explained(kernel, &features, phi, rows.x);
                let (features, plan) = (&features, &*plan);
                FullScale { kernel, features, phi, plan, rows, watch: &watch }.with_slopes()?
            }
        };
        let rows = view(&seen.rows);
        if let Some((copies, merged)) = &seen.merged {
            slopes = copies.pull(rows, merged, slopes);
        }
        let (size, rounding) = (plan.rows(), density.rounding);
        if rounding >= 1.0 {
            let matrix = "K + σ²I of neighbours";
            return Err(Error::Imprecise { matrix, size, rounding });
        }
        let columns = rows.residual.ncols() as f64;
        let mut gradient = vec![0.0; model.num_params()];
        let parts = model.parts_of(&mut gradient);
        parts.kernel.copy_from_slice(&slopes.kernel);
        parts.inducing.copy_from_slice(&slopes.points);
        let alpha = -slopes.residual;
        model.mean.vjp(rows.x, alpha.as_ref(), parts.mean);
        let (factors, slope) = noise.factors();
        parts.likelihood[0] = noise.pull(slopes.noise.into_iter()) + columns * slope;
        let value = density.value + seen.log_factors() + columns * factors;
        let value = super::finite(value, "the log evidence")?;
        Ok(Evaluation { value, gradient, diagnostics })
    }

    fn posterior(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Posterior> {
        self.conditioned(model, engine, super::collect(data)?)
    }

    fn conditioned(&self, model: &Model, engine: &dyn Engine, rows: InMemory) -> Result<Posterior> {
        let rows = weighty(rows);
        let known: Arc<dyn Conditional> = match self.has_sites(model) {
            true => Arc::new(sited::Known::new(self, model, engine, rows.clone())?),
            false => Arc::new(known::Known::new(self, model, engine, rows.clone())?),
        };
        Ok(Posterior::of_kept_rows(model, rows, known))
    }
}

#[cfg(test)]
mod tests;

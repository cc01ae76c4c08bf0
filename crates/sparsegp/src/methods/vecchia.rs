//! Rows given their nearest neighbours ([`mod@crate::vecchia`]): an approximate log evidence with Gaussian noise, and predictions, in
//! O(Nm³); and the same of what inducing points do not explain ([`vecchia::FullScale`]), whose Z stays where it starts unless it is asked
//! to move.
//!
//! **Neighbours while a training climbs.** Order and neighbours depend on ratios of lengthscales. If they followed every
//! point that a line search tries, the objective would jump between them, by far more than what the last steps gain. So a
//! training holds them where it starts ([`Method::hold`]), climbs, chooses again where it ended, and climbs on if a ratio has
//! moved by more than [`MOVED`]: each climb is of one function, the log density of one process. Elsewhere, and in the end, the objective is that
//! of the neighbours at the parameters themselves, so that it depends on nothing but these. Predictions take the nearest rows in any case.
//!
//! Weights and known variances of noise are as for [`super::Exact`].

use super::{Diagnostics, Entry, Evaluation, Method};
use crate::data::{InMemory, Source};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::linalg::{Mat, MatRef, column, sum_of_products};
use crate::model::{Conditional, ConditioningRows, Model, Moments, Posterior, weighty};
use crate::vecchia::{self, Copies, Features, FullScale, Merged, Metric, Nearest, Plan, Rows};
use rand::Rng;
use std::sync::{Arc, OnceLock};

/// Neighbours of a row unless another number is asked for.
pub const DEFAULT_NEIGHBOURS: usize = 30;

/// Inducing points beside the neighbours unless another number is asked for.
pub const DEFAULT_POINTS: usize = 200;

/// Most neighbours: a block of them is to stay in cache.
const MOST_NEIGHBOURS: usize = 500;

/// Input columns with a lengthscale, at most: in more of them the nearest of 10⁵ rows are hardly nearer than the others.
pub const MOST_INPUTS: usize = 10;

/// Ratio by which a ratio of lengthscales moves before neighbours are chosen again.
const MOVED: f64 = 1.1;

/// Columns whose lengthscale is so many times the shortest have no say in who is near.
const NO_SAY: f64 = 1e-3;

/// Conditioning on nearest neighbours.
#[derive(Debug)]
pub struct Vecchia {
    pub(super) name: &'static str,
    pub(super) neighbours: usize,
    /// Inducing points that explain what is far, where it has any.
    pub(super) points: Option<Placed>,
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
    /// The method of an entry with so many neighbours, as [`super::find`] gives it for `vecchia(neighbours=…)`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown option or a value out of range.
    pub(super) fn entry(registered: &'static Entry, options: &str) -> Result<&'static Entry> {
        let plain = registered.name;
        let usual = registered.method.is_sparse().then_some(Placed::Fixed);
        let known = if usual.is_some() { "neighbours, moving" } else { "neighbours" };
        let invalid = |reason: String| Error::Invalid(format!("method `{plain}`: {reason}"));
        let (mut neighbours, mut points) = (DEFAULT_NEIGHBOURS, usual);
        for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            let (key, value) =
                option.split_once('=').map_or((option, ""), |(k, v)| (k.trim(), v.trim()));
            if key == "inducing" || key == "points" {
                return Err(invalid(format!(
                    "`{key}` is not an option of neighbours; `full-scale` has inducing points, as many as `inducing` says \
                     (--inducing {value}; in Python n_inducing={value})"
                )));
            }
            if key == "moving" && points.is_some() {
                points = Some(match value {
                    "true" => Placed::Moving,
                    "false" => Placed::Fixed,
                    _ => return Err(invalid(format!("moving={value}: must be true or false"))),
                });
                continue;
            }
            if key != "neighbours" {
                return Err(invalid(format!("`{key}` is unknown; known: {known}")));
            }
            let number = value.parse().ok().filter(|m| (1..=MOST_NEIGHBOURS).contains(m));
            neighbours = number.ok_or_else(|| {
                invalid(format!(
                    "neighbours={value}: must be a whole number from 1 to {MOST_NEIGHBOURS}"
                ))
            })?;
        }
        if (neighbours, points) == (DEFAULT_NEIGHBOURS, usual) {
            return Ok(registered);
        }
        let moving = if points == usual { "" } else { ", moving=true" };
        let name = format!("{plain}(neighbours={neighbours}{moving})");
        Ok(registered.variant(name, |name| Box::new(Self { name, neighbours, points })))
    }

    /// Refuses inputs in which nothing is near.
    fn metric(&self, model: &Model, inputs: usize) -> Result<Metric> {
        let metric = Metric::of(model.kernel(), inputs);
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

    /// The inducing points of a model, if it has any.
    fn features(&self, model: &Model) -> Result<Option<Features>> {
        if self.points.is_none() {
            return Ok(None);
        }
        Features::new(model.kernel(), model.inducing_points()?, model.jitter).map(Some)
    }

    /// The plan that is held for these rows, or that at the model's parameters.
    fn plan(&self, model: &Model, engine: &dyn Engine, x: MatRef<f64>) -> Result<Arc<Plan>> {
        let metric = self.metric(model, x.ncols())?;
        if let Some(held) = engine.shelf().copy::<Held>().filter(|held| held.is_of(self, x)) {
            return Ok(held.plan);
        }
        Ok(Arc::new(Plan::new(x, metric, self.neighbours)))
    }
}

/// What inducing points explain of rows.
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
        residual: None,
    }
}

/// A plan that a training holds.
#[derive(Clone, Debug)]
struct Held {
    plan: Arc<Plan>,
    rows: u64,
}

/// A number that tells inputs apart.
fn fingerprint(x: MatRef<f64>) -> u64 {
    let columns = (0..x.ncols()).flat_map(|j| column(x, j));
    // FNV-1a by words
    columns.fold(0xcbf2_9ce4_8422_2325, |hash: u64, v| {
        (hash ^ v.to_bits()).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
    })
}

impl Held {
    fn is_of(&self, method: &Vecchia, x: MatRef<f64>) -> bool {
        self.plan.neighbours() == method.neighbours
            && self.plan.rows() == x.nrows()
            && self.plan.metric().scales().len() == x.ncols()
            && self.rows == fingerprint(x)
    }
}

fn view(rows: &ConditioningRows) -> Rows<'_> {
    Rows { x: rows.x.as_ref(), residual: rows.y.as_ref(), noise: &rows.noise }
}

/// Rows, and what becomes of those at the same place.
#[derive(Debug)]
struct Seen {
    rows: ConditioningRows,
    merged: Option<(Copies, Merged)>,
}

impl Seen {
    fn new(model: &Model, rows: ConditioningRows) -> Self {
        let copies = Copies::find(model.kernel(), rows.x.as_ref());
        let merged = copies.and_then(|copies| {
            let merged = copies.merge(view(&rows))?;
            Some((copies, merged))
        });
        Self { rows, merged }
    }

    /// A row for every place.
    fn places(&self) -> Rows<'_> {
        self.merged.as_ref().map_or_else(|| view(&self.rows), |(_, merged)| merged.rows())
    }

    fn log_factors(&self) -> f64 {
        self.merged.as_ref().map_or(0.0, |(_, merged)| merged.log_factors)
    }
}

/// Predictions from the nearest rows.
#[derive(Debug)]
struct Known {
    nearest: Nearest,
    seen: Seen,
    kernel: Box<dyn Kernel>,
    metric: Metric,
    neighbours: usize,
    /// The inducing points, where there are any.
    points: Option<(Features, Mat<f64>)>,
    /// Log of the factors that weights leave beside the density.
    factors: f64,
    /// Known once somebody asks.
    objective: OnceLock<f64>,
}

/// Means with the variances that all columns share.
fn shared(mean: Mat<f64>, variance: &[f64]) -> Moments {
    let variance = Mat::from_fn(mean.nrows(), mean.ncols(), |i, _| variance[i]);
    (mean, variance)
}

impl Conditional for Known {
    fn moments(&self, x: MatRef<f64>) -> Result<Moments> {
        let (mean, variance) = self.nearest.marginals(x)?;
        Ok(shared(mean, &variance))
    }

    fn joint(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
        let joint = self.nearest.joint(x)?;
        Ok((joint.mean(), vec![joint.covariance()]))
    }

    /// As their nearest others predict them.
    fn left_out(&self) -> Result<Moments> {
        let rows = view(&self.seen.rows);
        let (mut mean, mut variance) = match &self.points {
            None => self.nearest.leave_one_out()?,
            Some((features, phi)) => {
                let (kernel, rows, watch) = (&*self.kernel, self.seen.places(), &|| Ok(()));
                let plan = &Plan::new(rows.x, self.metric.clone(), self.neighbours);
                FullScale { kernel, features, phi, plan, rows, watch }.leave_one_out()?
            }
        };
        if let Some((copies, merged)) = &self.seen.merged {
            (mean, variance) = copies.left_out(rows, merged, (&mean, &variance));
        }
        Ok(shared(mean, &variance))
    }

    fn objective(&self) -> f64 {
        *self.objective.get_or_init(|| {
            let rows = self.seen.places();
            let plan = Plan::new(rows.x, self.metric.clone(), self.neighbours);
            let density = vecchia::log_density(&*self.kernel, &plan, rows, &|| Ok(()));
            density.map_or(f64::NAN, |own| own.value + self.seen.log_factors() + self.factors)
        })
    }

    fn draws(
        &self,
        x: MatRef<f64>,
        samples: usize,
        rng: &mut dyn Rng,
    ) -> Result<Option<Vec<Mat<f64>>>> {
        let joint = self.nearest.joint(x)?;
        Ok(Some((0..samples).map(|_| joint.draw(rng)).collect()))
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

    fn divides_by_noise(&self) -> bool {
        false
    }

    fn check(&self, model: &Model) -> Result<()> {
        model.gaussian()?;
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
        let seen = Seen::new(model, ConditioningRows::of(model, super::collect(data)?)?.0);
        let x = seen.places().x;
        let metric = self.metric(model, x.ncols())?;
        let held = engine.shelf().copy::<Held>().filter(|held| held.is_of(self, x));
        if held.is_some_and(|held| held.plan.metric().apart(&metric, NO_SAY) <= MOVED) {
            return Ok(false);
        }
        let plan = Arc::new(Plan::new(x, metric, self.neighbours));
        engine.shelf().put(Held { plan, rows: fingerprint(x) });
        Ok(true)
    }

    fn release(&self, engine: &dyn Engine) {
        engine.shelf().remove::<Held>();
    }

    fn evaluate(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Evaluation> {
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
        let (metric, neighbours) = (self.metric(model, rows.x.ncols())?, self.neighbours);
        let kernel = model.kernel().clone_box();
        let (own, noise) = ConditioningRows::of(model, rows.clone())?;
        let factors = own.y.ncols() as f64 * noise.factors().0;
        let seen = Seen::new(model, own);
        let mut nearest = Nearest::new(kernel.clone(), seen.places(), neighbours)?;
        let (mut points, mut objective) = (None, OnceLock::new());
        if let Some(features) = self.features(model)? {
            let (rows, watch) = (seen.places(), || engine.go_on());
            let phi = features.of(&*kernel, rows.x);
            let plan = self.plan(model, engine, rows.x)?;
            let (own, features_of) = (&*kernel, &features);
            let all = FullScale {
                kernel: own,
                features: features_of,
                phi: &phi,
                plan: &plan,
                rows,
                watch: &watch,
            };
            let (density, common) = all.density()?;
            objective = OnceLock::from(density.value + seen.log_factors() + factors);
            nearest = nearest.with_points(features.clone(), phi.clone(), common);
            points = Some((features, phi));
        }
        let known = Known { nearest, seen, kernel, metric, neighbours, points, factors, objective };
        Ok(Posterior::of_kept_rows(model, rows, Arc::new(known)))
    }
}

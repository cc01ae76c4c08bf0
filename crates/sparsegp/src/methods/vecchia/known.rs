//! Predictions from the nearest rows, with Gaussian noise.

use super::Vecchia;
use crate::data::InMemory;
use crate::engine::Engine;
use crate::error::Result;
use crate::kernels::Kernel;
use crate::linalg::{Mat, MatRef};
use crate::model::{Conditional, ConditioningRows, Model, Moments};
use crate::vecchia::{self, Copies, Features, FullScale, Merged, Metric, Nearest, Plan, Rows};
use rand::Rng;
use std::sync::OnceLock;

pub(super) fn view(rows: &ConditioningRows) -> Rows<'_> {
    Rows { x: rows.x.as_ref(), residual: rows.y.as_ref(), noise: &rows.noise }
}

/// Rows, and what becomes of those at the same place.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) rows: ConditioningRows,
    pub(super) merged: Option<(Copies, Merged)>,
}

impl Seen {
    pub(super) fn new(model: &Model, rows: ConditioningRows) -> Self {
        let copies = Copies::find(model.kernel(), rows.x.as_ref());
        let merged = copies.and_then(|copies| {
            let merged = copies.merge(view(&rows))?;
            Some((copies, merged))
        });
        Self { rows, merged }
    }

    /// Returns a row for every place.
    pub(super) fn places(&self) -> Rows<'_> {
        self.merged.as_ref().map_or_else(|| view(&self.rows), |(_, merged)| merged.rows())
    }

    pub(super) fn log_factors(&self) -> f64 {
        self.merged.as_ref().map_or(0.0, |(_, merged)| merged.log_factors)
    }
}

/// Predictions from the nearest rows.
#[derive(Debug)]
pub(super) struct Known {
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

impl Known {
    /// Conditions on rows.
    pub(super) fn new(
        method: &Vecchia,
        model: &Model,
        engine: &dyn Engine,
        rows: InMemory,
    ) -> Result<Self> {
        let (metric, neighbours) =
            (method.metric(model.kernel(), rows.x.ncols())?, method.neighbours());
        let kernel = model.kernel().clone_box();
        let (own, noise) = ConditioningRows::of(model, rows)?;
        let factors = own.y.ncols() as f64 * noise.factors().0;
        let seen = Seen::new(model, own);
        let mut nearest = Nearest::new(kernel.clone(), seen.places(), neighbours)?;
        let (mut points, mut objective) = (None, OnceLock::new());
        if let Some(features) = method.features(model)? {
            let (rows, watch) = (seen.places(), || engine.go_on());
            let phi = features.of(&*kernel, rows.x);
            let plan = method.plan(model, engine, rows.x)?;
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
        Ok(Self { nearest, seen, kernel, metric, neighbours, points, factors, objective })
    }
}

/// Returns means with the variances that all columns share.
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

    /// Returns the rows as their nearest others predict them.
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

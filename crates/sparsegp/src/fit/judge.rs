//! Which start is the best for a sparse method: what few rows without inducing points have found (`screen`), or a *pilot* from
//! there, the hyperparameters trained on more rows, still without inducing points; by the sparse objective itself.

use super::FitOptions;
use super::near;
use super::pilot::take;
use super::quiet::Quiet;
use super::revive::{self, Climb, Sketch};
use super::screen::Verdict;
use super::trial::Trial;
use crate::data::{InMemory, Source};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::linalg::Mat;
use crate::methods::{self, Keeps};
use crate::model::{Model, inducing_param};
use crate::model::{hyperparameters, start_hyperparameters};
use crate::optim::LbfgsOptions;
use crate::rng;
use crate::train::{Judged, Observer, OptimiserKind, TrainOptions, train};
use crate::variational::{Tying, Variational};

/// Iterations of everything but the lengthscales, for a constant.
const SETTLING: usize = 5;

/// Nats by which a pilot must be better than a constant.
const LEAST_GAIN: f64 = 2.0;

/// Iterations of the pilot: enough for lengthscales that deserve inducing points.
const PILOT_ITERATIONS: usize = 60;

/// Iterations of the sparse objective for each of its candidates.
const COMPARED: usize = 15;
/// Floating-point operations for all of them together: a second or two.
const OPERATIONS: f64 = 6e10;
/// Rows that they see at least, if there are so many.
const LEAST_ROWS: usize = 500;

/// What a pilot came to.
pub(super) enum Flown {
    /// A model with the hyperparameters found.
    Found(Box<Model>),
    /// It explains no more than a constant does, and changes nothing.
    Nothing,
    /// The numerics failed.
    Failed,
}

/// Trains the hyperparameters that nobody gave on a few rows, from where `from` stopped if there is one. It is a help, not a
/// condition: one that fails or explains nothing changes nothing.
pub(super) fn pilot(
    model: &Model,
    from: Option<&Trial>,
    sample: &InMemory,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &dyn Observer,
) -> Result<Flown> {
    let Some(mut trial) = Trial::new(model, sample, options.pilot, options)? else {
        return Ok(Flown::Nothing);
    };
    if let Some(from) = from {
        // the noise of the other may be below the least of this one
        start_hyperparameters(&mut trial.model, &hyperparameters(&from.model))?;
    }
    let constant = trial.constant(SETTLING, engine, observer)?;
    let Some(value) = trial.climb(PILOT_ITERATIONS, engine, observer)? else {
        return Ok(if observer.interrupted() { Flown::Nothing } else { Flown::Failed });
    };
    let gain = constant.map_or(f64::INFINITY, |constant| value - constant);
    if gain <= LEAST_GAIN {
        return Ok(Flown::Nothing);
    }
    let (flown, rows) = (trial.model.clone(), trial.rows().clone());
    let sketch = Sketch { options, engine, observer };
    let mut climb = OfTrial { trial: &mut trial, engine, observer };
    let found = match flown.likelihood.mixing() {
        Some(_) => Vec::new(),
        None => near::clear(&*flown.likelihood, &climb.means(&flown)?, &rows, revive::SUSPECT),
    };
    let found = revive::revive(&flown, value, found, &rows, &sketch, &mut climb)?;
    let found = found.map_or(flown, |(found, _)| found);
    let mut own = model.clone();
    take(&mut own, &hyperparameters(&found), sample.x.as_ref());
    Ok(Flown::Found(Box::new(own)))
}

/// Trainings of a trial, for [`revive`](mod@revive).
struct OfTrial<'a> {
    trial: &'a mut Trial,
    engine: &'a dyn Engine,
    observer: &'a dyn Observer,
}

impl Climb for OfTrial<'_> {
    fn means(&mut self, model: &Model) -> Result<Mat<f64>> {
        let rows = self.trial.rows();
        model.posterior(self.engine, rows)?.predict_mean(rows.x.as_ref())
    }

    fn climb(&mut self, model: &mut Model, iterations: usize) -> Result<Option<f64>> {
        self.trial.model = model.clone();
        let value = self.trial.climb(iterations, self.engine, self.observer)?;
        *model = self.trial.model.clone();
        Ok(value)
    }
}

/// What a comparison came to.
pub(super) struct Compared {
    /// The index of the best.
    pub(super) best: usize,
    pub(super) verdict: Verdict,
    /// The hyperparameters where its iterations ended.
    pub(super) values: Option<Vec<f64>>,
}

/// Returns the best of several models that are ready to be trained, by a few iterations of a sparse
/// objective on as many rows as that takes a second or two for.
pub(super) fn compare(
    candidates: &[(String, Model)],
    data: &dyn Source,
    sample: &InMemory,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &dyn Observer,
) -> Result<Compared> {
    let mut found: Vec<(usize, Judged, Vec<f64>)> = Vec::new();
    for (index, (start, model)) in candidates.iter().enumerate() {
        let count = candidates.len();
        let value = by_objective(model, count, data, sample, options, engine, observer)?;
        if let Some((objective, values)) = value {
            found.push((index, Judged { start: start.clone(), objective }, values));
        }
    }
    found.sort_by(|a, b| b.1.objective.total_cmp(&a.1.objective));
    Ok(Compared {
        best: found.first().map_or(0, |(index, ..)| *index),
        values: found.first().map(|(.., values)| values.clone()),
        verdict: found.into_iter().map(|(_, judged, _)| judged).collect(),
    })
}

fn by_objective(
    model: &Model,
    candidates: usize,
    data: &dyn Source,
    sample: &InMemory,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &dyn Observer,
) -> Result<Option<(f64, Vec<f64>)>> {
    let points = model.inducing_points()?;
    let latents = model.latents(sample.y.ncols());
    let known = sample.y.col_iter().all(|column| column.iter().all(|y| !y.is_nan()));
    let plain = model.likelihood.as_gaussian().is_some() && sample.is_plain() && known;
    let mut own = model.clone();
    let sites = own.method.with_q().is_some_and(|q| q.keeps == Keeps::Sites);
    if own.method.has_q() && !sites {
        own.method = methods::find(if plain { "titsias2025" } else { "tsvgp" })?.method;
    }
    let steps = if own.method.has_q() { 6.0 * latents as f64 } else { 1.0 };
    let evaluations = (candidates * COMPARED) as f64;
    let size = |rows: f64, m: f64| evaluations * steps * 6.0 * rows * m * m;
    let (n, m) = (data.rows(), points.nrows());
    let generator = &mut rng::stream(options.seed, "rows of the comparison");
    let rows = ((OPERATIONS / size(1.0, m as f64)) as usize).clamp(LEAST_ROWS, n.max(LEAST_ROWS));
    let part = (rows < n).then(|| {
        let count = sample.x.nrows();
        let mut picked = rng::permutation(generator, count, rows.min(count));
        picked.sort_unstable();
        sample.picked(&picked)
    });
    let rows: &dyn Source = part.as_ref().map_or(data, |part| part);
    // as many points for these rows as keep the operations within bounds
    let most = (OPERATIONS / size(rows.rows() as f64, 1.0)).sqrt() as usize;
    if most < m {
        let picked = rng::permutation(generator, m, most.max(50).min(m));
        let fewer = crate::linalg::Mat::from_fn(picked.len(), points.ncols(), |i, q| {
            points[(picked[i], q)]
        });
        let mut fewer = inducing_param(fewer.as_ref());
        fewer.frozen = !own.method.moves_points();
        own.inducing = vec![fewer];
    }
    let points = own.inducing_points()?.nrows();
    own.q = own.method.has_q().then(|| {
        // sites of rows are of those rows
        let tying = if options.tying == Tying::Untied { Tying::Natural } else { options.tying };
        Variational::sites(points, latents, tying)
    });
    let training = TrainOptions {
        optimiser: OptimiserKind::Lbfgs(LbfgsOptions::fitting()),
        max_iterations: COMPARED,
        ..TrainOptions::default()
    };
    let trained = train(&mut own, engine, rows, &training, &mut Quiet(observer));
    match trained {
        Ok(report) if report.objective.is_finite() => {
            Ok(Some((report.objective, hyperparameters(&own))))
        }
        Ok(_) => Ok(None),
        Err(error) if error.is_recoverable() || matches!(error, Error::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

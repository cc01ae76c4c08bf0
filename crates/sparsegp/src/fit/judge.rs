//! Which starting values are best: candidates get a few iterations of the objective each, and the best goes on.
//!
//! An objective may have several optima, and from a start far too long all looks like noise: gradients lead to a model that
//! is a constant. What is tried:
//!
//! 1. Lengthscales as the spreads of the inputs suggest, and shorter ones until there is no hope (where each of two latent
//!    functions has a kernel of its own, those of one after those of the other), on at most [`SCREENED`] rows.
//! 2. For sparse methods, from the best of these a *pilot*: the hyperparameters trained on more rows, still without
//!    inducing points.
//! 3. What the pilot found against the start it came from, by the sparse objective itself.

use super::FitOptions;
use super::pilot::cap_lengthscales;
use super::trial::Trial;
use crate::data::{InMemory, Source};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::linalg::MatRef;
use crate::methods::{self, Keeps};
use crate::model::{Model, inducing_param};
use crate::model::{hyperparameters, set_hyperparameters};
use crate::optim::LbfgsOptions;
use crate::params::Role;
use crate::rng;
use crate::train::{Judged, Observer, OptimiserKind, TrainOptions, train};
use crate::variational::{Tying, Variational};

/// Rows that the first lengthscales are judged by.
const SCREENED: usize = 200;
/// The same where their sites must be found, which costs the more.
const SITED: usize = 120;

/// What the lengthscales that the spreads of the inputs suggest are multiplied by, one after the other.
const FACTORS: [f64; 5] = [1.0, 0.3, 0.1, 0.04, 0.016];
/// Nats below the best so far at which shorter lengthscales are tried no more: from a start that is too long the objective
/// first stays where it is, then rises, then falls.
const HOPELESS: f64 = 6.0;

/// Iterations of everything but the lengthscales, for every candidate.
const SETTLING: usize = 5;
/// Iterations of all, for the best few.
const TRAINED: usize = 10;
/// How many those are.
const FINALISTS: usize = 3;

/// Nats by which another start must be better than the plain one.
const LEAST_GAIN: f64 = 2.0;

/// Iterations of the pilot: enough for lengthscales that deserve inducing points.
const PILOT_ITERATIONS: usize = 60;

/// Iterations of the sparse objective for each of its candidates.
const COMPARED: usize = 15;
/// Floating-point operations for all of them together: a second or two.
const OPERATIONS: f64 = 6e10;
/// Rows that they see at least, if there are so many.
const LEAST_ROWS: usize = 500;

/// What was tried, the best first.
pub(super) type Verdict = Vec<Judged>;

/// Multiplies the lengthscales of kernel l that nobody gave by `factors[l]` (of all kernels by one, if there is one). None if
/// there are none.
fn scaled(model: &Model, factors: &[f64]) -> Option<Model> {
    let (mut own, mut any) = (model.clone(), false);
    for (l, kernel) in own.kernels.iter_mut().enumerate() {
        let by = factors[l.min(factors.len() - 1)];
        for (_, param) in kernel.params_mut() {
            if param.role() == Role::Lengthscales && !param.frozen && !param.given {
                let values: Vec<f64> = param.value().iter().map(|v| v * by).collect();
                param.start(&values);
                any = true;
            }
        }
    }
    any.then_some(own)
}

/// Candidates with their factors and what they came to.
type Tried = Vec<(Vec<f64>, f64, Trial)>;

/// Tries shorter and shorter lengthscales of kernel `which` (of all if there is none), from the best factors so far, until
/// there is no hope.
fn shorten(
    trial: &Trial,
    which: Option<usize>,
    all: &mut Tried,
    engine: &dyn Engine,
    observer: &dyn Observer,
) -> Result<()> {
    let best = |all: &Tried| {
        let most = all.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        most.map(|(factors, value, _)| (factors.clone(), *value))
    };
    let from = match (all.first(), best(all)) {
        (Some((_, plain, _)), Some((factors, most))) if most > plain + LEAST_GAIN => factors,
        _ => vec![1.0; trial.model.kernels.len()],
    };
    for by in FACTORS {
        let mut factors = from.clone();
        match which {
            Some(l) => factors[l] = by,
            None => factors.fill(by),
        }
        if all.iter().any(|(tried, ..)| *tried == factors) {
            continue;
        }
        let Some(own) = scaled(&trial.model, &factors) else { break };
        let mut candidate = trial.with(own);
        let Some(value) = candidate.settle(SETTLING, engine, observer)? else { continue };
        let most = best(all).map_or(value, |(_, most)| most);
        all.push((factors, value, candidate));
        if value < most - HOPELESS {
            break;
        }
    }
    Ok(())
}

/// A name for what was tried.
fn named(factors: &[f64]) -> String {
    let alike = factors.iter().all(|f| *f == factors[0]);
    let some = if alike { &factors[..1] } else { factors };
    let all: Vec<String> = some.iter().map(ToString::to_string).collect();
    match factors.iter().all(|f| *f == 1.0) {
        true => "spreads of the inputs".into(),
        false => format!("spreads of the inputs × {}", all.join(" and ")),
    }
}

/// Rows that [`screen`] judges by, if there are so many.
pub(super) fn rows_of_trials(model: &Model, options: &FitOptions) -> usize {
    let most = if model.likelihood.as_gaussian().is_some() { SCREENED } else { SITED };
    options.pilot.min(most)
}

/// The best of the first lengthscales: sets those of the model, and returns the trial of the winner where its training
/// stopped. None where there is nothing to judge by.
pub(super) fn screen(
    model: &mut Model,
    sample: &InMemory,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &dyn Observer,
) -> Result<Option<(Trial, Verdict)>> {
    let rows = rows_of_trials(model, options);
    let Some(trial) = Trial::new(model, sample, rows, options)? else { return Ok(None) };
    let mut all = Tried::new();
    if trial.model.kernels.len() == 2 {
        // of two functions one may be flat, and either may be the fast one
        shorten(&trial, Some(0), &mut all, engine, observer)?;
        shorten(&trial, Some(1), &mut all, engine, observer)?;
    } else {
        shorten(&trial, None, &mut all, engine, observer)?;
    }
    let plain = all.first().map(|(factors, ..)| factors.clone());
    // the best others, and the plain start: a few iterations have not brought it as far as it gets
    let mut rest = all.split_off(all.len().min(1));
    rest.sort_by(|a, b| b.1.total_cmp(&a.1));
    let most = all.iter().chain(&rest).fold(f64::NEG_INFINITY, |m, (_, value, _)| m.max(*value));
    rest.retain(|(_, value, _)| *value >= most - HOPELESS);
    rest.truncate(FINALISTS - 1);
    all.extend(rest);
    // where there is but one, no more is to be judged
    if all.len() > 1 {
        for (_, value, candidate) in &mut all {
            if let Some(further) = candidate.climb(TRAINED, engine, observer)? {
                *value = further;
            }
        }
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
    }
    let Some(most) = all.first().map(|(_, value, _)| *value) else { return Ok(None) };
    let place = all.iter().position(|(factors, ..)| Some(factors) == plain.as_ref());
    let ahead = |at: usize| all[at].1 >= most - LEAST_GAIN;
    let chosen = match place {
        // the plain start unless another is clearly better, and no constant
        Some(at) if at > 0 && !ahead(at) => {
            let constant = all[0].2.constant(SETTLING, engine, observer)?;
            if constant.is_some_and(|constant| most <= constant + LEAST_GAIN) { at } else { 0 }
        }
        Some(at) => at,
        None => 0,
    };
    let verdict: Verdict = all
        .iter()
        .map(|(factors, value, _)| Judged { start: named(factors), objective: *value })
        .collect();
    let (factors, _, trial) = all.swap_remove(chosen);
    if let Some(own) = scaled(model, &factors) {
        *model = own;
    }
    let mut ordered = vec![verdict[chosen].clone()];
    ordered
        .extend(verdict.iter().enumerate().filter(|(i, _)| *i != chosen).map(|(_, j)| j.clone()));
    Ok(Some((trial, ordered)))
}

/// The same model from shorter lengthscales, where mixed latent functions leave only the sparse objective to judge by.
pub(super) fn shorter(model: &Model) -> Vec<(String, Model, bool)> {
    if model.likelihood.mixing().is_none() {
        return Vec::new();
    }
    let of = |by: f64| scaled(model, &[by]).map(|own| (named(&[by]), own, false));
    FACTORS[1..4].iter().filter_map(|by| of(*by)).collect()
}

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
        set_hyperparameters(&mut trial.model, &hyperparameters(&from.model))?;
    }
    let constant = trial.constant(SETTLING, engine, observer)?;
    let Some(value) = trial.climb(PILOT_ITERATIONS, engine, observer)? else {
        return Ok(if observer.interrupted() { Flown::Nothing } else { Flown::Failed });
    };
    let gain = constant.map_or(f64::INFINITY, |constant| value - constant);
    if gain <= LEAST_GAIN {
        return Ok(Flown::Nothing);
    }
    let mut own = model.clone();
    take(&mut own, &hyperparameters(&trial.model), sample.x.as_ref());
    Ok(Flown::Found(Box::new(own)))
}

/// Gives a model the hyperparameters that few rows have found, but for those that somebody gave.
pub(super) fn take(model: &mut Model, found: &[f64], x: MatRef<f64>) {
    let mut rest = found;
    let own = model.params_mut().into_iter().filter(|(_, param)| !param.role().is_bulky());
    for (_, param) in own {
        let (own, tail) = rest.split_at(param.len().min(rest.len()));
        rest = tail;
        if !param.frozen && !param.given && !own.is_empty() {
            param.start(own);
        }
    }
    cap_lengthscales(model, x);
}

/// What a comparison came to.
pub(super) struct Compared {
    /// The index of the best.
    pub(super) best: usize,
    pub(super) verdict: Verdict,
    /// The hyperparameters where its iterations ended.
    pub(super) values: Option<Vec<f64>>,
}

/// The best of several models that are ready to be trained, by a few iterations of a sparse objective on as many rows as
/// that takes a second or two for.
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
        own.inducing = vec![inducing_param(fewer.as_ref())];
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
    struct Quiet<'a>(&'a dyn Observer);
    impl Observer for Quiet<'_> {
        fn interrupted(&self) -> bool {
            self.0.interrupted()
        }
    }
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

//! The first lengthscales: candidates get a few iterations of the objective on few rows each, and the best is the start.
//!
//! An objective may have several optima, and from a start far too long all looks like noise: gradients lead to a model that
//! is a constant, or to one in which an input is dead. What is tried, every one of it:
//!
//! - lengthscales of √D spreads of the inputs, then two random rows have a correlation near e⁻¹; of one spread, of half
//!   and of 0.3 of one, whatever D is; and shorter ones by [`FACTORS`], while rows have neighbours within them;
//! - the lengths along single inputs at which rows are clearly alike (`near`), together and one at a time;
//! - what the kernel itself suggests ([`Kernel::other_starts`](crate::kernels::Kernel::other_starts)): other periods, other
//!   places of a change.

use super::near::{self, Alike};
use super::pilot::take;
use super::trial::Trial;
use super::{FitOptions, series, spreads};
use crate::data::InMemory;
use crate::engine::Engine;
use crate::error::Result;
use crate::linalg::Mat;
use crate::model::{Model, hyperparameters, start_hyperparameters};
use crate::params::{Named, Role};
use crate::train::{Judged, Observer};

/// Rows that the best starts are judged by.
const SCREENED: usize = 200;
/// The same where their sites must be found, which costs the more.
const SITED: usize = 120;
/// The part of them by which all starts are.
const FIRST: usize = 2;
/// Rows that those who are near each other must be among, for one row, to be seen.
const NEIGHBOURS: f64 = 3.0;

/// What lengthscales of √D spreads are multiplied by.
const FACTORS: [f64; 5] = [1.0, 0.3, 0.1, 0.04, 0.016];
/// Lengthscales in spreads that are tried whatever the number of inputs. The evidence of a few rows may have a narrow peak: a
/// trend through 100 places with a field of 0.3 spreads was 10 nats better there, and worse than lines at 0.5 and at 0.17.
const SPREADS: [f64; 3] = [1.0, 0.5, 0.3];
/// Factors that differ by less are one.
const APART: f64 = 1.35;
/// Lengthscales to the nearest row, typically, beyond which all rows are isolated.
const ISOLATED: f64 = 2.5;

/// Standard deviations from which rows are alike beyond chance.
const CLEAR: f64 = 4.0;
/// The same from which more rows are looked at, if so many are needed to see it.
const SURE: f64 = 6.0;

/// Iterations of everything but the lengthscales, for every candidate.
const SETTLING: usize = 5;
/// Iterations of all, for the best few.
const TRAINED: usize = 10;
/// How many those are, with the plain start.
const FINALISTS: usize = 3;
/// Inputs of which the lengths at which rows are alike are tried one by one.
const SINGLE: usize = 2;
/// The same where kernels suggest starts, which differ little before they are far on.
const TRAINED_LONG: usize = 30;
const MANY_FINALISTS: usize = 5;
/// Nats behind the best at which none is among them.
const HOPELESS: f64 = 6.0;

/// The same of the plain start.
const HOPELESS_PLAIN: f64 = 30.0;

/// Nats by which another start must be better than the plain one.
const LEAST_GAIN: f64 = 2.0;

/// What was tried, the best first.
pub(super) type Verdict = Vec<Judged>;

/// Starting values of all kernels, by kernel, parameter and number.
type Values = Vec<Vec<Vec<f64>>>;

/// What lengthscales are multiplied by.
#[derive(Clone, PartialEq)]
struct Factors {
    /// Those of single inputs.
    inputs: Vec<f64>,
    /// Those of several at once.
    shared: f64,
}

impl Factors {
    fn all(d: usize, by: f64) -> Self {
        Self { inputs: vec![by; d], shared: by }
    }
}

/// A start that is judged.
struct Candidate {
    name: String,
    values: Values,
    objective: f64,
    trial: Trial,
}

fn values_of(model: &Model) -> Values {
    let of = |params: Vec<Named<'_>>| params.into_iter().map(|(_, p)| p.value().to_vec()).collect();
    model.kernels.iter().map(|kernel| of(kernel.params())).collect()
}

/// Sets what nobody gave.
fn set_values(model: &mut Model, values: &Values) {
    for (kernel, values) in model.kernels.iter_mut().zip(values) {
        for ((_, param), values) in kernel.params_mut().into_iter().zip(values) {
            if !param.frozen && !param.given && !values.is_empty() {
                param.start(values);
            }
        }
    }
}

/// Multiplies the lengthscales of kernel `which` (of all if there is none) that nobody gave. None if there are none.
fn scaled(model: &Model, which: Option<usize>, from: &Values, by: &Factors) -> Option<Values> {
    let (mut values, mut any) = (from.clone(), false);
    for (l, kernel) in model.kernels.iter().enumerate() {
        if which.is_some_and(|which| which != l) {
            continue;
        }
        let (units, mut at) = (kernel.units(), 0);
        for ((_, param), values) in kernel.params().into_iter().zip(&mut values[l]) {
            let own = &units[at..at + param.len()];
            at += param.len();
            if param.role() != Role::Lengthscales || param.frozen || param.given {
                continue;
            }
            any = true;
            for (value, unit) in values.iter_mut().zip(own) {
                let input = unit.and_then(|unit| unit.input);
                *value *= input.map_or(by.shared, |(q, _)| by.inputs[q]);
            }
        }
    }
    any.then_some(values)
}

/// Returns a name for what was tried.
fn named(by: f64) -> String {
    match by == 1.0 {
        true => "spreads of the inputs".into(),
        false => format!("spreads of the inputs × {by:.3}"),
    }
}

/// Returns the number of rows that starts are judged by, if there are so many.
pub(super) fn rows_of_trials(model: &Model, options: &FitOptions) -> usize {
    if model.method.is_of_series() {
        return series::of_starts(model, options.pilot);
    }
    let most = if model.likelihood.as_gaussian().is_some() { SCREENED } else { SITED };
    options.pilot.min(most)
}

/// Returns where rows are clearly alike, the clearest first, beside the mean function.
fn alike(model: &Model, sample: &InMemory) -> Vec<Alike> {
    if model.likelihood.mixing().is_some() {
        return Vec::new();
    }
    let mut mean = Mat::zeros(sample.x.nrows(), model.latents(sample.y.ncols()));
    model.mean.evaluate(sample.x.as_ref(), mean.as_mut());
    let mut found = near::clear(&*model.likelihood, &mean, sample, CLEAR);
    found.retain(|alike| alike.share > 0.0);
    found
}

/// Returns factors that make the lengthscales of single inputs those at which rows are alike, where
/// these are shorter.
fn along(alike: &[&Alike], spreads: &[f64]) -> Factors {
    let root = (spreads.len() as f64).sqrt();
    let mut by = Factors::all(spreads.len(), 1.0);
    for own in alike {
        match own.input {
            Some(q) => by.inputs[q] = (own.length / (root * spreads[q])).min(1.0),
            None => by = Factors::all(spreads.len(), (own.length / root).min(1.0)),
        }
    }
    by
}

/// The screening of one model.
struct Screen<'a> {
    /// For all starts.
    trial: Trial,
    /// For the best of them.
    final_trial: Trial,
    spreads: Vec<f64>,
    plain: Values,
    all: Vec<Candidate>,
    /// Whether kernels suggested some.
    suggestions: bool,
    engine: &'a dyn Engine,
    observer: &'a dyn Observer,
}

impl Screen<'_> {
    /// Lets a start settle, and keeps it.
    fn try_one(&mut self, name: String, values: Values) -> Result<()> {
        if self.all.iter().any(|other| other.values == values) {
            return Ok(());
        }
        let mut own = self.trial.model.clone();
        set_values(&mut own, &values);
        let mut trial = self.trial.with(own);
        if let Some(objective) = trial.settle(SETTLING, self.engine, self.observer)? {
            self.all.push(Candidate { name, values, objective, trial });
        }
        Ok(())
    }

    /// Returns the best so far if it is clearly better than the plain start, else that.
    fn best(&self) -> Values {
        let most = self.all.iter().max_by(|a, b| a.objective.total_cmp(&b.objective));
        match (self.all.first(), most) {
            (Some(plain), Some(most)) if most.objective > plain.objective + LEAST_GAIN => {
                most.values.clone()
            }
            _ => self.plain.clone(),
        }
    }

    /// Tries common factors of the lengthscales of kernel `which`, from the best so far.
    fn shorten(&mut self, which: Option<usize>) -> Result<()> {
        let (d, from) = (self.spreads.len(), self.best());
        let root = (d as f64).sqrt();
        let mut factors = FACTORS.to_vec();
        for by in SPREADS.map(|spread| spread / root) {
            if factors.iter().all(|own| (by / own).ln().abs() > APART.ln()) {
                factors.push(by);
            }
        }
        let reach = nearest(&self.trial, &self.spreads) / (root * ISOLATED);
        factors.retain(|by| *by == 1.0 || *by >= reach);
        for by in factors {
            let values = scaled(&self.trial.model, which, &from, &Factors::all(d, by));
            let Some(values) = values else { break };
            self.try_one(named(by), values)?;
        }
        Ok(())
    }

    /// Tries the lengths at which rows are alike: of every input the clearest one, all together and each by itself.
    fn follow(&mut self, alike: &[Alike]) -> Result<()> {
        let single: Vec<&Alike> = alike.iter().filter(|own| own.input.is_some()).collect();
        let mut tried: Vec<Vec<&Alike>> = vec![single.clone()];
        tried.extend(single.iter().take(SINGLE).map(|own| vec![*own]));
        tried.extend(alike.iter().filter(|own| own.input.is_none()).map(|own| vec![own]));
        for some in tried.into_iter().filter(|some| !some.is_empty()) {
            let by = along(&some, &self.spreads);
            if by == Factors::all(self.spreads.len(), 1.0) {
                continue;
            }
            let values = scaled(&self.trial.model, None, &self.plain, &by);
            let Some(values) = values else { break };
            self.try_one("distances at which rows are alike".into(), values)?;
        }
        Ok(())
    }

    /// Tries what kernels suggest: from the plain start, with shorter lengthscales too, then from the best so far.
    fn suggested(&mut self, sample: &InMemory) -> Result<()> {
        for l in 0..self.trial.model.kernels.len() {
            let plain = self.plain.clone();
            self.suggested_from(&plain, l, &FACTORS[..3], sample)?;
            let best = self.best();
            self.suggested_from(&best, l, &FACTORS[..1], sample)?;
        }
        Ok(())
    }

    fn suggested_from(
        &mut self,
        from: &Values,
        l: usize,
        factors: &[f64],
        sample: &InMemory,
    ) -> Result<()> {
        let mut kernel = self.trial.model.kernels[l].clone();
        for ((_, param), values) in kernel.params_mut().into_iter().zip(&from[l]) {
            param.start(values);
        }
        for other in kernel.other_starts(sample.x.as_ref(), sample.y.as_ref()) {
            let mut values = from.clone();
            values[l] = other.params().into_iter().map(|(_, p)| p.value().to_vec()).collect();
            for by in factors {
                let by = Factors::all(self.spreads.len(), *by);
                let shorter = scaled(&self.trial.model, Some(l), &values, &by);
                let values = shorter.unwrap_or_else(|| values.clone());
                self.try_one("another start of the kernel".into(), values)?;
            }
            self.suggestions = true;
        }
        Ok(())
    }

    /// Leaves the plain start, unless it is far behind, and the best others, with a few iterations more.
    fn finals(&mut self) -> Result<()> {
        let (count, iterations) = match self.suggestions {
            true => (MANY_FINALISTS, TRAINED_LONG),
            false => (FINALISTS, TRAINED),
        };
        let mut rest = self.all.split_off(self.all.len().min(1));
        rest.sort_by(|a, b| b.objective.total_cmp(&a.objective));
        let objectives = self.all.iter().chain(&rest).map(|own| own.objective);
        let most = objectives.fold(f64::NEG_INFINITY, f64::max);
        rest.retain(|own| own.objective >= most - HOPELESS);
        rest.truncate(count - 1);
        self.all.retain(|plain| self.suggestions || plain.objective >= most - HOPELESS_PLAIN);
        self.all.extend(rest);
        for mut own in std::mem::take(&mut self.all) {
            let mut model = self.final_trial.model.clone();
            start_hyperparameters(&mut model, &hyperparameters(&own.trial.model))?;
            own.trial = self.final_trial.with(model);
            if let Some(further) = own.trial.climb(iterations, self.engine, self.observer)? {
                own.objective = further;
                self.all.push(own);
            }
        }
        Ok(())
    }
}

/// Returns the median distance of a row of a trial to the nearest other, over all inputs in units
/// of their spreads.
fn nearest(trial: &Trial, spreads: &[f64]) -> f64 {
    let x = trial.rows().x.as_ref();
    let n = x.nrows().min(SCREENED);
    let mut least: Vec<f64> = vec![f64::INFINITY; n];
    for i in 0..n {
        for j in 0..i {
            let part = |q: usize| ((x[(i, q)] - x[(j, q)]) / spreads[q]).powi(2);
            let square = (0..x.ncols()).filter(|q| spreads[*q] > 0.0).map(part).sum();
            if square > 0.0 {
                least[i] = least[i].min(square);
                least[j] = least[j].min(square);
            }
        }
    }
    least.sort_unstable_by(f64::total_cmp);
    let median = least.get(n / 2).copied().unwrap_or(0.0).sqrt();
    // a sample of rows is farther apart than they are
    if median.is_finite() { median } else { 0.0 }
}

/// Finds the best of the first starts: sets those of the model, and returns the trial of the winner
/// where its training stopped. None where there is nothing to judge by.
pub(super) fn screen(
    model: &mut Model,
    sample: &InMemory,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &dyn Observer,
) -> Result<Option<(Trial, Verdict)>> {
    let (alike, rows_in_all) = (alike(model, sample), sample.x.nrows());
    let sure = alike.iter().filter(|own| own.clear > SURE).take(SINGLE);
    let needed = sure.fold(0.0, |most: f64, own| most.max(NEIGHBOURS / own.share)) as usize;
    let usual = rows_of_trials(model, options);
    let rows = usual.max(needed.min(options.pilot));
    let trial = |rows: usize| Trial::new(model, sample, rows, options);
    let first = if rows > usual { rows } else { rows.div_ceil(FIRST) };
    let (Some(trial), Some(final_trial)) = (trial(first)?, trial(rows)?) else { return Ok(None) };
    let plain = values_of(model);
    let spreads = spreads(sample.x.as_ref());
    let mut screen = Screen {
        trial,
        final_trial,
        spreads,
        plain: plain.clone(),
        all: Vec::new(),
        suggestions: false,
        engine,
        observer,
    };
    screen.try_one(named(1.0), plain.clone())?;
    if rows <= 2 * usual {
        // of two functions one may be flat, and either may be the fast one
        let both = screen.trial.model.kernels.len() == 2;
        let kernels = if both { vec![Some(0), Some(1)] } else { vec![None] };
        kernels.into_iter().try_for_each(|which| screen.shorten(which))?;
    }
    screen.follow(&alike)?;
    screen.suggested(sample)?;
    screen.finals()?;
    let Some(chosen) = chosen(&screen)? else { return Ok(None) };
    let winner = screen.all.swap_remove(chosen);
    screen.all.sort_by(|a, b| b.objective.total_cmp(&a.objective));
    let judged = |own: &Candidate| Judged { start: own.name.clone(), objective: own.objective };
    let verdict = std::iter::once(&winner).chain(&screen.all).map(judged).collect();
    set_values(model, &winner.values);
    // few rows may have lost an input, but what all of them have found is further on
    if !model.method.is_sparse() && 2 * winner.trial.rows().x.nrows() >= rows_in_all {
        take(model, &hyperparameters(&winner.trial.model), sample.x.as_ref());
    }
    Ok(Some((winner.trial, verdict)))
}

/// Returns the plain start unless another is clearly better, and no constant.
fn chosen(screen: &Screen<'_>) -> Result<Option<usize>> {
    let best = (0..screen.all.len())
        .max_by(|a, b| screen.all[*a].objective.total_cmp(&screen.all[*b].objective));
    let Some(best) = best else { return Ok(None) };
    let most = screen.all[best].objective;
    let plain = screen.all.iter().position(|own| own.values == screen.plain);
    Ok(Some(match plain {
        Some(plain) if screen.all[plain].objective >= most - LEAST_GAIN => plain,
        Some(plain) => {
            let trial = &screen.all[best].trial;
            let constant = trial.constant(SETTLING, screen.engine, screen.observer)?;
            let flat = constant.is_some_and(|constant| most <= constant + LEAST_GAIN);
            if flat { plain } else { best }
        }
        None => best,
    }))
}

/// Returns the same model from shorter lengthscales, where mixed latent functions leave only the
/// sparse objective to judge by.
pub(super) fn shorter(model: &Model) -> Vec<(String, Model, bool)> {
    if model.likelihood.mixing().is_none() {
        return Vec::new();
    }
    let from = values_of(model);
    let d = model.kernels.iter().flat_map(|kernel| kernel.units()).flatten();
    let d = d.filter_map(|unit| unit.input).map(|(q, _)| q + 1).max().unwrap_or(0);
    let of = |by: f64| {
        let values = scaled(model, None, &from, &Factors::all(d, by))?;
        let mut own = model.clone();
        set_values(&mut own, &values);
        Some((named(by), own, false))
    };
    FACTORS[1..4].iter().filter_map(|by| of(*by)).collect()
}

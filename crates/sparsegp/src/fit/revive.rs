//! Inputs that a training has lost, or made too slow, tried again at the lengths at which residuals are alike.
//!
//! Where a lengthscale is far too long, slopes in its logarithm vanish, and a training that has come there stays: the input is
//! dead, and what it explains is noise to the model. Slopes of the likelihood at what the model predicts show it (`near`).

use super::near::{self, Alike};
use super::trial::Trial;
use super::{FitOptions, spreads};
use crate::data::InMemory;
use crate::engine::Engine;
use crate::error::Result;
use crate::kernels::Kernel;
use crate::linalg::Mat;
use crate::model::{Model, hyperparameters, start_hyperparameters};
use crate::params::Role;
use crate::train::Observer;

/// Standard deviations from which rows that are alike are worth some iterations.
pub(super) const SUSPECT: f64 = 3.5;
/// A lengthscale is changed if the length is less than this part of it.
const SHORTER: f64 = 0.7;
/// Spreads of an input from which its lengthscale is so long that the model does not use it.
const UNUSED: f64 = 3.0;
/// Iterations from where lengthscales were shortened, to be compared with where the training had ended.
const TRIED: usize = 6;
/// Those of the best of them.
const CLIMBED: usize = 60;
/// Inputs that are tried one at a time, in a round.
const INPUTS: usize = 2;
/// Rounds, as long as each is a gain.
const ROUNDS: usize = 4;
/// Nats that are a gain.
const GAIN: f64 = 0.8;
/// Rows on which starts are sketched before all rows see the best of them.
const SKETCHED: usize = 200;
/// Iterations there.
const STROKES: usize = 8;
/// Nats that it must gain there.
const PROMISE: f64 = 0.5;

/// What a training can do here.
pub(super) trait Climb {
    /// Returns the latent means at the rows, N×L.
    fn means(&mut self, model: &Model) -> Result<Mat<f64>>;

    /// Trains for at most so many iterations and returns the objective; none where the numerics fail.
    fn climb(&mut self, model: &mut Model, iterations: usize) -> Result<Option<f64>>;
}

/// Trainings of few rows, which say what all rows should try.
pub(super) struct Sketch<'a> {
    pub(super) options: &'a FitOptions,
    pub(super) engine: &'a dyn Engine,
    pub(super) observer: &'a dyn Observer,
}

impl Sketch<'_> {
    /// Returns the start that gains the most over `best` on few rows, from where its iterations ended, and the first, if
    /// rows say that something is `missed` there: few rows may not show what is fast. All of them where few rows have no
    /// model.
    fn promising(
        &self,
        best: &Model,
        mut starts: Vec<Model>,
        missed: bool,
        rows: &InMemory,
    ) -> Result<Vec<Model>> {
        let climbed = |model: &Model| -> Result<Option<(f64, Vec<f64>)>> {
            let trial = Trial::new(model, rows, SKETCHED, self.options)?;
            let Some(mut trial) = trial else { return Ok(None) };
            let value = trial.climb(STROKES, self.engine, self.observer)?;
            Ok(value.map(|value| (value, hyperparameters(&trial.model))))
        };
        if starts.is_empty() {
            return Ok(starts);
        }
        let Some((before, _)) = climbed(best)? else { return Ok(starts) };
        let mut most: Option<(usize, f64, Vec<f64>)> = None;
        for (index, own) in starts.iter().enumerate() {
            let Some((value, end)) = climbed(own)? else { continue };
            if value > most.as_ref().map_or(before + PROMISE, |(_, most, _)| *most) {
                most = Some((index, value, end));
            }
        }
        let mut kept = Vec::new();
        if let Some((index, _, end)) = &most {
            start_hyperparameters(&mut starts[*index], end)?;
            kept.push(starts.swap_remove(*index));
        }
        if missed && most.is_none_or(|(index, ..)| index > 0) {
            kept.push(starts.swap_remove(0));
        }
        Ok(kept)
    }
}

/// Returns a better model than one at which a training had ended with this objective, and its objective; residuals there were
/// alike where `found` has it.
pub(super) fn revive(
    model: &Model,
    objective: f64,
    mut found: Vec<Alike>,
    rows: &InMemory,
    sketch: &Sketch<'_>,
    by: &mut dyn Climb,
) -> Result<Option<(Model, f64)>> {
    if model.likelihood.mixing().is_some() {
        return Ok(None);
    }
    let (mut best, mut most, mut any) = (model.clone(), objective, false);
    for _ in 0..ROUNDS {
        if any {
            found = near::clear(&*best.likelihood, &by.means(&best)?, rows, SUSPECT);
        }
        let mut starts: Vec<Model> = tried(&found)
            .into_iter()
            .chain([unused(&best, rows)])
            .filter_map(|some| shortened(&best, &some, rows))
            .collect();
        if rows.x.nrows() > SKETCHED {
            starts = sketch.promising(&best, starts, !found.is_empty(), rows)?;
        }
        let mut further: Option<(Model, f64)> = None;
        for mut own in starts {
            let Some(value) = by.climb(&mut own, TRIED)? else { continue };
            if further.as_ref().is_none_or(|(_, best)| value > *best) {
                further = Some((own, value));
            }
        }
        let Some((mut own, value)) = further.filter(|(_, value)| *value > most) else {
            break;
        };
        let value = by.climb(&mut own, CLIMBED)?.unwrap_or(value);
        if value <= most + GAIN {
            break;
        }
        (best, most, any) = (own, value, true);
    }
    Ok(any.then_some((best, most)))
}

/// Returns inputs that the model does not use, as if rows were alike up to a spread apart along
/// each: a function of one of them and others, such as x₁²x₂ of x₁, may have no part that the
/// slopes show.
fn unused(model: &Model, rows: &InMemory) -> Vec<Alike> {
    let mut all = Vec::new();
    for (q, spread) in spreads(rows.x.as_ref()).into_iter().enumerate() {
        for (latent, kernel) in model.kernels.iter().enumerate() {
            let length = shortest(&**kernel, q, false).map_or(0.0, |(.., length)| length);
            if spread > 0.0 && length > UNUSED * spread {
                let input = Some(q);
                all.push(Alike {
                    input,
                    latent,
                    length: spread,
                    clear: 0.0,
                    correlation: 0.0,
                    share: 1.0,
                });
            }
        }
    }
    all
}

/// Returns where the shortest lengthscale of an input that is trained stands among the parameters
/// of a kernel, with its value; `shared` if one number for several inputs is looked at too.
fn shortest(kernel: &dyn Kernel, input: usize, shared: bool) -> Option<(usize, usize, f64)> {
    let (units, mut at, mut shortest) = (kernel.units(), 0, None);
    for (index, (_, param)) in kernel.params().into_iter().enumerate() {
        let of_param = &units[at..at + param.len()];
        at += param.len();
        if param.role() != Role::Lengthscales || param.frozen || param.given {
            continue;
        }
        for (place, (unit, value)) in of_param.iter().zip(param.value()).enumerate() {
            let own = match unit {
                Some(unit) => unit.input.is_some_and(|(q, _)| q == input),
                None => shared,
            };
            if own && shortest.is_none_or(|(_, _, least)| *value < least) {
                shortest = Some((index, place, *value));
            }
        }
    }
    shortest
}

/// Returns the single inputs one at a time, all of them together, and the common length.
fn tried(found: &[Alike]) -> Vec<Vec<Alike>> {
    let single: Vec<Alike> = found.iter().filter(|own| own.input.is_some()).copied().collect();
    let mut all: Vec<Vec<Alike>> = single.iter().take(INPUTS).map(|own| vec![*own]).collect();
    if single.len() > 1 {
        all.push(single);
    }
    all.extend(found.iter().filter(|own| own.input.is_none()).map(|own| vec![*own]));
    all
}

/// Returns the model with the shortest lengthscale of every such input at the length; none if that
/// changes none.
fn shortened(model: &Model, by: &[Alike], rows: &InMemory) -> Option<Model> {
    let spreads = spreads(rows.x.as_ref());
    let (mut own, mut any) = (model.clone(), false);
    let kernels = own.kernels.len();
    for alike in by {
        let inputs: Vec<(usize, f64)> = match alike.input {
            Some(q) => vec![(q, alike.length)],
            None => spreads.iter().enumerate().map(|(q, s)| (q, s * alike.length)).collect(),
        };
        let kernel = &mut own.kernels[alike.latent.min(kernels - 1)];
        for (input, length) in inputs {
            let shortest = shortest(&**kernel, input, alike.input.is_none());
            let Some((index, place, value)) = shortest.filter(|(.., v)| length < SHORTER * v)
            else {
                continue;
            };
            let mut params = kernel.params_mut();
            let (_, param) = &mut params[index];
            let mut values = param.value().to_vec();
            values[place] = length.min(value);
            param.start(&values);
            any = true;
        }
    }
    any.then_some(own)
}

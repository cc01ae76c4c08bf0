//! The optimiser's way up for methods whose objective holds something fixed while it climbs ([`crate::methods::Method::hold`]).

use super::ascent::ascend;
use super::counting::Counting;
use super::going_on::{GoingOn, Place, Standing};
use super::held_out::{all_values, set_all_values};
use super::{Observer, TracePoint, TrainOptions, TrainReport};
use crate::data::Source;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::model::Model;
use serde::{Deserialize, Serialize};

/// Climbs, at most: choices that move each other about are left where they are.
const CLIMBS: usize = 6;

/// What the climbs before the present one came to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Climbed {
    /// Values of all parameters where the present one began, at which the method made its choice.
    chosen_at: Vec<f64>,
    iterations: usize,
    evaluations: usize,
    failures: usize,
    seconds: f64,
    trace: Vec<TracePoint>,
}

impl Climbed {
    /// Returns an observer of the next climb.
    fn counting<'a>(&self, inner: &'a mut dyn Observer) -> Counting<'a> {
        let (iterations, evaluations) = (self.iterations, self.evaluations);
        Counting { inner, iterations, evaluations, seconds: self.seconds, stopped: false }
    }

    /// Adds a climb with its points as those of all, of which the report becomes one.
    fn add(&mut self, points: Vec<TracePoint>, report: &mut TrainReport) {
        self.trace.extend(points);
        self.iterations += report.iterations;
        self.evaluations += report.evaluations;
        self.failures += report.failures;
        self.seconds += report.seconds;
        report.trace.clone_from(&self.trace);
        (report.iterations, report.evaluations) = (self.iterations, self.evaluations);
        (report.failures, report.seconds) = (self.failures, self.seconds);
    }
}

/// Does [`ascend`]; and from where it ended again, while the method makes another choice there. The
/// objective in the report is that of the parameters found, with nothing held.
pub(super) fn climb(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    options: &TrainOptions,
    mut going: GoingOn<'_>,
    observer: &mut dyn Observer,
) -> Result<TrainReport> {
    let before = match &mut going.resume {
        Some(Place::Ascent(place)) => place.before.take(),
        _ => None,
    };
    let resumed = before.is_some();
    let before = before.map_or_else(Climbed::default, |before| *before);
    let chosen = match resumed {
        true => chosen_then(model, engine, data, &before.chosen_at),
        false => model.method.hold(model, engine, data),
    };
    let outcome = match chosen {
        Ok(true) => climbs(model, engine, data, options, (going, before), observer),
        Ok(false) => return ascend(model, engine, data, options, None, going, observer),
        Err(error) => Err(error),
    };
    model.method.release(engine);
    let mut report = outcome?;
    if report.iterations > 0 {
        match model.evaluate(engine, data) {
            // it was meant to end the training, which has ended
            Err(Error::Interrupted) => {}
            own => report.objective = own?.value + model.log_prior(),
        }
    }
    Ok(report)
}

/// Makes the choice that was made at these values of the parameters.
fn chosen_then(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    then: &[f64],
) -> Result<bool> {
    let now = all_values(model);
    set_all_values(model, then)?;
    let chosen = model.method.hold(model, engine, data);
    set_all_values(model, &now)?;
    chosen
}

fn climbs(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    options: &TrainOptions,
    (mut going, mut before): (GoingOn<'_>, Climbed),
    observer: &mut dyn Observer,
) -> Result<TrainReport> {
    let mut climb = 1;
    loop {
        if going.resume.is_none() {
            before.chosen_at = all_values(model);
        }
        let left = options.max_iterations.saturating_sub(before.iterations);
        let own = TrainOptions { max_iterations: left, ..options.clone() };
        let mut later = before.counting(observer);
        let resume = going.resume.take();
        let mut report = match &mut going.checkpoint {
            None => {
                let going = GoingOn { resume, checkpoint: None };
                ascend(model, engine, data, &own, None, going, &mut later)
            }
            Some(checkpoint) => {
                let mut hand_on = |standing: &Standing| {
                    let mut standing = standing.clone();
                    if let Place::Ascent(place) = &mut standing.place {
                        place.before = Some(Box::new(before.clone()));
                    }
                    checkpoint(&standing)
                };
                let going = GoingOn { resume, checkpoint: Some(&mut hand_on) };
                ascend(model, engine, data, &own, None, going, &mut later)
            }
        }?;
        let stopped = later.stopped;
        let points = report.trace.iter().map(|point| later.count(point)).collect();
        before.add(points, &mut report);
        let ended = !report.converged || stopped || before.iterations >= options.max_iterations;
        if ended || climb == CLIMBS || !model.method.hold(model, engine, data)? {
            return Ok(report);
        }
        climb += 1;
    }
}

//! Steps of q at fixed hyperparameters, one after the other, until they bring nothing.

use super::Observer;
use super::anderson::Mixing;
use super::ascent::terms;
use super::em::EmOptions;
use crate::data::Source;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::methods::QSteps;
#[cfg(doc)]
use crate::methods::Step;
use crate::model::Model;

/// How much nearer than [`EmOptions::tolerance`] the bound at the best sites is to come: a line search compares values that
/// differ by little.
const CLOSER: f64 = 1e-2;
/// Most passes for it, and fewer if [`EmOptions::e_steps`] says so. Sites that creep are left where they are: the bound there
/// is a bound, too, and with ten classes hyperparameters gain more by the time of the next passes than they would.
const MOST_PASSES: usize = 6;

/// Passes continue beyond [`MOST_PASSES`] while the last one brought this share of what the bound
/// lacks to that at the best point: a far trial judged by sites that have not come to it yet looks
/// like a wall, and a line search then creeps.
const WORTHWHILE: f64 = 0.05;

/// Steps that are shorter than this lead nowhere.
const SHORTEST: f64 = 1e-7;

/// As many passes that do not halve what a step promises, nor raise the bound, are the end.
const IDLE: usize = 10;

/// What the steps of q have brought so far.
struct Climb {
    last: f64,
    rise: f64,
    small: f64,
    terms: f64,
}

impl Climb {
    fn new(tolerance: f64, terms: f64) -> Self {
        let small = CLOSER * tolerance;
        Self { last: f64::NEG_INFINITY, rise: f64::INFINITY, small, terms }
    }

    /// Returns whether more steps would bring next to nothing: rises shrink by a constant factor.
    fn ends_at(&mut self, value: f64) -> bool {
        let before = std::mem::replace(&mut self.rise, value - self.last);
        self.last = value;
        let small = self.small * value.abs().min(self.terms).max(1.0);
        let shrinks = before.is_finite() && self.rise < before;
        self.rise <= small || (shrinks && self.rise * self.rise <= small * (before - self.rise))
    }
}

/// Where the last step of q led.
#[derive(Clone, Copy, PartialEq)]
enum Landing {
    /// None was made from here: q is the best so far.
    Start,
    Higher,
    /// One step may overshoot: what is seen there tells how far to go.
    Lower,
    Nowhere,
}

/// Makes steps of q until the bound rises no more, at fixed hyperparameters. `best` is the highest
/// bound that another point has, if there is one. Returns the passes made.
pub(super) fn climb_sites(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    (options, best): (&EmOptions, f64),
    steps: &mut dyn QSteps,
    observer: &dyn Observer,
) -> Result<usize> {
    let most = options.e_steps.min(MOST_PASSES);
    let until = Until::Settled { best, at_most: options.e_steps };
    climb(model, engine, data, (options, most, until), steps, observer)
        .map(|settled| settled.passes)
}

/// Makes at most so many steps of q until a further one promises no more than `least` nats
/// ([`Step::promise`]), or until there is no way.
pub(super) fn settle_sites(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    (options, least, most): (&EmOptions, f64, usize),
    steps: &mut dyn QSteps,
    observer: &dyn Observer,
) -> Result<Settled> {
    climb(model, engine, data, (options, most, Until::Promises(least)), steps, observer)
}

/// When steps of q end.
#[derive(Clone, Copy)]
enum Until {
    /// The bound rises no more; a few further passes, `at_most` in all, while it comes nearer to `best`.
    Settled { best: f64, at_most: usize },
    /// A further step promises no more nats than this.
    Promises(f64),
}

/// Where steps of q have come.
pub(super) struct Settled {
    pub(super) passes: usize,
    /// What a further step promises, if that was asked for.
    pub(super) promise: f64,
    /// Whether q is another one.
    pub(super) moved: bool,
    /// Whether the bound rose no more, however short the steps.
    pub(super) stuck: bool,
}

fn climb(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    (options, mut most, until): (&EmOptions, usize, Until),
    steps: &mut dyn QSteps,
    observer: &dyn Observer,
) -> Result<Settled> {
    let mut climb = Climb::new(options.tolerance, terms(data));
    let mut settled = Settled { passes: most, promise: f64::INFINITY, moved: false, stuck: false };
    // a Newton step; latent functions with separate kernels overshoot together
    let alone = model.kernels.len() == 1 || steps.bound().never_falls(&*model.likelihood);
    let mut rate = options.rate.unwrap_or(if alone { 1.0 } else { EmOptions::CAREFUL });
    let (mut mixing, mut best) = (Mixing::default(), model.q.clone());
    let (mut place, mut lowest, mut idle) = (Landing::Start, f64::INFINITY, 0);
    let mut passes = 0;
    while passes < most {
        passes += 1;
        if observer.interrupted() {
            model.q = best;
            return Err(Error::Interrupted);
        }
        place = match steps.look(model, engine, data).and_then(|_| steps.centre(model)) {
            Ok(value) if place == Landing::Start || value >= climb.last - 1e-10 * value.abs() => {
                settled.moved |= place != Landing::Start;
                let ends = climb.ends_at(value) && place != Landing::Start;
                let ends = match until {
                    Until::Settled { best, at_most } => {
                        let nears = climb.rise > WORTHWHILE * (best - value) && value < best;
                        if passes == most && most < at_most && nears {
                            most += 1;
                        }
                        ends
                    }
                    Until::Promises(least) => {
                        settled.promise = steps.promise(model, data)?;
                        // of slopes that are rounding no step makes less
                        if settled.promise > 0.5 * lowest && climb.rise <= least {
                            idle += 1;
                        } else {
                            (lowest, idle) = (settled.promise.min(lowest), 0);
                        }
                        settled.promise <= least
                    }
                };
                if ends {
                    return Ok(Settled { passes, ..settled });
                }
                best.clone_from(&model.q);
                Landing::Higher
            }
            Ok(_) if place == Landing::Higher => Landing::Lower,
            Err(error) if place == Landing::Start || !error.is_recoverable() => return Err(error),
            _ => Landing::Nowhere,
        };
        settled.stuck = rate < SHORTEST || idle == IDLE;
        if passes == most || settled.stuck {
            settled.passes = passes;
            break;
        }
        if place != Landing::Nowhere {
            let slopes = steps.mean_slopes();
            match (steps.step(model, engine, data, rate), &mut model.q) {
                (Ok(()), Some(q)) => mixing.mix(q, slopes),
                (Err(error), _) if !error.is_recoverable() => return Err(error),
                _ => place = Landing::Nowhere,
            }
        }
        if place == Landing::Nowhere {
            // too far
            model.q.clone_from(&best);
            mixing.clear();
            (place, rate) = (Landing::Start, 0.5 * rate);
        }
    }
    model.q = best;
    Ok(settled)
}

//! The history of a training as tensors: in a header it would be most of the file, and a thousand columns' would be too long.

use super::read::Reader;
use super::write::bytes;
use super::{CLOCK, foreign};
use crate::error::Result;
use crate::fit::Made;
use crate::train::{TracePoint, TrainReport};

/// Tensors of the points, and of the hyperparameters at each.
const TRACE: &str = "training.trace";
const PARAMETERS: &str = "training.parameters";
/// Numbers of a point beside its hyperparameters and its time.
const NUMBERS: usize = 6;
/// Times that stand before those of the points.
const TIMES: usize = 3;

type Tensors = Vec<(String, Vec<usize>, Vec<u8>)>;

/// Takes the history and all times out of a report: tensors, and the clock.
pub(super) fn taken(report: Option<&mut TrainReport>, made: &Made) -> (Tensors, Vec<f64>) {
    let mut clock = vec![made.at.map_or(f64::NAN, |at| at as f64), f64::NAN, f64::NAN];
    let Some(report) = report else { return (Vec::new(), clock) };
    clock[1] = std::mem::take(&mut report.seconds);
    if let Some(mixing) = &mut report.mixing {
        clock[2] = std::mem::take(&mut mixing.seconds_per_sweep);
    }
    let trace = std::mem::take(&mut report.trace);
    clock.extend(trace.iter().map(|point| point.seconds));
    let Some(first) = trace.first() else { return (Vec::new(), clock) };
    let numbers = trace.iter().flat_map(|point| {
        let counts = (point.iteration as f64, point.evaluations as f64);
        let density = point.held_out.unwrap_or(f64::NAN);
        let own = point.parameters.len() as f64;
        [counts.0, counts.1, point.objective, point.gradient_norm, density, own]
    });
    let own = first.parameters.len();
    let shape = match trace.iter().all(|point| point.parameters.len() == own) {
        true => vec![trace.len(), own],
        false => vec![trace.iter().map(|point| point.parameters.len()).sum()],
    };
    let parameters = trace.iter().flat_map(|point| point.parameters.iter().copied());
    let tensors = vec![
        (TRACE.to_owned(), vec![trace.len(), NUMBERS], bytes(numbers)),
        (PARAMETERS.to_owned(), shape, bytes(parameters)),
    ];
    (tensors, clock)
}

/// Puts history and times back into a report, and gives the time at which the model was made.
pub(super) fn read(tensors: &Reader<'_>, report: Option<&mut TrainReport>) -> Result<Option<u64>> {
    let (_, clock) = tensors.raw(CLOCK)?;
    let [at, seconds, sweep, times @ ..] = &clock[..] else {
        return Err(foreign(format!("tensor `{CLOCK}` has fewer than {TIMES} numbers")));
    };
    let at = (at.is_finite() && *at >= 0.0).then_some(*at as u64);
    let Some(report) = report else { return Ok(at) };
    report.seconds = *seconds;
    if let Some(mixing) = &mut report.mixing {
        mixing.seconds_per_sweep = *sweep;
    }
    if times.is_empty() {
        return Ok(at);
    }
    let ((shape, points), (of_all, parameters)) = (tensors.raw(TRACE)?, tensors.raw(PARAMETERS)?);
    if shape != [times.len(), NUMBERS] {
        return Err(foreign(format!("tensor `{TRACE}` has shape {shape:?}")));
    }
    if !matches!(of_all[..], [_] | [_, _]) || (of_all.len() == 2 && of_all[0] != times.len()) {
        return Err(foreign(format!("tensor `{PARAMETERS}` has shape {of_all:?}")));
    }
    let mut rest = &parameters[..];
    for (point, seconds) in points.chunks_exact(NUMBERS).zip(times) {
        let own = point[5] as usize;
        if own > rest.len() {
            return Err(foreign(format!("tensor `{PARAMETERS}` does not fit `{TRACE}`")));
        }
        let (first, others) = rest.split_at(own);
        rest = others;
        report.trace.push(TracePoint {
            iteration: point[0] as usize,
            evaluations: point[1] as usize,
            objective: point[2],
            gradient_norm: point[3],
            seconds: *seconds,
            parameters: first.to_vec(),
            held_out: (!point[4].is_nan()).then_some(point[4]),
        });
    }
    Ok(at)
}

//! The best candidates on more rows: few rows are explained best by simple kernels, whatever the function is, and what speaks
//! for a kernel with many hyperparameters grows with the rows, while their price does not.

use super::{Judged, KernelScore, MOST_TIME, scored};
use crate::engine::Engine;
use crate::error::Result;
use crate::fit::trial::Trial;
use crate::fit::{AUTO_EXACT, Dataset, FitOptions, choice, sample_rows};
use crate::train::Observer;

/// Part of the operations of the training that follows which these trials may take.
const PART: f64 = 0.5;
/// Rows that they see at least, if there are so many and a pilot may see them.
const LEAST: usize = 500;
/// Rows that are worth it, in multiples of those that the candidates were trained on.
const MORE: f64 = 1.3;
/// Candidates that are taken by their scores, and by their evidence, beside the usual kernel.
const BY_SCORE: usize = 2;
const BY_EVIDENCE: usize = 3;
/// Iterations from the values that fewer rows have found.
const ITERATIONS: usize = 12;

/// Returns the places of the candidates that are judged again.
fn best(judged: &[Judged]) -> Vec<usize> {
    let first = |count: usize, value: &dyn Fn(&KernelScore) -> f64| {
        let mut order: Vec<usize> = (1..judged.len()).collect();
        order.sort_by(|a, b| value(&judged[*b].score).total_cmp(&value(&judged[*a].score)));
        order.truncate(count);
        order
    };
    let mut all = vec![0];
    all.extend(first(BY_SCORE, &|own| own.score));
    all.extend(first(BY_EVIDENCE, &|own| own.evidence));
    all.sort_unstable();
    all.dedup();
    all
}

/// Computes the scores of candidates, the usual kernel first: where inference is exact, the best
/// are trained a little further on more rows, and those that are not come last. Returns the rows
/// that decide, too.
pub(super) fn scores(
    judged: Vec<Judged>,
    dataset: &Dataset,
    options: &FitOptions,
    rows: usize,
    engine: &dyn Engine,
    observer: &dyn Observer,
) -> Result<(Vec<KernelScore>, usize)> {
    let exact = judged.iter().all(|own| own.trial.model.method.name() == "exact");
    let chosen = best(&judged);
    let evaluations = (chosen.len() * (ITERATIONS + 1)) as f64;
    let each = PART * choice::of_training(dataset, options) / evaluations;
    let affordable = choice::rows_of_exact(each).max(LEAST);
    let more = affordable.min(AUTO_EXACT).min(options.pilot).min(dataset.source.rows());
    let limited = observer.time_used().is_some_and(|used| used > MOST_TIME);
    let few = |all: &[Judged]| all.iter().map(|own| own.score.clone()).collect();
    if !exact {
        // series and sites are judged once, and sites of so many rows may be too dear
        let seen = judged.first().map_or(rows, |own| own.score.rows);
        return Ok((few(&judged), seen));
    }
    if limited || (more as f64) < MORE * rows as f64 || observer.interrupted() {
        return Ok((few(&judged), rows));
    }
    let sample = dataset.of_sample(sample_rows(&*dataset.source, more, options.seed)?)?;
    let all = sample_rows(&sample.varying(), more, options.seed)?;
    let all = sample.distinct(&all).unwrap_or(all);
    let mut found = Vec::new();
    let mut others = Vec::new();
    for (at, own) in judged.iter().enumerate() {
        let again = match chosen.contains(&at) {
            true => Trial::new(&own.trial.model, &all, more, options)?,
            false => None,
        };
        let objective = match again {
            Some(mut trial) => trial
                .climb(ITERATIONS, engine, observer)?
                .map(|objective| scored(&own.score.kernel, objective, &trial)),
            None => None,
        };
        match objective {
            Some(score) => found.push(score),
            // without the usual kernel there is nothing to compare with
            None if at == 0 => return Ok((few(&judged), rows)),
            None => others.push(own.score.clone()),
        }
    }
    found.extend(others);
    Ok((found, more))
}

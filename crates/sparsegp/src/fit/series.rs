//! Rows of one input as a series: a sample of them is a few windows of neighbours, in which short waves and slow drifts show alike.
//! Random rows of a long series lie far apart, and all that is fast looks like noise.

use super::{Dataset, FitOptions, start};
use crate::data::{InMemory, Source};
use crate::error::Result;
use crate::kernels::{self, Inputs, StateSpace};
use crate::likelihoods::Likelihood;
use crate::linalg::column;
use crate::markov::{MOST_STATES, order};
use crate::methods;
use crate::model::Model;

/// Windows of a sample.
const WINDOWS: usize = 8;

/// Most rows that `auto` passes as a series: they are all in memory.
const MOST_ROWS: usize = 20_000_000;

/// Rows that kernels are judged by: a pass over so many costs milliseconds.
pub(super) const JUDGED: usize = 2000;
/// States up to which starts are judged by as many, with more by fewer.
const FEW_STATES: usize = 4;
const LEAST: usize = 400;

/// Returns how many rows the starts of a model are judged by.
pub(super) fn of_starts(model: &Model) -> usize {
    let states = model.kernel().state_space().map_or(FEW_STATES, |own| own.size());
    (JUDGED * FEW_STATES / states.max(FEW_STATES)).max(LEAST)
}

/// Returns whether the method that is asked for passes rows in their order.
pub(super) fn asked(options: &FitOptions) -> bool {
    methods::find(&options.method).is_ok_and(|entry| entry.method.is_of_series())
}

/// Returns whether such a method infers under a likelihood.
pub(super) fn takes(likelihood: &dyn Likelihood) -> bool {
    methods::find("markov").is_ok_and(|entry| entry.takes(likelihood))
}

/// Returns whether `auto` may take such a method for these rows and this kernel.
pub(super) fn possible(dataset: &Dataset, kernel: &str) -> bool {
    let data = &*dataset.source;
    let known = dataset.deviations.is_none() && data.sharded().is_none();
    let one = known && data.inputs() == 1 && data.rows() <= MOST_ROWS;
    let space =
        || kernels::parse(kernel, Inputs::unnamed(1)).and_then(|kernel| kernel.state_space());
    let fits = |own: &dyn StateSpace| own.size() <= MOST_STATES && own.error() <= APPROXIMATE;
    one && (super::is_automatic(kernel) || space().is_ok_and(|own| fits(&*own)))
}

/// Errors of a covariance, as a part of its variance, above which `auto` takes the kernel itself: an approximation is asked for.
const APPROXIMATE: f64 = 1e-7;

/// Returns what to say where the state lacks a part of the kernel.
pub(super) fn remarks(model: &Model) -> Vec<String> {
    let mut all = Vec::new();
    if model.method.is_of_series() {
        for kernel in &model.kernels {
            if let Ok(space) = kernel.state_space() {
                space.remarks(&mut all);
            }
        }
    }
    all.dedup();
    all
}

/// Picks windows of neighbours of at most so many places in all, spread evenly over their order; indices in rising order.
fn windows(t: &[f64], count: usize) -> Vec<usize> {
    let n = t.len();
    if n <= count {
        return (0..n).collect();
    }
    let (order, each) = (order(t), (count / WINDOWS).max(1));
    let last = n - each;
    let starts = (0..WINDOWS).map(|w| w * last / (WINDOWS - 1));
    let mut picked: Vec<usize> =
        starts.flat_map(|from| order[from..from + each].to_vec()).collect();
    picked.sort_unstable();
    picked.dedup();
    picked
}

/// Picks rows in memory.
pub(super) fn picked(rows: &InMemory, count: usize) -> Vec<usize> {
    windows(column(rows.x.as_ref(), 0), count)
}

/// Returns a sample of at most so many rows: windows for a method that passes rows in their order, else random ones.
///
/// # Errors
/// What reading the data gives.
pub(super) fn sample(
    data: &dyn Source,
    count: usize,
    of_series: bool,
    seed: u64,
) -> Result<InMemory> {
    if !of_series || data.inputs() != 1 || data.rows() <= count {
        return start::sample_rows(data, count, seed);
    }
    let mut t = Vec::with_capacity(data.rows());
    data.for_each_chunk(1 << 14, &mut |rows| {
        t.extend((0..rows.x.nrows()).map(|i| rows.x[(i, 0)]));
        Ok(())
    })?;
    start::rows_at(data, &windows(&t, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_of_neighbours_and_reach_both_ends() {
        // places in disorder
        let t: Vec<f64> = (0..1000).map(|i| f64::from((i * 377) % 1000)).collect();
        let found = windows(&t, 80);
        assert!(found.is_sorted() && found.len() == 80);
        let mut places: Vec<f64> = found.iter().map(|i| t[*i]).collect();
        places.sort_by(f64::total_cmp);
        assert_eq!((places[0], places[79]), (0.0, 999.0));
        let steps = places.windows(2).filter(|pair| pair[1] - pair[0] == 1.0).count();
        assert_eq!(steps, 72);
        assert_eq!(windows(&t[..50], 80), (0..50).collect::<Vec<_>>());
    }
}

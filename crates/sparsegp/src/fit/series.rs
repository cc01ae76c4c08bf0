//! Rows along the time as a series: a sample of them is a few windows of neighbours, in which short waves and slow drifts show alike.
//! Random rows of a long series lie far apart, and all that is fast looks like noise.

use super::trial::SITES;
use super::{Dataset, FitOptions, beginning, sample};
use crate::data::{InMemory, Source};
use crate::error::Result;
use crate::kernels::{self, Inputs, Kernel, StateSpace};
use crate::likelihoods::Likelihood;
use crate::markov::{MOST_STATES, Places, not_labels, order};
use crate::methods::{self, Method};
use crate::model::Model;
use crate::params::Bounds;
use crate::rng::{below, stream};

/// Windows of a sample.
const WINDOWS: usize = 8;

/// Most rows that `auto` passes as a series: they are all in memory.
const MOST_ROWS: usize = 20_000_000;

/// States up to which starts are judged by as many rows as kernels, with more by fewer.
const FEW_STATES: usize = 4;
const LEAST: usize = 400;

/// Returns how many rows kernels are judged by, for so many of the pilot: a pass over the rows of a series costs less than a
/// factor of as many, and finding the sites of another likelihood takes dozens of them.
pub(super) fn judged(likelihood: &dyn Likelihood, pilot: usize) -> usize {
    if likelihood.as_gaussian().is_some() { pilot.saturating_mul(2) } else { pilot.min(SITES) }
}

/// Returns how many rows the starts of a model are judged by.
pub(super) fn of_starts(model: &Model, pilot: usize) -> usize {
    let states = model.kernel().state_space().map_or(FEW_STATES, |own| own.size());
    let most = judged(&*model.likelihood, pilot);
    (most.saturating_mul(FEW_STATES) / states.max(FEW_STATES)).max(LEAST.min(most))
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

/// How many times a lengthscale is halved or doubled in search of the shortest that has few enough states.
const HALVINGS: i32 = 20;
/// Bisections between the two, to a thousandth.
const BISECTIONS: usize = 17;
/// Lengthscales of several terms are tried up to 1.1 to this power times the shortest of each.
const LONGER: i32 = 48;

/// Keeps lengthscales of a series from below where its kernel would have too many states (`periodic` of a short one has too many
/// harmonics): a bound that a training ends at, and that is named, in the place of a wall that it runs into.
///
/// # Errors
/// Bounds that contradict those that were given.
pub(super) fn keep_states(model: &mut Model) -> Result<()> {
    let found: Vec<(String, f64)> = model
        .params()
        .iter()
        .filter(|(path, own)| path.ends_with("lengthscales") && !own.frozen && own.len() == 1)
        .filter_map(|(path, own)| Some((path.clone(), shortest(model, path, own.scalar())?)))
        .collect();
    let Some(longer) = together(model, &found) else { return Ok(()) };
    for (path, least) in found {
        let least = rounded_up(longer * least);
        for (own, param) in model.params_mut().into_iter().filter(|(own, _)| *own == path) {
            let given = param.bounds();
            // where all that is allowed is too short, evaluations say so
            let possible = given.max.is_none_or(|max| max > least);
            if possible && given.min.is_none_or(|min| min < least) {
                param.bound(&own, Bounds { min: Some(least), ..given })?;
            }
        }
    }
    Ok(())
}

/// Returns by how much the shortest lengthscales have to be longer for all terms together to have
/// few enough states; none where they never do.
fn together(model: &Model, found: &[(String, f64)]) -> Option<f64> {
    let mut trial = model.clone();
    for (path, param) in trial.params_mut() {
        if found.iter().any(|(own, _)| *own == path) {
            param.bound(&path, Bounds::default()).ok()?;
        }
    }
    (0..LONGER).map(|k| 1.1_f64.powi(k)).find(|longer| {
        for (path, param) in trial.params_mut() {
            if let Some((_, least)) = found.iter().find(|(own, _)| *own == path)
                && param.set(&path, &[longer * least]).is_err()
            {
                return false;
            }
        }
        trial.kernels.iter().all(|kernel| has_state(&**kernel))
    })
}

fn has_state(kernel: &dyn Kernel) -> bool {
    kernel.state_space().is_ok_and(|own| own.size() <= MOST_STATES)
}

/// Rounds up: four digits are enough to read.
fn rounded_up(value: f64) -> f64 {
    let digit = 10.0_f64.powf(value.log10().floor() - 3.0);
    (value / digit).ceil() * digit
}

/// Returns the shortest lengthscale of a parameter with which a model has a state; none where all
/// have, or none near the present one.
fn shortest(model: &Model, path: &str, now: f64) -> Option<f64> {
    let mut trial = model.clone();
    for (own, param) in trial.params_mut().into_iter().filter(|(own, _)| own == path) {
        // values beyond the bounds that were given have states too
        param.bound(&own, Bounds::default()).ok()?;
    }
    let mut has = |value: f64| {
        let set = trial.params_mut().into_iter().find(|(own, _)| own == path);
        set.is_some_and(|(own, param)| param.set(&own, &[value]).is_ok())
            && trial.kernels.iter().all(|kernel| has_state(&**kernel))
    };
    let least = now * 0.5_f64.powi(HALVINGS);
    if has(least) {
        return None;
    }
    let mut long = (0..HALVINGS).map(|k| now * 2.0_f64.powi(k)).find(|own| has(*own))?;
    let mut short = least;
    for _ in 0..BISECTIONS {
        let middle = (long * short).sqrt();
        if has(middle) { long = middle } else { short = middle }
    }
    Some(long)
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

/// Returns the rows that a training of a method of series sees, where these are not all: the log evidence of a part of the rows
/// is exact for the same model. One half are the latest, in which short waves show, and the others are spread over all before them:
/// at random, one of each stretch, as even steps would meet a season at the same place again and again.
///
/// # Errors
/// Those of [`Model::time`], and of reading rows.
pub(super) fn of_training(model: &Model, data: &dyn Source, seed: u64) -> Result<Option<InMemory>> {
    let (n, method) = (data.rows(), model.method);
    let count = method.training_rows(model, n);
    if !method.is_of_series() || count >= n {
        return Ok(None);
    }
    let rows = methods::collect(data)?;
    let order = order(Places::new(rows.x.as_ref(), model.time(rows.x.ncols())?).t());
    Ok(Some(rows.picked(&latest_and_spread(&order, count, seed))))
}

fn latest_and_spread(order: &[usize], count: usize, seed: u64) -> Vec<usize> {
    let mut rng = stream(seed, "training rows");
    let (before, latest) = order.split_at(order.len() - count / 2);
    let spread = count - latest.len();
    let edge = |k: usize| k * before.len() / spread;
    let one_of = |k: usize| before[edge(k) + below(&mut rng, edge(k + 1) - edge(k))];
    let mut picked: Vec<usize> = (0..spread).map(one_of).chain(latest.iter().copied()).collect();
    picked.sort_unstable();
    picked
}

/// Picks rows in memory.
///
/// # Errors
/// Those of [`Model::time`].
pub(super) fn picked(model: &Model, rows: &InMemory, count: usize) -> Result<Vec<usize>> {
    let time = model.time(rows.x.ncols())?;
    Ok(windows(Places::new(rows.x.as_ref(), time).t(), count))
}

/// Returns the input that is the time, for a method that passes rows in their order; none where there is none such.
pub(super) fn time(dataset: &Dataset, options: &FitOptions, method: &dyn Method) -> Option<usize> {
    if !method.is_of_series() || dataset.source.inputs() == 1 {
        return method.is_of_series().then_some(0);
    }
    let kernels = beginning::asked_kernels(dataset, options).ok()?;
    match not_labels(&kernels, dataset.source.inputs())[..] {
        [one] => Some(one),
        _ => None,
    }
}

/// Returns a sample of at most so many rows: windows along the time where there is one, else random ones.
///
/// # Errors
/// What reading the data gives.
pub(super) fn sample(
    data: &dyn Source,
    count: usize,
    time: Option<usize>,
    seed: u64,
) -> Result<InMemory> {
    let Some(time) = time.filter(|_| data.rows() > count) else {
        return sample::sample_rows(data, count, seed);
    };
    let mut t = Vec::with_capacity(data.rows());
    data.for_each_chunk(1 << 14, &mut |rows| {
        t.extend((0..rows.x.nrows()).map(|i| rows.x[(i, time)]));
        Ok(())
    })?;
    sample::rows_at(data, &windows(&t, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pilot_says_how_many_rows_are_looked_at() {
        let of = |spec: &str, pilot: usize| {
            let likelihood = crate::likelihoods::parse(spec).expect("a likelihood");
            judged(&*likelihood, pilot)
        };
        assert_eq!((of("gaussian", 1000), of("gaussian", 60)), (2000, 120));
        assert_eq!((of("poisson", 1000), of("poisson", 60)), (300, 60));
        assert_eq!(of("gaussian", usize::MAX), usize::MAX);
    }

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

    #[test]
    fn rows_of_a_training_are_the_latest_and_some_of_every_stretch_before() {
        // the latest rows come first
        let order: Vec<usize> = (0..1003).rev().collect();
        let found = latest_and_spread(&order, 101, 4);
        assert!(found.len() == 101 && found.is_sorted_by(|a, b| a < b));
        assert_eq!(found[..50], (0..50).collect::<Vec<_>>());
        // 953 rows in 51 stretches of 18 or 19
        let spread = &found[50..];
        assert!(spread.windows(2).all(|pair| pair[1] - pair[0] < 38));
        assert!(spread[0] < 69 && spread[50] > 983);
        assert_eq!(latest_and_spread(&order, 101, 4), found);
        assert_ne!(latest_and_spread(&order, 101, 5), found);
        assert_eq!(latest_and_spread(&order, 1002, 4).len(), 1002);
    }
}

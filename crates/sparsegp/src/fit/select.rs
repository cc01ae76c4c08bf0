//! Where inducing points start.

use super::FitOptions;
use crate::data::{InMemory, Source};
use crate::error::Result;
use crate::inducing::columns;
use crate::inducing::select::{self, Selected, Selection};
use crate::kernels::{Kernel, points_fit};
use crate::linalg::{Mat, MatRef, column};
use crate::model::Model;
use crate::rng;
use std::collections::BTreeMap;

/// Selects inducing points as the options say, chosen from these rows.
pub(super) fn select_inducing(
    model: &Model,
    rows: &InMemory,
    count: usize,
    options: &FitOptions,
) -> Result<Selected> {
    let x = rows.x.as_ref();
    if let Selection::Given(points) = &options.selection
        && points.ncols() != x.ncols()
        && points_fit(model.kernel(), points.ncols(), x.ncols())
    {
        return options.selection.choose(points.as_ref(), count, options.seed, None);
    }
    if takes_interdomain(model, options) {
        return interdomain(model.kernel(), x, count, options);
    }
    if matches!(options.selection, Selection::KMeans | Selection::Grid) {
        let mut labels: Vec<usize> = model.kernels.iter().flat_map(|k| k.labels()).collect();
        labels.sort_unstable();
        labels.dedup();
        return by_label(model, x, count, options, &labels);
    }
    if !options.selection.needs_prior() {
        return options.selection.choose(x, count, options.seed, None);
    }
    let mut diag = vec![0.0; x.nrows()];
    model.kernel().diag(x, &mut diag);
    let mut columns = |indices: &[usize]| columns(model.kernel(), x, indices);
    let residuals = residuals(model, rows);
    let targets = residuals
        .as_ref()
        .map(|residuals| select::Targets { residuals: residuals.as_ref(), noise: model.noise() });
    let prior = select::Prior { diag: &diag, columns: &mut columns, targets };
    options.selection.choose(x, count, options.seed, Some(prior))
}

/// Returns whether inducing variables are of another domain than the inputs, such as patches of
/// images: where clusters or random ones are asked for, the kernel knows some, and the method does
/// not look for points among its rows.
pub(super) fn takes_interdomain(model: &Model, options: &FitOptions) -> bool {
    matches!(options.selection, Selection::KMeans | Selection::Random)
        && !model.method.keeps_rows()
        && model.kernels.iter().all(|k| k.interdomain() == model.kernel().interdomain())
        && model.kernel().interdomain().is_some()
}

/// Places for every one that is a centre of clusters.
const CANDIDATES: usize = 30;
/// Most of them.
const MOST_CANDIDATES: usize = 10_000;

/// Selects such variables, distinct and random or centres of clusters of these.
fn interdomain(
    kernel: &dyn Kernel,
    x: MatRef<f64>,
    count: usize,
    options: &FitOptions,
) -> Result<Selected> {
    let most = match options.selection {
        Selection::KMeans => (CANDIDATES * count).min(MOST_CANDIDATES).max(count),
        _ => count,
    };
    let all = kernel.choose_interdomain(x, most, &mut rng::stream(options.seed, "patches"));
    options.selection.choose(all.as_ref(), count.min(all.nrows()), options.seed, None)
}

/// Returns y − m(x), N×P, where the noise is Gaussian and the same in all rows.
fn residuals(model: &Model, rows: &InMemory) -> Option<Mat<f64>> {
    let known = (0..rows.y.ncols()).all(|p| !rows.y.col_as_slice(p).iter().any(|y| y.is_nan()));
    if model.likelihood.as_gaussian().is_none() || !rows.is_plain() || !known {
        return None;
    }
    let mut residuals = Mat::zeros(rows.y.nrows(), rows.y.ncols());
    model.mean.evaluate(rows.x.as_ref(), residuals.as_mut());
    for p in 0..residuals.ncols() {
        let own = residuals.col_as_slice_mut(p).iter_mut().zip(rows.y.col_as_slice(p));
        own.for_each(|(r, y)| *r = y - *r);
    }
    Some(residuals)
}

/// Returns the centres of clusters, or nodes of grids. Where the kernel sees labels there is no
/// mean of two: rows of equal labels are taken by themselves, into as large a part of the points as
/// they are of the rows, at least one.
fn by_label(
    model: &Model,
    x: MatRef<f64>,
    count: usize,
    options: &FitOptions,
    labels: &[usize],
) -> Result<Selected> {
    let mut groups: BTreeMap<Vec<u64>, Vec<usize>> = BTreeMap::new();
    for i in 0..x.nrows() {
        let own = labels.iter().map(|&q| x[(i, q)].to_bits()).collect();
        groups.entry(own).or_default().push(i);
    }
    if groups.len() < 2 {
        return as_seen(model, x, count, options);
    }
    if groups.len() > count {
        // rows that are there have labels that are there
        return Selection::Random.choose(x, count, options.seed, None);
    }
    let free = count - groups.len();
    let (mut rows_before, mut points_before) = (0, 0);
    let mut all = Selected {
        points: Mat::zeros(0, x.ncols()),
        requested: count,
        note: None,
        trace_left: None,
    };
    for rows in groups.values() {
        rows_before += rows.len();
        // so that rounding does not add up
        let until = (free as f64 * rows_before as f64 / x.nrows() as f64).round() as usize;
        let share = (1 + until - points_before).min(rows.len());
        points_before = until;
        let own = Mat::from_fn(rows.len(), x.ncols(), |i, q| x[(rows[i], q)]);
        let mut selected = as_seen(model, own.as_ref(), share, options)?;
        for &q in labels {
            selected.points.col_as_slice_mut(q).fill(own[(0, q)]);
        }
        let (before, more) = (all.points.nrows(), selected.points.nrows());
        let joined = |i: usize, q: usize| match i.checked_sub(before) {
            None => all.points[(i, q)],
            Some(i) => selected.points[(i, q)],
        };
        all.points = Mat::from_fn(before + more, x.ncols(), joined);
        all.note = all.note.or(selected.note);
    }
    Ok(all)
}

/// Returns the centres of clusters, or nodes of a grid, by distances as the kernel sees them: an
/// input that hardly matters should not spread points.
fn as_seen(model: &Model, x: MatRef<f64>, count: usize, options: &FitOptions) -> Result<Selected> {
    let mut relevance = vec![0.0; x.ncols()];
    model.kernels.iter().for_each(|kernel| kernel.relevance(&mut relevance));
    if relevance.iter().all(|r| *r <= 0.0) {
        return options.selection.choose(x, count, options.seed, None);
    }
    let seen = Mat::from_fn(x.nrows(), x.ncols(), |i, q| x[(i, q)] * relevance[q]);
    let mut selected = options.selection.choose(seen.as_ref(), count, options.seed, None)?;
    for (q, r) in relevance.into_iter().enumerate() {
        let mean = column(x, q).iter().sum::<f64>() / x.nrows() as f64;
        for v in selected.points.col_as_slice_mut(q) {
            *v = if r > 0.0 { *v / r } else { mean };
        }
    }
    Ok(selected)
}

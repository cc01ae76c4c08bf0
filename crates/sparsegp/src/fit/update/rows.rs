//! New rows for a posterior that keeps its rows: it is conditioned on all of them, which is exact. A series is filtered on from its last
//! state, and lets rows go that are far in the past: what they say of later places is that state.

use super::{UpdateOptions, UpdateReport, judged, log_units, recorded};
use crate::data::InMemory;
use crate::engine::Cpu;
use crate::error::{Error, Result};
use crate::fit::{Dataset, Fitted, sample_rows};
use crate::linalg::Mat;
use crate::markov::{Places, order};
use crate::model::{Model, Posterior, weighty};

/// Puts one matrix under the other.
fn stacked(above: &Mat<f64>, below: &Mat<f64>) -> Mat<f64> {
    let first = above.nrows();
    Mat::from_fn(first + below.nrows(), above.ncols(), |i, j| match i < first {
        true => above[(i, j)],
        false => below[(i - first, j)],
    })
}

/// Returns the numbers of old rows and of new ones; empty where none has any, and else `default`
/// where one lacks it.
fn joined(old: (&[f64], usize), new: (&[f64], usize), default: f64) -> Vec<f64> {
    if old.0.is_empty() && new.0.is_empty() {
        return Vec::new();
    }
    let all = |(own, n): (&[f64], usize)| match own.is_empty() {
        true => vec![default; n],
        false => own.to_vec(),
    };
    [all(old), all(new)].concat()
}

/// Says that rows do not leave a model.
pub(super) fn keeps_all(model: &Model, why: &str) -> Error {
    Error::InvalidParameter {
        path: "keep_rows".into(),
        reason: format!(
            "is of models of method `markov`, and `{}` {why}: leave it out",
            model.method.name()
        ),
    }
}

/// Returns how many rows are kept; none for all.
///
/// # Errors
/// [`Error::InvalidParameter`] where rows cannot leave the model, or some have and the weights of all are to change.
fn kept(fitted: &Fitted, options: &UpdateOptions) -> Result<Option<usize>> {
    let series = fitted.model.method.is_of_series();
    let fades = options.forget < 1.0;
    if let Some(past) = fitted.posterior.past().filter(|_| fades) {
        return Err(Error::InvalidParameter {
            path: "forget".into(),
            reason: format!(
                "multiplies the weights of all rows, and {} have left the model: keep 1, or fit a new model and update with \
                 `keep_rows` at 0",
                past.rows
            ),
        });
    }
    match options.keep_rows {
        Some(0) => Ok(None),
        Some(_) if !series => Err(keeps_all(&fitted.model, "keeps all of its rows")),
        Some(_) if fades => Err(Error::InvalidParameter {
            path: "keep_rows".into(),
            reason:
                "lets rows go, and `forget` multiplies the weights of all: leave one of them out"
                    .into(),
        }),
        own => Ok(own.filter(|_| series && !fades)),
    }
}

/// Returns the old rows, whose weights are multiplied by what is left of them, and new ones.
fn together(model: &Model, old: &InMemory, new: &InMemory, forget: f64) -> InMemory {
    let (n, m) = (old.x.nrows(), new.x.nrows());
    let mut left = old.weights.clone();
    if forget < 1.0 {
        left.resize(n, 1.0);
        left.iter_mut().for_each(|w| *w *= forget);
    }
    let default = model.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
    InMemory {
        x: stacked(&old.x, &new.x),
        y: stacked(&old.y, &new.y),
        weights: joined((&left, n), (&new.weights, m), 1.0),
        extra: joined((&old.extra, n), (&new.extra, m), default),
    }
}

/// Returns rows in the order of their times.
fn sorted(model: &Model, rows: InMemory) -> Result<InMemory> {
    let time = model.time(rows.x.ncols())?;
    Ok(match Places::new(rows.x.as_ref(), time).t() {
        t if t.is_sorted() => rows,
        t => rows.picked(&order(t)),
    })
}

/// Returns the model given old and new rows, and how many of the first ones have left.
fn conditioned(
    fitted: &Fitted,
    (old, new): (&InMemory, InMemory),
    options: &UpdateOptions,
) -> Result<(Posterior, usize, f64)> {
    let (model, before, engine) = (&fitted.model, &fitted.posterior, Cpu::default());
    let keep = kept(fitted, options)?;
    // rows that leave are the first
    let new = if keep.is_some() { sorted(model, new)? } else { new };
    let all = together(model, old, &new, options.forget);
    // weights that change are not rows behind others
    let found = if options.forget < 1.0 { None } else { before.extended(model, &all)? };
    let found = match (found, before.past(), keep) {
        (Some(found), ..) => found,
        (_, Some(past), _) => {
            model.method.conditioned_after(model, &engine, sorted(model, all)?, past.clone())?
        }
        (_, _, Some(_)) => model.method.conditioned(model, &engine, sorted(model, all)?)?,
        _ => model.method.conditioned(model, &engine, all)?,
    };
    let objective = |of: &Posterior| of.kept_objective().unwrap_or(f64::NAN);
    let bound = objective(&found) - objective(before);
    let left = match keep {
        Some(keep) => found.with_last(model, keep)?,
        None => None,
    };
    Ok(match left {
        Some((posterior, left)) => (posterior, left, bound),
        None => (found, 0, bound),
    })
}

/// Takes up new rows beside those that are kept, whose weights are multiplied by what is left of them.
///
/// # Errors
/// [`Error::Invalid`] where hyperparameters are to be trained; those of `watch`, and what conditioning gives.
pub(super) fn extend(
    fitted: &Fitted,
    dataset: &Dataset,
    options: &UpdateOptions,
    watch: &mut dyn FnMut(usize, usize) -> Result<()>,
) -> Result<(Fitted, UpdateReport)> {
    options.check()?;
    let model = &fitted.model;
    let Some(old) = fitted.posterior.kept_rows().filter(|_| options.train == 0) else {
        return Err(Error::Invalid(format!(
            "models of method `{}` take up new rows with the hyperparameters that they have: leave `train` at 0, or refit to all rows",
            model.method.name()
        )));
    };
    kept(fitted, options)?;
    let rows = sample_rows(&*dataset.source, dataset.source.rows(), 0)?;
    watch(0, rows.x.nrows())?;
    fitted.check_kept(rows.x.as_ref())?;
    let judged = judged::judge(fitted, &rows)?;
    let mut report = UpdateReport {
        rows: dataset.rows,
        inside: judged.inside,
        warnings: judged.warnings.clone(),
        ..UpdateReport::default()
    };
    let units = log_units(fitted, &rows);
    let (posterior, left, bound) = conditioned(fitted, (old, weighty(rows)), options)?;
    report.left = left;
    report.points = posterior.kept_rows().map_or(0, |rows| rows.x.nrows());
    report.bound = bound - units;
    let mut updated = fitted.clone();
    updated.posterior = posterior;
    if fitted.posterior.past().is_none() && left > 0 {
        report.warnings.push(format!(
            "{left} rows have left the model, which keeps the latest {}: it knows what they say from {} on, and predicts nothing \
             before; `keep_rows` keeps more, 0 all",
            report.points,
            updated.kept_from().unwrap_or_default()
        ));
    }
    recorded::record(&mut updated, dataset, &report, bound);
    judged.keep(&mut updated);
    Ok((updated, report))
}

//! New rows for a posterior that keeps its rows: it is conditioned on all of them, which is exact.

use super::{UpdateOptions, UpdateReport, judged, log_units, recorded};
use crate::data::InMemory;
use crate::engine::Cpu;
use crate::error::{Error, Result};
use crate::fit::{Dataset, Fitted, sample_rows};
use crate::linalg::Mat;
use crate::model::weighty;

/// One matrix under the other.
fn stacked(above: &Mat<f64>, below: &Mat<f64>) -> Mat<f64> {
    let first = above.nrows();
    Mat::from_fn(first + below.nrows(), above.ncols(), |i, j| match i < first {
        true => above[(i, j)],
        false => below[(i - first, j)],
    })
}

/// Numbers of old rows and of new ones; empty where none has any, and else `default` where one lacks it.
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
            "models of method `{}` take up new rows with the hyperparameters that they have: leave `train` at 0, or fit all rows anew",
            model.method.name()
        )));
    };
    let rows = sample_rows(&*dataset.source, dataset.source.rows(), 0)?;
    watch(0, rows.x.nrows())?;
    let judged = judged::judge(fitted, &rows)?;
    let mut report = UpdateReport {
        rows: dataset.rows,
        inside: judged.inside,
        warnings: judged.warnings.clone(),
        ..UpdateReport::default()
    };
    let units = log_units(fitted, &rows);
    let new = weighty(rows);
    let (n, m) = (old.x.nrows(), new.x.nrows());
    let mut left = old.weights.clone();
    if options.forget < 1.0 {
        left.resize(n, 1.0);
        left.iter_mut().for_each(|w| *w *= options.forget);
    }
    let default = model.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
    let all = InMemory {
        x: stacked(&old.x, &new.x),
        y: stacked(&old.y, &new.y),
        weights: joined((&left, n), (&new.weights, m), 1.0),
        extra: joined((&old.extra, n), (&new.extra, m), default),
    };
    report.points = n + m;
    let posterior = model.method.conditioned(model, &Cpu::default(), all)?;
    let objective = |of: &crate::model::Posterior| of.kept_objective().unwrap_or(f64::NAN);
    let bound = objective(&posterior) - objective(&fitted.posterior);
    report.bound = bound - units;
    let mut updated = fitted.clone();
    updated.posterior = posterior;
    recorded::record(&mut updated, dataset, &report, bound);
    judged.keep(&mut updated);
    Ok((updated, report))
}

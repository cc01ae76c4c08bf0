//! New rows for a posterior that keeps its rows: it is conditioned on all of them, which is exact.

use super::{UpdateOptions, UpdateReport, judged, log_units, recorded};
use crate::engine::Cpu;
use crate::error::{Error, Result};
use crate::fit::{Dataset, Fitted, sample_rows};
use crate::linalg::Mat;
use crate::model::ConditioningRows;

/// One matrix under the other.
fn stacked(above: &Mat<f64>, below: &Mat<f64>) -> Mat<f64> {
    let first = above.nrows();
    Mat::from_fn(first + below.nrows(), above.ncols(), |i, j| match i < first {
        true => above[(i, j)],
        false => below[(i - first, j)],
    })
}

/// Takes up new rows beside those that are kept, whose noise is divided by what is left of them.
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
    let (new, noise) = ConditioningRows::of(model, rows)?;
    let factors = new.y.ncols() as f64 * noise.factors().0;
    let left = old.noise.iter().map(|s| s / options.forget);
    let all = ConditioningRows {
        x: stacked(&old.x, &new.x),
        y: stacked(&old.y, &new.y),
        noise: left.chain(new.noise.iter().copied()).collect(),
    };
    report.points = all.x.nrows();
    let posterior = model.method.conditioned(model, &Cpu::default(), all)?;
    let density = |of: &crate::model::Posterior| of.log_density().unwrap_or(f64::NAN);
    let bound = density(&posterior) - density(&fitted.posterior) + factors;
    report.bound = bound - units;
    let mut updated = fitted.clone();
    updated.posterior = posterior;
    recorded::record(&mut updated, dataset, &report, bound);
    judged.keep(&mut updated);
    Ok((updated, report))
}

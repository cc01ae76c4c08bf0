//! What a model says of its rows, after others were taken up.

use super::UpdateReport;
use crate::fit::{Dataset, Fitted};

/// Counts new rows; `bound` is that of them on the model's scale.
pub(super) fn record(fitted: &mut Fitted, dataset: &Dataset, report: &UpdateReport, bound: f64) {
    let (before, jacobian) =
        (fitted.total_weight.unwrap_or(fitted.rows as f64), fitted.log_jacobian());
    fitted.rows += report.rows;
    fitted.total_weight = match (fitted.total_weight, dataset.total_weight) {
        (None, None) => None,
        (_, new) => Some(before + new.unwrap_or(report.rows as f64)),
    };
    fitted.absent.resize(fitted.absent.len().max(dataset.absent.len()), 0.0);
    fitted.absent.iter_mut().zip(&dataset.absent).for_each(|(own, new)| *own += new);
    let shift = fitted.log_jacobian() - jacobian;
    if let Some(training) = &mut fitted.report {
        // it was of old rows, and is now of all
        training.objective += bound;
        training.findings.clear();
        // the history stays that of old rows, in the data's units, to which it comes by the number of all rows
        training.trace.iter_mut().for_each(|point| point.objective -= shift);
        training.starts.iter_mut().for_each(|objective| *objective -= shift);
    }
    let averaged = fitted.report.as_mut().and_then(|training| training.averaged.take());
    fitted.warnings = [dataset.warnings.clone(), report.warnings.clone()].concat();
    fitted.warnings.extend(averaged.map(|_| {
        "predictions no longer average over hyperparameters: the update keeps the best ones, and intervals become narrower; refit \
         to all rows while they are few"
            .into()
    }));
}

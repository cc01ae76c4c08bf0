//! Cheap diagnostics of a fitted model: what the rows say against its likelihood, with what to try instead.

mod counts;
mod filled;
mod judged;
mod numbers;
mod whole;

pub(super) use judged::Asked;

use super::{sample_rows, weights};
use crate::data::InMemory;
use crate::error::Result;
use crate::linalg::Mat;
use crate::methods::collect;
use crate::model::Posterior;
use crate::train::Finding;

/// Rows that are looked at.
const ROWS: usize = 2000;

/// Returns what the rows say against the likelihood of a fitted model.
///
/// # Errors
/// What reading and predicting the rows give.
pub(super) fn of(asked: &Asked<'_>, posterior: &Posterior) -> Result<Vec<Finding>> {
    match asked.model.likelihood.name() {
        "poisson" | "binomial" => counts::findings(asked, posterior),
        "gaussian" => {
            let seen = predicted(asked, posterior)?;
            let chosen = asked.options.likelihood.is_some();
            Ok(numbers::findings(&seen, asked.model.noise(), asked.dataset, chosen))
        }
        _ => Ok(Vec::new()),
    }
}

/// Rows with what a model says of their targets, on its scale.
struct Predicted {
    rows: InMemory,
    mean: Mat<f64>,
    variance: Mat<f64>,
}

/// Predicts every row by the others where the posterior can leave one out, else by all.
fn predicted(asked: &Asked<'_>, posterior: &Posterior) -> Result<Predicted> {
    let (model, dataset) = (asked.model, asked.dataset);
    let direct = !model.method.is_sparse() && dataset.source.rows() <= ROWS;
    let rows = match direct {
        // without inducing points a row is left out among all
        true => collect(&dataset.filled())?,
        false => sample_rows(&dataset.filled(), ROWS, asked.options.seed)?,
    };
    let of_rows = model.method.with_q().is_none_or(|q| q.is_of_points());
    let (mean, variance) = match posterior.leaves_one_out(model) && (direct || of_rows) {
        true => {
            let all = posterior.leave_one_out(model, &rows)?;
            (all.mean, all.variance)
        }
        false => posterior.predict_y(rows.x.as_ref(), &rows.extra)?,
    };
    Ok(Predicted { rows, mean, variance })
}

impl Predicted {
    /// Returns the indices of the rows whose target is there and counts.
    fn known(&self, target: usize) -> Vec<usize> {
        let known =
            |i: &usize| !self.rows.y[(*i, target)].is_nan() && self.variance[(*i, target)] > 0.0;
        weights::counting(&self.rows).into_iter().filter(known).collect()
    }
}

//! Whether the inducing points of a default fit are too few for what its rows know.
//!
//! A row with a million trials knows its latent value to a thousandth, and one inducing point for four rows leaves more than
//! that unexplained: the bound of tens of thousands of nats less is maximised by another model than that of the rows.
//! The trials of the starts (`judge`) have no inducing points, and tell.

use super::learning::Trained;
use super::{AUTO_EXACT, FitOptions, judge};
use crate::inducing::select::Selection;

/// Nats per row by which a trained bound must miss that of a trial on a few of the rows. Rows learn from each other, so that
/// it should be above.
const CLEAR: f64 = 0.5;

/// Nats that the trained bound misses, if they are many and the points were not asked for.
pub(super) fn missing(trained: &Trained, options: &FitOptions, rows: usize) -> Option<f64> {
    let asked = options.inducing.is_some() || matches!(options.selection, Selection::Given(_));
    // starts of mixed functions are judged by the sparse objective, and `tvgp` does not mix
    if trained.model.likelihood.mixing().is_some() {
        return None;
    }
    // with more rows what was judged last may be the sparse objective
    if options.method != "auto" || asked || rows > options.pilot.min(AUTO_EXACT) {
        return None;
    }
    let tried = judge::rows_of_trials(&trained.model, options).min(rows);
    let objectives = trained.report.judged.iter().map(|judged| judged.objective);
    let most = objectives.fold(f64::NEG_INFINITY, f64::max) / tried as f64;
    let lost = most - trained.report.objective / rows as f64;
    (trained.model.method.is_sparse() && lost > CLEAR).then_some(lost * rows as f64)
}

/// What is said where a training without inducing points was better.
pub(super) fn mended(lost: f64) -> String {
    format!(
        "inducing points are too few for what these rows know (the bound misses some {lost:.0} nats): the model was trained \
         again without any, by `tvgp`"
    )
}

/// What is said where there is none.
pub(super) fn left(lost: f64) -> String {
    format!(
        "inducing points are too few for what these rows know (the bound misses some {lost:.0} nats), and a training without \
         any was no better: the model is a poor one; try more of them (`--inducing`)"
    )
}

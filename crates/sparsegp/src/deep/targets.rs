//! What a likelihood asks of rows: targets that it knows, and the further number of each.

use crate::error::{Error, Result};
use crate::likelihoods::{Extra, Likelihood, Target};
use crate::linalg::{MatRef, column};

/// Returns what stands for the further number of rows that have none. Refuses numbers that are not one per row (n), and none
/// where the likelihood has no default: one trial each is an answer to another question.
pub(super) fn default_extra(likelihood: &dyn Likelihood, extra: &[f64], n: usize) -> Result<f64> {
    if !extra.is_empty() && extra.len() != n {
        let what = likelihood.extra().map_or("further numbers", |own| own.name);
        let expected = format!("{n} numbers, one per row, or none");
        return Err(Error::shape(format!("extra ({what} of rows)"), expected, extra.len()));
    }
    match likelihood.extra() {
        Some(Extra { default: None, name }) if extra.is_empty() => Err(Error::Invalid(format!(
            "the likelihood `{}` needs the {name} of every row, as `extra`",
            likelihood.name()
        ))),
        other => Ok(other.and_then(|own| own.default).unwrap_or(1.0)),
    }
}

/// Refuses targets (n×P, NaN where missing) that the likelihood does not know. `extra` has the further number of every row,
/// or is empty.
pub(super) fn check_targets(
    likelihood: &dyn Likelihood,
    y: MatRef<f64>,
    extra: &[f64],
) -> Result<()> {
    let default = default_extra(likelihood, extra, y.nrows())?;
    for p in 0..y.ncols() {
        for (i, y) in column(y, p).iter().enumerate().filter(|(_, y)| !y.is_nan()) {
            let extra = extra.get(i).copied().unwrap_or(default);
            if let Err(wrong) = likelihood.check(Target { y: *y, extra }) {
                return Err(Error::Invalid(format!("row {i}: the target {y} {wrong}")));
            }
        }
    }
    Ok(())
}

//! The further number of every row that some likelihoods take: exposure, trials, known noise variance.

use super::{Extra, Likelihood};
use crate::error::{Error, Result};

/// Returns what stands for the further number of rows that have none. Refuses numbers that are not one per row (n), and none
/// where the likelihood has no default: one trial each is an answer to another question.
///
/// # Errors
/// [`Error::Shape`] and [`Error::Invalid`], with what is needed.
pub(crate) fn default_extra(likelihood: &dyn Likelihood, extra: &[f64], n: usize) -> Result<f64> {
    if !extra.is_empty() && extra.len() != n {
        let what = likelihood.extra().map_or("further numbers", |own| own.name);
        let expected = format!("{n} numbers, one per row, or none");
        return Err(Error::shape(format!("extra ({what} of rows)"), expected, extra.len()));
    }
    match likelihood.extra() {
        Some(Extra { default: None, name }) if extra.is_empty() => Err(Error::Invalid(format!(
            "the likelihood `{}` needs the {name} of every row",
            likelihood.name()
        ))),
        other => Ok(other.and_then(|own| own.default).unwrap_or(1.0)),
    }
}

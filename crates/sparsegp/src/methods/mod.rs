//! The inference methods by name: what a model's objective is and how its posterior is found.
//!
//! To add one: one file and one line in [`REGISTRY`].

mod collapsed;
mod collected;
mod deep;
pub mod described;
mod exact;
mod registry;
mod steps;
mod tvgp;
pub mod uncollapsed;

pub use collapsed::{
    Collapsed, DEFAULT_ALPHA, HighCost, MOST_ROWS_HIGH_COST, PowerEp, upper_bound,
};
pub(crate) use collected::collect;
pub use deep::Deep;
pub use exact::Exact;
pub use registry::{Entry, REGISTRY, find};
pub use steps::{QSteps, q_steps};
pub use tvgp::{Look, Tvgp};
pub use uncollapsed::{Following, Step, Uncollapsed};

pub(crate) use crate::model::finite;
pub use crate::model::precision;
pub use crate::model::{Diagnostics, Evaluation, Keeps, Method, RowSite, Sampler, WithQ};

use crate::data::Source;
use crate::error::{Error, Result};
use crate::model::Model;

/// Refuses a noise variance of 0 where a method divides by it.
///
/// # Errors
/// [`Error::Invalid`] that names the method that does not.
pub fn check_noise(model: &Model) -> Result<()> {
    if model.noise() != 0.0 || model.method.name() == Exact.name() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "method `{}` divides by the noise variance, and `likelihood.variance` is 0: use `exact`, or a positive \
         variance",
        model.method.name()
    )))
}

/// Refuses rows that bring more than inputs and targets.
pub(crate) fn plain_rows(model: &Model, data: &dyn Source) -> Result<()> {
    if data.is_plain() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "method `{}` supports neither row weights nor known noise variances; use `svgp`, or `exact` for small tables",
        model.method.name()
    )))
}

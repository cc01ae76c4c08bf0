//! The inference methods by name: what a model's objective is and how its posterior is found.
//!
//! To add one: one file and one line in [`REGISTRY`].

mod collapsed;
mod collected;
mod deep;
pub mod described;
pub(crate) mod exact;
mod markov;
mod registry;
pub(crate) mod sites;
mod steps;
mod training_rows;
mod tvgp;
pub mod uncollapsed;
mod vecchia;

pub use collapsed::{
    Collapsed, DEFAULT_ALPHA, HighCost, MOST_ROWS_HIGH_COST, PowerEp, upper_bound,
};
pub(crate) use collected::{check_here, collect};
pub use deep::Deep;
pub use exact::Exact;
pub use markov::Markov;
pub use registry::{Entry, REGISTRY, find};
pub use steps::{QSteps, q_steps};
pub use tvgp::{Look, Tvgp};
pub use uncollapsed::{Following, Step, Uncollapsed};
pub use vecchia::{
    DEFAULT_LATENT_NEIGHBOURS, DEFAULT_NEIGHBOURS, DEFAULT_POINTS, MOST_INPUTS, Vecchia,
};

pub(crate) use crate::model::finite;
pub use crate::model::precision;
pub use crate::model::{Diagnostics, Evaluation, Keeps, Method, RowSite, Sampler, WithQ};

use crate::data::Source;
use crate::error::{Error, Result};
use crate::model::Model;

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

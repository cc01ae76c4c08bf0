//! Targets and noise of any size.

use super::Dataset;
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::likelihoods::Likelihood;
use crate::linalg::column;
use crate::model::Model;

/// Refuses targets whose variance, in their own units, is beyond double precision, where the likelihood has one.
pub(super) fn check(
    likelihood: &dyn Likelihood,
    dataset: &Dataset,
    sample: &InMemory,
) -> Result<()> {
    if !likelihood.standardises() {
        return Ok(());
    }
    // a sample may be without the columns that are constants
    let all = sample.y.ncols() == dataset.target_names.len();
    let columns =
        (0..dataset.target_names.len()).filter(|p| all || !dataset.scaler.is_constant(*p));
    for (j, p) in columns.enumerate() {
        let scale = dataset.scaler.y_scale[p];
        let known = column(sample.y.as_ref(), j).iter().filter(|y| !y.is_nan());
        let (least, most) =
            known.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), y| (a.min(*y), b.max(*y)));
        let size = scale * (most - least);
        let square = size * size;
        if size > 0.0 && (square.is_infinite() || square < f64::MIN_POSITIVE) {
            return Err(Error::Invalid(format!(
                "`{}` spreads over {size:.0e}, and its variance (the square) is beyond double precision: {} it by a \
                 power of ten",
                dataset.target_names[p],
                if size > 1.0 { "divide" } else { "multiply" }
            )));
        }
    }
    Ok(())
}

/// Lets the noise variance be what is asked for, also below what is learnt from rows.
pub(super) fn make_room(model: &mut Model, path: &str, value: &[f64]) {
    if let ("likelihood.variance", [value]) = (path, value)
        && let Some(gaussian) = model.likelihood.as_gaussian_mut()
    {
        gaussian.make_room(*value);
    }
}

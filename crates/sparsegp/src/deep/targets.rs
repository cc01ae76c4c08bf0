//! What a likelihood asks of rows: targets that it knows, and the further number of each.

use crate::error::{Error, Result};
use crate::likelihoods::{Likelihood, Target, default_extra};
use crate::linalg::{MatRef, column};

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

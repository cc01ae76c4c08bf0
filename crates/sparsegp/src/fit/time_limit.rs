//! Learning within a time limit.

use super::{FitOptions, Fitted};
use crate::error::{Error, Result};
use crate::train::{Deadline, Observer};

/// Does some learning within the time limit, if there is one.
pub(super) fn limited(
    options: &FitOptions,
    observer: &mut dyn Observer,
    learn: impl FnOnce(&mut dyn Observer) -> Result<Fitted>,
) -> Result<Fitted> {
    let Some(limit) = options.time_limit else { return learn(observer) };
    if !(limit > 0.0 && limit.is_finite()) {
        return Err(Error::Invalid(format!(
            "the time limit is {limit} s; it must be a positive number of seconds"
        )));
    }
    let mut deadline = Deadline::new(limit, observer);
    let mut fitted = learn(&mut deadline)?;
    if let Some(report) = &mut fitted.report {
        deadline.report(report);
        if deadline.ended() && options.checkpoint.is_some() {
            report.stopped += ", and the same training resumes from its checkpoint";
        }
    }
    Ok(fitted)
}

//! Seasons that a series of dates shows, without anybody having named them.

use super::{Dataset, FitOptions, sample_rows, seasons};
use crate::data::Classes;
#[cfg(feature = "tables")]
use crate::data::days_of;
use crate::error::Result;
use crate::kernels::repeats;
use crate::linalg::column;

/// Lengths that are tried.
const LENGTHS: [&str; 3] = ["1d", "1w", "1y"];

/// Rows that are looked at.
const ROWS: usize = 20_000;

/// Returns none: without tables no input is a date.
#[cfg(not(feature = "tables"))]
fn days_of(_: &str) -> Option<f64> {
    None
}

/// Returns the seasons that the targets show over the only input, if that holds dates and no seasons were named.
///
/// # Errors
/// What reading the rows gives.
pub(super) fn found(dataset: &Dataset, options: &FitOptions) -> Result<Vec<String>> {
    // labels of several classes are not numbers
    let several = dataset.classes.as_ref().map(Classes::count).is_some_and(|count| count > 2);
    let of_dates = seasons::dates(dataset) == [0] && dataset.source.inputs() == 1;
    let open = options.seasons.is_empty() && dataset.scaler.log_unit(0).is_none();
    if several || !of_dates || !open {
        return Ok(Vec::new());
    }
    let rows = sample_rows(&*dataset.source, ROWS, options.seed)?;
    let days: Vec<f64> =
        column(rows.x.as_ref(), 0).iter().map(|x| x * dataset.scaler.x_scale[0]).collect();
    let shown = |length: &&str| {
        days_of(length).is_some_and(|period| repeats(&days, rows.y.as_ref(), period))
    };
    Ok(LENGTHS.into_iter().filter(shown).map(str::to_owned).collect())
}

/// Says that seasons were found.
pub(super) fn remark(found: &[String]) -> String {
    format!(
        "the rows repeat after {}, as `--season` would say (in Python `season`; \"none\" leaves that out)",
        found.join(" and ")
    )
}

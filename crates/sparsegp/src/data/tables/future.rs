//! Times after the last of a series: what a forecast is made for.

use super::lengths::{Length, usual};
use crate::error::{Error, Result};

/// Times of a forecast, at most.
const MOST: usize = 1_000_000;

/// Returns the times of a forecast: those after the last of `times`, a `step` apart, until the `horizon`.
///
/// `times` are in any order; where they are dates (`dates`), they are days since 1970-01-01 ([`days`](super::days)). A horizon is a number of steps, such
/// as `24`, or of dates a length of time: `90min`, `36h`, `10d`, `52w`, `6mo`, `4q`, `1y`. A step is a number in the units of the times, or
/// of dates such a length, and by default the median step; of dates that follow each other by calendar months, quarters or years it is these.
///
/// # Errors
/// [`Error::Invalid`] for a length that cannot be read or is not positive, a horizon shorter than a step, more than a million times, fewer
/// than two different times where no step is given, and times that are not finite.
///
/// ```
/// use sparsegp::data::{date_text, days, future};
/// let months: Vec<f64> = ["2024-01-31", "2024-02-29", "2024-03-31"].iter().filter_map(|d| days(d)).collect();
/// let next: Vec<String> = future(&months, true, "1q", None)?.into_iter().map(date_text).collect();
/// assert_eq!(next, ["2024-04-30", "2024-05-31", "2024-06-30"]);
/// assert_eq!(future(&[0.5, 1.0, 1.5], false, "3", None)?, [2.0, 2.5, 3.0]);
/// # Ok::<(), sparsegp::Error>(())
/// ```
pub fn future(times: &[f64], dates: bool, horizon: &str, step: Option<&str>) -> Result<Vec<f64>> {
    let invalid = |reason: String| Err(Error::Invalid(reason));
    let example = if dates { "`24` steps, `10d`, `52w`, `6mo` or `1y`" } else { "`24` steps" };
    let mut known = times.to_vec();
    known.sort_unstable_by(f64::total_cmp);
    known.dedup();
    let Some(&last) = known.last().filter(|t| t.is_finite() && known[0].is_finite()) else {
        return invalid(
            "a forecast begins after known times: there are none, or not all are numbers".into(),
        );
    };
    let length = |text: &str| if dates { Length::with_unit(text) } else { None };
    let step = match step {
        Some(text) => {
            let number = || text.trim().parse().ok().map(Length::Even);
            match length(text).or_else(number).filter(|own| own.is_positive()) {
                Some(own) => own,
                None => {
                    let days =
                        if dates { ", or of dates a length such as `1d` or `1mo`" } else { "" };
                    return invalid(format!(
                        "step `{text}`: must be a positive number in the units of the times{days}"
                    ));
                }
            }
        }
        None => match usual(&known, dates) {
            Some(own) => own,
            None => {
                return invalid(
                    "a single time does not show how far apart those of a forecast are: give a step".into(),
                );
            }
        },
    };
    let until = length(horizon);
    let count = horizon.trim().parse::<usize>().ok().filter(|count| *count > 0);
    let end = match (until.filter(|own| own.is_positive()), count) {
        (Some(own), _) => own.after(last, 1),
        (None, Some(count)) if count <= MOST => step.after(last, count),
        (None, Some(_)) => None,
        (None, None) => return invalid(format!("horizon `{horizon}`: must be such as {example}")),
    };
    let count = count.filter(|_| until.is_none()).unwrap_or(MOST + 1);
    let mut found = Vec::new();
    // rounding may not take the last one
    let slack = 1e-9 * (end.unwrap_or(last) - last);
    for times in 1..=count {
        match step.after(last, times).zip(end) {
            Some((next, end)) if next <= end + slack && found.len() < MOST => found.push(next),
            Some((next, end)) if next > end + slack => break,
            _ => {
                return invalid(format!(
                    "horizon `{horizon}`: more than a million steps, or beyond all dates"
                ));
            }
        }
    }
    if found.is_empty() {
        return invalid(format!("horizon `{horizon}` is shorter than a step"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::{date_text, days};
    use super::*;

    fn of_dates(known: &[&str], horizon: &str, step: Option<&str>) -> Result<Vec<String>> {
        let known: Vec<f64> = known.iter().map(|d| days(d).expect("a date")).collect();
        Ok(future(&known, true, horizon, step)?.into_iter().map(date_text).collect())
    }

    #[test]
    fn steps_are_the_usual_ones_whatever_the_order() {
        assert_eq!(future(&[7.0, 1.0, 3.0, 5.0, 5.0], false, "2", None).unwrap(), [9.0, 11.0]);
        assert_eq!(future(&[-1.0], false, "3", Some("0.5")).unwrap(), [-0.5, 0.0, 0.5]);
        let weeks = ["2023-12-18", "2023-12-25", "2024-01-01", "2024-01-08"];
        assert_eq!(of_dates(&weeks, "2", None).unwrap(), ["2024-01-15", "2024-01-22"]);
        assert_eq!(of_dates(&weeks, "15d", None).unwrap(), ["2024-01-15", "2024-01-22"]);
        let hours = ["2024-02-28 22:00", "2024-02-28 23:00", "2024-02-29 00:00"];
        let next = of_dates(&hours, "90min", Some("30min")).unwrap();
        assert_eq!(next, ["2024-02-29T00:30:00Z", "2024-02-29T01:00:00Z", "2024-02-29T01:30:00Z"]);
    }

    #[test]
    fn months_quarters_and_years_are_of_the_calendar() {
        let months = ["2023-10-01", "2023-11-01", "2023-12-01", "2024-01-01"];
        assert_eq!(
            of_dates(&months, "3mo", None).unwrap(),
            ["2024-02-01", "2024-03-01", "2024-04-01"]
        );
        // of a month in the middle
        let gap = [
            "2023-05-31",
            "2023-06-30",
            "2023-07-31",
            "2023-08-31",
            "2023-09-30",
            "2023-11-30",
            "2023-12-31",
        ];
        assert_eq!(of_dates(&gap, "2", None).unwrap(), ["2024-01-31", "2024-02-29"]);
        let years = ["2019-07-01", "2020-07-01", "2021-07-01"];
        assert_eq!(of_dates(&years, "2y", None).unwrap(), ["2022-07-01", "2023-07-01"]);
        let quarters = ["2023-03-31", "2023-06-30", "2023-09-30", "2023-12-31"];
        assert_eq!(of_dates(&quarters, "1y", None).unwrap()[3], "2024-12-31");
        assert_eq!(
            of_dates(&["2024-01-30"], "2", Some("1mo")).unwrap(),
            ["2024-02-29", "2024-03-30"]
        );
    }

    #[test]
    fn invalid_horizons_steps_and_times_are_refused_by_name() {
        let text = |own: Result<Vec<f64>>| own.unwrap_err().to_string();
        assert!(text(future(&[], false, "3", None)).contains("there are none"));
        assert!(text(future(&[1.0, f64::NAN], false, "3", None)).contains("not all are numbers"));
        assert!(text(future(&[1.0, 1.0], false, "3", None)).contains("give a step"));
        assert!(text(future(&[1.0, 2.0], false, "2w", None)).contains("horizon `2w`"));
        assert!(text(future(&[1.0, 2.0], false, "0", None)).contains("horizon `0`"));
        assert!(text(future(&[1.0, 2.0], false, "3", Some("-1"))).contains("step `-1`"));
        assert!(text(future(&[1.0, 2.0], false, "2000000", None)).contains("a million"));
        assert!(text(future(&[1.0, 8.0], true, "3d", None)).contains("shorter than a step"));
        assert!(text(future(&[1.0, 2.0], true, "1000y", Some("1s"))).contains("a million"));
        assert!(text(future(&[1.0, 2.0], true, "3 moons", None)).contains("`52w`"));
    }
}

//! Lengths of time such as `2w` or `6mo`, and how far the times of a series are apart.

use chrono::{DateTime, Datelike, Days, Months, NaiveDateTime};

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// A length of time, or a number of a series' own units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Length {
    /// Of days or of the column's units.
    Even(f64),
    /// Calendar months.
    Months(u32),
}

/// Units of time with their length.
const UNITS: [(&str, Length); 8] = [
    ("s", Length::Even(1.0 / DAY)),
    ("min", Length::Even(1.0 / 1440.0)),
    ("h", Length::Even(1.0 / 24.0)),
    ("d", Length::Even(1.0)),
    ("w", Length::Even(7.0)),
    ("mo", Length::Months(1)),
    ("q", Length::Months(3)),
    ("y", Length::Months(12)),
];

impl Length {
    /// Reads `2w`, `1.5 h` or `6mo`; `None` without a unit or a number.
    pub(super) fn with_unit(text: &str) -> Option<Self> {
        let text = text.trim();
        let at = text.find(|c: char| c.is_ascii_alphabetic())?;
        let number: f64 = text[..at].trim().parse().ok()?;
        let unit = text[at..].trim();
        let (_, own) = UNITS.iter().find(|(name, _)| *name == unit)?;
        match *own {
            Self::Even(days) => Some(Self::Even(number * days)).filter(|_| number.is_finite()),
            Self::Months(months) => {
                let all = number * f64::from(months);
                (all.fract() == 0.0 && (0.0..=12_000.0).contains(&all))
                    .then_some(Self::Months(all as u32))
            }
        }
    }

    pub(super) fn is_positive(self) -> bool {
        match self {
            Self::Even(step) => step > 0.0 && step.is_finite(),
            Self::Months(months) => months > 0,
        }
    }

    /// Returns the time after so many such lengths.
    pub(super) fn after(self, start: f64, times: usize) -> Option<f64> {
        match self {
            Self::Even(step) => Some(start + times as f64 * step).filter(|t| t.is_finite()),
            Self::Months(months) => {
                months_after(start, i64::from(months).checked_mul(times as i64)?)
            }
        }
    }

    /// Returns the time before so many such lengths.
    pub(super) fn before(self, end: f64, times: usize) -> Option<f64> {
        match self {
            Self::Even(step) => Some(end - times as f64 * step).filter(|t| t.is_finite()),
            Self::Months(months) => {
                months_after(end, -i64::from(months).checked_mul(times as i64)?)
            }
        }
    }

    /// Returns its size in units of the times, with months of average length.
    pub(super) fn size(self) -> f64 {
        match self {
            Self::Even(step) => step,
            Self::Months(months) => f64::from(months) / 12.0 * YEAR,
        }
    }
}

/// Days of an average year, in the calendar of Gregory XIII.
const YEAR: f64 = 365.2425;

/// Returns the days of a length of time such as `1y`, `3mo`, `1w` or `12h`, with years and months of average length; `None` for another
/// text.
pub(crate) fn days_of(text: &str) -> Option<f64> {
    Length::with_unit(text).map(Length::size)
}

fn moment(days: f64) -> Option<NaiveDateTime> {
    let micros = (days * DAY * 1e6).round();
    (micros.abs() < 9e18)
        .then(|| DateTime::from_timestamp_micros(micros as i64))
        .flatten()
        .map(|own| own.naive_utc())
}

fn is_end_of_month(own: NaiveDateTime) -> bool {
    own.date().checked_add_days(Days::new(1)).is_some_and(|next| next.day() == 1)
}

/// Returns the days of the moment so many calendar months later (earlier, if negative), on the same
/// day of the month, or the last where there is none; the last days of months are followed by last
/// days.
fn months_after(days: f64, months: i64) -> Option<f64> {
    let own = moment(days)?;
    let count = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
    let mut found = match months < 0 {
        true => own.checked_sub_months(count)?,
        false => own.checked_add_months(count)?,
    };
    if is_end_of_month(own) {
        while !is_end_of_month(found) {
            found = found.checked_add_days(Days::new(1))?;
        }
    }
    Some(found.and_utc().timestamp_micros() as f64 / (DAY * 1e6))
}

/// Returns the usual step between times in rising order: the median, or of dates months where they
/// follow each other so.
pub(super) fn usual(times: &[f64], dates: bool) -> Option<Length> {
    let mut steps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if dates {
        let months = [1_u32, 3, 12].into_iter().find(|months| {
            let follow = |pair: &[f64]| months_after(pair[0], i64::from(*months)) == Some(pair[1]);
            let count = times.windows(2).filter(|pair| follow(pair)).count();
            // a month may be missing here and there
            count * 5 >= steps.len() * 4
        });
        if let Some(months) = months.filter(|_| !steps.is_empty()) {
            return Some(Length::Months(months));
        }
    }
    steps.sort_unstable_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied().map(Length::Even)
}

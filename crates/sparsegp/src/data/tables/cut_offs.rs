//! Divisions of a series at several times: what is learnt from ends at a cut-off, what is predicted begins after it.

use super::date_text;
use super::lengths::{Length, usual};
use crate::error::{Error, Result};

/// Cut-offs, at most.
const MOST: usize = 10_000;

/// Says where a series is cut.
#[derive(Clone, Copy, Debug)]
pub struct CutOffOptions<'a> {
    /// How far is predicted: a number of steps, or of dates a length of time such as `26w`.
    pub horizon: &'a str,
    /// Number of cut-offs.
    pub count: usize,
    /// How far the cut-offs are apart, as the horizon is given; by default the horizon, so that no row is predicted twice.
    pub every: Option<&'a str>,
    /// Number of parts into which the horizon is divided, by which rows are grouped.
    pub parts: usize,
}

/// A time at which a series is cut.
#[derive(Clone, Debug, PartialEq)]
pub struct CutOff {
    /// The last time that is learnt from.
    pub time: f64,
    /// Where the parts of the horizon end, in rising order.
    pub ends: Vec<f64>,
    /// Rows up to the cut-off, in their order.
    pub train: Vec<usize>,
    /// Rows after it within the horizon, in their order.
    pub test: Vec<usize>,
    /// The part of the horizon that every one of these is in, from 0.
    pub part: Vec<usize>,
}

/// The cut-offs of a series, the earliest first.
#[derive(Clone, Debug, PartialEq)]
pub struct CutOffs {
    /// The cut-offs.
    pub cuts: Vec<CutOff>,
    /// Where the parts of the horizon end, in words: `13w`, `26w`.
    pub parts: Vec<String>,
    /// Whether times are days since 1970-01-01.
    dates: bool,
    /// The usual distance of the times.
    step: f64,
}

fn invalid<T>(reason: String) -> Result<T> {
    Err(Error::Invalid(reason))
}

/// A length as it was given: of time in a unit, or of steps.
struct Reach {
    length: Length,
    number: f64,
    unit: String,
}

impl Reach {
    fn read(name: &str, text: &str, dates: bool, step: Length) -> Result<Self> {
        let length = if dates { Length::with_unit(text) } else { None };
        if let Some(length) = length.filter(|own| own.is_positive()) {
            let text = text.trim();
            let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
            let number = text[..at].trim().parse().unwrap_or(1.0);
            return Ok(Self { length, number, unit: text[at..].trim().into() });
        }
        let steps = text.trim().parse::<u32>().ok().filter(|steps| *steps > 0);
        let length = steps.and_then(|steps| match step {
            Length::Even(own) => Some(Length::Even(own * f64::from(steps))),
            Length::Months(months) => months.checked_mul(steps).map(Length::Months),
        });
        match (length, steps) {
            (Some(length), Some(steps)) => {
                Ok(Self { length, number: f64::from(steps), unit: " steps".into() })
            }
            _ => invalid(format!(
                "{name} `{text}`: must be such as {}",
                if dates { "`24` steps, `10d`, `52w`, `6mo` or `1y`" } else { "`24` steps" }
            )),
        }
    }

    fn is_of_steps(&self) -> bool {
        self.unit.starts_with(' ')
    }

    /// Returns where so many parts end, as shares of the whole; fewer where there are fewer steps.
    fn shares(&self, parts: usize) -> Vec<f64> {
        let of_steps = self.is_of_steps();
        let share = |i: usize| match i as f64 / parts as f64 {
            // between two steps there is nothing
            share if of_steps => (self.number * share).round() / self.number,
            share => share,
        };
        let mut all: Vec<f64> = (1..=parts).map(share).filter(|share| *share > 0.0).collect();
        all.dedup();
        all
    }

    /// Returns the end of a part in words.
    fn label(&self, share: f64) -> String {
        let number = share * self.number;
        let (number, unit) = match (self.unit.as_str(), number.fract() == 0.0) {
            ("y", false) => (12.0 * number, "mo"),
            ("q", false) => (3.0 * number, "mo"),
            (unit, _) => (number, unit),
        };
        let text = format!("{number:.2}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        match (text, unit) {
            ("1", " steps") => "1 step".into(),
            _ => format!("{text}{unit}"),
        }
    }

    /// Returns the time after a share of it.
    fn after(&self, start: f64, end: f64, share: f64) -> Option<f64> {
        if let Length::Months(months) = self.length {
            let own = f64::from(months) * share;
            if own.fract() == 0.0 {
                return Length::Months(own as u32).after(start, 1);
            }
        }
        Some(start + share * (end - start))
    }
}

/// The times of a series.
struct Line<'a> {
    times: &'a [f64],
    /// Those that are finite in rising order, each once.
    known: Vec<f64>,
    dates: bool,
    /// Times that are nearer than this are the same but for rounding.
    slack: f64,
}

impl<'a> Line<'a> {
    fn new(times: &'a [f64], dates: bool) -> Self {
        let mut known: Vec<f64> = times.iter().copied().filter(|time| time.is_finite()).collect();
        known.sort_unstable_by(f64::total_cmp);
        known.dedup();
        let size = known.iter().fold(0.0_f64, |most, own| most.max(own.abs()));
        Self { times, known, dates, slack: 8.0 * f64::EPSILON * size }
    }

    fn text(&self, time: f64) -> String {
        if self.dates { date_text(time) } else { time.to_string() }
    }

    /// Returns the nearest time of the table where there is one so near.
    fn near(&self, time: f64) -> f64 {
        let at = self.known.partition_point(|own| *own < time);
        let both = at.checked_sub(1).into_iter().chain([at]).filter_map(|i| self.known.get(i));
        let nearest = both.copied().min_by(|a, b| (a - time).abs().total_cmp(&(b - time).abs()));
        nearest.filter(|own| (own - time).abs() <= self.slack).unwrap_or(time)
    }

    /// Returns a cut-off at such a time, if two different times are before it.
    fn place(&self, time: Option<f64>) -> Option<f64> {
        let own = self.near(time?);
        (self.known.partition_point(|t| *t <= own) > 1).then_some(own)
    }

    /// Divides the rows at a time.
    fn cut(&self, time: f64, horizon: &Reach, shares: &[f64]) -> CutOff {
        let last = self.known.last().copied().unwrap_or(time);
        let end = horizon.length.after(time, 1).map_or(last, |own| self.near(own));
        let ends = shares.iter().map(|share| match *share {
            1.0 => end,
            share => horizon.after(time, end, share).map_or(end, |own| self.near(own)),
        });
        let ends: Vec<f64> = ends.collect();
        let mut own = CutOff { time, ends, train: Vec::new(), test: Vec::new(), part: Vec::new() };
        for (row, t) in self.times.iter().copied().enumerate() {
            if t <= time {
                own.train.push(row);
            } else if t <= end {
                own.test.push(row);
                own.part.push(own.ends.partition_point(|end| *end < t));
            }
        }
        own
    }
}

/// Returns divisions of a series by time (a rolling origin): at every cut-off, rows up to it, and rows after it within a horizon.
///
/// `times` are in any order; where they are dates (`dates`), they are days since 1970-01-01 ([`days`](super::days)). Rows whose time is
/// not finite are in no division. The last cut-off is a horizon before the last time, the others are `every` such length before
/// it. Of dates that follow each other by calendar months these are counted, else steps are the median distance of the times.
///
/// # Errors
/// [`Error::Invalid`] that names `horizon`, `every` or `cutoffs`: for a length that cannot be read, a horizon that is longer than what is
/// known, more cut-offs than have two different times before them, and a horizon without rows.
///
/// ```
/// use sparsegp::data::{CutOffOptions, cut_offs};
/// let options = CutOffOptions { horizon: "2", count: 2, every: None, parts: 2 };
/// let found = cut_offs(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], false, &options)?;
/// assert_eq!((found.cuts[0].time, found.cuts[1].time), (1.0, 3.0));
/// assert_eq!((&found.cuts[0].train[..], &found.cuts[0].test[..]), (&[0, 1][..], &[2, 3][..]));
/// assert_eq!(found.parts, ["1 step", "2 steps"]);
/// # Ok::<(), sparsegp::Error>(())
/// ```
pub fn cut_offs(times: &[f64], dates: bool, options: &CutOffOptions<'_>) -> Result<CutOffs> {
    let mut line = Line::new(times, dates);
    let (Some(step), Some(&last)) = (usual(&line.known, dates), line.known.last()) else {
        return invalid(
            "a series is cut between its times: there are fewer than two of them".into(),
        );
    };
    let horizon = Reach::read("horizon", options.horizon, dates, step)?;
    let every = match options.every {
        Some(text) => Reach::read("every", text, dates, step)?.length,
        None => horizon.length,
    };
    for (name, number) in [("cutoffs", options.count), ("parts", options.parts)] {
        if !(1..=MOST).contains(&number) {
            return invalid(format!("{name} {number}: must be from 1 to {MOST}"));
        }
    }
    // of steps that differ by rounding (months in decimal years) so many are meant, not their length
    line.slack += match horizon.is_of_steps() {
        true => 0.25 * step.size(),
        false => 1e-9 * horizon.length.size(),
    };
    let Some(latest) = line.place(horizon.length.before(last, 1)) else {
        return invalid(format!(
            "horizon `{}`: the times are from {} to {}, and fewer than two of them are before the last horizon: choose a \
             shorter one",
            options.horizon,
            line.text(line.known[0]),
            line.text(last)
        ));
    };
    let mut all = vec![latest];
    while all.len() < options.count {
        let earlier = match (every, all.last()) {
            (Length::Even(_), Some(last)) => every.before(*last, 1),
            // of months all are counted from one day
            _ => every.before(latest, all.len()),
        };
        match line.place(earlier) {
            Some(time) => all.push(time),
            None => {
                return invalid(format!(
                    "cutoffs {}: fewer than two times are before the first of them; with this horizon and distance at most {} fit: \
                     choose fewer, a shorter horizon, or a smaller distance (every)",
                    options.count,
                    all.len()
                ));
            }
        }
    }
    all.reverse();
    let shares = horizon.shares(options.parts);
    let cuts: Vec<CutOff> = all.into_iter().map(|time| line.cut(time, &horizon, &shares)).collect();
    if let Some(empty) = cuts.iter().find(|own| own.test.is_empty()) {
        return invalid(format!(
            "no rows are after the cut-off {} within the horizon `{}`: choose a longer horizon, or another distance (every)",
            line.text(empty.time),
            options.horizon
        ));
    }
    let parts = shares.iter().map(|share| horizon.label(*share)).collect();
    Ok(CutOffs { cuts, parts, dates, step: step.size() })
}

impl CutOffs {
    /// Returns what a simple rule predicts for the test rows of a cut-off: the last value up to it, or with a `season` (`1y`; of
    /// numbers a length in their units) the value at the nearest time one or more whole seasons before.
    ///
    /// `times` are those that were cut, `y` the targets, of which those that are not finite do not count. The value of several rows at
    /// one time is their mean. NaN where nothing is known, as a season before the first row, or in a gap.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a season that cannot be read; [`Error::Shape`] for another number of targets than times.
    pub fn simple(
        &self,
        cut: &CutOff,
        times: &[f64],
        y: &[f64],
        season: Option<&str>,
    ) -> Result<Vec<f64>> {
        if times.len() != y.len() {
            return Err(Error::Shape {
                what: "targets of a series".into(),
                expected: times.len().to_string(),
                found: y.len().to_string(),
            });
        }
        let known = values(cut, times, y);
        let season = match season {
            None => return Ok(vec![known.last().map_or(f64::NAN, |last| last.1); cut.test.len()]),
            Some(text) => {
                let number = || text.trim().parse().ok().map(Length::Even);
                let found = if self.dates { Length::with_unit(text) } else { number() };
                match found.filter(|own| own.is_positive()) {
                    Some(length) => length,
                    None => return invalid(format!("season `{text}`: must be a positive length")),
                }
            }
        };
        let far = self.step.max(season.size() / 20.0);
        // a year is not a whole number of weeks: half a step makes no difference
        let latest = cut.time + 0.5 * self.step;
        let one = |time: f64| {
            let mut back = (((time - latest) / season.size()).floor() as usize).max(1);
            let wanted = loop {
                match season.before(time, back) {
                    Some(own) if own <= latest => break own,
                    Some(_) => back += 1,
                    None => return f64::NAN,
                }
            };
            let found = nearest(&known, wanted).filter(|own| (own.0 - wanted).abs() <= far);
            found.map_or(f64::NAN, |own| own.1)
        };
        Ok(cut.test.iter().map(|row| one(times[*row])).collect())
    }
}

/// Returns the times up to a cut-off with the mean of their targets, in rising order.
fn values(cut: &CutOff, times: &[f64], y: &[f64]) -> Vec<(f64, f64)> {
    let rows = cut.train.iter().filter(|row| y[**row].is_finite());
    let mut pairs: Vec<(f64, f64)> = rows.map(|row| (times[*row], y[*row])).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let same = pairs.chunk_by(|a, b| a.0 == b.0);
    same.map(|own| (own[0].0, own.iter().map(|pair| pair.1).sum::<f64>() / own.len() as f64))
        .collect()
}

/// Returns the pair whose time is nearest, the earlier one of two.
fn nearest(known: &[(f64, f64)], time: f64) -> Option<(f64, f64)> {
    let at = known.partition_point(|own| own.0 < time);
    let (left, right) = (at.checked_sub(1).map(|i| known[i]), known.get(at).copied());
    match (left, right) {
        (Some(a), Some(b)) => Some(if time - a.0 <= b.0 - time { a } else { b }),
        (own, None) | (None, own) => own,
    }
}

#[cfg(test)]
#[path = "cut_offs_tests.rs"]
mod tests;

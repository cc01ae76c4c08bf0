//! Inputs that are hardly meant: the target again, numbers of the rows, and dates written as numbers.

use crate::data::moments::centred;
use crate::data::{Encoding, InMemory, InputColumn};
use crate::error::{Result, in_shell};
use crate::fit::{Dataset, FitOptions};
use crate::linalg::{column, sum_of_products};
use std::collections::HashSet;

/// Fewest rows from which anything is said.
const FEWEST: usize = 20;
/// Correlation with a target from which an input gives it away.
const GIVEN_AWAY: f64 = 0.9999;
/// What a correlation of 1 may miss by rounding.
const ROUNDING: f64 = 1e-9;
/// Part of the rows, those farthest from the median of the input, without which the correlation must be as high.
const FAR: f64 = 0.02;
/// Inputs that are named at most.
const NAMED: usize = 3;
/// What a whole number on the scale of a model may miss by rounding.
const WHOLE: f64 = 1e-3;
/// How many whole numbers there may be from the least to the largest, for each row: some rows are left out or put aside.
const SPARSE: u64 = 2;
/// Different numbers from which on all looking like dates is not chance: of others one in thirty does.
const FEWEST_DATES: usize = 8;
/// Rows that are read at once.
const CHUNK: usize = 1 << 13;

/// Returns what to say of inputs that are dates written as numbers, that give a target away, and that number the rows. But for the
/// first, an only input is what the person asked for: a line, or a time.
///
/// # Errors
/// What reading the rows gives.
pub(super) fn remarks(
    dataset: &Dataset,
    options: &FitOptions,
    sample: &InMemory,
) -> Result<Vec<String>> {
    let inputs = Inputs::of(dataset, sample);
    if sample.x.nrows() < FEWEST {
        return Ok(Vec::new());
    }
    let mut found = inputs.written_dates(sample);
    if !inputs.are_several() {
        return Ok(found);
    }
    found.extend(inputs.giving_away(sample));
    for q in inputs.numbering(options)? {
        let name = inputs.column(q);
        found.push(format!(
            "input column `{name}` numbers the rows: no whole number comes twice in it, and few between its least and its \
             largest are missing. Leave it out (`--ignore {}` on the command line) unless it is a time or an order",
            in_shell(name)
        ));
    }
    Ok(found)
}

/// The inputs that vary, with the columns of the table that they come from.
struct Inputs<'a> {
    dataset: &'a Dataset,
    columns: Vec<&'a InputColumn>,
    varying: Vec<usize>,
}

impl<'a> Inputs<'a> {
    fn of(dataset: &'a Dataset, sample: &InMemory) -> Self {
        let each = |own: &'a InputColumn| std::iter::repeat_n(own, own.input_names().len());
        let columns = dataset.columns.iter().flat_map(each).collect();
        let x = sample.x.as_ref();
        let varies = |q: &usize| column(x, *q).iter().any(|v| *v != x[(0, *q)]);
        let known = sample.x.ncols().min(dataset.input_names.len());
        Self { dataset, columns, varying: (0..known).filter(varies).collect() }
    }

    /// Returns the name of the column of the table that an input comes from.
    fn column(&self, q: usize) -> &'a str {
        self.columns.get(q).map_or(&self.dataset.input_names[q], |own| &own.name)
    }

    /// Returns whether more than one column of the table varies.
    fn are_several(&self) -> bool {
        self.varying.iter().any(|q| self.column(*q) != self.column(self.varying[0]))
    }

    /// Says which inputs are dates written as the numbers 20241231 or 202412.
    fn written_dates(&self, sample: &InMemory) -> Vec<String> {
        let mut found = Vec::new();
        for &q in &self.varying {
            let plain = self.columns.get(q).is_none_or(|own| own.encoding == Encoding::Number);
            let scaler = &self.dataset.scaler;
            let value = |z: &f64| scaler.x_mean[q] + scaler.x_scale[q] * z;
            let all = column(sample.x.as_ref(), q).iter().map(value).collect::<Vec<f64>>();
            let Some(format) = written_format(&all).filter(|_| plain) else { continue };
            let (name, shown) = (self.column(q), all[0].round());
            found.push(format!(
                "input column `{name}` looks like dates written as numbers ({shown}), between which distances are not \
                 lengths of time: from the last day of a year to the next is {}. Read it as dates (`--date-format {}` on the \
                 command line, `pandas.to_datetime(…, format=\"{format}\")` in Python)",
                if format == "%Y%m%d" { 8870 } else { 89 },
                in_shell(&format!("{name}={format}"))
            ));
        }
        found.truncate(NAMED);
        found
    }

    /// Says which inputs give a target away.
    fn giving_away(&self, sample: &InMemory) -> Vec<String> {
        let names = &self.dataset.target_names;
        // a method may train without the targets that are constants
        let all = sample.y.ncols() == names.len();
        let there = (0..names.len()).filter(|p| all || !self.dataset.scaler.is_constant(*p));
        let mut found = Vec::new();
        for (at, p) in there.enumerate().take(sample.y.ncols()) {
            let y = column(sample.y.as_ref(), at);
            for &q in &self.varying {
                let Some(how) = given_away(column(sample.x.as_ref(), q), y) else { continue };
                let (name, target) = (self.column(q), &names[p]);
                found.push(format!(
                    "input column `{name}` gives the target `{target}` away (their correlation is {how:.5}): if it is the \
                     target again, or computed from it, leave it out (`--ignore {}` on the command line), as rows to \
                     predict will not have it",
                    in_shell(name)
                ));
            }
        }
        found.truncate(NAMED);
        found
    }

    /// Returns the inputs in which every row has another whole number, close to each other: in the order of the rows, or the only
    /// one in another order, as several are a design. A table that is not in memory is not looked through.
    fn numbering(&self, options: &FitOptions) -> Result<Vec<usize>> {
        let source = &*self.dataset.source;
        if !source.is_resident() || source.sharded().is_some() {
            return Ok(Vec::new());
        }
        let possible = self.varying.iter().filter(|q| self.may_number(**q, options));
        let mut all: Vec<Numbers> = possible.map(|q| Numbers::new(*q)).collect();
        let each = |all: &mut [Numbers], add: &dyn Fn(&mut Numbers, i64)| {
            source.for_each_chunk(CHUNK, &mut |rows| {
                for own in all.iter_mut() {
                    let (q, scaler) = (own.input, &self.dataset.scaler);
                    for z in column(rows.x, q) {
                        let value = scaler.x_mean[q] + scaler.x_scale[q] * z;
                        own.whole &= (value - value.round()).abs() < WHOLE;
                        if !own.whole {
                            break;
                        }
                        add(own, value.round() as i64);
                    }
                }
                Ok(())
            })
        };
        each(&mut all, &Numbers::widen)?;
        let rows = source.rows() as u64;
        all.retain(|own| own.whole && (rows..=SPARSE * rows).contains(&own.span()));
        if all.is_empty() {
            return Ok(Vec::new());
        }
        all.iter_mut().for_each(|own| own.seen = vec![false; own.span() as usize]);
        each(&mut all, &Numbers::mark)?;
        all.retain(|own| !own.repeated);
        let shuffled = all.iter().filter(|own| !own.in_order()).count();
        Ok(all.iter().filter(|own| own.in_order() || shuffled == 1).map(|own| own.input).collect())
    }

    /// Returns whether an input is a number as it stands, and not a time that has seasons.
    fn may_number(&self, q: usize, options: &FitOptions) -> bool {
        let plain = self.columns.get(q).is_none_or(|own| own.encoding == Encoding::Number);
        let of = |season: &String| {
            season.rsplit_once('=').is_some_and(|(own, _)| own.trim() == self.column(q))
        };
        plain && self.dataset.scaler.log_unit(q).is_none() && !options.seasons.iter().any(of)
    }
}

/// Returns the format of dates that were written as numbers, if all of these look like such.
fn written_format(values: &[f64]) -> Option<&'static str> {
    let date = |value: f64| {
        let (whole, near) = (value.round(), (value - value.round()).abs() < WHOLE);
        let number = if near && (0.0..1e9).contains(&whole) { whole as u32 } else { 0 };
        let (format, year, month, day) = match number {
            19_000_000..22_000_000 => ("%Y%m%d", number / 10_000, number / 100 % 100, number % 100),
            190_000..220_000 => ("%Y%m", number / 100, number % 100, 1),
            _ => return None,
        };
        let valid = (1..=12).contains(&month) && (1..=31).contains(&day);
        valid.then_some((format, year, month, day))
    };
    let all: Vec<_> = values.iter().map(|value| date(*value)).collect::<Option<_>>()?;
    let format = all.first()?.0;
    let different: HashSet<_> = all.iter().collect();
    let months: HashSet<_> = all.iter().map(|own| (own.1, own.2)).collect();
    let same = all.iter().all(|own| own.0 == format);
    (same && different.len() >= FEWEST_DATES && months.len() > 1).then_some(format)
}

/// Returns the correlation of an input with a target that it gives away; values far away do not decide it.
fn given_away(x: &[f64], y: &[f64]) -> Option<f64> {
    let known = x.iter().zip(y).filter(|(_, y)| !y.is_nan());
    let (x, y): (Vec<f64>, Vec<f64>) = known.map(|(x, y)| (*x, *y)).unzip();
    if x.len() < FEWEST {
        return None;
    }
    let correlation = |x: &[f64], y: &[f64]| sum_of_products(&centred(x), &centred(y));
    let all = correlation(&x, &y);
    // a constant has none
    if all.is_nan() || all.abs() <= GIVEN_AWAY {
        return None;
    }
    if all.abs() > 1.0 - ROUNDING {
        return Some(all);
    }
    let middle = |values: &[f64], part: f64| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted[((sorted.len() - 1) as f64 * part) as usize]
    };
    let median = middle(&x, 0.5);
    let apart: Vec<f64> = x.iter().map(|v| (v - median).abs()).collect();
    let most = middle(&apart, 1.0 - FAR);
    let near = x.iter().zip(&y).zip(&apart).filter(|(_, apart)| **apart <= most);
    let (x, y): (Vec<f64>, Vec<f64>) = near.map(|((x, y), _)| (*x, *y)).unzip();
    (correlation(&x, &y).abs() > GIVEN_AWAY).then_some(all)
}

/// The whole numbers of an input.
struct Numbers {
    input: usize,
    /// Whether all so far are whole.
    whole: bool,
    least: i64,
    most: i64,
    last: Option<i64>,
    rising: bool,
    falling: bool,
    /// Which from the least to the largest have come, and whether one has come twice.
    seen: Vec<bool>,
    repeated: bool,
}

impl Numbers {
    fn new(input: usize) -> Self {
        Self {
            input,
            whole: true,
            least: i64::MAX,
            most: i64::MIN,
            last: None,
            rising: true,
            falling: true,
            seen: Vec::new(),
            repeated: false,
        }
    }

    /// Takes a number in.
    fn widen(&mut self, value: i64) {
        if let Some(last) = self.last {
            self.rising &= value > last;
            self.falling &= value < last;
        }
        self.last = Some(value);
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }

    /// Returns how many whole numbers there are from the least to the largest.
    fn span(&self) -> u64 {
        self.most.abs_diff(self.least).saturating_add(1)
    }

    /// Notes that a number has come.
    fn mark(&mut self, value: i64) {
        let own = &mut self.seen[value.abs_diff(self.least) as usize];
        self.repeated |= std::mem::replace(own, true);
    }

    fn in_order(&self) -> bool {
        self.rising || self.falling
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that are as good as random, in (−1, 1).
    fn values(n: usize, step: f64) -> Vec<f64> {
        (0..n).map(|i| (step * (i * i) as f64 + 0.3 * i as f64).sin()).collect()
    }

    #[test]
    fn copies_and_images_give_a_target_away() {
        let (y, noise) = (values(50, 1.7), values(50, 2.9));
        let mixed = |part: f64| -> Vec<f64> {
            y.iter().zip(&noise).map(|(y, e)| 32.0 - 1.8 * y + part * e).collect()
        };
        let how = given_away(&mixed(0.0), &y).expect("an image");
        assert!((how + 1.0).abs() < 1e-12);
        assert!(given_away(&mixed(0.01), &y).is_some());
        assert!(given_away(&mixed(0.1), &y).is_none());
        assert!(given_away(&noise, &y).is_none() && given_away(&[1.0; 50], &y).is_none());
        assert!(given_away(&y[..19], &y[..19]).is_none());
        // rows without the target say nothing
        let gaps: Vec<f64> = (0..50).map(|i| if i % 2 == 0 { f64::NAN } else { y[i] }).collect();
        assert!(given_away(&y, &gaps).is_some());
        assert!(given_away(&y[..38], &gaps[..38]).is_none());
    }

    #[test]
    fn dates_that_were_written_as_numbers_are_known() {
        let days: Vec<f64> =
            (0..40).map(|i| f64::from(20_240_101 + i % 28 + 100 * (i / 10))).collect();
        assert_eq!(written_format(&days), Some("%Y%m%d"));
        let months: Vec<f64> =
            (0..30).map(|i| f64::from(201_901 + i % 12 + 100 * (i / 12))).collect();
        assert_eq!(written_format(&months), Some("%Y%m"));
        // of one month they are as far apart as they look; the 32nd, a half and few are none
        assert_eq!(written_format(&days[..10]), None);
        let with = |last: f64| days.iter().copied().chain([last]).collect::<Vec<f64>>();
        for last in [20_240_132.0, 20_240_110.5, 20_241_301.0, f64::NAN, 7.0, 202_401.0] {
            assert_eq!(written_format(&with(last)), None, "{last}");
        }
        assert_eq!(written_format(&[20_240_101.0, 20_240_201.0]), None);
        assert_eq!(written_format(&[]), None);
    }

    #[test]
    fn values_far_away_give_nothing_away() {
        let (mut x, mut y) = (values(200, 1.7), values(200, 2.9));
        (x[7], y[7]) = (1e4, -3e4);
        let both = sum_of_products(&centred(&x), &centred(&y));
        assert!(both < -GIVEN_AWAY, "{both}");
        assert!(given_away(&x, &y).is_none());
        // a label that few rows have is one
        let rare: Vec<f64> = (0..200).map(|i| f64::from(u8::from(i == 60 || i == 130))).collect();
        assert!(given_away(&rare, &rare).is_some());
    }
}

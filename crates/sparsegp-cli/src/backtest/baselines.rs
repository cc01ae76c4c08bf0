//! Simple forecasts that a model should beat: the last value, and the value one season before.

use super::args::BacktestArgs;
use super::rows::Rows;
use crate::fail::Result;
use sparsegp::data::CutOffs;

/// Sums of errors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errors {
    rows: usize,
    squared: f64,
    absolute: f64,
}

impl Errors {
    fn add(&mut self, error: f64) {
        self.rows += 1;
        self.squared += error * error;
        self.absolute += error.abs();
    }

    /// Returns the root mean squared error.
    pub fn rmse(&self) -> f64 {
        (self.squared / self.rows as f64).sqrt()
    }

    /// Returns the mean absolute error.
    pub fn mae(&self) -> f64 {
        self.absolute / self.rows as f64
    }
}

/// A simple forecast with its errors in every part of the horizon, and in all of it.
pub struct Simple {
    /// In words.
    pub name: String,
    /// Of the parts, and of all.
    pub errors: Vec<Errors>,
}

impl Simple {
    /// Creates the simple forecasts of a series, and what to say of those that are not known
    /// everywhere.
    pub fn of(
        args: &BacktestArgs,
        rows: &Rows,
        cuts: &CutOffs,
    ) -> Result<(Vec<Self>, Vec<String>)> {
        let mut all = vec![Self::with(None, "last value".into(), rows, cuts)?];
        let mut notes = Vec::new();
        let seasons = args.fit.0.settings.0.get("season").and_then(|own| own.as_array());
        for text in seasons.into_iter().flatten().filter_map(|own| own.as_str()) {
            let length = match text.rsplit_once('=') {
                Some((name, length)) if name.trim() == rows.name => length,
                Some(_) => continue,
                None => text,
            };
            let own = Self::with(Some(length), format!("value {length} before"), rows, cuts)?;
            match own.errors.iter().any(|of| of.squared.is_nan()) {
                true => notes.push(format!(
                    "season `{text}`: not every row that is predicted has a known one a whole number of seasons before it, so \
                     that simple forecast is left out of the comparison"
                )),
                false => all.push(own),
            }
        }
        Ok((all, notes))
    }

    fn with(season: Option<&str>, name: String, rows: &Rows, cuts: &CutOffs) -> Result<Self> {
        let parts = cuts.parts.len();
        let mut errors = vec![Errors::default(); parts + 1];
        for cut in &cuts.cuts {
            let mut predicted = Vec::new();
            for y in &rows.targets {
                predicted.push(cuts.simple(cut, &rows.times, y, season)?);
            }
            for (i, (row, part)) in cut.test.iter().zip(&cut.part).enumerate() {
                // as scores have it: rows with all of their targets
                if rows.targets.iter().any(|y| y[*row].is_nan()) {
                    continue;
                }
                for (y, own) in rows.targets.iter().zip(&predicted) {
                    errors[*part].add(y[*row] - own[i]);
                    errors[parts].add(y[*row] - own[i]);
                }
            }
        }
        Ok(Self { name, errors })
    }
}

//! The rows of a series: their times and targets as numbers.

use super::args::BacktestArgs;
use crate::fail::{Fail, Result};
use crate::format::count;
use sparsegp::data::{Encoding, Missing, ReadOptions, Selection, Table};
use sparsegp::fit::encoded;

/// A series.
pub struct Rows {
    /// Name of the column that is time.
    pub name: String,
    /// Whether its cells are dates, which become days since 1970.
    pub dates: bool,
    /// Times; NaN in rows that are left out.
    pub times: Vec<f64>,
    /// Times as they are written.
    pub texts: Vec<String>,
    /// Every target; NaN where it is missing.
    pub targets: Vec<Vec<f64>>,
    /// Targets as they are written.
    pub written: Vec<Vec<String>>,
    /// Inputs beside time.
    pub others: Vec<String>,
    /// What to say of rows that are left out.
    pub warnings: Vec<String>,
}

/// Returns the column that is time, and whether it holds dates.
fn time(args: &BacktestArgs, table: &Table) -> Result<(String, bool, Vec<String>)> {
    let fit = &args.fit.0;
    let kernels = fit.settings.text("kernel").unwrap_or_default();
    let base = Selection::targets(&fit.target).ignore(&fit.ignore);
    let all = encoded(table, &fit.named(base), kernels, &fit.categorical)?;
    let names = table.inputs_of(&all)?;
    let is_date = |name: &String| all.encodings.get(name) == Some(&Encoding::Date);
    let own = match (&args.time, &names[..]) {
        (Some(own), _) => own.clone(),
        (None, [one]) => one.clone(),
        (None, all) => {
            let dates: Vec<&String> = all.iter().filter(|name| is_date(name)).collect();
            match dates[..] {
                [one] => one.clone(),
                _ => {
                    return Err(Fail::usage(format!(
                        "which column is time? There are the inputs {}: name it by --time",
                        all.join(", ")
                    )));
                }
            }
        }
    };
    let others: Vec<String> = names.iter().filter(|name| **name != own).cloned().collect();
    let encoding = match all.encodings.get(&own) {
        Some(known) if names.contains(&own) => known.clone(),
        _ => {
            let selection = Selection::targets(&fit.target).inputs([&own]);
            let read = encoded(table, &selection, "", &[])?;
            read.encodings.get(&own).cloned().unwrap_or(Encoding::Number)
        }
    };
    match encoding {
        Encoding::Number => Ok((own, false, others)),
        Encoding::Date => Ok((own, true, others)),
        _ => Err(Fail::usage(format!("--time {own}: the column holds neither numbers nor dates"))),
    }
}

/// Returns a cell as a number; NaN where it says that none is there.
fn number(cell: &str, options: &ReadOptions) -> Option<f64> {
    let cell = cell.trim();
    if cell.is_empty() { Some(f64::NAN) } else { options.number(cell) }
}

impl Rows {
    /// Reads the columns of a table.
    pub fn read(args: &BacktestArgs, table: &Table) -> Result<Self> {
        let fit = &args.fit.0;
        for target in &fit.target {
            if fit.classes || table.holds_labels(target)? {
                return Err(Fail::usage(format!(
                    "`{target}` holds classes: a backtest is for numbers and counts; of classes use \
                     `sparsegp compare … --ordered`"
                )));
            }
        }
        let (name, dates, others) = time(args, table)?;
        let options = table.read_options();
        let texts = table.texts(&name)?;
        let read = |cell: &String| match dates {
            true => options.date(&name, cell),
            false => number(cell, options),
        };
        let mut times: Vec<f64> = texts.iter().map(|cell| read(cell).unwrap_or(f64::NAN)).collect();
        let mut warnings = Vec::new();
        let without = times.iter().filter(|time| !time.is_finite()).count();
        if let Some(first) = times.iter().position(|time| !time.is_finite()) {
            let cell = match texts[first].trim() {
                "" => "an empty cell".into(),
                text => format!("`{text}`"),
            };
            warnings.push(format!(
                "{} without a time in `{name}` left out (row {}: {cell})",
                count(without, "row"),
                first + 1
            ));
        }
        let written: Vec<Vec<String>> =
            fit.target.iter().map(|target| table.texts(target)).collect::<sparsegp::Result<_>>()?;
        let column = |cells: &Vec<String>| -> Vec<f64> {
            cells.iter().map(|cell| number(cell, options).unwrap_or(f64::NAN)).collect()
        };
        let targets: Vec<Vec<f64>> = written.iter().map(column).collect();
        if Missing::from(fit.missing) == Missing::Drop {
            for (i, time) in times.iter_mut().enumerate() {
                if targets.iter().any(|y| y[i].is_nan()) {
                    *time = f64::NAN;
                }
            }
        }
        Ok(Self { name, dates, times, texts, targets, written, others, warnings })
    }
}

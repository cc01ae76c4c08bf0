//! Whether rows whose missing cells were filled have larger errors than whole ones: one noise for both is too small for them.

use super::numbers::{CHANCE, LEAST, between};
use crate::data::Encoding;
use crate::fit::Dataset;
use crate::linalg::MatRef;
use crate::train::Finding;

/// What a value may differ from the one that fills gaps, as a part of its size and 1: it was scaled and scaled back.
const ROUNDING: f64 = 1e-9;

/// Rows with cells that were filled.
pub(super) struct Gaps {
    /// Of every row whether it has one.
    there: Vec<bool>,
    /// The columns.
    columns: Vec<String>,
}

impl Gaps {
    /// Finds them in rows of the model's scale: by the inputs that mark them, else by what fills them. Gaps that are a category are
    /// one like any other.
    pub(super) fn of(dataset: &Dataset, x: MatRef<'_, f64>) -> Self {
        let (mut there, mut columns, mut q) = (vec![false; x.nrows()], Vec::new(), 0);
        for own in &dataset.columns {
            if let Encoding::Filled(filled) = own.encoding {
                let (at, value) = if filled.indicator { (q + 1, 1.0) } else { (q, filled.value) };
                for (i, there) in there.iter_mut().enumerate() {
                    let cell = dataset.scaler.unscaled_input(at, x[(i, at)]);
                    *there |= (cell - value).abs() < ROUNDING * (1.0 + value.abs());
                }
                columns.push(format!("`{}`", own.name));
            }
            q += own.input_names().len();
        }
        Self { there, columns }
    }

    /// Says whether errors z of these rows are clearly larger where cells were filled.
    pub(super) fn finding(&self, target: &str, z: &[f64], rows: &[usize]) -> Option<Finding> {
        let parts: Vec<usize> = rows.iter().map(|i| usize::from(self.there[*i])).collect();
        let square = |part: usize| {
            let own = z.iter().zip(&parts).filter(|(_, of)| **of == part);
            let (sum, count) = own.fold((0.0, 0.0), |(s, n), (z, _)| (s + z * z, n + 1.0));
            sum / count
        };
        let (chance, gain, ratio) = between(z, &parts)?;
        // a few rows of many gain little in the mean of all
        let share = parts.iter().sum::<usize>() as f64 / parts.len() as f64;
        if chance >= CHANCE || gain <= LEAST * share || square(1) <= square(0) {
            return None;
        }
        let columns = self.columns.join(", ");
        Some(Finding {
            name: "filled".into(),
            target: target.into(),
            text: format!(
                "`{target}`: where missing cells were filled (of {columns}) the errors of rows that are left out are {ratio:.1} times \
                 as large as those of whole rows, and one noise is learnt for both: intervals of such rows are too narrow, and \
                 those of the others too wide. Try the likelihood `heteroscedastic` with `--missing indicator`, or leave such rows \
                 out (`--missing drop`)"
            ),
            remedies: vec!["heteroscedastic".into(), "missing=drop".into()],
            gain: Some(gain),
        })
    }
}

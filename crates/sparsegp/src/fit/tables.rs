//! Fits on tables in files: their columns as a model reads them, streamed rows, tables that are known again.

use super::dataset::Names;
use super::{Dataset, Division, Fitted, Scaling, Standardise};
use crate::data::fingerprint::mixed;
use crate::data::holidays::inputs_of_holidays;
use crate::data::sphere::inputs_of_places;
use crate::data::{
    EncodeOptions, InputColumn, Selected, Selection, Source, Table, TableSource, date_text,
};
use crate::error::{Error, Result};
use crate::kernels::{Kernel, label_columns};
use crate::linalg::MatRef;

/// Returns the columns asked for of a table, with how inputs that hold no numbers become some
/// ([`Table::encode`]): one code where these kernels (as for [`Standardise::for_kernel`]) read a
/// column as labels; `categorical` names columns whose numbers are categories.
///
/// # Errors
/// As for [`Table::encode`].
pub fn encoded(
    table: &Table,
    selection: &Selection,
    kernels: &str,
    categorical: &[String],
) -> Result<Selection> {
    let names = table.inputs_of(selection)?;
    let labels = label_columns(kernels, &names);
    let options = EncodeOptions {
        categorical: categorical.to_vec(),
        codes: labels.into_iter().map(|index| names[index].clone()).collect(),
    };
    table.encode(selection, &options)
}

impl Dataset {
    /// Creates a data set from a file that is streamed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two rows (with a scaling that is given, for none) or no target.
    pub fn from_table(table: TableSource, scaling: impl Into<Scaling>) -> Result<Self> {
        let scaling = scaling.into();
        if let Some((input, name)) = table.selected().deviations().first() {
            return Err(Error::Invalid(format!(
                "the standard deviations `{name}` of `{input}` need all rows in memory: do not stream the table"
            )));
        }
        if matches!(&scaling, Scaling::Given(scaler) if scaler.is_transformed()) {
            return Err(Error::Invalid(
                "the targets of the model are transformed, which needs all rows in memory: do not stream the table"
                    .into(),
            ));
        }
        let part = matches!(scaling, Scaling::Given(_));
        let mut together = scaling.together(&table.selected().input_names());
        together.extend(inputs_of_holidays(&table.selected().input_columns()));
        together.extend(inputs_of_places(&table.selected().input_columns()));
        let scaler = match scaling {
            Scaling::Own(Standardise { inputs: false, targets: false, .. }) => {
                table.scaler().clone()
            }
            chosen => {
                let inputs = table.selected().input_names();
                let scaler = chosen.scaler(table.statistics(), table.classes(), &inputs);
                scaler.without_columns(&inputs_of_holidays(&table.selected().input_columns()))
            }
        };
        let table = table.with_scaler(scaler.clone())?;
        let statistics = table.statistics().clone();
        let selected = table.selected();
        let names = Names {
            inputs: selected.input_names(),
            columns: selected.input_columns(),
            targets: selected.target_names(),
            weight: selected.weight_name(),
            extra: selected.extra_name(),
            together,
        };
        let classes = table.classes().cloned();
        let (rows, remarks) = (table.rows(), table.remarks().to_vec());
        let counts = (rows, statistics.counted());
        let mut dataset =
            Self::new(Box::new(table), scaler, names, classes, &statistics, part, counts)?;
        dataset.warnings.extend(remarks);
        Ok(dataset)
    }
}

impl Fitted {
    /// Says that rows (B×D, in the data's units) are of days after the last holiday that the model knows, if some are.
    ///
    /// On such days there may be holidays that its calendar lacks; they are predicted as days without one.
    pub fn calendar_remark(&self, x: MatRef<'_, f64>) -> Option<String> {
        let mut first = 0;
        let found = self.columns.iter().find_map(|column| {
            let own =
                column.encoding.holidays().map(|all| (first, column, all.last() as f64 + 1.0));
            first += column.input_names().len();
            own
        });
        let (q, column, end) = found?;
        let latest = (0..x.nrows()).map(|i| x[(i, q)]).fold(f64::NEG_INFINITY, f64::max);
        (latest >= end).then(|| {
            format!(
                "the holidays that the model knows end with {}, and `{}` continues to {}: later days are predicted as days without \
                 a holiday; fit with a calendar that holds the days to come",
                date_text(end - 1.0),
                column.name,
                date_text(latest)
            )
        })
    }

    /// Returns what [`Fitted::selection`] does, for predictions: groups of no training row are
    /// known where all kernels that read them know such ([`Kernel::open_labels`]).
    pub fn selection_of_new(&self) -> Selection {
        let columns: Vec<InputColumn> =
            (0..self.columns.len()).map(|at| self.column_of_new(at)).collect();
        self.selection().columns(columns)
    }

    /// Returns the input column at this place for such predictions.
    pub fn column_of_new(&self, at: usize) -> InputColumn {
        let before = &self.columns[..at];
        let input: usize = before.iter().map(|column| column.input_names().len()).sum();
        let kernels = self.model.input_kernels();
        let readers = |of: &dyn Fn(&dyn Kernel) -> Vec<usize>| {
            kernels.iter().flat_map(|kernel| of(*kernel)).filter(|q| *q == input).count()
        };
        let all = readers(&|kernel| kernel.labels());
        let column = self.columns[at].clone();
        match all > 0 && all == readers(&|kernel| kernel.open_labels()) {
            true => column.opened(),
            false => column.with_unknown(self.unknown),
        }
    }

    /// Adds to `cells`, one number for each input column, in how many of these rows (B×D, in the data's units) the column holds a
    /// category that no training row had: see [`Unknown::Ignore`](crate::data::Unknown::Ignore).
    pub fn count_unknown(&self, x: MatRef<'_, f64>, cells: &mut Vec<usize>) {
        cells.resize(self.columns.len(), 0);
        let mut first = 0;
        for (column, cells) in self.columns.iter().zip(cells) {
            let inputs = first..first + column.input_names().len();
            first = inputs.end;
            if column.encoding.categories().is_some() {
                let own = |i: usize| inputs.clone().map(|q| x[(i, q)]).collect::<Vec<f64>>();
                *cells += (0..x.nrows()).filter(|i| column.is_unknown(&own(*i))).count();
            }
        }
    }

    /// Says what such cells are taken for, if there are some.
    pub fn unknown_remark(&self, cells: &[usize]) -> Option<String> {
        let found = self.columns.iter().zip(cells).filter(|(_, cells)| **cells > 0);
        let found: Vec<String> =
            found.map(|(column, cells)| format!("{cells} of `{}`", column.name)).collect();
        (!found.is_empty()).then(|| {
            format!(
                "cells with categories that no training row had: {}; they are predicted as one more category, as far from the \
                 others as these are from each other (of two categories, as half of each)",
                found.join(", ")
            )
        })
    }

    /// Returns the model's input columns in a table, with their encodings; targets may be added.
    pub fn selection(&self) -> Selection {
        let deviations = self.deviation_columns();
        Selection::all_inputs().columns(self.columns.clone()).deviations(deviations).of_model()
    }
}

/// Rows of a table that its fingerprint covers.
const FIRST: usize = 4096;

impl Division {
    /// Computes the fingerprint of the first rows, at most `rows` of them, of a table that these sets make up together: of inputs and
    /// targets of every row without a missing one, and of its place. Reads no more of the file than these rows.
    ///
    /// # Errors
    /// What reading gives.
    pub fn fingerprint(sets: &[&Selected], rows: usize) -> Result<u64> {
        let end = rows.min(FIRST);
        let mut sum = 0_u64;
        for set in sets {
            for block in set.blocks(1 << 10, None)? {
                let block = block?;
                for (i, &row) in block.rows.iter().enumerate().take_while(|(_, row)| **row < end) {
                    let numbers = |a: &crate::linalg::Mat<f64>| {
                        (0..a.ncols()).map(|j| a[(i, j)]).collect::<Vec<f64>>()
                    };
                    let all = [numbers(&block.x), numbers(&block.y)].concat();
                    if all.iter().all(|value| !value.is_nan()) {
                        let own = all.iter().fold(mixed(row as u64), |hash, value| {
                            // 0 and −0 are the same cell
                            mixed(hash ^ (value + 0.0).to_bits())
                        });
                        sum = sum.wrapping_add(own);
                    }
                }
                if block.rows.last().is_some_and(|row| *row >= end) {
                    break;
                }
            }
        }
        Ok(sum)
    }

    /// Says how many rows a table has, if it is the one that this division is of: the same, or with more rows at its end.
    ///
    /// # Errors
    /// What reading gives.
    pub fn recognises(&self, table: &Selected) -> Result<Option<usize>> {
        let rows = table.count_rows()?;
        let same = rows >= self.rows && Self::fingerprint(&[table], self.rows)? == self.fingerprint;
        Ok(same.then_some(rows))
    }
}

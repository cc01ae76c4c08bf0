//! A table in memory.

use super::classes::Classes;
use super::scaler::Statistics;
use super::source::InMemory;
use super::split::Mask;
use crate::error::{Error, Result};
use faer::{Mat, MatRef};

/// The chosen columns of a table, in memory.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Inputs, N×D, as they stand in the file.
    pub x: Mat<f64>,
    /// Targets, N×P, as they stand in the file; P may be 0.
    pub y: Mat<f64>,
    /// Weights of the rows, N; empty if no column of weights was chosen.
    pub weights: Vec<f64>,
    /// The further number of every row, N; empty if no such column was chosen.
    pub extra: Vec<f64>,
    /// Text columns: one vector of N texts for each.
    pub ids: Vec<Vec<String>>,
    /// Names of the inputs.
    pub input_names: Vec<String>,
    /// Names of the targets.
    pub target_names: Vec<String>,
    /// Name of the column of weights.
    pub weight_name: Option<String>,
    /// Name of the column of further numbers.
    pub extra_name: Option<String>,
    /// The labels whose codes the target holds, if it was read as a label.
    pub classes: Option<Classes>,
    /// Names of the text columns.
    pub id_names: Vec<String>,
    /// Index in the file of each row, from 0: increasing, with gaps where rows were left out.
    pub rows: Vec<usize>,
    /// How many rows were left out because of missing cells.
    pub dropped: usize,
}

impl Loaded {
    /// Means and standard deviations of all columns.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::new(self.x.ncols(), self.y.ncols());
        statistics.add_rows(self.x.as_ref(), self.y.as_ref());
        statistics
    }

    /// The rows whose flag in `mask` is `flag`; the mask is over the rows of the file. `dropped` is
    /// kept as it is: it belongs to the file.
    ///
    /// # Errors
    /// [`Error::Shape`] if the mask is shorter than the file.
    pub fn rows_where(&self, mask: &Mask, flag: bool) -> Result<Loaded> {
        if let Some(&last) = self.rows.last().filter(|&&last| last >= mask.rows()) {
            return Err(Error::Shape {
                what: format!("mask {}", mask.name()),
                expected: format!("a row for each data row, at least {}", last + 1),
                found: format!("{} rows", mask.rows()),
            });
        }
        let kept: Vec<usize> =
            (0..self.rows.len()).filter(|&i| mask.get(self.rows[i]) == Some(flag)).collect();
        let pick = |mat: &Mat<f64>| Mat::from_fn(kept.len(), mat.ncols(), |i, j| mat[(kept[i], j)]);
        let part = |values: &[f64]| match values {
            [] => Vec::new(),
            _ => kept.iter().map(|&i| values[i]).collect(),
        };
        Ok(Loaded {
            x: pick(&self.x),
            y: pick(&self.y),
            weights: part(&self.weights),
            extra: part(&self.extra),
            ids: self
                .ids
                .iter()
                .map(|texts| kept.iter().map(|&i| texts[i].clone()).collect())
                .collect(),
            input_names: self.input_names.clone(),
            target_names: self.target_names.clone(),
            weight_name: self.weight_name.clone(),
            extra_name: self.extra_name.clone(),
            classes: self.classes.clone(),
            id_names: self.id_names.clone(),
            rows: kept.iter().map(|&i| self.rows[i]).collect(),
            dropped: self.dropped,
        })
    }

    /// The numbers as a [`Source`](super::Source).
    pub fn into_source(self) -> InMemory {
        InMemory { x: self.x, y: self.y, weights: self.weights, extra: self.extra }
    }
}

/// How many rows of `x` equal an earlier row exactly (−0 equals 0). Takes a sort: O(N log N) row
/// comparisons.
pub fn duplicate_rows(x: MatRef<'_, f64>) -> usize {
    let compare = |&a: &usize, &b: &usize| {
        (0..x.ncols())
            // Adding 0 turns −0 into 0.
            .map(|j| (x[(a, j)] + 0.0).total_cmp(&(x[(b, j)] + 0.0)))
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    };
    let mut order: Vec<usize> = (0..x.nrows()).collect();
    order.sort_unstable_by(compare);
    order.windows(2).filter(|pair| compare(&pair[0], &pair[1]).is_eq()).count()
}

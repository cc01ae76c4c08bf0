//! A table in memory.

use super::classes::Classes;
use super::encoding::InputColumn;
use super::source::InMemory;
use super::split::Mask;
use super::statistics::Statistics;
use crate::error::{Error, Result};
use faer::{Mat, MatRef};
use std::cmp::Ordering;

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
    /// The columns that they come from; empty where each is a column of numbers of its name.
    pub columns: Vec<InputColumn>,
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
    /// Inputs with the names of the last inputs, which are the standard deviations of their errors.
    pub deviations: Vec<(String, String)>,
    /// How many rows were left out because of missing cells.
    pub dropped: usize,
    /// What to say about words that were taken for missing values in them.
    pub remarks: Vec<String>,
}

impl Loaded {
    /// Creates a table without rows, of columns of numbers with these names.
    pub fn head(input_names: Vec<String>, target_names: Vec<String>) -> Self {
        Self {
            x: Mat::zeros(0, input_names.len()),
            y: Mat::zeros(0, target_names.len()),
            weights: Vec::new(),
            extra: Vec::new(),
            ids: Vec::new(),
            input_names,
            columns: Vec::new(),
            target_names,
            weight_name: None,
            extra_name: None,
            classes: None,
            id_names: Vec::new(),
            rows: Vec::new(),
            deviations: Vec::new(),
            dropped: 0,
            remarks: Vec::new(),
        }
    }

    /// Returns the means and standard deviations of all columns, as the weights of the rows count
    /// them.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::of(self.x.as_ref(), self.y.as_ref(), &self.weights);
        statistics.add_extra(&self.extra);
        statistics
    }

    /// Returns the rows whose flag in `mask` is `flag`; the mask is over the rows of the file.
    /// `dropped` is kept as it is: it belongs to the file.
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
        Ok(self.picked(&kept))
    }

    /// Returns the rows at these places, in this order.
    fn picked(&self, places: &[usize]) -> Loaded {
        let pick = |a: &Mat<f64>| Mat::from_fn(places.len(), a.ncols(), |i, j| a[(places[i], j)]);
        let part = |v: &[f64]| places.iter().filter_map(|i| v.get(*i)).copied().collect();
        let texts = |v: &Vec<String>| places.iter().map(|&i| v[i].clone()).collect();
        Loaded {
            x: pick(&self.x),
            y: pick(&self.y),
            weights: part(&self.weights),
            extra: part(&self.extra),
            ids: self.ids.iter().map(texts).collect(),
            rows: places.iter().map(|&i| self.rows[i]).collect(),
            input_names: self.input_names.clone(),
            columns: self.columns.clone(),
            target_names: self.target_names.clone(),
            weight_name: self.weight_name.clone(),
            extra_name: self.extra_name.clone(),
            classes: self.classes.clone(),
            id_names: self.id_names.clone(),
            deviations: self.deviations.clone(),
            dropped: self.dropped,
            remarks: self.remarks.clone(),
        }
    }

    /// Returns the same rows with those that are equal in everything (inputs, targets, further
    /// number) made into one of their weights' sum, rows of weight 0 left out, and the rest sorted:
    /// what counts as the same observations is the same table then, to the bit. Where every weight
    /// is 1 afterwards there are none, and the rows stay in their order. Rows keep the index of the
    /// first of them. Text columns are not looked at.
    #[must_use]
    pub fn merged(&self) -> Loaded {
        let weight = |i: usize| self.weights.get(i).copied().unwrap_or(1.0);
        let mut order: Vec<usize> = (0..self.x.nrows()).filter(|i| weight(*i) != 0.0).collect();
        let cells = |i: usize| {
            let x = (0..self.x.ncols()).map(move |j| self.x[(i, j)]);
            let y = (0..self.y.ncols()).map(move |j| self.y[(i, j)]);
            x.chain(y).chain(self.extra.get(i).copied())
        };
        let compare = |a: usize, b: usize| order_of(cells(a), cells(b));
        order.sort_by(|a, b| compare(*a, *b));
        let mut kept: Vec<usize> = Vec::with_capacity(order.len());
        let mut weights: Vec<f64> = Vec::with_capacity(order.len());
        for i in order {
            match (kept.last(), weights.last_mut()) {
                (Some(last), Some(sum)) if compare(*last, i).is_eq() => *sum += weight(i),
                _ => {
                    kept.push(i);
                    weights.push(weight(i));
                }
            }
        }
        if weights.iter().all(|w| *w == 1.0) {
            weights.clear();
            // nothing was made one: the rows stay where they are
            kept.sort_unstable();
        }
        let mut merged = self.picked(&kept);
        merged.weight_name = (!weights.is_empty())
            .then(|| self.weight_name.clone().unwrap_or_else(|| "weight".into()));
        merged.weights = weights;
        merged
    }

    /// Returns the numbers as a [`Source`](super::Source).
    pub fn into_source(self) -> InMemory {
        InMemory { x: self.x, y: self.y, weights: self.weights, extra: self.extra }
    }
}

/// Returns the order of two rows, by their first cells that differ (−0 equals 0).
fn order_of(a: impl Iterator<Item = f64>, b: impl Iterator<Item = f64>) -> Ordering {
    // Adding 0 turns −0 into 0.
    a.zip(b)
        .map(|(a, b)| (a + 0.0).total_cmp(&(b + 0.0)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Returns how many rows of `x` equal an earlier row exactly (−0 equals 0). Takes a sort: O(N log
/// N) row comparisons.
pub fn duplicate_rows(x: MatRef<'_, f64>) -> usize {
    let cells = |i: usize| (0..x.ncols()).map(move |j| x[(i, j)]);
    let compare = |&a: &usize, &b: &usize| order_of(cells(a), cells(b));
    let mut order: Vec<usize> = (0..x.nrows()).collect();
    order.sort_unstable_by(compare);
    order.windows(2).filter(|pair| compare(&pair[0], &pair[1]).is_eq()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(cells: &[[f64; 3]], weights: &[f64]) -> Loaded {
        Loaded {
            x: Mat::from_fn(cells.len(), 2, |i, j| cells[i][j]),
            y: Mat::from_fn(cells.len(), 1, |i, _| cells[i][2]),
            weights: weights.to_vec(),
            extra: Vec::new(),
            ids: Vec::new(),
            input_names: vec!["a".into(), "b".into()],
            columns: Vec::new(),
            target_names: vec!["y".into()],
            weight_name: None,
            extra_name: None,
            classes: None,
            id_names: Vec::new(),
            rows: (0..cells.len()).collect(),
            deviations: Vec::new(),
            dropped: 0,
            remarks: Vec::new(),
        }
    }

    #[test]
    fn repeated_rows_and_weights_come_to_the_same_table() {
        let (p, q, r, s) = ([1.0, 2.0, 0.3], [1.0, 2.0, 0.4], [-0.0, 5.0, 1.0], [9.0, 9.0, 9.0]);
        let weighted = loaded(&[q, p, s, r], &[2.0, 3.0, 0.0, 1.0]).merged();
        let repeated = loaded(&[p, [0.0, 5.0, 1.0], q, p, q, p], &[]).merged();
        for own in [&weighted, &repeated] {
            assert_eq!(own.weights, [1.0, 3.0, 2.0]);
            assert_eq!(own.weight_name.as_deref(), Some("weight"));
        }
        assert_eq!((weighted.x, weighted.y), (repeated.x, repeated.y));
        let plain = loaded(&[q, p, p], &[1.0, 0.5, 0.5]).merged();
        assert!(plain.weights.is_empty() && plain.weight_name.is_none());
        assert_eq!(plain.rows, [0, 1]);
    }
}

//! A number that tells tables apart by their cells.

#[cfg(feature = "files")]
use super::source::Source;
#[cfg(feature = "files")]
use crate::error::Result;
use faer::MatRef;
use serde::{Deserialize, Serialize};

/// By how much a row weighs more than the one after it.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// What the cells of a table come to, each at its place: polynomials in the mixed bits of every column, of inputs and targets, then
/// of weights and of further numbers (0 where there are none). However rows are divided into chunks or parts, it is the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    rows: u64,
    columns: Vec<u64>,
}

impl Fingerprint {
    /// Returns that of no rows of so many inputs and targets.
    pub(super) fn new(columns: usize) -> Self {
        Self { rows: 0, columns: vec![0; columns + 2] }
    }

    /// Returns that of all rows of a source.
    ///
    /// # Errors
    /// What reading gives.
    #[cfg(feature = "files")]
    pub(crate) fn of(source: &dyn Source) -> Result<Self> {
        let (inputs, outputs) = (source.inputs(), source.outputs());
        let mut own = Self::new(inputs + outputs);
        source.for_each_chunk(1 << 13, &mut |rows| {
            own.add_rows(rows.x, rows.y, rows.weights);
            own.add_extra(rows.extra);
            Ok(())
        })?;
        Ok(own)
    }

    /// Says whether it is of so many inputs and targets.
    pub(super) fn fits(&self, columns: usize) -> bool {
        self.columns.len() == columns + 2
    }

    /// Adds the rows that follow, without further numbers.
    pub(super) fn add_rows(&mut self, x: MatRef<'_, f64>, y: MatRef<'_, f64>, weights: &[f64]) {
        let known = self.columns.len() - 2;
        let inputs = x.ncols().min(known);
        self.rows += x.nrows() as u64;
        for i in 0..x.nrows() {
            (0..inputs).for_each(|j| self.push(j, x[(i, j)]));
            (inputs..known).for_each(|j| self.push(j, y[(i, j - inputs)]));
        }
        weights.iter().for_each(|&weight| self.push(known, weight));
    }

    /// Adds the further numbers of the rows that were added last.
    pub(super) fn add_extra(&mut self, extra: &[f64]) {
        let last = self.columns.len() - 1;
        extra.iter().for_each(|&value| self.push(last, value));
    }

    /// Adds the rows that follow as columns in the order of a file; `weight` is the index of the column of weights.
    #[cfg(feature = "tables")]
    pub(super) fn add_columns(&mut self, columns: &[Vec<f64>], weight: Option<usize>) {
        let known = self.columns.len() - 2;
        self.rows += columns.first().map_or(0, Vec::len) as u64;
        for (j, column) in columns.iter().enumerate() {
            let place = if j < known { j } else { known + usize::from(weight != Some(j)) };
            column.iter().for_each(|&cell| self.push(place, cell));
        }
    }

    /// Adds the next cell of a column.
    fn push(&mut self, column: usize, cell: f64) {
        // 0 and −0 are the same cell, as are all that are not a number
        let bits = if cell.is_nan() { u64::MAX } else { (cell + 0.0).to_bits() };
        let own = &mut self.columns[column];
        *own = own.wrapping_mul(BASE).wrapping_add(mixed(bits));
    }

    /// Adds the rows that follow.
    pub(super) fn merge(&mut self, next: &Self) {
        let shift = power(BASE, next.rows);
        for (own, next) in self.columns.iter_mut().zip(&next.columns) {
            *own = own.wrapping_mul(shift).wrapping_add(*next);
        }
        self.rows += next.rows;
    }

    /// Returns the number of rows.
    #[cfg(feature = "tables")]
    pub(super) fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Returns the number for all columns in their order.
    pub fn value(&self) -> u64 {
        self.columns.iter().fold(mixed(self.rows), |all, column| mixed(all ^ column))
    }
}

fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut product = 1_u64;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product = product.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    product
}

/// Mixes the bits of a number (the last step of SplitMix64; Steele, Lea and Flood 2014).
pub(crate) fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    fn of(cells: &[[f64; 2]]) -> Fingerprint {
        let column = |j: usize| Mat::from_fn(cells.len(), 1, |i, _| cells[i][j]);
        let mut own = Fingerprint::new(2);
        own.add_rows(column(0).as_ref(), column(1).as_ref(), &[]);
        own
    }

    #[test]
    fn parts_come_to_the_whole_and_every_change_shows() {
        let cells: Vec<[f64; 2]> = (0..9).map(|i| [f64::from(i).sin(), f64::from(i % 2)]).collect();
        let whole = of(&cells);
        for cut in 0..=9 {
            let mut parts = of(&cells[..cut]);
            parts.merge(&of(&cells[cut..]));
            assert_eq!(parts, whole);
        }
        let changed = |change: &dyn Fn(&mut Vec<[f64; 2]>)| {
            let mut other = cells.clone();
            change(&mut other);
            of(&other).value()
        };
        let others = [
            changed(&|all| all.swap(2, 3)),
            changed(&|all| all[4][0] += 1e-15),
            changed(&|all| all.iter_mut().for_each(|row| row[1] = 1.0 - row[1])),
            changed(&|all| all.iter_mut().for_each(|row| row.swap(0, 1))),
            changed(&|all| all[8][1] = f64::NAN),
            changed(&|all| all.truncate(8)),
            changed(&|all| all.push([0.0, 0.0])),
        ];
        let different: std::collections::HashSet<u64> =
            others.into_iter().chain([whole.value()]).collect();
        assert_eq!(different.len(), 8);
        assert_eq!(changed(&|all| all[0][0] = -0.0), whole.value());
    }
}

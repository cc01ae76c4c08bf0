//! Targets of the GP-LVM: a matrix of which cells may be missing.

use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};
use std::collections::HashMap;

/// Columns that are missing in the same rows: they share everything but their values.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The columns, from 0.
    pub columns: Vec<usize>,
    /// How many rows have them.
    pub rows: usize,
}

/// Targets Y (N×P) with missing cells, columns in groups.
#[derive(Clone, Debug)]
pub struct Targets {
    /// Y with 0 where a cell is missing, N×P.
    pub(super) y: Mat<f64>,
    /// 1 where a row has the columns of a group, else 0: N×C.
    pub(super) has: Mat<f64>,
    /// Cells of every row.
    pub(super) cells: Vec<f64>,
    pub(super) groups: Vec<Group>,
}

impl Targets {
    /// Reads targets (N×P), NaN where missing.
    ///
    /// # Errors
    /// [`Error::Invalid`] without rows or columns, or for a column without a value; [`Error::NonFinite`] for an infinity.
    pub fn new(y: MatRef<f64>) -> Result<Self> {
        let (n, p) = (y.nrows(), y.ncols());
        if n == 0 || p == 0 {
            return Err(Error::Invalid(format!("there are no targets: they are {n}×{p}")));
        }
        let mut of: HashMap<Vec<bool>, usize> = HashMap::new();
        let mut groups: Vec<Group> = Vec::new();
        let mut has: Vec<Vec<bool>> = Vec::new();
        for j in 0..p {
            let own: Vec<bool> = (0..n).map(|i| !y[(i, j)].is_nan()).collect();
            if let Some(i) = (0..n).find(|i| y[(*i, j)].is_infinite()) {
                let what = format!("the target in row {}, column {}", i + 1, j + 1);
                return Err(Error::NonFinite { what, value: y[(i, j)] });
            }
            let rows = own.iter().filter(|has| **has).count();
            if rows == 0 {
                return Err(Error::Invalid(format!(
                    "column {} of the targets has no value: leave it out",
                    j + 1
                )));
            }
            let at = *of.entry(own.clone()).or_insert(groups.len());
            if at == groups.len() {
                groups.push(Group { columns: Vec::new(), rows });
                has.push(own);
            }
            groups[at].columns.push(j);
        }
        let known = |v: f64| if v.is_nan() { 0.0 } else { v };
        let count = |i: usize| (0..p).filter(|j| !y[(i, *j)].is_nan()).count() as f64;
        Ok(Self {
            y: Mat::from_fn(n, p, |i, j| known(y[(i, j)])),
            has: Mat::from_fn(n, groups.len(), |i, c| f64::from(u8::from(has[c][i]))),
            cells: (0..n).map(count).collect(),
            groups,
        })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.y.nrows()
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.y.ncols()
    }

    /// Returns the number of cells with a value.
    pub fn cells(&self) -> usize {
        self.groups.iter().map(|group| group.rows * group.columns.len()).sum()
    }

    /// Returns columns that are missing in the same rows, in the order of their first ones.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }
}

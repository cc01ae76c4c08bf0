//! The seam between models and data: rows arrive in chunks, from memory or from a file.

use crate::error::{Error, Result};
use faer::{Mat, MatRef};

/// Consecutive rows of a data set. Matrices are column-major: the rows of one column are contiguous.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Index of the first row in the whole data set.
    pub start: usize,
    /// Inputs, B×D.
    pub x: MatRef<'a, f64>,
    /// Targets, B×P.
    pub y: MatRef<'a, f64>,
}

/// A data set that can be read again and again, in order, in chunks.
pub trait Source: Send + Sync {
    /// Number of rows N.
    fn rows(&self) -> usize;
    /// Number of input columns D.
    fn inputs(&self) -> usize;
    /// Number of target columns P.
    fn outputs(&self) -> usize;
    /// Whether all rows are in memory, so that a chunk of any size costs nothing.
    fn is_resident(&self) -> bool {
        false
    }
    /// Calls `f` with consecutive chunks of exactly `chunk_rows` rows (the last may be shorter), in
    /// order. Stops at the first error and returns it.
    fn for_each_chunk(
        &self,
        chunk_rows: usize,
        f: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<()>;
}

/// A data set held in memory.
#[derive(Clone, Debug)]
pub struct InMemory {
    /// Inputs, N×D.
    pub x: Mat<f64>,
    /// Targets, N×P.
    pub y: Mat<f64>,
}

impl InMemory {
    /// Inputs (N×D) with targets (N×P).
    ///
    /// # Errors
    /// [`Error::Shape`] if the numbers of rows differ.
    pub fn new(x: Mat<f64>, y: Mat<f64>) -> Result<Self> {
        if x.nrows() != y.nrows() {
            return Err(Error::Shape {
                what: "targets".into(),
                expected: format!("{} rows, as many as the inputs have", x.nrows()),
                found: format!("{} rows", y.nrows()),
            });
        }
        Ok(Self { x, y })
    }
}

impl Source for InMemory {
    fn rows(&self) -> usize {
        self.x.nrows()
    }
    fn inputs(&self) -> usize {
        self.x.ncols()
    }
    fn outputs(&self) -> usize {
        self.y.ncols()
    }
    fn is_resident(&self) -> bool {
        true
    }
    fn for_each_chunk(
        &self,
        chunk_rows: usize,
        f: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let n = self.rows();
        let mut start = 0;
        while start < n {
            let rows = chunk_rows.max(1).min(n - start);
            f(Rows {
                start,
                x: self.x.as_ref().subrows(start, rows),
                y: self.y.as_ref().subrows(start, rows),
            })?;
            start += rows;
        }
        Ok(())
    }
}

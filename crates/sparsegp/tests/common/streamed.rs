//! Rows as from a file, for tests of several programs.

use sparsegp::data::{InMemory, Rows, Source};
use sparsegp::linalg::Mat;

/// Rows that are not resident: they come from a slow medium in pieces of 7, copied together into chunks of
/// exactly the size that is asked for.
pub struct Streamed(pub InMemory);

impl Source for Streamed {
    fn rows(&self) -> usize {
        self.0.rows()
    }
    fn inputs(&self) -> usize {
        self.0.inputs()
    }
    fn outputs(&self) -> usize {
        self.0.outputs()
    }
    fn for_each_chunk(
        &self,
        chunk_rows: usize,
        f: &mut dyn FnMut(Rows<'_>) -> sparsegp::Result<()>,
    ) -> sparsegp::Result<()> {
        let (n, d, p) = (self.rows(), self.inputs(), self.outputs());
        let capacity = chunk_rows.min(n);
        let (mut x, mut y) = (Mat::zeros(capacity, d), Mat::zeros(capacity, p));
        let (mut start, mut held) = (0, 0);
        while start + held < n {
            let piece = 7.min(capacity - held).min(n - start - held);
            let from = start + held;
            x.as_mut().subrows_mut(held, piece).copy_from(self.0.x.as_ref().subrows(from, piece));
            y.as_mut().subrows_mut(held, piece).copy_from(self.0.y.as_ref().subrows(from, piece));
            held += piece;
            if held == capacity || start + held == n {
                let (x, y) = (x.as_ref().subrows(0, held), y.as_ref().subrows(0, held));
                f(Rows::plain(start, x, y))?;
                (start, held) = (start + held, 0);
            }
        }
        Ok(())
    }
}

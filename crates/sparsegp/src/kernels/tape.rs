//! What a kernel remembers between value and pull-back.

use crate::linalg::Mat;

/// Buffers that a tape keeps: more than any evaluation has in use at once, in two sizes of blocks.
const KEPT: usize = 32;

/// A stack of matrices that [`super::Kernel::evaluate`] pushes and [`super::Kernel::vjp`] pops, in
/// opposite order, and a pool that keeps their memory for the next block.
#[derive(Debug, Default)]
pub struct Tape {
    recording: bool,
    stack: Vec<Mat<f64>>,
    pool: Vec<Mat<f64>>,
}

impl Tape {
    /// Creates a tape that records: a pull-back follows.
    pub fn recording() -> Self {
        Self { recording: true, ..Self::default() }
    }

    /// Creates a tape that does not record: values only.
    pub fn off() -> Self {
        Self::default()
    }

    /// Forgets what was recorded, and keeps the memory.
    pub fn restart(&mut self, recording: bool) {
        self.recording = recording;
        while let Some(matrix) = self.stack.pop() {
            self.recycle(matrix);
        }
    }

    /// Returns whether a pull-back will follow.
    pub fn is_recording(&self) -> bool {
        self.recording
    }

    /// Returns a matrix of the given shape with arbitrary contents.
    pub fn buffer(&mut self, rows: usize, cols: usize) -> Mat<f64> {
        match self.pool.iter().rposition(|m| m.nrows() == rows && m.ncols() == cols) {
            Some(index) => self.pool.remove(index),
            None => Mat::zeros(rows, cols),
        }
    }

    /// Gives a buffer back. The last few are kept.
    pub fn recycle(&mut self, buffer: Mat<f64>) {
        if self.pool.len() >= KEPT {
            self.pool.remove(0);
        }
        self.pool.push(buffer);
    }

    /// Puts a matrix on the stack.
    pub fn push(&mut self, matrix: Mat<f64>) {
        debug_assert!(self.recording);
        self.stack.push(matrix);
    }

    /// Takes the last matrix from the stack.
    pub fn pop(&mut self) -> Mat<f64> {
        self.stack.pop().expect("a pull-back pops what the evaluation of the same arguments pushed")
    }
}

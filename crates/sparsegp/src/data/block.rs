//! Rows to predict for.

use faer::Mat;

/// A block of rows to predict for, in the order of the file.
#[derive(Clone, Debug)]
pub struct Block {
    /// How many rows the blocks before it had.
    pub start: usize,
    /// Index in the file of each row, from 0.
    pub rows: Vec<usize>,
    /// Inputs, B×D, standardised if a scaler was given.
    pub x: Mat<f64>,
    /// Targets, B×P, as they stand in the file.
    pub y: Mat<f64>,
    /// Weights of the rows, B; empty if no column of weights was chosen.
    pub weights: Vec<f64>,
    /// The further number of every row, B; empty if no such column was chosen.
    pub extra: Vec<f64>,
    /// Text columns: one vector of B texts for each.
    pub ids: Vec<Vec<String>>,
}

//! What a choice of kernels came to, as reports keep it.

use serde::{Deserialize, Serialize};

/// A kernel that was considered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelScore {
    /// Its specification.
    pub kernel: String,
    /// Log evidence or bound of the rows that it was judged by, in nats on the model's scale.
    pub evidence: f64,
    /// Hyperparameters that these rows determine.
    pub parameters: usize,
    /// Evidence less the price of the hyperparameters; the larger the better.
    pub score: f64,
}

/// Which kernel was chosen, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelChoice {
    /// The specification that was taken.
    pub kernel: String,
    /// Why, in a sentence.
    pub reason: String,
    /// Rows that the candidates were judged by; 0 where none were.
    pub rows: usize,
    /// The candidates, the best first.
    pub candidates: Vec<KernelScore>,
}

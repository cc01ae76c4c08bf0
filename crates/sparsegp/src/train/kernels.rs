//! What a choice of kernels came to, as reports keep it.

use serde::{Deserialize, Serialize};

/// A kernel that was considered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelScore {
    /// Its specification.
    pub kernel: String,
    /// Rows that it was judged by.
    #[serde(default)]
    pub rows: usize,
    /// Log evidence or bound of these rows, in nats on the model's scale.
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
    /// Most rows that candidates were judged by; 0 where none were.
    pub rows: usize,
    /// The candidates: first those that were judged by most rows, the best of them first.
    pub candidates: Vec<KernelScore>,
}

//! What rows say against a likelihood, as reports keep it.

use serde::{Deserialize, Serialize};

/// Something that the rows say against the likelihood that was fitted, with what to try instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its name: `counts`, `dispersion`, `zeros`, `tails`, `spread`, `skew`, `shares` or `filled`.
    pub name: String,
    /// The target column.
    pub target: String,
    /// What was found and what to try, in a sentence.
    pub text: String,
    /// What to try, the best guess first: likelihoods, `+ white` (of the kernel), or a setting and its value.
    pub remedies: Vec<String>,
    /// Nats a row by which a density of the remedy's kind about the same means would have predicted the rows
    /// better; none where that was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
}

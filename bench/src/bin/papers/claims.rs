//! What abstracts and texts say about speed and accuracy, with the checks that bear on it.

use sparsegp_bench::papers::Claim;

/// All claims, in the order of the papers.
pub const CLAIMS: &[Claim] = &[];

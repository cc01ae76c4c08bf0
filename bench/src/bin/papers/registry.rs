//! All experiments, in the order of the papers.

use crate::{bounds, dual, inverse_free, thesis};
use sparsegp_bench::papers::Entry;

/// Returns all experiments.
pub fn entries() -> Vec<Entry> {
    let papers = [dual::ENTRIES, inverse_free::ENTRIES, bounds::ENTRIES];
    [papers.concat(), thesis::CHAPTERS.concat()].concat()
}

//! Appendix A, points chosen on the way.

mod figure1;
mod figure2;
mod figure3;
mod figure4;
mod figure5;
mod points;

use sparsegp_bench::papers::Entry;

/// Its experiments.
pub const ENTRIES: &[Entry] =
    &[figure1::ENTRY, figure2::ENTRY, figure3::ENTRY, figure4::ENTRY, figure5::ENTRY];

//! Chapter 7.

mod figure7_1;
mod figure7_2;
mod figure7_3;
mod figure7_6;
mod links;
mod toys;

use sparsegp_bench::papers::Entry;

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    figure7_1::ENTRY,
    figure7_2::ENTRY,
    figure7_3::ENTRY,
    links::BIJECTIVE,
    links::OVER,
    figure7_6::ENTRY,
];

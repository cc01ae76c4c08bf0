//! Adam, Chang, Khan & Solin 2021, *Dual parameterization of sparse variational Gaussian processes*.

mod digits;
mod em;
mod figure1_left;
mod figure1_right;
mod figure2;
mod figure3;
mod figure4;
mod figure5;
mod table1;
mod toy;

use sparsegp_bench::papers::Entry;

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    figure1_left::ENTRY,
    figure1_right::ENTRY,
    figure2::ENTRY,
    figure3::ENTRY,
    figure4::ENTRY,
    table1::ENTRY,
    figure5::ENTRY,
];

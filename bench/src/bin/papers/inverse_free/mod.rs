//! Cortinovis et al., *Inverse-free sparse variational Gaussian processes*.

mod alternative;
mod figure1;
mod figure2;
mod figure_s1;
mod table1;
mod table2;
mod timed;
mod toy;

use sparsegp_bench::papers::Entry;

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    figure1::ENTRY,
    figure2::ENTRY,
    table1::ENTRY,
    table2::RBF,
    table2::CONVOLUTION,
    figure_s1::ENTRY,
];

//! Titsias 2025, *New bounds for sparse variational Gaussian processes*.

mod counts;
mod figure1;
mod figure2;
mod figure3;
mod figure5;
mod large;
mod medium;
mod orthogonal;
mod snelson;
mod table1;
mod table2;
mod table3;
mod table4;
mod table5;

use sparsegp_bench::papers::{BLANK, Body, Entry};

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    figure1::ENTRY,
    table3::ENTRY,
    table1::ENTRY,
    figure2::ENTRY,
    figure2::OF_2048,
    table2::ENTRY,
    table2::NOT_BUNDLED,
    table4::ENTRY,
    table4::NOT_BUNDLED,
    figure3::ENTRY,
    figure5::ENTRY,
    table5::ENTRY,
    Entry {
        name: "bounds-b5",
        paper: "bounds",
        item: "§B.5",
        shows: "the bound of the Bayesian GP-LVM, derived without an experiment",
        body: Body::Drawing,
        ..BLANK
    },
];

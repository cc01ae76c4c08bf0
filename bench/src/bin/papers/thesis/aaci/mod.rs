//! Chapter 5, automated augmented conjugate inference.

pub mod chains;
mod figure2;
mod figure3;
mod figure4;
mod grids;
mod table2;

use sparsegp_bench::papers::{BLANK, Body, Entry};

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "aaci-figure1",
        paper: "aaci",
        item: "Figure 1; Table 1",
        shows: "a scheme, and the list of likelihoods, all of which are built",
        body: Body::Drawing,
        ..BLANK
    },
    table2::ENTRY,
    grids::LAPLACE,
    grids::STUDENT_T,
    grids::LOGISTIC,
    figure2::ENTRY,
    figure3::ENTRY,
    figure4::ENTRY,
];

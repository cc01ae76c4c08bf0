//! Chapter 4, classes.

mod clusters;
mod figure5;
mod figure6;
mod figure7;

use sparsegp_bench::papers::{BLANK, Body, Entry};

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "classes-figure1",
        paper: "classes",
        item: "Figure 1",
        shows: "a scheme of the augmentation",
        body: Body::Drawing,
        ..BLANK
    },
    Entry {
        name: "classes-figure2",
        paper: "classes",
        item: "Figure 2",
        shows: "a scheme of the model",
        body: Body::Drawing,
        ..BLANK
    },
    clusters::CONFIDENCE,
    clusters::LEVELS,
    figure5::ENTRY,
    figure6::ENTRY,
    figure7::ENTRY,
];

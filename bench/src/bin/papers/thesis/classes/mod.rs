//! Chapter 4, classes.

mod clusters;
mod figure5;
mod figure7;

use sparsegp_bench::papers::{BLANK, Body, Data, Entry};

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
    Entry {
        name: "classes-figure6",
        paper: "classes",
        item: "Figure 6",
        shows: "NLL and time by the number of inducing points, shared or own, on Shuttle",
        data: &[Data::Folder {
            file: "shuttle.csv",
            size: (58_000, 9),
            from: "UCI, Statlog (Shuttle)",
        }],
        body: Body::NoData("Shuttle is not bundled"),
        ..BLANK
    },
    figure7::ENTRY,
];

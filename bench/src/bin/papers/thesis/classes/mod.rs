//! Chapter 4, classes.

mod clusters;
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
    Entry {
        name: "classes-figure5",
        paper: "classes",
        item: "Figure 5",
        shows: "p, μ and σ² of two variational methods against Gibbs on wine",
        data: &[Data::Folder {
            file: "wine.csv",
            size: (178, 13),
            from: "UCI, Wine; `sklearn.datasets.load_wine` has it",
        }],
        body: Body::NotYet("`svgp` and `cavi` against `gibbs` on that table, which is not bundled"),
        ..BLANK
    },
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

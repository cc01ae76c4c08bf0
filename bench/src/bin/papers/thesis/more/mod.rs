//! Chapter 7.

mod figure7_1;
mod figure7_3;

use sparsegp_bench::papers::{BLANK, Body, Data, Entry};

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    figure7_1::ENTRY,
    Entry {
        name: "more-figure7.2",
        paper: "more",
        item: "Figure 7.2",
        shows: "noise that depends on the input, by Gibbs and by CAVI",
        data: &[Data::Simulated("a heteroscedastic toy")],
        body: Body::NotYet("`heteroscedastic` by `gibbs` and `cavi` on a simulated line"),
        ..BLANK
    },
    figure7_3::ENTRY,
    Entry {
        name: "more-figure7.4",
        paper: "more",
        item: "Figure 7.4",
        shows: "classes by the bijective link, by VI and Gibbs, against the truth",
        data: &[Data::Simulated("a toy of classes")],
        body: Body::NotYet("a toy with the bijective link"),
        ..BLANK
    },
    Entry {
        name: "more-figure7.5",
        paper: "more",
        item: "Figure 7.5",
        shows: "classes by the scaled link, by VI and Gibbs, against the truth",
        data: &[Data::Simulated("a toy of classes")],
        body: Body::NotYet("a toy with the scaled link"),
        ..BLANK
    },
    Entry {
        name: "more-figure7.6",
        paper: "more",
        item: "Figure 7.6",
        shows: "NLL and error by time of CAVI, VI-Gibbs and HMC on Magic Telescope",
        data: &[Data::Folder {
            file: "magic.csv",
            size: (19_020, 10),
            from: "UCI, MAGIC Gamma Telescope",
        }],
        body: Body::NoData("Magic Telescope is not bundled"),
        ..BLANK
    },
];

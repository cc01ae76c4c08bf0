//! Chapter 7.

mod figure7_1;
mod figure7_2;
mod figure7_3;
mod links;
mod toys;

use sparsegp_bench::papers::{BLANK, Body, Data, Entry};

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    figure7_1::ENTRY,
    figure7_2::ENTRY,
    figure7_3::ENTRY,
    links::BIJECTIVE,
    links::OVER,
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

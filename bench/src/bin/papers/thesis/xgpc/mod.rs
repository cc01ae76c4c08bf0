//! Chapter 3, X-GPC.

mod figure1;
mod table1;

use sparsegp_bench::papers::{BLANK, Body, Data, Entry};

const LIBSVM: &str = "the tables of LIBSVM and UCI are not bundled";

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    figure1::ENTRY,
    table1::ENTRY,
    Entry {
        name: "xgpc-table1-others",
        paper: "xgpc",
        item: "Table 1, the other twelve",
        shows: "error, NLL and seconds on twelve tables",
        data: &[Data::Folder {
            file: "SUSY.csv",
            size: (5_000_000, 18),
            from: "LIBSVM data, binary classification; so are aXa, Cod RNA, German, IJCNN, wXa and others",
        }],
        body: Body::NoData(LIBSVM),
        ..BLANK
    },
    Entry {
        name: "xgpc-figure2",
        paper: "xgpc",
        item: "Figure 2",
        shows: "NLL and error by time on Electricity, Cod RNA and SUSY",
        body: Body::NoData(LIBSVM),
        ..BLANK
    },
    Entry {
        name: "xgpc-figure3",
        paper: "xgpc",
        item: "Figure 3",
        shows: "error and time by the number of inducing points on Shuttle",
        body: Body::NoData(LIBSVM),
        ..BLANK
    },
    Entry {
        name: "xgpc-figures4-6",
        paper: "xgpc",
        item: "Figures 4 to 6",
        panels: 3,
        shows: "NLL and error by time on the other ten tables",
        body: Body::NoData(LIBSVM),
        ..BLANK
    },
];

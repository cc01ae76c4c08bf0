//! Chapter 3, X-GPC.

mod figure1;
mod table1;
mod time;

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
    time::SELECTED,
    time::POINTS,
    time::OTHERS,
];

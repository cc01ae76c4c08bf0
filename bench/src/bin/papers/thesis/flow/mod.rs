//! Chapter 6, Gaussian particle flow.

mod figure2;
mod figure3;
mod figure4;
mod figure5;
mod gaussian;
mod logistic;
mod methods;
mod network;

use sparsegp_bench::papers::{BLANK, Body, Entry};

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "flow-figure1",
        paper: "flow",
        item: "Figure 1",
        shows: "a scheme of the flow",
        body: Body::Drawing,
        ..BLANK
    },
    figure2::ENTRY,
    figure3::ENTRY,
    figure4::ENTRY,
    figure5::ENTRY,
    logistic::PLAIN,
    logistic::RMS_PROP,
    network::TABLE,
    network::BY_TIME,
    network::RELIABILITY,
];

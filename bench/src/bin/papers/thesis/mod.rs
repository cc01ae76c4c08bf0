//! Galy-Fajou 2022, *Latent variable augmentation for approximate Bayesian inference*, and the papers in it.

mod aaci;
mod augmented;
mod basics;
mod classes;
mod curves;
mod ep;
mod flow;
mod more;
mod oips;
mod xgpc;

use sparsegp_bench::papers::Entry;

/// Its experiments, chapter by chapter.
pub const CHAPTERS: [&[Entry]; 7] = [
    basics::ENTRIES,
    xgpc::ENTRIES,
    classes::ENTRIES,
    aaci::ENTRIES,
    flow::ENTRIES,
    more::ENTRIES,
    oips::ENTRIES,
];

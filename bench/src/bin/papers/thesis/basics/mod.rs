//! Chapters 1 and 2.

mod funnel;
mod paths;
mod processes;

use sparsegp_bench::papers::Entry;

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    funnel::CENTRED,
    funnel::NOT_CENTRED,
    processes::REGRESSION,
    processes::CLASSES,
    paths::GIBBS,
    paths::HAMILTONIAN,
];

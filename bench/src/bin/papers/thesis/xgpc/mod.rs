//! Chapter 3, X-GPC.

mod figure1;
mod table1;
mod time;

use sparsegp_bench::papers::Entry;

/// Its experiments.
pub const ENTRIES: &[Entry] =
    &[figure1::ENTRY, table1::ENTRY, table1::OTHERS, time::SELECTED, time::POINTS, time::OTHERS];

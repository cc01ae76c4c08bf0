//! Table 4: root mean square errors by minibatches.

use super::large::{DATA, OTHERS, PROTOCOL, SCALED, Score, judged};
use sparsegp_bench::papers::{Body, Entry, Printed};

/// The data sets at hand.
pub const ENTRY: Entry = Entry {
    name: "bounds-table4",
    paper: "bounds",
    item: "Table 4, kin40k and protein",
    panels: 2,
    shows: "test RMSE of the uncollapsed bounds, M = 1024",
    data: DATA,
    protocol: PROTOCOL,
    scaled: SCALED,
    printed: &[
        Printed { what: "kin40k, SVGP", value: 0.195, error: 0.001 },
        Printed { what: "kin40k, SVGP-new", value: 0.182, error: 0.001 },
        Printed { what: "protein, SVGP", value: 0.635, error: 0.004 },
        Printed { what: "protein, SVGP-new", value: 0.631, error: 0.004 },
    ],
    rule: "the new bound predicts better, by the mean difference of the splits; at full scale every number",
    body: Body::Program(|run| judged(run, &Score { bundled: true, ..SCORE })),
};

/// The others.
pub const NOT_BUNDLED: Entry = Entry {
    name: "bounds-table4-others",
    item: "Table 4, the other six",
    panels: 6,
    data: OTHERS,
    body: Body::WithData(|run| judged(run, &SCORE)),
    ..ENTRY
};

const SCORE: Score =
    Score { name: "Test RMSE", of: |s| s.1, sign: -1.0, bundled: false, timed: false };

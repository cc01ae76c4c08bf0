//! Table 2: test log densities by minibatches.

use super::large::{DATA, OTHERS, PROTOCOL, SCALED, Score, judged};
use sparsegp_bench::papers::{Body, Entry, Printed};

/// The data sets at hand.
pub const ENTRY: Entry = Entry {
    name: "bounds-table2",
    paper: "bounds",
    item: "Table 2, kin40k and protein",
    panels: 2,
    shows: "test log density of the uncollapsed bounds, M = 1024",
    data: DATA,
    protocol: PROTOCOL,
    scaled: SCALED,
    printed: &[
        Printed { what: "kin40k, SVGP", value: 0.108, error: 0.002 },
        Printed { what: "kin40k, SVGP-new", value: 0.152, error: 0.002 },
        Printed { what: "protein, SVGP", value: -0.969, error: 0.006 },
        Printed { what: "protein, SVGP-new", value: -0.965, error: 0.006 },
        Printed { what: "keggdirected, SVGP", value: 1.042, error: 0.009 },
        Printed { what: "keggdirected, SVGP-new", value: 1.044, error: 0.009 },
        Printed { what: "keggu, SVGP", value: 0.699, error: 0.005 },
        Printed { what: "keggu, SVGP-new", value: 0.699, error: 0.005 },
        Printed { what: "3droad, SVGP", value: -0.704, error: 0.003 },
        Printed { what: "3droad, SVGP-new", value: -0.701, error: 0.003 },
        Printed { what: "song, SVGP", value: -1.192, error: 0.001 },
        Printed { what: "song, SVGP-new", value: -1.192, error: 0.001 },
        Printed { what: "buzz, SVGP", value: -0.069, error: 0.002 },
        Printed { what: "buzz, SVGP-new", value: -0.065, error: 0.002 },
        Printed { what: "houseelectric, SVGP", value: 1.383, error: 0.002 },
        Printed { what: "houseelectric, SVGP-new", value: 1.387, error: 0.002 },
    ],
    rule: "the new bound predicts better, by the mean difference of the splits; at full scale every \
               number; its training takes less than \
           1.05 times as long",
    body: Body::Program(|run| judged(run, &Score { bundled: true, ..SCORE })),
};

/// The others.
pub const NOT_BUNDLED: Entry = Entry {
    name: "bounds-table2-others",
    item: "Table 2, the other six",
    panels: 6,
    data: OTHERS,
    body: Body::WithData(|run| judged(run, &SCORE)),
    ..ENTRY
};

const SCORE: Score =
    Score { name: "Test log density", of: |s| s.0, sign: 1.0, bundled: false, timed: true };

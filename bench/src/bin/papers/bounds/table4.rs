//! Table 4: root mean square errors by minibatches.

use super::large::{DATA, ORDER, OTHERS, PROTOCOL, SCALED, Score, judged};
use sparsegp_bench::papers::{Body, Entry, Printed};

/// The data sets at hand.
pub const ENTRY: Entry = Entry {
    name: "bounds-table4",
    paper: "bounds",
    item: "Table 4, kin40k and protein",
    panels: 2,
    shows: "test RMSE of the uncollapsed bounds, M = 1024 and 2048, beside ODVGP and SOLVE-GP",
    data: DATA,
    protocol: PROTOCOL,
    scaled: SCALED,
    printed: &[
        Printed { what: "kin40k, SVGP", value: 0.195, error: 0.001 },
        Printed { what: "kin40k, SVGP-new", value: 0.182, error: 0.001 },
        Printed { what: "kin40k, ODVGP, M + M", value: 0.183, error: 0.001 },
        Printed { what: "kin40k, SOLVE-GP, M + M", value: 0.172, error: 0.001 },
        Printed { what: "kin40k, SVGP, 2M", value: 0.171, error: 0.0005 },
        Printed { what: "kin40k, SVGP-new, 2M", value: 0.158, error: 0.0005 },
        Printed { what: "protein, SVGP", value: 0.635, error: 0.004 },
        Printed { what: "protein, SVGP-new", value: 0.631, error: 0.004 },
        Printed { what: "protein, ODVGP, M + M", value: 0.625, error: 0.004 },
        Printed { what: "protein, SOLVE-GP, M + M", value: 0.618, error: 0.004 },
        Printed { what: "protein, SVGP, 2M", value: 0.619, error: 0.004 },
        Printed { what: "protein, SVGP-new, 2M", value: 0.615, error: 0.004 },
        Printed { what: "keggdirected, SVGP", value: 0.086, error: 0.001 },
        Printed { what: "keggdirected, SVGP-new", value: 0.086, error: 0.001 },
        Printed { what: "keggdirected, ODVGP, M + M", value: 0.176, error: 0.012 },
        Printed { what: "keggdirected, SOLVE-GP, M + M", value: 0.095, error: 0.002 },
        Printed { what: "keggdirected, SVGP, 2M", value: 0.086, error: 0.001 },
        Printed { what: "keggdirected, SVGP-new, 2M", value: 0.086, error: 0.001 },
        Printed { what: "keggu, SVGP", value: 0.122, error: 0.001 },
        Printed { what: "keggu, SVGP-new", value: 0.122, error: 0.001 },
        Printed { what: "keggu, ODVGP, M + M", value: 0.156, error: 0.004 },
        Printed { what: "keggu, SOLVE-GP, M + M", value: 0.123, error: 0.001 },
        Printed { what: "keggu, SVGP, 2M", value: 0.121, error: 0.001 },
        Printed { what: "keggu, SVGP-new, 2M", value: 0.121, error: 0.001 },
        Printed { what: "3droad, SVGP", value: 0.486, error: 0.002 },
        Printed { what: "3droad, SVGP-new", value: 0.484, error: 0.001 },
        Printed { what: "3droad, ODVGP, M + M", value: 0.467, error: 0.001 },
        Printed { what: "3droad, SOLVE-GP, M + M", value: 0.464, error: 0.001 },
        Printed { what: "3droad, SVGP, 2M", value: 0.46, error: 0.002 },
        Printed { what: "3droad, SVGP-new, 2M", value: 0.461, error: 0.002 },
        Printed { what: "song, SVGP", value: 0.797, error: 0.001 },
        Printed { what: "song, SVGP-new", value: 0.796, error: 0.001 },
        Printed { what: "song, ODVGP, M + M", value: 0.797, error: 0.001 },
        Printed { what: "song, SOLVE-GP, M + M", value: 0.796, error: 0.001 },
        Printed { what: "song, SVGP, 2M", value: 0.795, error: 0.001 },
        Printed { what: "song, SVGP-new, 2M", value: 0.795, error: 0.001 },
        Printed { what: "buzz, SVGP", value: 0.261, error: 0.001 },
        Printed { what: "buzz, SVGP-new", value: 0.259, error: 0.001 },
        Printed { what: "buzz, ODVGP, M + M", value: 0.263, error: 0.001 },
        Printed { what: "buzz, SOLVE-GP, M + M", value: 0.261, error: 0.001 },
        Printed { what: "buzz, SVGP, 2M", value: 0.26, error: 0.001 },
        Printed { what: "buzz, SVGP-new, 2M", value: 0.258, error: 0.0005 },
        Printed { what: "houseelectric, SVGP", value: 0.059, error: 0.0005 },
        Printed { what: "houseelectric, SVGP-new", value: 0.058, error: 0.0005 },
        Printed { what: "houseelectric, ODVGP, M + M", value: 0.062, error: 0.0005 },
        Printed { what: "houseelectric, SOLVE-GP, M + M", value: 0.061, error: 0.0005 },
        Printed { what: "houseelectric, SVGP, 2M", value: 0.057, error: 0.0005 },
        Printed { what: "houseelectric, SVGP-new, 2M", value: 0.057, error: 0.0005 },
    ],
    rule: ORDER,
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

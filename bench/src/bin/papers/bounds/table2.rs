//! Table 2: test log densities by minibatches.

use super::large::{DATA, OTHERS, PROTOCOL, SCALED, Score, judged};
use sparsegp_bench::papers::{Body, Entry, Printed};

/// The data sets at hand.
pub const ENTRY: Entry = Entry {
    name: "bounds-table2",
    paper: "bounds",
    item: "Table 2, kin40k and protein",
    panels: 2,
    shows: "test log density of the uncollapsed bounds, M = 1024 and 2048, beside ODVGP and SOLVE-GP",
    data: DATA,
    protocol: PROTOCOL,
    scaled: SCALED,
    printed: &[
        Printed { what: "kin40k, SVGP", value: 0.108, error: 0.002 },
        Printed { what: "kin40k, SVGP-new", value: 0.152, error: 0.003 },
        Printed { what: "kin40k, ODVGP, M + M", value: 0.137, error: 0.003 },
        Printed { what: "kin40k, SOLVE-GP, M + M", value: 0.187, error: 0.002 },
        Printed { what: "kin40k, SVGP, 2M", value: 0.237, error: 0.002 },
        Printed { what: "kin40k, SVGP-new, 2M", value: 0.286, error: 0.002 },
        Printed { what: "protein, SVGP", value: -0.969, error: 0.006 },
        Printed { what: "protein, SVGP-new", value: -0.965, error: 0.006 },
        Printed { what: "protein, ODVGP, M + M", value: -0.956, error: 0.005 },
        Printed { what: "protein, SOLVE-GP, M + M", value: -0.943, error: 0.005 },
        Printed { what: "protein, SVGP, 2M", value: -0.944, error: 0.006 },
        Printed { what: "protein, SVGP-new, 2M", value: -0.938, error: 0.006 },
        Printed { what: "keggdirected, SVGP", value: 1.042, error: 0.009 },
        Printed { what: "keggdirected, SVGP-new", value: 1.044, error: 0.009 },
        Printed { what: "keggdirected, ODVGP, M + M", value: -0.199, error: 0.067 },
        Printed { what: "keggdirected, SOLVE-GP, M + M", value: 0.973, error: 0.003 },
        Printed { what: "keggdirected, SVGP, 2M", value: 1.05, error: 0.009 },
        Printed { what: "keggdirected, SVGP-new, 2M", value: 1.051, error: 0.009 },
        Printed { what: "keggu, SVGP", value: 0.699, error: 0.005 },
        Printed { what: "keggu, SVGP-new", value: 0.699, error: 0.005 },
        Printed { what: "keggu, ODVGP, M + M", value: 0.105, error: 0.033 },
        Printed { what: "keggu, SOLVE-GP, M + M", value: 0.68, error: 0.003 },
        Printed { what: "keggu, SVGP, 2M", value: 0.703, error: 0.005 },
        Printed { what: "keggu, SVGP-new, 2M", value: 0.703, error: 0.005 },
        Printed { what: "3droad, SVGP", value: -0.704, error: 0.003 },
        Printed { what: "3droad, SVGP-new", value: -0.701, error: 0.003 },
        Printed { what: "3droad, ODVGP, M + M", value: -0.664, error: 0.003 },
        Printed { what: "3droad, SOLVE-GP, M + M", value: -0.659, error: 0.002 },
        Printed { what: "3droad, SVGP, 2M", value: -0.65, error: 0.003 },
        Printed { what: "3droad, SVGP-new, 2M", value: -0.651, error: 0.004 },
        Printed { what: "song, SVGP", value: -1.192, error: 0.001 },
        Printed { what: "song, SVGP-new", value: -1.192, error: 0.001 },
        Printed { what: "song, ODVGP, M + M", value: -1.193, error: 0.001 },
        Printed { what: "song, SOLVE-GP, M + M", value: -1.192, error: 0.001 },
        Printed { what: "song, SVGP, 2M", value: -1.19, error: 0.001 },
        Printed { what: "song, SVGP-new, 2M", value: -1.19, error: 0.001 },
        Printed { what: "buzz, SVGP", value: -0.069, error: 0.002 },
        Printed { what: "buzz, SVGP-new", value: -0.065, error: 0.002 },
        Printed { what: "buzz, ODVGP, M + M", value: -0.078, error: 0.001 },
        Printed { what: "buzz, SOLVE-GP, M + M", value: -0.071, error: 0.001 },
        Printed { what: "buzz, SVGP, 2M", value: -0.063, error: 0.001 },
        Printed { what: "buzz, SVGP-new, 2M", value: -0.06, error: 0.001 },
        Printed { what: "houseelectric, SVGP", value: 1.383, error: 0.002 },
        Printed { what: "houseelectric, SVGP-new", value: 1.387, error: 0.003 },
        Printed { what: "houseelectric, ODVGP, M + M", value: 1.317, error: 0.002 },
        Printed { what: "houseelectric, SOLVE-GP, M + M", value: 1.333, error: 0.003 },
        Printed { what: "houseelectric, SVGP, 2M", value: 1.419, error: 0.002 },
        Printed { what: "houseelectric, SVGP-new, 2M", value: 1.421, error: 0.002 },
    ],
    rule: "pairs of methods are in the printed order, by the mean difference of the splits (pairs that are printed \
           as equal: within two standard errors); at full scale every number; SVGP-new trains in less than 1.05 times \
           the time of SVGP",
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

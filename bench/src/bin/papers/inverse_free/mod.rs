//! Cortinovis et al., *Inverse-free sparse variational Gaussian processes*.

use sparsegp_bench::papers::{BLANK, Body, Data, Entry};

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "inverse-free-figure1",
        paper: "inverse-free",
        item: "Figure 1",
        panels: 2,
        shows: "the loss by iteration of seven variants on snelson and banana",
        data: &[Data::Bundled("snelson"), Data::Bundled("banana")],
        body: Body::NotYet("`--bin inverse_free -- figure1` makes it"),
        ..BLANK
    },
    Entry {
        name: "inverse-free-figure2",
        paper: "inverse-free",
        item: "Figure 2",
        panels: 8,
        shows: "test NLPD by seconds of three methods on elevators and kin40k, M = 256 to 2048",
        data: &[Data::Bundled("elevators"), Data::Bundled("kin40k")],
        body: Body::NotYet("`--bin inverse_free -- figure2` makes it"),
        ..BLANK
    },
    Entry {
        name: "inverse-free-table1",
        paper: "inverse-free",
        item: "Table 1",
        shows: "test NLPD of deep models on kin40k by layers and methods",
        data: &[Data::Bundled("kin40k")],
        body: Body::NotYet("`--bin deep -- table1` makes it"),
        ..BLANK
    },
    Entry {
        name: "inverse-free-table2-rbf",
        paper: "inverse-free",
        item: "Table 2, RBF",
        shows: "error on digits by images as inducing points",
        data: &[Data::Substitute { of: "MNIST (60 000 + 10 000)", by: "mnist-t10k" }],
        body: Body::NotYet("`--bin deep -- table2 --only RBF` makes it"),
        ..BLANK
    },
    Entry {
        name: "inverse-free-table2-conv",
        paper: "inverse-free",
        item: "Table 2, convolution",
        shows: "error on digits by patches as inducing points",
        data: &[Data::Substitute { of: "MNIST (60 000 + 10 000)", by: "mnist-t10k" }],
        body: Body::NotYet("`--bin deep -- table2` makes it"),
        ..BLANK
    },
    Entry {
        name: "inverse-free-figure-s1",
        paper: "inverse-free",
        item: "Figure S1",
        shows: "test NLPD by seconds with traces by probes or exact",
        data: &[Data::Bundled("elevators"), Data::Bundled("kin40k")],
        body: Body::NotYet("M = 1024 with 1, 16, 64 and 256 probes and exact traces"),
        ..BLANK
    },
];

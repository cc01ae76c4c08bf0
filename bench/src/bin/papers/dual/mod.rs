//! Adam, Chang, Khan & Solin 2021, *Dual parameterization of sparse variational Gaussian processes*.

use sparsegp_bench::papers::{BLANK, Body, Data, Entry};

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "dual-figure1-left",
        paper: "dual",
        item: "Figure 1, left",
        shows: "the bound as a function of the kernel's variance from one q, for several forms of q",
        data: &[Data::Simulated("a noisy sinc, thresholded, 100 rows")],
        body: Body::NotYet("`--bin dual -- toy` makes it"),
        ..BLANK
    },
    Entry {
        name: "dual-figure1-right",
        paper: "dual",
        item: "Figure 1, right",
        shows: "paths of coordinate ascent in variance and lengthscale by three forms of q",
        data: &[Data::Bundled("banana")],
        body: Body::NotYet("EM from (1, 1), drawn in the plane of the hyperparameters"),
        ..BLANK
    },
    Entry {
        name: "dual-figure2",
        paper: "dual",
        item: "Figure 2",
        shows: "what an M-step makes of every old variance, and the path of EM over the bound",
        data: &[Data::Simulated("the noisy sinc of Figure 1")],
        body: Body::NotYet("`--bin dual -- toy` makes a part of it"),
        ..BLANK
    },
    Entry {
        name: "dual-figure3",
        paper: "dual",
        item: "Figure 3",
        shows: "bound and NLPD by rounds of EM on six tables",
        data: &[
            Data::Bundled("airfoil"),
            Data::Bundled("housing"),
            Data::Bundled("concrete"),
            Data::Bundled("sonar"),
            Data::Bundled("ionosphere"),
            Data::Bundled("diabetes"),
        ],
        body: Body::NotYet("`--bin dual -- folds` makes it"),
        ..BLANK
    },
    Entry {
        name: "dual-figure4",
        paper: "dual",
        item: "Figure 4",
        shows: "NLPD and bound of digits by the clock",
        data: &[Data::Substitute { of: "MNIST (60 000 + 10 000)", by: "mnist-t10k" }],
        body: Body::NotYet("`--bin dual -- mnist` makes it"),
        ..BLANK
    },
    Entry {
        name: "dual-table1",
        paper: "dual",
        item: "Table 1",
        shows: "NLPD of digits by learning rates and steps of E and M",
        data: &[Data::Substitute { of: "MNIST (60 000 + 10 000)", by: "mnist-t10k" }],
        body: Body::NotYet("six settings of rates and steps, three seeds"),
        ..BLANK
    },
    Entry {
        name: "dual-figure5",
        paper: "dual",
        item: "Figure 5",
        shows: "seconds of 100 iterations by the number of inducing points",
        data: &[Data::Substitute { of: "MNIST (60 000 + 10 000)", by: "mnist-t10k" }],
        body: Body::NotYet("a sweep over M"),
        ..BLANK
    },
];

//! Chapter 6, particles.

use sparsegp_bench::papers::{BLANK, Body, Data, Entry};

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
    Entry {
        name: "flow-figure2",
        paper: "flow",
        item: "Figure 2",
        shows: "errors of mean and covariance by time, Gaussian targets of three conditions",
        data: &[Data::Simulated("Gaussian targets of 20 dimensions")],
        body: Body::NotYet("`--bin flows -- gaussian` makes it"),
        ..BLANK
    },
    Entry {
        name: "flow-figure3",
        paper: "flow",
        item: "Figure 3",
        shows: "missing variance by the number of particles",
        data: &[Data::Simulated("Gaussian targets of 50 dimensions")],
        body: Body::NotYet("`--bin flows -- rank` makes it"),
        ..BLANK
    },
    Entry {
        name: "flow-figure4",
        paper: "flow",
        item: "Figure 4",
        shows: "errors in 500 dimensions of which few matter",
        data: &[Data::Simulated("Gaussian targets of 500 dimensions")],
        body: Body::NotYet("`--bin flows -- low-rank` makes it"),
        ..BLANK
    },
    Entry {
        name: "flow-figure5",
        paper: "flow",
        item: "Figure 5",
        shows: "particles on a banana by rules of steps",
        data: &[Data::Simulated("a banana-shaped density")],
        body: Body::NotYet("`--bin flows -- banana` makes a part of it"),
        ..BLANK
    },
    Entry {
        name: "flow-figure6",
        paper: "flow",
        item: "Figure 6",
        shows: "NLL of logistic regression by time on four tables",
        data: &[
            Data::Bundled("ionosphere"),
            Data::Substitute { of: "spam, krkp and mushroom", by: "sonar" },
            Data::Substitute { of: "spam, krkp and mushroom", by: "heart" },
        ],
        body: Body::NotYet("`--bin flows -- logistic` makes it"),
        ..BLANK
    },
    Entry {
        name: "flow-figure-a1",
        paper: "flow",
        item: "Figure A1",
        shows: "the same with RMSProp",
        data: &[Data::Bundled("ionosphere")],
        body: Body::NotYet("`--bin flows -- logistic` makes it"),
        ..BLANK
    },
    Entry {
        name: "flow-table1",
        paper: "flow",
        item: "Table 1",
        shows: "NLL, accuracy and ECE of a Bayesian network on digits",
        data: &[Data::Substitute { of: "MNIST (60 000 + 10 000)", by: "mnist-t10k" }],
        body: Body::NotYet("`--bin flows -- network` makes it"),
        ..BLANK
    },
    Entry {
        name: "flow-figure-a2",
        paper: "flow",
        item: "Figure A2",
        shows: "error and NLL of the network by time",
        data: &[Data::Substitute { of: "MNIST (60 000 + 10 000)", by: "mnist-t10k" }],
        body: Body::NotYet("scores on the way"),
        ..BLANK
    },
    Entry {
        name: "flow-figure-a3",
        paper: "flow",
        item: "Figure A3",
        shows: "accuracy of the network by confidence",
        data: &[Data::Substitute { of: "MNIST (60 000 + 10 000)", by: "mnist-t10k" }],
        body: Body::NotYet("a reliability diagram"),
        ..BLANK
    },
];

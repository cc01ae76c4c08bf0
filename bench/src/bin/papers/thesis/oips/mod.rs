//! Appendix A, points chosen on the way.

use sparsegp_bench::papers::{BLANK, Body, Data, Entry};

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "oips-figure1",
        paper: "oips",
        item: "Figure 1",
        shows: "a series and the points that are chosen along it",
        data: &[Data::Simulated("a long series")],
        body: Body::NotYet("`--bin streams -- long` makes it"),
        ..BLANK
    },
    Entry {
        name: "oips-figure2",
        paper: "oips",
        item: "Figure 2",
        shows: "test NLL after every batch for three series",
        data: &[Data::Simulated("three series of four batches")],
        body: Body::NotYet("`--bin streams -- toy` makes it"),
        ..BLANK
    },
    Entry {
        name: "oips-figure3",
        paper: "oips",
        item: "Figure 3",
        shows: "log probabilities of chosen sets under the k-DPP",
        data: &[Data::Substitute { of: "Abalone (4177 rows, 7 inputs)", by: "energy" }],
        body: Body::NotYet("`--bin streams -- points` makes it"),
        ..BLANK
    },
    Entry {
        name: "oips-figure4",
        paper: "oips",
        item: "Figure 4",
        shows: "how many points are chosen, and the bound of Theorem 1",
        data: &[Data::Simulated("rows uniform in a cube")],
        body: Body::NotYet("`--bin streams -- points` makes it"),
        ..BLANK
    },
    Entry {
        name: "oips-figure5",
        paper: "oips",
        item: "Figure 5",
        shows: "what the chosen points leave, and bounds on it",
        data: &[Data::Simulated("rows uniform in a cube")],
        body: Body::NotYet("`--bin streams -- points` makes it"),
        ..BLANK
    },
];

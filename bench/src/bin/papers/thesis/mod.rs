//! Galy-Fajou 2022, *Latent variable augmentation for approximate Bayesian inference*, and the papers in it.

use sparsegp_bench::papers::{BLANK, Body, Data, Entry};

/// Its experiments.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "basics-figure1.1",
        paper: "basics",
        item: "Figure 1.1",
        shows: "Neal's funnel, centred, with samples",
        data: &[Data::Simulated("Neal's funnel")],
        body: Body::NotYet("the density and draws of NUTS"),
        ..BLANK
    },
    Entry {
        name: "basics-figure1.2",
        paper: "basics",
        item: "Figure 1.2",
        shows: "Neal's funnel, not centred, with samples",
        data: &[Data::Simulated("Neal's funnel")],
        body: Body::NotYet("the density and draws of NUTS"),
        ..BLANK
    },
    Entry {
        name: "basics-figure2.1",
        paper: "basics",
        item: "Figure 2.1",
        shows: "prior and posterior of a Gaussian process",
        data: &[Data::Simulated("a few points of a curve")],
        body: Body::NotYet("draws from prior and posterior"),
        ..BLANK
    },
    Entry {
        name: "basics-figure2.2",
        paper: "basics",
        item: "Figure 2.2",
        shows: "a latent process and the probability of a class",
        data: &[Data::Simulated("a few classes along a line")],
        body: Body::NotYet("draws and their logistic images"),
        ..BLANK
    },
    Entry {
        name: "basics-figure2.3",
        paper: "basics",
        item: "Figure 2.3",
        shows: "twenty Gibbs steps on Rosenbrock's density",
        data: &[Data::Simulated("Rosenbrock's density")],
        body: Body::NotYet("`--bin augmented -- paths` makes it"),
        ..BLANK
    },
    Entry {
        name: "basics-figure2.4",
        paper: "basics",
        item: "Figure 2.4",
        shows: "twenty Hamiltonian paths on Rosenbrock's density",
        data: &[Data::Simulated("Rosenbrock's density")],
        body: Body::NotYet("`--bin augmented -- paths` makes it"),
        ..BLANK
    },
    Entry {
        name: "xgpc-figure1",
        paper: "xgpc",
        item: "Figure 1",
        shows: "μ, σ and p of X-GPC against a long chain",
        data: &[Data::Bundled("diabetes")],
        body: Body::NotYet("`cavi-full` against `gibbs` at the same hyperparameters"),
        ..BLANK
    },
    Entry {
        name: "xgpc-table1",
        paper: "xgpc",
        item: "Table 1, diabetes",
        shows: "error, NLL and seconds of X-GPC, SVGPC and EPGPC",
        data: &[Data::Bundled("diabetes")],
        body: Body::NotYet("`--bin augmented -- folds diabetes` makes it, without EP"),
        ..BLANK
    },
    Entry {
        name: "xgpc-table1-others",
        paper: "xgpc",
        item: "Table 1, the other twelve",
        shows: "error, NLL and seconds on twelve tables",
        data: &[Data::Folder {
            file: "SUSY.csv",
            size: (5000000, 18),
            from: "LIBSVM data, binary classification: aXa, Bank, Click, Cod RNA, Electricity, German, Higgs, IJCNN, Shuttle, SUSY, wXa",
        }],
        body: Body::NoData("the tables of LIBSVM and UCI are not bundled"),
        ..BLANK
    },
    Entry {
        name: "xgpc-figure2",
        paper: "xgpc",
        item: "Figure 2",
        shows: "NLL and error by time on Electricity, Cod RNA and SUSY",
        body: Body::NoData("Electricity, Cod RNA and SUSY are not bundled"),
        ..BLANK
    },
    Entry {
        name: "xgpc-figure3",
        paper: "xgpc",
        item: "Figure 3",
        shows: "error and time by the number of inducing points on Shuttle",
        body: Body::NoData("Shuttle is not bundled"),
        ..BLANK
    },
    Entry {
        name: "xgpc-figures4-6",
        paper: "xgpc",
        item: "Figures 4 to 6",
        panels: 3,
        shows: "NLL and error by time on the other ten tables",
        body: Body::NoData("the tables are not bundled but for diabetes"),
        ..BLANK
    },
    Entry {
        name: "classes-figure1",
        paper: "classes",
        item: "Figure 1",
        shows: "a scheme of the augmentation",
        body: Body::Drawing,
        ..BLANK
    },
    Entry {
        name: "classes-figure2",
        paper: "classes",
        item: "Figure 2",
        shows: "a scheme of the model",
        body: Body::Drawing,
        ..BLANK
    },
    Entry {
        name: "classes-figure3",
        paper: "classes",
        item: "Figure 3",
        shows: "confidence histograms and reliability of four likelihoods",
        data: &[Data::Simulated("three overlapping clusters")],
        body: Body::NotYet("`--bin augmented -- calibration` gives the ECE"),
        ..BLANK
    },
    Entry {
        name: "classes-figure4",
        paper: "classes",
        item: "Figure 4",
        shows: "error, NLL and ECE by the variance of the clusters",
        data: &[Data::Simulated("three overlapping clusters")],
        body: Body::NotYet("`--bin augmented -- calibration` gives the table"),
        ..BLANK
    },
    Entry {
        name: "classes-figure5",
        paper: "classes",
        item: "Figure 5",
        shows: "p, μ and σ² of two variational methods against Gibbs on wine",
        data: &[Data::Folder {
            file: "wine.csv",
            size: (178, 13),
            from: "UCI Wine; `sklearn.datasets.load_wine`",
        }],
        body: Body::NotYet("reader of the table, `svgp` and `cavi` against `gibbs`"),
        ..BLANK
    },
    Entry {
        name: "classes-figure6",
        paper: "classes",
        item: "Figure 6",
        shows: "NLL and time by the number of inducing points, shared or own, on Shuttle",
        body: Body::NoData("Shuttle (nine classes) is not bundled"),
        ..BLANK
    },
    Entry {
        name: "classes-figure7",
        paper: "classes",
        item: "Figure 7",
        shows: "error and NLL by time on seven tables of classes",
        data: &[Data::Substitute { of: "MNIST, Fashion, CovType and others", by: "mnist-t10k" }],
        body: Body::NotYet("`--bin augmented -- mnist` gives the end of each curve"),
        ..BLANK
    },
    Entry {
        name: "aaci-figure1",
        paper: "aaci",
        item: "Figure 1; Table 1",
        shows: "a scheme, and the list of likelihoods, all of which are built",
        body: Body::Drawing,
        ..BLANK
    },
    Entry {
        name: "aaci-table2",
        paper: "aaci",
        item: "Table 2",
        shows: "time, correlation and R-hat of three samplers for four likelihoods",
        data: &[Data::Bundled("heart"), Data::Bundled("housing")],
        body: Body::NotYet("`--bin augmented -- sampling` makes it"),
        ..BLANK
    },
    Entry {
        name: "aaci-table3",
        paper: "aaci",
        item: "Table 3",
        shows: "Hamiltonian chains of Laplace noise by step and number of steps",
        data: &[Data::Bundled("housing")],
        body: Body::NotYet("`--bin augmented -- sampling --grid` makes it"),
        ..BLANK
    },
    Entry {
        name: "aaci-table4",
        paper: "aaci",
        item: "Table 4",
        shows: "Hamiltonian chains of Student-t noise by step and number of steps",
        data: &[Data::Bundled("housing")],
        body: Body::NotYet("`--bin augmented -- sampling --grid` makes it"),
        ..BLANK
    },
    Entry {
        name: "aaci-table5",
        paper: "aaci",
        item: "Table 5",
        shows: "Hamiltonian chains of logistic data by step and number of steps",
        data: &[Data::Bundled("heart")],
        body: Body::NotYet("`--bin augmented -- sampling --grid` makes it"),
        ..BLANK
    },
    Entry {
        name: "aaci-figure2",
        paper: "aaci",
        item: "Figures 2 and 5",
        shows: "bound and NLL by lengthscale, with local variables and without",
        data: &[Data::Bundled("heart"), Data::Bundled("housing")],
        body: Body::NotYet("`--bin augmented -- gap` makes it for the logistic likelihood"),
        ..BLANK
    },
    Entry {
        name: "aaci-figure3",
        paper: "aaci",
        item: "Figures 3 and 6",
        shows: "NLL and error by time for four likelihoods on large tables",
        data: &[Data::Substitute { of: "Protein, Airline, Covtype and SUSY", by: "protein" }],
        body: Body::NotYet("`--bin augmented -- speed` makes it for Student-t noise"),
        ..BLANK
    },
    Entry {
        name: "aaci-figure4",
        paper: "aaci",
        item: "Figure 4",
        shows: "autocorrelations of three samplers for four likelihoods",
        data: &[Data::Bundled("heart"), Data::Bundled("housing")],
        body: Body::NotYet("autocorrelations at lags up to ten"),
        ..BLANK
    },
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
    Entry {
        name: "more-figure7.1",
        paper: "more",
        item: "Figure 7.1",
        shows: "how the error of CAVI decays, by likelihood",
        data: &[Data::Simulated("a toy of one input")],
        body: Body::NotYet("distances of q by iteration"),
        ..BLANK
    },
    Entry {
        name: "more-figure7.2",
        paper: "more",
        item: "Figure 7.2",
        shows: "noise that depends on the input, by Gibbs and by CAVI",
        data: &[Data::Simulated("a heteroscedastic toy")],
        body: Body::NotYet("`heteroscedastic` by `gibbs` and `cavi`"),
        ..BLANK
    },
    Entry {
        name: "more-figure7.3",
        paper: "more",
        item: "Figure 7.3",
        shows: "autocorrelations of five samplers for Student-t noise",
        data: &[Data::Bundled("housing")],
        body: Body::NotYet("`--bin augmented -- correlation` makes it"),
        ..BLANK
    },
    Entry {
        name: "more-figure7.4",
        paper: "more",
        item: "Figure 7.4",
        shows: "classes by the bijective link, by VI and Gibbs, against the truth",
        data: &[Data::Simulated("a toy of classes")],
        body: Body::NotYet("a toy with the bijective link"),
        ..BLANK
    },
    Entry {
        name: "more-figure7.5",
        paper: "more",
        item: "Figure 7.5",
        shows: "classes by the scaled link, by VI and Gibbs, against the truth",
        data: &[Data::Simulated("a toy of classes")],
        body: Body::NotYet("a toy with the scaled link"),
        ..BLANK
    },
    Entry {
        name: "more-figure7.6",
        paper: "more",
        item: "Figure 7.6",
        shows: "NLL and error by time of CAVI, VI-Gibbs and HMC on Magic Telescope",
        body: Body::NoData("Magic Telescope (19 020 rows, 10 inputs, UCI) is not bundled"),
        ..BLANK
    },
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

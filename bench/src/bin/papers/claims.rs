//! What abstracts and texts say about speed and accuracy, with the checks that bear on it.

use sparsegp_bench::papers::Claim;

const fn claim(
    paper: &'static str,
    says: &'static str,
    checks: &'static [(&'static str, &'static str)],
) -> Claim {
    Claim { paper, says, checks }
}

/// All claims, in the order of the papers.
pub const CLAIMS: &[Claim] = &[
    claim(
        "dual",
        "the dual form gives a tighter bound for learning hyperparameters (natural ties of sites)",
        &[("dual-figure1-left", "tighter, natural ties")],
    ),
    claim(
        "dual",
        "so does the algorithm as it is printed",
        &[("dual-figure1-left", "tighter, ties as printed")],
    ),
    claim(
        "dual",
        "learning needs fewer rounds of EM",
        &[
            ("dual-figure1-right", "rounds"),
            ("dual-figure2", "t-SVGP"),
            ("dual-figure2", "q whitened"),
        ],
    ),
    claim(
        "dual",
        "inference and learning are faster: about five times on MNIST",
        &[("dual-figure4", "speed"), ("dual-figure5", "")],
    ),
    claim(
        "dual",
        "bounds and predictions are as good or better on six tables",
        &[("dual-figure3", "")],
    ),
    claim(
        "dual",
        "t-SVGP is equal or better under all settings of rates and steps",
        &[("dual-table1", "")],
    ),
    claim(
        "inverse-free",
        "R-SVGP with natural gradients and preconditioner is a drop-in replacement",
        &[
            ("inverse-free-figure1", "snelson: R-SVGP (NP)"),
            ("inverse-free-figure1", "banana: R-SVGP (NP)"),
        ],
    ),
    claim(
        "inverse-free",
        "it is faster in wall-clock time (on a GPU)",
        &[("inverse-free-figure2", "")],
    ),
    claim(
        "inverse-free",
        "deep models keep their accuracy without inverses",
        &[("inverse-free-table1", "")],
    ),
    claim(
        "inverse-free",
        "so do images and convolutions",
        &[("inverse-free-table2-rbf", ""), ("inverse-free-table2-conv", "")],
    ),
    claim(
        "inverse-free",
        "some tens of probes suffice for the traces",
        &[("inverse-free-figure-s1", "")],
    ),
    claim(
        "bounds",
        "the new collapsed bound is tighter, and below the log evidence",
        &[
            ("bounds-figure1", "objectives (e)"),
            ("bounds-figure2", "pol: new against old"),
            ("bounds-figure2", "bike: new against old"),
            ("bounds-figure2", "elevators: new against old"),
        ],
    ),
    claim(
        "bounds",
        "it reduces the bias of the noise variance",
        &[
            ("bounds-figure1", "σ² (f)"),
            ("bounds-figure2", "pol: σ²"),
            ("bounds-figure2", "bike: σ²"),
        ],
    ),
    claim(
        "bounds",
        "it predicts better than the bounds of 2009 and 2021",
        &[("bounds-table1", "")],
    ),
    claim(
        "bounds",
        "training by minibatches with the new bound predicts better",
        &[
            ("bounds-table2", "kin40k: SVGP-new against SVGP"),
            ("bounds-table2", "kin40k: SVGP-new, 2M against SVGP, 2M"),
            ("bounds-table2", "protein: SVGP-new against SVGP"),
            ("bounds-table2", "protein: SVGP-new, 2M against SVGP, 2M"),
            ("bounds-table4", "kin40k: SVGP-new against SVGP"),
            ("bounds-table4", "kin40k: SVGP-new, 2M against SVGP, 2M"),
            ("bounds-table4", "protein: SVGP-new against SVGP"),
            ("bounds-table4", "protein: SVGP-new, 2M against SVGP, 2M"),
        ],
    ),
    claim("bounds", "at no change of the cost", &[("bounds-table2", "cost")]),
    claim(
        "bounds",
        "the bound with one factor improves Poisson regression",
        &[
            ("bounds-figure3", "bound (middle)"),
            ("bounds-figure3", "predictions (left)"),
            ("bounds-table5", "M = 8"),
            ("bounds-table5", "M = 16"),
            ("bounds-table5", "M = 32"),
        ],
    ),
    claim("xgpc", "X-GPC is close to the true posterior", &[("xgpc-figure1", "")]),
    claim(
        "xgpc",
        "it predicts as well as other methods",
        &[("xgpc-table1", "error, X-GPC"), ("xgpc-table1", "NLL, X-GPC")],
    ),
    claim("xgpc", "it is one to two orders of magnitude faster", &[("xgpc-table1", "speed")]),
    claim(
        "classes",
        "logistic-softmax is better calibrated than other likelihoods",
        &[("classes-figure3", "ECE of logistic-softmax"), ("classes-figure4", "ECE")],
    ),
    claim(
        "classes",
        "its inference is ten times as fast as that of robust-max",
        &[("classes-figure7", "")],
    ),
    claim(
        "aaci",
        "Gibbs draws are less correlated than those of HMC",
        &[
            ("aaci-table2", "logistic: lag 1"),
            ("aaci-table2", "Student-t: lag 1"),
            ("aaci-table2", "Laplace: lag 1"),
            ("aaci-table2", "Matérn 3/2: lag 1"),
        ],
    ),
    claim(
        "aaci",
        "Gibbs gives more effective draws in a time",
        &[
            ("aaci-table2", "logistic: effective draws"),
            ("aaci-table2", "Student-t: effective draws"),
            ("aaci-table2", "Laplace: effective draws"),
            ("aaci-table2", "Matérn 3/2: effective draws"),
        ],
    ),
    claim(
        "aaci",
        "augmentation costs little of the bound and nothing of predictions",
        &[("aaci-figure2", "")],
    ),
    claim(
        "aaci",
        "variational inference is up to two orders of magnitude faster",
        &[("aaci-figure3", "")],
    ),
    claim(
        "flow",
        "the flow is exact for Gaussian targets",
        &[
            ("flow-figure2", "κ = 1: exact"),
            ("flow-figure2", "κ = 10: exact"),
            ("flow-figure2", "κ = 100: exact"),
            ("flow-figure3", ""),
        ],
    ),
    claim(
        "flow",
        "it is on par with other methods elsewhere",
        &[("flow-figure4", ""), ("flow-figure6", "")],
    ),
    claim(
        "flow",
        "Bayesian networks predict better than by SWAG and ELRGVI",
        &[("flow-table1", "GPF below SWAG"), ("flow-table1", "GPF below ELRGVI")],
    ),
    claim("more", "the error of CAVI decays exponentially", &[("more-figure7.1", "")]),
    claim(
        "more",
        "Gibbs has the smallest correlations and takes a fraction of the time of HMC",
        &[("more-figure7.3", "")],
    ),
    claim("oips", "points chosen on the way predict as well as others", &[("oips-figure2", "")]),
    claim(
        "oips",
        "chosen sets are more probable under a k-DPP than its own draws",
        &[("oips-figure3", "")],
    ),
    claim(
        "oips",
        "the expected number of points is bounded as printed (in the setting of the figure)",
        &[("oips-figure4", "bound as printed")],
    ),
    claim("oips", "what they leave is bounded (Theorem 2)", &[("oips-figure5", "")]),
];

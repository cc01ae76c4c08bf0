//! Likelihoods with local variables: `cargo run --release -p sparsegp-bench --bin augmented -- [WHAT] [OPTION VALUE …]`.
//!
//! - `folds [NAME …] [--folds K] [--methods A,B]` (the default): two classes against other inference, on the data sets of
//!   Wenzel et al. 2019 that are bundled.
//! - `sampling [--chains 5] [--draws 1000] [--lengthscale 3] [--grid]`: Gibbs against random walks and Hamiltonian Monte
//!   Carlo on `heart` (logistic) and `housing` (Student-t, Laplace, Matérn-3/2): Galy-Fajou, Wenzel & Opper 2020, Table 2;
//!   with `--grid` their grid of steps.
//! - `correlation [--draws 2000] [--burn-in 500] [--lengthscale 3]`: autocorrelation of f under Gibbs, Hamiltonian Monte Carlo
//!   and NUTS, with the local variables and without (Galy-Fajou 2022, Figure 7.3).
//! - `paths [--seed 1]`: twenty steps of Gibbs and of Hamiltonian Monte Carlo on Rosenbrock's density (ibid., Figures 2.3, 2.4).
//! - `gap [--points 13] [--variance 0.1] [--draws 1000]`: what the local variables cost, against lengthscales: the bound with
//!   them, the bound without, log evidence (ibid., Figure 5).
//! - `calibration [--levels 7] [--rows 500] [--iterations 30]`: three classes of overlapping clusters by softmax, robust-max and
//!   logistic-softmax (Galy-Fajou et al. 2020, §5.1).
//! - `classes [--side 10] [--rows 10000] [--inducing 100] [--batch 100] [--seconds 20]`: a hundred classes, all or some of
//!   which move in a step.
//! - `mnist [--inducing 100] [--batch 200] [--epochs 4]`: ten digits.
//! - `speed [--data protein] [--rows 20000] [--iterations 300]`: cost of an iteration of `svi`, `svgp` and `tsvgp` and time to
//!   their last test scores; a Gibbs sweep against its factorisation and products.
//!
//! All print Markdown; `--csv FILE` writes the same numbers, `--svg FILE` after `gap`, `correlation` and `paths` draws them.

mod calibration;
mod classes;
mod common;
mod correlation;
mod folds;
mod gap;
mod mnist;
mod paths;
mod sampling;
mod speed;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    match arguments.first().map(String::as_str) {
        Some("sampling") => sampling::run(rest),
        Some("correlation") => correlation::run(rest),
        Some("paths") => paths::run(rest),
        Some("gap") => gap::run(rest),
        Some("calibration") => calibration::run(rest),
        Some("classes") => classes::run(rest),
        Some("mnist") => mnist::run(rest),
        Some("speed") => speed::run(rest),
        Some("folds") => folds::run(rest),
        _ => folds::run(&arguments),
    }
}

//! Fits of medium size, which Table 1 and Figures 2 and 4 share.

use crate::common::{Split, fifths, judge};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, fit};
use sparsegp::inducing::select::Selection;
use sparsegp::optim::AdamOptions;
use sparsegp::train::{OptimiserKind, TrainOptions};
use sparsegp_bench::load;
use sparsegp_bench::papers::Run;

/// The data sets.
pub const NAMES: [&str; 3] = ["pol", "bike", "elevators"];

/// Methods and their names in the paper.
pub const METHODS: [(&str, &str); 4] = [
    ("exact", "Exact GP"),
    ("titsias2009", "SGPR"),
    ("spherical", "SGPR-artemev"),
    ("titsias2025", "SGPR-new"),
];

/// How large the fits are.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// Most rows to learn from.
    pub rows: usize,
    /// Splits.
    pub splits: u64,
    /// Iterations.
    pub iterations: usize,
    /// Whether Adam at 0.01 trains, as in the paper, instead of L-BFGS.
    pub adam: bool,
}

/// Returns the sizes of a run, of so many iterations at the scale `quick`, and says what is smaller.
pub fn sizes(run: &mut Run<'_>, quick: usize) -> Sizes {
    let rows = run.size([150, 2000, 10_600, 10_600]);
    if rows < 10_600 {
        run.smaller(format!("rows to learn from: {rows} for 9600 to 10 623"));
    }
    let iterations = run.size([5, quick, 300, 10_000]);
    let adam = iterations == 10_000;
    if !adam {
        run.smaller(format!("at most {iterations} iterations of L-BFGS for 10 000 steps of Adam"));
    }
    Sizes { rows, splits: run.size([1, 3, 3, 5]), iterations, adam }
}

/// Returns a split of a data set.
pub fn split(name: &str, seed: u64, sizes: &Sizes) -> Split {
    fifths(&load(name, false), seed, sizes.rows)
}

/// Trains a method on a split.
pub fn fitted(
    split: &Split,
    method: &str,
    inducing: usize,
    sizes: &Sizes,
    seed: u64,
) -> sparsegp::Result<Fitted> {
    let dataset = Dataset::from_arrays(split.x.clone(), split.y.clone(), true)?;
    let adam = AdamOptions { learning_rate: 0.01, ..AdamOptions::default() };
    let train = TrainOptions::default();
    let optimiser = if sizes.adam { OptimiserKind::Adam(adam) } else { train.optimiser.clone() };
    let options = FitOptions {
        kernel: "rbf(variance=0.4761, lengthscales=1.0)".into(),
        method: method.into(),
        inducing: Some(inducing),
        selection: Selection::KMeans,
        set: vec![("likelihood.variance".into(), vec![0.51 * 0.51])],
        lengthscale_prior: false,
        pilot: 0,
        seed,
        train: TrainOptions { optimiser, max_iterations: sizes.iterations, ..train },
        ..FitOptions::default()
    };
    fit(&dataset, &options, &Cpu::default(), &mut ())
}

/// Trains it, and returns the mean log density of the test rows.
pub fn score(
    split: &Split,
    method: &str,
    inducing: usize,
    sizes: &Sizes,
    seed: u64,
) -> sparsegp::Result<f64> {
    let fitted = fitted(split, method, inducing, sizes, seed)?;
    Ok(judge(&fitted, split)?.0)
}

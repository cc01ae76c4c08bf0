//! Options of `sparsegp compare`.

use crate::values;
use clap::Args;
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  sparsegp compare data.csv --target y --auto
  sparsegp compare data.csv --target y --method exact --method svgp
  sparsegp compare data.csv --target y --kernel rbf --kernel matern52 --kernel 'rbf + linear' --folds 10
  sparsegp compare data.csv --target y --splits 10 --split 0.1 --inducing 50 --inducing 200 -o runs.csv
  sparsegp compare claims.csv --target claims --likelihood poisson --likelihood negative-binomial
  sparsegp compare patients.csv --target y --group patient
  sparsegp compare data.csv --target y --test-mask masks.csv
  sparsegp compare sales.csv --target sales --ordered date -- --ignore id --epochs 20
  sparsegp compare sales.csv --target sales --ordered date --horizon 26w --kernel rbf --kernel matern32 -- --season 1y

With --auto the baselines are the kernels `constant` and `constant + linear`: how much better another choice is than
these is what a Gaussian process adds. Of whole numbers from 0 up, densities are compared with probabilities.

Every choice of --method, --kernel, --likelihood and --inducing is combined with every other; all are fitted
to the same rows and tested on the same rows. Options after `--` are passed to `sparsegp fit` for every choice,
see `sparsegp fit --help`.

The table has means over the divisions with their standard errors (slightly too small, because folds share
training rows). `behind` is the paired difference from the best choice in negative log predictive density,
with its standard error; differences below two standard errors are not significant.";

/// Options of `sparsegp compare`.
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER)]
pub struct CompareArgs {
    /// The table: CSV (plain or .gz) or Parquet
    pub data: PathBuf,
    /// Target column; repeat it for several targets
    #[arg(long, short, value_name = "COLUMN", required = true)]
    pub target: Vec<String>,

    /// Compare several kernels and the likelihoods that the targets allow, unless these are named, and two baselines: a
    /// constant and a line
    #[arg(long, help_heading = "What to compare")]
    pub auto: bool,
    /// Inference method, see `sparsegp methods`; repeat it to compare [default: auto]
    #[arg(long, short, value_parser = values::method, help_heading = "What to compare")]
    pub method: Vec<String>,
    /// Kernel, see `sparsegp kernels`; repeat it to compare [default: auto]
    #[arg(long, short, value_name = "SPEC", help_heading = "What to compare")]
    pub kernel: Vec<String>,
    /// Likelihood, see `sparsegp likelihoods`; repeat it to compare
    #[arg(long, short, value_name = "SPEC", value_parser = values::likelihood, help_heading = "What to compare")]
    pub likelihood: Vec<String>,
    /// Number of inducing points; repeat it to compare
    #[arg(long, allow_negative_numbers = true, value_name = "M", value_parser = values::at_least_one, help_heading = "What to compare")]
    pub inducing: Vec<usize>,

    /// Test on every row once, in this many random folds [default: 5]
    #[arg(long, allow_negative_numbers = true, value_name = "K", value_parser = at_least_two, help_heading = "How to divide the rows")]
    pub folds: Option<usize>,
    /// This many random splits instead; those of `fit --split F --seed S` for S from the seed on
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = values::at_least_one,
          conflicts_with_all = ["folds", "test_mask", "group", "ordered"], help_heading = "How to divide the rows")]
    pub splits: Option<usize>,
    /// Fraction of the rows that every split holds out [default: 0.1]
    #[arg(long, allow_negative_numbers = true, value_name = "FRACTION", value_parser = values::fraction, requires = "splits",
          help_heading = "How to divide the rows")]
    pub split: Option<f64>,
    /// A split from a file: the rows that are 1 in this column are tested on; repeatable. Without a column,
    /// one split for every column of the file
    #[arg(long, value_name = "FILE[:COLUMN]", conflicts_with_all = ["folds", "group", "ordered"],
          help_heading = "How to divide the rows")]
    pub test_mask: Vec<String>,
    /// Keep rows with equal values in this column (which is not an input) in the same fold
    #[arg(
        long,
        value_name = "COLUMN",
        conflicts_with = "ordered",
        help_heading = "How to divide the rows"
    )]
    pub group: Option<String>,
    /// Order the rows by this column, numbers or dates such as 2024-12-31 (an input only if it is a number);
    /// every fold is tested on after learning from all rows before it
    #[arg(long, value_name = "COLUMN", help_heading = "How to divide the rows")]
    pub ordered: Option<String>,
    /// With --ordered: learn up to as many cut-offs as there are folds, and test on the rows within this length after each, as
    /// `sparsegp backtest` does, such as 26w or a number of steps
    #[arg(
        long,
        value_name = "LENGTH",
        requires = "ordered",
        help_heading = "How to divide the rows"
    )]
    pub horizon: Option<String>,
    /// Seed of the divisions, and of everything random in training
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "N",
        default_value_t = 0,
        help_heading = "How to divide the rows"
    )]
    pub seed: u64,

    /// Write the scores of every training as CSV, while they come in
    #[arg(long, short, value_name = "FILE.csv", help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// Options of `sparsegp fit` for all, after `--`
    #[arg(last = true, value_name = "FIT OPTIONS", allow_hyphen_values = true)]
    pub fit: Vec<String>,
}

fn at_least_two(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 1 => Ok(n),
        _ => Err("must be a whole number, at least 2".into()),
    }
}

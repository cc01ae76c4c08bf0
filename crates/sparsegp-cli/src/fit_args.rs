//! Options of `sparsegp fit`.

use crate::data::MissingChoice;
use clap::{Args, ValueEnum};
use sparsegp::linalg::Jitter;
use sparsegp::{Error, error, means, methods};
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  sparsegp fit data.csv --target y -o model.safetensors
  sparsegp fit data.parquet --target y --split 0.1 --kernel 'matern52 + linear' --inducing 300
  sparsegp fit data.csv.gz --target y --features age,mass --plot fit.svg -o model.safetensors
  sparsegp fit data.csv --target y --set likelihood.variance=0.01 --freeze likelihood

Values given by --set are on the model's scale: inputs and targets are standardised (mean 0, standard
deviation 1 over the training rows) unless --no-standardise is given, so a lengthscale of 1 is one
standard deviation of its column. The table that is printed shows both scales. They are starting
values; --freeze keeps them.

Objective and scores are always in the data's own units.";

/// Options of `sparsegp fit`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct FitArgs {
    /// The table: CSV (plain or .gz) or Parquet
    pub data: PathBuf,

    /// Target column; repeat it for several targets, which then share kernel and noise
    #[arg(long, short, value_name = "COLUMN", required = true, help_heading = "Data")]
    pub target: Vec<String>,
    /// Input columns; by default every column that is neither a target nor ignored
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', help_heading = "Data")]
    pub features: Vec<String>,
    /// Columns to leave alone
    #[arg(
        long,
        value_name = "A,B,…",
        value_delimiter = ',',
        conflicts_with = "features",
        help_heading = "Data"
    )]
    pub ignore: Vec<String>,
    /// Hold out this fraction of the rows at random, and score on it
    #[arg(long, allow_negative_numbers = true, value_name = "FRACTION", value_parser = fraction, conflicts_with = "test_mask",
          help_heading = "Data")]
    pub split: Option<f64>,
    /// Hold out the rows that are 1 in this column of this file (0 elsewhere)
    #[arg(long, value_name = "FILE:COLUMN", help_heading = "Data")]
    pub test_mask: Option<String>,
    /// What to do with rows that lack a number
    #[arg(long, value_enum, default_value_t, help_heading = "Data")]
    pub missing: MissingChoice,
    /// Use inputs and targets as they stand
    #[arg(long, help_heading = "Data")]
    pub no_standardise: bool,
    /// Never hold the table in memory: read it again for every evaluation. By default for tables of
    /// more than 2 GB of numbers
    #[arg(long, help_heading = "Data")]
    pub stream: bool,

    /// Kernel, such as `rbf`, `matern52 + linear` or JSON; see `sparsegp kernels`
    #[arg(long, short, value_name = "SPEC", default_value = "rbf", help_heading = "Model")]
    pub kernel: String,
    /// Mean function: zero, constant or linear; by default zero (constant with --no-standardise)
    #[arg(long, value_parser = mean, help_heading = "Model")]
    pub mean: Option<String>,
    /// Inference method, see `sparsegp methods`; auto is exact up to 2000 rows, else titsias2025
    #[arg(long, short, default_value = "auto", value_parser = method, help_heading = "Model")]
    pub method: String,
    /// Number of inducing points of the sparse methods; by default 512
    #[arg(long, allow_negative_numbers = true, value_name = "M", value_parser = at_least_one, help_heading = "Model")]
    pub inducing: Option<usize>,
    /// Where inducing points start: kmeans, random, greedy-variance, or a table of points with the
    /// input columns, in the data's units
    #[arg(long, value_name = "HOW|FILE", default_value = "kmeans", help_heading = "Model")]
    pub inducing_from: String,
    /// Start a parameter at a value (or comma-separated values) on the model's scale; repeatable
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment, help_heading = "Model")]
    pub set: Vec<(String, Vec<f64>)>,
    /// Keep a parameter, or all whose path begins so, as it is; repeatable
    #[arg(long, value_name = "PATH", help_heading = "Model")]
    pub freeze: Vec<String>,

    /// Optimiser
    #[arg(long, value_enum, default_value_t, help_heading = "Training")]
    pub optimiser: OptimiserChoice,
    /// Learning rate of Adam; by default 0.01
    #[arg(long, allow_negative_numbers = true, value_name = "RATE", value_parser = positive, help_heading = "Training")]
    pub learning_rate: Option<f64>,
    /// Most iterations
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "N",
        default_value_t = 1000,
        help_heading = "Training"
    )]
    pub max_iterations: usize,
    /// Seed of everything random
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "N",
        default_value_t = 0,
        help_heading = "Training"
    )]
    pub seed: u64,
    /// Jitter of the covariance matrix: a fraction of its mean diagonal, raised where that fails
    /// [default: 1e-6], or absolute:NUMBER
    #[arg(long, allow_negative_numbers = true, value_name = "JITTER", value_parser = jitter, help_heading = "Training")]
    pub jitter: Option<Jitter>,

    /// Write the model here
    #[arg(long, short, value_name = "MODEL", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Draw the fit (one input) or predictions against observations (more), as SVG
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    pub plot: Option<PathBuf>,
    /// Write objective and hyperparameters of every iteration, as CSV or JSON by the name's ending
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,
}

/// The optimisers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OptimiserChoice {
    /// Limited-memory BFGS
    #[default]
    Lbfgs,
    /// Adam, with all rows in every step
    Adam,
}

/// A number strictly between 0 and 1.
pub fn fraction(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(f) if f > 0.0 && f < 1.0 => Ok(f),
        _ => Err("must be a number between 0 and 1, such as 0.1".into()),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(f) if f > 0.0 && f.is_finite() => Ok(f),
        _ => Err("must be a positive number".into()),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("must be a whole number, at least 1".into()),
    }
}

fn method(text: &str) -> Result<String, String> {
    match text {
        "auto" => Ok(text.into()),
        name => methods::find(name).map(|e| e.name.to_owned()).map_err(|e| format!("{e}, auto")),
    }
}

fn mean(text: &str) -> Result<String, String> {
    let name = text.to_ascii_lowercase();
    match means::NAMES.contains(&name.as_str()) {
        true => Ok(name),
        false => Err(format!(
            "nearest: {}; known: {}",
            error::nearest(&name, means::NAMES).join(", "),
            means::NAMES.join(", ")
        )),
    }
}

fn assignment(text: &str) -> Result<(String, Vec<f64>), String> {
    let (path, values) = text
        .split_once('=')
        .filter(|(path, _)| !path.is_empty())
        .ok_or("must be PATH=VALUE, such as likelihood.variance=0.01")?;
    let value = |text: &str| {
        text.trim().parse::<f64>().map_err(|_| format!("`{}` is not a number", text.trim()))
    };
    Ok((path.trim().into(), values.split(',').map(value).collect::<Result<_, _>>()?))
}

fn jitter(text: &str) -> Result<Jitter, String> {
    let wrong = || "must be a number ≥ 0 such as 1e-6, or absolute:1e-6".to_owned();
    let parse = |text: &str| match text.parse::<f64>() {
        Ok(f) if f >= 0.0 && f.is_finite() => Ok(f),
        _ => Err(wrong()),
    };
    match text.split_once(':') {
        Some(("absolute", number)) => parse(number).map(Jitter::Absolute),
        Some(("relative", number)) => parse(number).map(Jitter::Relative),
        Some(_) => Err(wrong()),
        None => parse(text).map(Jitter::Relative),
    }
}

/// Whether an error after the arguments were read is still about them.
pub fn is_about_arguments(error: &Error) -> bool {
    matches!(
        error,
        Error::Spec { .. } | Error::UnknownParameter { .. } | Error::InvalidParameter { .. }
    )
}

//! Options of `sparsegp fit`.

use crate::data::MissingInFit;
use crate::fail::{Fail, Result};
use crate::relaxed_args::RelaxedArgs;
use crate::table_args::TableArgs;
use crate::values;
use clap::{Args, ValueEnum};
use sparsegp::fit::FitOptions;
use sparsegp::linalg::Jitter;
use sparsegp::samplers;
use sparsegp::variational::Tying;
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  sparsegp fit data.csv --target y -o model.safetensors
  sparsegp fit data.parquet --target y --split 0.1 --kernel 'matern52 + linear' --inducing 300
  sparsegp fit iris.csv --target species --split 0.2 --inducing 50 --plot classes.svg
  sparsegp fit claims.csv --target claims --likelihood poisson --exposure years -o claims.safetensors
  sparsegp fit big.parquet --target y --batch 2048 --epochs 20 --checkpoint run.safetensors
  sparsegp fit new.csv --from model.safetensors --epochs 5 -o model2.safetensors
  sparsegp fit data.csv --target y --set likelihood.variance=0.01 --freeze likelihood

Columns of text or truth values are classes. Numbers are taken as numbers unless --classes or a
likelihood of classes says otherwise.

Two ways to train: on all rows at once, by L-BFGS or Adam (`exact`, `titsias2009`, `spherical`,
`titsias2025`, `fitc`, `pep`, `tvgp`, or any method with --full-batch), or by minibatches (`svgp`, `svgp2025`,
`svgp-spherical`, `tsvgp`, `lsvgp`, `rsvgp`), by Adam with natural-gradient steps for q (the last two by
Adam alone). Where q is kept as sites (`tsvgp`,
`tvgp`), all rows at once means two rounds of steps of q and iterations of the optimiser, then steps of q at
every point that L-BFGS tries; with --e-steps or --m-steps rounds to the end.

Values given by --set are on the model's scale: inputs, and targets that may be shifted and scaled, are
standardised (mean 0, standard deviation 1 over the training rows) unless --no-standardise is given,
so a lengthscale of 1 is one standard deviation of its column. The table that is printed shows both
scales. They are starting values; --freeze keeps them.

Objective and scores are always in the data's own units.";

/// Options of `sparsegp fit`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct FitArgs {
    /// The table: CSV (plain or .gz) or Parquet; a folder or a pattern such as 'rows/*.parquet' for several files
    pub data: PathBuf,

    /// Target column; repeat it for several targets, which then share kernel and likelihood
    #[arg(
        long,
        short,
        value_name = "COLUMN",
        required_unless_present = "from",
        help_heading = "Data"
    )]
    pub target: Vec<String>,
    /// The target is a label, even if it looks like a number
    #[arg(long, help_heading = "Data")]
    pub classes: bool,
    /// Levels of an ordered target, lowest first, for --likelihood ordinal; they need not all occur. Other classes take
    /// their order from it too
    #[arg(long, value_name = "LOW,…,HIGH", value_delimiter = ',', help_heading = "Data")]
    pub levels: Vec<String>,
    /// Input columns; by default every column that has no other role and is not ignored
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
    /// Input columns that hold categories although they look like numbers; columns of text do anyway, and of
    /// dates become days since 1970-01-01
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', help_heading = "Data")]
    pub categorical: Vec<String>,
    /// Column with the standard deviation of the error of an input, such as --input-sd depth=depth_sd; repeatable. The fit
    /// looks through the errors (errors in variables), and predictions are averages over the inputs. For Gaussian noise, and
    /// kernels of rbf, linear and constant
    #[arg(long, value_name = "INPUT=COLUMN", value_parser = values::pair, help_heading = "Data")]
    pub input_sd: Vec<(String, String)>,
    /// Column of weights ≥ 0: a row of weight 2 counts as two
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    pub weight: Option<String>,
    /// Column of exposures of counts: the expected count is in proportion to it
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["trials", "noise_variance"], help_heading = "Data")]
    pub exposure: Option<String>,
    /// Column of numbers of trials, for --likelihood binomial
    #[arg(long, value_name = "COLUMN", conflicts_with = "noise_variance", help_heading = "Data")]
    pub trials: Option<String>,
    /// Column of known noise variances, in the target's units squared, added to the noise that is learnt
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    pub noise_variance: Option<String>,
    /// Hold out this fraction of the rows at random, and score on it
    #[arg(long, allow_negative_numbers = true, value_name = "FRACTION", value_parser = values::fraction, conflicts_with = "test_mask",
          help_heading = "Data")]
    pub split: Option<f64>,
    /// Hold out the rows that are 1 in this column of this file (0 elsewhere)
    #[arg(long, value_name = "FILE:COLUMN", help_heading = "Data")]
    pub test_mask: Option<String>,
    /// What to do with rows that lack a number
    #[arg(long, value_enum, default_value_t, help_heading = "Data")]
    pub missing: MissingInFit,
    /// How the table is written.
    #[command(flatten)]
    pub table: TableArgs,
    /// Use inputs and targets unscaled
    #[arg(long, help_heading = "Data")]
    pub no_standardise: bool,
    /// Never hold the table in memory: read it again for every evaluation or epoch. By default for
    /// tables of more than 2 GB of numbers. Minibatches come from all over the file, unless it is compressed by gzip
    #[arg(long, help_heading = "Data")]
    pub stream: bool,

    /// Likelihood, such as `poisson` or `student-t(df=4)`, see `sparsegp likelihoods`; by default
    /// gaussian for numbers, bernoulli for two classes, softmax for more
    #[arg(long, short, value_name = "SPEC", value_parser = values::likelihood, help_heading = "Model")]
    pub likelihood: Option<String>,
    /// Kernel, such as `rbf`, `matern52 + linear` or JSON, see `sparsegp kernels`; separated by `;` one
    /// for each latent function [default: rbf]
    #[arg(long, short, value_name = "SPEC", help_heading = "Model")]
    pub kernel: Option<String>,
    /// Units of the values in the kernel, their bounds and priors: `model`, the scale of the standardised columns, or `data`,
    /// as in --kernel 'periodic(period=365.25)' for days
    #[arg(
        long,
        value_name = "UNITS",
        value_parser = ["model", "data"],
        default_value = "model",
        help_heading = "Model"
    )]
    pub kernel_units: String,
    /// Mean function: zero, constant or linear, or JSON with its values and bounds; by default zero for one
    /// standardised latent function, else constant
    #[arg(long, value_parser = values::mean, help_heading = "Model")]
    pub mean: Option<String>,
    /// Inference method, see `sparsegp methods`, which says what auto takes: exact up to 2000 rows, else titsias2025 (for
    /// many rows by minibatches first); for other likelihoods tsvgp on all rows or svgp by minibatches
    #[arg(long, short, default_value = "auto", value_parser = values::method, help_heading = "Model")]
    pub method: String,
    /// Power of `pep`, above 0 and at most 1, where it is `fitc` [default: 0.5]
    #[arg(long, allow_negative_numbers = true, value_name = "ALPHA", value_parser = values::power, help_heading = "Model")]
    pub alpha: Option<f64>,
    /// Layers of the method `deep`, the last one included [default: 2]
    #[arg(long, value_name = "L", value_parser = values::at_least_one, help_heading = "Model")]
    pub layers: Option<usize>,
    /// Number of inducing points of the sparse methods; by default 512, for methods that train q a quarter
    /// of the rows up to 200 points, then about 7 times the square root of the rows, from 50 to 512; 100 in every layer of `deep`
    #[arg(long, allow_negative_numbers = true, value_name = "M", value_parser = values::at_least_one, help_heading = "Model")]
    pub inducing: Option<usize>,
    /// Where inducing points start: kmeans, random, greedy-variance, greedy-elbo (Gaussian noise), k-dpp,
    /// oips(0.8) (correlations below that), grid (few inputs), or a table of points with the input columns,
    /// in the data's units [default: kmeans]
    #[arg(long, value_name = "HOW|FILE", help_heading = "Model")]
    pub inducing_from: Option<String>,
    /// Use diagonal covariances in q (svgp methods; q is then trained by Adam)
    #[arg(long, help_heading = "Model")]
    pub diagonal: bool,
    /// Start a parameter at a value (or comma-separated values) on the model's scale; repeatable
    #[arg(long, value_name = "PATH=VALUE", value_parser = values::assignment, help_heading = "Model")]
    pub set: Vec<(String, Vec<f64>)>,
    /// Do not train the parameter at PATH, or any whose path begins with it; repeatable
    #[arg(long, value_name = "PATH", help_heading = "Model")]
    pub freeze: Vec<String>,
    /// Which site statistics stay fixed while hyperparameters change (`tsvgp`) [default: natural]
    #[arg(long, value_enum, value_name = "TYING", help_heading = "Model")]
    pub tying: Option<TyingChoice>,
    /// Continue training a saved model on the rows of this table: its columns, scales, kernel,
    /// likelihood, method and inducing points stay
    #[arg(long, value_name = "MODEL", conflicts_with_all = [
        "target", "classes", "levels", "features", "ignore", "categorical", "no_standardise", "likelihood", "kernel", "kernel_units", "mean",
        "restarts", "method", "alpha", "inducing", "inducing_from", "diagonal", "tying", "set", "jitter", "checkpoint",
    ], help_heading = "Model")]
    pub from: Option<PathBuf>,

    /// Learning rate of Adam; by default 0.01, for minibatches 0.03, falling, for `rsvgp` 0.005, for `deep`
    /// 0.01
    #[arg(long, allow_negative_numbers = true, value_name = "RATE", value_parser = values::positive, help_heading = "Training")]
    pub learning_rate: Option<f64>,
    /// Judge starting values on at most this many random rows: several starts get a few iterations each, and the
    /// best is trained. 0 takes the plain start without a trial
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "ROWS",
        default_value_t = FitOptions::default().pilot,
        help_heading = "Training"
    )]
    pub pilot: usize,
    /// Leave out the weak prior that the lengthscales of several inputs have by default
    #[arg(long, help_heading = "Training")]
    pub no_lengthscale_prior: bool,
    /// Train from this many additional starts, whose hyperparameters are drawn from their priors, or over a wide range
    /// about the plain start; the best objective wins. With --checkpoint each has a file of its own,
    /// FILE.restart-1, …
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "R",
        default_value_t = 0,
        help_heading = "Training"
    )]
    pub restarts: usize,
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
    #[arg(long, allow_negative_numbers = true, value_name = "JITTER", value_parser = values::jitter, help_heading = "Training")]
    pub jitter: Option<Jitter>,

    /// Save the state of the training (or of the chains of `gibbs`) to this file periodically; if the file
    /// exists, resume from it
    #[arg(long, value_name = "FILE", help_heading = "Training")]
    pub checkpoint: Option<PathBuf>,
    /// End after this time with the best found so far, preparation included: seconds, or a number with s, min or h;
    /// looked at between evaluations. Learning rates of minibatches have fallen by then, so that such a training does not
    /// repeat to the bit. With --checkpoint the same command resumes, and has as much time again
    #[arg(long, allow_negative_numbers = true, value_name = "TIME", value_parser = values::time, help_heading = "Training")]
    pub time_limit: Option<f64>,
    /// Seconds between checkpoints [default: 60]
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", value_parser = values::not_negative,
          requires = "checkpoint", help_heading = "Training")]
    pub checkpoint_every: Option<f64>,

    /// Optimiser [default: lbfgs]
    #[arg(long, value_enum, help_heading = "Training on all rows at once")]
    pub optimiser: Option<OptimiserChoice>,
    /// Most iterations [default: 1000]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "N",
        help_heading = "Training on all rows at once"
    )]
    pub max_iterations: Option<usize>,
    /// Stop L-BFGS when ten iterations improve the objective by less than this fraction of its size (or than this
    /// many nats per target, if that is less) and the gradient promises no more [default: 1e-4]
    #[arg(long, allow_negative_numbers = true, value_name = "FALL", value_parser = values::not_negative,
          help_heading = "Training on all rows at once")]
    pub tolerance: Option<f64>,
    /// Train svgp methods on all rows at once too
    #[arg(long, conflicts_with_all = [
        "batch", "epochs", "no_natural", "classes_per_step", "inducing_rate", "early_stopping", "patience",
    ], help_heading = "Training on all rows at once")]
    pub full_batch: bool,

    /// Rows of a minibatch [default: 1024; for `rsvgp` 100]
    #[arg(long, allow_negative_numbers = true, value_name = "ROWS", value_parser = values::at_least_one, help_heading = BATCHES)]
    pub batch: Option<usize>,
    /// Passes over the rows; by default 100, or more if that were fewer than 2000 minibatches; for `rsvgp` as
    /// many as make 20000
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = values::at_least_one, help_heading = BATCHES)]
    pub epochs: Option<usize>,
    /// Size of the natural-gradient steps of q, at most 1 [default: 0.1; where sites see all rows 0.8, or 1 where no step can overshoot; svi adapts it]
    #[arg(long, allow_negative_numbers = true, value_name = "RATE", value_parser = values::natural_rate,
          conflicts_with_all = ["no_natural", "diagonal"], help_heading = BATCHES)]
    pub natural_rate: Option<f64>,
    /// Natural-gradient steps of q on every minibatch, each from a pass of its own; for `tsvgp` with
    /// --full-batch the most in a round [default: one, from the pass that Adam takes; with --full-batch 20]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = values::at_least_one,
          conflicts_with_all = ["no_natural", "diagonal"], help_heading = BATCHES)]
    pub e_steps: Option<usize>,
    /// Steps of Adam on every minibatch; for `tsvgp` with --full-batch iterations of the optimiser in a
    /// round [default: 1; with --full-batch 10]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = values::at_least_one, help_heading = BATCHES)]
    pub m_steps: Option<usize>,
    /// Classes that move in a step of `svi`, drawn anew for every minibatch: cheaper steps where classes are many
    /// [default: all]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = values::at_least_one,
          conflicts_with_all = ["no_natural", "diagonal"], help_heading = BATCHES)]
    pub classes_per_step: Option<usize>,
    /// Train q by Adam like all other parameters
    #[arg(long, help_heading = BATCHES)]
    pub no_natural: bool,
    /// Learning rate of the inducing points [default: that of Adam; for `rsvgp` 0.001]
    #[arg(long, allow_negative_numbers = true, value_name = "RATE", value_parser = values::positive, help_heading = BATCHES)]
    pub inducing_rate: Option<f64>,
    /// Hold out this fraction of the training rows, and stop when their predictive density stops improving
    #[arg(long, allow_negative_numbers = true, value_name = "FRACTION", value_parser = values::fraction, help_heading = BATCHES)]
    pub early_stopping: Option<f64>,
    /// Epochs to wait for a better prediction [default: 10]
    #[arg(long, allow_negative_numbers = true, value_name = "EPOCHS", value_parser = values::at_least_one,
          requires = "early_stopping", help_heading = BATCHES)]
    pub patience: Option<usize>,
    /// Chains [default: 4]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = values::at_least_one, help_heading = CHAINS)]
    pub chains: Option<usize>,
    /// Draws of every chain, over all of which predictions average (up to 512 MiB of them) [default: 500]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = values::at_least_one, help_heading = CHAINS)]
    pub draws: Option<usize>,
    /// Sweeps of every chain that are dropped first [default: 200]
    #[arg(long, allow_negative_numbers = true, value_name = "N", help_heading = CHAINS)]
    pub burn_in: Option<usize>,
    /// Sweeps for every draw [default: 1]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = values::at_least_one, help_heading = CHAINS)]
    pub thin: Option<usize>,
    /// The law of `gibbs-sparse`: the best q(u) of any shape, or the posterior of the model whose rows are
    /// independent given the inducing points [default: variational]
    #[arg(long, value_name = "LAW", help_heading = CHAINS)]
    pub law: Option<LawChoice>,
    /// Sample the hyperparameters that are not frozen too, under their priors
    #[arg(long, help_heading = CHAINS)]
    pub sample_hyperparameters: bool,
    /// Of the inverse by products.
    #[command(flatten)]
    pub relaxed: RelaxedArgs,

    /// Write the model here
    #[arg(long, short, value_name = "MODEL", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Draw the fit as SVG or PNG: a curve (one input), a map (two), else predictions against observations;
    /// for classes the decision regions (up to two inputs), else a reliability diagram
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    pub plot: Option<PathBuf>,
    /// Write objective and hyperparameters of every iteration or epoch, as CSV or JSON by the name's
    /// ending
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,
}

const BATCHES: &str = "Training by minibatches";
/// Heading of the options of chains.
const CHAINS: &str = "Chains of nuts, nuts-sparse, hmc, ess, gibbs and gibbs-sparse, draws of gpf";

/// The law of chains with inducing points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LawChoice {
    /// The best q(u) of variational inference, of any shape
    Variational,
    /// The posterior of the model whose rows are independent given the inducing points
    Fitc,
}

impl From<LawChoice> for samplers::Target {
    fn from(choice: LawChoice) -> Self {
        match choice {
            LawChoice::Variational => samplers::Target::Variational,
            LawChoice::Fitc => samplers::Target::Fitc,
        }
    }
}

/// What sites are tied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TyingChoice {
    /// Offsets of the natural parameters of q(u)
    Natural,
    /// Not at all: two numbers for every row (--full-batch)
    Untied,
    /// Sums weighted by covariances, as the paper prints them; for comparison
    Kernel,
    /// Sums of whitened features; for comparison
    Whitened,
}

impl From<TyingChoice> for Tying {
    fn from(choice: TyingChoice) -> Self {
        match choice {
            TyingChoice::Natural => Tying::Natural,
            TyingChoice::Untied => Tying::Untied,
            TyingChoice::Kernel => Tying::Kernel,
            TyingChoice::Whitened => Tying::Whitened,
        }
    }
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

impl FitArgs {
    /// Whether rows without a target stay.
    pub fn keeps_missing(&self) -> bool {
        self.missing == MissingInFit::Keep
    }

    /// The first option given that only training by minibatches has.
    pub fn batch_option(&self) -> Option<&'static str> {
        [
            ("--batch", self.batch.is_some()),
            ("--epochs", self.epochs.is_some()),
            ("--no-natural", self.no_natural),
            ("--classes-per-step", self.classes_per_step.is_some()),
            ("--inducing-rate", self.inducing_rate.is_some()),
            ("--early-stopping", self.early_stopping.is_some()),
        ]
        .into_iter()
        .find_map(|(name, given)| given.then_some(name))
        .or(self.relaxed.given())
    }

    /// The method that was asked for, with its power or its layers.
    ///
    /// # Errors
    /// A sentence if the method has none.
    pub fn method(&self) -> Result<String> {
        if let Some(layers) = self.layers {
            if self.alpha.is_some() {
                return Err(Fail::usage(
                    "--alpha is the power of `pep`, and --layers is for `deep`: leave one out",
                ));
            }
            return match self.method.strip_prefix("deep") {
                Some("") => Ok(format!("deep(layers={layers})")),
                Some(rest) if !rest.contains("layers") => {
                    Ok(format!("deep(layers={layers}, {}", rest.trim_start_matches('(')))
                }
                _ => Err(Fail::usage(format!(
                    "--layers is for `deep`, which says it once, and the method is `{}`: leave it out",
                    self.method
                ))),
            };
        }
        match self.alpha {
            None => Ok(self.method.clone()),
            Some(alpha) if self.method == "pep" => Ok(format!("pep(alpha={alpha})")),
            Some(_) => Err(Fail::usage(format!(
                "--alpha is the power of `pep`, and the method is `{}`: add --method pep, or leave it out",
                self.method
            ))),
        }
    }

    /// The first option given that says how q is stepped.
    pub fn step_option(&self) -> Option<&'static str> {
        [
            ("--natural-rate", self.natural_rate.is_some()),
            ("--e-steps", self.e_steps.is_some()),
            ("--m-steps", self.m_steps.is_some()),
        ]
        .into_iter()
        .find_map(|(name, given)| given.then_some(name))
    }

    /// The first option of chains given.
    pub fn chain_option(&self) -> Option<&'static str> {
        [
            ("--chains", self.chains.is_some()),
            ("--draws", self.draws.is_some()),
            ("--burn-in", self.burn_in.is_some()),
            ("--thin", self.thin.is_some()),
            ("--law", self.law.is_some()),
            ("--sample-hyperparameters", self.sample_hyperparameters),
        ]
        .into_iter()
        .find_map(|(name, given)| given.then_some(name))
    }

    /// The first option given that only training on all rows at once has.
    pub fn whole_option(&self) -> Option<&'static str> {
        [
            ("--optimiser", self.optimiser.is_some()),
            ("--max-iterations", self.max_iterations.is_some()),
            ("--tolerance", self.tolerance.is_some()),
        ]
        .into_iter()
        .find_map(|(name, given)| given.then_some(name))
    }

    /// The column of a further number, with the option that gave it and what likelihoods call it.
    pub fn extra(&self) -> Option<(&'static str, &'static str, &String)> {
        [
            ("--exposure", "exposure", &self.exposure),
            ("--trials", "trials", &self.trials),
            ("--noise-variance", "variance", &self.noise_variance),
        ]
        .into_iter()
        .find_map(|(option, name, column)| Some((option, name, column.as_ref()?)))
    }
}

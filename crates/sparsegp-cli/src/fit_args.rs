//! Options of `sparsegp fit`.

use crate::data::MissingInFit;
use crate::fail::{Fail, Result};
use crate::given::Given;
use crate::table_args::TableArgs;
use crate::values;
use clap::Args;
use sparsegp::data::Selection;
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
Adam only). Where q is kept as sites (`tsvgp`,
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
    /// Columns to ignore
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
    /// Table of holidays, with the columns date and name, and where wanted before and after: days around them with effects too.
    /// Every name becomes an input of 0 and 1 beside the only one that holds dates; the effects have one variance, which is
    /// learnt. The model keeps the calendar for predictions: let it hold the days to come
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    pub holidays: Option<PathBuf>,
    /// Latitude and longitude in degrees of places on Earth; repeatable. Both columns become a point of the sphere, so that
    /// distances are kilometres, also across the date line and near the poles, and have one lengthscale
    #[arg(long, value_name = "LAT,LON", value_parser = values::place, help_heading = "Data")]
    pub places: Vec<(String, String)>,
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

    /// Power of `pep`, above 0 and at most 1, where it is `fitc` [default: 0.5]
    #[arg(long, allow_negative_numbers = true, value_name = "ALPHA", value_parser = values::power, help_heading = "Model")]
    pub alpha: Option<f64>,
    /// Layers of the method `deep`, the last one included [default: 2]
    #[arg(long, value_name = "L", value_parser = values::at_least_one, help_heading = "Model")]
    pub layers: Option<usize>,
    /// Continue training a saved model on the rows of this table: its columns, scales, kernel,
    /// likelihood, method and inducing points stay
    #[arg(long, value_name = "MODEL", conflicts_with_all = [
        "target", "classes", "levels", "features", "ignore", "categorical", "no_standardise", "likelihood", "kernel", "kernel_units", "season", "holidays", "places", "mean",
        "restarts", "method", "alpha", "inducing", "inducing_from", "diagonal", "tying", "set", "jitter", "checkpoint",
    ], help_heading = "Model")]
    pub from: Option<PathBuf>,

    /// The settings.
    #[command(flatten)]
    pub settings: Given,

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

impl FitArgs {
    /// Returns whether rows without a target stay.
    pub fn keeps_missing(&self) -> bool {
        self.missing == MissingInFit::Keep
    }

    /// Returns the file of checkpoints.
    pub fn checkpoint(&self) -> Option<PathBuf> {
        self.settings.text("checkpoint").map(PathBuf::from)
    }

    /// Returns the method as it was asked for.
    fn asked(&self) -> &str {
        self.settings.text("method").unwrap_or("auto")
    }

    /// Returns the method that was asked for, with its power or its layers.
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
            return match self.asked().strip_prefix("deep") {
                Some("") => Ok(format!("deep(layers={layers})")),
                Some(rest) if !rest.contains("layers") => {
                    Ok(format!("deep(layers={layers}, {}", rest.trim_start_matches('(')))
                }
                _ => Err(Fail::usage(format!(
                    "--layers is for `deep`, which says it once, and the method is `{}`: leave it out",
                    self.asked()
                ))),
            };
        }
        match self.alpha {
            None => Ok(self.asked().into()),
            Some(alpha) if self.asked() == "pep" => Ok(format!("pep(alpha={alpha})")),
            Some(_) => Err(Fail::usage(format!(
                "--alpha is the power of `pep`, and the method is `{}`: add --method pep, or leave it out",
                self.asked()
            ))),
        }
    }

    /// Returns the first option given that is for a single training on all rows.
    pub fn of_one_training(&self) -> Option<&'static str> {
        let given = [
            ("--split", self.split.is_some()),
            ("--test-mask", self.test_mask.is_some()),
            ("--from", self.from.is_some()),
            ("--trace", self.trace.is_some()),
            ("--checkpoint", self.settings.has("checkpoint")),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// Returns the selection with inputs, errors of inputs, weights and a further number of rows
    /// that are named.
    pub fn named(&self, mut selection: Selection) -> Selection {
        if !self.features.is_empty() {
            selection = selection.inputs(&self.features);
        }
        if !self.input_sd.is_empty() {
            selection = selection.deviations(self.input_sd.iter().cloned());
        }
        if let Some(column) = &self.weight {
            selection = selection.weight(column);
        }
        if let Some((_, _, column)) = self.extra() {
            selection = selection.extra(column);
        }
        selection
    }

    /// Returns the column of a further number, with the option that gave it and what likelihoods
    /// call it.
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

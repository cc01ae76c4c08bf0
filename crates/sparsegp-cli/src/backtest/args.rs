//! Options of `sparsegp backtest`: those of a fit, and where a series is cut.

use crate::fail::{Fail, Result};
use crate::fit_args::FitArgs;
use crate::values;
use clap::{ArgMatches, Args, Command, FromArgMatches};

const AFTER: &str = "\
Examples:
  sparsegp backtest sales.csv --target sales --horizon 26w --season 1y
  sparsegp backtest load.csv --target load --horizon 48h --cutoffs 10 --every 1w --season 24h --season 1w
  sparsegp backtest co2.csv --target co2 --horizon 2y --method markov --kernel 'matern52 + linear + periodic' \\
      -o predictions.csv --plot backtest.svg

At every cut-off a model is learnt from the rows up to it and predicts those within the horizon after it: scales, choices of
`auto`, kernel and hyperparameters are found again each time, and no later row is seen. The last cut-off is a horizon before the
last time. Scores are of all cut-offs together, for parts of the horizon and for all of it, and beside them are those of
simple forecasts: the last value, and with --season the value one season before (or more, until it is known).

Lengths of time are 90min, 36h, 10d, 52w, 6mo, 4q or 1y; a number without a unit counts steps. Other inputs than time are taken from
the rows that are predicted, as if they were known in advance: leave out those that are not (--ignore).";

/// Options of `sparsegp backtest`.
#[derive(Debug, Args)]
pub struct BacktestArgs {
    /// How far to predict after every cut-off: a number of steps, or of dates a length of time such as 26w, 6mo or 1y
    #[arg(long, value_name = "LENGTH", help_heading = "Cut-offs")]
    pub horizon: String,
    /// Number of cut-offs
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = values::at_least_one, help_heading = "Cut-offs")]
    pub cutoffs: usize,
    /// Distance of the cut-offs, as the horizon is given; by default the horizon, so that no row is predicted twice
    #[arg(long, value_name = "LENGTH", help_heading = "Cut-offs")]
    pub every: Option<String>,
    /// Column that is time; by default the only input, or the only one that holds dates
    #[arg(long, value_name = "COLUMN", help_heading = "Cut-offs")]
    pub time: Option<String>,
    /// Number of parts of the horizon that are scored apart
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = values::at_least_one, help_heading = "Cut-offs")]
    pub parts: usize,
    /// Options of a fit.
    #[command(flatten)]
    pub fit: EachFit,
}

/// Options of `sparsegp fit` for the fit at every cut-off; what is written are predictions, and their picture.
#[derive(Debug)]
pub struct EachFit(pub FitArgs);

/// Options of `fit` that are for a single training.
const ABSENT: [&str; 6] = ["split", "test_mask", "from", "trace", "checkpoint", "checkpoint_every"];

impl Args for EachFit {
    fn augment_args(command: Command) -> Command {
        let help = |name: &'static str, value: &'static str, text: &'static str| {
            move |command: Command| command.mut_arg(name, |arg| arg.value_name(value).help(text))
        };
        let output = help(
            "output",
            "OUT.csv",
            "Write all predictions as CSV here: cut-off, part of the horizon, time, target, mean, sd, quantiles",
        );
        let plot = help(
            "plot",
            "FILE.svg",
            "Draw the rows with the predictions after every cut-off, as SVG or PNG",
        );
        let command = plot(output(FitArgs::augment_args(command)));
        let command = command.mut_args(|arg| match ABSENT.contains(&arg.get_id().as_str()) {
            true => arg.hide(true),
            false => arg,
        });
        command.after_help(AFTER)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for EachFit {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        FitArgs::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(
        &mut self,
        matches: &ArgMatches,
    ) -> std::result::Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl BacktestArgs {
    /// Refuses options of a single training.
    pub fn check(&self) -> Result<()> {
        match self.fit.0.of_one_training() {
            Some(option) => Err(Fail::usage(format!(
                "{option} is for one training, and here is one for every cut-off; leave it out"
            ))),
            None => Ok(()),
        }
    }
}

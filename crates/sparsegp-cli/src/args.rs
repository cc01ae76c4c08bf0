//! The command line: what can be asked for.

use crate::backtest::args::BacktestArgs;
use crate::compare_args::CompareArgs;
use crate::embed::EmbedArgs;
use crate::explain::ExplainArgs;
use crate::export::ExportArgs;
use crate::fit_args::FitArgs;
use crate::follow::FollowArgs;
use crate::forecast::ForecastArgs;
use crate::inducing::InducingArgs;
use crate::inspect::InspectArgs;
use crate::page::ReportArgs;
use crate::pages::{CompletionsArgs, ManArgs};
use crate::plot::command::PlotArgs;
use crate::predict::PredictArgs;
use crate::reference::ReferenceArgs;
use crate::sample::SampleArgs;
use crate::score::ScoreArgs;
use crate::serve::ServeArgs;
use crate::suggest::SuggestArgs;
use crate::update::UpdateArgs;
use clap::{Args, Parser, Subcommand};

const AFTER: &str = "\
First steps:
  sparsegp demo
  sparsegp fit data.csv --target y --split 0.1 -o model.safetensors
  sparsegp fit data.csv --target species --split 0.1     (text: classes)
  sparsegp fit data.csv --target n --likelihood poisson  (counts; see `sparsegp likelihoods`)
  sparsegp predict model.safetensors new.csv -o predictions.csv
  sparsegp compare data.csv --target y --kernel rbf --kernel matern52

Tables are CSV (plain or .gz; comma, tab, semicolon or bar) or Parquet, with a header; the content decides,
not the name. Columns are found by name: their order does not matter, and there may be others. A folder
or a pattern in quotes, such as 'rows/*.parquet', stands for all of its files as one table.

Exit codes:
  0    done; also when Ctrl-C ended a training early and its best state was kept
  1    something is wrong with a file, the data, a model or the numerics: stderr says what
  2    something is wrong with the command line
  130  interrupted before there was anything to keep";

/// Gaussian processes for tables: fit, judge, save and use them.
#[derive(Debug, Parser)]
#[command(name = "sparsegp", version, after_help = AFTER, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Print one JSON document to stdout, for machines
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub json: bool,
    /// No progress, notes or warnings on stderr, and no report of what was done
    #[arg(long, short, global = true, help_heading = "Everywhere")]
    pub quiet: bool,
    /// Threads to use; by default all cores (results do not depend on it)
    #[arg(long, allow_negative_numbers = true, global = true, value_name = "N", help_heading = "Everywhere",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Fit a small real data set, draw the fit, and show what to try next
    ///
    /// Takes no arguments and about a second. Writes sparsegp-demo.csv (the data),
    /// sparsegp-demo.svg (a picture of the fit) and sparsegp-demo.safetensors (the model)
    /// into the current folder.
    Demo,
    /// Learn a model from a table
    Fit(Box<FitArgs>),
    /// Compare methods, kernels or likelihoods on the same divisions of a table
    Compare(CompareArgs),
    /// Judge forecasts of a series: learn up to several cut-offs, and score what comes after each
    Backtest(Box<BacktestArgs>),
    /// Predict numbers with their uncertainty, or classes with their probabilities, for the rows of a
    /// table
    Predict(PredictArgs),
    /// Predict the times after the last of a series
    Forecast(ForecastArgs),
    /// Draw what a model predicts for the rows of a table, jointly
    Sample(SampleArgs),
    /// Take up new rows without the old ones: a streaming update of a saved model
    Update(UpdateArgs),
    /// Predict and then learn the rows of a stream, batch by batch
    Follow(FollowArgs),
    /// Suggest the next rows to try, from a table of what was tried (Bayesian optimisation)
    Suggest(SuggestArgs),
    /// Give every row of a table a place in a few dimensions that explain its columns (Bayesian GP-LVM)
    Embed(Box<EmbedArgs>),
    /// Judge a model's predictions on a table whose targets are known
    Score(ScoreArgs),
    /// Show how predictions depend on every input, and what share of their variation each explains
    Explain(ExplainArgs),
    /// Write the prediction of a model as code for elsewhere
    Export(ExportArgs),
    /// Predict over HTTP: a small server for one model, at this machine
    Serve(ServeArgs),
    /// Draw a saved model with the rows of a table
    Plot(PlotArgs),
    /// Put a model on one page of HTML, with scores and pictures
    Report(ReportArgs),
    /// Judge how well a model's inducing points stand for the rows of a table
    Inducing(InducingArgs),
    /// Show what is in a model file
    Inspect(InspectArgs),
    /// List the inference methods
    Methods,
    /// List the kernels and explain the specification language
    Kernels,
    /// List the likelihoods: numbers, classes, counts, shares, …
    Likelihoods,
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands
    Man(ManArgs),
    /// Write the generated pages of the documentation
    #[command(hide = true)]
    Reference(ReferenceArgs),
}

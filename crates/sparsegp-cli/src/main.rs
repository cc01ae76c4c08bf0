//! `sparsegp`, the command line: fit, judge, save and use Gaussian processes on CSV and Parquet files.

mod args;
mod backtest;
mod compare;
mod compare_args;
mod compare_auto;
mod comparison;
mod context;
mod data;
mod demo;
mod embed;
mod explain;
mod export;
mod facts;
mod fail;
mod fit;
mod fit_args;
mod fit_options;
mod folds;
mod follow;
mod forecast;
mod format;
mod given;
mod headline;
mod inducing;
mod inspect;
mod kernels;
mod kind;
mod likelihoods;
mod methods;
mod noisy_args;
mod outputs;
mod page;
mod pages;
mod plot;
mod predict;
mod predictions;
mod progress;
mod reference;
mod remembered;
mod report;
mod sample;
mod saving;
mod score;
mod scores;
mod serve;
mod sink;
mod suggest;
mod table_args;
mod trace;
mod update;
mod values;

use args::{Cli, Command};
use clap::Parser;
use context::Context;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| compare::with_remedy(error).exit());
    let result = Context::new(&cli.global).and_then(|context| {
        let reply = match &cli.command {
            Command::Demo => demo::run(&context),
            Command::Fit(args) => fit::run(args, &context),
            Command::Compare(args) => compare::run(args, &context),
            Command::Backtest(args) => backtest::run(args, &context),
            Command::Predict(args) => predict::run(args, &context),
            Command::Forecast(args) => forecast::run(args, &context),
            Command::Sample(args) => sample::run(args, &context),
            Command::Update(args) => update::run(args, &context),
            Command::Follow(args) => follow::run(args, &context),
            Command::Suggest(args) => suggest::run(args, &context),
            Command::Explain(args) => explain::run(args, &context),
            Command::Export(args) => export::run(args, &context),
            Command::Serve(args) => serve::run(args, &context),
            Command::Embed(args) => embed::run(args, &context),
            Command::Score(args) => score::run(args, &context),
            Command::Plot(args) => plot::command::run(args, &context),
            Command::Report(args) => page::run(args, &context),
            Command::Inducing(args) => inducing::run(args, &context),
            Command::Inspect(args) => inspect::run(args),
            Command::Methods => Ok(methods::run()),
            Command::Kernels => Ok(kernels::run()),
            Command::Likelihoods => Ok(likelihoods::run()),
            Command::Completions(args) => Ok(pages::completions(args)),
            Command::Man(args) => pages::man(args),
            Command::Reference(args) => reference::run(args),
        }?;
        context.print(&reply)
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(fail) => fail.report(cli.global.json),
    }
}

//! `sparsegp inspect`: what is in a model file.

use crate::context::Reply;
use crate::facts;
use crate::fail::Result;
use crate::report;
use clap::Args;
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  sparsegp inspect model.safetensors
  sparsegp inspect model.safetensors --full
  sparsegp inspect model.safetensors --json";

/// Options of `sparsegp inspect`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct InspectArgs {
    /// Model file
    pub model: PathBuf,
    /// Every number of long parameters, and the inducing points in the data's units
    #[arg(long)]
    pub full: bool,
}

/// Runs the command.
pub fn run(args: &InspectArgs) -> Result<Reply> {
    let fitted = sparsegp::io::load(&args.model)?;
    let facts = [&facts::facts(&fitted)[..], &report::origin(&fitted)].concat();
    let mut text = format!("{}\n{}\n", args.model.display(), report::aligned(&facts));
    text += &report::parameters_table(&fitted, args.full);
    if let Some(points) = report::inducing_table(&fitted) {
        text += &match args.full {
            true => format!("\ninducing points in the data's units\n{points}"),
            false => "\n(--full lists the inducing points)\n".to_owned(),
        };
    }
    for warning in &fitted.warnings {
        text += &format!("\nwarning: {warning}");
    }
    Ok(Reply { text, json: report::model_json(&fitted), is_result: true })
}

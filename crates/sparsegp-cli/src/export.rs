//! `sparsegp export`: the prediction of a model as code for elsewhere.

use crate::context::{Context, Reply};
use crate::fail::{Fail, Result};
use crate::outputs::refuse_overwriting;
use clap::Args;
use serde_json::json;
use sparsegp::export::{Export, Format, name_like};
use sparsegp::{atomic, io};
use std::path::{Path, PathBuf};

const AFTER: &str = "\
Examples:
  sparsegp export model.safetensors -o model.h
  sparsegp export model.safetensors -o forecast.h --name pump
  sparsegp export model.safetensors -o model.onnx

A header of C (C99, only <math.h>): NAME_predict(x, mean, sd) of an observation, or NAME_probabilities(x, p) of
two classes, and NAME_latent(x, mean, sd) of the latent functions, without noise. A model of ONNX (operators of
version 17, 64-bit floats) takes x, N rows, and gives mean and sd or probabilities, latent_mean and latent_sd.

x are the inputs in the order of the model, in the units of the table: numbers as they are, dates as days since
1970-01-01 00:00 UTC, categories as inputs that are 1 or 0. The file says which they are, and so does --json.

Exported are sparse and exact posteriors and averages over hyperparameters. Deep models, `markov`, `vecchia` and
samplers are refused, and so are kernels without a formula here; the error says what to fit instead. The formula is
compared with the model inside and far outside of the data, and refused where they differ by more than 1e-6.";

/// Reads the name of a format.
fn named(text: &str) -> std::result::Result<Format, String> {
    let names = || Format::ALL.map(Format::name).join(" or ");
    Format::by_name(text).ok_or_else(|| format!("a format is {}", names()))
}

/// Options of `sparsegp export`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct ExportArgs {
    /// Model file
    pub model: PathBuf,
    /// File to write; its ending (.h, .onnx) says the format
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Format, where the ending of the file does not say it: c (a header of C99) or onnx (a model for the runtimes of ONNX)
    #[arg(long, value_parser = named)]
    pub format: Option<Format>,
    /// Beginning of all names in C; by default the name of the file
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Take inputs for exact although the fit had standard deviations of them
    #[arg(long)]
    pub exact_inputs: bool,
}

/// Returns the format that was asked for, or that the name of the file says.
fn format(args: &ExportArgs) -> Result<Format> {
    let path = &args.output;
    args.format.or_else(|| Format::of_path(path)).ok_or_else(|| {
        Fail::usage(format!(
            "{}: the ending says no format: name the file ….h or ….onnx, or give --format",
            path.display()
        ))
    })
}

fn name_of(path: &Path) -> String {
    name_like(&path.file_stem().unwrap_or_default().to_string_lossy())
}

/// Runs the command.
pub fn run(args: &ExportArgs, context: &Context) -> Result<Reply> {
    refuse_overwriting([&args.output], [&args.model])?;
    let format = format(args)?;
    atomic::check_writable(&args.output)?;
    let fitted = io::load(&args.model)?;
    let fitted = if args.exact_inputs { fitted.without_input_deviations() } else { fitted };
    let export = Export::new(&fitted)?;
    let name = args.name.clone().unwrap_or_else(|| name_of(&args.output));
    let content = export.to_bytes(format, &name)?;
    atomic::write_atomically(&args.output, &content)?;
    context.warn(export.remark().as_slice());
    let mut text = format!("written to {}; inputs in their order:\n", args.output.display());
    for (d, own) in export.inputs().iter().enumerate() {
        text += &format!("  x[{d}]  {}: {}\n", own.name, own.kind);
    }
    let json = json!({
        "command": "export", "model": args.model, "output": args.output, "format": format.name(), "name": name,
        "inputs": export.inputs(), "outputs": export.outputs(), "bytes": content.len(),
    });
    Ok(Reply { text, json, is_result: false })
}

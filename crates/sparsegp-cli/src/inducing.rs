//! `sparsegp inducing`: how well a model's inducing points stand for the rows of a table.

use crate::context::{Context, Reply};
use crate::data::{MissingChoice, Opened};
use crate::fail::{Fail, Result};
use crate::format::{count, number};
use crate::kind;
use crate::remembered;
use crate::report::latent_names;
use crate::table_args::TableArgs;
use crate::values;
use clap::Args;
use sparsegp::engine::Cpu;
use sparsegp::fit::Fitted;
use sparsegp::fit::quality::{Explained, Gap, Quality, QualityOptions};
use sparsegp::io;
use std::fmt::Write;
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  sparsegp inducing model.safetensors data.csv
  sparsegp inducing model.safetensors data.csv --test-mask masks.csv:split0 --json
  sparsegp plot model.safetensors data.csv --what inducing --output inducing.svg

Of a row's prior variance k the inducing points explain q and leave v = k − q. The trace residual is the sum of
all v over that of all k: 0 if everything is explained. For Gaussian noise the log evidence is known to lie
between the bound and an upper bound; their difference is the most that more or better inducing points can
gain. Points are enough where the mean v is a small fraction of the noise variance (--fraction); the number
needed is estimated by greedy conditional-variance selection, without training.";

/// Options of `sparsegp inducing`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct InducingArgs {
    /// Model file
    pub model: PathBuf,
    /// Table with the model's input and target columns: the rows that the model was trained on
    pub data: PathBuf,
    /// Leave out the rows that this column of this file marks as test rows
    #[arg(long, value_name = "FILE:COLUMN")]
    pub test_mask: Option<String>,
    /// Mean unexplained variance to accept, as a fraction of the noise variance (of the prior variance if
    /// the noise is not Gaussian)
    #[arg(long, allow_negative_numbers = true, value_name = "FRACTION", default_value_t = QualityOptions::default().fraction,
          value_parser = values::positive)]
    pub fraction: f64,
    /// What to do with rows that lack a number
    #[arg(long, value_enum, default_value_t)]
    pub missing: MissingChoice,
    /// How the table is written.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Returns how well the inducing points stand for the training rows.
pub fn judge(fitted: &Fitted, opened: &Opened, fraction: Option<f64>) -> Result<Quality> {
    let default = QualityOptions::default();
    let options = QualityOptions { fraction: fraction.unwrap_or(default.fraction), ..default };
    let (dataset, _) = opened.on_scale_of(fitted)?;
    Ok(fitted.inducing_quality(&dataset, &Cpu::default(), &options)?)
}

/// Returns why a model cannot be judged.
pub fn cannot(fitted: &Fitted) -> Option<&'static str> {
    match (fitted.model.inducing.is_empty(), fitted.model.hidden.is_empty()) {
        (true, _) => Some("its method has no inducing points"),
        (_, false) => Some(
            "it has several layers, and the points of each stand for what the one before gives",
        ),
        _ => None,
    }
}

/// Returns what a set explains, as a person reads it.
fn explained_text(own: &Explained, fraction: f64) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    lines.push(("points", format!("{} for {}", own.points, count(own.rows, "row"))));
    lines.push((
        "residual",
        format!(
            "{} of the prior variance is left unexplained (tr(Kff − Qff)/tr Kff)",
            percent(own.trace_residual())
        ),
    ));
    let above = |edge: f64| percent(own.shares.above(edge));
    lines.push((
        "rows",
        format!(
            "more than 1 % left at {} of the rows, 10 % at {}; at most {}",
            above(0.01),
            above(0.1),
            percent(own.largest)
        ),
    ));
    let suggestion = &own.suggestion;
    let of = if suggestion.of_noise { "noise variance" } else { "prior variance" };
    let number_of = match suggestion.reached {
        true => format!("about {}", count(suggestion.points, "point")),
        false => format!("more than {}", count(suggestion.points, "point")),
    };
    lines.push((
        "enough",
        format!(
            "{number_of}: so many rows leave at most {} of the {of} unexplained in the mean (of {})",
            percent(fraction),
            count(suggestion.rows, "row")
        ),
    ));
    let mut text = String::new();
    for (name, value) in lines {
        // writing to a string cannot fail
        let _ = writeln!(text, "{name:<10} {value}");
    }
    text
}

fn percent(share: f64) -> String {
    match 100.0 * share.max(0.0) {
        p if p > 0.0 && p < 0.001 => "less than 0.001 %".into(),
        p => format!("{} %", number(p, 3)),
    }
}

/// Returns what a person reads.
pub fn text(fitted: &Fitted, quality: &Quality, fraction: f64) -> String {
    let mut text = String::new();
    let names = latent_names(fitted);
    for (l, own) in quality.processes.iter().enumerate() {
        if quality.processes.len() > 1 {
            let _ = writeln!(text, "{}", names.get(l).map_or("", String::as_str));
        }
        text += &explained_text(own, fraction);
    }
    if let Some(gap) = &quality.gap {
        text += &gap_text(gap, quality.processes.first().map_or(1, |own| own.rows));
    }
    text
}

fn gap_text(gap: &Gap, rows: usize) -> String {
    format!(
        "{:<10} the log evidence is between {} and {} nats: other inducing points can gain at most {} ({} a row)\n",
        "gap",
        number(gap.lower, 7),
        number(gap.upper, 7),
        number(gap.width(), 4),
        number(gap.width() / rows.max(1) as f64, 3)
    )
}

/// Runs the command.
pub fn run(args: &InducingArgs, context: &Context) -> Result<Reply> {
    let fitted = io::load(&args.model)?;
    if let Some(why) = cannot(&fitted) {
        let model = args.model.display();
        return Err(Fail::usage(format!(
            "{model}: {why}; fit one with --inducing M, or --method titsias2025"
        )));
    }
    let table = args.table.open_for(&args.data, &fitted)?;
    let (selection, note) = kind::judged(&fitted, &table);
    context.warn(note.as_slice());
    let mask = args.test_mask.as_deref();
    let (opened, _) = remembered::open(table, &selection, args.missing.into(), &fitted, mask)?;
    let quality = judge(&fitted, &opened, Some(args.fraction))?;
    let json = serde_json::json!({
        "command": "inducing",
        "model": args.model,
        "data": args.data,
        "fraction": args.fraction,
        "quality": quality.to_json(),
    });
    Ok(Reply { text: text(&fitted, &quality, args.fraction), json, is_result: true })
}

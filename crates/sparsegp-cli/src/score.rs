//! `sparsegp score`: how good a model's predictions are.

use crate::context::{Context, Reply};
use crate::data::{self, BLOCK, MissingChoice, Split};
use crate::fail::{Fail, Result};
use crate::format::count;
use crate::report;
use clap::{Args, ValueEnum};
use sparsegp::data::{Selected, Selection};
use sparsegp::fit::Fitted;
use sparsegp::io;
use sparsegp::metrics::Scores;
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  sparsegp score model.safetensors test.csv
  sparsegp score model.safetensors data.csv.gz --test-mask masks.csv.gz:split0 --on test

All scores are in the data's units. RMSE, MAE, NLPD, MSLL and CRPS are better the smaller they are
(NLPD: mean negative log predictive density; MSLL: the same minus that of a Gaussian with mean and
variance of the training targets, so below 0 is better than knowing nothing). R² is better the nearer
to 1. Coverage is the share of the targets within the central 50, 90 and 95 % intervals: it should be
near those levels.";

/// Options of `sparsegp score`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct ScoreArgs {
    /// Model file
    pub model: PathBuf,
    /// Table with the model's input and target columns
    pub data: PathBuf,
    /// Score only the rows that this column of this file marks
    #[arg(long, value_name = "FILE:COLUMN")]
    pub test_mask: Option<String>,
    /// Which side of the mask to score: test (1) or train (0)
    #[arg(long, value_enum, default_value_t, requires = "test_mask")]
    pub on: Side,
    /// What to do with rows that lack a number
    #[arg(long, value_enum, default_value_t)]
    pub missing: MissingChoice,
}

/// A side of a mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// Rows marked 1
    #[default]
    Test,
    /// Rows marked 0
    Train,
}

/// Overall scores and those of every target.
#[derive(Clone, Debug, serde::Serialize)]
pub struct AllScores {
    /// Of all targets together.
    pub overall: Scores,
    /// Of each target.
    pub targets: Vec<(String, Scores)>,
    /// Rows that were left out.
    pub dropped: usize,
}

/// Scores a model on rows.
pub fn score(fitted: &Fitted, rows: &Selected, context: &Context) -> Result<AllScores> {
    let mut blocks = rows.blocks(BLOCK, None)?;
    let mut stopped = Ok(());
    let metrics = fitted.score(std::iter::from_fn(|| {
        stopped = context.go_on();
        if stopped.is_ok() { blocks.next() } else { None }
    }))?;
    stopped?;
    let each = metrics.finish_each()?;
    Ok(AllScores {
        overall: metrics.finish()?,
        targets: fitted.target_names.iter().cloned().zip(each).collect(),
        dropped: blocks.dropped(),
    })
}

/// Runs the command.
pub fn run(args: &ScoreArgs, context: &Context) -> Result<Reply> {
    let fitted = io::load(&args.model)?;
    let selection = Selection::targets(&fitted.target_names).inputs(&fitted.input_names);
    let split = args.test_mask.as_deref().map_or(Split::None, Split::Mask);
    let opened = data::open(&args.data, &selection, args.missing.into(), &split)?;
    let rows = match (args.on, opened.test) {
        (Side::Test, Some(test)) => test,
        _ => opened.train,
    };
    let scores = score(&fitted, &rows, context)?;
    if scores.dropped > 0 {
        let rows = count(scores.dropped, "row");
        context.warn(&[format!("{rows} with missing numbers left out")]);
    }
    let label = match (&args.test_mask, args.on) {
        (None, _) => "all rows",
        (Some(_), Side::Test) => "test",
        (Some(_), Side::Train) => "train",
    };
    let json = serde_json::json!({
        "command": "score",
        "model": args.model,
        "data": args.data,
        "rows": scores.overall.rows,
        "dropped": scores.dropped,
        "scores": report::scores_json(&scores).map_err(|e| Fail::Work(e.to_string()))?,
    });
    Ok(Reply { text: report::scores_table(&[(label, &scores)]), json, is_result: true })
}

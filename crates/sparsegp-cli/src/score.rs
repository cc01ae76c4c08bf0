//! `sparsegp score`: how good a model's predictions are.

use crate::context::{Context, Reply};
use crate::data::{BLOCK, MissingChoice, UnknownChoice};
use crate::fail::{Fail, Result};
use crate::format::count;
use crate::kind::{self, Kind};
use crate::noisy_args::NoisyArgs;
use crate::outputs::refuse_overwriting;
use crate::remembered::{self, Rows};
use crate::table_args::TableArgs;
use crate::{plot, scores};
use clap::{Args, ValueEnum};
use sparsegp::atomic;
use sparsegp::data::{Block, Selected};
use sparsegp::fit::{Dataset, Fitted, Of};
use sparsegp::io;
use sparsegp::linalg::{Mat, column};
use sparsegp::metrics::classes::{ClassMetrics, ClassOptions, ClassScores};
use sparsegp::metrics::counts::{CountMetrics, CountScores};
use sparsegp::metrics::density::{DensityMetrics, DensityScores, Predictions};
use sparsegp::metrics::{Metrics, Scores, negative_log_density};
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  sparsegp score model.safetensors test.csv
  sparsegp score model.safetensors data.csv.gz --test-mask masks.csv.gz:split0 --on test
  sparsegp score classifier.safetensors test.csv --plot reliability.svg --json
  sparsegp score model.safetensors train.csv --leave-one-out

All scores are in the data's units, and every row counts alike. RMSE, MAE, NLPD, MSLL and CRPS are
better the smaller they are (NLPD: mean negative log predictive density; MSLL: the same minus that of a
Gaussian with mean and variance of the training targets, so below 0 is better than knowing nothing).
Where the fit held rows out and the table is the same (or has more rows at its end), only the rows that
the model has not seen are scored; --on all scores all. R² is better the nearer to 1. Coverage is the share of the targets within the central 50, 90 and 95 %
intervals: it should be near those levels, or above them for counts.

Counts also have the mean Poisson deviance (smaller is better). Classes have accuracy, error, log loss,
Brier score (from 0 to 2), area under the ROC curve (of more than two classes: the mean of one against
the rest) and expected calibration error in 15 bins.";

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
    /// Which rows to score: those that were held out (by the mask, or by the fit), those that were learnt from, or all
    #[arg(long, value_enum, default_value_t)]
    pub on: Side,
    /// Predict every row of the training table from the others, without refitting: the table must have the
    /// training rows and no others. Exact for Gaussian noise, else by the model's own sites
    #[arg(long, conflicts_with = "plot")]
    pub leave_one_out: bool,
    /// What to do with rows that lack a number
    #[arg(long, value_enum, default_value_t)]
    pub missing: MissingChoice,
    /// What to do with categories that no training row had
    #[arg(long, value_enum, default_value_t)]
    pub unknown: UnknownChoice,
    /// Errors of inputs.
    #[command(flatten)]
    pub noisy: NoisyArgs,
    /// How the table is written.
    #[command(flatten)]
    pub table: TableArgs,
    /// Draw how reliable the probabilities of classes are, as SVG or PNG
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
}

/// A side of a mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// Rows marked 1; without a mask those that the fit held out, or all where it held none out
    #[default]
    Test,
    /// Rows marked 0; without a mask those that the model learnt from
    Train,
    /// All rows
    All,
}

/// Scores as the kind of likelihood has them.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(untagged)]
pub enum Score {
    /// Of Gaussian predictions.
    Gaussian(Scores),
    /// Of class probabilities.
    Classes(ClassScores),
    /// Of counts.
    Counts(CountScores),
    /// Of any other predictions.
    Density(DensityScores),
}

impl Score {
    /// Returns the number of targets that were scored.
    pub fn rows(&self) -> u64 {
        match self {
            Self::Gaussian(s) => s.rows,
            Self::Classes(s) => s.rows,
            Self::Counts(s) => s.general.rows,
            Self::Density(s) => s.rows,
        }
    }
}

/// Overall scores and those of every target.
#[derive(Clone, Debug, serde::Serialize)]
pub struct AllScores {
    /// Of all targets together.
    pub overall: Score,
    /// Of each target.
    pub targets: Vec<(String, Score)>,
    /// Rows that were left out.
    pub dropped: usize,
}

/// Levels of the central intervals.
const LEVELS: [f64; 3] = [0.5, 0.9, 0.95];

/// Running scores.
pub enum Running {
    /// Of Gaussian predictions.
    Gaussian(Metrics),
    /// Of class probabilities.
    Classes(ClassMetrics),
    /// Of counts, for each target.
    Counts(Vec<CountMetrics>),
    /// Of any other predictions, for each target.
    Density(Vec<DensityMetrics>),
}

impl Running {
    /// Creates the scores of nothing so far.
    pub fn new(fitted: &Fitted) -> Result<Self> {
        let targets = fitted.target_names.len();
        Ok(match Kind::of(fitted) {
            Kind::Gaussian => Self::Gaussian(Metrics::against_trivial(
                &fitted.target_mean,
                &fitted.target_variance,
            )?),
            Kind::Classes => {
                let classes = fitted.model.likelihood.classes().unwrap_or(0);
                Self::Classes(ClassMetrics::new(classes, ClassOptions::default())?)
            }
            Kind::Counts => Self::Counts(vec![CountMetrics::new(&LEVELS)?; targets]),
            Kind::Other => Self::Density(vec![DensityMetrics::new(&LEVELS)?; targets]),
        })
    }

    /// Creates the scores of predictions of several models of this kind, of which none is compared
    /// with a trivial one.
    pub fn pooled(fitted: &Fitted) -> Result<Self> {
        Ok(match Self::new(fitted)? {
            Self::Gaussian(_) => Self::Gaussian(Metrics::new(fitted.target_names.len())),
            own => own,
        })
    }

    /// Adds complete rows. Returns the sum of their negative log predictive densities, of all targets.
    pub fn add(&mut self, fitted: &Fitted, block: &Block) -> Result<f64> {
        let (x, extra) = (block.x.as_ref(), &block.extra[..]);
        let mut loss = 0.0;
        match self {
            Self::Gaussian(metrics) => {
                let (mean, variance) = fitted.predict_with(x, extra, Of::Observations)?;
                metrics.add(block.y.as_ref(), mean.as_ref(), variance.as_ref())?;
                for p in 0..block.y.ncols() {
                    for i in 0..block.rows.len() {
                        let at = (i, p);
                        loss += negative_log_density(block.y[at], mean[at], variance[at]);
                    }
                }
            }
            Self::Classes(metrics) => {
                let (probabilities, y) = (fitted.predict_proba(x)?, block.y.col_as_slice(0));
                metrics.add(y, probabilities.as_ref(), None)?;
                let chance = |i: usize| probabilities[(i, y[i] as usize)];
                loss -= (0..y.len()).map(|i| chance(i).ln()).sum::<f64>();
            }
            Self::Counts(metrics) => each(fitted, block, |p, of| {
                loss -= of.log_density.unwrap_or_default().iter().sum::<f64>();
                Ok(metrics[p].add(of)?)
            })?,
            Self::Density(metrics) => each(fitted, block, |p, of| {
                loss -= of.log_density.unwrap_or_default().iter().sum::<f64>();
                Ok(metrics[p].add(of)?)
            })?,
        }
        Ok(loss)
    }

    /// Returns the scores of all targets together and of each by its name; of rows beside so many
    /// that were left out.
    pub fn all(&self, fitted: &Fitted, dropped: usize) -> Result<AllScores> {
        let (overall, each) = self.finish()?;
        let targets = fitted.target_names.iter().cloned().zip(each).collect();
        Ok(AllScores { overall, targets, dropped })
    }

    /// Returns the scores of all targets together, and of each.
    pub fn finish(&self) -> Result<(Score, Vec<Score>)> {
        Ok(match self {
            Self::Gaussian(metrics) => {
                let each = metrics.finish_each()?.into_iter().map(Score::Gaussian);
                (Score::Gaussian(metrics.finish()?), each.collect())
            }
            Self::Classes(metrics) => {
                let score = Score::Classes(metrics.finish()?);
                (score.clone(), vec![score])
            }
            Self::Counts(metrics) => {
                let mut all = CountMetrics::new(&LEVELS)?;
                metrics.iter().try_for_each(|own| all.merge(own))?;
                let each = metrics.iter().map(|m| Ok(Score::Counts(m.finish()?)));
                (Score::Counts(all.finish()?), each.collect::<Result<_>>()?)
            }
            Self::Density(metrics) => {
                let mut all = DensityMetrics::new(&LEVELS)?;
                metrics.iter().try_for_each(|own| all.merge(own))?;
                let each = metrics.iter().map(|m| Ok(Score::Density(m.finish()?)));
                (Score::Density(all.finish()?), each.collect::<Result<_>>()?)
            }
        })
    }
}

/// Hands over means, log densities and distribution functions of every target column.
fn each(
    fitted: &Fitted,
    block: &Block,
    mut add: impl FnMut(usize, &Predictions<'_>) -> Result<()>,
) -> Result<()> {
    let (x, extra) = (block.x.as_ref(), &block.extra[..]);
    let all = fitted.judge(x, block.y.as_ref(), extra)?;
    for p in 0..fitted.target_names.len() {
        let of = Predictions {
            y: column(block.y.as_ref(), p),
            mean: Some(column(all.mean.as_ref(), p)),
            log_density: Some(column(all.log_density.as_ref(), p)),
            cdf: Some((column(all.below.as_ref(), p), column(all.up_to.as_ref(), p))),
            weights: None,
        };
        add(p, &of)?;
    }
    Ok(())
}

/// Returns the rows of a block that have all their targets.
pub fn complete(block: Block) -> Block {
    let n = block.rows.len();
    let has = |i: &usize| (0..block.y.ncols()).all(|p| !block.y[(*i, p)].is_nan());
    let kept: Vec<usize> = (0..n).filter(has).collect();
    if kept.len() == n { block } else { picked(&block, &kept) }
}

/// Picks some rows of a block, without texts that are passed through.
pub fn picked(block: &Block, kept: &[usize]) -> Block {
    let pick = |a: &Mat<f64>| Mat::from_fn(kept.len(), a.ncols(), |i, j| a[(kept[i], j)]);
    let part = |values: &[f64]| match values {
        [] => Vec::new(),
        _ => kept.iter().map(|i| values[*i]).collect(),
    };
    Block {
        start: block.start,
        rows: kept.iter().map(|i| block.rows[*i]).collect(),
        x: pick(&block.x),
        y: pick(&block.y),
        weights: part(&block.weights),
        extra: part(&block.extra),
        ids: Vec::new(),
    }
}

/// Scores a model on rows, those that have all their targets.
pub fn score(fitted: &Fitted, rows: &Selected, context: &Context) -> Result<AllScores> {
    let mut running = Running::new(fitted)?;
    let rows = kind::with_classes(rows.clone(), fitted.classes.as_ref());
    let mut blocks = rows.blocks(BLOCK, None)?;
    let mut unknown = Vec::new();
    for block in blocks.by_ref() {
        context.check_stop()?;
        let block = complete(block?);
        if !block.rows.is_empty() {
            running.add(fitted, &block)?;
        }
        fitted.count_unknown(block.x.as_ref(), &mut unknown);
    }
    context.warn(fitted.unknown_remark(&unknown).as_slice());
    running.all(fitted, blocks.dropped())
}

/// Scores every row as the others predict it.
pub fn left_out(fitted: &Fitted, rows: &Selected) -> Result<AllScores> {
    let loaded = kind::with_classes(rows.clone(), fitted.classes.as_ref()).read_all()?;
    let (y, dropped) = (loaded.y.clone(), loaded.dropped);
    let dataset = Dataset::from_loaded(loaded, fitted.scaler.clone())?;
    let found = fitted.leave_one_out(&dataset)?;
    let targets = fitted.target_names.len();
    let kept: Vec<usize> =
        (0..y.nrows()).filter(|i| (0..targets).all(|p| !y[(*i, p)].is_nan())).collect();
    let pick = |a: &Mat<f64>| Mat::from_fn(kept.len(), targets, |i, p| a[(kept[i], p)]);
    let [y, mean, variance, density] =
        [&y, &found.mean, &found.variance, &found.log_density].map(pick);
    let (overall, each) = match Kind::of(fitted) {
        Kind::Gaussian => {
            let mut metrics =
                Metrics::against_trivial(&fitted.target_mean, &fitted.target_variance)?;
            metrics.add(y.as_ref(), mean.as_ref(), variance.as_ref())?;
            let each = metrics.finish_each()?.into_iter().map(Score::Gaussian);
            (Score::Gaussian(metrics.finish()?), each.collect())
        }
        kind => {
            let mut all = DensityMetrics::new(&[])?;
            let mut each = Vec::new();
            for p in 0..targets {
                let mut own = DensityMetrics::new(&[])?;
                own.add(&Predictions {
                    y: column(y.as_ref(), p),
                    mean: (kind != Kind::Classes).then(|| column(mean.as_ref(), p)),
                    log_density: Some(column(density.as_ref(), p)),
                    cdf: None,
                    weights: None,
                })?;
                all.merge(&own)?;
                each.push(Score::Density(own.finish()?));
            }
            (Score::Density(all.finish()?), each)
        }
    };
    let targets = fitted.target_names.iter().cloned().zip(each).collect();
    Ok(AllScores { overall, targets, dropped })
}

/// Refuses a picture of what has no probabilities of classes.
fn check_plot(args: &ScoreArgs, fitted: &Fitted) -> Result<()> {
    if args.plot.is_some() && Kind::of(fitted) != Kind::Classes {
        return Err(Fail::usage(format!(
            "--plot draws how reliable probabilities of classes are, and the likelihood of {} is \
             `{}`",
            args.model.display(),
            fitted.model.likelihood.name()
        )));
    }
    Ok(())
}

/// Returns the rows to score, and what is known of them.
fn rows_to_score(args: &ScoreArgs, fitted: &Fitted, context: &Context) -> Result<(Selected, Rows)> {
    let table = args.table.open_for(&args.data, fitted)?;
    let (mut selection, note) = kind::judged(fitted, &table);
    if let Some(weight) = fitted.weight_name.as_ref().filter(|_| args.leave_one_out) {
        selection = selection.weight(weight);
    }
    context.warn(note.as_slice());
    let mask = args.test_mask.as_deref();
    let whole = table.select(&selection)?.missing(args.missing.into());
    let (opened, known) = remembered::open(table, &selection, args.missing.into(), fitted, mask)?;
    if (known, args.on) == (Rows::Unknown, Side::Train) {
        return Err(Fail::usage(format!(
            "--on train: which rows of {} the model learnt from is not known; add --test-mask FILE:COLUMN, or leave \
             --on out",
            args.data.display()
        )));
    }
    let remembered = matches!(known, Rows::Unseen(..));
    let rows = match (args.on, opened.test) {
        (Side::All, _) => whole,
        // the rows of the training and no others
        (Side::Test, Some(test)) if !(args.leave_one_out && remembered) => test,
        _ => opened.train,
    };
    Ok((rows, known))
}

/// Returns what to say below the scores of rows that the model has learnt from, or of those that it
/// has not.
fn remark(args: &ScoreArgs, fitted: &Fitted, known: Rows) -> String {
    match (known, args.on) {
        _ if args.leave_one_out => String::new(),
        (Rows::Learnt, _) if fitted.posterior.leaves_one_out(&fitted.model) => {
            "\nThe model learnt from these rows, which flatters it: --leave-one-out predicts each by the others.\n"
                .to_owned()
        }
        (Rows::Learnt, _) => "\nThe model learnt from these rows, which flatters it: hold some out (`fit --split`, \
                              `compare`).\n"
            .to_owned(),
        (Rows::Unseen(..), Side::Test) => format!("\n{}\n", known.sentence()),
        _ => String::new(),
    }
}

/// Runs the command.
pub fn run(args: &ScoreArgs, context: &Context) -> Result<Reply> {
    if let Some(path) = &args.plot {
        refuse_overwriting([path], [&args.model, &args.data])?;
        plot::check_name("--plot", path)?;
        atomic::check_writable(path)?;
    }
    let mut fitted = args.noisy.of(io::load(&args.model)?)?;
    fitted.unknown = args.unknown.into();
    check_plot(args, &fitted)?;
    let (rows, known) = rows_to_score(args, &fitted, context)?;
    let scores = match args.leave_one_out {
        true => left_out(&fitted, &rows)?,
        false => score(&fitted, &rows, context)?,
    };
    if scores.dropped > 0 {
        let rows = count(scores.dropped, "row");
        context.warn(&[format!("{rows} with missing numbers left out")]);
    }
    let label = match (known, args.on) {
        _ if args.leave_one_out => "each by the others",
        (Rows::Masked | Rows::Unseen(..), Side::Test) => known.tested(),
        (Rows::Masked | Rows::Unseen(..), Side::Train) => "train",
        _ => "all rows",
    };
    let mut text = scores::table(&[(label, &scores)]) + &remark(args, &fitted, known);
    if let Score::Classes(of) = &scores.overall {
        text += &scores::confusion(&kind::labels(&fitted), of);
        if let Some(path) = &args.plot {
            plot::reliability(path, &fitted, label, of)?;
            text += &format!("\nplot written to {}\n", path.display());
        }
    }
    let mut json = serde_json::json!({
        "command": "score",
        "model": args.model,
        "data": args.data,
        "rows": scores.overall.rows(),
        "dropped": scores.dropped,
        "leave_one_out": args.leave_one_out,
        "scored": label,
        "learnt_from": match (known, args.on) {
            (Rows::Learnt, _) | (Rows::Unseen(..), Side::Train) => Some(true),
            (Rows::Unseen(..), Side::Test) => Some(args.leave_one_out),
            _ => None,
        },
        "scores": scores::json(&scores).map_err(|e| Fail::Work(e.to_string()))?,
    });
    if fitted.classes.is_some() {
        json["classes"] = serde_json::json!(kind::labels(&fitted));
    }
    if let Some(path) = &args.plot {
        json["files"] = serde_json::json!({ "plot": path });
    }
    Ok(Reply { text, json, is_result: true })
}

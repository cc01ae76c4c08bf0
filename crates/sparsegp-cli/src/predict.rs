//! `sparsegp predict`: mean, standard deviation and quantiles for any number of rows.

use crate::context::{Context, Reply};
use crate::data::{BLOCK, MissingInPredict, UnknownChoice};
use crate::fail::{Fail, Result};
use crate::format::count;
use crate::kind;
use crate::noisy_args::NoisyArgs;
use crate::outputs::{refuse_both_on_stdout, refuse_overwriting};
use crate::predictions::{Form, FormArgs, field};
use crate::sink::Sink;
use crate::table_args::TableArgs;
use clap::{Args, ValueEnum};
use serde_json::json;
use sparsegp::data::{Missing, Selected, Table};
use sparsegp::fit::Fitted;
use sparsegp::io;
use sparsegp::linalg::{Mat, MatRef};
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  sparsegp predict model.safetensors new.csv
  sparsegp predict model.safetensors new.parquet --id key -o predictions.csv.gz
  sparsegp predict model.safetensors new.csv --quantiles 0.05,0.5,0.95 --latent
  sparsegp predict model.safetensors new.csv --terms
  sparsegp predict model.safetensors many.parquet --precision mixed -o predictions.csv

Writes a row per row of the table: the --id columns as they stand, then mean, sd and the quantiles as
q0.025 and so on (with the target's name in front where the model has several targets), in the data's
units. Of classes: the most probable one as `label`, then the probability of each as p_LABEL. With
--latent: mean, sd and quantiles of every latent function; where a target has several they are called
f_… and stand on the model's scale.

With --terms the columns end with the parts of the latent function, whose means add up to its mean: its
mean function, and the summands of the kernel by name (rbf + linear: rbf_mean, rbf_sd, linear_mean, …).
The kernel additive(order=2) has one for each input, additive(age)_mean, and additive order 2_mean. Their
variances do not add up: what rows cannot put down to one term or another is uncertain in each. Most of that
is a constant, which --centred takes off: then every term has the mean 0 over the training rows (the inducing
points of a sparse model), and these means are part of the mean function.

The input columns are found by name, and so are exposures, trials and known noise variances; without
such a column exposures are 1 and known noise variances 0.

With --precision mixed products of rows with inducing points have 24 bits, in up to half the time: for large
tables and many inducing points, with a sparse method of one layer. Some hundred rows of the table are predicted in
both precisions before; where a standard deviation would change by more than 1 % all of them are in double
precision, and a warning says so. Means and --terms are in double precision always.

--missing keep leaves the predictions of
rows that lack a number empty, so that as many rows come out as went in. Tables of any length are streamed.";

/// Options of `sparsegp predict`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct PredictArgs {
    /// Model file
    pub model: PathBuf,
    /// Table with the model's input columns
    pub data: PathBuf,
    /// Write CSV here instead of to stdout; compressed if the name ends in .gz
    #[arg(long, short, value_name = "OUT.csv")]
    pub output: Option<PathBuf>,
    /// Pass these columns through, in this order
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    pub id: Vec<String>,
    /// What is predicted.
    #[command(flatten)]
    pub form: FormArgs,
    /// With --terms: centre every term, so that its mean over the training rows (the inducing points of a sparse model) is 0
    #[arg(long, requires = "terms")]
    pub centred: bool,
    /// What to do with rows that lack a number
    #[arg(long, value_enum, default_value_t)]
    pub missing: MissingInPredict,
    /// What to do with categories that no training row had
    #[arg(long, value_enum, default_value_t)]
    pub unknown: UnknownChoice,
    /// What products of rows with inducing points are made in, whatever the model was trained in
    #[arg(long, value_enum, default_value_t, value_name = "P")]
    pub precision: Precision,
    /// Errors of inputs.
    #[command(flatten)]
    pub noisy: NoisyArgs,
    /// How the table is written.
    #[command(flatten)]
    pub table: TableArgs,
}

/// What predictions are made in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Precision {
    /// All of it with 53 bits
    #[default]
    Double,
    /// Products of rows with 24 bits; in double precision where that is too few
    Mixed,
}

impl Precision {
    fn name(self) -> &'static str {
        if self == Self::Mixed { "mixed" } else { "double" }
    }
}

/// Rows of the table that are looked at before predictions in mixed precision.
const SOME: usize = 1000;

/// Reads some rows of all parts of a table, by one pass over it.
fn some_rows(rows: &Selected, context: &Context) -> Result<Mat<f64>> {
    let (mut kept, mut step, mut next) = (Vec::new(), 1, 0);
    let mut inputs = 0;
    for block in rows.blocks(BLOCK, None)? {
        let x = match block {
            Err(sparsegp::Error::NoRows { .. }) => break,
            block => block?.x,
        };
        context.check_stop()?;
        inputs = x.ncols();
        for i in 0..x.nrows() {
            if next % step == 0 {
                kept.push((0..inputs).map(|q| x[(i, q)]).collect::<Vec<f64>>());
            }
            next += 1;
            if kept.len() == 2 * SOME {
                let mut at = 0;
                kept.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                step *= 2;
            }
        }
    }
    Ok(Mat::from_fn(kept.len(), inputs, |i, q| kept[i][q]))
}

/// Rows that are kept although a number is missing: they have nothing but what is passed through.
struct Gaps {
    /// The cells of the columns that are passed through, in the rows of the file.
    ids: Vec<Vec<String>>,
    /// Empty cells of the predictions.
    empty: String,
    /// Rows of the file, and the next one to write.
    rows: usize,
    next: usize,
}

impl Gaps {
    fn new(args: &PredictArgs, form: &Form, table: &Table, rows: usize) -> Result<Self> {
        let ids = args.id.iter().map(|name| Ok(table.texts(name)?)).collect::<Result<_>>()?;
        let commas = form.width() - usize::from(args.id.is_empty());
        Ok(Self { ids, empty: ",".repeat(commas) + "\n", rows, next: 0 })
    }

    /// Returns the lines of rows before this one that have not been written, and how many there
    /// are.
    fn before(&mut self, row: usize) -> (String, usize) {
        let (mut text, missing) = (String::new(), row.saturating_sub(self.next));
        for gap in self.next..row {
            let ids: Vec<String> = self.ids.iter().map(|cells| field(&cells[gap])).collect();
            text += &ids.join(",");
            text += &self.empty;
        }
        self.next = row + 1;
        (text, missing)
    }
}

/// Returns the model that predicts these rows in a precision, and the one that it is; a warning
/// says why that is another.
fn in_precision(
    asked: Precision,
    fitted: Fitted,
    rows: &Selected,
    context: &Context,
) -> Result<(Fitted, Precision)> {
    if asked == Precision::Double {
        return Ok((fitted, asked));
    }
    fitted.check_mixed_precision()?;
    let some = some_rows(rows, context)?;
    // the pass that predicts says so, unless they are kept empty
    if some.nrows() == 0 {
        return Ok((fitted, Precision::Double));
    }
    let (fitted, reason) = fitted.in_mixed_precision(some.as_ref())?;
    context.warn(reason.as_slice());
    Ok((fitted, if reason.is_none() { asked } else { Precision::Double }))
}

/// Returns the model, as it reads new rows.
fn loaded(args: &PredictArgs) -> Result<Fitted> {
    let mut fitted = args.noisy.of(io::load(&args.model)?)?;
    fitted.unknown = args.unknown.into();
    Ok(fitted)
}

/// What there is to say of the rows of all blocks.
#[derive(Default)]
struct Remarks {
    late: Option<String>,
    unknown: Vec<usize>,
}

impl Remarks {
    fn add(&mut self, fitted: &Fitted, x: MatRef<'_, f64>) {
        self.late = fitted.calendar_remark(x).or(self.late.take());
        fitted.count_unknown(x, &mut self.unknown);
    }

    fn of(self, fitted: &Fitted) -> Vec<String> {
        self.late.into_iter().chain(fitted.unknown_remark(&self.unknown)).collect()
    }
}

/// Runs the command.
pub fn run(args: &PredictArgs, context: &Context) -> Result<Reply> {
    let path = args.output.as_deref();
    refuse_both_on_stdout(path, context.json(), "predictions")?;
    refuse_overwriting(&args.output, [&args.data, &args.model])?;
    let fitted = loaded(args)?;
    let table = args.table.open_for(&args.data, &fitted)?;
    let selection = fitted.selection_of_new().ids(&args.id);
    let (selection, note) = match args.form.latent {
        true => (selection, None),
        false => kind::with_extra(&fitted, &table, selection),
    };
    // rows without a number are not predicted: they are added to what is written
    let keeps = args.missing == MissingInPredict::Keep;
    let missing = if keeps { Missing::Drop } else { args.missing.into() };
    let rows = table.select(&selection)?.missing(missing);
    context.warn(note.as_slice());
    let (fitted, precision) = in_precision(args.precision, fitted, &rows, context)?;
    let form = args.form.form(&fitted, &args.id, args.centred)?;
    let header = form.header()?;
    let mut blocks = rows.blocks(BLOCK, None)?;
    let mut sink = Sink::open(path)?;
    let name = path.map_or("stdout".to_owned(), |path| path.display().to_string());
    let failed = |e: std::io::Error| Fail::output(&name, &e);
    let mut gaps = match keeps {
        true => Some(Gaps::new(args, &form, &table, rows.count_rows()?)?),
        false => None,
    };
    let (mut done, mut empty, mut remarks) = (0, 0, Remarks::default());
    for block in blocks.by_ref() {
        let block = match (block, &gaps) {
            // a table without any row to predict
            (Err(sparsegp::Error::NoRows { .. }), Some(_)) => break,
            (block, _) => block?,
        };
        context.check_stop()?;
        remarks.add(&fitted, block.x.as_ref());
        if done == 0 {
            sink.write(&header).map_err(failed)?;
        }
        for (line, row) in form.lines(&args.data, &fitted, &block)?.iter().zip(&block.rows) {
            if let Some(gaps) = &mut gaps {
                let (text, missing) = gaps.before(*row);
                empty += missing;
                sink.write(&text).map_err(failed)?;
            }
            sink.write(line).map_err(failed)?;
        }
        done += block.rows.len();
    }
    if let Some(gaps) = &mut gaps {
        if done == 0 {
            sink.write(&header).map_err(failed)?;
        }
        let (text, missing) = gaps.before(gaps.rows);
        empty += missing;
        sink.write(&text).map_err(failed)?;
    }
    sink.finish(&name)?;
    context.warn(&remarks.of(&fitted));
    if empty > 0 {
        context.warn(&[format!(
            "{} with missing numbers: their predictions are empty",
            count(empty, "row")
        )]);
    } else if blocks.dropped() > 0 {
        let dropped = count(blocks.dropped(), "row");
        context.warn(&[format!(
            "{dropped} with missing numbers left out: use --id to tell which are there"
        )]);
    }
    let text = match path {
        Some(_) => format!("{} predicted, written to {name}", count(done, "row")),
        None => String::new(),
    };
    let json = json!({
        "command": "predict", "model": args.model, "data": args.data, "output": path,
        "precision": precision.name(), "rows": done, "dropped": if keeps { 0 } else { blocks.dropped() }, "empty": empty,
    });
    Ok(Reply { text, json, is_result: false })
}

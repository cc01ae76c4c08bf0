//! `sparsegp follow`: rows as they come, predicted before they are learnt.

mod begin;
pub mod known;
mod lines;
mod part;
mod reply;
mod sink;

use crate::context::{Context, Reply};
use crate::data::{BLOCK, MissingChoice, Opened};
use crate::fail::{Fail, Result};
use crate::format::{count, number};
use crate::outputs::{has_extension, refuse_overwriting};
use crate::predictions::Form;
use crate::progress::Ticker;
use crate::score::{Running, complete};
use crate::table_args::TableArgs;
use crate::update::LearnArgs;
use crate::{kind, saving, values};
use clap::Args;
use known::Followed;
use lines::{Lines, Waited};
use part::Part;
use sink::Sink;
use sparsegp::data::Mask;
use sparsegp::fit::{Fitted, Of};
use sparsegp::online::Drift;
use sparsegp::{atomic, io};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const AFTER: &str = "\
Examples:
  tail -n +1 -f log.csv | sparsegp follow model.safetensors - -o model.safetensors
  sparsegp follow model.safetensors rows.csv -o model.safetensors --predictions before.csv
  sparsegp follow model.safetensors rows.csv --forget 0.99 -o model.safetensors

Rows are read until the stream ends, or Ctrl-C does; the first line has the names of the columns. Each batch is predicted, then
learnt (as by `sparsegp update`, with one pass and without old rows), so that the scores are of predictions made before a
row was seen: the honest judgement of a stream. The model is written every --save-every, in one piece, and at the
end. Where it overwrites the model file itself, the same command on the same stream resumes at the last save: no row
counts twice, even if the run was killed.

Rows that are predicted much worse than those before are reported as a change. A kernel and a noise that no longer
suit have to be fitted again, or learnt on the way with --train; what has moved slowly is followed with --forget.
A batch costs a model of method markov the same however long the stream is: see --keep-rows.";

/// Options of `sparsegp follow`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct FollowArgs {
    /// Model file
    pub model: PathBuf,
    /// Rows as CSV with a header: a file or a pipe, or - for standard input
    pub data: PathBuf,
    /// Where the model goes; may be the model file itself
    #[arg(long, short, value_name = "MODEL.safetensors")]
    pub output: PathBuf,
    /// Rows that are learnt together
    #[arg(long, value_name = "ROWS", default_value = "100", value_parser = values::at_least_one)]
    pub batch: usize,
    /// Learn fewer rows where no more have come for so long
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::time)]
    pub patience: f64,
    /// Time between two saves
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = values::time)]
    pub save_every: f64,
    /// Write the predictions of rows before they are learnt as CSV, as they come
    #[arg(long, value_name = "OUT.csv")]
    pub predictions: Option<PathBuf>,
    /// Pass these columns through to the predictions, in this order, beside the targets
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', requires = "predictions")]
    pub id: Vec<String>,
    #[command(flatten)]
    pub learn: LearnArgs,
    /// Take a stream from its beginning that the model has followed: its rows then count twice
    #[arg(long)]
    pub again: bool,
    /// What to do with rows that lack a number
    #[arg(long, value_enum, default_value_t)]
    pub missing: MissingChoice,
    /// How the rows are written.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Rows that a series keeps by default: a window that holds what late rows, plots and rows left out ask for, and costs little to
/// copy.
const KEPT: usize = 10_000;

/// Quantiles of predictions that are written.
const QUANTILES: [f64; 2] = [0.025, 0.975];

/// A change that was noticed.
#[derive(serde::Serialize)]
struct Changed {
    first_row: usize,
    nlpd_before: f64,
    nlpd_since: f64,
}

/// What has become of the stream so far.
struct Following<'a> {
    args: &'a FollowArgs,
    context: &'a Context,
    fitted: Fitted,
    running: Running,
    drift: Drift,
    changes: Vec<Changed>,
    /// First rows of the last batches, and the sum of losses and the rows of the present window of the progress.
    starts: [usize; 2],
    recent: (f64, usize),
    form: Option<Form>,
    /// Where predictions go, from the first on.
    sink: Option<Sink>,
    taken: Followed,
    /// Loss and rows that wait to be as many as a batch.
    waiting: (f64, usize),
    /// Whether something was learnt since the last save.
    unsaved: bool,
    /// Rows of this run: learnt, left out; points that were added, rows that found none.
    learnt: usize,
    dropped: usize,
    /// Rows that came too late for a series.
    late: usize,
    added: usize,
    uncovered: usize,
    bound: f64,
    batches: usize,
    said: Vec<String>,
}

impl<'a> Following<'a> {
    /// Begins a stream of which some rows were taken before.
    fn new(
        args: &'a FollowArgs,
        context: &'a Context,
        fitted: Fitted,
        taken: Followed,
    ) -> Result<Self> {
        fitted.check_updates()?;
        let form = args.predictions.as_ref().map(|_| {
            let ids = [observed(&fitted), args.id.clone()].concat();
            Form::new(&fitted, Of::Observations, &ids, quantiles(&fitted))
        });
        // what is wrong with the names is known before anything is learnt
        form.as_ref().map(Form::header).transpose()?;
        Ok(Self {
            args,
            context,
            running: Running::new(&fitted)?,
            fitted,
            drift: Drift::default(),
            changes: Vec::new(),
            starts: [0; 2],
            recent: (0.0, 0),
            form,
            sink: None,
            taken,
            waiting: (0.0, 0),
            unsaved: false,
            learnt: 0,
            dropped: 0,
            late: 0,
            added: 0,
            uncovered: 0,
            bound: 0.0,
            batches: 0,
            said: Vec::new(),
        })
    }

    /// Returns what to say while rows are learnt, after so much time.
    fn progress(&self, elapsed: Duration) -> String {
        let rate = self.learnt as f64 / elapsed.as_secs_f64().max(1e-9);
        let kept = self.fitted.posterior.kept_rows().is_some();
        let known = if kept { "kept row" } else { "inducing point" };
        format!(
            "{}, {}/s, NLPD {} of the last {}, {}",
            count(self.taken.rows, "row"),
            count(rate as usize, "row"),
            number(self.recent.0 / self.recent.1.max(1) as f64, 4),
            self.recent.1,
            count(self.fitted.posterior.points().nrows(), known)
        )
    }

    /// Predicts and then learns some rows; how many were taken from the stream is counted whatever becomes of them.
    fn batch(&mut self, lines: &Lines, rows: &[Vec<u8>]) -> Result<()> {
        let from = self.taken.rows;
        let part = Part::new(lines, rows, from)?;
        match self.rows_of(&part, rows.len()) {
            Err(Fail::Empty(_)) if self.args.missing == MissingChoice::Drop => {
                self.dropped += rows.len();
            }
            Err(fail) => {
                // of rows that were not learnt nothing is left behind
                if let Some(sink) = &mut self.sink {
                    sink.back_to(self.taken.written)?;
                }
                return Err(part.named(fail));
            }
            Ok(()) => {}
        }
        rows.iter().for_each(|row| self.taken.add(row));
        if let Some(sink) = &self.sink {
            self.taken.written = sink.written;
        }
        self.unsaved = true;
        Ok(())
    }

    fn rows_of(&mut self, part: &Part, count: usize) -> Result<()> {
        let opened = part.open(self.args, &self.fitted, self.args.missing.into())?;
        let Some(opened) = self.in_time(opened, count)? else { return Ok(()) };
        opened.check(&*self.fitted.model.likelihood)?;
        let (dataset, dropped) = opened.on_scale_of(&self.fitted)?;
        let (mut loss, mut scored) = (0.0, 0);
        for block in opened.train.blocks(BLOCK, None)? {
            let block = block?;
            let written = match &self.form {
                Some(form) => form.lines(part.file.path(), &self.fitted, &block)?,
                None => Vec::new(),
            };
            let block = complete(block);
            if !block.rows.is_empty() {
                loss += self.running.add(&self.fitted, &block)?;
                scored += block.rows.len();
            }
            if let (Some(form), Some(path)) = (&self.form, &self.args.predictions) {
                let sink = match &mut self.sink {
                    Some(sink) => sink,
                    none => none.insert(Sink::open(path, &form.header()?, self.taken.written)?),
                };
                sink.write(&written.concat())?;
            }
        }
        let mut options = self.args.learn.options()?;
        if self.fitted.model.method.is_of_series() && options.forget >= 1.0 {
            options.keep_rows = options.keep_rows.or(Some(KEPT));
        }
        // by the rows, and not by how they come
        options.forget = options.forget.powf(count as f64 / self.args.batch as f64);
        let (updated, report) =
            sparsegp::fit::update(&self.fitted, &dataset, &options, &mut |_, _| Ok(()))
                .map_err(LearnArgs::fail)?;
        self.fitted = updated;
        self.say_once(&self.fitted.warnings.clone());
        self.learnt += report.rows;
        self.dropped += dropped;
        self.added += report.added;
        self.uncovered += report.uncovered;
        self.bound += report.bound;
        self.batches += 1;
        self.watch(part.from, loss, scored);
        Ok(())
    }

    /// Leaves rows out that a series knows nothing of, because they lie before others that have left it; none where all do. A
    /// stream with such a row could not be followed any further otherwise.
    fn in_time(&mut self, mut opened: Opened, rows: usize) -> Result<Option<Opened>> {
        let Some(from) = self.fitted.kept_from() else { return Ok(Some(opened)) };
        let mut late = vec![false; rows];
        for block in opened.train.blocks(BLOCK, None)? {
            let block = block?;
            let known = self.fitted.lie_before_kept(block.x.as_ref())?;
            block.rows.iter().zip(known).for_each(|(row, own)| late[*row] = own);
        }
        let number = late.iter().filter(|own| **own).count();
        if number == 0 {
            return Ok(Some(opened));
        }
        self.late += number;
        self.say_once(&[format!(
            "left out {} of the stream before {from}, up to where others have left the model: --keep-rows keeps more",
            count(number, "row")
        )]);
        opened.train = opened.train.rows_where(Arc::new(Mask::new("late rows", late)), false);
        Ok((number < rows).then_some(opened))
    }

    /// Prints warnings that were not said before, whatever their numbers.
    fn say_once(&mut self, warnings: &[String]) {
        let plain = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
        for warning in warnings {
            if !self.said.iter().any(|said| plain(said) == plain(warning)) {
                self.context.warn(std::slice::from_ref(warning));
                self.said.push(warning.clone());
            }
        }
    }

    fn watch(&mut self, from: usize, loss: f64, scored: usize) {
        // as the table of scores: of a row and a target
        let loss = loss / self.fitted.target_names.len() as f64;
        self.recent = (self.recent.0 + loss, self.recent.1 + scored);
        if self.waiting.1 == 0 {
            self.starts = [self.starts[1], from + 1];
        }
        // means of fewer rows spread more
        self.waiting = (self.waiting.0 + loss, self.waiting.1 + scored);
        if self.waiting.1 < self.args.batch {
            return;
        }
        let (loss, scored) = std::mem::take(&mut self.waiting);
        if let Some(change) = self.drift.add(loss / scored as f64) {
            let changed = Changed {
                first_row: self.starts[0],
                nlpd_before: change.before,
                nlpd_since: change.now,
            };
            self.context.warn(&[format!(
                "rows from {} on are predicted worse than those before, NLPD {} after {}: their source has changed. \
                 --forget follows slow changes and --train learns on the way; after a sudden one fit again",
                changed.first_row,
                number(changed.nlpd_since, 4),
                number(changed.nlpd_before, 4)
            )]);
            self.changes.push(changed);
        }
    }

    fn save(&mut self, before: &[Followed], resumed: Option<&Followed>) -> Result<()> {
        known::note(&mut self.fitted, before, resumed, &self.taken);
        if self.learnt > 0 {
            self.fitted.warnings.clone_from(&self.said);
        }
        saving::save(&self.fitted, &self.args.output)?;
        self.unsaved = false;
        Ok(())
    }
}

/// Returns the names of targets in the predictions, which have their own columns.
fn observed(fitted: &Fitted) -> Vec<String> {
    let taken = |name: &String| {
        ["mean", "sd", "label"].contains(&name.as_str())
            || name.starts_with("q0.")
            || name.starts_with("p_")
    };
    let own = |name: &String| if taken(name) { format!("{name}_observed") } else { name.clone() };
    fitted.target_names.iter().map(own).collect()
}

/// Runs the command.
pub fn run(args: &FollowArgs, context: &Context) -> Result<Reply> {
    refuse_overwriting([&args.output].into_iter().chain(&args.predictions), [&args.data])?;
    refuse_overwriting(&args.predictions, [&args.model])?;
    if let Some(path) = args.predictions.as_ref().filter(|path| has_extension(path, "gz")) {
        // a resumed run cuts the file where the last save was
        return Err(Fail::usage(format!(
            "--predictions {}: they are written as they come, and cannot be compressed; give a name that ends in .csv",
            path.display()
        )));
    }
    args.learn.options()?;
    atomic::check_writable(&args.output)?;
    let fitted = io::load(&args.model)?;
    let before = known::all(&fitted);
    let stopped = || context.interrupted();
    let mut lines = Lines::open(&args.data, &stopped)?;
    let begun = begin::begin(args, &fitted, &mut lines, &before, context)?;
    let (skipped, resumed) = (begun.taken.rows, begun.resumed.as_ref());
    let mut own = Following::new(args, context, fitted, begun.taken.clone())?;
    let (started, mut saved) = (Instant::now(), Instant::now());
    let mut ticker = Ticker::new(context);
    let patience = Some(Duration::from_secs_f64(args.patience));
    let ended = loop {
        let every = Duration::from_secs_f64(args.save_every);
        let deadline = own.unsaved.then(|| saved + every);
        match lines.wait(args.batch, patience, deadline, &stopped) {
            Err(fail) => break Err(fail),
            Ok(Waited::Idle) => {
                own.save(&before, resumed)?;
                saved = Instant::now();
                continue;
            }
            Ok(Waited::Rows) if !context.interrupted() => {}
            Ok(_) => break Ok(()),
        }
        let rows = lines.take(args.batch);
        if let Err(fail) = own.batch(&lines, &rows) {
            break Err(fail);
        }
        if ticker.say(own.progress(started.elapsed())) {
            own.recent = (0.0, 0);
        }
        if saved.elapsed() > every {
            own.save(&before, resumed)?;
            saved = Instant::now();
        }
    };
    drop(ticker);
    if own.learnt > 0 || ended.is_ok() {
        own.save(&before, resumed)?;
    }
    if let Err(fail) = ended {
        return Err(match (fail, own.learnt) {
            (Fail::Work(text), learnt) if learnt > 0 => Fail::Work(format!(
                "{text}. The {} before were learnt, and the model is in {}; leave such rows out with --missing drop where \
                 numbers are missing",
                count(own.taken.rows, "row"),
                args.output.display()
            )),
            (fail, _) => fail,
        });
    }
    reply::reply(&own, skipped, started.elapsed())
}

/// Returns the levels of quantiles, of which classes have none.
fn quantiles(fitted: &Fitted) -> &'static [f64] {
    if kind::Kind::of(fitted) == kind::Kind::Classes { &[] } else { &QUANTILES }
}

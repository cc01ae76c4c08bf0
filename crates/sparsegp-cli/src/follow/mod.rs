//! `sparsegp follow`: rows as they come, predicted before they are learnt.

mod known;
mod lines;
mod part;

use crate::context::{Context, Reply};
use crate::data::{BLOCK, MissingChoice};
use crate::fail::{Fail, Result};
use crate::format::{count, number, seconds};
use crate::predictions::Form;
use crate::score::{AllScores, Running, complete};
use crate::table_args::TableArgs;
use crate::update::LearnArgs;
use crate::{kind, saving, scores, values};
use clap::Args;
use indicatif::ProgressBar;
use known::{Followed, HEAD};
use lines::{Lines, Waited};
use part::{Part, is_empty};
use sparsegp::fit::{Division, Fitted, Of};
use sparsegp::online::Drift;
use sparsegp::{atomic, io};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const AFTER: &str = "\
Examples:
  tail -n +1 -f log.csv | sparsegp follow model.safetensors - -o model.safetensors
  sparsegp follow model.safetensors rows.csv -o model.safetensors --predictions before.csv
  sparsegp follow model.safetensors rows.csv --forget 0.99 -o model.safetensors

Rows are read until the stream ends, or Ctrl-C does; the first line has the names of the columns. Each batch is predicted, then
learnt (as by `sparsegp update`, with one pass and without old rows), so that the scores are of predictions made before a
row was seen: the honest judgement of a stream. The model is written every --save-every, in one piece, and at the
end. Where it goes over the model file itself, the same command on the same stream goes on where the last save was: no row
counts twice, though the run was killed.

Rows that are predicted much worse than those before are reported as a change. A kernel and a noise that no longer
suit have to be fitted again; what has moved slowly is followed with --forget.";

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
    /// Pass this column through to the predictions, beside the targets; repeatable
    #[arg(long, value_name = "COLUMN", requires = "predictions")]
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

/// Quantiles of predictions that are written.
const QUANTILES: [f64; 2] = [0.025, 0.975];
/// Seconds between lines of progress.
const SAY: Duration = Duration::from_secs(5);

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
    form: Option<(Form, Sink)>,
    taken: Followed,
    /// Rows of this run: learnt, left out; points that were added, rows that found none.
    learnt: usize,
    dropped: usize,
    added: usize,
    uncovered: usize,
    bound: f64,
    batches: usize,
    said: Vec<String>,
}

impl Following<'_> {
    /// Predicts and then learns some rows; how many were taken from the stream is counted whatever becomes of them.
    fn batch(&mut self, lines: &Lines, rows: &[Vec<u8>]) -> Result<()> {
        let from = self.taken.rows;
        let part = Part::new(lines, rows, from)?;
        let outcome = self.rows_of(&part);
        match outcome {
            Err(fail) if self.args.missing == MissingChoice::Drop && is_empty(&fail) => {
                self.dropped += rows.len();
            }
            outcome => outcome.map_err(|fail| part.named(fail))?,
        }
        rows.iter().for_each(|row| self.taken.add(row));
        Ok(())
    }

    fn rows_of(&mut self, part: &Part) -> Result<()> {
        let opened = part.open(self.args, &self.fitted)?;
        opened.check(&*self.fitted.model.likelihood)?;
        let (dataset, dropped) = opened.on_scale_of(&self.fitted)?;
        let (mut loss, mut scored) = (0.0, 0);
        for block in opened.train.blocks(BLOCK, None)? {
            let block = block?;
            let written = match &self.form {
                Some((form, _)) => form.lines(part.file.path(), &self.fitted, &block)?,
                None => Vec::new(),
            };
            let block = complete(block);
            if !block.rows.is_empty() {
                loss += self.running.add(&self.fitted, &block)?;
                scored += block.rows.len();
            }
            if let Some((_, sink)) = &mut self.form {
                sink.write(&written.concat())?;
            }
        }
        let options = self.args.learn.options();
        let (updated, report) =
            sparsegp::fit::update(&self.fitted, &dataset, &options, &mut |_, _| Ok(()))
                .map_err(LearnArgs::fail)?;
        self.fitted = updated;
        self.say_once();
        self.learnt += report.rows;
        self.dropped += dropped;
        self.added += report.added;
        self.uncovered += report.uncovered;
        self.bound += report.bound;
        self.batches += 1;
        self.watch(part.from, loss, scored);
        Ok(())
    }

    /// Warnings of an update that were not said before, whatever their numbers.
    fn say_once(&mut self) {
        let plain = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
        for warning in self.fitted.warnings.clone() {
            if !self.said.iter().any(|said| plain(said) == plain(&warning)) {
                self.context.warn(std::slice::from_ref(&warning));
                self.said.push(warning);
            }
        }
    }

    fn watch(&mut self, from: usize, loss: f64, scored: usize) {
        if scored == 0 {
            return;
        }
        self.recent = (self.recent.0 + loss, self.recent.1 + scored);
        self.starts = [self.starts[1], from + 1];
        if let Some(change) = self.drift.add(loss / scored as f64) {
            let changed = Changed {
                first_row: self.starts[0],
                nlpd_before: change.before,
                nlpd_since: change.now,
            };
            self.context.warn(&[format!(
                "rows from {} on are predicted worse than those before, NLPD {} after {}: what they are from has changed. \
                 --forget follows slow changes; after a sudden one fit again",
                changed.first_row,
                number(changed.nlpd_since, 4),
                number(changed.nlpd_before, 4)
            )]);
            self.changes.push(changed);
        }
    }

    fn save(&mut self, before: &[Followed], resumed: Option<Followed>) -> Result<()> {
        self.taken.written = self.form.as_ref().map_or(0, |(_, sink)| sink.written);
        known::note(&mut self.fitted, before, resumed, self.taken);
        self.fitted.warnings.clone_from(&self.said);
        saving::save(&self.fitted, &self.args.output)
    }

    fn scores(&self) -> Result<Option<AllScores>> {
        if self.learnt == 0 {
            return Ok(None);
        }
        let (overall, each) = self.running.finish()?;
        let targets = self.fitted.target_names.iter().cloned().zip(each).collect();
        Ok(Some(AllScores { overall, targets, dropped: self.dropped }))
    }
}

/// Rows at the beginning of the stream that the model has learnt: by a run before this one, or by its fit.
fn seen(
    args: &FollowArgs,
    fitted: &Fitted,
    lines: &mut Lines,
    before: &[Followed],
    stopped: &dyn Fn() -> bool,
) -> Result<(usize, Option<Followed>)> {
    if args.again {
        return Ok((0, None));
    }
    let patience = Some(Duration::from_secs_f64(args.patience));
    if !before.is_empty() {
        lines.wait(HEAD, patience, stopped)?;
        if let Some(own) = known::find(before, lines.pending.iter()) {
            return Ok((own.rows, Some(own)));
        }
    }
    // the table of the fit, if it comes fast enough to be told
    let Some(division) = &fitted.division else { return Ok((0, None)) };
    let head = division.rows.min(4096);
    lines.wait(head, patience, stopped)?;
    if lines.pending.len() < head {
        return Ok((0, None));
    }
    let first: Vec<Vec<u8>> = lines.pending.iter().take(head).cloned().collect();
    let part = Part::new(lines, &first, 0)?;
    // a table that cannot be read says so when its rows are taken
    let same = part.open(args, fitted).and_then(|opened| {
        Ok(Division::fingerprint(&[&opened.train], division.rows)? == division.fingerprint)
    });
    Ok((if same.unwrap_or(false) { division.rows } else { 0 }, None))
}

/// Runs the command.
pub fn run(args: &FollowArgs, context: &Context) -> Result<Reply> {
    for path in [Some(&args.output), args.predictions.as_ref()].into_iter().flatten() {
        if *path == args.data || (Some(path) == args.predictions.as_ref() && *path == args.model) {
            let path = path.display();
            return Err(Fail::usage(format!("{path} would be overwritten; choose another name")));
        }
    }
    atomic::check_writable(&args.output)?;
    let fitted = io::load(&args.model)?;
    let before = known::all(&fitted);
    let stopped = || context.interrupted();
    let mut lines = Lines::open(&args.data, &stopped)?;
    let (skipped, resumed) = seen(args, &fitted, &mut lines, &before, &stopped)?;
    let form = match &args.predictions {
        None => None,
        Some(path) => {
            let ids = [&fitted.target_names[..], &args.id[..]].concat();
            let form = Form::new(&fitted, Of::Observations, &ids, quantiles(&fitted));
            let sink = Sink::open(path, &form.header()?, resumed.map_or(0, |own| own.written))?;
            Some((form, sink))
        }
    };
    let mut own = Following {
        args,
        context,
        running: Running::new(&fitted)?,
        fitted,
        drift: Drift::default(),
        changes: Vec::new(),
        starts: [0; 2],
        recent: (0.0, 0),
        form,
        taken: Followed::default(),
        learnt: 0,
        dropped: 0,
        added: 0,
        uncovered: 0,
        bound: 0.0,
        batches: 0,
        said: Vec::new(),
    };
    skip(&mut own, &mut lines, skipped, resumed, &stopped)?;
    let (begun, mut saved, mut spoken) = (Instant::now(), Instant::now(), Instant::now());
    let bar = context.is_watched().then(ProgressBar::new_spinner);
    let patience = Some(Duration::from_secs_f64(args.patience));
    let ended = loop {
        match lines.wait(args.batch, patience, &stopped)? {
            Waited::Rows if !context.interrupted() => {}
            _ => break Ok(()),
        }
        let rows = lines.take(args.batch);
        if let Err(fail) = own.batch(&lines, &rows) {
            break Err(fail);
        }
        let rate = own.learnt as f64 / begun.elapsed().as_secs_f64().max(1e-9);
        let text = format!(
            "{}, {}/s, NLPD {} of the last {}, {}",
            count(own.taken.rows, "row"),
            count(rate as usize, "row"),
            number(own.recent.0 / own.recent.1.max(1) as f64, 4),
            own.recent.1,
            count(own.fitted.model.inducing_points()?.nrows(), "inducing point")
        );
        if let Some(bar) = &bar {
            bar.set_message(text);
            bar.tick();
        } else if spoken.elapsed() > SAY {
            context.note(&text);
        }
        if spoken.elapsed() > SAY {
            (spoken, own.recent) = (Instant::now(), (0.0, 0));
        }
        if saved.elapsed().as_secs_f64() > args.save_every {
            own.save(&before, resumed)?;
            saved = Instant::now();
        }
    };
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
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
    reply(&own, skipped, begun.elapsed())
}

/// Where predictions go, as they come.
struct Sink {
    file: File,
    name: String,
    written: u64,
}

impl Sink {
    /// Begins a file with this header, or goes on behind its first bytes, if a run has left so many: what it wrote after its
    /// last save is predicted again.
    fn open(path: &Path, header: &str, behind: u64) -> Result<Self> {
        let name = path.display().to_string();
        let failed = |e: std::io::Error| Fail::output(&name, &e);
        let mut options = File::options();
        options.create(true).write(true).truncate(false);
        let mut file = options.open(path).map_err(failed)?;
        let goes_on = behind > 0 && file.metadata().map_err(failed)?.len() >= behind;
        let kept = if goes_on { behind } else { 0 };
        file.set_len(kept).map_err(failed)?;
        file.seek(SeekFrom::Start(kept)).map_err(failed)?;
        let mut sink = Self { file, name, written: kept };
        if !goes_on {
            sink.write(header)?;
        }
        Ok(sink)
    }

    fn write(&mut self, text: &str) -> Result<()> {
        let done = self.file.write_all(text.as_bytes());
        done.map_err(|e| Fail::output(&self.name, &e))?;
        self.written += text.len() as u64;
        Ok(())
    }
}

/// Levels of quantiles, of which classes have none.
fn quantiles(fitted: &Fitted) -> &'static [f64] {
    if kind::Kind::of(fitted) == kind::Kind::Classes { &[] } else { &QUANTILES }
}

/// Passes over rows that were learnt before, and makes sure that they are the same.
fn skip(
    own: &mut Following<'_>,
    lines: &mut Lines,
    skipped: usize,
    resumed: Option<Followed>,
    stopped: &dyn Fn() -> bool,
) -> Result<()> {
    while own.taken.rows < skipped {
        let wanted = (skipped - own.taken.rows).min(1 << 12);
        if lines.wait(wanted, None, stopped)? == Waited::Stopped {
            return Err(Fail::Interrupted);
        }
        let rows = lines.take(wanted);
        if rows.is_empty() {
            break;
        }
        rows.iter().for_each(|row| own.taken.add(row));
    }
    let name = lines.name();
    let name = name.display();
    if resumed.is_some_and(|known| own.taken.sum != known.sum) {
        return Err(Fail::usage(format!(
            "{name}: it begins as a stream of which the model has learnt {}, and then differs: --again takes all of it",
            count(skipped, "row")
        )));
    }
    if skipped > 0 {
        let why = if resumed.is_some() { "followed before" } else { "of the fit" };
        own.context.note(&format!("{name}: the first {} are those {why}", count(skipped, "row")));
    }
    Ok(())
}

fn reply(own: &Following<'_>, skipped: usize, spent: Duration) -> Result<Reply> {
    let (args, spent) = (own.args, spent.as_secs_f64());
    let points = own.fitted.model.inducing_points()?.nrows();
    let scores = own.scores()?;
    let mut text = match &scores {
        Some(scores) => scores::table(&[("before learning", scores)]),
        None => "no new rows\n".to_owned(),
    };
    let left_out = match own.dropped {
        0 => String::new(),
        dropped => format!(", {} with missing numbers left out", count(dropped, "row")),
    };
    text += &format!(
        "\nrows       {} in {} batches, {} ({} in all){left_out}\n\
         points     {}, {} of them new\n\
         evidence   {} nats: about log p(new rows | old rows)\n",
        own.learnt,
        own.batches,
        seconds(spent),
        own.fitted.rows,
        count(points, "inducing point"),
        own.added,
        number(own.bound, 6),
    );
    for change in &own.changes {
        text += &format!(
            "change     from row {} on, NLPD {} after {}\n",
            change.first_row,
            number(change.nlpd_since, 4),
            number(change.nlpd_before, 4)
        );
    }
    if let Some(path) = &args.predictions {
        text += &format!("\npredictions written to {}", path.display());
    }
    text += &format!("\nmodel written to {}\n", args.output.display());
    let before = scores.as_ref().map(scores::json).transpose();
    let json = serde_json::json!({
        "command": "follow",
        "model": args.model,
        "data": args.data,
        "rows": own.learnt,
        "rows_in_all": own.fitted.rows,
        "skipped": skipped,
        "dropped": own.dropped,
        "batches": own.batches,
        "seconds": spent,
        "points": points,
        "added_points": own.added,
        "uncovered": own.uncovered,
        "bound": own.bound,
        "before": before.map_err(|e| Fail::Work(e.to_string()))?,
        "changes": own.changes,
        "warnings": own.said,
        "files": { "model": args.output, "predictions": args.predictions },
    });
    Ok(Reply { text, json, is_result: false })
}

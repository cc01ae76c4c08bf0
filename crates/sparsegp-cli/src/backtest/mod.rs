//! `sparsegp backtest`: how well a model predicts a series from several cut-offs on.

pub mod args;
mod baselines;
mod reply;
mod rows;

use crate::context::{Context, Reply};
use crate::data::{BLOCK, Split};
use crate::fail::{Fail, Result};
use crate::fit;
use crate::folds::{self, Fold};
use crate::format::{count, seconds};
use crate::kind::Kind;
use crate::outputs::refuse_overwriting;
use crate::plot::{self, Series, Stretch};
use crate::predictions::Form;
use crate::score::{Running, complete, picked};
use crate::scores;
use crate::sink::Sink;
use args::BacktestArgs;
use baselines::Simple;
use rows::Rows;
use sparsegp::atomic;
use sparsegp::data::{Block, CutOff, CutOffOptions, CutOffs, cut_offs, date_text};
use sparsegp::fit::{Fitted, Of};
use std::collections::BTreeMap;
use std::time::Instant;

/// Levels of the quantiles that are written and drawn.
const LEVELS: [f64; 2] = [0.025, 0.975];

/// Names of the columns before the predictions, beside time and targets.
const CUT_OFF: &str = "cutoff";
const AHEAD: &str = "ahead";

/// What one training gave.
struct Run {
    rows: (usize, usize),
    kernel: String,
    seconds: f64,
}

/// Running scores of a part of the horizon, or of all of it; none before the first rows.
type Scored = Option<Running>;

/// A backtest as far as it is done.
struct Backtest<'a> {
    args: &'a BacktestArgs,
    rows: &'a Rows,
    cuts: &'a CutOffs,
    runs: Vec<Run>,
    /// Of every part, and of all.
    scored: Vec<Scored>,
    /// What trainings warned of, with the cut-offs.
    warnings: BTreeMap<String, Vec<String>>,
    lines: Vec<String>,
    /// Every target after every cut-off.
    drawn: Vec<Vec<Stretch>>,
}

impl Rows {
    fn text(&self, time: f64) -> String {
        if self.dates { date_text(time) } else { time.to_string() }
    }
}

/// Returns the rows of a block in every part of the horizon.
fn by_part(block: &Block, part: &[usize], parts: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); parts];
    block.rows.iter().enumerate().for_each(|(i, row)| all[part[*row]].push(i));
    all
}

impl Backtest<'_> {
    fn name(&self, cut: &CutOff) -> String {
        self.rows.text(cut.time)
    }

    /// Learns up to a cut-off, and predicts what is after it.
    fn run(&mut self, cut: &CutOff, fold: &Fold, context: &Context) -> Result<()> {
        let start = Instant::now();
        let split = Split::Given(fold.train.clone(), fold.test.clone());
        let learnt = fit::learn_from(&self.args.fit.0, &split, &context.silent())?;
        let seconds = start.elapsed().as_secs_f64();
        context.check_stop()?;
        let fitted = &learnt.fitted;
        if Kind::of(fitted) == Kind::Classes {
            return Err(Fail::usage(
                "a backtest is for numbers and counts: of classes use `sparsegp compare … --ordered`",
            ));
        }
        for text in learnt.notes.iter().chain(&fitted.warnings) {
            let of = self.name(cut);
            self.warnings.entry(text.clone()).or_default().push(of);
        }
        let Some(test) = &learnt.opened.test else {
            return Err(Fail::Work("there are no rows to test on".into()));
        };
        let mut ids = vec![CUT_OFF.to_owned(), AHEAD.to_owned(), self.rows.name.clone()];
        ids.extend(fitted.target_names.iter().cloned());
        let form = Form::new(fitted, Of::Observations, &ids, &LEVELS);
        if self.lines.is_empty() {
            self.lines.push(form.header()?);
        }
        // the part of every row of the table
        let mut part = vec![0; self.rows.times.len()];
        cut.test.iter().zip(&cut.part).for_each(|(row, own)| part[*row] = *own);
        let mut tested = 0;
        let mut drawn = vec![Vec::new(); fitted.target_names.len()];
        for block in test.blocks(BLOCK, None)? {
            context.check_stop()?;
            let mut block = complete(block?);
            if block.rows.is_empty() {
                continue;
            }
            tested += block.rows.len();
            for (own, kept) in by_part(&block, &part, self.cuts.parts.len()).iter().enumerate() {
                if !kept.is_empty() {
                    self.score(own, fitted, &picked(&block, kept))?;
                }
            }
            self.score(self.cuts.parts.len(), fitted, &block)?;
            if self.args.fit.0.plot.is_some() {
                self.sketch(fitted, &block, &mut drawn)?;
            }
            block.ids = self.ids(cut, &block, &part);
            self.lines.extend(form.lines(&self.args.fit.0.data, fitted, &block)?);
        }
        for (all, mut own) in self.drawn.iter_mut().zip(drawn) {
            own.sort_by(|a: &[f64; 4], b| a[0].total_cmp(&b[0]));
            all.push(Stretch(own));
        }
        self.runs.push(Run {
            rows: (fitted.rows, tested),
            kernel: crate::report::kernel_names(fitted),
            seconds,
        });
        Ok(())
    }

    /// Scores rows of a part of the horizon, or of all of it.
    fn score(&mut self, part: usize, fitted: &Fitted, block: &Block) -> Result<()> {
        let own = &mut self.scored[part];
        if own.is_none() {
            *own = Some(Running::pooled(fitted)?);
        }
        if let Some(running) = own {
            running.add(fitted, block)?;
        }
        Ok(())
    }

    /// Returns the texts that stand before predictions.
    fn ids(&self, cut: &CutOff, block: &Block, part: &[usize]) -> Vec<Vec<String>> {
        let of = |text: &dyn Fn(usize) -> String| block.rows.iter().map(|row| text(*row)).collect();
        let name = self.name(cut);
        let mut ids: Vec<Vec<String>> = vec![
            of(&|_| name.clone()),
            of(&|row| self.cuts.parts[part[row]].clone()),
            of(&|row| self.rows.texts[row].clone()),
        ];
        ids.extend(self.rows.written.iter().map(|cells| of(&|row| cells[row].clone())));
        ids
    }

    /// Keeps time, mean and ends of the 95 % interval of every target.
    fn sketch(&self, fitted: &Fitted, block: &Block, drawn: &mut [Vec<[f64; 4]>]) -> Result<()> {
        let (x, extra) = (block.x.as_ref(), &block.extra[..]);
        let known = fitted.predict_with_quantiles(x, extra, &LEVELS, Of::Observations)?;
        for (p, own) in drawn.iter_mut().enumerate() {
            let ends = |q: usize, i: usize| known.quantiles[q][(i, p)];
            own.extend(block.rows.iter().enumerate().map(|(i, row)| {
                [self.rows.times[*row], known.mean[(i, p)], ends(0, i), ends(1, i)]
            }));
        }
        Ok(())
    }

    /// Writes predictions and picture.
    fn write(&self) -> Result<()> {
        let fit = &self.args.fit.0;
        if let Some(path) = &fit.output {
            let mut sink = Sink::open(Some(path))?;
            let out = path.display().to_string();
            for line in &self.lines {
                sink.write(line).map_err(|e| Fail::output(&out, &e))?;
            }
            sink.finish(&out)?;
        }
        let Some(path) = &fit.plot else { return Ok(()) };
        let begins: Vec<f64> = self.cuts.cuts.iter().map(|cut| cut.time).collect();
        // before the first cut-off as much time as after it
        let times = self.rows.times.iter().copied().filter(|time| time.is_finite());
        let start = 2.0 * begins[0] - times.fold(f64::NEG_INFINITY, f64::max);
        let panels: Vec<Series> = (self.drawn.iter().zip(&self.rows.targets).zip(&fit.target))
            .map(|((stretches, y), name)| Series {
                caption: format!(
                    "{name}: {}, horizon {}",
                    count(begins.len(), "cut-off"),
                    self.args.horizon
                ),
                names: (self.rows.name.clone(), name.clone()),
                dates: self.rows.dates,
                observed: (self.rows.times.iter().copied().zip(y.iter().copied()))
                    .filter(|at| at.0 >= start)
                    .collect(),
                past: None,
                ahead: stretches.clone(),
                begins: begins.clone(),
            })
            .collect();
        plot::series(path, &panels)
    }
}

/// Runs the command.
pub fn run(args: &BacktestArgs, context: &Context) -> Result<Reply> {
    args.check()?;
    let fit = &args.fit.0;
    for path in [&fit.output, &fit.plot].into_iter().flatten() {
        refuse_overwriting([path], [Some(&fit.data), fit.holidays.as_ref()].into_iter().flatten())?;
        atomic::check_writable(path)?;
    }
    if let Some(path) = &fit.plot {
        plot::check_name("--plot", path)?;
    }
    let table = fit.table.open(&fit.data)?;
    let rows = Rows::read(args, &table)?;
    context.warn(&rows.warnings);
    if !rows.others.is_empty() {
        context.warn(&[format!(
            "the other inputs ({}) are taken from the rows that are predicted, as if they were known in advance; leave out by \
             --ignore those that are not",
            rows.others.join(", ")
        )]);
    }
    let options = CutOffOptions {
        horizon: &args.horizon,
        count: args.cutoffs,
        every: args.every.as_deref(),
        parts: args.parts,
    };
    let cuts = cut_offs(&rows.times, rows.dates, &options)?;
    let (simple, notes) = Simple::of(args, &rows, &cuts)?;
    context.warn(&notes);
    let mut own = Backtest {
        args,
        rows: &rows,
        cuts: &cuts,
        runs: Vec::new(),
        scored: (0..=cuts.parts.len()).map(|_| None).collect(),
        warnings: BTreeMap::new(),
        lines: Vec::new(),
        drawn: vec![Vec::new(); fit.target.len()],
    };
    let total = cuts.cuts.len();
    for (i, (cut, fold)) in
        cuts.cuts.iter().zip(folds::at_cut_offs(&cuts, rows.times.len())).enumerate()
    {
        let name = own.name(cut);
        own.run(cut, &fold, context).map_err(|fail| match fail {
            Fail::Work(text) | Fail::Empty(text) => Fail::Work(format!("cut-off {name}: {text}")),
            other => other,
        })?;
        let Run { rows: (learnt, tested), seconds: took, .. } = &own.runs[i];
        context.note(&format!(
            "{}/{total} cut-off {name}: {} to learn from, {} predicted in {}",
            i + 1,
            count(*learnt, "row"),
            tested,
            seconds(*took)
        ));
    }
    for (text, names) in &own.warnings {
        let more = match names.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        context.warn(&[format!("cut-off {}{more}: {text}", names[0])]);
    }
    own.write()?;
    reply::reply(&own, &simple)
}

/// Returns the scores of what is known of a part, the number of rows apart.
fn known(scored: &Scored) -> Result<Option<(u64, scores::Named)>> {
    let Some(running) = scored else { return Ok(None) };
    let (overall, _) = running.finish()?;
    Ok(Some((overall.rows(), scores::compared(&overall))))
}

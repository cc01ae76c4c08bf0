//! How training proceeds, on stderr: a bar for people who watch, a line now and then for logs.

use crate::context::Context;
use crate::format::{count, number, seconds};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sparsegp::train::{Event, Observer, TracePoint};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Seconds between the lines of a log, apart from those of iterations 1, 10, 100, …
const PATIENCE: Duration = Duration::from_secs(5);

/// Shows a line that changes: a spinner for people who watch, a line now and then for logs.
pub struct Ticker<'a> {
    context: &'a Context,
    bar: Option<ProgressBar>,
    last: Instant,
}

impl<'a> Ticker<'a> {
    /// Shows nothing yet.
    pub fn new(context: &'a Context) -> Self {
        let bar = context.is_watched().then(ProgressBar::new_spinner);
        Self { context, bar, last: Instant::now() }
    }

    /// Shows this line. True where the time for a line of the log has come.
    pub fn say(&mut self, text: String) -> bool {
        let due = self.last.elapsed() > PATIENCE;
        match &self.bar {
            Some(bar) => {
                bar.set_message(text);
                bar.tick();
            }
            None if due => self.context.note(&text),
            None => {}
        }
        if due {
            self.last = Instant::now();
        }
        due
    }
}

impl Drop for Ticker<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Shows the progress of one training.
pub struct Progress<'a> {
    context: &'a Context,
    bar: Option<ProgressBar>,
    last: Instant,
    most: usize,
    /// What to add to an objective to have it in the data's units.
    offset: f64,
    batches: Option<Batches>,
    /// Which start it is, where there are several.
    start: String,
    /// When it ends whatever happens.
    deadline: Option<Instant>,
}

/// What is known of training by minibatches.
struct Batches {
    epochs: usize,
    size: usize,
    rows: usize,
    /// When the first minibatch was done, and how many were done then: earlier runs included.
    start: Option<(Instant, usize)>,
    held_out: Option<f64>,
}

impl<'a> Progress<'a> {
    /// Shows the progress of at most `most` iterations.
    pub fn new(context: &'a Context, most: usize, offset: f64) -> Self {
        let bar = context.is_watched().then(|| {
            let bar = ProgressBar::with_draw_target(
                Some(most as u64),
                ProgressDrawTarget::stderr_with_hz(8),
            );
            let style = ProgressStyle::with_template("{spinner} {bar:24} {msg}  {elapsed}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(125));
            bar
        });
        Self {
            context,
            bar,
            last: Instant::now(),
            most,
            offset,
            batches: None,
            start: String::new(),
            deadline: None,
        }
    }

    /// Sets a limit of time, in seconds from now.
    pub fn limited(mut self, seconds: Option<f64>) -> Self {
        let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        self.deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        self
    }

    /// Shows the progress of so many epochs of minibatches.
    pub fn of_batches(
        context: &'a Context,
        epochs: usize,
        size: usize,
        rows: usize,
        offset: f64,
    ) -> Self {
        let per_epoch = rows.div_ceil(size.max(1));
        let mut progress = Self::new(context, epochs * per_epoch, offset);
        progress.batches = Some(Batches { epochs, size, rows, start: None, held_out: None });
        progress
    }

    /// Shows the progress after a minibatch.
    fn show_batch(&mut self, epoch: usize, batch: usize, per_epoch: usize, objective: f64) {
        let deadline = self.deadline;
        let Some(of) = &mut self.batches else { return };
        let done = epoch * per_epoch + batch + 1;
        let (start, before) = *of.start.get_or_insert((Instant::now(), done));
        let (all, batches) = (of.epochs * per_epoch, done - before);
        let rate = batches as f64 / start.elapsed().as_secs_f64().max(1e-9);
        let pace = match batches {
            0 => String::new(),
            _ => {
                let left = latest(deadline, all.saturating_sub(done) as f64 / rate);
                let rows = count((rate * of.size.min(of.rows) as f64) as usize, "row");
                format!(", {rows}/s, ends in {left} at the latest")
            }
        };
        let per_row = self.offset / of.rows.max(1) as f64;
        let held_out = of.held_out.map_or(String::new(), |density| {
            format!(", log density of rows aside {}", number(density + per_row, 4))
        });
        let which = match per_epoch {
            1 => String::new(),
            _ => format!(", batch {} of {per_epoch}", batch + 1),
        };
        let text = format!(
            "{}epoch {} of {}{which}, objective about {}{held_out}{pace}",
            self.start,
            epoch + 1,
            of.epochs,
            number(objective + self.offset, 6),
        );
        match &self.bar {
            Some(bar) => {
                bar.set_position(done as u64);
                bar.set_message(text);
            }
            None => {
                if batches == 0 || self.last.elapsed() > PATIENCE {
                    self.last = Instant::now();
                    self.context.note(&text);
                }
            }
        }
    }

    /// Shows a text before the iterations begin.
    fn announce(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None => self.context.note(text),
        }
    }

    /// Shows the progress after an iteration.
    fn show(&mut self, point: &TracePoint) {
        let rate = point.iteration as f64 / point.seconds.max(1e-9);
        let left = self.most.saturating_sub(point.iteration) as f64 / rate.max(1e-9);
        let left = latest(self.deadline, left);
        let text = format!(
            "{}iteration {} of at most {}, objective {}, {} it/s, ends in {} at the latest",
            self.start,
            point.iteration,
            self.most,
            number(point.objective + self.offset, 7),
            number(rate, 3),
            left
        );
        match &self.bar {
            Some(bar) => {
                bar.set_position(point.iteration as u64);
                bar.set_message(text);
            }
            None => {
                let power = 10_usize.pow(point.iteration.max(1).ilog10());
                let due = point.iteration <= power || self.last.elapsed() > PATIENCE;
                if due {
                    self.last = Instant::now();
                    self.context.note(&text);
                }
            }
        }
    }
}

/// Says in what time something ends that takes so many seconds, or until the deadline.
fn latest(deadline: Option<Instant>, left: f64) -> String {
    let limit = deadline.map(|at| at.saturating_duration_since(Instant::now()));
    let left = limit.map_or(left, |limit| left.min(limit.as_secs_f64()));
    // an estimate has no parts of a second
    match left {
        left if left < 99.0 => format!("{:.0} s", left.ceil().max(1.0)),
        left => seconds(left),
    }
}

impl Observer for Progress<'_> {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Kernels { rows } => self.announce(&format!("judging kernels on {rows} rows")),
            Event::Targets { log_jacobian } => self.offset = log_jacobian,
            Event::Pilot { rows } => {
                self.announce(&format!(
                    "hyperparameters to start from: a pilot on at most {rows} rows"
                ));
            }
            Event::Inducing { count } => {
                self.announce(&format!("choosing {count} inducing points"))
            }
            Event::Neighbours { rows } => {
                let what = format!("comparing inducing points with neighbours on {rows} rows");
                self.announce(&what);
            }
            Event::Training | Event::Ahead { .. } => {}
            Event::Restart { restart, of, best } => {
                let best = best.map_or(String::new(), |best| {
                    format!(", best objective so far {}", number(best + self.offset, 7))
                });
                self.start = format!("restart {restart} of {of}: ");
                self.last = Instant::now();
                if let Some(batches) = &mut self.batches {
                    (batches.start, batches.held_out) = (None, None);
                }
                self.announce(&format!("restart {restart} of {of}{best}"));
            }
            Event::Sampling { done, total, seconds: spent } => {
                let rate = done as f64 / spent.max(1e-9);
                let left = total.saturating_sub(done) as f64 / rate.max(1e-9);
                let text = format!(
                    "sweep {done} of {total} of every chain, {} sweeps/s, ends in {}",
                    number(rate, 3),
                    latest(self.deadline, left)
                );
                match &self.bar {
                    Some(bar) => {
                        bar.set_length(total as u64);
                        bar.set_position(done as u64);
                        bar.set_message(text);
                    }
                    None if self.last.elapsed() > PATIENCE || done == total => {
                        self.last = Instant::now();
                        self.context.note(&text);
                    }
                    None => {}
                }
            }
            Event::CheckpointFailed { reason } => {
                let text = format!("warning: {reason}");
                match &self.bar {
                    Some(bar) => bar.suspend(|| self.context.note(&text)),
                    None => self.context.note(&text),
                }
            }
            Event::Iteration(point) => match &mut self.batches {
                Some(batches) => batches.held_out = point.held_out,
                None => self.show(point),
            },
            Event::Batch { epoch, batch, per_epoch, objective, .. } => {
                self.show_batch(epoch, batch, per_epoch, objective);
            }
        }
        if self.interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn interrupted(&self) -> bool {
        self.context.interrupted()
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

//! How training goes, on stderr: a bar for people who watch, a line now and then for logs.

use crate::context::Context;
use crate::format::{number, seconds};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sparsegp::train::{Event, Observer, TracePoint};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Seconds after which a log gets a line even if few iterations were done.
const PATIENCE: Duration = Duration::from_secs(5);
/// Iterations per line of a log.
const ITERATIONS: usize = 10;

/// Shows the progress of one training.
pub struct Progress<'a> {
    context: &'a Context,
    bar: Option<ProgressBar>,
    last: Instant,
    most: usize,
    /// What to add to an objective to have it in the data's units.
    offset: f64,
}

impl<'a> Progress<'a> {
    /// For at most `most` iterations.
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
        Self { context, bar, last: Instant::now(), most, offset }
    }

    /// Before the iterations begin.
    fn announce(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None => self.context.note(text),
        }
    }

    /// After an iteration.
    fn show(&mut self, point: &TracePoint) {
        let rate = point.iteration as f64 / point.seconds.max(1e-9);
        let left = self.most.saturating_sub(point.iteration) as f64 / rate.max(1e-9);
        let left = if left < 1.0 { "under 1 s".into() } else { seconds(left) };
        let text = format!(
            "iteration {} of at most {}, objective {}, {} it/s, ends in {} at the latest",
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
                let due = point.iteration <= 1
                    || point.iteration.is_multiple_of(ITERATIONS)
                    || self.last.elapsed() > PATIENCE;
                if due {
                    self.last = Instant::now();
                    self.context.note(&text);
                }
            }
        }
    }
}

impl Observer for Progress<'_> {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Pilot { rows } => {
                self.announce(&format!(
                    "hyperparameters to start from: exact inference on {rows} rows"
                ));
            }
            Event::Inducing { count } => {
                self.announce(&format!("choosing {count} inducing points"))
            }
            Event::Iteration(point) => self.show(point),
            Event::Batch { .. } => {}
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

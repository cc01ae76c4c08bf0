//! Inducing points of a start. Several starts have their own, and the sparse objective says which is the best.

use super::judge::{self, Flown};
use super::pilot::{free_noise, take, widen_noise};
use super::screen;
use super::select::select_inducing;
use super::start::{apply, tell};
use super::trial::Trial;
use super::{Dataset, FitOptions, choice::whole};
use crate::data::{InMemory, Source};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::inducing::select::Selection;
use crate::methods::Method;
use crate::model::{Model, inducing_param};
use crate::train::{Event, Judged, Observer};

/// Returns whether a path is one of inducing points or q, or the group of them.
pub(super) fn of_points(path: &str) -> bool {
    let within = |group: &str| {
        path.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    within("inducing") || within("q")
}

/// What inducing points are placed by.
pub(super) struct Placing<'a> {
    pub(super) dataset: &'a Dataset,
    pub(super) options: &'a FitOptions,
    pub(super) engine: &'a dyn Engine,
    pub(super) method: &'static dyn Method,
    /// Points that are wanted.
    pub(super) wanted: usize,
    pub(super) latents: usize,
    /// Rows that all is chosen from.
    pub(super) sample: &'a InMemory,
    /// The rows that starts are compared on.
    pub(super) rows: &'a dyn Source,
    /// Whether there are pilots.
    pub(super) pilots: bool,
    /// Whether starts are judged.
    pub(super) judges: bool,
    /// Whether inducing variables are of another kind than function values.
    pub(super) other_domain: bool,
}

/// Share of a time limit after which no further starts are tried: the rest belongs to the training.
const MOST_TIME: f64 = 0.4;

/// Returns whether that is used.
fn is_late(observer: &dyn Observer) -> bool {
    observer.time_used().is_some_and(|used| used > MOST_TIME)
}

/// A start without its points, and whether a pilot has found it.
type Candidate = (String, Model, bool);

impl Placing<'_> {
    /// Places the points of the best start; `judged` are the starts so far, of which `model` is the best, and `first` is the
    /// trial of that. Returns it with the start that would be taken if there were no points.
    pub(super) fn place(
        &self,
        model: Model,
        first: Option<&Trial>,
        judged: &mut Vec<Judged>,
        warnings: &mut Vec<String>,
        observer: &mut dyn Observer,
    ) -> Result<(Model, Model)> {
        warnings.extend(self.check()?);
        let plain = judged.first().map_or("spreads of the inputs", |j| &j.start).to_owned();
        let mut candidates = self.flown(&model, first, warnings, observer)?;
        let direct = candidates.first().map_or(&model, |(_, flown, _)| flown).clone();
        if self.judges {
            candidates.extend(screen::shorter(&model));
        }
        candidates.push((plain, model, false));
        let late = is_late(observer);
        if late && candidates.len() > 1 {
            // the first is the best guess, and nothing tells them apart
            candidates.truncate(1);
            judged.clear();
        }
        tell(observer, Event::Inducing { count: self.wanted.min(self.most()) })?;
        let (mut ready, mut notes) = (Vec::new(), Vec::new());
        for (name, own, flown) in candidates {
            let (own, note) = self.with_points(own, flown)?;
            ready.push((name, own));
            notes.push(note);
        }
        let mut best = 0;
        // points are placed by lengthscales, so that those of several inputs should be known first
        let places =
            self.sample.x.ncols() > 1 && self.options.selection.is_placed_by_lengthscales();
        if self.judges && (ready.len() > 1 || places) && !late {
            let (rows, sample, options) = (self.rows, self.sample, self.options);
            let compared = judge::compare(&ready, rows, sample, options, self.engine, observer)?;
            best = compared.best;
            if ready.len() > 1 {
                *judged = compared.verdict;
            }
            // where its iterations ended is nearer to the optimum, above all for minibatches
            if let Some(values) = compared.values {
                let mut own = ready[best].1.clone();
                take(&mut own, &values, sample.x.as_ref());
                (ready[best].1, notes[best]) = self.with_points(own, false)?;
            }
        }
        // of the points that are taken
        warnings.extend(notes.swap_remove(best));
        Ok((ready.swap_remove(best).1, direct))
    }

    /// Returns how many points there can be.
    fn most(&self) -> usize {
        if self.other_domain { usize::MAX } else { self.dataset.source.rows() }
    }

    /// Refuses no points at all. Returns a warning where rows are fewer than what was asked for.
    fn check(&self) -> Result<Option<String>> {
        if self.wanted == 0 {
            return Err(Error::Invalid("at least one inducing point is needed".into()));
        }
        let by_number = !matches!(self.options.selection, Selection::Given(_));
        let few = by_number && self.options.inducing.is_some_and(|asked| self.most() < asked);
        Ok(few.then(|| {
            format!(
                "{} training rows are fewer than the {} inducing points asked for: every \
                 distinct row becomes one",
                self.dataset.source.rows(),
                self.wanted
            )
        }))
    }

    /// Returns what a pilot finds, where one is worth its time.
    fn flown(
        &self,
        model: &Model,
        first: Option<&Trial>,
        warnings: &mut Vec<String>,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Candidate>> {
        let (options, n) = (self.options, self.dataset.source.rows());
        // where all rows are seen at once, an iteration on a part of few rows costs no less than one on all
        let all_at_once = whole(self.dataset, options)
            || self.method.in_minibatches() && options.batches.is_none();
        let trains_q = self.method.with_q().is_some() && !all_at_once;
        // how many points there are depends on lengthscales: they should be as good as a pilot can make them
        let by_kernel = matches!(options.selection, Selection::Oips(_));
        let worth = n > options.pilot || trains_q || by_kernel;
        if !self.pilots || !worth || is_late(observer) {
            return Ok(Vec::new());
        }
        tell(observer, Event::Pilot { rows: options.pilot.min(n) })?;
        match judge::pilot(model, first, self.sample, options, self.engine, observer)? {
            Flown::Found(found) => return Ok(vec![("pilot".to_owned(), *found, true)]),
            Flown::Nothing => {}
            Flown::Failed => warnings.push(
                "the pilot failed (a matrix was not positive definite); training starts from the plain values"
                    .into(),
            ),
        }
        Ok(Vec::new())
    }

    /// Returns a start with its points and q, and what there is to say of them.
    fn with_points(&self, mut own: Model, flown: bool) -> Result<(Model, Option<String>)> {
        let (options, sample) = (self.options, self.sample);
        let selected = select_inducing(&own, sample, self.wanted.min(self.most()), options)?;
        let points = selected.points.nrows();
        let mut placed = inducing_param(selected.points.as_ref());
        placed.frozen = !self.method.moves_points();
        own.inducing = vec![placed];
        // neighbours see what points leave unexplained: it is not noise
        if flown && free_noise(&own) && !self.method.keeps_rows() {
            widen_noise(&mut own, sample.x.as_ref(), self.engine)?;
        }
        let size = [self.dataset.source.rows(), points, self.latents];
        let with_q = self.method.with_q();
        own.q = with_q.map(|q| q.start(size, options.tying, options.diagonal));
        apply(&mut own, options, of_points)?;
        Ok((own, selected.note))
    }
}

//! What is tried after the first training, where its model shows that another start would have been better.

use super::learning::{Learning, Trained};
use super::moments::{moments, spread};
use super::near::{self, Alike};
use super::revive::{self, Climb, Sketch};
use super::{AUTO_EXACT, Dataset, FitOptions, choice, collapse, covering};
use super::{of_start, start, trained_from};
use crate::data::InMemory;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::inducing::select::Selection;
use crate::linalg::{Mat, in_parts, stacked};
use crate::model::Model;
use crate::params::Role;
use crate::train::{Event, Observer, TrainOptions};
use std::ops::ControlFlow;

/// Standard deviations from which residuals that are alike are worth trainings from other starts, and a warning.
const CLEAR: f64 = 8.0;
/// The same of their mean correlation: of many rows the faintest is clear.
const STRONG: f64 = 0.25;
/// The part of the variance of the targets that noise is where all is explained.
const EXPLAINED: f64 = 1e-3;
/// Those trainings.
const RESTARTS: usize = 2;

/// Trainings after the first.
pub(super) struct Again<'a> {
    pub(super) dataset: &'a Dataset,
    pub(super) options: &'a FitOptions,
    pub(super) engine: &'a dyn Engine,
}

/// Passes on an interruption and shows nothing else.
struct Quiet<'a>(&'a dyn Observer);

impl Observer for Quiet<'_> {
    fn event(&mut self, _: Event<'_>) -> ControlFlow<()> {
        if self.0.interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }
}

impl Again<'_> {
    /// Returns the best training, and the options that it was made with; `start` is the number of its start.
    pub(super) fn improved(
        &self,
        mut trained: Trained,
        mut start: usize,
        observer: &mut dyn Observer,
    ) -> Result<(Trained, FitOptions)> {
        let options = self.options;
        if options.pilot > 0 || matches!(options.selection, Selection::Oips(_)) {
            let rows = start::sample_rows(&*self.dataset.source, collapse::ROWS, options.seed)?;
            // a value far away hides every trend
            let likelihood = trained.model.likelihood.clone();
            let rows = self.dataset.drawn_in(&rows, &*likelihood);
            if options.pilot > 0 {
                self.revive(&mut trained, &rows, observer)?;
                self.mend_constant(&mut trained, &mut start, &rows, observer)?;
                self.mend_residuals(&mut trained, &mut start, &rows, observer)?;
            }
            trained.origin.warnings.extend(covering::apart(
                &trained.model,
                rows.x.as_ref(),
                options,
            ));
        }
        Ok((trained, of_start(options, start)))
    }

    /// Whether a training has seen all rows at once and was not ended by a number of iterations.
    fn came_to_its_end(&self, trained: &Trained) -> bool {
        let whole = choice::whole(self.dataset, self.options);
        let at_once =
            whole || self.options.batches.is_none() || !trained.model.method.in_minibatches();
        at_once && trained.report.iterations < self.options.train.max_iterations
    }

    /// Tries inputs again that the training has lost, where all rows were seen at once and it came to its end.
    fn revive(
        &self,
        trained: &mut Trained,
        rows: &InMemory,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        if !self.came_to_its_end(trained) || observer.interrupted() {
            return Ok(());
        }
        let whole = choice::whole(self.dataset, self.options);
        let before = trained.report.objective + trained.model.assumed_log_prior();
        let sketch = Sketch { options: self.options, engine: self.engine, observer: &*observer };
        let mut climb = OnAllRows { again: self, trained, rows, observer: &*observer };
        let model = &climb.trained.model.clone();
        let Some((model, _)) = revive::revive(model, before, rows, &sketch, &mut climb)? else {
            return Ok(());
        };
        let own = FitOptions { checkpoint: None, ..self.options.clone() };
        let learning =
            Learning { options: &own, whole, dataset: self.dataset, engine: self.engine };
        match learning.run(model, trained.origin.clone(), None, observer) {
            Ok(again) => {
                take(trained, again);
                Ok(())
            }
            // the first is a model
            Err(error) if error.is_recoverable() || matches!(error, Error::Interrupted) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Trains from another start where the model is a constant although the targets have a trend.
    fn mend_constant(
        &self,
        trained: &mut Trained,
        start: &mut usize,
        rows: &InMemory,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let constant = |t: &Trained| -> Result<bool> {
            Ok(collapse::misses_a_trend(&t.model, &t.posterior, rows)?
                || collapse::mixes_constants(&t.model, &t.posterior, rows)?)
        };
        let clear = collapse::misses_a_trend(&trained.model, &trained.posterior, rows)?;
        // no score test tells of mixed functions: there may be nothing to find, and what there is may be hard to
        let attempts = if clear { 1 } else { collapse::ATTEMPTS };
        let mut text = None;
        for further in (1..=attempts).map(|more| self.options.restarts + more) {
            if !constant(trained)? {
                break;
            }
            text = Some(match self.train_anew(trained, start, further, observer) {
                // whatever became of the second, the first is a model
                Err(error) => collapse::failed(&error),
                Ok(true) if !constant(trained)? => collapse::MENDED.to_owned(),
                Ok(_) => collapse::STILL_CONSTANT.to_owned(),
            });
        }
        trained.origin.warnings.extend(text.filter(|text| clear || text == collapse::MENDED));
        Ok(())
    }

    /// Trains from other starts where residuals of near rows are clearly alike, and says so where they stay so.
    fn mend_residuals(
        &self,
        trained: &mut Trained,
        start: &mut usize,
        rows: &InMemory,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        if trained.model.likelihood.mixing().is_some() {
            return Ok(());
        }
        // of functions that are known to a thousandth the rest is no matter
        let spread = spread(&moments(rows, false));
        if trained.model.noise() < EXPLAINED * spread {
            return Ok(());
        }
        let left = |t: &Trained| -> Result<Option<Alike>> {
            let mean = means(t, rows)?;
            let found = near::clear(&*t.model.likelihood, &mean, rows, CLEAR);
            Ok(found.into_iter().find(|own| own.correlation > STRONG))
        };
        // other starts differ where functions may be fast or slow
        let learns = trained.model.params().iter().any(|(_, param)| {
            matches!(param.role(), Role::Lengthscales | Role::Period) && !param.frozen
        });
        let few = self.dataset.source.rows() <= AUTO_EXACT && self.options.restarts == 0 && learns;
        let first = self.options.restarts + collapse::ATTEMPTS;
        let mut found = left(trained)?;
        for further in (1..=RESTARTS).map(|more| first + more) {
            let ended = self.came_to_its_end(trained);
            if found.is_none() || !few || !ended || observer.interrupted() {
                break;
            }
            if self.train_anew(trained, start, further, observer).is_ok_and(|better| better) {
                found = left(trained)?;
            }
        }
        if let Some(alike) = found {
            trained.origin.warnings.push(self.what_is_left(alike));
        }
        Ok(())
    }

    /// What is said of residuals that are alike.
    fn what_is_left(&self, alike: Alike) -> String {
        let along = match alike.input {
            Some(q) => {
                let length = alike.length * self.dataset.scaler.x_scale[q];
                let name = self.dataset.input_names.get(q).map_or("?", String::as_str);
                format!("along `{name}`, up to {length:.3e} apart,")
            }
            None => "that are near each other".into(),
        };
        format!(
            "the model misses a part of the function: residuals of rows {along} have a correlation of {:.2}; try another \
             kernel (such as `matern32`, or a sum of two), or more starts (`--restarts 5`, `n_restarts_optimizer=5`)",
            alike.correlation
        )
    }

    /// Trains from the start of this number, and keeps that if it is better. Returns whether it is.
    fn train_anew(
        &self,
        trained: &mut Trained,
        start: &mut usize,
        further: usize,
        observer: &mut dyn Observer,
    ) -> Result<bool> {
        if observer.interrupted() {
            return Err(Error::Interrupted);
        }
        let own = of_start(self.options, further);
        let again = trained_from(self.dataset, &own, self.engine, observer, further)?;
        let better = again.report.objective > trained.report.objective;
        if better {
            let starts = trained.report.starts.clone();
            take(trained, again);
            (*start, trained.report.starts) = (further, starts);
        } else {
            trained.report.seconds += again.report.seconds;
        }
        Ok(better)
    }
}

/// Puts a better training in the place of the first, of which the record stays.
fn take(trained: &mut Trained, again: Trained) {
    let before = std::mem::replace(trained, again);
    let report = &mut trained.report;
    report.seconds += before.report.seconds;
    report.evaluations += before.report.evaluations;
    if report.judged.is_empty() {
        report.judged = before.report.judged;
    }
    report.starts = before.report.starts;
}

/// Latent means of a trained model at rows, N×L.
fn means(trained: &Trained, rows: &InMemory) -> Result<Mat<f64>> {
    let posterior = &trained.posterior;
    let parts = in_parts(rows.x.as_ref(), |_, x| posterior.predict_mean(x))?;
    Ok(stacked(&parts, rows.x.nrows(), posterior.latents()))
}

/// Trainings on all rows, for [`revive`].
struct OnAllRows<'a, 'b> {
    again: &'a Again<'b>,
    trained: &'a Trained,
    rows: &'a InMemory,
    observer: &'a dyn Observer,
}

impl Climb for OnAllRows<'_, '_> {
    fn means(&mut self, model: &Model) -> Result<Mat<f64>> {
        let mut own = model.clone();
        let data = self.again.dataset.conditioning(&mut own)?;
        let posterior = own.posterior(self.again.engine, &data)?;
        let parts = in_parts(self.rows.x.as_ref(), |_, x| posterior.predict_mean(x))?;
        Ok(stacked(&parts, self.rows.x.nrows(), posterior.latents()))
    }

    fn climb(&mut self, model: &mut Model, iterations: usize) -> Result<Option<f64>> {
        if self.observer.interrupted() {
            return Ok(None);
        }
        let Again { dataset, options, engine } = *self.again;
        let training = TrainOptions {
            max_iterations: iterations.min(options.train.max_iterations),
            ..options.train.clone()
        };
        let own = FitOptions { checkpoint: None, train: training, ..options.clone() };
        let whole = choice::whole(dataset, options);
        let learning = Learning { dataset, options: &own, engine, whole };
        let origin = self.trained.origin.clone();
        match learning.run(model.clone(), origin, None, &mut Quiet(self.observer)) {
            Ok(trained) => {
                *model = trained.model;
                Ok(Some(trained.report.objective + model.assumed_log_prior()))
            }
            Err(error) if error.is_recoverable() || matches!(error, Error::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

//! What is tried after the first training, where its model shows that another start would have been better.

use super::learning::{Learning, Trained};
use super::moments::{moments, spread};
use super::near::{self, Alike};
use super::quiet::Quiet;
use super::revive::{self, Climb, Sketch};
use super::{AUTO_WHOLE, Dataset, FitOptions, choice, collapse, covering, left_out};
use super::{of_start, sample, trained_from};
use crate::data::InMemory;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::inducing::select::Selection;
use crate::linalg::Mat;
use crate::model::Model;
use crate::params::Role;
use crate::train::{Observer, TrainOptions};

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

/// The best training so far, with the number of its start.
struct Going<'a> {
    trained: &'a mut Trained,
    start: &'a mut usize,
    observer: &'a mut dyn Observer,
}

/// What a trained model says at rows.
struct Seen {
    /// Latent means, N×L.
    mean: Mat<f64>,
    /// Where residuals are alike; nothing of latent functions that a likelihood mixes.
    alike: Vec<Alike>,
}

impl Seen {
    fn of(trained: &Trained, rows: &InMemory) -> Result<Self> {
        let mean = collapse::means(&trained.posterior, rows)?;
        let likelihood = &*trained.model.likelihood;
        let alike = match likelihood.mixing() {
            Some(_) => Vec::new(),
            None => near::clear(likelihood, &mean, rows, revive::SUSPECT),
        };
        Ok(Self { mean, alike })
    }

    /// Returns the clearest that is worth a warning.
    fn left(&self) -> Option<Alike> {
        let clear = |own: &&Alike| own.clear >= CLEAR && own.correlation > STRONG;
        self.alike.iter().find(clear).copied()
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
            let rows = sample::sample_rows(&*self.dataset.source, collapse::ROWS, options.seed)?;
            // a value far away hides every trend
            let likelihood = trained.model.likelihood.clone();
            let rows = self.dataset.drawn_in(&rows, &*likelihood);
            if options.pilot > 0 {
                let mut seen = Seen::of(&trained, &rows)?;
                if self.revive(&mut trained, &seen, &rows, observer)? {
                    seen = Seen::of(&trained, &rows)?;
                }
                let mut going = Going { trained: &mut trained, start: &mut start, observer };
                self.mend_constant(&mut going, &mut seen, &rows)?;
                self.mend_residuals(&mut going, &mut seen, &rows)?;
                trained.origin.warnings.extend(self.nothing_found(&trained, &seen));
                let said = left_out::warnings(&trained, self.dataset, options.seed)?;
                trained.origin.warnings.extend(said);
            }
            trained.origin.warnings.extend(covering::apart(
                &trained.model,
                rows.x.as_ref(),
                options,
            ));
        }
        Ok((trained, of_start(options, start)))
    }

    /// Returns whether a training has seen all rows at once and was not ended by a number of
    /// iterations.
    fn came_to_its_end(&self, trained: &Trained) -> bool {
        let whole = choice::whole(self.dataset, self.options);
        let at_once =
            whole || self.options.batches.is_none() || !trained.model.method.in_minibatches();
        at_once && trained.report.iterations < self.options.train.max_iterations
    }

    /// Tries inputs again that the training has lost, where all rows were seen at once and it came to its end. Returns whether
    /// that is a better model.
    fn revive(
        &self,
        trained: &mut Trained,
        seen: &Seen,
        rows: &InMemory,
        observer: &mut dyn Observer,
    ) -> Result<bool> {
        if !self.came_to_its_end(trained) || observer.interrupted() {
            return Ok(false);
        }
        let whole = choice::whole(self.dataset, self.options);
        let before = trained.report.objective + trained.model.assumed_log_prior();
        let sketch = Sketch { options: self.options, engine: self.engine, observer: &*observer };
        let mut climb = OnAllRows { again: self, trained, rows, observer: &*observer };
        let (model, found) = (&climb.trained.model.clone(), seen.alike.clone());
        let revived = revive::revive(model, before, found, rows, &sketch, &mut climb)?;
        let Some((model, _)) = revived else { return Ok(false) };
        let own = FitOptions { checkpoint: None, ..self.options.clone() };
        let learning =
            Learning { options: &own, whole, dataset: self.dataset, engine: self.engine };
        match learning.run(model, trained.origin.clone(), None, observer) {
            Ok(again) => {
                take(trained, again);
                Ok(true)
            }
            // the first is a model
            Err(error) if error.is_recoverable() || matches!(error, Error::Interrupted) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Trains from another start where the model is a constant although the targets have a trend.
    fn mend_constant(&self, going: &mut Going<'_>, seen: &mut Seen, rows: &InMemory) -> Result<()> {
        let constant = |model: &Model, seen: &Seen| {
            collapse::misses_a_trend(model, &seen.mean, rows)
                || collapse::mixes_constants(model, &seen.mean)
        };
        let clear = collapse::misses_a_trend(&going.trained.model, &seen.mean, rows);
        // no score test tells of mixed functions: there may be nothing to find, and what there is may be hard to
        let attempts = if clear { 1 } else { collapse::ATTEMPTS };
        let mut text = None;
        for further in (1..=attempts).map(|more| self.options.restarts + more) {
            if !constant(&going.trained.model, seen) {
                break;
            }
            let better = self.train_again(going, further);
            if better.as_ref().is_ok_and(|better| *better) {
                *seen = Seen::of(going.trained, rows)?;
            }
            text = Some(match better {
                // whatever became of the second, the first is a model
                Err(error) => collapse::failed(&error),
                Ok(true) if !constant(&going.trained.model, seen) => collapse::MENDED.to_owned(),
                Ok(_) => collapse::STILL_CONSTANT.to_owned(),
            });
        }
        let said = text.filter(|text| clear || text == collapse::MENDED);
        going.trained.origin.warnings.extend(said);
        Ok(())
    }

    /// Trains from other starts where residuals of near rows are clearly alike, and says so where they stay so.
    fn mend_residuals(
        &self,
        going: &mut Going<'_>,
        seen: &mut Seen,
        rows: &InMemory,
    ) -> Result<()> {
        // of functions that are known to a thousandth the rest does not matter
        let spread = spread(&moments(rows, false));
        if going.trained.model.noise() < EXPLAINED * spread {
            return Ok(());
        }
        // other starts differ where functions may be fast or slow
        let learns = going.trained.model.params().iter().any(|(_, param)| {
            matches!(param.role(), Role::Lengthscales | Role::Period) && !param.frozen
        });
        let few = self.dataset.source.rows() <= AUTO_WHOLE && self.options.restarts == 0 && learns;
        let first = self.options.restarts + collapse::ATTEMPTS;
        for further in (1..=RESTARTS).map(|more| first + more) {
            let ended = self.came_to_its_end(going.trained);
            if seen.left().is_none() || !few || !ended || going.observer.interrupted() {
                break;
            }
            if self.train_again(going, further).is_ok_and(|better| better) {
                *seen = Seen::of(going.trained, rows)?;
            }
        }
        if let Some(alike) = seen.left() {
            going.trained.origin.warnings.push(self.what_is_left(alike));
        }
        Ok(())
    }

    /// Returns what is said of a model that is a constant where nothing shows that it should not
    /// be.
    fn nothing_found(&self, trained: &Trained, seen: &Seen) -> Option<String> {
        let said =
            trained.origin.warnings.iter().any(|own| own.contains("the model is a constant"));
        let constant = collapse::is_constant(&trained.model, &seen.mean);
        (constant && !said && !self.dataset.has_constants())
            .then(|| collapse::NOTHING_FOUND.to_owned())
    }

    /// Returns what is said of residuals that are alike.
    fn what_is_left(&self, alike: Alike) -> String {
        let along = match alike.input {
            Some(q) if self.dataset.scaler.log_unit(q).is_some() => {
                let name = self.dataset.input_names.get(q).map_or("?", String::as_str);
                format!("that are near each other along the logarithm of `{name}`")
            }
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
    fn train_again(&self, going: &mut Going<'_>, further: usize) -> Result<bool> {
        let Going { trained, start, observer } = going;
        if observer.interrupted() {
            return Err(Error::Interrupted);
        }
        let own = of_start(self.options, further);
        let again = trained_from(self.dataset, &own, self.engine, *observer, further)?;
        let better = again.report.objective > trained.report.objective;
        if better {
            let starts = trained.report.starts.clone();
            take(trained, again);
            (**start, trained.report.starts) = (further, starts);
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
        collapse::means(&own.posterior(self.again.engine, &data)?, self.rows)
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

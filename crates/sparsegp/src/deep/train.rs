//! Training by Adam on minibatches: every step has rows and noise of its own, from streams named after its number, so that
//! a run depends on its seed alone.

use super::bound::{Batch, Want, Work};
use super::model::Deep;
use super::noise::Noise;
use crate::data::{Batches, Minibatch, Position};
use crate::error::{Error, Result};
use crate::inverse_free::SolverOptions;
use crate::optim::{Adam, AdamOptions, Objective, Optimiser, Progress, Status};
use crate::params::{free_count, free_gradient, free_values, log_prior, set_free_values};
use crate::variational::Variational;
use std::ops::ControlFlow;

/// How a model is trained.
#[derive(Clone, Debug)]
pub struct TrainOptions {
    /// Steps of Adam.
    pub steps: usize,
    /// Samples S of hidden layers in a step.
    pub samples: usize,
    /// Learning rate of the first two thirds of the steps, or of the time that there is for them, above 0; 0.01 by default.
    pub learning_rate: f64,
    /// Factor of it in the last third of either, above 0; 0.3 by default.
    pub last: f64,
    /// Size of natural-gradient steps of the last layer, above 0 and at most 1, which take its q (W or M) from Adam; none by
    /// default. 0.01 to 0.1 is safe with minibatches.
    pub natural: Option<f64>,
    /// How T of R layers follows.
    pub solver: SolverOptions,
    /// Seed of the noise.
    pub seed: u64,
    /// Steps between entries of the trace.
    pub every: usize,
}

impl Default for TrainOptions {
    fn default() -> Self {
        Self {
            steps: 2000,
            samples: 1,
            learning_rate: 0.01,
            last: 0.3,
            natural: None,
            solver: SolverOptions::default(),
            seed: 0,
            every: 100,
        }
    }
}

/// How training went.
#[derive(Clone, Debug, Default)]
pub struct Trained {
    /// Steps made.
    pub steps: usize,
    /// Mean bound of every so many steps (with the log densities of priors, where parameters have some), with the number of
    /// the last: of minibatches and fresh noise, not of the data.
    pub trace: Vec<(usize, f64)>,
    /// Mean bound of the steps since the last entry of the trace, or of that entry.
    pub bound: f64,
    /// Largest component of the gradient by free numbers, in the last step.
    pub slope: f64,
    /// Points at which the bound had no finite value, or some matrix no factor: moves were halved there.
    pub failures: usize,
    /// Why it ended early, if it did: the model is then at the last point with a finite bound.
    pub ended: Option<String>,
}

/// Where a training stands between two steps: with the model and the batches at [`Standing::position`], all that it goes on
/// from, to the bit.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Adam with its moments.
    pub adam: Adam,
    /// How it went so far.
    pub trained: Trained,
    /// Sum of the bounds since the last entry of the trace, and how many.
    pub window: (f64, usize),
    /// The batch that comes next.
    pub position: Position,
}

/// What watches a training: called with the model and where it stands before every step, and at the end. It continues with
/// the share of a time limit that is used, if there is one ([`Progress::see`]); a break ends the training.
pub type Watch<'a> = &'a mut dyn FnMut(&Deep, &Standing) -> ControlFlow<(), Option<f64>>;

/// The negative bound of one step.
struct Negative<'a> {
    model: &'a mut Deep,
    batch: &'a Minibatch,
    options: &'a TrainOptions,
    work: &'a mut Work,
    step: u64,
    good: &'a mut Good,
}

/// The last point with a finite bound and gradient: free numbers, and q of the last layer where these do not have it.
#[derive(Default)]
struct Good {
    x: Vec<f64>,
    q: Vec<Variational>,
}

impl Good {
    fn keep(&mut self, x: &[f64], model: &Deep, natural: bool) {
        self.x.clear();
        self.x.extend_from_slice(x);
        if natural {
            self.q.clear();
            let last = &model.layers[model.layers.len() - 1];
            self.q.extend(last.groups.iter().map(|group| group.q.clone()));
        }
    }

    fn restore(&self, model: &mut Deep) {
        let last = model.layers.len() - 1;
        for (group, q) in model.layers[last].groups.iter_mut().zip(&self.q) {
            group.q.copy_from(q);
        }
        set_free_values(|v| model.visit_mut(v), &self.x);
    }
}

impl Objective for Negative<'_> {
    fn dim(&self) -> usize {
        free_count(|v| self.model.visit(v))
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        set_free_values(|v| self.model.visit_mut(v), x);
        self.model.settle_in(&self.options.solver, self.work)?;
        let want = Want { gradient: true, ..Want::default() };
        let noise = Noise::Streams { seed: self.options.seed, step: self.step };
        let batch = rows(self.batch, self.options.samples);
        let found = self.model.evaluate(&batch, &noise, want, self.work)?;
        let mut constrained = found.gradient;
        let value = found.value + log_prior(|v| self.model.visit(v), &mut constrained);
        free_gradient(|v| self.model.visit(v), &constrained, gradient);
        gradient.iter_mut().for_each(|g| *g = -*g);
        if value.is_finite() && gradient.iter().all(|g| g.is_finite()) {
            self.good.keep(x, self.model, self.options.natural.is_some());
        }
        Ok(-value)
    }
}

fn rows(batch: &Minibatch, samples: usize) -> Batch<'_> {
    let own = &batch.rows;
    let rows = crate::data::source::Rows {
        start: 0,
        x: own.x.as_ref(),
        y: own.y.as_ref(),
        weights: &own.weights,
        extra: &own.extra,
    };
    Batch { rows, population: batch.population as f64, samples }
}

impl Deep {
    /// Trains all parameters that are not frozen on minibatches. A step whose bound is not finite, or for which some matrix
    /// is not positive definite, is halved until it is; where that does not help, training ends at the last point that had
    /// one, and says so.
    ///
    /// # Errors
    /// [`Error::Invalid`] for options that are not possible, [`Error::Shape`] for rows that do not fit; a recoverable error
    /// only where the start itself has no finite bound.
    pub fn train(&mut self, batches: &mut dyn Batches, options: &TrainOptions) -> Result<Trained> {
        self.train_from(batches, options, None, &mut |_, _| ControlFlow::Continue(None))
    }

    /// The same, watched: `watch` sees the model before every step and where it stands, and may end the training. It goes on
    /// from a standing of the same training, for the model of then.
    ///
    /// # Errors
    /// As for [`Deep::train`]; [`Error::Invalid`] for a standing of another model.
    pub fn train_from(
        &mut self,
        batches: &mut dyn Batches,
        options: &TrainOptions,
        from: Option<Standing>,
        watch: Watch<'_>,
    ) -> Result<Trained> {
        self.check()?;
        options.solver.check()?;
        if options.every == 0 || options.samples == 0 {
            return Err(Error::Invalid(format!(
                "a trace needs steps between its entries and a bound samples, found {} and {}",
                options.every, options.samples
            )));
        }
        let rates = [
            ("learning_rate", Some(options.learning_rate), f64::MAX),
            ("last", Some(options.last), f64::MAX),
            ("natural", options.natural, 1.0),
        ];
        for (name, rate, most) in rates {
            if let Some(rate) = rate.filter(|rate| !(0.0 < *rate && *rate <= most)) {
                let most = if most < f64::MAX { "at most 1" } else { "finite" };
                return Err(Error::Invalid(format!(
                    "`{name}` of a training is above 0 and {most}, found {rate}"
                )));
            }
        }
        let last = self.layers.len() - 1;
        let frozen: Vec<(bool, bool)> = self.layers[last]
            .groups
            .iter()
            .map(|g| (g.q.first.frozen, g.q.second.frozen))
            .collect();
        if options.natural.is_some() {
            for group in &mut self.layers[last].groups {
                (group.q.first.frozen, group.q.second.frozen) = (true, true);
            }
        }
        let outcome = self.climb(batches, options, from, watch);
        for (group, was) in self.layers[last].groups.iter_mut().zip(frozen) {
            (group.q.first.frozen, group.q.second.frozen) = was;
        }
        outcome
    }

    fn climb(
        &mut self,
        batches: &mut dyn Batches,
        options: &TrainOptions,
        from: Option<Standing>,
        watch: Watch<'_>,
    ) -> Result<Trained> {
        let rate = AdamOptions { learning_rate: options.learning_rate, ..Default::default() };
        let mut at = match from {
            Some(standing) => standing,
            None => Standing {
                adam: Adam::new(free_values(|v| self.visit(v)), rate),
                trained: Trained::default(),
                window: (0.0, 0),
                position: batches.position(),
            },
        };
        if at.adam.x().len() != free_count(|v| self.visit(v)) {
            return Err(Error::Invalid("the training to go on with is of another model".into()));
        }
        if at.adam.x().is_empty() && options.steps > 0 {
            return Err(Error::Invalid(
                "there is nothing to train: all parameters of the layers are frozen".into(),
            ));
        }
        // a time limit is of this run, whatever another one had used
        at.adam.progress = Progress::default();
        batches.seek(at.position)?;
        let (mut batch, mut work) = (Minibatch::new(), Work::default());
        let mut good = Good::default();
        good.keep(at.adam.x(), self, options.natural.is_some());
        let mut moved = false;
        for step in at.trained.steps..options.steps {
            at.position = batches.position();
            let ControlFlow::Continue(used) = watch(self, &at) else {
                at.trained.ended = Some(format!(
                    "after {step} of {} steps, by hand or by the clock",
                    options.steps
                ));
                break;
            };
            at.adam.progress.see(used);
            batches.next(&mut batch)?;
            moved = true;
            // set anew: a run that goes on may have more steps than the one before
            let late =
                at.adam.progress.step(step, options.steps) >= options.steps - options.steps / 3;
            at.adam.options.learning_rate =
                options.learning_rate * if late { options.last } else { 1.0 };
            if let Some(rate) = options.natural {
                set_free_values(|v| self.visit_mut(v), at.adam.x());
                self.move_last(rate, &batch, options, step, &mut work, &mut at.trained)?;
            }
            let mut objective = Negative {
                model: self,
                batch: &batch,
                options,
                work: &mut work,
                step: step as u64,
                good: &mut good,
            };
            let stepped = at.adam.step(&mut objective)?;
            at.trained.failures += stepped.evaluations.saturating_sub(1);
            if let Status::Stalled(why) = stepped.status {
                at.trained.ended = Some(format!("after {step} steps: {why}"));
                good.restore(self);
                break;
            }
            at.trained.steps = step + 1;
            at.trained.slope = stepped.gradient_norm;
            at.window.0 -= stepped.value;
            at.window.1 += 1;
            let mean = at.window.0 / at.window.1 as f64;
            at.trained.bound = mean;
            if at.trained.steps.is_multiple_of(options.every) {
                at.trained.trace.push((at.trained.steps, mean));
                at.window = (0.0, 0);
            }
        }
        at.position = batches.position();
        // it is over, or was ended before
        let _ = watch(self, &at);
        if at.window.1 > 0 {
            at.trained.trace.push((at.trained.steps, at.window.0 / at.window.1 as f64));
        }
        // Adam is a move ahead of what it has seen
        set_free_values(|v| self.visit_mut(v), at.adam.x());
        if !moved {
            // T of R layers goes to where Adam is, as in the run that ended
            self.settle_in(&options.solver, &mut work)?;
        } else if !self.is_finite(&batch, options, &mut work)? {
            good.restore(self);
            self.settle_in(&options.solver, &mut work)?;
            at.trained.failures += 1;
            at.trained.ended.get_or_insert_with(|| "the last move had no finite bound".into());
        }
        Ok(at.trained)
    }

    /// Whether the bound is finite where the model is.
    fn is_finite(
        &mut self,
        batch: &Minibatch,
        options: &TrainOptions,
        work: &mut Work,
    ) -> Result<bool> {
        let noise = Noise::Streams { seed: options.seed, step: options.steps as u64 };
        let batch = rows(batch, options.samples);
        let found = self
            .settle_in(&options.solver, work)
            .and_then(|()| self.evaluate(&batch, &noise, Want::default(), work));
        match found {
            Ok(found) => Ok(found.value.is_finite()),
            Err(error) if error.is_recoverable() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A natural-gradient step of the last layer, skipped where it has none.
    fn move_last(
        &mut self,
        rate: f64,
        batch: &Minibatch,
        options: &TrainOptions,
        step: usize,
        work: &mut Work,
        trained: &mut Trained,
    ) -> Result<()> {
        let noise = Noise::Streams { seed: options.seed, step: step as u64 };
        let last = self.layers.len() - 1;
        let settled = self.settle_in(&options.solver, work);
        let batch = rows(batch, options.samples);
        match settled.and_then(|()| self.natural_step(last, rate, &batch, &noise, work)) {
            Ok(_) => Ok(()),
            Err(error) if error.is_recoverable() => {
                trained.failures += 1;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

//! Steps of a training by minibatches, of Adam and of natural gradients: every step has its own
//! rows and noise, from streams named after its number, so that a run depends only on its seed.
//! [`crate::train::train_layers`] makes them.

use super::bound::{Batch, Want, Work};
use super::model::Deep;
use super::noise::Noise;
use super::units::Scales;
use crate::data::Minibatch;
use crate::error::{Error, Result};
use crate::inverse_free::SolverOptions;
use crate::linalg::Precision;
use crate::optim::{Adam, AdamOptions, Objective, Optimiser, Status};
use crate::params::{free_count, free_gradient, free_values, log_prior, set_free_values};
use crate::variational::Variational;

/// How steps are made.
#[derive(Clone, Debug)]
pub struct StepOptions {
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
    /// Units of all numbers, in which Adam's steps are measured ([`Deep::units`]); none for those of the model as it is. A run
    /// that continues from a state needs those of its start.
    pub units: Option<Vec<f64>>,
    /// What products of rows are made in ([`Work::in_precision`]).
    pub precision: Precision,
    /// Seed of the noise.
    pub seed: u64,
}

impl Default for StepOptions {
    fn default() -> Self {
        Self {
            samples: 1,
            learning_rate: 0.01,
            last: 0.3,
            natural: None,
            solver: SolverOptions::default(),
            units: None,
            precision: Precision::Double,
            seed: 0,
        }
    }
}

impl StepOptions {
    /// Refuses numbers that are not possible.
    fn check(&self) -> Result<()> {
        self.solver.check()?;
        if self.samples == 0 {
            return Err(Error::Invalid("a bound needs samples, found 0".into()));
        }
        let rates = [
            ("learning_rate", Some(self.learning_rate), f64::MAX),
            ("last", Some(self.last), f64::MAX),
            ("natural", self.natural, 1.0),
        ];
        for (name, rate, most) in rates {
            if let Some(rate) = rate.filter(|rate| !(0.0 < *rate && *rate <= most)) {
                let most = if most < f64::MAX { "at most 1" } else { "finite" };
                return Err(Error::Invalid(format!(
                    "`{name}` of a training is above 0 and {most}, found {rate}"
                )));
            }
        }
        Ok(())
    }
}

/// The negative bound of one step.
struct Negative<'a> {
    model: &'a mut Deep,
    batch: &'a Minibatch,
    options: &'a StepOptions,
    work: &'a mut Work,
    step: u64,
    good: &'a mut Good,
    scales: &'a Scales,
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
        let moved = x;
        let x = &self.scales.free(moved);
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
        self.scales.pull(moved, x, gradient);
        if value.is_finite() && gradient.iter().all(|g| g.is_finite()) {
            self.good.keep(x, self.model, self.options.natural.is_some());
        }
        Ok(-value)
    }
}

fn rows(batch: &Minibatch, samples: usize) -> Batch<'_> {
    Batch { rows: batch.rows.all(), population: batch.population as f64, samples }
}

/// Layers in training.
pub(crate) struct Steps<'a> {
    layers: &'a mut Deep,
    options: &'a StepOptions,
    /// Planned ones.
    planned: usize,
    /// Whether q of the last layer's groups was frozen before.
    frozen: Vec<(bool, bool)>,
    work: Work,
    good: Good,
    scales: Scales,
}

impl<'a> Steps<'a> {
    /// Begins with layers as they are, for so many steps.
    ///
    /// # Errors
    /// [`Error::Invalid`] for options that are not possible, and for layers that do not fit.
    pub(crate) fn new(
        layers: &'a mut Deep,
        options: &'a StepOptions,
        planned: usize,
    ) -> Result<Self> {
        layers.check()?;
        options.check()?;
        let frozen = last_q(layers).map(|q| (q.first.frozen, q.second.frozen)).collect();
        if options.natural.is_some() {
            last_q(layers).for_each(|q| (q.first.frozen, q.second.frozen) = (true, true));
        }
        let all = options.units.clone().unwrap_or_else(|| layers.units());
        let fits = all.len() == layers.num_params();
        let scales = if fits { Scales::new(layers, &all) } else { Scales::default() };
        let (work, good) = (Work::in_precision(options.precision), Good::default());
        let mut own = Self { layers, options, planned, frozen, work, good, scales };
        if !fits {
            own.release();
            let expected = format!("{}, one for each number", own.layers.num_params());
            return Err(Error::shape("units of a training", expected, all.len()));
        }
        if planned > 0 && own.count() == 0 {
            own.release();
            return Err(Error::Invalid(
                "there is nothing to train: all parameters of the layers are frozen".into(),
            ));
        }
        let free = free_values(|v| own.layers.visit(v));
        own.good.keep(&free, own.layers, options.natural.is_some());
        Ok(own)
    }

    /// Returns the number of free numbers that Adam moves.
    pub(crate) fn count(&self) -> usize {
        free_count(|v| self.layers.visit(v))
    }

    /// Returns Adam before the first step.
    pub(crate) fn adam(&self) -> Adam {
        let learning_rate = self.options.learning_rate;
        let options = AdamOptions { learning_rate, ..AdamOptions::default() };
        let free = free_values(|v| self.layers.visit(v));
        Adam::new(self.scales.moved(&free), options)
    }

    /// Makes step `at` = 0, 1, …. A step whose bound is not finite, or for which some matrix is not positive definite, is
    /// halved until it is; where that does not help Adam has stalled, and the layers are at the last point that had one.
    /// Returns the bound, with the log densities of priors, and how many points had none.
    ///
    /// # Errors
    /// [`Error::Shape`] for rows that do not fit; a recoverable error only where the start itself has no finite bound.
    pub(crate) fn step(
        &mut self,
        at: usize,
        batch: &Minibatch,
        adam: &mut Adam,
    ) -> Result<(f64, usize)> {
        let Self { layers, options, planned, work, good, scales, .. } = self;
        let options = *options;
        // set again: a resumed run may have more steps than the one before
        let late = adam.progress.step(at, *planned) >= *planned - *planned / 3;
        adam.options.learning_rate = options.learning_rate * if late { options.last } else { 1.0 };
        let mut failures = 0;
        if let Some(rate) = options.natural {
            set_free_values(|v| layers.visit_mut(v), &scales.free(adam.x()));
            failures += usize::from(!moved_last(layers, rate, batch, options, at, work)?);
        }
        let step = at as u64;
        let mut objective = Negative { model: layers, batch, options, work, step, good, scales };
        let stepped = adam.step(&mut objective)?;
        failures += stepped.evaluations.saturating_sub(1);
        if matches!(stepped.status, Status::Stalled(_)) {
            self.good.restore(self.layers);
        }
        Ok((-stepped.value, failures))
    }

    /// Returns the layers at the point of the last step, with what was frozen before.
    pub(crate) fn layers(&self) -> Deep {
        let mut own = self.layers.clone();
        restore(&mut own, &self.frozen);
        own
    }

    /// Goes to where Adam is, one move ahead of what it has seen, or back to the last point with a finite bound. Returns
    /// whether it is there that it went.
    ///
    /// # Errors
    /// Those that are not recoverable.
    pub(crate) fn end(&mut self, adam: &Adam, last: Option<&Minibatch>) -> Result<bool> {
        set_free_values(|v| self.layers.visit_mut(v), &self.scales.free(adam.x()));
        let Some(batch) = last else {
            // T of R layers goes to where Adam is, as in the run that ended
            self.layers.settle_in(&self.options.solver, &mut self.work)?;
            return Ok(false);
        };
        if self.is_finite(batch)? {
            return Ok(false);
        }
        self.good.restore(self.layers);
        self.layers.settle_in(&self.options.solver, &mut self.work)?;
        Ok(true)
    }

    /// Takes other values of the parameters, and what else such layers have.
    pub(crate) fn replace(&mut self, layers: Deep) {
        *self.layers = layers;
    }

    /// Ends the training of these layers.
    pub(crate) fn release(&mut self) {
        restore(self.layers, &self.frozen);
    }

    /// Returns whether the bound is finite where the model is.
    fn is_finite(&mut self, batch: &Minibatch) -> Result<bool> {
        let noise = Noise::Streams { seed: self.options.seed, step: self.planned as u64 };
        let batch = rows(batch, self.options.samples);
        let Self { layers, options, work, .. } = self;
        let found = layers
            .settle_in(&options.solver, work)
            .and_then(|()| layers.evaluate(&batch, &noise, Want::default(), work));
        match found {
            Ok(found) => Ok(found.value.is_finite()),
            Err(error) if error.is_recoverable() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Returns q of the last layer.
fn last_q(layers: &mut Deep) -> impl Iterator<Item = &mut Variational> {
    layers.layers.last_mut().into_iter().flat_map(|last| &mut last.groups).map(|own| &mut own.q)
}

fn restore(layers: &mut Deep, frozen: &[(bool, bool)]) {
    for (q, was) in last_q(layers).zip(frozen) {
        (q.first.frozen, q.second.frozen) = *was;
    }
}

/// Makes a natural-gradient step of the last layer, skipped where it has none. Returns whether
/// there was one.
fn moved_last(
    layers: &mut Deep,
    rate: f64,
    batch: &Minibatch,
    options: &StepOptions,
    step: usize,
    work: &mut Work,
) -> Result<bool> {
    let noise = Noise::Streams { seed: options.seed, step: step as u64 };
    let last = layers.layers.len() - 1;
    let settled = layers.settle_in(&options.solver, work);
    let batch = rows(batch, options.samples);
    match settled.and_then(|()| layers.natural_step(last, rate, &batch, &noise, work)) {
        Ok(_) => Ok(true),
        Err(error) if error.is_recoverable() => Ok(false),
        Err(error) => Err(error),
    }
}

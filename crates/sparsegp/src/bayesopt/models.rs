//! What the trials say: a model of every outcome.

use super::trials::{Options, Trial};
use super::{Constraint, Space};
use crate::data::InMemory;
use crate::engine::Cpu;
use crate::error::Result;
use crate::fit::{Dataset, FitOptions, Fitted, Hyperparameters, LogInputs, Standardise, fit};
use crate::linalg::Mat;
use crate::model::Posterior;
use crate::special::normal_cdf;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// Least noise variance of a model, as a part of the variance of its outcomes: that of functions without noise.
const LEAST_NOISE: f64 = 1e-6;

/// What is known of a further outcome.
#[derive(Clone, Debug)]
pub(super) enum Further {
    /// No model: all trials have the same value, or none has one.
    Unknown,
    /// A model of the excess over the bound, and the place of the bound on its scale.
    Model(Box<Fitted>, f64),
}

/// Models of all outcomes, on their standardised scales. The objective is to be as large as possible.
#[derive(Clone, Debug)]
pub(super) struct Models {
    pub objective: Fitted,
    /// The rows that it learnt from, standardised.
    pub rows: InMemory,
    pub constraints: Vec<Further>,
    /// Of whether trials fail; none while none has failed.
    pub success: Option<Fitted>,
    /// Which rows are trials that keep the constraints, as far as is known.
    pub feasible: Vec<bool>,
    /// The trials of the rows.
    pub trials: Vec<usize>,
}

/// Returns whether there are two different numbers.
fn vary(values: &[f64]) -> bool {
    values.iter().any(|v| *v != values[0])
}

fn column(values: &[f64]) -> Mat<f64> {
    Mat::from_fn(values.len(), 1, |i, _| values[i])
}

/// Learns one outcome. `noise` is its standard deviation, if it is known; `classes` says that values are 0 and 1.
fn learnt(
    x: Mat<f64>,
    y: &[f64],
    options: &Options,
    noise: Option<f64>,
    classes: bool,
) -> Result<Fitted> {
    let scaling = Standardise { inputs: false, targets: !classes, robust: false, constants: false };
    let dataset = Dataset::from_arrays(x, column(y), scaling)?;
    let mut own = FitOptions {
        kernel: options.kernel.clone(),
        likelihood: Some(if classes { "bernoulli" } else { "gaussian" }.into()),
        hyperparameters: Hyperparameters::PlugIn,
        log_inputs: LogInputs::None,
        seed: options.seed,
        ..FitOptions::default()
    };
    if let Some(noise) = noise {
        let variance = (noise / dataset.scaler.y_scale[0]).powi(2).max(LEAST_NOISE);
        own.set = vec![("likelihood.variance".into(), vec![variance])];
        own.freeze = vec!["likelihood.variance".into()];
    }
    fit(&dataset, &own, &Cpu::default(), &mut ())
}

impl Models {
    /// Learns from trials; none where they do not tell better points from worse ones.
    pub fn learnt(space: &Space, options: &Options, trials: &[Trial]) -> Result<Option<Self>> {
        let parts: Vec<Vec<f64>> = trials.iter().map(|own| space.parts(&own.point)).collect();
        let inputs =
            |of: &[usize]| space.encoded(&of.iter().map(|i| parts[*i].clone()).collect::<Vec<_>>());
        let known = |i: &usize| trials[*i].objective().is_some();
        let of: Vec<usize> = (0..trials.len()).filter(known).collect();
        let sign = options.goal.sign();
        let values: Vec<f64> =
            of.iter().filter_map(|i| trials[*i].objective()).map(|y| sign * y).collect();
        if values.len() < 2 || !vary(&values) {
            return Ok(None);
        }
        let objective = learnt(inputs(&of), &values, options, options.noise, false)?;
        let mut y = column(&values);
        objective.scaler.scale_y(y.as_mut())?;
        let rows = InMemory::new(inputs(&of), y)?;
        let mut constraints = Vec::new();
        for (c, constraint) in options.constraints.iter().enumerate() {
            constraints.push(Self::further(constraint, c, trials, &inputs, options)?);
        }
        let finished: Vec<usize> = (0..trials.len()).filter(|i| !trials[*i].is_pending()).collect();
        let success = match finished.len() > of.len() {
            true => {
                let good: Vec<f64> = finished.iter().map(|i| f64::from(known(i))).collect();
                Some(learnt(inputs(&finished), &good, options, None, true)?)
            }
            false => None,
        };
        let mut all =
            Self { objective, rows, constraints, success, feasible: Vec::new(), trials: of };
        all.feasible = all.which_hold(options, trials)?;
        Ok(Some(all))
    }

    fn further(
        constraint: &Constraint,
        at: usize,
        trials: &[Trial],
        inputs: &dyn Fn(&[usize]) -> Mat<f64>,
        options: &Options,
    ) -> Result<Further> {
        let known = |i: &usize| trials[*i].further(at).is_some();
        let of: Vec<usize> = (0..trials.len()).filter(known).collect();
        let values = of.iter().filter_map(|i| trials[*i].further(at));
        let values: Vec<f64> = values.map(|v| constraint.excess(v)).collect();
        if values.len() < 2 || !vary(&values) {
            return Ok(Further::Unknown);
        }
        let fitted = learnt(inputs(&of), &values, options, None, false)?;
        let (mean, scale) = (fitted.scaler.y_mean[0], fitted.scaler.y_scale[0]);
        Ok(Further::Model(Box::new(fitted), -mean / scale))
    }

    /// Returns which rows keep the constraints: what was observed does, and so does what is
    /// probable.
    fn which_hold(&self, options: &Options, trials: &[Trial]) -> Result<Vec<bool>> {
        let mut hold = vec![true; self.rows.x.nrows()];
        for (hold, i) in hold.iter_mut().zip(&self.trials) {
            *hold = trials[*i].holds(&options.constraints);
        }
        for (c, known) in self.constraints.iter().enumerate() {
            let Further::Model(fitted, bound) = known else { continue };
            let (mean, variance) = fitted.posterior.predict_f(self.rows.x.as_ref())?;
            for (i, hold) in hold.iter_mut().enumerate() {
                // an outcome that was seen to hold, at the bound perhaps, is only contradicted by a clear mean
                let seen = trials[self.trials[i]].further(c).is_some();
                let slack = if seen { variance[(i, 0)].sqrt() } else { 0.0 };
                *hold &= mean[(i, 0)] <= *bound + slack;
            }
        }
        Ok(hold)
    }

    /// Returns the probability that all constraints hold, and that a trial does not fail, at inputs.
    pub fn probability(&self, x: &Mat<f64>) -> Result<Vec<f64>> {
        let mut all = vec![1.0; x.nrows()];
        for known in &self.constraints {
            let Further::Model(fitted, bound) = known else { continue };
            let (mean, variance) = fitted.posterior.predict_f(x.as_ref())?;
            for (i, p) in all.iter_mut().enumerate() {
                *p *= normal_cdf((bound - mean[(i, 0)]) / variance[(i, 0)].sqrt());
            }
        }
        if let Some(success) = &self.success {
            let (mean, variance) = success.posterior.predict_f(x.as_ref())?;
            for (i, p) in all.iter_mut().enumerate() {
                *p *= normal_cdf(mean[(i, 0)] / (1.0 + variance[(i, 0)]).sqrt());
            }
        }
        Ok(all)
    }

    /// Returns the posterior of the objective given also what trials under way may give: a latent
    /// function for each of `draws` joint draws of their outcomes (Snoek, Larochelle & Adams 2012,
    /// §3.2), all with the same variance.
    pub fn imagined(
        &self,
        pending: &Mat<f64>,
        draws: usize,
        rng: &mut impl Rng,
    ) -> Result<Posterior> {
        if pending.nrows() == 0 {
            return Ok(self.objective.posterior.clone());
        }
        let noise = self.objective.model.noise().sqrt();
        let drawn = self.objective.posterior.sample_f(pending.as_ref(), draws, rng)?;
        let (n, more) = (self.rows.x.nrows(), pending.nrows());
        let x = Mat::from_fn(n + more, self.rows.x.ncols(), |i, q| match i.checked_sub(n) {
            None => self.rows.x[(i, q)],
            Some(i) => pending[(i, q)],
        });
        let mut y = Mat::from_fn(n + more, draws, |i, s| match i.checked_sub(n) {
            None => self.rows.y[(i, 0)],
            Some(i) => drawn[s][(i, 0)],
        });
        for s in 0..draws {
            for i in n..n + more {
                let z: f64 = StandardNormal.sample(rng);
                y[(i, s)] += noise * z;
            }
        }
        let model = &self.objective.model;
        model.method.posterior(model, &Cpu::default(), &InMemory::new(x, y)?)
    }
}

//! Kernels, likelihood and inducing points learnt from new rows, with what old ones said held.
//!
//! Sites have what old rows said of the function, and not what they said of the noise: trained on a few rows at a time, its variance
//! would become that of the last of them. So every old row counts as one whose residual has the variance v₀ of before, which adds to the bound
//! minus the divergence of both normal laws,
//!
//! ```text
//! −½ n (log v/v₀ + v₀/v − 1)
//! ```
//!
//! With one new residual r this is the running mean, v = (n v₀ + r²)/(n + 1). Positive parameters of other likelihoods have the
//! same term, and others its parabola.

use super::{State, UpdateOptions};
use crate::data::InMemory;
use crate::error::Result;
use crate::kernels::place_of;
use crate::likelihoods::Likelihood;
use crate::model::inducing_param;
use crate::online::SolveOptions;
use crate::optim::{Lbfgs, LbfgsOptions, Objective, Optimiser};
use crate::params::{Param, Transform};

/// What old rows said of a number of the likelihood.
struct Known {
    value: f64,
    positive: bool,
    rows: f64,
}

impl Known {
    /// Returns what so many old rows, of so many targets, say of the parameters of a likelihood.
    fn all(likelihood: &dyn Likelihood, rows: f64, targets: usize) -> Vec<Self> {
        let mut all = Vec::new();
        for (_, param) in likelihood.params() {
            let positive = !matches!(param.natural(), Transform::Identity);
            // one for all targets is seen by each
            let rows = if param.len() == 1 { rows * targets as f64 } else { rows };
            all.extend(param.value().iter().map(|value| Self { value: *value, positive, rows }));
        }
        all
    }

    /// Returns the term of a value, and its slope.
    fn term(&self, value: f64) -> (f64, f64) {
        let half = 0.5 * self.rows;
        match self.positive {
            true => {
                let ratio = self.value / value;
                (-half * (ratio - ratio.ln() - 1.0), half * (ratio - 1.0) / value)
            }
            false => {
                let apart = value - self.value;
                (-0.5 * half * apart * apart, -half * apart)
            }
        }
    }
}

/// Minus the bound of a part at its best q, with the log priors.
struct Part<'s, 'a> {
    state: &'s mut State<'a>,
    rows: &'s InMemory,
    solve: &'s SolveOptions,
    known: Vec<Known>,
}

impl Objective for Part<'_, '_> {
    fn dim(&self) -> usize {
        self.state.model.free_count()
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        self.state.place(x)?;
        let state = &*self.state;
        let model = &state.model;
        let mut slopes = vec![0.0; model.num_params()];
        let mut bound = 0.0;
        state.meet(self.rows, self.solve, &mut |own, update, solved| {
            bound += solved.bound.total();
            // at the best q the slopes at q are those of the bound
            let found = update.gradient_at(&update.moments())?;
            let parts = model.parts_of(&mut slopes);
            let add = |to: &mut [f64], from: &[f64]| {
                to.iter_mut().zip(from).for_each(|(sum, own)| *sum += own);
            };
            let first = place_of(model.kernels.len(), own.start);
            let mut at: usize = model.kernels[..first].iter().map(|k| k.num_params()).sum();
            for own in &found.kernels {
                add(&mut parts.kernel[at..], own);
                at += own.len();
            }
            add(parts.likelihood, &found.likelihood);
            for q in 0..found.z.ncols() {
                let m = found.z.nrows();
                add(&mut parts.inducing[q * m..], found.z.col_as_slice(q));
            }
            Ok(())
        })?;
        let values = model.likelihood.params().into_iter().flat_map(|(_, param)| param.value());
        let slopes_of = model.parts_of(&mut slopes).likelihood.iter_mut();
        for ((known, value), slope) in self.known.iter().zip(values).zip(slopes_of) {
            let (term, own) = known.term(*value);
            bound += term;
            *slope += own;
        }
        let value = bound + model.free_gradient(&mut slopes, gradient);
        gradient.iter_mut().for_each(|slope| *slope = -*slope);
        Ok(-value)
    }

    fn terms(&self) -> Option<f64> {
        Some((self.rows.x.nrows() * self.rows.y.ncols()).max(1) as f64)
    }
}

impl State<'_> {
    /// Sets what is trained from free numbers.
    fn place(&mut self, free: &[f64]) -> Result<()> {
        self.model.set_free_values(free);
        self.z = self.model.inducing_points()?;
        Ok(())
    }
}

/// Returns how many rows were there before, in effect where old ones are forgotten.
fn old_rows(taken: usize, rows: &InMemory, options: &UpdateOptions) -> f64 {
    let lasting = rows.x.nrows() as f64 / (1.0 - options.forget);
    (taken as f64).min(lasting)
}

/// Trains on the rows of a part, from where the model is, and leaves the best that was found. Means stay: the sites of
/// old rows are counted from them.
pub(super) fn train(state: &mut State<'_>, rows: &InMemory, options: &UpdateOptions) -> Result<()> {
    let frozen: Vec<bool> = state.model.params().iter().map(|(_, param)| param.frozen).collect();
    let mut points = inducing_param(state.z.as_ref());
    points.frozen = !options.train_points;
    state.model.inducing = vec![points];
    state.model.mean.params_mut().into_iter().for_each(|(_, param)| param.frozen = true);
    let start = state.model.free_values();
    let mut best = start.clone();
    if !start.is_empty() && rows.x.nrows() > 0 {
        let options_of = LbfgsOptions { largest_move: Some(1.0), ..LbfgsOptions::fitting() };
        let mut optimiser = Lbfgs::new(start, options_of);
        let known = Known::all(
            &*state.model.likelihood,
            old_rows(state.taken, rows, options),
            rows.y.ncols(),
        );
        let mut part = Part { state, rows, solve: &options.solve, known };
        for _ in 0..options.train {
            // the first evaluation is where the model is: it can be made, or the update cannot
            if optimiser.step(&mut part)?.status.is_final() {
                break;
            }
        }
        if let Some((found, _)) = optimiser.best() {
            best = found.to_vec();
        }
    }
    state.place(&best)?;
    let thaw = |(param, frozen): (&mut Param, bool)| param.frozen = frozen;
    let params = state.model.params_mut().into_iter().map(|(_, param)| param);
    params.zip(frozen).for_each(thaw);
    Ok(())
}

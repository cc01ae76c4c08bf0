//! Kernels, likelihood and inducing points learnt from new rows, with what old ones said held.

use super::{State, UpdateOptions};
use crate::data::InMemory;
use crate::error::Result;
use crate::kernels::place_of;
use crate::model::inducing_param;
use crate::online::SolveOptions;
use crate::optim::{Lbfgs, LbfgsOptions, Objective, Optimiser};
use crate::params::Param;

/// Minus the bound of a part at its best q, with the log priors.
struct Part<'s, 'a> {
    state: &'s mut State<'a>,
    rows: &'s InMemory,
    solve: &'s SolveOptions,
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
        let mut part = Part { state, rows, solve: &options.solve };
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

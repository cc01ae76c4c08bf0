//! A pass over rows: its value, its gradient, and which latent functions move.

use super::forms::row_sites::Seen;
use super::forms::{self, Pull};
use super::prepared::{Prepared, statistics};
use super::rows::sum;
use super::variational;
use crate::engine::Passed;
use crate::error::{Error, Result};
use crate::inverse_free::Solved;
use crate::likelihoods::mixing_shape;
use crate::linalg::{Mat, column};
use crate::model::{Diagnostics, Model};
use crate::variational::NaturalStep;
use std::sync::Mutex;

/// A pass over rows at a model's q, with what it takes to make steps of it. It keeps its memory from
/// pass to pass ([`super::Uncollapsed::renew`]).
#[derive(Default)]
pub struct Step {
    /// Value of the bound.
    pub value: f64,
    /// What the numerics had to do.
    pub diagnostics: Diagnostics,
    /// How T was brought up to date ([`super::Uncollapsed::follow`]).
    pub solved: Option<Solved>,
    pub(super) processes: Vec<Prepared>,
    /// Factors of the unexplained variances, one for each latent function.
    pub(super) v: Vec<f64>,
    pub(super) passed: Passed,
    pub(super) natural: NaturalStep,
    /// Which latent functions of a target move, if not all ([`Step::choose`]).
    pub(super) chosen: Option<Vec<bool>>,
    /// What the numbers among the likelihood's parameters become in closed form at this q, after a pass for the
    /// value; none for those without such an update.
    pub updated: Vec<Option<f64>>,
    /// Whether ∂ℓ/∂s was cut so that sites stay precisions.
    pub(super) clipped: bool,
    /// Sums of the sites that are kept row by row.
    pub(super) of_sites: Passed,
    /// What a step of these needs of the rows.
    pub(super) seen: Mutex<Seen>,
}

/// Returns whether a latent function is among the chosen ones of its target.
pub(super) fn moves(chosen: &Option<Vec<bool>>, latent: usize) -> bool {
    chosen.as_ref().is_none_or(|chosen| chosen[latent % chosen.len()])
}

impl Step {
    /// Chooses, from the next pass on, which latent functions of every target move; none for all of them again.
    ///
    /// The others are looked at, so that the value and the slopes of the likelihood's parameters are what they
    /// were, but nothing is summed for them: of q's parameters only those that were chosen have natural gradients,
    /// the same ones as without a choice, and steps leave the others where they are. Other gradients
    /// are those that come through the chosen ones, times K by their number. So, if every choice of so many has the
    /// same probability, a gradient is one of all on average; [`Step::gradient`] leaves that of q out.
    ///
    /// It is for q by whitened moments, with one kernel and one set of inducing points.
    pub fn choose(&mut self, chosen: Option<Vec<bool>>) {
        self.chosen = chosen;
    }

    /// Refuses a choice among what has none.
    pub(super) fn check_choice(&self, model: &Model) -> Result<()> {
        let Some(chosen) = &self.chosen else { return Ok(()) };
        let each = model.likelihood.latents();
        if chosen.len() != each || !chosen.contains(&true) {
            return Err(Error::Shape {
                what: "the choice of latent functions".into(),
                expected: format!("some of {each}, those of a target"),
                found: format!("{} of {}", chosen.iter().filter(|c| **c).count(), chosen.len()),
            });
        }
        let chooses = forms::of(variational(model)?).chooses();
        if model.shares_points() && chooses && model.likelihood.mixing().is_none() {
            return Ok(());
        }
        Err(Error::Invalid(
            "some of the classes at a time are for latent functions that share their kernel and inducing \
             points, with q by whitened moments"
                .into(),
        ))
    }

    /// Returns by how much gradients through the latent functions that move are to be multiplied.
    fn share(&self) -> f64 {
        self.chosen.as_ref().map_or(1.0, |chosen| {
            chosen.len() as f64 / chosen.iter().filter(|c| **c).count() as f64
        })
    }

    /// Writes the gradient with respect to every constrained parameter, in the order of
    /// [`Model::params`], into `out`; the step must have been made with [`Want::Gradients`] or
    /// [`Want::Adjoints`]. To be asked once. With statistics and Ψ of the rows the part of a frozen
    /// q is left 0.
    ///
    /// [`Want::Gradients`]: crate::engine::Want::Gradients
    /// [`Want::Adjoints`]: crate::engine::Want::Adjoints
    pub fn gradient(&mut self, model: &Model, out: &mut [f64]) {
        out.fill(0.0);
        let share = self.share();
        let Self { processes, passed, chosen, .. } = self;
        if share != 1.0 {
            passed.mean.iter_mut().for_each(|g| *g *= share);
            for sums in &mut passed.processes {
                sums.inducing.iter_mut().for_each(|g| *g *= share);
            }
        }
        let gradient = model.parts_of(out);
        let Some(q) = &model.q else { return };
        let likelihood = gradient.likelihood.len();
        gradient.likelihood.copy_from_slice(&passed.sums[sum::PARAMS..][..likelihood]);
        match model.likelihood.mixing() {
            None => gradient.mean.copy_from_slice(&passed.mean),
            Some(mixing) => {
                // W is the last of the likelihood's parameters
                let from = sum::PARAMS + likelihood + 2 * mixing_shape(mixing).0;
                let (by_mixing, by_mean) = passed.sums[from..].split_at(mixing.len());
                gradient.likelihood[likelihood - mixing.len()..].copy_from_slice(by_mixing);
                gradient.mean.copy_from_slice(by_mean);
            }
        }
        let (form, how) = (forms::of(q), Pull { chosen: chosen.is_some(), share });
        for (own, sums) in processes.iter_mut().zip(&mut passed.processes) {
            form.pull(own, q, sums, how, gradient.q);
            own.finish(model, sums, &mut *gradient.kernel, &mut *gradient.inducing);
        }
        if let Some(v) = &q.v {
            let latents = v.len();
            let (slopes, counts) = passed.sums[sum::PARAMS + likelihood..].split_at(latents);
            let start = gradient.q.len() - latents;
            for (l, g) in gradient.q[start..].iter_mut().enumerate() {
                *g = slopes[l] - 0.5 * counts[l] * (1.0 - 1.0 / v.value()[l]);
            }
        }
    }

    /// Returns how far whitened sums of sites are from their fixed point, for sites: the slopes of
    /// the bound with respect to γ₁ (M×l, of all latent functions) and Γ₂ (M×M each). Empty after a
    /// pass without statistics.
    pub fn site_slopes(&self) -> Vec<(Mat<f64>, Vec<Mat<f64>>)> {
        let pairs = self.processes.iter().zip(&self.passed.processes);
        pairs
            .filter(|(_, sums)| !sums.grams.is_empty())
            .map(|(own, sums)| {
                let rows = statistics(sums);
                let mut work = own.sites.clone();
                let mut first = Mat::zeros(own.z.nrows(), own.latents.len());
                let second = (0..own.latents.len()).map(|at| {
                    let (w, y) = work.back(&own.parts, rows, at);
                    first.as_mut().col_mut(at).copy_from(w.col(0));
                    y
                });
                let second = second.collect();
                (first, second)
            })
            .collect()
    }

    /// Returns the slopes of the bound with respect to the whitened means of all latent functions,
    /// Φa − m ([`NaturalStep`]), M numbers of each in turn. Empty after a pass without statistics.
    pub fn mean_slopes(&self) -> Vec<f64> {
        let pairs = self.processes.iter().zip(&self.passed.processes);
        pairs
            .filter(|(_, sums)| !sums.grams.is_empty())
            .flat_map(|(own, sums)| {
                let slopes = &sums.phi_a - &own.parts.mean;
                (0..slopes.ncols())
                    .flat_map(|l| column(slopes.as_ref(), l).to_vec())
                    .collect::<Vec<_>>()
            })
            .collect()
    }
}

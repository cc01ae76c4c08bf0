//! Natural-gradient steps of q of one layer at fixed samples (in deep models: Salimbeni, Eleftheriadis & Hensman 2018).
//!
//! Given what the layers below give, a W or M layer is a shallow process with slopes a, b of its rows, so that its step is
//! the shallow one ([`NaturalStep`]), S′⁻¹ = (1 − ρ)S⁻¹ + ρ(I − 2G), G = Φ diag(b) Φᵀ. At the last layer G is negative
//! semidefinite for log-concave likelihoods, and a whole step with Gaussian noise on all rows is the best q for these
//! samples. At hidden layers b = f̄ε/2√(s + r) has either sign: I − 2G may be indefinite, and the step is halved until it is
//! not.

use super::bound::{Batch, Evaluation, Want, Work};
use super::layer::Sampling;
use super::model::Deep;
use super::noise::Noise;
use crate::error::{Error, Result};
use crate::variational::{NaturalStep, Parts, Statistics};

/// A step that was made.
#[derive(Clone, Debug)]
pub struct Stepped {
    /// Its size ρ, after halvings.
    pub rate: f64,
    /// The bound before it.
    pub before: Evaluation,
}

/// Most halvings of a step.
const HALVINGS: usize = 20;

impl Deep {
    /// Moves q of a layer of kind W or M by a natural-gradient step of size ρ (0 < ρ ≤ 1) at the noise given, and returns
    /// the step with the bound before it. A size at which a precision is not positive definite is halved, at most twenty
    /// times.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a layer that there is not, of pseudo-observations (their step is that of T, [`Deep::settle`]) or
    /// sampled by functions (whose rows say nothing of curvatures), or a size out of range;
    /// [`Error::NotPositiveDefinite`] if no size does. The model is then as it was.
    pub fn natural_step(
        &mut self,
        layer: usize,
        rate: f64,
        batch: &Batch<'_>,
        noise: &Noise<'_>,
        work: &mut Work,
    ) -> Result<Stepped> {
        let count = self.layers.len();
        let Some(own) = self.layers.get(layer) else {
            return Err(Error::Invalid(format!(
                "there is no layer {layer}: the {count} layers are 0 to {}",
                count.saturating_sub(1)
            )));
        };
        if own.groups.iter().any(|group| group.shares()) {
            return Err(Error::Invalid(format!(
                "layer {layer} is of pseudo-observations (L or R): Adam moves these, and the natural steps of R are those of \
                 T (`settle`)"
            )));
        }
        if own.sampling == Sampling::Functions && layer + 1 < count {
            return Err(Error::Invalid(format!(
                "layer {layer} is sampled by functions, whose rows say nothing of curvatures: sample its rows for natural steps"
            )));
        }
        if let Some(group) = own.groups.iter().find(|group| group.q.is_diagonal()) {
            return Err(Error::Invalid(format!(
                "q of layer {layer} has {} standard deviations for each function, which cannot hold a full covariance",
                group.q.points()
            )));
        }
        if !(0.0 < rate && rate <= 1.0) {
            return Err(Error::Invalid(format!(
                "the size of a natural-gradient step is above 0 and at most 1, found {rate}"
            )));
        }
        let before = self.sweep(batch, noise, Want::default(), Some(layer), work)?;
        let mut natural = NaturalStep::default();
        let (sums, prepared) = (&mut work.sums[layer].groups, &work.layers[layer].groups);
        sums.iter_mut().for_each(|own| own.settle());
        let mut size = rate;
        let mut halvings = 0;
        let moved = loop {
            let pairs = prepared.iter().zip(sums.iter());
            let all: Result<Vec<Parts>> = pairs
                .map(|(own, sums)| {
                    let rows = Statistics { phi_a: sums.phi_a.as_ref(), grams: &sums.grams };
                    let mut out = Parts::default();
                    natural.make(&own.parts, rows, |_| size, &mut out)?;
                    Ok(out)
                })
                .collect();
            match all {
                Ok(all) => break all,
                Err(error) if error.is_recoverable() && halvings < HALVINGS => {
                    halvings += 1;
                    size *= 0.5;
                }
                Err(error) => return Err(error),
            }
        };
        let groups = &mut self.layers[layer].groups;
        for ((group, own), mut parts) in groups.iter_mut().zip(prepared).zip(moved) {
            let latents = 0..group.outputs();
            group.q.set_whitened(latents, own.basis.factor(), &mut parts)?;
        }
        Ok(Stepped { rate: size, before })
    }
}

//! The log density of everything that is unknown of a model: whitened variables v of f = m(x) + Lv, or of u = Lv at inducing points,
//! and hyperparameters θ, for samplers with slopes.
//!
//! log π(v, η) = log N(v; 0, I) + Σ log p(yᵢ | fᵢ, θ) + log p(θ) + log |∂θ/∂η|, where η are logarithms of positive numbers,
//! logits between bounds ([`mod@super::slice`]). Whitened, v and θ are nearly independent where the data say little (Murray &
//! Adams 2010). The slopes in θ, through L too, are those of [`crate::flow::targets::Whitened`].

use super::hmc::{Hamiltonian, HmcOptions, Point, Sampled};
use super::joint::LogDensity;
use super::resume::Going;
use super::slice::Hyperparameters;
use super::whitened::{self, Chain, Unknowns};
use super::{Setting, Target};
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::flow::Target as _;
use crate::flow::targets::{Whitened, WhitenedRows};
use crate::linalg::{Mat, MatRef};
use crate::model::Model;
use crate::model::hyperparameters;
use crate::rng::stream;
use crate::samplers::chains::Length;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::TAU;
use std::ops::ControlFlow;

/// Spread of the starts of chains about the model's hyperparameters, in what moves.
const SPREAD: f64 = 0.3;

/// v of every latent function in turn, then what moves of the hyperparameters.
#[derive(Clone, Debug)]
pub(super) struct Everything<'a> {
    model: Model,
    rows: &'a InMemory,
    sampled: &'a Hyperparameters,
    /// M, the inducing points that all latent functions share, or the rows where there are none.
    points: usize,
    /// M·L.
    whitened: usize,
    latents: usize,
    f: Mat<f64>,
}

impl<'a> Everything<'a> {
    pub(super) fn new(model: &Model, rows: &'a InMemory, sampled: &'a Hyperparameters) -> Self {
        let latents = model.latents(rows.y.ncols());
        let points = model.inducing.first().map_or(rows.x.nrows(), |z| z.matrix().nrows());
        let whitened = points * latents;
        Self { model: model.clone(), rows, sampled, points, whitened, latents, f: Mat::new() }
    }

    /// Gives the model the hyperparameters of a position.
    fn set(&mut self, position: &[f64]) {
        for (own, free) in self.sampled.coordinates.iter().zip(&position[self.whitened..]) {
            own.write(&mut self.model, own.to_value(*free));
        }
    }

    /// Returns the posterior of v at the present hyperparameters.
    fn target(&self) -> Result<Whitened> {
        let (n, rows) = (self.rows.x.nrows(), self.rows);
        let mut mean = Mat::zeros(n, self.latents);
        self.model.mean.evaluate(rows.x.as_ref(), mean.as_mut());
        let own = WhitenedRows {
            x: rows.x.as_ref(),
            y: rows.y.as_ref(),
            extra: &rows.extra,
            weights: &[],
            mean: Some(mean.as_ref()),
        };
        let likelihood = &*self.model.likelihood;
        let points = self.model.inducing.first().map(|z| z.matrix());
        Whitened::new(&self.model.kernels, likelihood, points, self.model.jitter, own)
    }

    fn log_prior(&self) -> f64 {
        let own = self.sampled.coordinates.iter();
        own.map(|c| c.log_prior(c.read(&self.model))).sum()
    }

    /// Returns the density at a position, with its slopes where they are wanted; none where a
    /// matrix is not positive definite.
    fn at(&mut self, position: &[f64], gradient: Option<&mut [f64]>) -> Result<f64> {
        self.set(position);
        let mut target = self.target()?;
        let v = &position[..self.whitened];
        let v = MatRef::from_column_major_slice(v, v.len(), 1);
        let mut by_v = Mat::zeros(self.whitened, 1);
        let mut values = [0.0];
        target.evaluate(v, &mut values, by_v.as_mut())?;
        if let Some(gradient) = gradient {
            let (out, by_free) = gradient.split_at_mut(self.whitened);
            out.iter_mut().zip(by_v.col_as_slice(0)).for_each(|(o, g)| *o = -g);
            let slopes = target.slopes(v)?;
            let mut all = vec![0.0; self.model.num_params()];
            let parts = self.model.parts_of(&mut all);
            let kernels = slopes.kernels.iter().flatten();
            parts.kernel.iter_mut().zip(kernels).for_each(|(t, v)| *t = -v);
            parts.likelihood.iter_mut().zip(&slopes.likelihood).for_each(|(t, v)| *t = -v);
            let by_mean = faer::Scale(-1.0) * &slopes.mean;
            self.model.mean.vjp(self.rows.x.as_ref(), by_mean.as_ref(), parts.mean);
            for (own, to) in self.sampled.coordinates.iter().zip(by_free) {
                *to = own.slope(own.read(&self.model), own.by_value(&self.model, &all));
            }
        }
        let constant = -0.5 * self.whitened as f64 * TAU.ln();
        Ok(constant - values[0] + self.log_prior())
    }
}

impl LogDensity for Everything<'_> {
    fn dim(&self) -> usize {
        self.whitened + self.sampled.coordinates.len()
    }

    fn value(&mut self, position: &[f64]) -> f64 {
        self.at(position, None).unwrap_or(f64::NEG_INFINITY)
    }

    fn evaluate(&mut self, position: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        self.at(position, Some(gradient)).unwrap_or(f64::NEG_INFINITY)
    }
}

impl Unknowns for Everything<'_> {
    fn latent_values_at(&mut self, position: &[f64]) -> &Mat<f64> {
        self.set(position);
        let (n, v) = (self.rows.x.nrows(), &position[..self.whitened]);
        // a chain has been there: it has a factor
        if let Ok(target) = self.target() {
            let v = MatRef::from_column_major_slice(v, v.len(), 1);
            let f = target.latent_values_of(v);
            self.f = Mat::from_fn(n, self.latents, |i, l| f[(l * n + i, 0)]);
        }
        &self.f
    }

    fn whitened(&self, position: &[f64]) -> Mat<f64> {
        let m = self.points;
        Mat::from_fn(m, self.latents, |i, l| position[l * m + i])
    }

    fn hyperparameters(&self) -> Option<Vec<f64>> {
        Some(hyperparameters(&self.model))
    }
}

/// Runs Hamiltonian chains of whitened variables and all hyperparameters that are not frozen, in parallel. Chains start about the
/// model's hyperparameters; the draws depend only on the seed. `watch` as for
/// [`gibbs::sample`](super::gibbs::sample).
///
/// # Errors
/// [`Error::Invalid`] for several sets of inducing points, rows with weights, latent functions that targets share, hyperparameters without a
/// prior ([`assume_priors`](super::slice::assume_priors)), no draws or numbers out of range; what factorising covariances gives.
pub fn sample(
    model: &Model,
    rows: &InMemory,
    options: &HmcOptions,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Sampled> {
    sample_from(model, rows, options, Going::default(), watch)
}

/// Samples the same from a state, or with somebody who takes states.
///
/// # Errors
/// As for [`sample`]; [`Error::Invalid`] for a state of other chains; those of the checkpointer.
pub fn sample_from(
    model: &Model,
    rows: &InMemory,
    options: &HmcOptions,
    going: Going<'_>,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Sampled> {
    super::hmc::check(options)?;
    if model.inducing.len() > 1 {
        return Err(Error::Invalid(
            "hyperparameters are sampled with one set of inducing points for all latent functions"
                .into(),
        ));
    }
    // refuses what no sampler takes
    Setting::new(model, rows, Target::Variational)?;
    let sampled = Hyperparameters::new(model, model.latents(rows.y.ncols()))?;
    Everything::new(model, rows, &sampled).target()?;
    let &HmcOptions { burn_in, draws, thin, .. } = options;
    let length = Length { burn_in, draws, thin };
    let found = whitened::sample(options.chains, length, going, watch, |chain| {
        let mut all = Everything::new(model, rows, &sampled);
        let mut rng = stream(options.seed, &format!("everything/{chain}"));
        let mut position: Vec<f64> =
            StandardNormal.sample_iter(&mut rng).take(all.whitened).collect();
        for own in &sampled.coordinates {
            let noise: f64 = StandardNormal.sample(&mut rng);
            position.push(own.to_free(own.read(model)) + SPREAD * noise);
        }
        let point = Point::new(&mut all, position);
        let density =
            |all: &mut Everything<'_>, x: &[f64], gradient: &mut [f64]| all.evaluate(x, gradient);
        Ok(Chain::new(all, Hamiltonian::new(point, rng, options), density, burn_in))
    })?;
    let draws = super::Draws { sampled: sampled.named, ..found.draws };
    Ok(Sampled { draws, ..found })
}

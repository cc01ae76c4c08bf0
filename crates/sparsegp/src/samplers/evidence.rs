//! Hyperparameters under their log evidence: f is integrated out. For Gaussian noise it is drawn exactly given each of them.
//!
//! Under another likelihood the evidence is the variational bound at the best sites of all rows ([`Tvgp`]): p(θ) exp(bound(θ)) is,
//! up to a constant, the best q(θ) where q(f, θ) = q(f | θ) q(θ) and q(f | θ) is normal (the bound on log p(y) is then
//! E_q(θ)[bound(θ)] − KL(q(θ) ‖ p(θ)), as in Bishop 2006, §10.1).
//!
//! Where noise is small, whitened f and hyperparameters depend on each other closely, and chains of both
//! ([`super::everything`]) hardly move. Given θ, with z₀ ~ N(0, I) and e ~ N(0, Σ), z = z₀ + Lᵀ(LLᵀ + Σ)⁻¹(y − m − Lz₀ − e) is a
//! draw of the whitened f = m + Lz (Matheron's rule).

use super::hmc::{Hamiltonian, HmcOptions, Point, Sampled};
use super::joint::LogDensity;
use super::resume::Going;
use super::slice::{Hyperparameters, assume_priors};
use super::whitened::{self, Chain, Unknowns};
use super::{Draws, Setting, Target};
use crate::data::InMemory;
use crate::engine::Cpu;
use crate::error::{Error, Result};
use crate::kernels::covariances;
use crate::linalg::{Cholesky, Jitter, Mat, product};
use crate::methods::{self, Tvgp, exact};
use crate::model::Model;
use crate::model::hyperparameters;
use crate::params::log_prior;
use crate::rng::stream;
use crate::samplers::chains::Length;
use crate::variational::Variational;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Spread of the starts of chains about the model's hyperparameters, in what moves.
const SPREAD: f64 = 0.3;

/// What a step of the sites may promise at the end, in nats, and most steps: where slopes are wanted, which differ by the root of it,
/// and where not. A bound that is not quite at its top is one too.
const ENDED: [(f64, usize); 2] = [(1e-9, 60), (1e-4, 20)];

/// The posterior density of hyperparameters: their evidence with their priors.
pub(super) struct Posterior<'a> {
    /// Of the method `exact`, or of one with sites of all rows, which are the best ones where it is.
    pub(super) model: Model,
    /// The method with sites, and those that others are found from.
    sites: Option<(Tvgp, Arc<Variational>)>,
    pub(super) rows: &'a InMemory,
    pub(super) sampled: &'a Hyperparameters,
    pub(super) cpu: Cpu,
}

/// Points of [`super::laplace`] that get weights, and rows that are few.
const POINTS: usize = 128;
const FEW: usize = 150;

/// What moves of the hyperparameters.
struct Evidence<'a> {
    density: Posterior<'a>,
    rng: ChaCha8Rng,
    f: Mat<f64>,
    z: Mat<f64>,
}

impl<'a> Posterior<'a> {
    pub(super) fn new(
        model: &Model,
        rows: &'a InMemory,
        sampled: &'a Hyperparameters,
    ) -> Result<Self> {
        let cpu = Cpu::default();
        if let (true, Some(q)) = (is_sited(model), &model.q) {
            let sites = Some((Tvgp::of(model.method)?, Arc::new(q.clone())));
            return Ok(Self { model: model.clone(), sites, rows, sampled, cpu });
        }
        let model = Model { method: methods::find("exact")?.method, q: None, ..model.clone() };
        Ok(Self { model, sites: None, rows, sampled, cpu })
    }

    /// Returns the same, to be moved by itself.
    pub(super) fn another(&self) -> Self {
        Self { model: self.model.clone(), sites: self.sites.clone(), cpu: Cpu::default(), ..*self }
    }

    /// Returns the step of the differences of slopes, which have fewer digits where sites are found
    /// by steps.
    pub(super) fn step(&self) -> f64 {
        if self.sites.is_some() { 1e-2 } else { 1e-3 }
    }

    /// Returns the number of points that get weights: fewer where each has a search for sites, more
    /// for so few rows that the density is far from normal.
    pub(super) fn points(&self) -> usize {
        match (self.sites.is_some(), self.rows.x.nrows() <= FEW) {
            (true, _) => POINTS * 3 / 4,
            (false, true) => 2 * POINTS,
            (false, false) => POINTS,
        }
    }

    /// Returns the number of steps of Newton's method, at most; there the mode of θ is near that of
    /// the evidence.
    pub(super) fn newton(&self) -> usize {
        if self.sites.is_some() { 1 } else { 4 }
    }

    /// Returns where the model is.
    pub(super) fn position(&self) -> Vec<f64> {
        self.sampled.coordinates.iter().map(|own| own.to_free(own.read(&self.model))).collect()
    }

    /// Moves the model there.
    pub(super) fn set(&mut self, position: &[f64]) {
        for (own, free) in self.sampled.coordinates.iter().zip(position) {
            own.write(&mut self.model, own.to_value(*free));
        }
    }

    /// Returns the log density of what moves, with its slopes.
    ///
    /// # Errors
    /// What factorising covariances gives.
    pub(super) fn at(&mut self, position: &[f64], gradient: Option<&mut [f64]>) -> Result<f64> {
        self.set(position);
        let coordinates = &self.sampled.coordinates;
        let jacobian: f64 =
            coordinates.iter().map(|own| own.log_jacobian(own.read(&self.model))).sum();
        let ended = ENDED[usize::from(gradient.is_none())];
        let settled = match &self.sites {
            Some((method, from)) => Some(method.settle(&mut self.model, self.rows, from, ended)?),
            None => None,
        };
        let Some(gradient) = gradient else {
            let value = match settled {
                Some(value) => value,
                None => exact::log_evidence(&self.model, &self.cpu, self.rows)?,
            };
            return Ok(value + self.model.log_prior() + jacobian);
        };
        let mut found = self.model.method.evaluate(&self.model, &self.cpu, self.rows)?;
        let prior = log_prior(|v| self.model.visit(v), &mut found.gradient);
        for (own, to) in coordinates.iter().zip(gradient) {
            let by_value = own.by_value(&self.model, &found.gradient);
            *to = own.slope_of(own.read(&self.model), by_value);
        }
        Ok(found.value + prior + jacobian)
    }
}

impl Clone for Posterior<'_> {
    fn clone(&self) -> Self {
        self.another()
    }
}

impl LogDensity for Posterior<'_> {
    fn dim(&self) -> usize {
        self.sampled.coordinates.len()
    }

    fn value(&mut self, position: &[f64]) -> f64 {
        self.at(position, None).unwrap_or(f64::NEG_INFINITY)
    }

    fn evaluate(&mut self, position: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        self.at(position, Some(gradient)).unwrap_or(f64::NEG_INFINITY)
    }
}

impl Evidence<'_> {
    /// Draws whitened f and f given the hyperparameters of the model.
    fn draw(&mut self) -> Result<()> {
        let Posterior { model, rows: InMemory { x, y, extra, .. }, .. } = &self.density;
        let (n, p) = (y.nrows(), y.ncols());
        let mut k = covariances(model.kernel(), x.as_ref(), None);
        let factor = Cholesky::new(k.as_ref(), model.jitter, "K")?;
        let noise = model.gaussian()?.variance.scalar();
        let of = |i: usize| noise + extra.get(i).copied().unwrap_or(0.0);
        (0..n).for_each(|i| k[(i, i)] += factor.jitter + of(i));
        let whole = Cholesky::new(k.as_ref(), Jitter::Absolute(0.0), "K + Σ")?;
        let rng = &mut self.rng;
        let start: Mat<f64> = Mat::from_fn(n, p, |_, _| StandardNormal.sample(rng));
        let mut mean = Mat::zeros(n, p);
        model.mean.evaluate(x.as_ref(), mean.as_mut());
        let prior = product(factor.l.as_ref(), start.as_ref());
        let rest = Mat::from_fn(n, p, |i, j| {
            let normal: f64 = StandardNormal.sample(rng);
            y[(i, j)] - mean[(i, j)] - prior[(i, j)] - of(i).sqrt() * normal
        });
        let moved = product(factor.l.transpose(), whole.solve(rest.as_ref()).as_ref());
        self.z = &start + &moved;
        self.f = &mean + product(factor.l.as_ref(), self.z.as_ref());
        Ok(())
    }
}

impl LogDensity for Evidence<'_> {
    fn dim(&self) -> usize {
        self.density.dim()
    }

    fn value(&mut self, position: &[f64]) -> f64 {
        self.density.value(position)
    }

    fn evaluate(&mut self, position: &[f64], gradient: &mut [f64]) -> f64 {
        self.density.evaluate(position, gradient)
    }
}

impl Unknowns for Evidence<'_> {
    fn latent_values_at(&mut self, position: &[f64]) -> &Mat<f64> {
        self.density.set(position);
        // a chain is where the evidence had a value: its matrices have factors
        let _ = self.draw();
        &self.f
    }

    fn whitened(&self, _: &[f64]) -> Mat<f64> {
        self.z.clone()
    }

    fn hyperparameters(&self) -> Option<Vec<f64>> {
        Some(hyperparameters(&self.density.model))
    }

    fn generator(&self) -> Option<&ChaCha8Rng> {
        Some(&self.rng)
    }

    fn generator_mut(&mut self) -> Option<&mut ChaCha8Rng> {
        Some(&mut self.rng)
    }
}

/// Returns whether the evidence is the bound at the best sites of all rows.
pub fn is_sited(model: &Model) -> bool {
    model.method.name() == "tvgp" && model.q.is_some()
}

/// Returns whether the evidence of these rows is known in closed form: Gaussian noise, no target
/// missing, no inducing points.
pub fn is_known(model: &Model, rows: &InMemory) -> bool {
    let missing = (0..rows.y.ncols()).any(|p| rows.y.col_as_slice(p).iter().any(|y| y.is_nan()));
    let plain = !model.method.is_sparse() && model.kernels.len() == 1;
    plain && model.likelihood.as_gaussian().is_some() && !missing
}

/// Returns the model with a prior for everything that moves ([`assume_priors`]), and what that is;
/// none where everything is frozen.
///
/// # Errors
/// [`Error::Invalid`] where the evidence is neither known in closed form nor bounded by sites of all rows.
pub(super) fn moving(model: &Model, rows: &InMemory) -> Result<Option<(Model, Hyperparameters)>> {
    if !is_known(model, rows) && !is_sited(model) {
        return Err(Error::Invalid(
            "hyperparameters are integrated over for exact inference with Gaussian noise, one kernel and all targets, and for \
             the method `tvgp`"
                .into(),
        ));
    }
    let mut model = model.clone();
    assume_priors(&mut model);
    let sampled = Hyperparameters::new(&model, model.latents(rows.y.ncols()));
    Ok(sampled.ok().map(|sampled| (model, sampled)))
}

/// Runs Hamiltonian chains of all hyperparameters that are not frozen, in parallel, with a draw of f for each draw of them.
/// Chains start about the model's hyperparameters; the draws depend only on the seed. `watch` as
/// for [`gibbs::sample`](super::gibbs::sample).
///
/// # Errors
/// [`Error::Invalid`] for other noise, missing targets, inducing points, rows with weights, hyperparameters without a prior
/// ([`assume_priors`]), no draws or numbers out of range; what factorising covariances gives.
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
    if !is_known(model, rows) {
        return Err(Error::Invalid(
            "the evidence is known for Gaussian noise, one kernel, all targets, and without inducing points".into(),
        ));
    }
    // refuses what no sampler takes
    Setting::new(model, rows, Target::Variational)?;
    let sampled = Hyperparameters::new(model, model.latents(rows.y.ncols()))?;
    let &HmcOptions { burn_in, draws, thin, .. } = options;
    let length = Length { burn_in, draws, thin };
    let density = Posterior::new(model, rows, &sampled)?;
    let found = whitened::sample(options.chains, length, going, watch, |chain| {
        let mut rng = stream(options.seed, &format!("evidence/{chain}"));
        let start = |rng: &mut ChaCha8Rng| -> Vec<f64> {
            let noise = |own: &super::slice::Coordinate, rng: &mut ChaCha8Rng| {
                let noise: f64 = StandardNormal.sample(rng);
                own.to_free(own.read(model)) + SPREAD * noise
            };
            sampled.coordinates.iter().map(|own| noise(own, rng)).collect()
        };
        let position = start(&mut rng);
        let mut own = Evidence {
            density: density.another(),
            rng: stream(options.seed, &format!("evidence/{chain}/f")),
            f: Mat::new(),
            z: Mat::new(),
        };
        let point = Point::new(&mut own, position);
        own.draw()?;
        let density =
            |own: &mut Evidence<'_>, x: &[f64], gradient: &mut [f64]| own.evaluate(x, gradient);
        Ok(Chain::new(own, Hamiltonian::new(point, rng, options), density, burn_in))
    })?;
    let draws = Draws { sampled: sampled.named, ..found.draws };
    Ok(Sampled { draws, ..found })
}

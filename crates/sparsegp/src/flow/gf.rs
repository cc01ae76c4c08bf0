//! Gaussian flow: the flow of particles with positions that are drawn again (Galy-Fajou, Perrone &
//! Opper 2021, Algorithm 1; eq. 11 with ΓᵀΓ, K×K).
//!
//! With q = N(μ, ΓΓᵀ), draws E of K×S standard normal numbers and G the gradients at μ1ᵀ + ΓE,
//!
//! ```text
//! μ ← μ − η₁ ḡ  (or ΓΓᵀḡ)      Γ ← Γ − η₂ ((1/S) G Eᵀ ΓᵀΓ − Γ)
//! ```
//! It is steepest descent of F under the metric tr[(dΓ Γ⁻¹)ᵀ dΓ Γ⁻¹], without inverses. Draws with the moments of a
//! normal distribution make it deterministic and exact for Gaussian targets.

use super::energy::free_energy;
use super::factor::Factor;
use super::field::MeanFlow;
use super::optimiser::{FlowOptimiser, Rule, Scale, check_rates, check_schedule};
use super::particles::{matched_normals, normals};
use super::run::{Progress, Solver};
use super::target::{Evaluation, Target, check_dim, check_finite};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};
use crate::optim::Schedule;
use crate::rng::stream;
use rand::Rng;

/// How parameters flow.
#[derive(Clone, Debug, PartialEq)]
pub struct GfOptions {
    /// η₁.
    pub mean_rate: f64,
    /// η₂.
    pub spread_rate: f64,
    /// Which way the mean goes.
    pub mean_flow: MeanFlow,
    /// How flows become moves; anything but [`Rule::Plain`] has a scale for every parameter.
    pub rule: Rule,
    /// How rates change.
    pub schedule: Schedule,
    /// S, positions of every step.
    pub draws: usize,
    /// Whether E1 = 0 and EEᵀ = S I in every step, which asks for S > K.
    pub matched: bool,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for GfOptions {
    fn default() -> Self {
        Self {
            mean_rate: 0.05,
            spread_rate: 0.05,
            mean_flow: MeanFlow::Plain,
            rule: Rule::Plain,
            schedule: Schedule::Constant,
            draws: 10,
            matched: false,
            seed: 0,
        }
    }
}

/// q = N(μ, ΓΓᵀ) that flows.
#[derive(Clone, Debug)]
pub struct Gf {
    mean: Vec<f64>,
    factor: Factor,
    options: GfOptions,
    /// Of the mean, and of every part of the factor.
    optimisers: Vec<FlowOptimiser>,
}

/// Where parameters go, for rates of 1.
#[derive(Clone, Debug)]
pub struct GfFlow {
    /// −ḡ or −ΓΓᵀḡ, D numbers.
    pub mean: Vec<f64>,
    /// Γ − (1/S) G Eᵀ ΓᵀΓ.
    pub factor: Factor,
    /// ḡ, D numbers.
    pub gradient: Vec<f64>,
    /// Σ_b ‖Ψ_bb − Π_b‖²_F with Ψ = (1/S) G EᵀΓᵀ and the projector Π_b on the columns of Γ_b.
    pub residual: f64,
    /// Estimate of `F = E_q[φ] − ½ log|ΓᵀΓ|`.
    pub free_energy: f64,
}

impl Gf {
    /// Starts from a mean (D numbers) and a factor of the covariance.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NonFinite`] and [`Error::Invalid`] for a start or options that do not fit,
    /// [`Error::NotPositiveDefinite`] for a factor without full rank.
    pub fn new(mean: Vec<f64>, factor: Factor, options: GfOptions) -> Result<Self> {
        check_finite("the mean of a Gaussian", &mean)?;
        factor.check(mean.len())?;
        check_rates(&[options.mean_rate, options.spread_rate])?;
        check_schedule(options.schedule)?;
        if options.draws == 0 || (options.matched && options.draws <= factor.width()) {
            return Err(Error::Invalid(format!(
                "{} draws for every step are too few: it takes 1, or {} where their moments are matched",
                options.draws,
                factor.width() + 1
            )));
        }
        // a factor without full rank keeps that
        let log = factor.log_determinant()?;
        check_finite("log|ΓᵀΓ| at the start", [&log])?;
        let optimiser = || FlowOptimiser::new(options.rule, Scale::Element);
        let parts = factor.parts().len();
        let optimisers = (0..=parts).map(|_| optimiser()).collect::<Result<_>>()?;
        Ok(Self { mean, factor, options, optimisers })
    }

    /// Returns μ, D numbers.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Returns Γ.
    pub fn factor(&self) -> &Factor {
        &self.factor
    }

    /// Draws S positions of q, D×S.
    pub fn draw(&self, count: usize, rng: &mut impl Rng) -> Mat<f64> {
        let e = normals(self.factor.width(), count, rng);
        self.factor.positions(&self.mean, e.as_ref())
    }

    /// Computes the flow for given draws E (K×S; of blocks one after the other).
    ///
    /// # Errors
    /// [`Error::Shape`] for draws of another size; as for [`Evaluation::of`] and [`Factor::log_determinant`].
    pub fn flow(&self, target: &mut dyn Target, e: MatRef<'_, f64>) -> Result<GfFlow> {
        check_dim("rows of draws", e.nrows(), self.factor.width())?;
        let x = self.factor.positions(&self.mean, e);
        let own = Evaluation::of(target, x.as_ref())?;
        let gradient = own.mean_gradient();
        let mean = match self.options.mean_flow {
            MeanFlow::Plain => gradient.iter().map(|g| -g).collect(),
            MeanFlow::Natural => self.factor.natural(&gradient),
        };
        let log = self.factor.log_determinant()?;
        let factor = self.factor.flow(own.gradient.as_ref(), e);
        Ok(GfFlow {
            mean,
            residual: self.factor.residual(&factor)?,
            factor,
            gradient,
            free_energy: free_energy(own.mean_phi(), &[log]),
        })
    }

    /// Moves with given draws, at the rates of step `step`.
    ///
    /// # Errors
    /// As for [`Gf::flow`].
    pub fn step_with(
        &mut self,
        target: &mut dyn Target,
        e: MatRef<'_, f64>,
        step: usize,
    ) -> Result<Progress> {
        let flow = self.flow(target, e)?;
        let factor = self.options.schedule.factor(step);
        let (mean_rate, rate) =
            (factor * self.options.mean_rate, factor * self.options.spread_rate);
        let by = self.optimisers[0].step_vector(&flow.mean, mean_rate)?;
        self.mean.iter_mut().zip(by).for_each(|(m, by)| *m += by);
        for (at, part) in flow.factor.parts().iter().enumerate() {
            let by = self.optimisers[at + 1].step(part.as_ref(), rate)?;
            self.factor.add(at, by.as_ref());
        }
        Ok(Progress {
            free_energy: Some(flow.free_energy),
            // of the gradient, also where the mean goes another way
            stationarity: flow.gradient.iter().map(|g| g * g).sum::<f64>() + flow.residual,
            scale: 1.0,
            stalled: false,
        })
    }
}

impl Solver for Gf {
    fn advance(&mut self, target: &mut dyn Target, step: usize) -> Result<Progress> {
        check_dim("the target", target.dim(), self.mean.len())?;
        target.renew(step);
        let mut rng = stream(self.options.seed, &format!("flow/draws/{step}"));
        let (width, count) = (self.factor.width(), self.options.draws);
        let e = match self.options.matched {
            true => matched_normals(width, count, &mut rng)?,
            false => normals(width, count, &mut rng),
        };
        self.step_with(target, e.as_ref(), step)
    }

    fn is_finite(&self) -> bool {
        check_finite("", &self.mean).is_ok() && self.factor.is_finite()
    }
}

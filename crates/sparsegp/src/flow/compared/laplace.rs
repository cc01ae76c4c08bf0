//! The mode of a density, and the Gaussian with the Hessian there (MacKay 1992).

use crate::error::Result;
use crate::flow::optimiser::{FlowOptimiser, Rule, Scale, check_rates, check_schedule};
use crate::flow::particles::{normals, shifted};
use crate::flow::target::{Evaluation, Target, check_dim, check_finite, check_finite_matrix};
use crate::linalg::{
    Cholesky, Jitter, Mat, MatRef, Par, column, solve_lower_transpose, symmetrise,
};
use crate::optim::{Lbfgs, LbfgsOptions, Objective, Optimiser, Schedule};
use rand::Rng;
use std::f64::consts::TAU;

/// How to find a mode.
#[derive(Clone, Debug, PartialEq)]
pub struct MapOptions {
    /// Steps, at most.
    pub steps: usize,
    /// Rate of Adam, for noisy targets; others are descended by L-BFGS.
    pub rate: f64,
    /// How that rate changes.
    pub schedule: Schedule,
}

impl Default for MapOptions {
    fn default() -> Self {
        Self { steps: 1000, rate: 0.01, schedule: Schedule::Constant }
    }
}

/// A mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// x̂, D numbers.
    pub position: Vec<f64>,
    /// φ there; of the last rows in sight, of a noisy target.
    pub phi: f64,
    /// The largest slope there.
    pub slope: f64,
    /// Whether the optimiser says that it is one; never of noisy targets.
    pub converged: bool,
}

struct Phi<'a>(&'a mut dyn Target);

impl Objective for Phi<'_> {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let own = Evaluation::of(self.0, MatRef::from_column_major_slice(x, x.len(), 1))?;
        gradient.copy_from_slice(column(own.gradient.as_ref(), 0));
        Ok(own.phi[0])
    }
}

/// Descends φ from a start (D numbers).
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) for a start of another dimension,
/// [`Error::NonFinite`](crate::Error::NonFinite) where φ is none at the start or, for a noisy
/// target, on the way.
pub fn map(target: &mut dyn Target, start: &[f64], options: &MapOptions) -> Result<Map> {
    check_dim("the start", start.len(), target.dim())?;
    check_finite("the start", start)?;
    if target.is_noisy() {
        return by_adam(target, start, options);
    }
    let lbfgs = LbfgsOptions {
        gradient_tolerance: 1e-9,
        objective_tolerance: 1e-14,
        ..LbfgsOptions::default()
    };
    let mut optimiser = Lbfgs::new(start.to_vec(), lbfgs);
    let mut objective = Phi(target);
    for _ in 0..options.steps {
        if optimiser.step(&mut objective)?.status.is_final() {
            break;
        }
    }
    let position = optimiser.x().to_vec();
    let converged = matches!(optimiser.status(), crate::optim::Status::Converged(_));
    at(objective.0, position, converged)
}

fn by_adam(target: &mut dyn Target, start: &[f64], options: &MapOptions) -> Result<Map> {
    check_rates(&[options.rate])?;
    check_schedule(options.schedule)?;
    let mut optimiser = FlowOptimiser::new(Rule::adam(), Scale::Element)?;
    let mut x = start.to_vec();
    for step in 0..options.steps {
        target.renew(step);
        let own = Evaluation::of(target, MatRef::from_column_major_slice(&x, x.len(), 1))?;
        let rate = options.rate * options.schedule.factor(step);
        let by = optimiser.step_vector(&own.mean_gradient(), -rate)?;
        x.iter_mut().zip(by).for_each(|(x, by)| *x += by);
    }
    at(target, x, false)
}

fn at(target: &mut dyn Target, position: Vec<f64>, converged: bool) -> Result<Map> {
    let x = MatRef::from_column_major_slice(&position, position.len(), 1);
    let own = Evaluation::of(target, x)?;
    let slope = own.gradient.norm_max();
    Ok(Map { phi: own.phi[0], slope, converged, position })
}

/// N(x̂, H⁻¹) with H = ∇²φ(x̂).
#[derive(Clone, Debug)]
pub struct Laplace {
    mode: Map,
    /// Of H.
    factor: Cholesky,
}

impl Laplace {
    /// Takes the Hessian at a mode.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) where the target knows none,
    /// [`Error::NotPositiveDefinite`](crate::Error::NotPositiveDefinite) where the position is not
    /// a mode.
    pub fn at(target: &mut dyn Target, mode: Map) -> Result<Self> {
        check_dim("the mode", mode.position.len(), target.dim())?;
        let d = mode.position.len();
        let (identity, mut hessian) = (Mat::<f64>::identity(d, d), Mat::zeros(d, d));
        target.hessian_times(&mode.position, identity.as_ref(), hessian.as_mut())?;
        check_finite_matrix("a second derivative of φ", hessian.as_ref())?;
        symmetrise(hessian.as_mut());
        let none = "the position is not a mode: take more steps, or another start";
        let factor = Cholesky::new(hessian.as_ref(), Jitter::Absolute(0.0), "∇²φ")
            .map_err(|e| e.with_hint(none))?;
        Ok(Self { mode, factor })
    }

    /// Returns the mode.
    pub fn mode(&self) -> &Map {
        &self.mode
    }

    /// Returns H⁻¹, D×D.
    pub fn covariance(&self) -> Mat<f64> {
        self.factor.inverse()
    }

    /// Returns L⁻ᵀ (D×D) of H = LLᵀ, a root of the covariance: for starts of particles.
    pub fn root(&self) -> Mat<f64> {
        let d = self.mode.position.len();
        let mut root = Mat::<f64>::identity(d, d);
        solve_lower_transpose(self.factor.l.as_ref(), root.as_mut(), Par::Seq);
        root
    }

    /// Draws S positions, D×S.
    pub fn draw(&self, count: usize, rng: &mut impl Rng) -> Mat<f64> {
        let mut e = normals(self.mode.position.len(), count, rng);
        solve_lower_transpose(self.factor.l.as_ref(), e.as_mut(), Par::Seq);
        shifted(e, &self.mode.position)
    }

    /// Returns the approximation −φ(x̂) + (D/2) log 2π − ½ log|H| of log ∫e^{−φ}.
    pub fn log_evidence(&self) -> f64 {
        let d = self.mode.position.len() as f64;
        0.5 * d * TAU.ln() - self.mode.phi - 0.5 * self.factor.log_det()
    }
}

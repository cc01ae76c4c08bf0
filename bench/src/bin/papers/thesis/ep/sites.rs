//! Gaussian sites of steps, and the loop that finds them.

use super::normal::log_cdf;
use sparsegp::error::Error;

/// Sites have converged when none changes by more than this in units of the posterior.
const TOLERANCE: f64 = 1e-5;
/// Most sweeps.
const SWEEPS: usize = 40;
/// After them a change up to this is enough: log Z is stationary in the sites.
const ENOUGH: f64 = 1e-2;

/// Sites exp(νs − τs²/2) of one linear function s each.
#[derive(Clone, Debug)]
pub struct Sites {
    /// Precisions.
    pub tau: Vec<f64>,
    /// Shifts.
    pub nu: Vec<f64>,
}

/// What a Gaussian prior and sites make.
pub trait Posterior {
    /// Returns posterior mean and variance of the function of every site.
    fn marginals(&self) -> (&[f64], &[f64]);
    /// Returns log ∫N(f; prior) Π exp(νs − τs²/2) df.
    fn log_integral(&self) -> f64;
}

/// The fixed point.
pub struct Found<P> {
    /// Sites and prior.
    pub posterior: P,
    /// Approximate log evidence.
    pub log_z: f64,
    /// Of every factor, log ∫Θ under the cavity with two derivatives by the cavity's mean.
    pub steps: Vec<[f64; 3]>,
}

/// Returns log Φ(m/√v) = log ∫Θ(s)N(s; m, v)ds with two derivatives by m (R & W §3.9, (3.82); noise
/// of the step adds to v).
pub fn step(mean: f64, variance: f64) -> [f64; 3] {
    let root = variance.sqrt();
    let [log, slope, curvature] = log_cdf(mean / root);
    [log, slope / root, curvature / variance]
}

/// What is left of a marginal without its own site.
#[derive(Clone, Copy, Debug)]
struct Cavity {
    mean: f64,
    variance: f64,
}

impl Cavity {
    /// Divides the marginal by the site (R & W (3.56)).
    fn of(mean: f64, variance: f64, tau: f64, nu: f64) -> Self {
        // positive in exact arithmetic: sites of steps have precisions from 0 on
        let left = (1.0 - tau * variance).max(1e-14);
        Self { mean: (mean - nu * variance) / left, variance: variance / left }
    }

    /// Returns the site that gives the moments of the cavity times its step: with m̂ = m + vα and
    /// v̂ = v + v²β (R & W (3.58) by derivatives α, β of log Z) it is τ = 1/v̂ − 1/v and
    /// ν = m̂/v̂ − m/v (R & W (3.59)).
    fn site(self, [_, alpha, beta]: [f64; 3]) -> (f64, f64) {
        let left = 1.0 + beta * self.variance;
        ((-beta / left).max(0.0), (alpha - beta * self.mean) / left)
    }

    /// Returns log ∫N(s; cavity)ds − log ∫N(s; cavity)exp(νs − τs²/2)ds: what makes the site's
    /// scale such that both integrals are Z (R & W (3.73) to (3.74)).
    fn scale(self, tau: f64, nu: f64) -> f64 {
        let Self { mean: m, variance: v } = self;
        let whole = 1.0 + tau * v;
        0.5 * whole.ln() + 0.5 * (m * m * tau - 2.0 * m * nu - nu * nu * v) / whole
    }
}

impl Sites {
    /// Creates sites that say nothing.
    pub fn new(count: usize) -> Self {
        Self { tau: vec![0.0; count], nu: vec![0.0; count] }
    }

    /// Finds the fixed point by damped updates of all sites at once (R & W §3.6 updates one after
    /// the other, which costs a pass over the covariance for each). `noise` is the variance of the
    /// noise of every step.
    ///
    /// # Errors
    /// What `posterior` gives; [`Error::NonFinite`] without convergence.
    pub fn settle<P: Posterior>(
        &mut self,
        noise: &[f64],
        posterior: impl Fn(&Sites) -> sparsegp::Result<P>,
    ) -> sparsegp::Result<Found<P>> {
        let (mut damping, mut last) = (1.0_f64, f64::INFINITY);
        for sweep in 1..=SWEEPS {
            let current = posterior(self)?;
            let (mean, variance) = current.marginals();
            let (mut log_z, mut change) = (current.log_integral(), 0.0_f64);
            let mut next = self.clone();
            let mut steps = Vec::with_capacity(noise.len());
            for i in 0..noise.len() {
                let (tau, nu) = (self.tau[i], self.nu[i]);
                let cavity = Cavity::of(mean[i], variance[i], tau, nu);
                let found = step(cavity.mean, cavity.variance + noise[i]);
                log_z += found[0] + cavity.scale(tau, nu);
                let (own_tau, own_nu) = cavity.site(found);
                let (dt, dn) = (own_tau - tau, own_nu - nu);
                // a site moves its mean by v(dν − m dτ) and its variance by −v²dτ
                let moved =
                    (dt * variance[i]).abs() + ((dn - mean[i] * dt) * variance[i].sqrt()).abs();
                if moved > change || moved.is_nan() {
                    change = moved;
                }
                next.tau[i] += damping * dt;
                next.nu[i] += damping * dn;
                steps.push(found);
            }
            let enough = if sweep < SWEEPS { TOLERANCE } else { ENOUGH };
            if change < enough {
                return Ok(Found { posterior: current, log_z, steps });
            }
            if !change.is_finite() {
                return Err(unsettled(change));
            }
            damping =
                if change > last { (0.5 * damping).max(0.1) } else { (1.1 * damping).min(1.0) };
            last = change;
            *self = next;
        }
        Err(unsettled(last))
    }
}

/// Says that sites did not settle: a smaller step of the hyperparameters may help.
fn unsettled(value: f64) -> Error {
    Error::NonFinite { what: "change of the sites of expectation propagation".into(), value }
}

//! A Gaussian posterior by particle flow, and draws from it (Galy-Fajou, Perrone & Opper 2021).
//!
//! One particle more than there are whitened variables: mean and covariance are whole. They start as the q that was trained,
//! and flow by gradients at the particles alone; where their free energy no longer falls, the flow ends.

use super::Draws;
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::flow::targets::{Whitened, WhitenedRows};
use crate::flow::{Control, Ended, Gpf, GpfOptions, MeanFlow, Particles, RunOptions, Target, run};
use crate::kernels::of_latent;
use crate::linalg::{Mat, column};
use crate::model::{Model, Posterior};
use crate::rng::stream;
use std::ops::ControlFlow;

/// Most whitened variables: a step costs their square for every row.
const MOST: usize = 1000;
/// Converged where the mean square of what vanishes at the optimum is no more than this, by dimension.
const TOLERANCE: f64 = 1e-8;

/// How far, and how many draws.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowDraws {
    pub steps: usize,
    pub chains: usize,
    pub draws: usize,
    pub seed: u64,
}

/// Flows, and draws. `watch` as for [`gibbs::sample`](super::gibbs::sample), told of steps. Returns the draws, and what a person
/// should know.
///
/// # Errors
/// [`Error::Invalid`] for several sets of inducing points and more than [`MOST`] whitened variables, and as for [`Whitened::new`].
pub(super) fn sample(
    model: &Model,
    rows: &InMemory,
    options: FlowDraws,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<(Draws, Option<String>)> {
    model.check_shallow("particle flow")?;
    let FlowDraws { steps, chains, draws, seed } = options;
    if model.inducing.len() > 1 {
        return Err(Error::Invalid(
            "particle flow has one set of inducing points for all latent functions".into(),
        ));
    }
    let mut mean = Mat::zeros(rows.x.nrows(), model.latents(rows.y.ncols()));
    model.mean.evaluate(rows.x.as_ref(), mean.as_mut());
    let own = WhitenedRows {
        x: rows.x.as_ref(),
        y: rows.y.as_ref(),
        extra: &rows.extra,
        weights: &rows.weights,
        mean: Some(mean.as_ref()),
    };
    let points = model.inducing_points()?;
    let likelihood = &*model.likelihood;
    let mut target =
        Whitened::new(&model.kernels, likelihood, Some(points.as_ref()), model.jitter, own)?;
    let (m, dim) = (points.nrows(), target.dim());
    if dim > MOST {
        return Err(Error::Invalid(format!(
            "particle flow has one particle more than there are whitened variables, which are {dim} here ({m} inducing points), and \
             takes at most {MOST}: take fewer inducing points (`--inducing`), or `svgp`"
        )));
    }
    let q = Posterior::of_q(model)?;
    let (q_mu, roots) = (q.q_mu(), q.q_sqrt());
    let latents = q_mu.ncols();
    let start: Vec<f64> = (0..latents).flat_map(|l| column(q_mu, l).to_vec()).collect();
    let root = Mat::from_fn(dim, dim, |i, j| {
        let of = of_latent(&roots, i / m);
        if i / m == j / m { of[(i % m, j % m)] } else { 0.0 }
    });
    let particles = Particles::matched(&start, root.as_ref(), dim + 1, seed)?;
    let flow = GpfOptions {
        mean_rate: 0.5,
        spread_rate: 0.5,
        mean_flow: MeanFlow::Natural,
        control: Control::Halve,
        ..GpfOptions::default()
    };
    let mut gpf = Gpf::new(particles, flow)?;
    let plan = RunOptions { steps, tolerance: TOLERANCE * dim as f64, every: steps.max(1) };
    let report = run(&mut gpf, &mut target, &plan, &mut |step, _| watch(step, steps))?;
    let told = match report.ended {
        Ended::Interrupted => return Ok((Draws::default(), None)),
        Ended::Converged | Ended::Stalled => None,
        Ended::AllSteps => Some(format!(
            "the particle flow had not settled after {steps} steps: more of them, `--burn-in`, may change the posterior"
        )),
        Ended::Restored { step, reason } => Some(format!(
            "the particle flow was put back to its state before step {step}: {reason}"
        )),
    };
    let mut all = Draws::default();
    for chain in 0..chains {
        let drawn = gpf.particles().draw(draws, &mut stream(seed, &format!("flow/draws/{chain}")));
        let one = |s: usize| Mat::from_fn(m, latents, |i, l| drawn[(l * m + i, s)]);
        all.z.push((0..draws).map(one).collect());
    }
    Ok((all, told))
}

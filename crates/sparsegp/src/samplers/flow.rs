//! A Gaussian posterior by particle flow, and draws from it (Galy-Fajou, Perrone & Opper 2021).
//!
//! There are more particles than whitened variables: mean and covariance are whole. They start as the q that was trained,
//! and flow by gradients at the particles only; where their free energy no longer falls, the flow
//! ends.
//!
//! What falls is the free energy of particles, whose mean of φ is the Gaussian's only where φ is quadratic. Draws
//! that did not move them tell how far the Gaussian is from its own optimum, and whether it has a lower free energy than
//! the start; if not, the start is kept.

use super::Draws;
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::flow::targets::{Whitened, WhitenedRows};
use crate::flow::{
    Control, Ended, Evaluation, Gpf, GpfOptions, MeanFlow, Particles, RunOptions, Settled, Target,
    run,
};
use crate::kernels::of_latent;
use crate::linalg::{Cholesky, Jitter, Mat, column, product};
use crate::model::{Model, Posterior};
use crate::rng::stream;
use std::ops::ControlFlow;

/// Most whitened variables: a step costs their square for every row.
const MOST: usize = 1000;
/// Converged where the mean square of what vanishes at the optimum is no more than this, by dimension.
const TOLERANCE: f64 = 1e-8;
/// Particles for each whitened variable, and most of them unless they are asked for.
const FOR_EACH: usize = 10;
const MOST_PARTICLES: usize = 2000;
/// Draws that a Gaussian is judged by.
const JUDGED: usize = 1000;

/// How far, and how many draws.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowDraws {
    pub steps: usize,
    pub particles: Option<usize>,
    pub chains: usize,
    pub draws: usize,
    pub seed: u64,
}

/// Refuses a model that cannot flow with so many target columns.
///
/// # Errors
/// [`Error::Invalid`] for hidden layers, several sets of inducing points and more than [`MOST`] whitened variables, or no more
/// particles than these.
pub(super) fn check(model: &Model, outputs: usize, particles: Option<usize>) -> Result<()> {
    model.check_shallow("particle flow")?;
    if model.inducing.len() > 1 {
        return Err(Error::Invalid(
            "particle flow has one set of inducing points for all latent functions".into(),
        ));
    }
    let (m, latents) = (model.inducing_points()?.nrows(), model.latents(outputs));
    let dim = m * latents;
    if dim > MOST {
        return Err(Error::Invalid(format!(
            "particle flow has more particles than there are whitened variables, which are {dim} here ({m} inducing \
             points of {latents} latent functions), and takes at most {MOST}: take at most {} inducing points \
             (`--inducing`), or `svgp`",
            MOST / latents
        )));
    }
    if let Some(count) = particles.filter(|count| *count <= dim) {
        return Err(Error::Invalid(format!(
            "particles = {count} are too few: take more than the {dim} whitened variables"
        )));
    }
    Ok(())
}

/// Runs the flows, and draws. `watch` as for [`gibbs::sample`](super::gibbs::sample), which
/// receives steps. Returns the draws, and what a person should know.
///
/// # Errors
/// [`Error::Invalid`] for several sets of inducing points and more than [`MOST`] whitened variables, and as for [`Whitened::new`].
pub(super) fn sample(
    model: &Model,
    rows: &InMemory,
    options: FlowDraws,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<(Draws, Option<String>)> {
    let FlowDraws { steps, particles, chains, draws, seed } = options;
    check(model, rows.y.ncols(), particles)?;
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
    let q = Posterior::of_q(model)?;
    let (q_mu, roots) = (q.q_mu(), q.q_sqrt());
    let latents = q_mu.ncols();
    let start: Vec<f64> = (0..latents).flat_map(|l| column(q_mu, l).to_vec()).collect();
    let root = Mat::from_fn(dim, dim, |i, j| {
        let of = of_latent(&roots, i / m);
        if i / m == j / m { of[(i % m, j % m)] } else { 0.0 }
    });
    let count = particles.unwrap_or((FOR_EACH * dim).min(MOST_PARTICLES).max(dim + 1));
    let first = Particles::matched(&start, root.as_ref(), count, seed)?;
    let flow = GpfOptions {
        mean_rate: 1.0,
        spread_rate: 1.0,
        mean_flow: MeanFlow::Natural,
        control: Control::Halve,
        preconditioned: true,
        ..GpfOptions::default()
    };
    let mut gpf = Gpf::new(first.clone(), flow)?;
    let plan = RunOptions { steps, tolerance: TOLERANCE * dim as f64, every: steps.max(1) };
    let report = run(&mut gpf, &mut target, &plan, &mut |step, _| watch(step, steps))?;
    if report.ended == Ended::Interrupted {
        return Ok((Draws::default(), None));
    }
    let (particles, remark) = better(&mut target, first, gpf.particles(), &report.ended, seed)?;
    let mut all = Draws::default();
    for chain in 0..chains {
        let drawn = particles.draw(draws, &mut stream(seed, &format!("flow/draws/{chain}")));
        let one = |s: usize| Mat::from_fn(m, latents, |i, l| drawn[(l * m + i, s)]);
        all.z.push((0..draws).map(one).collect());
    }
    Ok((all, remark))
}

/// Returns the one of two Gaussians, by their particles, with the lower free energy, and what a
/// person should know.
fn better(
    target: &mut dyn Target,
    first: Particles,
    last: &Particles,
    ended: &Ended,
    seed: u64,
) -> Result<(Particles, Option<String>)> {
    // the same draws for both, so that what chance adds is the same
    let normals =
        Particles::around(&vec![0.0; first.dim()], &vec![1.0; first.dim()], JUDGED, seed ^ 0x5eed)?;
    let mut values = |particles: &Particles| -> Result<(Vec<f64>, f64)> {
        let factor = Cholesky::new(particles.covariance().as_ref(), Jitter::Absolute(0.0), "C")?;
        let mut x = product(factor.l.as_ref(), normals.x());
        let mean = particles.mean();
        for s in 0..x.ncols() {
            (0..x.nrows()).for_each(|i| x[(i, s)] += mean[i]);
        }
        let phi = Evaluation::of(target, x.as_ref())?.phi;
        Ok((phi, 0.5 * factor.log_det()))
    };
    let ((before, wide), (after, now)) = (values(&first)?, values(last)?);
    let rises: Vec<f64> = after.iter().zip(&before).map(|(a, b)| a - b).collect();
    let count = rises.len() as f64;
    let mean = rises.iter().sum::<f64>() / count;
    let variance = rises.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (count * (count - 1.0));
    let rise = mean - (now - wide);
    if rise > 2.0 * variance.sqrt() {
        let text = format!(
            "the particle flow ended at a Gaussian whose bound is {rise:.3} nats below that of the q it started from: its {} \
             particles are too few to stand for it, and the q of the start is kept; give more of them (`particles`), or \
             take `svgp`",
            first.count()
        );
        return Ok((first, Some(text)));
    }
    let settled = Settled::look(last, target, JUDGED, seed)?;
    let remark = match ended {
        Ended::Restored { step, reason } => Some(format!(
            "the particle flow was put back to its state before step {step}: {reason}"
        )),
        _ if !settled.is_near() => Some(format!(
            "the particle flow has not reached the best Gaussian: by draws from it the mean is off by {:.2} standard \
             deviations and variances by {:.0} % in all; {}",
            settled.mean,
            100.0 * settled.spread,
            match ended {
                Ended::AllSteps => "give it more steps (`burn_in`)",
                _ => "give it more particles (`particles`)",
            }
        )),
        _ => None,
    };
    Ok((last.clone(), remark))
}

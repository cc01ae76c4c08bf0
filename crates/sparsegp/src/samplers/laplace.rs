//! Settings of the hyperparameters, and how often each counts, that stand for their posterior: without chains.
//!
//! With θ on the scale on which hyperparameters move (logarithms), p(θ | y) ∝ evidence · priors has its mode at θ̂ and the
//! Hessian −VΛVᵀ there. As in Rue, Martino & Chopin (2009) and Martins, Simpson, Lindgren & Rue (2013), the proposal stretches
//! each half of each eigenvector by what the density loses along it,
//!
//! ```text
//! θ(z) = θ̂ + Σⱼ zⱼ σⱼ± vⱼ      σⱼ± = λⱼ^−½ / √{log p(θ̂) − log p(θ̂ ± √2 λⱼ^−½ vⱼ)}      z with halves of a normal density
//! ```
//!
//! which is Laplace's approximation where the density is normal. Points of a Latin hypercube in z get the importance weights
//! p(θ)/q(θ), the largest cut at √S times their mean (Ionides 2008), and are resampled systematically, so that predictions are
//! an even mixture.

use super::evidence::{Posterior, moving};
use crate::data::InMemory;
use crate::error::Result;
use crate::linalg::{Mat, symmetric_eigen};
use crate::metrics::standard_normal_quantile;
use crate::model::{Model, hyperparameters};
use crate::rng::{below, stream, uniform};
use crate::variational::Variational;
use rayon::prelude::*;

/// Components of the even mixture that they are resampled to.
pub(crate) const COMPONENTS: usize = 32;
/// Largest standard deviation along an eigenvector of the Hessian, in logarithms: rows say nothing beyond.
const WIDEST: f64 = 2.0;
/// How far a half may be stretched.
const STRETCH: f64 = 2.0;
/// Nats that another step has to promise.
const PROMISE: f64 = 1e-3;

/// What stands for the posterior of hyperparameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Integration {
    /// In the order of [`hyperparameters`], all different.
    pub hyperparameters: Vec<Vec<f64>>,
    /// How often each counts.
    pub times: Vec<usize>,
    /// The best sites of all rows at each, where the evidence is a bound by these; else empty.
    pub sites: Vec<Variational>,
    /// The effective share of the points that got weights, (Σw)²/SΣw²: 1 for a normal density.
    pub effective: f64,
}

/// Eigenvalues and eigenvectors of minus a Hessian.
type Curvature = (Vec<f64>, Mat<f64>);

/// The density about its mode.
struct Shape {
    mode: Vec<f64>,
    /// Eigenvectors.
    axes: Mat<f64>,
    /// Standard deviations of both halves along each.
    halves: Vec<[f64; 2]>,
}

/// A point with the logarithm of its density under the proposal.
struct Proposed {
    at: Vec<f64>,
    /// Where it is along the widest axis.
    along: f64,
    log_density: f64,
}

impl Posterior<'_> {
    /// Returns the gradient; none where matrices have no factors.
    fn slopes(&mut self, at: &[f64]) -> Option<Vec<f64>> {
        let mut gradient = vec![0.0; at.len()];
        let value = self.at(at, Some(&mut gradient)).ok()?;
        (value.is_finite() && gradient.iter().all(|g| g.is_finite())).then_some(gradient)
    }

    fn value(&mut self, at: &[f64]) -> f64 {
        let value = self.at(at, None).unwrap_or(f64::NEG_INFINITY);
        if value.is_nan() { f64::NEG_INFINITY } else { value }
    }

    /// Returns the eigenvalues of minus the Hessian, by central differences of gradients, and its
    /// eigenvectors. Where the density does not fall off on the scale of [`WIDEST`], eigenvalues
    /// are as if it did.
    fn curvature(&mut self, at: &[f64]) -> Result<Option<Curvature>> {
        let (dim, step) = (at.len(), self.step());
        let mut hessian = Mat::zeros(dim, dim);
        for j in 0..dim {
            let mut beside = |step: f64| {
                let mut moved = at.to_vec();
                moved[j] += step;
                self.slopes(&moved)
            };
            let (Some(up), Some(down)) = (beside(step), beside(-step)) else { return Ok(None) };
            for i in 0..dim {
                hessian[(i, j)] = (down[i] - up[i]) / (2.0 * step);
            }
        }
        let symmetric = Mat::from_fn(dim, dim, |i, j| 0.5 * (hessian[(i, j)] + hessian[(j, i)]));
        let (values, vectors) = symmetric_eigen(symmetric.as_ref())?;
        let values = values.into_iter().map(|v| v.abs().max(WIDEST.powi(-2))).collect();
        Ok(Some((values, vectors)))
    }

    /// Runs Newton's method from where the model is, with steps of at most one. Returns the mode
    /// with its curvature.
    fn mode(&mut self) -> Result<Option<(Vec<f64>, Curvature)>> {
        let mut at = self.position();
        let mut best = self.value(&at);
        let Some(mut curvature) = self.curvature(&at)? else { return Ok(None) };
        for _ in 0..self.newton() {
            let Some(gradient) = self.slopes(&at) else { return Ok(None) };
            let (values, vectors) = &curvature;
            let mut step = vec![0.0; at.len()];
            for (j, value) in values.iter().enumerate() {
                let along: f64 =
                    gradient.iter().zip(vectors.col_as_slice(j)).map(|(g, v)| g * v).sum();
                let own = step.iter_mut().zip(vectors.col_as_slice(j));
                own.for_each(|(s, v)| *s += along / value * v);
            }
            let promise: f64 = gradient.iter().zip(&step).map(|(g, s)| 0.5 * g * s).sum();
            let longest = step.iter().fold(1.0, |m: f64, s| m.max(s.abs()));
            let mut share = 1.0 / longest;
            let mut moved = None;
            while promise > PROMISE && share > 1e-3 {
                let next: Vec<f64> = at.iter().zip(&step).map(|(a, s)| a + share * s).collect();
                let value = self.value(&next);
                if value > best {
                    moved = Some((next, value));
                    break;
                }
                share *= 0.3;
            }
            let Some((next, value)) = moved else { break };
            (at, best) = (next, value);
            match self.curvature(&at)? {
                Some(own) => curvature = own,
                None => return Ok(None),
            }
        }
        Ok(Some((at, curvature)))
    }

    fn shape(&mut self) -> Result<Option<Shape>> {
        let Some((mode, (values, axes))) = self.mode()? else { return Ok(None) };
        let best = self.value(&mode);
        let mut half = |j: usize, sign: f64| {
            let deviation = values[j].powf(-0.5);
            let far = sign * std::f64::consts::SQRT_2 * deviation;
            let beside = moved(&mode, &axes, &[(j, far)]);
            let loss = (best - self.value(&beside)).max(0.0);
            deviation * loss.powf(-0.5).clamp(1.0 / STRETCH, STRETCH)
        };
        let halves = (0..values.len()).map(|j| [half(j, -1.0), half(j, 1.0)]).collect();
        Ok(Some(Shape { mode, axes, halves }))
    }
}

/// Returns a point so far along some of the axes.
fn moved(from: &[f64], axes: &Mat<f64>, along: &[(usize, f64)]) -> Vec<f64> {
    let mut at = from.to_vec();
    for &(j, far) in along {
        at.iter_mut().zip(axes.col_as_slice(j)).for_each(|(a, v)| *a += far * v);
    }
    at
}

impl Shape {
    /// Proposes points of a Latin hypercube, always the same one.
    fn propose(&self, points: usize) -> Vec<Proposed> {
        let mut rng = stream(0, "laplace");
        let wide = |j: &usize| self.halves[*j].iter().sum::<f64>();
        let widest = (0..self.halves.len()).max_by(|a, b| wide(a).total_cmp(&wide(b))).unwrap_or(0);
        let mut along = vec![Vec::new(); points];
        let mut log_densities = vec![0.0; points];
        for (j, &[left, right]) in self.halves.iter().enumerate() {
            let mut cells: Vec<usize> = (0..points).collect();
            for i in (1..points).rev() {
                cells.swap(i, below(&mut rng, i + 1));
            }
            let share = left / (left + right);
            for (s, cell) in cells.into_iter().enumerate() {
                let u = (cell as f64 + uniform(&mut rng).clamp(1e-6, 1.0 - 1e-6)) / points as f64;
                let (z, width) = match u < share {
                    true => (standard_normal_quantile(0.5 * u / share), left),
                    false => {
                        (standard_normal_quantile(0.5 * (1.0 + (u - share) / (1.0 - share))), right)
                    }
                };
                along[s].push((j, z * width));
                log_densities[s] -= 0.5 * z * z;
            }
        }
        along
            .iter()
            .zip(log_densities)
            .map(|(own, log_density)| Proposed {
                at: moved(&self.mode, &self.axes, own),
                along: own[widest].1,
                log_density,
            })
            .collect()
    }
}

/// Finds settings of the hyperparameters that stand for their posterior under the priors of the model, and of those that
/// [`assume_priors`](super::slice::assume_priors) gives; the model is at the mode of its evidence, or near it. None where all hyperparameters are frozen or
/// the density about the mode is not known.
///
/// # Errors
/// [`Error::Invalid`](crate::Error::Invalid) where the evidence is neither known in closed form nor bounded by sites of all rows ([`is_known`](super::evidence::is_known), [`is_sited`](super::evidence::is_sited)).
pub fn integrate(model: &Model, rows: &InMemory) -> Result<Option<Integration>> {
    let Some((model, sampled)) = moving(model, rows)? else { return Ok(None) };
    let mut density = Posterior::new(&model, rows, &sampled)?;
    let Some(shape) = density.shape()? else { return Ok(None) };
    // in this order systematic resampling takes its share of every part of the widest axis
    let points = density.points();
    let mut proposed = shape.propose(points);
    proposed.sort_by(|a, b| a.along.total_cmp(&b.along));
    let judged: Vec<(f64, Vec<f64>, Option<Variational>)> = proposed
        .par_iter()
        .map_init(
            || density.another(),
            |density, own| {
                let weight = density.value(&own.at) - own.log_density;
                (weight, hyperparameters(&density.model), density.model.q.clone())
            },
        )
        .collect();
    let largest = judged.iter().fold(f64::NEG_INFINITY, |m, (w, ..)| m.max(*w));
    if !largest.is_finite() {
        return Ok(None);
    }
    let mut weights: Vec<f64> = judged.iter().map(|(w, ..)| (w - largest).exp()).collect();
    let mean = weights.iter().sum::<f64>() / points as f64;
    let cut = mean * (points as f64).sqrt();
    weights.iter_mut().for_each(|w| *w = w.min(cut));
    let total: f64 = weights.iter().sum();
    let effective = total * total / (points as f64 * weights.iter().map(|w| w * w).sum::<f64>());
    let mut found = Integration { effective, ..Integration::default() };
    let (mut sum, mut next) = (0.0, 0.5);
    for (weight, (_, own, sites)) in weights.iter().zip(judged) {
        sum += weight / total * COMPONENTS as f64;
        let mut times = 0;
        while next < sum && found.times.iter().sum::<usize>() + times < COMPONENTS {
            times += 1;
            next += 1.0;
        }
        if times > 0 {
            found.hyperparameters.push(own);
            found.times.push(times);
            found.sites.extend(sites);
        }
    }
    Ok(Some(found))
}

//! Paths that end where they turn back (Hoffman & Gelman 2014), with the draw taken among all of their points by weight
//! e^{−H} (Betancourt 2017, appendix A).
//!
//! A path doubles again and again, forwards or backwards at random. It ends where the sum ρ of its momenta points away from
//! the momentum at an end, M⁻¹p · ρ ≤ 0, for the path as a whole or for the part that was added last or a half of that, or
//! where H has risen by more than [`DIVERGENT`]. A part that ended by itself gives no draw.

use super::hmc::Point;
use super::joint::LogDensity;
use crate::likelihoods::functions::log_add_exp;
use crate::rng::uniform;
use rand::Rng;

/// A rise of H that the integrator cannot have made honestly.
const DIVERGENT: f64 = 1000.0;

/// What does not change along a path.
struct Path<'a, D> {
    density: &'a mut D,
    inverse_mass: &'a [f64],
    step: f64,
    /// H at the start.
    energy: f64,
    /// Sum of min(1, e^{−ΔH}) over the points, and how many there are.
    accepted: (f64, f64),
}

/// An end of a path.
#[derive(Clone)]
struct End {
    point: Point,
    momentum: Vec<f64>,
}

/// A part of a path, in the direction in which it was made.
struct Part {
    /// Logarithm of Σ e^{−ΔH}.
    log_weight: f64,
    /// ρ.
    sum: Vec<f64>,
    /// Momenta at its first and its last point.
    ends: [Vec<f64>; 2],
    draw: Point,
}

impl<D: LogDensity> Path<'_, D> {
    /// Whether M⁻¹p · ρ > 0 at both ends.
    fn goes_on(&self, sum: &[f64], ends: [&[f64]; 2]) -> bool {
        ends.iter().all(|p| {
            let each = p.iter().zip(sum).zip(self.inverse_mass);
            each.map(|((p, s), m)| p * s * m).sum::<f64>() > 0.0
        })
    }

    /// 2^depth more points from an end, which moves; nothing if the path ends within.
    fn more(&mut self, end: &mut End, depth: usize, step: f64, rng: &mut impl Rng) -> Option<Part> {
        if depth == 0 {
            end.point.leapfrog(self.density, &mut end.momentum, self.inverse_mass, step, 1);
            let rise = end.point.energy(&end.momentum, self.inverse_mass) - self.energy;
            self.accepted.0 += if rise.is_nan() { 0.0 } else { (-rise).exp().min(1.0) };
            self.accepted.1 += 1.0;
            return (rise <= DIVERGENT).then(|| Part {
                log_weight: -rise,
                sum: end.momentum.clone(),
                ends: [end.momentum.clone(), end.momentum.clone()],
                draw: end.point.clone(),
            });
        }
        let first = self.more(end, depth - 1, step, rng)?;
        let second = self.more(end, depth - 1, step, rng)?;
        let log_weight = log_add_exp(first.log_weight, second.log_weight);
        let sum: Vec<f64> = first.sum.iter().zip(&second.sum).map(|(a, b)| a + b).collect();
        let [start, _] = first.ends;
        let [_, last] = second.ends;
        if !self.goes_on(&sum, [&start, &last]) {
            return None;
        }
        let other = uniform(rng).ln() < second.log_weight - log_weight;
        let draw = if other { second.draw } else { first.draw };
        Some(Part { log_weight, sum, ends: [start, last], draw })
    }
}

/// Moves a point along one path of at most 2^depth points from these momenta. Returns the mean of min(1, e^{−ΔH}) over the
/// path, which the step is adapted by.
pub(super) fn transition(
    density: &mut impl LogDensity,
    point: &mut Point,
    momentum: &[f64],
    (inverse_mass, step): (&[f64], f64),
    depth: usize,
    rng: &mut impl Rng,
) -> f64 {
    let energy = point.energy(momentum, inverse_mass);
    let mut path = Path { density, inverse_mass, step, energy, accepted: (0.0, 0.0) };
    let start = End { point: point.clone(), momentum: momentum.to_vec() };
    let mut ends = [start.clone(), start];
    let (mut log_weight, mut sum) = (0.0, momentum.to_vec());
    for level in 0..depth {
        let forwards = uniform(rng) < 0.5;
        let signed = if forwards { path.step } else { -path.step };
        let Some(part) = path.more(&mut ends[usize::from(forwards)], level, signed, rng) else {
            break;
        };
        // the new half is favoured, which leaves the law as it is
        if uniform(rng).ln() < part.log_weight - log_weight {
            *point = part.draw;
        }
        log_weight = log_add_exp(log_weight, part.log_weight);
        sum.iter_mut().zip(&part.sum).for_each(|(s, p)| *s += p);
        if !path.goes_on(&sum, [&ends[0].momentum, &ends[1].momentum]) {
            break;
        }
    }
    path.accepted.0 / path.accepted.1.max(1.0)
}

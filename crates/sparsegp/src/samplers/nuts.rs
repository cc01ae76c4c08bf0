//! Paths that end where they turn back (Hoffman & Gelman 2014), with the draw taken among all of their points by weight
//! e^{−H} (Betancourt 2017, appendix A).
//!
//! A path doubles again and again, forwards or backwards at random. It ends where the sum ρ of its momenta points away from
//! the momentum at an end, M⁻¹p · ρ ≤ 0, for the path as a whole or for the part that was added last or a half of that, or
//! where H has risen by more than [`DIVERGENT`]. A part that ended by itself gives no draw.

use super::hmc::{DIVERGENT, Point};
use crate::rng::uniform;
use crate::special::log_add_exp;
use rand::Rng;

/// An end of a path.
#[derive(Clone, Debug)]
struct End {
    point: Point,
    momentum: Vec<f64>,
}

/// A part of a path, in the direction in which it was made.
#[derive(Clone, Debug)]
struct Part {
    /// It has 2^level points.
    level: usize,
    /// Logarithm of Σ e^{−ΔH}.
    log_weight: f64,
    /// ρ.
    sum: Vec<f64>,
    /// Momenta at its first and its last point.
    ends: [Vec<f64>; 2],
    draw: Point,
}

/// How a path ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ended {
    /// Mean of min(1, e^{−ΔH}) over its points, which the step is adapted by.
    pub acceptance: f64,
    /// Its points.
    pub points: usize,
    /// Whether H rose by more than [`DIVERGENT`].
    pub diverging: bool,
}

/// A path that is being made, point by point.
#[derive(Clone, Debug)]
pub(super) struct Trajectory {
    /// H at the start.
    energy: f64,
    step: f64,
    /// Doublings, at most.
    depth: usize,
    /// Its two ends.
    ends: [End; 2],
    /// Of the whole, as of a part.
    log_weight: f64,
    sum: Vec<f64>,
    /// The doubling under way: its number, and whether it goes forwards.
    level: usize,
    forwards: bool,
    /// Its parts that wait for others of their size, each larger than the next.
    parts: Vec<Part>,
    /// Sum of min(1, e^{−ΔH}) over the points, and how many there are.
    accepted: (f64, usize),
}

/// Returns whether M⁻¹p · ρ > 0 at both ends.
fn continues(sum: &[f64], ends: [&[f64]; 2], inverse_mass: &[f64]) -> bool {
    ends.iter().all(|p| {
        let each = p.iter().zip(sum).zip(inverse_mass);
        each.map(|((p, s), m)| p * s * m).sum::<f64>() > 0.0
    })
}

impl Trajectory {
    /// Begins a path of at most 2^depth points.
    pub fn begin(
        point: &Point,
        momentum: &[f64],
        (inverse_mass, step): (&[f64], f64),
        depth: usize,
        rng: &mut impl Rng,
    ) -> Self {
        let energy = point.energy(momentum, inverse_mass);
        let start = End { point: point.clone(), momentum: momentum.to_vec() };
        let mut path = Self {
            energy,
            step,
            depth,
            ends: [start.clone(), start],
            log_weight: 0.0,
            sum: momentum.to_vec(),
            level: 0,
            forwards: false,
            parts: Vec::new(),
            accepted: (0.0, 0),
        };
        path.double(inverse_mass, rng);
        path
    }

    /// Begins a doubling.
    fn double(&mut self, inverse_mass: &[f64], rng: &mut impl Rng) {
        self.forwards = uniform(rng) < 0.5;
        self.parts.clear();
        self.leave(inverse_mass);
    }

    fn signed(&self) -> f64 {
        if self.forwards { self.step } else { -self.step }
    }

    /// Leaves the end that moves for a new point.
    fn leave(&mut self, inverse_mass: &[f64]) {
        let (step, end) = (self.signed(), &mut self.ends[usize::from(self.forwards)]);
        end.point.leave(&mut end.momentum, inverse_mass, step);
    }

    /// Returns the new point, and where its gradient goes.
    pub fn wanted(&mut self) -> (&[f64], &mut [f64]) {
        let Point { position, gradient, .. } = &mut self.ends[usize::from(self.forwards)].point;
        (position, gradient)
    }

    /// Takes the density at the new point, and moves `point` where the path gives a draw.
    pub fn take(
        &mut self,
        value: f64,
        point: &mut Point,
        inverse_mass: &[f64],
        rng: &mut impl Rng,
    ) -> Option<Ended> {
        let (step, end) = (self.signed(), &mut self.ends[usize::from(self.forwards)]);
        end.point.arrive(value, &mut end.momentum, step);
        let rise = end.point.energy(&end.momentum, inverse_mass) - self.energy;
        self.accepted.0 += if rise.is_nan() { 0.0 } else { (-rise).exp().min(1.0) };
        self.accepted.1 += 1;
        if rise.is_nan() || rise > DIVERGENT {
            return Some(self.ended(true));
        }
        let momentum = &end.momentum;
        self.parts.push(Part {
            level: 0,
            log_weight: -rise,
            sum: momentum.clone(),
            ends: [momentum.clone(), momentum.clone()],
            draw: end.point.clone(),
        });
        if !self.join(inverse_mass, rng) {
            return Some(self.ended(false));
        }
        let Some(part) = self.parts.pop_if(|part| part.level == self.level) else {
            self.leave(inverse_mass);
            return None;
        };
        // the new half is favoured, which leaves the law as it is
        if uniform(rng).ln() < part.log_weight - self.log_weight {
            *point = part.draw;
        }
        self.log_weight = log_add_exp(self.log_weight, part.log_weight);
        self.sum.iter_mut().zip(&part.sum).for_each(|(s, p)| *s += p);
        self.level += 1;
        let ends = [&self.ends[0].momentum[..], &self.ends[1].momentum];
        if self.level == self.depth || !continues(&self.sum, ends, inverse_mass) {
            return Some(self.ended(false));
        }
        self.double(inverse_mass, rng);
        None
    }

    /// Joins the last two parts while they are of one size. False if the path turned back within them.
    fn join(&mut self, inverse_mass: &[f64], rng: &mut impl Rng) -> bool {
        while let [.., first, second] = &self.parts[..]
            && first.level == second.level
        {
            let (Some(second), Some(first)) = (self.parts.pop(), self.parts.pop()) else {
                return false;
            };
            let log_weight = log_add_exp(first.log_weight, second.log_weight);
            let sum: Vec<f64> = first.sum.iter().zip(&second.sum).map(|(a, b)| a + b).collect();
            let [start, _] = first.ends;
            let [_, last] = second.ends;
            if !continues(&sum, [&start, &last], inverse_mass) {
                return false;
            }
            let other = uniform(rng).ln() < second.log_weight - log_weight;
            let draw = if other { second.draw } else { first.draw };
            let (level, ends) = (first.level + 1, [start, last]);
            self.parts.push(Part { level, log_weight, sum, ends, draw });
        }
        true
    }

    fn ended(&self, diverging: bool) -> Ended {
        let (sum, points) = self.accepted;
        Ended { acceptance: sum / points as f64, points, diverging }
    }
}

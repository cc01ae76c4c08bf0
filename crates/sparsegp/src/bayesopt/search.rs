//! Where an acquisition function is largest: random points, then climbs along its slopes and steps of what has no slopes.

use super::design::random;
use super::space::{Range, Space};
use crate::error::{Error, Result};
use crate::optim::{Lbfgs, LbfgsOptions, Objective, Optimiser};
use crate::rng::{below, uniform};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// Random points that climbs begin from the best of.
const POINTS: usize = 1000;
/// Points near each of the best trials, at either distance.
const NEAR: usize = 20;
/// Distances, as parts of the ranges.
const DISTANCES: [f64; 2] = [0.1, 0.01];
/// Climbs.
const STARTS: usize = 5;
/// Single steps from a start, at most.
const STEPS: usize = 100;
/// Iterations of a climb, at most.
const ITERATIONS: usize = 50;
/// Rounds of climbs along numbers and steps of whole numbers and categories.
const ROUNDS: usize = 3;
/// Parts of the ranges up to which two points are the same.
const SAME: f64 = 1e-7;
/// Parts of the ranges up to which a point counts as the same as one that failed.
const NEAR_FAILED: f64 = 1e-3;
/// Whole numbers that a climb takes for a number first.
const MANY: u64 = 10;

/// Values of points given by the parts of their ranges, and slopes in these, where they are asked for.
pub(super) type Score<'a> = &'a dyn Fn(&[Vec<f64>], bool) -> Result<(Vec<f64>, Vec<Vec<f64>>)>;

/// A point that is not to be chosen, by the parts of the ranges, nor are those near it.
pub(super) struct Taken {
    parts: Vec<f64>,
    within: f64,
}

impl Taken {
    pub fn new(parts: Vec<f64>, failed: bool) -> Self {
        Self { parts, within: if failed { NEAR_FAILED } else { SAME } }
    }
}

/// Returns whether a point is not to be chosen.
pub(super) fn is_taken(parts: &[f64], taken: &[Taken]) -> bool {
    let near = |own: &Taken| own.parts.iter().zip(parts).all(|(a, b)| (a - b).abs() <= own.within);
    taken.iter().any(near)
}

/// A search.
pub(super) struct Search<'a> {
    pub space: &'a Space,
    pub score: Score<'a>,
    /// Points not to be chosen.
    pub taken: &'a [Taken],
    /// Points near which to look too.
    pub good: &'a [Vec<f64>],
}

impl Space {
    /// Returns the parts in the middle of the shares of whole numbers and categories: a point as it
    /// will be tried.
    pub(super) fn snapped(&self, parts: &[f64]) -> Vec<f64> {
        let one = |(own, part): (&super::space::Dimension, &f64)| match own.range {
            Range::Real { .. } => part.clamp(0.0, 1.0),
            _ => own.part(own.at(*part)),
        };
        self.dimensions().iter().zip(parts).map(one).collect()
    }

    /// Returns all points, where there are at most so many.
    pub(super) fn all(&self, most: u64) -> Option<Vec<Vec<f64>>> {
        let count = self.points().filter(|count| *count <= most)?;
        let mut all = Vec::with_capacity(count as usize);
        for i in 0..count {
            let mut rest = i;
            let one = |own: &super::space::Dimension| {
                let levels = own.levels().unwrap_or(1);
                let level = (rest % levels) as f64;
                rest /= levels;
                own.part(match &own.range {
                    Range::Integer { low, .. } => *low as f64 + level,
                    _ => level,
                })
            };
            all.push(self.dimensions().iter().map(one).collect());
        }
        Some(all)
    }

    /// Returns whether points are the same.
    pub(super) fn same(&self, a: &[f64], b: &[f64]) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() <= SAME)
    }
}

/// The score along some inputs, with their parts as squared sines, so that ends of ranges are ordinary places.
struct Climb<'a> {
    score: Score<'a>,
    at: Vec<f64>,
    moving: &'a [usize],
}

impl Climb<'_> {
    fn parts(&self, angles: &[f64]) -> Vec<f64> {
        let mut parts = self.at.clone();
        self.moving.iter().zip(angles).for_each(|(q, angle)| parts[*q] = angle.sin().powi(2));
        parts
    }
}

impl Objective for Climb<'_> {
    fn dim(&self) -> usize {
        self.moving.len()
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let (values, slopes) = (self.score)(&[self.parts(x)], true)?;
        if !values[0].is_finite() {
            return Err(Error::NonFinite {
                what: "the acquisition function".into(),
                value: values[0],
            });
        }
        for ((slope, q), angle) in gradient.iter_mut().zip(self.moving).zip(x) {
            *slope = -slopes[0][*q] * (2.0 * angle).sin();
        }
        Ok(-values[0])
    }
}

/// A point with its value.
type Valued = (f64, Vec<f64>);

impl Search<'_> {
    /// Returns the point of the largest value that is not taken; none where all are.
    pub fn best(&self, rng: &mut impl Rng) -> Result<Option<Vec<f64>>> {
        let (candidates, whole) = match self.space.all(2 * POINTS as u64) {
            Some(all) => (all, true),
            None => (self.candidates(rng), false),
        };
        let (values, _) = (self.score)(&candidates, false)?;
        let mut found: Vec<Valued> = values.into_iter().zip(candidates).collect();
        found.retain(|(value, parts)| value.is_finite() && !self.is_taken(parts));
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        if whole || found.is_empty() {
            return Ok(found.into_iter().next().map(|(_, parts)| parts));
        }
        let mut best = found[0].clone();
        for start in self.starts(&found) {
            let end = self.climbed(start)?;
            if end.0 > best.0 && !self.is_taken(&end.1) {
                best = end;
            }
        }
        Ok(Some(best.1))
    }

    fn is_taken(&self, parts: &[f64]) -> bool {
        is_taken(parts, self.taken)
    }

    /// Returns random points, everywhere and near the good ones.
    fn candidates(&self, rng: &mut impl Rng) -> Vec<Vec<f64>> {
        let mut all = random(self.space, POINTS, rng);
        for good in self.good {
            for distance in DISTANCES {
                for _ in 0..NEAR {
                    let mut near = good.clone();
                    for (part, own) in near.iter_mut().zip(self.space.dimensions()) {
                        if own.is_category() {
                            *part = if uniform(rng) < 0.2 { uniform(rng) } else { *part };
                        } else {
                            let z: f64 = StandardNormal.sample(rng);
                            *part += distance * z;
                        }
                    }
                    all.push(near);
                }
            }
        }
        all.iter().map(|parts| self.space.snapped(parts)).collect()
    }

    /// Returns the best points that are not near each other.
    fn starts(&self, found: &[Valued]) -> Vec<Valued> {
        let mut starts: Vec<Valued> = Vec::new();
        for own in found {
            let near = |other: &Valued| {
                own.1.iter().zip(&other.1).all(|(a, b)| (a - b).abs() < DISTANCES[0])
            };
            if !starts.iter().any(near) {
                starts.push(own.clone());
            }
            if starts.len() == STARTS {
                break;
            }
        }
        starts
    }

    /// Climbs along numbers, and along whole numbers of many values as if they were numbers; then steps of these and of
    /// categories, and climbs again.
    fn climbed(&self, start: Valued) -> Result<Valued> {
        let dimensions = self.space.dimensions();
        let numbers: Vec<usize> =
            (0..dimensions.len()).filter(|q| dimensions[*q].levels().is_none()).collect();
        let relaxed: Vec<usize> = (0..dimensions.len())
            .filter(|q| !dimensions[*q].is_category())
            .filter(|q| dimensions[*q].levels().is_none_or(|levels| levels > MANY))
            .collect();
        let mut best = start;
        for round in 0..ROUNDS {
            let before = best.0;
            self.climb(if round == 0 { &relaxed } else { &numbers }, &mut best)?;
            if numbers.len() < dimensions.len() {
                self.step(&mut best)?;
            }
            if numbers.len() == dimensions.len() || best.0 <= before {
                break;
            }
        }
        Ok(best)
    }

    fn climb(&self, moving: &[usize], best: &mut Valued) -> Result<()> {
        if moving.is_empty() {
            return Ok(());
        }
        // no slope at the very ends
        let angle = |q: &usize| best.1[*q].clamp(1e-4, 1.0 - 1e-4).sqrt().asin();
        let start = moving.iter().map(angle).collect();
        let mut climb = Climb { score: self.score, at: best.1.clone(), moving };
        let options = LbfgsOptions { largest_move: Some(0.3), ..LbfgsOptions::default() };
        let mut optimiser = Lbfgs::new(start, options);
        for _ in 0..ITERATIONS {
            match optimiser.step(&mut climb) {
                Ok(step) if !step.status.is_final() => {}
                Ok(_) => break,
                Err(error) if error.is_recoverable() => break,
                Err(error) => return Err(error),
            }
        }
        let end = self.space.snapped(&climb.parts(optimiser.x()));
        let (values, _) = (self.score)(std::slice::from_ref(&end), false)?;
        if values[0] > best.0 {
            *best = (values[0], end);
        }
        Ok(())
    }

    /// Takes the best of all single steps while that is a gain.
    fn step(&self, best: &mut Valued) -> Result<()> {
        for _ in 0..STEPS {
            let near = self.neighbours(&best.1);
            let (values, _) = (self.score)(&near, false)?;
            let all = values.into_iter().zip(near);
            let mut all = all.filter(|(value, parts)| !value.is_nan() && !self.is_taken(parts));
            let Some(first) = all.next() else { return Ok(()) };
            let next = all.fold(first, |a, b| if b.0 > a.0 { b } else { a });
            if next.0 <= best.0 {
                return Ok(());
            }
            *best = next;
        }
        Ok(())
    }

    /// Returns points with another category, or with a whole number that is 1, 2, 4, … away.
    fn neighbours(&self, parts: &[f64]) -> Vec<Vec<f64>> {
        let mut all = Vec::new();
        for (q, own) in self.space.dimensions().iter().enumerate() {
            let value = own.at(parts[q]);
            let others: Vec<f64> = match &own.range {
                Range::Real { .. } => continue,
                Range::Integer { low, high, .. } => {
                    let (low, high) = (*low as f64, *high as f64);
                    let far = std::iter::successors(Some(1.0), |by| Some(2.0 * by));
                    far.take_while(|by| *by <= high - low)
                        .flat_map(|by| [value - by, value + by])
                        .filter(|v| (low..=high).contains(v))
                        .collect()
                }
                Range::Categories(names) => {
                    (0..names.len()).map(|c| c as f64).filter(|c| *c != value).collect()
                }
            };
            for other in others {
                let mut near = parts.to_vec();
                near[q] = own.part(other);
                all.push(near);
            }
        }
        all
    }
}

/// Returns a random point that is not taken: the first of some; none where there is none among
/// them, or none at all.
pub(super) fn any(space: &Space, taken: &[Taken], rng: &mut impl Rng) -> Option<Vec<f64>> {
    let free = |parts: &Vec<f64>| !is_taken(parts, taken);
    if let Some(all) = space.all(2 * POINTS as u64) {
        let left: Vec<Vec<f64>> = all.into_iter().filter(free).collect();
        return (!left.is_empty()).then(|| left[below(rng, left.len())].clone());
    }
    random(space, POINTS, rng).iter().map(|parts| space.snapped(parts)).find(free)
}

//! Paths without U-turns, made point by point, are those of the recursion by which they are defined.

use super::hmc::{DIVERGENT, Point};
use super::joint::LogDensity;
use super::nuts::Trajectory;
use crate::rng::{stream, uniform};
use crate::special::log_add_exp;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// −x²/2 − y⁴ in the first two variables and a wall, beyond which there is nothing, in the third.
struct Bent;

impl LogDensity for Bent {
    fn dim(&self) -> usize {
        3
    }

    fn value(&mut self, x: &[f64]) -> f64 {
        self.evaluate(x, &mut [0.0; 3])
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.copy_from_slice(&[-x[0], -4.0 * x[1].powi(3), -x[2]]);
        if x[2] > 1.5 {
            return f64::NEG_INFINITY;
        }
        -0.5 * x[0] * x[0] - x[1].powi(4) - 0.5 * x[2] * x[2]
    }
}

/// A part: log weight, sum of momenta, first and last momentum, draw.
type Part = (f64, Vec<f64>, [Vec<f64>; 2], Point);
type Metric<'a> = (&'a [f64], f64, f64);

fn turns(sum: &[f64], ends: [&[f64]; 2], mass: &[f64]) -> bool {
    ends.iter()
        .any(|p| p.iter().zip(sum).zip(mass).map(|((p, s), m)| p * s * m).sum::<f64>() <= 0.0)
}

/// 2^depth points from an end (Hoffman & Gelman 2014, Alg. 3, with weights in the place of slices).
fn more(
    end: &mut (Point, Vec<f64>),
    depth: usize,
    (mass, step, energy): Metric<'_>,
    points: &mut usize,
    rng: &mut impl Rng,
) -> Option<Part> {
    if depth == 0 {
        end.0.leapfrog(&mut Bent, &mut end.1, mass, step, 1);
        *points += 1;
        let rise = end.0.energy(&end.1, mass) - energy;
        let p = end.1.clone();
        return (rise <= DIVERGENT).then(|| (-rise, p.clone(), [p.clone(), p], end.0.clone()));
    }
    let first = more(end, depth - 1, (mass, step, energy), points, rng)?;
    let second = more(end, depth - 1, (mass, step, energy), points, rng)?;
    let weight = log_add_exp(first.0, second.0);
    let sum: Vec<f64> = first.1.iter().zip(&second.1).map(|(a, b)| a + b).collect();
    let ends = [first.2[0].clone(), second.2[1].clone()];
    if turns(&sum, [&ends[0], &ends[1]], mass) {
        return None;
    }
    let draw = if uniform(rng).ln() < second.0 - weight { second.3 } else { first.3 };
    Some((weight, sum, ends, draw))
}

fn recursive(point: &mut Point, p: &[f64], mass: &[f64], step: f64, rng: &mut impl Rng) -> usize {
    let energy = point.energy(p, mass);
    let mut ends = [(point.clone(), p.to_vec()), (point.clone(), p.to_vec())];
    let (mut weight, mut sum, mut points) = (0.0, p.to_vec(), 0);
    for level in 0..6 {
        let forwards = uniform(rng) < 0.5;
        let signed = if forwards { step } else { -step };
        let end = &mut ends[usize::from(forwards)];
        let Some(part) = more(end, level, (mass, signed, energy), &mut points, rng) else { break };
        if uniform(rng).ln() < part.0 - weight {
            *point = part.3;
        }
        weight = log_add_exp(weight, part.0);
        sum.iter_mut().zip(&part.1).for_each(|(s, p)| *s += p);
        if turns(&sum, [&ends[0].1, &ends[1].1], mass) {
            break;
        }
    }
    points
}

#[test]
fn paths_made_point_by_point_are_those_of_the_recursion() {
    let mass = [0.8, 0.4, 1.3];
    let (mut most, mut diverged) = (0, 0);
    for step in [0.02, 0.3, 1.1] {
        let mut one = Point::new(&mut Bent, vec![0.3, -0.2, 0.1]);
        let mut other = one.clone();
        let (mut a, mut b) = (stream(9, "path"), stream(9, "path"));
        let mut momenta = stream(9, "momenta");
        for sweep in 0..200 {
            let p: Vec<f64> = StandardNormal.sample_iter(&mut momenta).take(3).collect();
            let expected = recursive(&mut other, &p, &mass, step, &mut b);
            let mut path = Trajectory::begin(&one, &p, (&mass, step), 6, &mut a);
            let ended = loop {
                let (x, gradient) = path.wanted();
                let value = Bent.evaluate(x, gradient);
                if let Some(ended) = path.take(value, &mut one, &mass, &mut a) {
                    break ended;
                }
            };
            assert_eq!(ended.points, expected, "{step} {sweep}");
            assert_eq!(one.position, other.position, "{step} {sweep}");
            assert_eq!(a.get_word_pos(), b.get_word_pos(), "{step} {sweep}");
            most = most.max(expected);
            diverged += usize::from(ended.diverging);
        }
    }
    // paths of all lengths, and some into the wall
    assert!(most == 63 && diverged > 10, "{most} {diverged}");
}

//! Targets and small problems that the tests share.

mod compared;
mod data;
mod gaussian;
mod gradients;
mod guard;
mod identities;
mod parameters;
mod refusals;
mod settled;

use super::targets::Gaussian;
use super::*;
use crate::linalg::{Cholesky, Jitter, Mat, MatRef, product};
use crate::optim::Schedule;
use crate::rng::stream;

/// Numbers of a standard normal distribution.
fn normals(rows: usize, columns: usize, seed: u64) -> Mat<f64> {
    particles::normals(rows, columns, &mut stream(seed, "test"))
}

fn largest(a: MatRef<'_, f64>) -> f64 {
    a.norm_max()
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} is not {b}");
}

fn all_close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).for_each(|(a, b)| close(*a, *b, tolerance));
}

/// A covariance with eigenvalues that rise from 1/`low` by a condition number, in a random basis; with its inverse.
fn covariance(dim: usize, low: f64, condition: f64, seed: u64) -> (Mat<f64>, Mat<f64>) {
    let (_, basis) = {
        let a = normals(dim, dim, seed);
        let s = &a + a.transpose();
        crate::linalg::symmetric_eigen(s.as_ref()).unwrap()
    };
    let eigenvalue = |i: usize| condition.powf(i as f64 / (dim.max(2) - 1) as f64) / low;
    let with = |f: &dyn Fn(f64) -> f64| {
        let scaled = Mat::from_fn(dim, dim, |i, j| basis[(i, j)] * f(eigenvalue(j)));
        let mut out = product(scaled.as_ref(), basis.transpose());
        crate::linalg::symmetrise(out.as_mut());
        out
    };
    (with(&|v| v), with(&|v| v.recip()))
}

/// A Gaussian target away from unit numbers: mean, covariance, target.
fn gaussian(dim: usize, condition: f64, seed: u64) -> (Vec<f64>, Mat<f64>, Gaussian) {
    let mean: Vec<f64> = (0..dim).map(|i| 0.7 - 0.6 * i as f64).collect();
    let (sigma, precision) = covariance(dim, 2.0, condition, seed);
    let target = Gaussian::new(mean.clone(), precision).unwrap();
    (mean, sigma, target)
}

fn log_det(a: MatRef<'_, f64>) -> f64 {
    Cholesky::new(a, Jitter::Absolute(0.0), "A").unwrap().log_det()
}

/// Runs to the end.
fn flow(solver: &mut impl Solver, target: &mut dyn Target, steps: usize) -> Run {
    let options = RunOptions { steps, every: steps.max(1), ..RunOptions::default() };
    run(solver, target, &options, &mut |_, _| std::ops::ControlFlow::Continue(())).unwrap()
}

//! The latent form against dense matrices.

use super::coupled::Limits;
use super::tests::{KERNELS, Problem};
use super::*;
use crate::kernels::{Kernel, covariances, parse};
use crate::linalg::{Cholesky, Jitter, Mat, product, solve_lower};
use crate::rng;
use rand_distr::{Distribution, StandardNormal};
use std::sync::Arc;

const JITTERS: [Jitter; 2] = [Jitter::Relative(2e-3), Jitter::Absolute(0.003)];

/// K with the jitter.
pub(super) fn raised(kernel: &dyn Kernel, x: &Mat<f64>, jitter: Jitter) -> Mat<f64> {
    let mut k = covariances(kernel, x.as_ref(), None);
    for i in 0..x.nrows() {
        match jitter {
            Jitter::Relative(part) => k[(i, i)] *= 1.0 + part,
            Jitter::Absolute(all) => k[(i, i)] += all,
        }
    }
    k
}

pub(super) fn inverse(a: &Mat<f64>) -> (Mat<f64>, f64) {
    let factor = Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "A").unwrap();
    let mut root = Mat::identity(a.nrows(), a.nrows());
    solve_lower(factor.l.as_ref(), root.as_mut(), crate::linalg::par_for(a.nrows()));
    let log_det = 2.0 * (0..a.nrows()).map(|i| factor.l[(i, i)].ln()).sum::<f64>();
    (product(root.transpose(), root.as_ref()), log_det)
}

/// The precision of rows, each given those before it in its block, row after row.
pub(super) fn dense_precision(plan: &Plan, k: &Mat<f64>) -> Mat<f64> {
    let n = k.nrows();
    let mut q = Mat::<f64>::zeros(n, n);
    for block in (0..plan.blocks()).map(|own| plan.block(own)) {
        for (at, row) in block.rows.iter().enumerate().filter(|(at, _)| block.responds[*at]) {
            let before: Vec<usize> = block.rows[..at].iter().map(|row| *row as usize).collect();
            let row = *row as usize;
            let own = Mat::from_fn(at, at, |i, j| k[(before[i], before[j])]);
            let with = Mat::from_fn(at, 1, |i, _| k[(before[i], row)]);
            let b = if at == 0 {
                Mat::zeros(0, 1)
            } else {
                product(inverse(&own).0.as_ref(), with.as_ref())
            };
            let explained: f64 = (0..at).map(|i| b[(i, 0)] * with[(i, 0)]).sum();
            let mut u = Mat::<f64>::zeros(n, 1);
            u[(row, 0)] = 1.0;
            before.iter().enumerate().for_each(|(i, other)| u[(*other, 0)] = -b[(i, 0)]);
            q += product(u.as_ref(), u.transpose()) * (1.0 / (k[(row, row)] - explained));
        }
    }
    q
}

/// λ₁ and λ₂, of which a few are negative and some 0.
pub(super) fn factors(n: usize) -> (Vec<f64>, Vec<f64>) {
    let first = (0..n).map(|i| if i % 5 == 2 { 0.0 } else { 1.4 * (0.9 * i as f64).sin() });
    let second = |i: usize| match i % 5 {
        2 => 0.0,
        _ if i == 11 => -0.05,
        own => 0.3 + 1.7 * own as f64,
    };
    (first.collect(), (0..n).map(second).collect())
}

pub(super) fn latent(
    kernel: &dyn Kernel,
    plan: &Arc<Coupled>,
    x: &Mat<f64>,
    jitter: Jitter,
) -> Latent {
    Latent::new(kernel, Arc::clone(plan), x.as_ref(), jitter, &|| Ok(())).unwrap()
}

/// The log normaliser of factors.
fn normaliser(sited: &Sited, first: &[f64]) -> f64 {
    let fit: f64 = first.iter().zip(&sited.mean).map(|(a, b)| a * b).sum();
    0.5 * (fit - sited.log_det)
}

#[test]
fn the_function_given_factors_is_that_of_dense_matrices() {
    for ((inputs, name), jitter) in KERNELS.iter().zip(JITTERS.iter().cycle()) {
        let own = Problem::new(name, 45, *inputs);
        let plan = own.plan(6);
        let k = raised(&*own.kernel, &own.x, *jitter);
        let q = dense_precision(&plan, &k);
        let (first, second) = factors(45);
        let with = Mat::from_fn(45, 45, |i, j| q[(i, j)] + if i == j { second[i] } else { 0.0 });
        let ((s, log_with), (_, log_q)) = (inverse(&with), inverse(&q));
        let coupled = Arc::new(Coupled::new(Arc::new(plan), 1, Solver::Cholesky).unwrap());
        let prior = latent(&*own.kernel, &coupled, &own.x, *jitter);
        let found = prior.sited(&first, &second).unwrap();
        assert!((found.log_det - (log_with - log_q)).abs() < 1e-8, "{name}");
        let (variances, _) = prior.variances(&found, &|| Ok(())).unwrap();
        for i in 0..45 {
            let mean: f64 = (0..45).map(|j| s[(i, j)] * first[j]).sum();
            assert!((found.mean[i] - mean).abs() < 1e-8 * (1.0 + mean.abs()), "{name}");
            assert!((variances[i] - s[(i, i)]).abs() < 1e-8 * s[(i, i)], "{name}");
        }
    }
}

#[test]
fn with_all_rows_for_neighbours_it_is_the_prior_itself() {
    for (inputs, name) in KERNELS {
        let own = Problem::new(name, 30, *inputs);
        let k = raised(&*own.kernel, &own.x, JITTERS[0]);
        let coupled = Arc::new(Coupled::new(Arc::new(own.plan(30)), 1, Solver::Cholesky).unwrap());
        let prior = latent(&*own.kernel, &coupled, &own.x, JITTERS[0]);
        let nothing = prior.sited(&[0.0; 30], &[0.0; 30]).unwrap();
        assert!(nothing.log_det.abs() < 1e-9, "{name}");
        let (variances, _) = prior.variances(&nothing, &|| Ok(())).unwrap();
        (0..30).for_each(|i| assert!((variances[i] / k[(i, i)] - 1.0).abs() < 1e-8, "{name}"));
        // m and S of a place, from normal rows
        let (first, second) = factors(30);
        let sited = prior.sited(&first, &second).unwrap();
        let (precision, _) = inverse(&k);
        let with =
            Mat::from_fn(30, 30, |i, j| precision[(i, j)] + if i == j { second[i] } else { 0.0 });
        let (s, _) = inverse(&with);
        let places = Mat::from_fn(4, *inputs, |i, j| 0.31 * i as f64 - 0.6 + 0.05 * j as f64);
        let cross = covariances(&*own.kernel, own.x.as_ref(), Some(places.as_ref()));
        let b = product(precision.as_ref(), cross.as_ref());
        let here = covariances(&*own.kernel, places.as_ref(), None);
        let right = &here - product(cross.transpose(), b.as_ref())
            + product(b.transpose(), product(s.as_ref(), b.as_ref()).as_ref());
        let mean = Mat::from_fn(30, 1, |i, _| (0..30).map(|j| s[(i, j)] * first[j]).sum());
        let mean = product(b.transpose(), mean.as_ref());
        let fields = prior.into_fields(vec![sited]).unwrap();
        let (means, variances) = fields.marginals(places.as_ref()).unwrap();
        let (joint_mean, joint) = fields.joint(places.as_ref()).unwrap();
        for i in 0..4 {
            assert!((means[(i, 0)] - mean[(i, 0)]).abs() < 1e-7, "{name}");
            assert!((joint_mean[(i, 0)] - mean[(i, 0)]).abs() < 1e-7, "{name}");
            assert!((variances[(i, 0)] - right[(i, i)]).abs() < 1e-7, "{name}");
        }
        assert!((&joint[0] - &right).norm_max() < 1e-7, "{name}");
    }
}

/// Returns a kernel with a parameter moved, as the optimiser sees it.
pub(super) fn moved(kernel: &dyn Kernel, index: usize, by: f64) -> Box<dyn Kernel> {
    let (mut kernel, mut left) = (kernel.clone_box(), index);
    for (_, param) in kernel.params_mut() {
        let len = param.len();
        if left < len {
            let mut values = param.value().to_vec();
            values[left] += by;
            param.set("", &values).unwrap();
            return kernel;
        }
        left -= len;
    }
    unreachable!("a parameter has a place")
}

#[test]
fn slopes_are_those_of_differences() {
    for ((inputs, name), jitter) in KERNELS.iter().zip(JITTERS.iter().cycle()) {
        let own = Problem::new(name, 40, *inputs);
        let coupled = Arc::new(Coupled::new(Arc::new(own.plan(5)), 1, Solver::Cholesky).unwrap());
        let (first, second) = factors(40);
        let value = |kernel: &dyn Kernel| {
            let sited = latent(kernel, &coupled, &own.x, *jitter).sited(&first, &second).unwrap();
            normaliser(&sited, &first)
        };
        let prior = latent(&*own.kernel, &coupled, &own.x, *jitter);
        let sited = prior.sited(&first, &second).unwrap();
        let (_, pairs) = prior.variances(&sited, &|| Ok(())).unwrap();
        let slopes = prior.slopes(&sited, &pairs, &|| Ok(())).unwrap();
        for (k, slope) in slopes.iter().enumerate() {
            let moved = |by: f64| value(&*moved(&*own.kernel, k, by));
            let h = 1e-4;
            let right =
                (8.0 * (moved(h) - moved(-h)) - (moved(2.0 * h) - moved(-2.0 * h))) / (12.0 * h);
            assert!(
                (slope - right).abs() < 1e-6 * (1.0 + right.abs()),
                "{name}, {k}: {slope}, {right}"
            );
        }
    }
}

/// Draws have the joint law of the covariance, by the distance of Mahalanobis; marginals are those of the joint law.
#[test]
fn draws_have_the_joint_law() {
    for solver in [Solver::Cholesky, Solver::Iterative] {
        joint_law_of_draws(solver);
    }
}

fn joint_law_of_draws(solver: Solver) {
    let own = Problem::new(KERNELS[2].1, 60, 2);
    let coupled = Arc::new(Coupled::new(Arc::new(own.plan(8)), 1, solver).unwrap());
    let prior = latent(&*own.kernel, &coupled, &own.x, JITTERS[0]);
    let (first, mut second) = factors(60);
    let other: Vec<f64> = second.iter().map(|own| own.abs() + 0.2).collect();
    if solver == Solver::Iterative {
        second.iter_mut().for_each(|own| *own = own.abs());
    }
    let all = vec![prior.sited(&first, &second).unwrap(), prior.sited(&other, &other).unwrap()];
    let fields = prior.into_fields(all).unwrap();
    let places = Mat::from_fn(7, 2, |i, j| 0.4 * (i as f64 - 3.0) * (0.5 + j as f64).cos());
    let (mean, joint) = fields.joint(places.as_ref()).unwrap();
    let (means, variances) = fields.marginals(places.as_ref()).unwrap();
    assert!((&mean - &means).norm_max() < 0.05 && mean != means);
    let samples = 4000;
    let mut rng = rng::stream(5, "latent");
    let mut normal = |n, p| Mat::from_fn(n, p, |_, _| StandardNormal.sample(&mut rng));
    let draws = fields.draws(places.as_ref(), samples, &mut normal).unwrap();
    for l in 0..2 {
        for i in 0..7 {
            let ratio = joint[l][(i, i)] / variances[(i, l)];
            assert!((0.8..1.25).contains(&ratio), "{ratio}");
        }
        let (precision, _) = inverse(&joint[l]);
        let mut sum = 0.0;
        let mut centre = [0.0; 7];
        for s in 0..samples {
            let apart = Mat::from_fn(7, 1, |i, _| draws[l][(i, s)] - mean[(i, l)]);
            centre.iter_mut().enumerate().for_each(|(i, own)| *own += apart[(i, 0)]);
            sum += product(apart.transpose(), product(precision.as_ref(), apart.as_ref()).as_ref())
                [(0, 0)];
        }
        // χ² with 7 degrees of freedom a draw
        let z = (sum - 7.0 * samples as f64) / (14.0 * samples as f64).sqrt();
        assert!(z.abs() < 4.0, "{z}");
        for (i, own) in centre.iter().enumerate() {
            let z = own / (samples as f64 * joint[l][(i, i)]).sqrt();
            assert!(z.abs() < 4.5, "{z}");
        }
    }
}

/// Where the prior has no variance nothing is learnt, and nothing fails.
#[test]
fn rows_without_prior_variance_are_certain() {
    for solver in [Solver::Cholesky, Solver::Iterative] {
        without_prior_variance(solver);
    }
}

fn without_prior_variance(solver: Solver) {
    let kernel = parse("linear(variance=0.7)", crate::kernels::Inputs::unnamed(2)).unwrap();
    let x = Mat::from_fn(
        25,
        2,
        |i, q| if q == 0 { (i / 5) as f64 - 2.0 } else { (i % 5) as f64 - 2.0 },
    );
    let plan = Plan::new(x.as_ref(), Metric::of(&*kernel, 2), 8);
    let coupled = Arc::new(Coupled::new(Arc::new(plan), 1, solver).unwrap());
    let prior = latent(&*kernel, &coupled, &x, Jitter::Relative(1e-6));
    let (first, second) = factors(25);
    let second: Vec<f64> = second.iter().map(|own| own.abs()).collect();
    let sited = prior.sited(&first, &second).unwrap();
    let (variances, pairs) = prior.variances(&sited, &|| Ok(())).unwrap();
    assert!(sited.mean[12].abs() < 1e-4 && variances[12] < 1e-4);
    assert!(variances.iter().all(|own| *own > 0.0));
    let slopes = prior.slopes(&sited, &pairs, &|| Ok(())).unwrap();
    assert!(slopes.iter().all(|own| own.is_finite()));
}

/// One row, and one neighbour, are enough.
#[test]
fn few_rows_are_enough() {
    for (solver, tolerance) in [(Solver::Cholesky, 1e-10), (Solver::Iterative, 1e-6)] {
        for (rows, neighbours) in [(1, 1), (2, 1), (9, 1)] {
            few_rows(solver, tolerance, rows, neighbours);
        }
    }
}

fn few_rows(solver: Solver, tolerance: f64, rows: usize, neighbours: usize) {
    let own = Problem::new(KERNELS[2].1, rows, 2);
    let coupled = Arc::new(Coupled::new(Arc::new(own.plan(neighbours)), 1, solver).unwrap());
    let prior = latent(&*own.kernel, &coupled, &own.x, JITTERS[0]);
    let sited = prior.sited(&vec![0.7; rows], &vec![1.3; rows]).unwrap();
    let fields = prior.into_fields(vec![sited]).unwrap();
    let (mean, variance) = fields.marginals(own.x.as_ref()).unwrap();
    assert!(mean[(0, 0)] > 0.0 && variance[(0, 0)] < 2.3);
    if rows == 1 {
        let v = 1.0 / (1.0 / (2.3 * 1.002) + 1.3);
        let b = 1.0 / 1.002;
        assert!((mean[(0, 0)] - 0.7 * v * b).abs() < tolerance);
        assert!((variance[(0, 0)] - (2.3 * (1.0 - b) + b * b * v)).abs() < tolerance);
    }
}

#[test]
fn neighbours_that_need_too_much_memory_are_refused_by_name() {
    let kernel = parse("rbf", crate::kernels::Inputs::unnamed(1)).unwrap();
    let x = Mat::from_fn(20, 1, |i, _| i as f64);
    let plan = Plan::new(x.as_ref(), Metric::of(&*kernel, 1), 3);
    let within = |numbers| Limits { numbers, work: f64::INFINITY };
    assert!(Coupled::within(Arc::new(plan.clone()), Solver::Cholesky, within(10_000)).is_ok());
    let error =
        Coupled::within(Arc::new(plan), Solver::Cholesky, within(20)).unwrap_err().to_string();
    assert!(error.contains("vecchia(neighbours=1)") && error.contains("svgp"), "{error}");
}

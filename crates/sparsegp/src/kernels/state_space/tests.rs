//! Each process against the kernel itself.

use super::super::{Inputs, Kernel, Tape, covariances, parse};
use super::StateSpace;
use crate::linalg::{Mat, RowRef};

/// Kernels with parameters that are not 1.
const SPECS: &[&str] = &[
    "matern12(variance=1.7, lengthscales=0.6)",
    "matern32(variance=0.4, lengthscales=2.3)",
    "matern52(variance=2.6, lengthscales=0.9)",
    "exponential(variance=0.7, lengthscales=1.3)",
    "constant(variance=0.8)",
    "linear(variance=0.3)",
    "white(variance=0.2)",
    "cosine(variance=1.2, lengthscales=1.9)",
    "periodic(base=rbf(variance=1.4, lengthscales=0.8), period=1.7)",
    "periodic(base=rbf(variance=0.9, lengthscales=0.3), period=2.9)",
    "matern52(variance=1.3, lengthscales=0.7) + matern12(variance=0.4, lengthscales=3.1) + constant(variance=2.1)",
    "matern32(variance=1.3, lengthscales=4.0) * cosine(variance=0.6, lengthscales=1.1)",
    "matern52(variance=0.8, lengthscales=5.0) * periodic(base=rbf(variance=1.1, lengthscales=0.9), period=1.3) + linear(variance=0.2)",
    "matern12(variance=1.3, lengthscales=1.9) * matern32(variance=0.7, lengthscales=2.2) * linear(variance=0.5)",
    "rbf(variance=1.8, lengthscales=0.7)",
    "rbf(variance=0.6, lengthscales=1.9) * cosine(variance=1.3, lengthscales=0.9) + matern32(variance=0.5, lengthscales=0.4)",
    "matern32(variance=0.9, lengthscales=1.3, active_dims=[0]) * coregion(W=[[0.8, 0.1], [-0.5, 0.6], [0.3, -0.9]], kappa=[0.3, 0.5, 0.2], active_dims=[1])",
    "matern52(variance=0.7, lengthscales=0.8, active_dims=[0]) * coregion(W=[0.8, -0.5, 0.3], kappa=[0.3, 0.5, 0.2], active_dims=[1]) + coregion(W=[0.4, 0.9, 1.3], kappa=[0.6, 0.1, 0.4], active_dims=[1]) * (matern12(variance=0.6, lengthscales=3.0, active_dims=[0]) + white(variance=0.2)) + linear(variance=0.2, active_dims=[0])",
];

/// How far a covariance may be from its kernel's: rounding, and what an approximation leaves.
fn tolerance(space: &dyn StateSpace) -> f64 {
    1e-10 + space.error()
}

/// The time, and labels where a kernel reads some.
fn inputs(spec: &str) -> usize {
    1 + usize::from(spec.contains("coregion"))
}

fn kernel(spec: &str) -> Box<dyn Kernel> {
    parse(spec, Inputs::unnamed(inputs(spec))).unwrap()
}

fn times(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    (0..n * n).map(|at| (0..n).map(|k| a[at / n * n + k] * b[k * n + at % n]).sum()).collect()
}

fn transposed(a: &[f64], n: usize) -> Vec<f64> {
    (0..n * n).map(|at| a[at % n * n + at / n]).collect()
}

fn matrix(space: &dyn StateSpace, write: impl Fn(&mut [f64])) -> Vec<f64> {
    let mut out = vec![f64::NAN; space.size().pow(2)];
    write(&mut out);
    out
}

/// H(x)ᵀPA(Δ)ᵀH(x′) of the label 1 at t, and of 2 at t + Δ.
fn covariance(space: &dyn StateSpace, t: f64, step: f64) -> f64 {
    let n = space.size();
    let p = matrix(space, |out| space.stationary(out));
    let a = matrix(space, |out| space.transition(step, out));
    let (mut from, mut to) = (vec![0.0; n], vec![0.0; n]);
    space.output(RowRef::from_slice(&[t, 1.0]), &mut from);
    space.output(RowRef::from_slice(&[t + step, 2.0]), &mut to);
    let pa = times(&p, &transposed(&a, n), n);
    (0..n)
        .flat_map(|i| (0..n).map(move |j| (i, j)))
        .map(|(i, j)| from[i] * pa[i * n + j] * to[j])
        .sum()
}

#[test]
fn processes_have_the_covariances_of_their_kernels() {
    for spec in SPECS {
        let (kernel, t) = (kernel(spec), 0.7);
        let space = kernel.state_space().unwrap();
        for step in [1e-7, 0.01, 0.3, 0.9, 2.2, 17.0] {
            let row = |of: [f64; 2]| Mat::from_fn(1, inputs(spec), |_, q| of[q]);
            let (x, z) = (row([t, 1.0]), row([t + step, 2.0]));
            let right = covariances(&*kernel, x.as_ref(), Some(z.as_ref()))[(0, 0)];
            let found = covariance(&*space, t, step);
            assert!(
                (found - right).abs() < tolerance(&*space) * (1.0 + right.abs()),
                "{spec} at {step}: {found}, {right}"
            );
        }
        let mut own = [0.0];
        let x = Mat::from_fn(1, inputs(spec), |_, q| [t, 1.0][q]);
        kernel.diag(x.as_ref(), &mut own);
        let n = space.size();
        let p = matrix(&*space, |out| space.stationary(out));
        let mut h = vec![0.0; n];
        space.output(RowRef::from_slice(&[t, 1.0]), &mut h);
        let found: f64 = (0..n * n).map(|at| h[at / n] * p[at] * h[at % n]).sum();
        assert!((found - own[0]).abs() < 1e-10 * own[0], "{spec}: {found}, {}", own[0]);
    }
}

/// Everywhere, and the variance itself to the last digits.
#[test]
fn a_squared_exponential_has_the_error_that_it_states() {
    let (variance, lengthscale) = (3.7, 0.02);
    let space = kernel("rbf(variance=3.7, lengthscales=0.02)").state_space().unwrap();
    let error = |i: usize| {
        let u = i as f64 / 100.0;
        let found = covariance(&*space, 0.3, u * lengthscale);
        (found / variance - (-0.5 * u * u).exp()).abs()
    };
    let largest = (0..1600).map(error).fold(0.0, f64::max);
    assert!(largest < space.error() && largest > 0.9 * space.error(), "{largest:e}");
    assert!(error(0) < 1e-11, "{:e}", error(0));
    let mut said = Vec::new();
    space.remarks(&mut said);
    assert!(said[0].contains("`rbf`") && said[0].contains("7e-7"), "{said:?}");
}

#[test]
fn noise_is_what_the_transition_takes_away() {
    for spec in SPECS {
        let space = kernel(spec).state_space().unwrap();
        let n = space.size();
        let p = matrix(&*space, |out| space.stationary(out));
        let largest = p.iter().fold(0.0_f64, |all, v| all.max(v.abs()));
        for step in [0.0, 1e-9, 0.02, 0.4, 1.1, 3.7, 900.0] {
            let a = matrix(&*space, |out| space.transition(step, out));
            let q = matrix(&*space, |out| space.noise(step, out));
            let left = times(&times(&a, &p, n), &transposed(&a, n), n);
            for at in 0..n * n {
                let right = p[at] - left[at];
                assert!(
                    (q[at] - right).abs() < 1e-14 * largest * n as f64,
                    "{spec} at {step}: {} and {right}",
                    q[at]
                );
            }
            // as a matrix: no direction of less than 0 but by rounding, however short the step
            for i in 0..n {
                for j in 0..n {
                    let (own, bound) =
                        (q[i * n + j].abs(), (q[i * n + i] * q[j * n + j]).max(0.0).sqrt());
                    assert!(
                        own <= bound * (1.0 + 1e-9) + 1e-17 * largest,
                        "{spec} at {step}: {own} beyond {bound}"
                    );
                }
            }
        }
    }
}

#[test]
fn short_steps_have_all_digits_of_their_noise() {
    // Q₀₀ = q u⁵/20 and q u³/3 for u → 0
    let noise = |spec: &str, step: f64| {
        let space = kernel(spec).state_space().unwrap();
        matrix(&*space, |out| space.noise(step, out))[0]
    };
    let u = 5f64.sqrt() * 1e-5 / 0.9;
    let right = 2.6 * 16.0 / 3.0 * u.powi(5) / 20.0;
    let found = noise("matern52(variance=2.6, lengthscales=0.9)", 1e-5);
    assert!((found / right - 1.0).abs() < 1e-4, "{found} {right}");
    let u = 3f64.sqrt() * 1e-6 / 2.3;
    let right = 0.4 * 4.0 * u.powi(3) / 3.0;
    let found = noise("matern32(variance=0.4, lengthscales=2.3)", 1e-6);
    assert!((found / right - 1.0).abs() < 1e-5, "{found} {right}");
}

#[test]
fn slopes_are_those_of_differences() {
    for spec in SPECS {
        let start = kernel(spec);
        let space = start.state_space().unwrap();
        let n = space.size();
        let weights: Vec<f64> = (0..n * n).map(|i| (1.3 * i as f64 + 0.4).sin()).collect();
        let dot = |a: &[f64]| a.iter().zip(&weights).map(|(v, w)| v * w).sum::<f64>();
        let step = 0.37;
        let a = matrix(&*space, |out| space.transition(step, out));
        let mut found = vec![0.0; start.num_params()];
        space.pull_stationary(&weights, &mut found);
        space.pull_transition(step, &a, &weights, &mut found);
        let mut at = 0;
        for (index, (path, param)) in start.params().iter().enumerate() {
            for value in 0..param.len() {
                let moved = |by: f64| {
                    let mut kernel = start.clone();
                    let mut all = param.value().to_vec();
                    all[value] *= 1.0 + by;
                    kernel.params_mut()[index].1.set(path, &all).unwrap();
                    let space = kernel.state_space().unwrap();
                    assert_eq!(space.size(), n);
                    dot(&matrix(&*space, |out| space.transition(step, out)))
                        + dot(&matrix(&*space, |out| space.stationary(out)))
                };
                let width = 2e-6 * param.value()[value];
                let right = (moved(1e-6) - moved(-1e-6)) / width;
                let size = 1.0 + right.abs();
                assert!(
                    (found[at] - right).abs() < 2e-7 * size,
                    "{spec} {path}: {} and {right}",
                    found[at]
                );
                at += 1;
            }
        }
    }
}

#[test]
fn what_is_not_a_process_is_refused_by_name() {
    let refused = |spec: &str, inputs: usize| {
        let kernel = parse(spec, Inputs::unnamed(inputs)).unwrap();
        kernel.state_space().unwrap_err().to_string()
    };
    assert!(
        refused("rational_quadratic", 1).contains("`rational_quadratic` has no state-space form")
    );
    assert!(refused("matern32 + polynomial", 1).contains("`polynomial`"));
    assert!(refused("matern32", 2).contains("reads 2 inputs"));
    let rough = parse("periodic(base=rbf(lengthscales=0.01))", Inputs::unnamed(1)).unwrap();
    let error = rough.state_space().unwrap_err();
    assert!(error.is_recoverable() && error.to_string().contains("harmonics"), "{error}");
    // one of two inputs will do
    let one = parse("matern32(active_dims=[1])", Inputs::unnamed(2)).unwrap();
    assert_eq!(one.state_space().unwrap().size(), 2);
    let mut tape = Tape::off();
    let x = Mat::from_fn(1, 2, |_, _| 0.3);
    let mut k = Mat::zeros(1, 1);
    one.evaluate(x.as_ref(), None, k.as_mut(), &mut tape);
    assert!(k[(0, 0)] > 0.0);
}

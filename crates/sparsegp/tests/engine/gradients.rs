//! Only gradients.

use crate::dense::{Gradients, Parts, Problem, dense, problem};
use crate::rules::{ByR, ByS, Rule, all};
use sparsegp::engine::Cpu;
use sparsegp::kernels::Cotangents;
use sparsegp::linalg::Mat;

/// The whole gradient: rows by the engine, Kuu from Ψ = m(Φa)ᵀ + 2S Φ diag(b) Φᵀ − 2Φ diag(c) Φᵀ.
fn gradient(problem: &Problem, rule: &Rule, scale: f64) -> Vec<f64> {
    let Parts { kernel, mean, z, kuu, mut tape, basis } = problem.parts();
    let parts = Parts { kernel, mean, z, kuu, tape: Default::default(), basis };
    let engine = Cpu::default();
    let q = problem.q();
    let sums =
        parts.statistics(&engine, Some(q), rule, &problem.data, scale).expect("rows in memory");
    let Gradients { mut kernel, mean, mut z, .. } =
        parts.gradients(&engine, q, rule, &problem.data, scale).expect("rows in memory");
    let (outputs, m) = (rule.outputs as f64, problem.m);
    let (b, c) = match (rule.s, rule.r) {
        (ByS::Constant(beta), ByR::Constant(kappa)) => (-outputs * beta, -outputs * kappa),
        (ByS::Constant(beta), _) => (-outputs * beta, 1.0),
        (_, ByR::Constant(kappa)) => (1.0, -outputs * kappa),
        _ => (1.0, 1.0),
    };
    let gram_c = sums.gram_c.as_ref().unwrap_or(&sums.gram);
    let first = &problem.q_mean * sums.phi_a.transpose();
    let second = &problem.q_covariance * &sums.gram;
    let psi = Mat::from_fn(m, m, |i, j| {
        first[(i, j)] + 2.0 * b * second[(i, j)] - 2.0 * c * gram_c[(i, j)]
    });
    let mut kuu_bar = parts.basis.kuu_bar(psi);
    let mut sinks = Cotangents { params: &mut kernel, x: Some(z.as_mut()), z: None };
    parts.kernel.vjp(
        parts.z.as_ref(),
        None,
        parts.kuu.as_ref(),
        kuu_bar.as_mut(),
        &mut tape,
        &mut sinks,
    );
    let points = (0..z.ncols()).flat_map(|q| z.col_as_slice(q).to_vec()).collect::<Vec<_>>();
    kernel.into_iter().chain(mean).chain(points).collect()
}

/// Five-point differences with step h = 10⁻³: truncation h⁴F⁽⁵⁾/30, and rounding ε|F|/h with |F| up to
/// 10⁴ is 10⁻⁹; both below 10⁻⁷ of the gradient's largest component (10² and more).
#[test]
fn gradients_match_differences() {
    let scale = 1.75;
    for p in 1..=3 {
        let problem = problem(1100, 6, p);
        for rule in all(p) {
            let own = gradient(&problem, &rule, scale);
            assert_eq!(own.len(), problem.theta.len());
            let size = own.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
            assert!(size > 100.0);
            for (index, g) in own.iter().enumerate() {
                let at = |h: f64| {
                    let mut theta = problem.theta.clone();
                    theta[index] += h;
                    scale * dense(&problem, &theta, &rule, true).value
                };
                let h = 1e-3;
                let near = 8.0 * (at(h) - at(-h));
                let difference = (near - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
                assert!(
                    (g - difference).abs() <= 1e-7 * size,
                    "{rule:?} parameter {index}: {g} against {difference}, largest {size}"
                );
            }
        }
    }
}

/// Constant slopes go through one M×M matrix; asking for s as well makes them go through features.
#[test]
fn both_paths_agree_for_constant_slopes() {
    let problem = problem(1100, 7, 2);
    let parts = problem.parts();
    let through = |variances: bool| {
        let (s, r) = (ByS::Constant(1.3), ByR::Constant(0.8));
        let rule = Rule { variances, s, r, outputs: 2 };
        let engine = Cpu::default();
        parts.gradients(&engine, problem.q(), &rule, &problem.data, 3.25).expect("rows")
    };
    let (matrix, features) = (through(false), through(true));
    // the same numbers but for rounding, which L⁻¹ (condition below 10²) magnifies
    let close = |a: &[f64], b: &[f64]| {
        let size = b.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
        assert!(a.len() == b.len() && size > 1.0);
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() < 1e-11 * size, "{a} {b} of {size}");
        }
    };
    close(&matrix.kernel, &features.kernel);
    close(&matrix.mean, &features.mean);
    close(&matrix.sums[..1], &features.sums[..1]);
    for q in 0..2 {
        close(matrix.z.col_as_slice(q), features.z.col_as_slice(q));
    }
}

//! Products in single precision: what accuracy bound and gradients keep.

use crate::problem::{Draw, problem};
use crate::support::pseudo;
use sparsegp::engine::{Cpu, Want};
use sparsegp::inverse_free::{Preconditioner, SolverOptions};
use sparsegp::linalg::Precision;
use sparsegp::methods::{Following, Step, Uncollapsed};
use sparsegp::model::Model;

/// Value and gradient after T has followed.
fn evaluate(model: &Model, draw: &Draw, precision: Precision) -> (f64, Vec<f64>, f64) {
    let data = problem(draw).data;
    let engine = Cpu::default();
    let solver = SolverOptions { products: precision, ..SolverOptions::default() };
    let how = Following { solver, ..Following::default() };
    let mut own = model.clone();
    if let Some(root) = own.q.as_mut().and_then(|q| q.root.as_mut()) {
        root.frozen = true;
    }
    let method = Uncollapsed::of(own.method).unwrap();
    let mut step = Step::default();
    method.follow(&mut step, &mut own, &engine, &data, Want::Gradients, &how).unwrap();
    let mut gradient = vec![0.0; own.num_params()];
    step.gradient(&own, &mut gradient);
    (step.value, gradient, step.solved.unwrap().residual)
}

#[test]
fn bound_and_gradients_keep_the_digits_that_are_stated() {
    for (seed, kernel) in [(1, "rbf"), (2, "matern32"), (3, "rbf"), (4, "matern52")] {
        let draw = Draw { n: 60, m: 12, d: 2, p: 2, kernel, mean: "constant", seed };
        let mut own = problem(&draw);
        let mut model = pseudo(&mut own, 2, Preconditioner::Inverse, Some(0.3));
        // λ at the edge of what is stated
        let variance =
            model.params().iter().find(|(p, _)| p == "kernel.variance").unwrap().1.scalar();
        model.set("q.lambda", &[0.01 * variance]).unwrap();
        let (double, exact, _) = evaluate(&model, &draw, Precision::Double);
        let (single, rounded, residual) = evaluate(&model, &draw, Precision::Single);
        let size = exact.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let apart = exact.iter().zip(&rounded).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(residual < 5e-3, "{kernel}: {residual}");
        assert!((double - single).abs() < 1e-4 * double.abs(), "{kernel}: {double} {single}");
        assert!(apart < 1e-4 * size, "{kernel}: {apart} {size}");
        assert!(single != double, "it is not rounded");
    }
}

/// Where λ is too small for single precision, steps are made in double precision.
#[test]
fn a_small_lambda_is_met_by_double_precision() {
    let draw = Draw { n: 40, m: 20, d: 1, p: 1, kernel: "rbf", mean: "zero", seed: 6 };
    let mut own = problem(&draw);
    let mut model = pseudo(&mut own, 1, Preconditioner::Inverse, Some(0.1));
    model.jitter = sparsegp::linalg::Jitter::Absolute(0.0);
    model.set("q.lambda", &[1e-7]).unwrap();
    let residual = |precision| evaluate(&model, &draw, precision).2;
    assert_eq!(residual(Precision::Single), residual(Precision::Double));
}

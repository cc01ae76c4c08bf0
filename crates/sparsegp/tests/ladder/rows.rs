//! Exact inference on rows with weights and known noise variances.

use crate::gradients::check;
use crate::problem::{Problem, draws, objective, points, problem};
use proptest::prelude::*;
use rand::RngExt;
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::linalg::Mat;

/// Kernels that look only at places: white noise of two equal rows is not the same.
const PLACES: &[&str] = &[
    "rbf",
    "matern12",
    "matern52(active_dims=[0])",
    "rbf + linear",
    "(rbf + constant) * matern12",
];

/// A problem whose rows have their own noise variances, of the size of the common one.
fn noisy(draw: &crate::problem::Draw) -> Problem {
    let mut problem = problem(draw);
    let noise = problem.model.noise();
    problem.data.extra = (0..draw.n).map(|_| noise * problem.rng.random_range(0.0..3.0)).collect();
    problem
}

proptest! {
    #![proptest_config(crate::config())]

    /// A row of weight w is w rows, and one of weight 0 none: in value, gradient and posterior. The two
    /// factorise matrices of different sizes; what rounding makes of them is bounded by their condition,
    /// at most Σ k/σ² ≤ 10⁵ here, times ε.
    #[test]
    fn weights_are_repeated_rows(draw in draws(PLACES)) {
        let mut problem = noisy(&draw);
        let counts: Vec<usize> = (0..draw.n)
            .map(|i| if i == 0 { 2 } else { problem.rng.random_range(0..4) })
            .collect();
        let at: Vec<usize> =
            counts.iter().enumerate().flat_map(|(i, n)| std::iter::repeat_n(i, *n)).collect();
        let repeated = problem.data.picked(&at);
        let mut weighted = problem.data.clone();
        weighted.weights = counts.iter().map(|n| *n as f64).collect();
        let model = problem.with("exact");
        let (a, b) = (objective("exact", &model, &weighted), objective("exact", &model, &repeated));
        prop_assert!((a.value - b.value).abs() <= 1e-9 * (1.0 + b.value.abs()), "{} {}", a.value, b.value);
        let size = b.gradient.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
        for (a, b) in a.gradient.iter().zip(&b.gradient) {
            prop_assert!((a - b).abs() <= 1e-8 * size, "{a} {b} of {size}");
        }
        let new = points(5, draw.d, 0.3, &mut problem.rng);
        let predict = |data: &InMemory| {
            let posterior = model.posterior(&Cpu::default(), data).unwrap();
            posterior.predict_f(new.as_ref()).unwrap()
        };
        let ((m, v), (other_m, other_v)) = (predict(&weighted), predict(&repeated));
        prop_assert!((&m - &other_m).norm_max() <= 1e-8 * (1.0 + other_m.norm_max()));
        prop_assert!((&v - &other_v).norm_max() <= 1e-8 * (1.0 + other_v.norm_max()));
    }

    /// Weights that are not whole numbers, and known noise variances.
    #[test]
    fn gradients_on_such_rows_match_differences(draw in draws(PLACES)) {
        let mut problem = noisy(&draw);
        problem.data.weights = (0..draw.n).map(|_| problem.rng.random_range(0.1..2.5)).collect();
        check("exact", &problem, &problem.with("exact"))?;
    }
}

/// log N(y; 0, K + diag(σ² + e)) for one row, by hand: k = 1.7, σ² = 0.3, e = 0.2, y = 0.9; with weight
/// 2.5 the term of the row is N(y | f, 0.5)^2.5, whose integral over f ~ N(0, 1.7) is below.
#[test]
fn one_row_by_hand() {
    use sparsegp::kernels::{Inputs, parse};
    use sparsegp::likelihoods::Gaussian;
    let model = sparsegp::model::Model {
        kernels: vec![parse("rbf(variance=1.7)", Inputs::unnamed(1)).unwrap()],
        mean: sparsegp::means::by_name("zero", 1, 1).unwrap(),
        likelihood: Box::new(Gaussian::new(0.3)),
        inducing: Vec::new(),
        q: None,
        method: sparsegp::methods::find("exact").unwrap().method,
        jitter: sparsegp::linalg::Jitter::default(),
        hidden: Vec::new(),
    };
    let one = |v: f64| Mat::from_fn(1, 1, |_, _| v);
    let (x, y) = (one(0.4), one(0.9));
    let value = |weights: Vec<f64>| {
        let data = InMemory { x: x.clone(), y: y.clone(), weights, extra: vec![0.2] };
        objective("exact", &model, &data).value
    };
    let log_normal = |y: f64, v: f64| -0.5 * ((2.0 * std::f64::consts::PI * v).ln() + y * y / v);
    assert!((value(Vec::new()) - log_normal(0.9, 1.7 + 0.5)).abs() < 1e-13);
    // ∫ N(0.9; f, 0.5)^2.5 N(f; 0, 1.7) df by the trapezoidal rule, which is exact to rounding here
    let h = 0.001;
    let integral: f64 = (-20_000..=20_000)
        .map(|i| f64::from(i) * h)
        .map(|f| (2.5 * log_normal(0.9 - f, 0.5) + log_normal(f, 1.7)).exp() * h)
        .sum();
    assert!((value(vec![2.5]) - integral.ln()).abs() < 1e-12);
}

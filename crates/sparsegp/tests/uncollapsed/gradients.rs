//! Every component of every gradient against central differences.

use crate::problem::{KERNELS, draws, problem};
use crate::support::{random_q, with_q};
use proptest::prelude::*;
use rand::RngExt;
use sparsegp::data::Source;
use sparsegp::engine::Cpu;
use sparsegp::model::Model;

/// Compares the gradient in the free numbers with fourth-order central differences.
pub fn check(model: &Model, data: &dyn Source, what: &str) -> Result<(), TestCaseError> {
    let engine = Cpu::default();
    let (_, gradient) = model.evaluate_free(&engine, data).unwrap();
    let free = model.free_values();
    let largest = gradient.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
    for (at, own) in gradient.iter().enumerate() {
        let value = |step: f64| {
            let mut moved = model.clone();
            let mut x = free.clone();
            x[at] += step;
            moved.set_free_values(&x);
            moved.evaluate(&engine, data).unwrap().value
        };
        let difference = |h: f64| {
            (8.0 * (value(h) - value(-h)) - (value(2.0 * h) - value(-2.0 * h))) / (12.0 * h)
        };
        let room = 2e-6 * largest + 1e-5 * own.abs();
        let h = 1e-3 * (1.0 + free[at].abs()).min(2.0);
        // where Kuu is nearly singular and q is of u, or many waves lie between two points, the first
        // step is a long one
        let mut nearest = difference(h);
        for part in [0.1, 0.01] {
            if (own - nearest).abs() >= room {
                nearest = difference(part * h);
            }
        }
        prop_assert!((own - nearest).abs() < room, "{what} {at}: {own} {nearest} ({largest})");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn gaussian_bounds_in_all_forms(
        draw in draws(KERNELS).prop_filter("small enough", |d| d.m <= 6 && d.n <= 30),
        diagonal in any::<bool>(),
        whitened in any::<bool>(),
    ) {
        let mut problem = problem(&draw);
        for method in ["svgp", "svgp2025", "svgp-spherical"] {
            let mut q = random_q(draw.m, draw.p, diagonal, whitened, &mut problem.rng);
            if method == "svgp-spherical" {
                q = q.with_factors();
            }
            let mut model = with_q(&problem, method, q);
            if model.q.as_ref().unwrap().v.is_some() {
                let v: Vec<f64> = (0..draw.p).map(|_| problem.rng.random_range(0.1..0.95)).collect();
                model.set("q.v", &v).unwrap();
            }
            let mut data = problem.data.clone();
            data.weights = (0..draw.n).map(|_| problem.rng.random_range(0.0..2.5)).collect();
            data.extra = (0..draw.n).map(|_| problem.rng.random_range(0.0..0.4)).collect();
            data.y[(1, 0)] = f64::NAN;
            check(&model, &data, &format!("{draw:?} {method} {diagonal} {whitened}"))?;
        }
    }
}

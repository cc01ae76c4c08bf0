//! Every component of every gradient against central differences, L of R-SVGP among them.

use crate::problem::{KERNELS, draws, problem};
use crate::support::pseudo;
use proptest::prelude::*;
use rand::RngExt;
use sparsegp::data::{Minibatch, Source};
use sparsegp::engine::Cpu;
use sparsegp::inverse_free::Preconditioner;
use sparsegp::likelihoods;
use sparsegp::means;
use sparsegp::model::Model;

const ALL: [Preconditioner; 3] =
    [Preconditioner::Inverse, Preconditioner::Identity, Preconditioner::Naive];

/// Compares the gradient in the free numbers with fourth-order central differences.
fn check(model: &Model, data: &dyn Source, what: &str) -> Result<(), TestCaseError> {
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
        let mut nearest = difference(1e-4);
        if (own - nearest).abs() >= room {
            nearest = difference(1e-5);
        }
        prop_assert!((own - nearest).abs() < room, "{what} {at}: {own} {nearest} ({largest})");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn gaussian_noise(
        draw in draws(KERNELS).prop_filter("small enough", |d| d.m <= 6 && d.n <= 30),
        how in 0_usize..3,
    ) {
        let mut problem = problem(&draw);
        for far in [None, Some(0.1), Some(1.0)] {
            let model = pseudo(&mut problem, draw.p, ALL[how], far);
            let mut data = problem.data.clone();
            data.weights = (0..draw.n).map(|_| problem.rng.random_range(0.0..2.5)).collect();
            data.extra = (0..draw.n).map(|_| problem.rng.random_range(0.0..0.4)).collect();
            data.y[(1, 0)] = f64::NAN;
            check(&model, &data, &format!("{draw:?} {:?} {far:?}", ALL[how]))?;
        }
    }

    #[test]
    fn other_likelihoods_by_minibatches(
        draw in draws(KERNELS).prop_filter("small enough", |d| d.m <= 5 && d.n <= 25),
        which in 0_usize..4,
    ) {
        let mut problem = problem(&draw);
        let spec = ["poisson", "bernoulli", "student-t", "softmax(classes=3)"][which];
        let likelihood = likelihoods::parse(spec).unwrap();
        let latents = likelihood.latents() * draw.p;
        problem.model.likelihood = likelihood;
        problem.model.mean = means::by_name(draw.mean, draw.d, latents).unwrap();
        let mut data = problem.data.clone();
        for p in 0..draw.p {
            for i in 0..draw.n {
                data.y[(i, p)] = match spec {
                    "student-t" => data.y[(i, p)],
                    "bernoulli" => (i % 2) as f64,
                    _ => (i % 3) as f64,
                };
            }
        }
        let data = Minibatch { rows: data, population: 3 * draw.n };
        for far in [None, Some(0.5)] {
            let model = pseudo(&mut problem, latents, Preconditioner::Inverse, far);
            check(&model, &data, &format!("{draw:?} {spec} {far:?}"))?;
        }
    }
}

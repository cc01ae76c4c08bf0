//! At the optimal q an uncollapsed bound is the collapsed one; one natural step of size 1 leads there.

use crate::problem::{KERNELS, draws, problem};
use crate::support::{part, random_q, with_q};
use proptest::prelude::*;
use sparsegp::data::Source;
use sparsegp::engine::{Cpu, Want};
use sparsegp::linalg::Mat;
use sparsegp::methods::Uncollapsed;
use sparsegp::variational::Variational;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// 2009 and Hensman's, 2025 and its uncollapsed form share q's optimum and the value there; the
    /// gradients agree too (envelope), and those of q vanish.
    #[test]
    fn at_the_optimal_q_the_collapsed_bounds_are_reached(draw in draws(KERNELS)) {
        let problem = problem(&draw);
        let engine = Cpu::default();
        for (collapsed, uncollapsed) in [("titsias2009", "svgp"), ("titsias2025", "svgp2025")] {
            let of = problem.with(collapsed);
            let best = of.evaluate(&engine, &problem.data).unwrap();
            let posterior = of.posterior(&engine, &problem.data).unwrap();
            let root = posterior.q_sqrt()[0].to_owned();
            let roots = vec![root; draw.p];
            let q = Variational::new(posterior.q_mu(), &roots, false, true).unwrap();
            let model = with_q(&problem, uncollapsed, q);
            let own = model.evaluate(&engine, &problem.data).unwrap();
            let size = 1.0 + best.value.abs();
            prop_assert!((own.value - best.value).abs() < 1e-9 * size, "{} {}", own.value, best.value);
            let largest = best.gradient.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
            let room = 1e-7 * largest + 10.0 * crate::problem::rounding(collapsed, &problem, &best);
            for (at, (own, best)) in own.gradient.iter().zip(&best.gradient).enumerate() {
                prop_assert!((own - best).abs() < room, "{draw:?} {uncollapsed} {at}: {own} {best}");
            }
            for own in &own.gradient[best.gradient.len()..] {
                prop_assert!(own.abs() < room, "{draw:?} {uncollapsed}: {own} in q, {room}");
            }
        }
    }

    /// From any q, whitened or not, one natural step of size 1 on all rows is the optimum.
    #[test]
    fn one_natural_step_solves_gaussian_noise(draw in draws(KERNELS), whitened in any::<bool>()) {
        let mut problem = problem(&draw);
        let engine = Cpu::default();
        let best = problem.evaluate("titsias2009").value;
        let q = random_q(draw.m, draw.p, false, whitened, &mut problem.rng);
        let mut model = with_q(&problem, "svgp", q);
        let method = Uncollapsed::of(model.method).unwrap();
        let mut step = method.step(&model, &engine, &problem.data, Want::Statistics).unwrap();
        step.natural(&mut model, 1.0).unwrap();
        let value = model.evaluate(&engine, &problem.data).unwrap().value;
        prop_assert!((value - best).abs() < 1e-8 * (1.0 + best.abs()), "{draw:?}: {value} {best}");
    }

    /// 2025 ≥ Hensman's at any q; factors v = 1 give Hensman's; minibatches are unbiased.
    #[test]
    fn order_and_minibatches(draw in draws(KERNELS)) {
        let mut problem = problem(&draw);
        let engine = Cpu::default();
        let q = random_q(draw.m, draw.p, false, true, &mut problem.rng);
        let hensman = with_q(&problem, "svgp", q.clone());
        let spherical = with_q(&problem, "svgp-spherical", q.clone().with_factors());
        let tighter = with_q(&problem, "svgp2025", q);
        let value = |m: &sparsegp::model::Model, d: &dyn Source| m.evaluate(&engine, d).unwrap();
        let low = value(&hensman, &problem.data).value;
        let one = value(&spherical, &problem.data).value;
        let high = value(&tighter, &problem.data).value;
        prop_assert!((low - one).abs() < 1e-11 * (1.0 + low.abs()));
        prop_assert!(high >= low - 1e-9 * (1.0 + low.abs()), "{high} {low}");
        for model in [&hensman, &spherical, &tighter] {
            let all = value(model, &problem.data);
            let parts: Vec<_> = (0..3)
                .map(|from| part(&problem.data, from, 3))
                .map(|p| (p.rows() as f64 / draw.n as f64, value(model, &p)))
                .collect();
            // with the parts' shares as probabilities
            let mean: f64 = parts.iter().map(|(share, e)| share * e.value).sum();
            prop_assert!((mean - all.value).abs() < 1e-9 * (1.0 + all.value.abs()));
            let largest = all.gradient.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
            for (at, full) in all.gradient.iter().enumerate() {
                let mean: f64 = parts.iter().map(|(share, e)| share * e.gradient[at]).sum();
                prop_assert!((mean - full).abs() < 1e-8 * largest, "{at}: {mean} {full}");
            }
        }
    }
}

/// The marginal form of a whitened q gives the same value, and predictions.
#[test]
fn both_forms_are_one_posterior() {
    let draw = crate::problem::Draw {
        n: 40,
        m: 7,
        d: 2,
        p: 2,
        kernel: "matern32 + linear",
        mean: "linear",
        seed: 5,
    };
    let mut problem = problem(&draw);
    let q = random_q(draw.m, draw.p, false, true, &mut problem.rng);
    let whitened = with_q(&problem, "svgp", q.clone());
    let posterior = sparsegp::model::Posterior::of_q(&whitened).unwrap();
    let (mu, _) = posterior.q_u().unwrap();
    let l = posterior.factor().l.clone();
    let roots: Vec<Mat<f64>> = (0..2).map(|p| &l * q.root(p)).collect();
    let marginal = Variational::new(mu.as_ref(), &roots, false, false).unwrap();
    let marginal = with_q(&problem, "svgp", marginal);
    let engine = Cpu::default();
    let a = whitened.evaluate(&engine, &problem.data).unwrap().value;
    let b = marginal.evaluate(&engine, &problem.data).unwrap().value;
    assert!((a - b).abs() < 1e-10 * a.abs(), "{a} {b}");
    let other = sparsegp::model::Posterior::of_q(&marginal).unwrap();
    let (mean, variance) = posterior.predict_f(problem.data.x.as_ref()).unwrap();
    let (other_mean, other_variance) = other.predict_f(problem.data.x.as_ref()).unwrap();
    assert!((mean - other_mean).norm_max() < 1e-10);
    assert!((variance - other_variance).norm_max() < 1e-10);
}

/// Variances by one triangular product (S below I), by two (S beyond I, where there is no such product), and
/// some of each, are the diagonal of the full covariance, which knows neither. What differs is rounding: ε
/// times the condition of L, at most √(M/10⁻⁶) ≈ 3000, times the prior variance.
#[test]
fn variances_of_any_q_are_the_diagonal() {
    let draw = crate::problem::Draw {
        n: 40,
        m: 9,
        d: 2,
        p: 3,
        kernel: "matern32 + linear",
        mean: "zero",
        seed: 17,
    };
    let mut problem = problem(&draw);
    let q = random_q(draw.m, draw.p, false, true, &mut problem.rng);
    let at = problem.data.x.as_ref();
    for scales in [[0.3, 0.2, 0.1], [4.0, 3.0, 2.0], [0.3, 4.0, 0.2]] {
        let roots: Vec<Mat<f64>> =
            (0..3).map(|l| Mat::from_fn(9, 9, |i, j| scales[l] * q.root(l)[(i, j)])).collect();
        let own = Variational::new(q.mean().as_ref(), &roots, false, true).unwrap();
        let posterior = sparsegp::model::Posterior::of_q(&with_q(&problem, "svgp", own)).unwrap();
        let (mean, variance) = posterior.predict_f(at).unwrap();
        let (full_mean, full) = posterior.predict_f_full(at).unwrap();
        assert!((mean - full_mean).norm_max() < 1e-11);
        let largest = variance.norm_max();
        assert!(variance.norm_max() > 0.0);
        for (l, covariance) in full.iter().enumerate() {
            for i in 0..draw.n {
                let apart = (variance[(i, l)] - covariance[(i, i)]).abs();
                assert!(apart < 1e-11 * (1.0 + largest), "{scales:?} {l} {i}: {apart:e}");
            }
        }
    }
}

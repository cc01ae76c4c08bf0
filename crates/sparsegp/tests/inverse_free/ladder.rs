//! Where the two bounds stand: equalities, inequalities and what only seems to be one.

use crate::problem::{KERNELS, ROUGH, draws, problem};
use crate::support::{as_l, exact_root, flat, prior, pseudo, settled};
use proptest::prelude::*;
use sparsegp::Error;
use sparsegp::data::{InMemory, Minibatch};
use sparsegp::engine::{Cpu, Want};
use sparsegp::inverse_free::{LSpace, Preconditioner, Tilde, kl_gap};
use sparsegp::likelihoods;
use sparsegp::linalg::{Cholesky, Jitter, Mat, column};
use sparsegp::methods::{Uncollapsed, find};
use sparsegp::model::{Model, inducing_param};
use sparsegp::params::Param;
use sparsegp::variational::Variational;

const ALL: [Preconditioner; 3] =
    [Preconditioner::Inverse, Preconditioner::Identity, Preconditioner::Naive];

fn bound(model: &Model, data: &InMemory) -> f64 {
    model.evaluate(&Cpu::default(), data).unwrap().value
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0_f64, |m, v| m.max(v.abs()))
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()))
}

/// `svgp` with the moments of this model's q(u).
fn as_svgp(model: &Model, data: &InMemory) -> Model {
    let posterior = model.posterior(&Cpu::default(), data).unwrap();
    let (mean, covariances) = posterior.q_u().unwrap();
    let roots: Vec<Mat<f64>> = covariances
        .iter()
        .map(|s| Cholesky::new(s.as_ref(), Jitter::Absolute(0.0), "S").unwrap().l)
        .collect();
    let q = Variational::new(mean.as_ref(), &roots, false, false).unwrap();
    Model { q: Some(q), method: find("svgp").unwrap().method, ..model.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn l_is_svgp_at_its_moments_and_r_below_at_its_own(
        draw in draws(ROUGH).prop_filter("small enough", |d| d.m <= 8),
        how in 0_usize..3,
    ) {
        let mut problem = problem(&draw);
        let r = pseudo(&mut problem, draw.p, ALL[how], Some(0.6));
        let l = as_l(&r);
        let data = &problem.data;
        let (own, matched) = (bound(&l, data), bound(&as_svgp(&l, data), data));
        prop_assert!((own - matched).abs() < 1e-8 * (1.0 + own.abs()), "{draw:?} {own} {matched}");
        // R-SVGP's variances are those of its q(u), and its KL divergence is above that of it
        let (own, matched) = (bound(&r, data), bound(&as_svgp(&r, data), data));
        prop_assert!(own <= matched + 1e-8 * (1.0 + own.abs()), "{draw:?} {own} {matched}");
    }

    #[test]
    fn at_the_optimal_t_values_agree_and_gradients_by_the_right_preconditioner(
        draw in draws(KERNELS).prop_filter("small enough", |d| d.m <= 8),
    ) {
        let mut problem = problem(&draw);
        let engine = Cpu::default();
        for preconditioner in ALL {
            let mut r = settled(&pseudo(&mut problem, draw.p, preconditioner, Some(0.5)));
            let l = as_l(&r);
            let of_l = l.evaluate(&engine, &problem.data).unwrap();
            let of_r = r.evaluate(&engine, &problem.data).unwrap();
            let size = 1.0 + of_l.value.abs();
            prop_assert!((of_l.value - of_r.value).abs() < 1e-9 * size, "{draw:?} {preconditioner:?}");
            let q = r.q.as_mut().unwrap();
            let of_root = &of_r.gradient[of_l.gradient.len()..];
            let room = 1e-6 * (1.0 + largest(&of_l.gradient));
            let difference = apart(&of_l.gradient, &of_r.gradient);
            // all but that of L, which is 0: T is at its optimum
            let root = largest(of_root);
            q.root = None;
            if preconditioner == Preconditioner::Naive {
                // by what the mean's gradient is worth: m̃ is random, and the bound far from stationary
                let (m, of_mean) = (draw.m * draw.p, of_l.gradient.len());
                let mean = largest(&of_l.gradient[of_mean - draw.m - m..of_mean - draw.m]);
                prop_assert!(difference > 1e-6 * mean || mean < 1e-3, "{draw:?}: {difference}");
            } else {
                prop_assert!(difference < room, "{draw:?} {preconditioner:?}: {difference} {room}");
                prop_assert!(root < room, "{draw:?} {preconditioner:?}: {root} {room}");
            }
        }
    }

    #[test]
    fn another_t_is_lower_at_equal_weights_where_likelihoods_are_log_concave(
        draw in draws(KERNELS).prop_filter("small enough", |d| d.m <= 8),
        far in 0.01_f64..2.0,
        which in 0_usize..3,
    ) {
        let mut problem = problem(&draw);
        let spec = ["gaussian", "poisson", "bernoulli"][which];
        problem.model.likelihood = likelihoods::parse(spec).unwrap();
        for p in 0..draw.p {
            (0..draw.n).for_each(|i| {
                if spec != "gaussian" {
                    problem.data.y[(i, p)] = (i % 2) as f64;
                }
            });
        }
        let r = pseudo(&mut problem, draw.p, Preconditioner::Identity, Some(far));
        // the expectation of a count's e^f overflows where a variance is above 1400: with a T that
        // is far, or by only a polynomial
        let value = |model: &Model| match model.evaluate(&Cpu::default(), &problem.data) {
            Ok(evaluation) => evaluation.value,
            Err(Error::NonFinite { value, .. }) if value == f64::NEG_INFINITY => value,
            Err(error) => panic!("{error}"),
        };
        let (own, of_l) = (value(&r), value(&as_l(&r)));
        if of_l == f64::NEG_INFINITY {
            prop_assert!(spec == "poisson" && own == of_l, "{draw:?} {spec} {far}: {own}");
            return Ok(());
        }
        prop_assert!(own <= of_l + 1e-9 * (1.0 + of_l.abs()), "{draw:?} {spec} {far}: {own} {of_l}");
        // and the gap is no more than E tells
        let posterior = |model: &Model| {
            let posterior = model.posterior(&Cpu::default(), &problem.data).unwrap();
            posterior.predict_f(problem.data.x.as_ref()).unwrap().1
        };
        let (upper, exact) = (posterior(&r), posterior(&as_l(&r)));
        let q = r.q.as_ref().unwrap();
        let (mut l, mut lspaces) = (Mat::new(), [LSpace::default(), LSpace::default()]);
        q.read_t_root(&mut l).unwrap();
        let k = prior(&r);
        let tilde = Tilde { kuu: k.as_ref(), jitter: 0.0, lambda: q.second.value() };
        let m = q.pseudo_targets();
        lspaces[0].relaxed(tilde, l.as_ref(), m, Preconditioner::Identity);
        lspaces[1].likelihood(tilde, m, Preconditioner::Identity).unwrap();
        let e = lspaces[0].residual().unwrap();
        let rho = sparsegp::linalg::dot(e, e).sqrt();
        let gap = lspaces[0].kl() - lspaces[1].kl();
        let room = 1e-9 * (1.0 + lspaces[1].kl().abs());
        prop_assert!(gap >= -room && gap <= kl_gap(rho, rho, draw.p) + room, "{draw:?} {gap} {rho}");
        for i in 0..draw.n {
            prop_assert!(upper[(i, 0)] >= exact[(i, 0)] - 1e-9);
        }
    }

    #[test]
    fn at_the_inputs_with_the_noise_as_lambda_l_is_the_evidence(
        draw in draws(ROUGH).prop_filter("small enough", |d| d.n <= 25),
    ) {
        let mut problem = problem(&draw);
        let n = draw.n;
        problem.model.inducing = vec![inducing_param(problem.data.x.as_ref())];
        let mut l = pseudo(&mut problem, draw.p, Preconditioner::Inverse, None);
        l.jitter = Jitter::Absolute(0.0);
        let noise = l.noise();
        l.set("q.lambda", &vec![noise; n]).unwrap();
        let mut offset = Mat::zeros(n, draw.p);
        l.mean.evaluate(problem.data.x.as_ref(), offset.as_mut());
        l.set("q.mu", &flat(&(&problem.data.y - &offset))).unwrap();
        let exact = Model {
            method: find("exact").unwrap().method,
            inducing: Vec::new(),
            q: None,
            ..l.clone()
        };
        let (own, evidence) = (bound(&l, &problem.data), bound(&exact, &problem.data));
        prop_assert!((own - evidence).abs() < 1e-8 * (1.0 + own.abs()), "{draw:?} {own} {evidence}");
    }

    #[test]
    fn permuted_points_and_doubled_batches_change_nothing(
        draw in draws(KERNELS).prop_filter("some points", |d| (2..=8).contains(&d.m)),
    ) {
        let mut problem = problem(&draw);
        let model = pseudo(&mut problem, draw.p, Preconditioner::Inverse, None);
        let own = bound(&model, &problem.data);
        let room = 1e-9 * (1.0 + own.abs());
        let order: Vec<usize> = (0..draw.m).map(|i| (i + 1) % draw.m).collect();
        let mut turned = model.clone();
        let z = model.inducing_points().unwrap();
        let z = Mat::from_fn(draw.m, draw.d, |i, j| z[(order[i], j)]);
        turned.inducing = vec![inducing_param(z.as_ref())];
        let pick = |values: &[f64]| -> Vec<f64> {
            values.chunks_exact(draw.m).flat_map(|c| order.iter().map(|i| c[*i])).collect()
        };
        let q = model.q.as_ref().unwrap();
        turned.set("q.mu", &pick(q.first.value())).unwrap();
        turned.set("q.lambda", &pick(q.second.value())).unwrap();
        prop_assert!((bound(&turned, &problem.data) - own).abs() < room, "{draw:?}");
        // a factor belongs to an order: that of R-SVGP is factorised again
        let r = settled(&pseudo(&mut problem, draw.p, Preconditioner::Inverse, Some(0.3)));
        let twice: Vec<usize> = (0..draw.n).chain(0..draw.n).collect();
        let doubled = Minibatch { rows: problem.data.picked(&twice), population: draw.n };
        for model in [&model, &r] {
            let method = Uncollapsed::of(model.method).unwrap();
            let step = method.step(model, &Cpu::default(), &doubled, Want::Value).unwrap();
            let once = bound(model, &problem.data);
            prop_assert!((step.value - once).abs() < 1e-9 * (1.0 + once.abs()), "{draw:?}");
        }
    }

    #[test]
    fn equal_columns_count_for_themselves(
        draw in draws(KERNELS).prop_filter("small enough", |d| d.m <= 8),
    ) {
        let mut problem = problem(&draw);
        problem.model.mean = sparsegp::means::by_name("zero", draw.d, 1).unwrap();
        problem.data.y = problem.data.y.as_ref().subcols(0, 1).to_owned();
        let one = pseudo(&mut problem, 1, Preconditioner::Inverse, Some(0.4));
        let mut three = one.clone();
        three.mean = sparsegp::means::by_name("zero", draw.d, 3).unwrap();
        let q = one.q.as_ref().unwrap();
        let mut own = Variational::pseudo_observations(draw.m, 3, Preconditioner::Inverse, true);
        own.root.clone_from(&q.root);
        own.second.clone_from(&q.second);
        let repeated = q.first.value().repeat(3);
        let keep = |param: &mut Param| param.set("q.mu", &repeated);
        keep(&mut own.first).unwrap();
        three.q = Some(own);
        let single = bound(&one, &problem.data);
        let y = problem.data.y.clone();
        problem.data.y = Mat::from_fn(draw.n, 3, |i, _| y[(i, 0)]);
        let all = bound(&three, &problem.data);
        prop_assert!((all - 3.0 * single).abs() < 1e-9 * (1.0 + all.abs()), "{draw:?}");
    }

    #[test]
    fn predictions_are_those_of_q_at_the_points_and_away(
        draw in draws(ROUGH).prop_filter("small enough", |d| d.m <= 8),
    ) {
        let mut problem = problem(&draw);
        for far in [None, Some(0.7)] {
            let model = pseudo(&mut problem, draw.p, Preconditioner::Inverse, far);
            let posterior = model.posterior(&Cpu::default(), &problem.data).unwrap();
            let x = problem.data.x.as_ref();
            let (mean, variance) = posterior.predict_f(x).unwrap();
            let (again, full) = posterior.predict_f_full(x).unwrap();
            prop_assert!(apart(&flat(&mean), &flat(&again)) < 1e-10);
            prop_assert!(apart(&flat(&mean), &flat(&posterior.predict_mean(x).unwrap())) < 1e-10);
            for (p, covariance) in full.iter().enumerate() {
                let diagonal: Vec<f64> = (0..draw.n).map(|i| covariance[(i, i)]).collect();
                prop_assert!(apart(&diagonal, column(variance.as_ref(), p)) < 1e-9);
            }
            // as `svgp` with the same q(u) predicts
            let same = as_svgp(&model, &problem.data);
            let same = same.posterior(&Cpu::default(), &problem.data).unwrap();
            let (mean_of, variance_of) = same.predict_f(x).unwrap();
            prop_assert!(apart(&flat(&mean), &flat(&mean_of)) < 1e-7, "{draw:?} {far:?}");
            prop_assert!(apart(&flat(&variance), &flat(&variance_of)) < 1e-7, "{draw:?} {far:?}");
        }
    }
}

/// Not log-concave: a larger variance may raise the expectation, and R-SVGP's bound be above L-SVGP's. Both
/// remain bounds.
#[test]
fn for_student_t_the_relaxed_bound_may_be_the_higher_one() {
    let draw =
        crate::problem::Draw { n: 60, m: 4, d: 1, p: 1, kernel: "rbf", mean: "zero", seed: 5 };
    let mut problem = problem(&draw);
    problem.model.likelihood = likelihoods::parse("student-t(df=2.5, scale=0.5)").unwrap();
    // outliers
    (0..draw.n).for_each(|i| problem.data.y[(i, 0)] = if i % 2 == 0 { 8.0 } else { -8.0 });
    problem.data.weights = vec![200.0; draw.n];
    let found = (0..200).any(|_| {
        let r = pseudo(&mut problem, 1, Preconditioner::Identity, Some(0.3));
        bound(&r, &problem.data) > bound(&as_l(&r), &problem.data) + 1e-6
    });
    assert!(found);
}

/// At equal preconditioned m̃ the means differ, and R-SVGP's bound may be above L-SVGP's by any amount: its
/// mean weights are Cm̃, at which L-SVGP is above it.
#[test]
fn at_an_equal_preconditioned_mean_there_is_no_order() {
    let draw =
        crate::problem::Draw { n: 20, m: 5, d: 1, p: 1, kernel: "rbf", mean: "zero", seed: 3 };
    let mut problem = problem(&draw);
    let found = (0..200).any(|_| {
        let r = pseudo(&mut problem, 1, Preconditioner::Inverse, Some(0.5));
        let l = as_l(&r);
        let (own, of_l) = (bound(&r, &problem.data), bound(&l, &problem.data));
        let q = r.q.as_ref().unwrap();
        let (k, mut root, mut lspace) = (prior(&r), Mat::new(), LSpace::default());
        q.read_t_root(&mut root).unwrap();
        let tilde = Tilde { kuu: k.as_ref(), jitter: 0.0, lambda: q.second.value() };
        let (m, inverse) = (q.pseudo_targets(), Preconditioner::Inverse);
        lspace.relaxed(tilde, root.as_ref(), m, inverse);
        let mut at_weights = l.clone();
        let mut other =
            Variational::pseudo_observations(draw.m, 1, Preconditioner::Identity, false);
        other.second.clone_from(&q.second);
        at_weights.q = Some(other);
        at_weights.set("q.mu", &flat(&lspace.weights())).unwrap();
        let above = bound(&at_weights, &problem.data);
        assert!(own <= above + 1e-9 * (1.0 + own.abs()), "{own} {above}");
        own > of_l + 1e-6
    });
    assert!(found);
}

/// `settle` finds what a factorisation finds.
#[test]
fn the_settled_t_is_the_inverse() {
    let draw = crate::problem::Draw {
        n: 30,
        m: 12,
        d: 2,
        p: 1,
        kernel: "matern32",
        mean: "zero",
        seed: 9,
    };
    let mut problem = problem(&draw);
    let r = settled(&pseudo(&mut problem, 1, Preconditioner::Inverse, Some(1.5)));
    let mut l = Mat::new();
    r.q.as_ref().unwrap().read_t_root(&mut l).unwrap();
    assert!(apart(&flat(&l), &flat(&exact_root(&r))) < 1e-9);
}

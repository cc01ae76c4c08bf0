//! q as prior times sites: gradients, steps and fixed points of every tying.

use crate::gradients::check;
use crate::problem::{KERNELS, Problem, draws, problem};
use crate::support::{part, with_q};
use proptest::prelude::*;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use sparsegp::data::Source;
use sparsegp::engine::{Cpu, Want};
use sparsegp::likelihoods;
use sparsegp::linalg::Jitter;
use sparsegp::linalg::Mat;
use sparsegp::methods::{Keeps, Method, Tvgp, Uncollapsed, find, uncollapsed};
use sparsegp::model::{Model, Posterior, inducing_param};
use sparsegp::variational::{Tying, Variational};

/// Kernels whose Kuu has full rank: random sites know nothing of its null space, and differences of what
/// they make there have no digits.
const FULL_RANK: &[&str] = &[
    "rbf",
    "rbf(ard=false)",
    "matern12",
    "matern32",
    "matern52(active_dims=[0])",
    "rbf + linear",
    "matern32 + white + constant",
    "(rbf + constant) * matern12",
];

/// Sites with every bound.
static BOUNDS: [Uncollapsed; 3] = [
    Uncollapsed {
        name: "hensman",
        bound: &uncollapsed::Hensman,
        keeps: Keeps::Sites,
        sampler: None,
    },
    Uncollapsed {
        name: "titsias2025",
        bound: &uncollapsed::Titsias2025,
        keeps: Keeps::Sites,
        sampler: None,
    },
    Uncollapsed {
        name: "spherical",
        bound: &uncollapsed::Spherical,
        keeps: Keeps::Sites,
        sampler: None,
    },
];

/// Random sites.
fn random_sites(
    points: usize,
    rows: usize,
    latents: usize,
    tying: Tying,
    rng: &mut ChaCha8Rng,
) -> Variational {
    let size = if tying == Tying::Untied { rows } else { points };
    let mut q = Variational::sites(size, latents, tying);
    let mut draw = |n: usize| -> Vec<f64> { (0..n).map(|_| rng.random_range(-0.7..0.9)).collect() };
    let first = draw(size * latents);
    let second: Vec<f64> = if tying == Tying::Untied {
        draw(size * latents).into_iter().map(|v| 0.6 * v.max(0.0)).collect()
    } else {
        (0..latents)
            .flat_map(|_| {
                let a = draw(size * size);
                let entry = move |i: usize, j: usize| -> f64 {
                    (0..size).map(|k| a[i * size + k] * a[j * size + k]).sum::<f64>() / size as f64
                };
                (0..size)
                    .flat_map(|j| (j..size).map(move |i| (i, j)))
                    .map(move |(i, j)| entry(i, j))
                    .collect::<Vec<_>>()
            })
            .collect()
    };
    q.first.set("first", &first).unwrap();
    q.second.set("second", &second).unwrap();
    q
}

/// The problem's model with sites.
fn with_sites(problem: &mut Problem, method: &'static Uncollapsed, tying: Tying) -> Model {
    let (n, p) = (problem.data.rows(), problem.data.outputs());
    let m = problem.model.inducing_points().unwrap().nrows();
    let mut q = random_sites(m, n, p, tying, &mut problem.rng);
    if method.bound.has_factors() {
        q = q.with_factors();
    }
    let mut model = Model { method, q: Some(q), ..problem.model.clone() };
    if tying == Tying::Kernel {
        // sums weighted by covariances are not any matrices: what a step makes of none
        let q = Variational::sites(m, p, tying);
        let v = model.q.take().and_then(|q| q.v);
        model.q = Some(Variational { v, ..q });
        advance(&mut model, &problem.data, 0.7);
    }
    model
}

/// Moves sites by a step.
fn advance(model: &mut Model, data: &dyn Source, rate: f64) {
    let method = Uncollapsed::of(model.method).unwrap();
    let mut step = method.step(model, &Cpu::default(), data, Want::Statistics).unwrap();
    step.natural(model, rate).unwrap();
}

/// Mean and covariances of u.
fn q_u(model: &Model, data: &dyn Source) -> (Mat<f64>, Vec<Mat<f64>>) {
    model.posterior(&Cpu::default(), data).unwrap().q_u().unwrap()
}

fn distance(a: &(Mat<f64>, Vec<Mat<f64>>), b: &(Mat<f64>, Vec<Mat<f64>>)) -> f64 {
    let pairs = a.1.iter().zip(&b.1);
    pairs.map(|(a, b)| (a - b).norm_max()).fold((&a.0 - &b.0).norm_max(), f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Every bound and tying, with weights, missing targets and known noise.
    #[test]
    fn gradients_at_fixed_sites(
        draw in draws(FULL_RANK).prop_filter("small enough", |d| d.m <= 6 && d.n <= 30),
    ) {
        let mut problem = problem(&draw);
        for method in &BOUNDS {
            for (name, tying) in Tying::ALL {
                // sums by covariances magnify what Kuu is nearly singular in; vectors of another
                // program are the check there
                let rough = ["matern12", "white"].iter().any(|name| draw.kernel.contains(name));
                if tying == Tying::Kernel && !rough {
                    continue;
                }
                let model = with_sites(&mut problem, method, tying);
                let mut data = problem.data.clone();
                data.weights = (0..draw.n).map(|_| problem.rng.random_range(0.0..2.5)).collect();
                data.extra = (0..draw.n).map(|_| problem.rng.random_range(0.0..0.4)).collect();
                data.y[(1, 0)] = f64::NAN;
                check(&model, &data, &format!("{draw:?} {method:?} {name}"))?;
            }
        }
    }

    /// A step of sites of any tying is the step of q by its moments, on all rows and on some.
    #[test]
    fn steps_are_those_of_the_moments(draw in draws(KERNELS), rate in 0.05..1.0_f64) {
        let mut problem = problem(&draw);
        let some = part(&problem.data, 0, 2);
        for (name, tying) in Tying::ALL {
            let mut model = with_sites(&mut problem, &BOUNDS[0], tying);
            // from a state that steps have made: it has no negative sites
            advance(&mut model, &problem.data, 1.0);
            let posterior = model.posterior(&Cpu::default(), &problem.data).unwrap();
            let roots: Vec<Mat<f64>> = posterior.q_sqrt().iter().map(|r| r.to_owned()).collect();
            let q = Variational::new(posterior.q_mu(), &roots, false, true).unwrap();
            let mut moments = with_q(&problem, "svgp", q);
            let data: &dyn Source = if tying == Tying::Untied { &problem.data } else { &some };
            advance(&mut model, data, rate);
            advance(&mut moments, data, rate);
            let (a, b) = (q_u(&model, &problem.data), q_u(&moments, &problem.data));
            let size = 1.0 + b.0.norm_max().max(b.1[0].norm_max());
            prop_assert!(distance(&a, &b) < 1e-7 * size, "{draw:?} {name}: {}", distance(&a, &b));
        }
    }

    /// One step of size 1 on Gaussian noise is the collapsed optimum; untied sites stay there when the
    /// hyperparameters move; a further step moves nothing.
    #[test]
    fn gaussian_noise_is_solved_at_once(draw in draws(KERNELS)) {
        let mut problem = problem(&draw);
        let engine = Cpu::default();
        for (name, tying) in Tying::ALL {
            let mut model = with_sites(&mut problem, &BOUNDS[0], tying);
            advance(&mut model, &problem.data, 1.0);
            let best = problem.evaluate("titsias2009").value;
            let value = model.evaluate(&engine, &problem.data).unwrap().value;
            let room = 1e-8 * (1.0 + best.abs());
            prop_assert!((value - best).abs() < room, "{draw:?} {name}: {value} {best}");
            let before = q_u(&model, &problem.data);
            advance(&mut model, &problem.data, 0.7);
            let moved = distance(&before, &q_u(&model, &problem.data));
            let size = 1.0 + before.0.norm_max().max(before.1[0].norm_max());
            prop_assert!(moved < 1e-8 * size, "{draw:?} {name}: {moved}");
            if tying == Tying::Untied {
                let mut other = problem.with("titsias2009");
                for model in [&mut other, &mut model] {
                    for kernel in &mut model.kernels {
                        for (path, param) in kernel.params_mut() {
                            // up, or down where there is no room above (an exponent below 2)
                            let moved = |by: f64| -> Vec<f64> {
                                param.value().iter().map(|v| by * v).collect()
                            };
                            let (up, down) = (moved(1.3), moved(0.7));
                            param.set(&path, &up).or_else(|_| param.set(&path, &down)).unwrap();
                        }
                    }
                }
                let best = other.evaluate(&engine, &problem.data).unwrap().value;
                let value = model.evaluate(&engine, &problem.data).unwrap().value;
                let room = 1e-8 * (1.0 + best.abs());
                prop_assert!((value - best).abs() < room, "{draw:?} elsewhere: {value} {best}");
            }
        }
    }
}

/// Without inducing points: the gradient at any sites, for one and several latent functions.
#[test]
fn sites_of_all_rows_have_their_gradient() {
    for (seed, (likelihood, kernel)) in [
        ("gaussian", "rbf"),
        ("bernoulli(link=logit)", "matern32"),
        ("poisson", "rbf + constant"),
        ("student-t(df=4, scale=0.4)", "matern52"),
        ("heteroscedastic", "rbf(ard=false)"),
        ("softmax(classes=3)", "matern32 + white"),
    ]
    .into_iter()
    .enumerate()
    {
        let seed = seed as u64;
        let draw = crate::problem::Draw { n: 14, m: 3, d: 2, p: 1, kernel, mean: "zero", seed };
        let mut problem = problem(&draw);
        let parsed = likelihoods::parse(likelihood).unwrap();
        let latents = parsed.latents();
        for i in 0..14 {
            let y = problem.data.y[(i, 0)];
            if parsed.classes().is_some() || likelihood == "poisson" {
                problem.data.y[(i, 0)] = (1.5 * y.abs()).floor().min(1.0);
            }
        }
        problem.data.weights = (0..14).map(|i| 0.3 + 0.1 * f64::from(i)).collect();
        problem.data.y[(4, 0)] = f64::NAN;
        let model = Model {
            likelihood: parsed,
            mean: sparsegp::means::by_name("constant", 2, latents).unwrap(),
            inducing: Vec::new(),
            q: Some(random_sites(3, 14, latents, Tying::Untied, &mut problem.rng)),
            method: find("tvgp").unwrap().method,
            ..problem.model.clone()
        };
        check(&model, &problem.data, &format!("{likelihood} {kernel}")).unwrap();
    }
}

/// One step of size 1 on Gaussian noise is exact inference, at any hyperparameters of the kernel after
/// it; inducing points at all inputs give the same.
#[test]
fn sites_of_all_rows_are_exact_for_gaussian_noise() {
    let draw = crate::problem::Draw {
        n: 30,
        m: 5,
        d: 2,
        p: 2,
        kernel: "matern12 + linear",
        mean: "linear",
        seed: 8,
    };
    let problem = problem(&draw);
    let engine = Cpu::default();
    let of = |method: &str| Model { method: find(method).unwrap().method, ..problem.model.clone() };
    let mut full = of("tvgp");
    full.inducing = Vec::new();
    full.q = Some(Variational::sites(30, 2, Tying::Untied));
    let method = Tvgp::of(full.method).unwrap();
    method.step(&mut full, &problem.data, 1.0).unwrap();
    let mut exact = of("exact");
    exact.inducing = Vec::new();
    let mut sparse = Model { method: &BOUNDS[0], jitter: Jitter::Absolute(0.0), ..of("svgp") };
    sparse.inducing = vec![inducing_param(problem.data.x.as_ref())];
    sparse.q = Some(Variational::sites(30, 2, Tying::Untied));
    advance(&mut sparse, &problem.data, 1.0);
    for factor in [1.0, 1.4, 0.6] {
        let values = [&mut full, &mut exact, &mut sparse].map(|model| {
            for (path, param) in model.kernels[0].params_mut() {
                let moved: Vec<f64> = param.value().iter().map(|v| factor * v).collect();
                param.set(&path, &moved).unwrap();
            }
            model.evaluate(&engine, &problem.data).unwrap()
        });
        let [full_value, exact_value, sparse_value] = values.each_ref().map(|e| e.value);
        let room = 1e-8 * exact_value.abs();
        assert!((full_value - exact_value).abs() < room, "{factor}: {full_value} {exact_value}");
        assert!((sparse_value - exact_value).abs() < 10.0 * room, "{factor}: {sparse_value}");
        let kernel = exact.kernel().num_params();
        let largest = values[1].gradient.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
        for (a, b) in values[0].gradient.iter().zip(&values[1].gradient).take(kernel) {
            assert!((a - b).abs() < 1e-8 * largest, "{factor}: {a} {b}");
        }
    }
    // and its predictions, at the first hyperparameters' recomputed sites
    method.step(&mut full, &problem.data, 1.0).unwrap();
    let at = Mat::from_fn(7, 2, |i, j| 0.3 * i as f64 - 0.8 * j as f64);
    let [own, other] = [&full, &exact].map(|model| {
        model.posterior(&engine, &problem.data).unwrap().predict_f(at.as_ref()).unwrap()
    });
    assert!((&own.0 - &other.0).norm_max() < 1e-7 && (&own.1 - &other.1).norm_max() < 1e-7);
}

/// At the optimum of q all ties have the slopes of the bound in q's moments; away from it they differ.
#[test]
fn slopes_agree_at_the_fixed_point_and_nowhere_else() {
    let draw =
        crate::problem::Draw { n: 40, m: 6, d: 2, p: 1, kernel: "matern52", mean: "zero", seed: 5 };
    let mut problem = problem(&draw);
    for i in 0..40 {
        problem.data.y[(i, 0)] = f64::from(u8::from(problem.data.y[(i, 0)] > 0.0));
    }
    problem.model.likelihood = likelihoods::parse("bernoulli(link=logit)").unwrap();
    let engine = Cpu::default();
    let hyper = 1 + 2 + 12;
    for steps in [1, 200] {
        let mut all = Vec::new();
        for (_, tying) in Tying::ALL {
            let mut model = Model { method: &BOUNDS[0], ..problem.model.clone() };
            let size = if tying == Tying::Untied { 40 } else { 6 };
            model.q = Some(Variational::sites(size, 1, tying));
            for _ in 0..steps {
                advance(&mut model, &problem.data, 0.5);
            }
            all.push(model.evaluate(&engine, &problem.data).unwrap());
            if tying == Tying::Natural {
                let at = Posterior::of_q(&model).unwrap();
                let roots = [at.q_sqrt()[0].to_owned()];
                let q = Variational::new(at.q_mu(), &roots, false, true).unwrap();
                let moments = with_q(&problem, "svgp", q);
                all.push(moments.evaluate(&engine, &problem.data).unwrap());
            }
        }
        let largest = all[0].gradient[..hyper].iter().fold(0.0_f64, |m, g| m.max(g.abs()));
        for other in &all[1..] {
            assert!((other.value - all[0].value).abs() < 1e-9, "{steps} {}", other.value);
            let pairs = all[0].gradient.iter().zip(&other.gradient).take(hyper);
            let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            match steps {
                1 => assert!(apart > 1e-3 * largest, "{apart} of {largest}"),
                _ => assert!(apart < 1e-8 * largest, "{apart} of {largest}"),
            }
        }
    }
}

/// Curvature may be negative for outliers: sites are kept precisions, and the bound rises.
#[test]
fn outliers_do_not_break_the_sites() {
    let draw =
        crate::problem::Draw { n: 40, m: 8, d: 1, p: 1, kernel: "rbf", mean: "zero", seed: 11 };
    let mut problem = problem(&draw);
    for i in (0..40).step_by(7) {
        problem.data.y[(i, 0)] += 9.0;
    }
    problem.model.likelihood = likelihoods::parse("student-t(df=4, scale=0.3)").unwrap();
    let mut model = Model { method: &BOUNDS[0], ..problem.model.clone() };
    model.q = Some(Variational::sites(40, 1, Tying::Untied));
    let engine = Cpu::default();
    let mut value = model.evaluate(&engine, &problem.data).unwrap().value;
    let start = value;
    for _ in 0..40 {
        advance(&mut model, &problem.data, 0.3);
        value = model.evaluate(&engine, &problem.data).unwrap().value;
    }
    let precisions = model.q.as_ref().unwrap().second.value();
    assert!(precisions.iter().all(|p| *p >= 0.0) && precisions.contains(&0.0), "{precisions:?}");
    assert!(value > start + 10.0, "{start} {value}");
    // the equation of the mean, Sp = f, holds at the fixed point whatever was cut: both statistics are
    // made with the same precisions
    for _ in 0..400 {
        advance(&mut model, &problem.data, 0.3);
    }
    let method = Uncollapsed::of(model.method).unwrap();
    let step = method.step(&model, &engine, &problem.data, Want::Gradients).unwrap();
    let (first, second) = step.site_slopes().pop().unwrap();
    assert!(first.norm_max() < 1e-10, "{first:?}");
    assert!(second[0].norm_max() > 1e-5, "something was cut");
    // tied, it is the same q, without the rows
    let method: &dyn Method = &BOUNDS[0];
    let mut tied = model.clone();
    Uncollapsed::of(method).unwrap().tie(&mut tied, &engine, &problem.data).unwrap();
    assert_eq!(tied.q.as_ref().unwrap().tying(), Some(Tying::Natural));
    assert!(distance(&q_u(&model, &problem.data), &q_u(&tied, &problem.data)) < 1e-9);
}

//! Leave-one-out predictions against models that are conditioned on the other rows.

use crate::problem::{Draw, Problem, draws, problem};
use proptest::prelude::*;
use rand::RngExt;
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Scaling, Standardise, fit};
use sparsegp::kernels::Tape;
use sparsegp::likelihoods::{self, Target};
use sparsegp::linalg::{Jitter, Mat, Par, solve_lower};
use sparsegp::methods::{Tvgp, Uncollapsed, find};
use sparsegp::model::{LeaveOneOut, Model};
use sparsegp::variational::{Tying, Variational};

/// Kernels that look only at places, so that a row can be predicted for.
const PLACES: &[&str] = &[
    "rbf",
    "matern12",
    "matern52(active_dims=[0])",
    "rbf + linear",
    "(rbf + constant) * matern12",
];

fn all_but(n: usize, left_out: usize) -> Vec<usize> {
    (0..n).filter(|i| *i != left_out).collect()
}

fn leave_one_out(model: &Model, data: &InMemory) -> LeaveOneOut {
    let posterior = model.posterior(&Cpu::default(), data).expect("well posed");
    posterior.leave_one_out(model, data).expect("its own rows")
}

/// Compares every `step`th row with what a model conditioned on the others predicts there. `room` is for the
/// rounding of two factorisations.
fn check(model: &Model, data: &InMemory, step: usize, room: f64) -> Result<(), TestCaseError> {
    let n = data.x.nrows();
    let found = leave_one_out(model, data);
    for i in (0..n).step_by(step) {
        let others = data.picked(&all_but(n, i));
        let own = data.picked(&[i]);
        let posterior = model.posterior(&Cpu::default(), &others).expect("well posed");
        let (x, extra) = (own.x.as_ref(), &own.extra[..]);
        let (f, spread) = posterior.predict_f(x).expect("well posed");
        let (mean, variance) = posterior.predict_y(x, extra).expect("well posed");
        let name = model.method.name();
        for p in 0..data.y.ncols() {
            for (what, found, expected) in [
                ("f_mean", &found.f_mean, &f),
                ("f_variance", &found.f_variance, &spread),
                ("mean", &found.mean, &mean),
                ("variance", &found.variance, &variance),
            ] {
                let (a, b) = (found[(i, p)], expected[(0, p)]);
                prop_assert!((a - b).abs() <= room * (1.0 + b.abs()), "{name} {what} {i}: {a} {b}");
            }
            let mut one = Mat::from_fn(1, data.y.ncols(), |_, _| f64::NAN);
            one[(0, p)] = own.y[(0, p)];
            let density = posterior.predict_log_density(x, one.as_ref(), extra).expect("scored")[0];
            let log = found.log_density[(i, p)];
            // a slope of the density in mean or variance is |y − μ|/v or its square at most
            let scale = 1.0 + density.abs() / model.noise();
            prop_assert!(
                (log - density).abs() <= room * scale,
                "{name} density {i}: {log} {density}"
            );
        }
    }
    Ok(())
}

/// Rows with their own weights and noise variances.
fn uneven(problem: &mut Problem) {
    let (n, noise) = (problem.data.x.nrows(), problem.model.noise());
    problem.data.extra = (0..n).map(|_| noise * problem.rng.random_range(0.0..3.0)).collect();
    problem.data.weights = (0..n).map(|_| problem.rng.random_range(0.1..2.5)).collect();
    problem.data.weights[0] = 0.0;
}

proptest! {
    #![proptest_config(crate::config())]

    /// Condition numbers of G are at most Σ k/σ² ≤ 10⁵ here.
    #[test]
    fn exact_regression_is_conditioned_again(draw in draws(PLACES)) {
        let mut problem = problem(&draw);
        let model = problem.with("exact");
        check(&model, &problem.data, 7, 1e-8)?;
        // with weights each of a row, and one row that counts for nothing
        uneven(&mut problem);
        check(&model, &problem.data, 7, 1e-8)?;
        problem.data.weights[0] = 0.3;
        check(&model, &problem.data, 7, 1e-8)?;
    }

    /// The same for the collapsed methods, whose sites have the precision 1/σ² or 1/(σ² + αr). Solves with Kuu
    /// have a condition number of at most 10⁶.
    #[test]
    fn collapsed_posteriors_are_conditioned_again(draw in draws(PLACES)) {
        let problem = problem(&draw);
        for name in ["titsias2009", "titsias2025", "fitc", "pep(alpha=0.3)"] {
            check(&problem.with(name), &problem.data, 7, 1e-8)?;
        }
    }
}

/// A problem of 40 rows with q at its optimum by `steps` steps of size 1.
fn stepped(method: &str, spec: &str, steps: usize) -> (Model, InMemory) {
    let draw = Draw { n: 40, m: 7, d: 2, p: 1, kernel: "matern32", mean: "constant", seed: 8 };
    let mut problem = problem(&draw);
    let mut model = problem.model.clone();
    model.method = find(method).expect("registered").method;
    model.likelihood = likelihoods::parse(spec).expect("known");
    if model.likelihood.as_gaussian().is_none() {
        for i in 0..40 {
            let y = problem.data.y[(i, 0)];
            problem.data.y[(i, 0)] = f64::from(u8::from(y + 0.3 * (i as f64).sin() > 0.7));
        }
    }
    if method == "tvgp" {
        model.inducing = Vec::new();
    }
    let rows = if method == "tvgp" || method == "tsvgp" { 40 } else { 7 };
    model.q = Some(match method {
        "svgp" => Variational::prior(7, 1, false),
        _ => Variational::sites(rows, 1, Tying::Untied),
    });
    let data = problem.data;
    for _ in 0..steps {
        if let Ok(own) = Tvgp::of(model.method) {
            own.step(&mut model, &data, 1.0).expect("a step");
        } else {
            let own = Uncollapsed::of(model.method).expect("has a q");
            let want = sparsegp::engine::Want::Statistics;
            let mut step = own.step(&model, &Cpu::default(), &data, want).expect("a pass");
            step.natural(&mut model, 1.0).expect("a step");
        }
    }
    (model, data)
}

/// With Gaussian noise a step of size 1 makes the exact posterior, or that of the collapsed bound: leaving a row
/// out is the same too.
#[test]
fn sites_of_gaussian_noise_are_exact() {
    for (method, other) in [("tvgp", "exact"), ("tsvgp", "titsias2009"), ("svgp", "titsias2009")] {
        let (model, data) = stepped(method, "gaussian(variance=0.2)", 1);
        let found = leave_one_out(&model, &data);
        let exact =
            Model { method: find(other).expect("registered").method, q: None, ..model.clone() };
        let expected = leave_one_out(&exact, &data);
        for (a, b) in [
            (&found.f_mean, &expected.f_mean),
            (&found.f_variance, &expected.f_variance),
            (&found.mean, &expected.mean),
            (&found.variance, &expected.variance),
            (&found.log_density, &expected.log_density),
        ] {
            assert!((a - b).norm_max() < 1e-9, "{method} {}", (a - b).norm_max());
        }
        check(&exact, &data, 1, 1e-8).expect(other);
    }
}

/// log ∫ p(y | f) N(f; m, v) df by the trapezoidal rule, which is exact to rounding for smooth functions.
fn density(model: &Model, y: f64, m: f64, v: f64) -> f64 {
    let h = 0.005;
    let log = |t: f64| {
        let target = Target { y, extra: 1.0 };
        model.likelihood.log_prob(target, &[m + v.sqrt() * t]) - 0.5 * t * t
    };
    let sum: f64 = (-2400..=2400).map(|i| log(f64::from(i) * h).exp() * h).sum();
    (sum / (2.0 * std::f64::consts::PI).sqrt()).ln()
}

/// Without inducing points: the posterior of the other rows' sites.
#[test]
fn a_site_is_taken_away() {
    let (model, data) = stepped("tvgp", "bernoulli(link=logit)", 5);
    let tvgp = Tvgp::of(model.method).expect("has sites");
    let found = leave_one_out(&model, &data);
    for i in 0..40 {
        let kept = all_but(40, i);
        let (others, own) = (data.picked(&kept), data.picked(&[i]));
        let mut rest = model.clone();
        let q = rest.q.as_mut().expect("has sites");
        let pick = |values: &[f64]| kept.iter().map(|j| values[*j]).collect::<Vec<_>>();
        let (first, second) = (pick(q.first.value()), pick(q.second.value()));
        *q = Variational::sites(39, 1, Tying::Untied);
        q.first.set("q.lambda1", &first).expect("as many");
        q.second.set("q.lambda2", &second).expect("as many");
        let posterior = tvgp.posterior_at(&rest, &others.x).expect("well posed");
        let (f, spread) = posterior.predict_f(own.x.as_ref()).expect("well posed");
        assert!((found.f_mean[(i, 0)] - f[(0, 0)]).abs() < 1e-9, "{i}");
        assert!((found.f_variance[(i, 0)] - spread[(0, 0)]).abs() < 1e-9, "{i}");
        // 20 points of Gauss–Hermite against the trapezoidal rule
        let log = density(&model, data.y[(i, 0)], f[(0, 0)], spread[(0, 0)]);
        assert!((found.log_density[(i, 0)] - log).abs() < 1e-6, "{i} {log}");
    }
}

/// With inducing points: q(v)/t(φᵀv), a rank-one change of S⁻¹ and S⁻¹m, with the sites that steps have
/// converged to.
#[test]
fn a_site_of_inducing_points_is_taken_away() {
    let (model, data) = stepped("tsvgp", "bernoulli(link=logit)", 60);
    let (first, second) = {
        let q = model.q.as_ref().expect("has sites");
        (q.first.value().to_vec(), q.second.value().to_vec())
    };
    let posterior = model.posterior(&Cpu::default(), &data).expect("well posed");
    let found = posterior.leave_one_out(&model, &data).expect("its own rows");
    let z = posterior.points();
    let mut phi = Mat::zeros(40, 7);
    model.kernel().evaluate(data.x.as_ref(), Some(z), phi.as_mut(), &mut Tape::off());
    solve_lower(posterior.factor().l.as_ref(), phi.as_mut().transpose_mut(), Par::Seq);
    let mut prior = vec![0.0; 40];
    model.kernel().diag(data.x.as_ref(), &mut prior);
    let mut centre = Mat::zeros(40, 1);
    model.mean.evaluate(data.x.as_ref(), centre.as_mut());
    for i in 0..40 {
        // prior times all other sites
        let mut precision = Mat::<f64>::identity(7, 7);
        let mut natural = Mat::<f64>::zeros(7, 1);
        for j in all_but(40, i) {
            for a in 0..7 {
                natural[(a, 0)] += first[j] * phi[(j, a)];
                for b in 0..7 {
                    precision[(a, b)] += second[j] * phi[(j, a)] * phi[(j, b)];
                }
            }
        }
        let factor =
            sparsegp::linalg::Cholesky::new(precision.as_ref(), Jitter::Absolute(0.0), "B");
        let inverse = factor.expect("positive definite").inverse();
        let m = &inverse * &natural;
        let (mut mean, mut variance) = (centre[(i, 0)], prior[i]);
        for a in 0..7 {
            mean += phi[(i, a)] * m[(a, 0)];
            variance -= phi[(i, a)].powi(2);
            variance += (0..7).map(|b| phi[(i, a)] * inverse[(a, b)] * phi[(i, b)]).sum::<f64>();
        }
        assert!((found.f_mean[(i, 0)] - mean).abs() < 1e-8, "{i} {}", found.f_mean[(i, 0)] - mean);
        assert!((found.f_variance[(i, 0)] - variance).abs() < 1e-8, "{i}");
    }
}

/// In the data's units: of Gaussian noise log p(yᵢ | others) is the density of N(mean, variance) there.
#[test]
fn fitted_models_have_it_in_the_units_of_the_data() {
    let draw = Draw { n: 40, m: 7, d: 2, p: 2, kernel: "rbf", mean: "zero", seed: 4 };
    let data = problem(&draw).data;
    let y =
        Mat::from_fn(40, 2, |i, p| 100.0 * (p + 1) as f64 + 7.0 * (p + 1) as f64 * data.y[(i, p)]);
    let standard =
        Scaling::Own(Standardise { inputs: true, targets: true, robust: false, constants: false });
    let dataset = Dataset::from_arrays(data.x.clone(), y.clone(), standard).expect("rows");
    for method in ["exact", "titsias2025"] {
        let mut options = FitOptions {
            method: method.into(),
            inducing: Some(7),
            pilot: 0,
            set: vec![("likelihood.variance".into(), vec![0.1])],
            ..FitOptions::default()
        };
        options.train.max_iterations = 0;
        let fitted = fit(&dataset, &options, &Cpu::default(), &mut ()).expect("fits");
        let found = fitted.leave_one_out(&dataset).expect("its own rows");
        let noise = 0.1;
        for p in 0..2 {
            for i in 0..40 {
                let (m, v) = (found.mean[(i, p)], found.variance[(i, p)]);
                let expected =
                    -0.5 * ((2.0 * std::f64::consts::PI * v).ln() + (y[(i, p)] - m).powi(2) / v);
                assert!((found.log_density[(i, p)] - expected).abs() < 1e-9);
                assert!((found.f_mean[(i, p)] - m).abs() < 1e-9 * m.abs());
                let scale = fitted.scaler.y_scale[p];
                let apart = v - found.f_variance[(i, p)];
                assert!((apart - noise * scale * scale).abs() < 1e-9 * v);
            }
        }
        let fewer = Dataset::from_arrays(
            data.x.as_ref().subrows(0, 39).to_owned(),
            y.as_ref().subrows(0, 39).to_owned(),
            fitted.scaler.clone(),
        );
        let error =
            fitted.leave_one_out(&fewer.expect("rows")).expect_err("other rows").to_string();
        assert!(error.contains("39 rows") && error.contains("trained on 40"), "{error}");
    }
}

#[test]
fn what_cannot_be_left_out_is_refused() {
    let draw = Draw { n: 30, m: 6, d: 2, p: 1, kernel: "rbf", mean: "zero", seed: 3 };
    let problem = problem(&draw);
    let model = problem.with("exact");
    let posterior = model.posterior(&Cpu::default(), &problem.data).expect("well posed");
    let far = InMemory::new(
        Mat::from_fn(30, 2, |i, q| 50.0 + problem.data.x[(i, q)]),
        problem.data.y.clone(),
    )
    .expect("rows");
    let error = posterior.leave_one_out(&model, &far).expect_err("other rows").to_string();
    assert!(error.contains("row 1 ") && error.contains("those of the training"), "{error}");
    let mut model = problem.with("lsvgp");
    model.q = Some(Variational::pseudo_observations(
        6,
        1,
        sparsegp::inverse_free::Preconditioner::Inverse,
        false,
    ));
    let posterior = model.posterior(&Cpu::default(), &problem.data).expect("well posed");
    let error = posterior.leave_one_out(&model, &problem.data).expect_err("no sites").to_string();
    assert!(error.contains("lsvgp") && error.contains("tsvgp"), "{error}");
}

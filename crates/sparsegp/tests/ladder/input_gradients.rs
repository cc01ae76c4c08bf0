//! Slopes of predictions in the inputs, against differences.

use crate::problem::{Draw, KERNELS, Problem, draws, points, problem};
use proptest::prelude::*;
use sparsegp::engine::{Cpu, Want};
use sparsegp::fit::{Dataset, FitOptions, fit};
use sparsegp::inverse_free::Preconditioner;
use sparsegp::linalg::Mat;
use sparsegp::methods::{Tvgp, Uncollapsed, find};
use sparsegp::model::{Model, Posterior};
use sparsegp::variational::{Tying, Variational};

/// Compares all slopes at `x` with five-point differences of step h = 2·10⁻⁴ (the kinks of kernels, which
/// are at inputs and inducing points, are 0.007 away), whose truncation error 1/15 of their disagreement with those of step
/// 2h estimates; rounding of a difference is ε·size/h times what solves with Kuu (condition 10⁶) lose.
fn check(name: &str, posterior: &Posterior, x: &Mat<f64>) -> Result<(), TestCaseError> {
    let found = posterior.predict_gradients(x.as_ref()).expect("its inputs");
    let latents = posterior.latents();
    prop_assert_eq!((found.mean.len(), found.variance.len()), (latents, latents));
    for q in 0..x.ncols() {
        let at = |h: f64| {
            let moved =
                Mat::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)] + if j == q { h } else { 0.0 });
            let (mean, full) = posterior.predict_f_full(moved.as_ref()).expect("its inputs");
            // not clamped at 0
            let variance = Mat::from_fn(x.nrows(), latents, |i, l| full[l][(i, i)]);
            (mean, variance)
        };
        let difference = |h: f64| {
            let [a, b, c, d] = [at(h), at(-h), at(2.0 * h), at(-2.0 * h)];
            let each = |a: &Mat<f64>, b: &Mat<f64>, c: &Mat<f64>, d: &Mat<f64>| {
                Mat::from_fn(a.nrows(), a.ncols(), |i, l| {
                    (8.0 * (a[(i, l)] - b[(i, l)]) - (c[(i, l)] - d[(i, l)])) / (12.0 * h)
                })
            };
            (each(&a.0, &b.0, &c.0, &d.0), each(&a.1, &b.1, &c.1, &d.1))
        };
        let (fine, coarse) = (difference(2e-4), difference(4e-4));
        for (what, slopes, fine, coarse) in [
            ("mean", &found.mean, &fine.0, &coarse.0),
            ("variance", &found.variance, &fine.1, &coarse.1),
        ] {
            for l in 0..latents {
                let size = slopes[l].norm_max().max(1.0);
                for i in 0..x.nrows() {
                    let truncation = (fine[(i, l)] - coarse[(i, l)]).abs() / 15.0;
                    let allowed = (1e-6 * size + 4.0 * truncation).min(1e-3 * size);
                    let (a, b) = (slopes[l][(i, q)], fine[(i, l)]);
                    prop_assert!(
                        (a - b).abs() <= allowed,
                        "{name} {what} of row {i}, input {q}: {a} against {b}, allowed {allowed:e}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// New inputs that are 0.007 from all inputs and inducing points at least, in the first coordinate.
fn apart(problem: &mut Problem, d: usize) -> Mat<f64> {
    let candidates = points(60, d, 0.3, &mut problem.rng);
    let z = problem.model.inducing_points().expect("it has some");
    let taken: Vec<f64> =
        [&problem.data.x, &z].into_iter().flat_map(|a| a.col_as_slice(0).to_vec()).collect();
    let far = |i: &usize| taken.iter().all(|t| (t - candidates[(*i, 0)]).abs() > 0.007);
    let kept: Vec<usize> = (0..60).filter(far).take(5).collect();
    assert!(!kept.is_empty());
    Mat::from_fn(kept.len(), d, |i, q| candidates[(kept[i], q)])
}

fn posterior(model: &Model, problem: &Problem) -> Posterior {
    model.posterior(&Cpu::default(), &problem.data).expect("well posed")
}

proptest! {
    #![proptest_config(crate::config())]

    #[test]
    fn slopes_match_differences(draw in draws(KERNELS)) {
        let mut problem = problem(&draw);
        let new = apart(&mut problem, draw.d);
        for name in ["exact", "titsias2025", "fitc"] {
            check(name, &posterior(&problem.with(name), &problem), &new)?;
        }
    }
}

/// Posteriors of every other form: q with a root for each latent function and separate points,
/// sites, L-SVGP, R-SVGP, sites of all rows.
#[test]
fn slopes_match_differences_for_every_form_of_q() {
    for (method, kernel) in [
        ("svgp", "rbf + linear"),
        ("tsvgp", "matern52"),
        ("lsvgp", "matern32"),
        ("rsvgp", "rbf"),
        ("tvgp", "matern32 * rbf"),
    ] {
        let draw = Draw { n: 30, m: 6, d: 2, p: 2, kernel, mean: "linear", seed: 21 };
        let mut problem = problem(&draw);
        let new = apart(&mut problem, 2);
        let mut model = problem.model.clone();
        model.method = find(method).expect("registered").method;
        if method == "tvgp" {
            model.inducing = Vec::new();
        }
        if method == "svgp" {
            model.kernels = vec![model.kernels[0].clone(), model.kernels[0].clone()];
            let moved = points(6, 2, 0.8, &mut problem.rng);
            model.inducing.push(sparsegp::model::inducing_param(moved.as_ref()));
            let path = model.kernels[1].params()[0].0.clone();
            for (own, param) in model.kernels[1].params_mut() {
                if own == path {
                    let halved: Vec<f64> = param.value().iter().map(|v| 0.5 * v).collect();
                    param.set(&own, &halved).expect("in range");
                }
            }
        }
        let relaxed = method == "rsvgp";
        model.q = Some(match method {
            "svgp" => Variational::prior(6, 2, false),
            "tsvgp" => Variational::sites(6, 2, Tying::Natural),
            "tvgp" => Variational::sites(30, 2, Tying::Untied),
            _ => Variational::pseudo_observations(6, 2, Preconditioner::Inverse, relaxed),
        });
        if let Ok(own) = Tvgp::of(model.method) {
            own.step(&mut model, &problem.data, 1.0).expect("a step");
        } else if matches!(method, "svgp" | "tsvgp") {
            let own = Uncollapsed::of(model.method).expect("has a q");
            let mut step =
                own.step(&model, &Cpu::default(), &problem.data, Want::Statistics).expect("a pass");
            step.natural(&mut model, 0.7).expect("a step");
        } else {
            let values: Vec<f64> = (0..12).map(|i| (i as f64).sin()).collect();
            model.set("q.mu", &values).expect("as many");
        }
        check(method, &posterior(&model, &problem), &new).expect(method);
    }
}

/// In the data's units.
#[test]
fn fitted_models_have_them_in_the_units_of_the_data() {
    let draw = Draw { n: 40, m: 7, d: 2, p: 2, kernel: "rbf", mean: "zero", seed: 4 };
    let data = problem(&draw).data;
    let x = Mat::from_fn(40, 2, |i, q| 30.0 + [0.2, 50.0][q] * data.x[(i, q)]);
    let y = Mat::from_fn(40, 2, |i, p| 100.0 + [3.0, 0.4][p] * data.y[(i, p)]);
    let dataset = Dataset::from_arrays(x.clone(), y, true).expect("rows");
    let mut options = FitOptions {
        kernel: "rbf".into(),
        method: "titsias2025".into(),
        inducing: Some(7),
        ..FitOptions::default()
    };
    options.train.max_iterations = 5;
    let fitted = fit(&dataset, &options, &Cpu::default(), &mut ()).expect("fits");
    let found = fitted.predict_gradients(x.as_ref()).expect("its inputs");
    for q in 0..2 {
        let h = [2e-5, 5e-3][q];
        let at = |h: f64| {
            let moved = Mat::from_fn(40, 2, |i, j| x[(i, j)] + if j == q { h } else { 0.0 });
            fitted.predict(moved.as_ref(), sparsegp::fit::Of::Latent).expect("its inputs")
        };
        let (up, down) = (at(h), at(-h));
        for p in 0..2 {
            let slopes = [&found.mean[p], &found.variance[p]];
            for (slopes, (up, down)) in slopes.into_iter().zip([(&up.0, &down.0), (&up.1, &down.1)])
            {
                let size = (0..40).map(|i| slopes[(i, q)].abs()).fold(0.0, f64::max);
                for i in 0..40 {
                    let expected = (up[(i, p)] - down[(i, p)]) / (2.0 * h);
                    assert!((slopes[(i, q)] - expected).abs() < 1e-5 * size, "{p} {q} {i}");
                }
            }
        }
    }
}

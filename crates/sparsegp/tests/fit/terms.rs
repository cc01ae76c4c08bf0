//! Predictions of the terms of a sum.

use crate::support::{arrays, fit, options};
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of};
use sparsegp::kernels::{Inputs, Kernel, Tape, parse, terms::terms};
use sparsegp::linalg::{Cholesky, Jitter, Mat, MatRef};
use sparsegp::model::PredictedTerm;

const SUM: &str =
    "rbf(active_dims=[0]) + additive(base=matern52, order=2) + linear * rbf + white(variance=0.01)";

fn fitted(kernel: &str, own: FitOptions) -> Fitted {
    let (x, y) = arrays(40, 2);
    let dataset = Dataset::from_arrays(x, y, true).expect("a table");
    fit(&dataset, &FitOptions { kernel: kernel.into(), pilot: 0, ..own }).expect(kernel)
}

/// Near the rows, between them and far away, in the data's units.
fn places() -> Mat<f64> {
    Mat::from_fn(5, 2, |i, j| [0.1, -0.7, 2.0, 6.0, -20.0][i] * [1.0, 0.4][j])
}

fn covariances(kernel: &dyn Kernel, a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    let mut k = Mat::zeros(a.nrows(), b.nrows());
    kernel.evaluate(a, Some(b), k.as_mut(), &mut Tape::default());
    k
}

fn close(own: f64, other: f64, tolerance: f64, what: &str) {
    assert!((own - other).abs() <= tolerance * (1.0 + other.abs()), "{what}: {own} for {other}");
}

/// f_t | y ~ N(k_t A⁻¹(y − m), k_t(x, x) − k_t A⁻¹ k_tᵀ), A = K + σ²I, in plain algebra on the model's scale.
#[test]
fn terms_of_exact_inference_are_those_of_the_textbook() {
    let fitted = fitted(SUM, FitOptions { mean: Some("zero".into()), ..options("exact", 10) });
    let (x, y) = arrays(40, 2);
    let (mut x, mut y, mut at) = (x, y, places());
    fitted.scaler.scale_x(x.as_mut()).unwrap();
    fitted.scaler.scale_y(y.as_mut()).unwrap();
    fitted.scaler.scale_x(at.as_mut()).unwrap();
    let scale = fitted.scaler.y_scale[0];
    let kernel = fitted.model.kernel();
    let mut a = Mat::zeros(40, 40);
    kernel.evaluate(x.as_ref(), None, a.as_mut(), &mut Tape::default());
    (0..40).for_each(|i| a[(i, i)] += fitted.model.noise());
    let a = Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "A").expect("definite");
    let weights = a.solve(y.as_ref());
    let all = fitted.predict_terms(places().as_ref(), false).expect("a sum");
    let names: Vec<&str> = all.iter().map(|term| term.name.as_str()).collect();
    let expected = [
        PredictedTerm::MEAN_FUNCTION,
        "rbf(x0)",
        "additive(x0)",
        "additive(x1)",
        "additive order 2",
        "linear*rbf",
        "white",
    ];
    assert_eq!(names, expected);
    let inputs: Vec<&[usize]> = all.iter().map(|term| &term.inputs[..]).collect();
    assert_eq!(inputs, [&[][..], &[0], &[0], &[1], &[0, 1], &[0, 1], &[]]);
    assert!(all[0].mean.iter().all(|m| *m == fitted.scaler.y_mean[0]));
    assert!(all[0].variance.iter().all(|v| *v == 0.0));
    for (own, term) in all[1..].iter().zip(terms(kernel, fitted.measured_names())) {
        let k = covariances(&*term.kernel, at.as_ref(), x.as_ref());
        let solved = a.solve(k.transpose().to_owned().as_ref());
        let mut prior = vec![0.0; 5];
        term.kernel.diag(at.as_ref(), &mut prior);
        for i in 0..5 {
            let mean: f64 = (0..40).map(|j| k[(i, j)] * weights[(j, 0)]).sum();
            let explained: f64 = (0..40).map(|j| k[(i, j)] * solved[(j, i)]).sum();
            close(own.mean[i], mean * scale, 1e-7, &own.name);
            close(own.variance[i], (prior[i] - explained) * scale * scale, 1e-7, &own.name);
        }
    }
}

/// Means add up to that of the latent function, and the only term of a kernel that is not a sum is the latent function, of every method.
#[test]
fn terms_add_up_whatever_the_method() {
    for method in ["exact", "titsias2009", "spherical", "titsias2025", "svgp", "tsvgp", "lsvgp"] {
        for mean in ["zero", "constant", "linear"] {
            let own = || FitOptions { mean: Some(mean.into()), ..options(method, 5) };
            let fitted_sum = fitted("rbf + additive(order=2) + rbf", own());
            let (latent, _) = fitted_sum.predict(places().as_ref(), Of::Latent).unwrap();
            let all = fitted_sum.predict_terms(places().as_ref(), false).expect(method);
            assert_eq!(all[1].name, "rbf 1", "{method}");
            assert_eq!(all.last().unwrap().name, "rbf 2", "{method}");
            for i in 0..5 {
                let sum: f64 = all.iter().map(|term| term.mean[i]).sum();
                close(sum, latent[(i, 0)], 1e-9, method);
            }
            if mean == "zero" {
                let single = fitted("matern52", own());
                let (latent, variance) = single.predict(places().as_ref(), Of::Latent).unwrap();
                let all = single.predict_terms(places().as_ref(), false).expect(method);
                assert_eq!(all.len(), 2, "{method}");
                for i in 0..5 {
                    close(all[0].mean[i] + all[1].mean[i], latent[(i, 0)], 1e-12, method);
                    close(all[1].variance[i], variance[(i, 0)], 1e-12, method);
                }
            }
        }
    }
}

/// A constant that the rows tell is what a constant with a large variance among the terms is.
#[test]
fn the_mean_function_is_a_term_that_is_not_certain() {
    let frozen = |value: f64| format!("{{\"value\": {value}, \"frozen\": true}}");
    let rbf = format!("rbf(variance={}, lengthscales={})", frozen(1.3), frozen(0.6));
    let noise = Some(format!("gaussian(variance={})", frozen(0.1)));
    let with = |mean: &str| FitOptions {
        mean: Some(mean.into()),
        likelihood: noise.clone(),
        ..options("exact", 50)
    };
    let constant = format!("{rbf} + constant(variance={})", frozen(1e6));
    let vague = fitted(&constant, with("zero"));
    let learnt = fitted(&rbf, with("constant"));
    let (a, b) = (
        vague.predict_terms(places().as_ref(), false),
        learnt.predict_terms(places().as_ref(), false),
    );
    let (a, b) = (a.unwrap(), b.unwrap());
    for i in 0..5 {
        close(b[1].mean[i], a[1].mean[i], 1e-4, "rbf");
        close(b[1].variance[i], a[1].variance[i], 1e-4, "variance of rbf");
        close(b[0].variance[i], a[2].variance[i], 1e-4, "variance of the constant");
    }
    assert!(b[0].variance[0] > 0.01, "{}", b[0].variance[0]);
}

/// Centred terms have the mean 0 over the rows and add up too; their variances are those of f_t(x) − Σ f_t(xⱼ)/N, in plain
/// algebra.
#[test]
fn centred_terms_are_known_better() {
    for (method, mean) in [("exact", "zero"), ("exact", "constant"), ("titsias2025", "linear")] {
        let own = FitOptions { mean: Some(mean.into()), ..options(method, 10) };
        let fitted = fitted("matern52 + additive", own);
        let (latent, _) = fitted.predict(places().as_ref(), Of::Latent).unwrap();
        let plain = fitted.predict_terms(places().as_ref(), false).expect(method);
        let centred = fitted.predict_terms(places().as_ref(), true).expect(method);
        for i in 0..5 {
            let sum: f64 = centred.iter().map(|term| term.mean[i]).sum();
            close(sum, latent[(i, 0)], 1e-9, method);
        }
        let mut points = fitted.posterior.points().to_owned();
        fitted.scaler.unscale_points(points.as_mut()).unwrap();
        let there = fitted.predict_terms(points.as_ref(), true).expect(method);
        let here = fitted.predict_terms(points.as_ref(), false).expect(method);
        for ((own, own_plain), (at, at_plain)) in
            centred[1..].iter().zip(&plain[1..]).zip(there[1..].iter().zip(&here[1..]))
        {
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            close(mean(&at.mean), 0.0, 1e-9, &own.name);
            close(own.mean[0], own_plain.mean[0] - mean(&at_plain.mean), 1e-9, &own.name);
            assert!(at.variance.iter().all(|v| *v >= 0.0), "{}", own.name);
            assert!(mean(&at.variance) < mean(&at_plain.variance), "{}", own.name);
        }
        let name = PredictedTerm::MEAN_FUNCTION;
        assert!(centred[0].name == name && centred[0].variance[0].is_finite(), "{method}");
    }
    // the joint law of a term at a place and at all rows, exact and without a mean function
    let fitted = fitted(
        "rbf(active_dims=[0]) + additive",
        FitOptions { mean: Some("zero".into()), ..options("exact", 10) },
    );
    let (mut x, mut at) = (arrays(40, 2).0, places());
    fitted.scaler.scale_x(x.as_mut()).unwrap();
    fitted.scaler.scale_x(at.as_mut()).unwrap();
    let kernel = fitted.model.kernel();
    let mut a = covariances(kernel, x.as_ref(), x.as_ref());
    (0..40).for_each(|i| a[(i, i)] += fitted.model.noise());
    let a = Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "A").expect("definite");
    let own = fitted.predict_terms(places().as_ref(), true).unwrap();
    for (own, term) in own[1..].iter().zip(terms(kernel, fitted.measured_names())) {
        for i in 0..5 {
            // a row above all rows: weights 1 and −1/N
            let all = Mat::from_fn(41, 2, |j, q| if j == 0 { at[(i, q)] } else { x[(j - 1, q)] });
            let weights = Mat::from_fn(41, 1, |j, _| if j == 0 { 1.0 } else { -1.0 / 40.0 });
            let k = covariances(&*term.kernel, all.as_ref(), all.as_ref());
            let cross = covariances(&*term.kernel, x.as_ref(), all.as_ref());
            let posterior = k - cross.transpose() * a.solve(cross.as_ref());
            let variance = (weights.transpose() * posterior * &weights)[(0, 0)];
            close(own.variance[i], variance * fitted.scaler.y_scale[0].powi(2), 1e-7, &own.name);
        }
    }
}

/// Terms of functions that targets share add up to those of the targets; other posteriors are refused.
#[test]
fn terms_of_mixed_functions_add_up_and_those_of_draws_are_refused() {
    let (x, y) = arrays(40, 2);
    let y = Mat::from_fn(40, 3, |i, p| y[(i, 0)] + p as f64 * x[(i, 1)].sin());
    let dataset = Dataset::from_arrays(x, y, true).expect("a table");
    let mixed = |kernel: &str| {
        let own = FitOptions {
            kernel: kernel.into(),
            likelihood: Some("coregionalised(outputs=3, latents=2)".into()),
            pilot: 0,
            ..options("svgp", 3)
        };
        fit(&dataset, &own).expect("mixed")
    };
    for kernel in ["rbf + additive", "rbf + additive; rbf(ard=false) + additive(base=matern12)"] {
        let fitted = mixed(kernel);
        let (latent, _) = fitted.predict(places().as_ref(), Of::Latent).unwrap();
        let all = fitted.predict_terms(places().as_ref(), false).expect(kernel);
        assert_eq!(all.len(), 3 * 4, "{kernel}");
        for (i, p) in (0..5).flat_map(|i| (0..3).map(move |p| (i, p))) {
            let own = all.iter().filter(|term| term.latent == p);
            close(own.map(|term| term.mean[i]).sum(), latent[(i, p)], 1e-9, kernel);
        }
    }
    // one term for all: its variance is that of the targets
    let single = mixed("matern52; rbf");
    let error = single.predict_terms(places().as_ref(), false).expect_err("two terms").to_string();
    assert!(error.contains("`matern52` and `rbf` are in the same place"), "{error}");
    let single = mixed("rbf");
    let (_, variance) = single.predict(places().as_ref(), Of::Latent).unwrap();
    let all = single.predict_terms(places().as_ref(), false).unwrap();
    let own: Vec<_> = all.iter().filter(|term| term.name == "rbf").collect();
    for (i, p) in (0..5).flat_map(|i| (0..3).map(move |p| (i, p))) {
        close(own[p].variance[i], variance[(i, p)], 1e-9, "variance");
    }

    let own = FitOptions { pilot: 0, ..options("nuts", 3) };
    let (x, y) = arrays(12, 2);
    let drawn = fit(&Dataset::from_arrays(x, y, true).expect("a table"), &own).expect("drawn");
    let error = drawn.predict_terms(places().as_ref(), false).expect_err("drawn").to_string();
    assert!(error.contains("a prediction of terms"), "{error}");
}

/// Names are those of the inputs, and kernels in brackets are as they were written.
#[test]
fn terms_are_named_by_the_inputs() {
    let names: Vec<String> = ["age", "height", "weight"].map(String::from).to_vec();
    let spec = "(rbf(active_dims=[age, weight]) + linear) * periodic(base=rbf(active_dims=[height])) \
                + additive(active_dims=[weight, age]) + (rbf + constant)";
    let kernel = parse(spec, Inputs::named(&names)).unwrap();
    let found: Vec<String> = terms(&*kernel, &names).into_iter().map(|term| term.name).collect();
    let expected = [
        "(rbf(age, weight) + linear)*periodic(height)",
        "additive(weight)",
        "additive(age)",
        "rbf",
        "constant",
    ];
    assert_eq!(found, expected);
    let found = terms(&*kernel, &names).into_iter().map(|term| term.inputs(3));
    assert_eq!(found.collect::<Vec<_>>(), [vec![0, 1, 2], vec![2], vec![0], vec![0, 1, 2], vec![]]);
    let spec = "coregion(output_dim=3, active_dims=[1]) * linear(active_dims=[2]) + cosine(active_dims=[0])";
    let kernel = parse(spec, Inputs::unnamed(3)).unwrap();
    let found = terms(&*kernel, &names).into_iter().map(|term| term.inputs(3));
    assert_eq!(found.collect::<Vec<_>>(), [vec![1, 2], vec![0]]);
}

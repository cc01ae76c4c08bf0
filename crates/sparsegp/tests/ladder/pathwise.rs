//! Functions drawn from posteriors by random features.

use crate::problem::{Draw, points, problem};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sparsegp::engine::{Cpu, Want};
use sparsegp::fit::{Dataset, FitOptions, Of, fit};
use sparsegp::inverse_free::Preconditioner;
use sparsegp::kernels::{Inputs, Tape, parse};
use sparsegp::linalg::Mat;
use sparsegp::methods::{Tvgp, Uncollapsed, find};
use sparsegp::model::{Model, Posterior};
use sparsegp::variational::{Tying, Variational};

/// Kernels with a spectral density, of two and three inputs with separate lengthscales.
const SPECTRAL: &[&str] = &[
    "rbf(variance=1.7, lengthscales=[0.4, 1.3, 2.2])",
    "matern12(variance=0.6, lengthscales=[0.7, 1.3, 2.2])",
    "matern32(variance=2.6, lengthscales=[0.7, 1.3, 2.2])",
    "matern52(variance=0.6, lengthscales=[0.7, 1.3], active_dims=[0, 2])",
    "exponential(lengthscales=[0.3, 0.6, 1.1])",
    "rational_quadratic(variance=1.3, lengthscales=[0.7, 1.3, 2.2], alpha=0.4)",
    "gamma_exponential(lengthscales=[0.7, 1.3, 2.2], gamma=1.4)",
    "gamma_exponential(lengthscales=[0.7, 1.3, 2.2], gamma=0.5)",
    "cosine(lengthscales=[3.0, 2.0, 5.0]) * rbf + constant(variance=0.4)",
    "rbf(variance=0.5) + matern32(variance=2.0, lengthscales=[0.5, 1.1, 0.8])",
    "periodic(base=rbf(variance=1.3, lengthscales=[0.3, 0.7, 0.2]), period=[2.0, 1.1, 3.0])",
    "rbf * matern12(lengthscales=[2.0, 1.1, 1.8]) * rational_quadratic",
    "additive(base=matern52, order=2, variances=[0.7, 1.2], lengthscales=[0.5, 1.1, 0.8])",
];

/// k(x, x′)/σ² = E cos ωᵀ(x − x′), within five standard errors (at most √½/√F) of 60 000 draws, at 12 pairs of
/// points; the multivariate t of a Matérn kernel has one χ² for all inputs, which a draw for each would miss.
#[test]
fn frequencies_have_the_density_of_the_kernel() {
    const COUNT: usize = 60_000;
    let mut rng = ChaCha8Rng::seed_from_u64(41);
    let x = points(12, 3, 0.1, &mut rng);
    let z = Mat::from_fn(12, 3, |i, q| x[((i + 5) % 12, q)] + 0.2 * ((3 * i + q) as f64).sin());
    for spec in SPECTRAL {
        let kernel = parse(spec, Inputs::unnamed(3)).expect(spec);
        let mut frequencies = Mat::zeros(COUNT, 3);
        let variance = kernel.spectral(frequencies.as_mut(), &mut rng).expect(spec);
        let mut prior = vec![0.0; 12];
        kernel.diag(x.as_ref(), &mut prior);
        assert!((variance - prior[0]).abs() < 1e-12 * variance, "{spec}");
        let mut k = Mat::zeros(12, 12);
        kernel.evaluate(x.as_ref(), Some(z.as_ref()), k.as_mut(), &mut Tape::off());
        for i in 0..12 {
            let cosine = |j: usize| {
                (0..3).map(|q| frequencies[(j, q)] * (x[(i, q)] - z[(i, q)])).sum::<f64>().cos()
            };
            let sum: f64 = (0..COUNT).map(cosine).sum();
            let squares: f64 = (0..COUNT).map(|j| cosine(j).powi(2)).sum();
            let (n, expected) = (COUNT as f64, k[(i, i)] / variance);
            let mean = sum / n;
            let error = ((squares / n - mean * mean).max(0.0) / n).sqrt() + 1e-12;
            assert!(
                (mean - expected).abs() < 5.0 * error,
                "{spec}: {mean} for {expected}, {error}"
            );
        }
    }
    let refused =
        ["linear * rbf", "rbf * polynomial", "white + rbf", "arccosine", "periodic(base=matern32)"];
    for spec in refused {
        let kernel = parse(spec, Inputs::unnamed(3)).expect(spec);
        let error = kernel.spectral(Mat::zeros(3, 3).as_mut(), &mut rng).expect_err(spec);
        let message = error.to_string();
        let culprit = spec.split(&[' ', '*', '+', '(']).find(|w| !w.is_empty() && *w != "rbf");
        assert!(message.contains(culprit.expect("there is one")), "{spec}: {message}");
        assert!(message.contains("jointly"), "{message}");
    }
}

/// A model of two target columns with posteriors of every form.
fn posterior(method: &str) -> (Posterior, Mat<f64>) {
    let kernel = "matern32 + rbf(lengthscales=[0.5, 0.9]) + linear(variance=0.6)";
    let draw = Draw { n: 25, m: 6, d: 2, p: 2, kernel, mean: "linear", seed: 12 };
    let mut problem = problem(&draw);
    let at = points(4, 2, 0.3, &mut problem.rng);
    let mut model = problem.model.clone();
    model.method = find(method).expect("registered").method;
    if !model.method.is_sparse() {
        model.inducing = Vec::new();
    }
    if method == "svgp" {
        model.kernels = vec![
            model.kernels[0].clone(),
            parse("matern12(variance=0.7)", Inputs::unnamed(2)).expect("a kernel"),
        ];
        let other = points(6, 2, 0.7, &mut problem.rng);
        model.inducing.push(sparsegp::model::inducing_param(other.as_ref()));
    }
    model.q = match method {
        "svgp" => Some(Variational::prior(6, 2, false)),
        "tvgp" => Some(Variational::sites(25, 2, Tying::Untied)),
        "lsvgp" => Some(Variational::pseudo_observations(6, 2, Preconditioner::Inverse, false)),
        _ => None,
    };
    if let Ok(own) = Tvgp::of(model.method) {
        own.step(&mut model, &problem.data, 0.8).expect("a step");
    } else if method == "svgp" {
        let own = Uncollapsed::of(model.method).expect("has a q");
        let engine = Cpu::default();
        let mut step = own.step(&model, &engine, &problem.data, Want::Statistics).expect("a pass");
        step.natural(&mut model, 0.7).expect("a step");
    } else if method == "lsvgp" {
        let values: Vec<f64> = (0..12).map(|i| 2.0 * (i as f64).sin()).collect();
        model.set("q.mu", &values).expect("as many");
    }
    let posterior = model.posterior(&Cpu::default(), &problem.data).expect("well posed");
    (posterior, at)
}

const METHODS: [&str; 6] = ["exact", "titsias2025", "fitc", "svgp", "lsvgp", "tvgp"];

/// √n sup |Fₙ − Φ| of values that should be standard normal.
fn kolmogorov(values: &mut [f64]) -> f64 {
    use statrs::distribution::{ContinuousCDF, Normal};
    let normal = Normal::standard();
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let gap = |(i, v): (usize, &f64)| {
        let f = normal.cdf(*v);
        (f - i as f64 / n).abs().max(((i + 1) as f64 / n - f).abs())
    };
    n.sqrt() * values.iter().enumerate().map(gap).fold(0.0, f64::max)
}

/// Values of 4000 functions of 300 waves each at four points, for two target columns: means within five standard
/// errors of [`Posterior::predict_f_full`]'s, covariances within six (a function's own prior covariance
/// scatters by 1/√300 about the kernel's, which adds little to the √((cᵢᵢcⱼⱼ + cᵢⱼ²)/S) of normal draws), and every
/// marginal passes a test of Kolmogorov and Smirnov at the level 0.0001 (48 of them).
#[test]
fn functions_have_the_law_of_the_posterior() {
    const DRAWS: usize = 4000;
    for method in METHODS {
        let (posterior, at) = posterior(method);
        let (mean, covariance) = posterior.predict_f_full(at.as_ref()).expect("its inputs");
        let mut rng = ChaCha8Rng::seed_from_u64(2020);
        let functions = posterior.sample_functions(DRAWS, 300, &mut rng).expect("spectral");
        let values = functions.evaluate(at.as_ref()).expect("its inputs");
        assert_eq!(values.len(), DRAWS);
        let count = DRAWS as f64;
        let of = |a: usize, b: usize| {
            if a / 4 == b / 4 { covariance[a / 4][(a % 4, b % 4)] } else { 0.0 }
        };
        let centred: Vec<Vec<f64>> = values
            .iter()
            .map(|v| (0..8).map(|a| v[(a % 4, a / 4)] - mean[(a % 4, a / 4)]).collect())
            .collect();
        for a in 0..8 {
            let average = centred.iter().map(|v| v[a]).sum::<f64>() / count;
            let error = (of(a, a) / count).sqrt();
            assert!(average.abs() < 5.0 * error, "{method}: mean {a} off by {average}, {error}");
            for b in 0..=a {
                let second = centred.iter().map(|v| v[a] * v[b]).sum::<f64>() / count;
                let error = ((of(a, a) * of(b, b) + of(a, b).powi(2)) / count).sqrt();
                let off = (second - of(a, b)).abs();
                assert!(off < 6.0 * error, "{method}: covariance {a} {b} off by {off}, {error}");
            }
            let mut scaled: Vec<f64> = centred.iter().map(|v| v[a] / of(a, a).sqrt()).collect();
            let gap = kolmogorov(&mut scaled);
            assert!(gap < 2.23, "{method}: marginal {a}: {gap}");
        }
    }
}

/// A function has one value at a place, in whatever company and block it is asked for; a seed makes the same ones.
#[test]
fn a_function_has_one_value_at_a_place() {
    for method in METHODS {
        let (posterior, at) = posterior(method);
        let draw = || {
            let mut rng = ChaCha8Rng::seed_from_u64(7);
            posterior.sample_functions(3, 64, &mut rng).expect("spectral")
        };
        let (functions, again) = (draw(), draw());
        let together = functions.evaluate(at.as_ref()).expect("its inputs");
        assert_eq!(together, again.evaluate(at.as_ref()).expect("its inputs"));
        assert_eq!(together, functions.evaluate(at.as_ref()).expect("its inputs"));
        for i in 0..4 {
            let alone = functions.evaluate(at.as_ref().subrows(i, 1)).expect("its inputs");
            for s in 0..3 {
                for l in 0..2 {
                    let (a, b) = (alone[s][(0, l)], together[s][(i, l)]);
                    assert!((a - b).abs() < 1e-10 * (1.0 + b.abs()), "{method}");
                }
            }
        }
    }
}

/// Slopes of functions in the inputs against differences, for every method.
#[test]
fn functions_have_slopes() {
    for method in METHODS {
        let (posterior, at) = posterior(method);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let functions = posterior.sample_functions(2, 40, &mut rng).expect("spectral");
        let slopes = functions.gradients(at.as_ref()).expect("its inputs");
        let h = 1e-5;
        for q in 0..at.ncols() {
            let moved = |by: f64| {
                let shift = |i: usize, p: usize| at[(i, p)] + if p == q { by } else { 0.0 };
                let x = Mat::from_fn(at.nrows(), at.ncols(), shift);
                functions.evaluate(x.as_ref()).expect("its inputs")
            };
            let (above, below) = (moved(h), moved(-h));
            for s in 0..2 {
                for l in 0..2 {
                    for i in 0..at.nrows() {
                        let numeric = (above[s][(i, l)] - below[s][(i, l)]) / (2.0 * h);
                        let found = slopes[s][l][(i, q)];
                        let scale = numeric.abs().max(1.0);
                        assert!(
                            (found - numeric).abs() < 1e-6 * scale,
                            "{method}: {found} {numeric}"
                        );
                    }
                }
            }
        }
    }
}

/// In the data's units, of observations too: means and variances of 4000 draws at two points against the
/// prediction, within five standard errors.
#[test]
fn fitted_models_draw_in_the_units_of_the_data() {
    let draw = Draw { n: 40, m: 7, d: 2, p: 2, kernel: "rbf", mean: "zero", seed: 4 };
    let data = problem(&draw).data;
    let y = Mat::from_fn(40, 2, |i, p| 100.0 + [3.0, 0.4][p] * data.y[(i, p)]);
    let dataset = Dataset::from_arrays(data.x.clone(), y, true).expect("rows");
    let mut options =
        FitOptions { method: "titsias2025".into(), inducing: Some(7), ..FitOptions::default() };
    options.train.max_iterations = 5;
    let fitted = fit(&dataset, &options, &Cpu::default(), &mut ()).expect("fits");
    let x = data.x.as_ref().subrows(3, 2);
    let functions = fitted.sample_functions(4000, 128, 5).expect("spectral");
    let f = fitted.evaluate_functions(&functions, x).expect("its inputs");
    let y = fitted.sample_y_by_functions(x, &[], 4000, 128, 5).expect("its inputs");
    for (draws, of) in [(&f, Of::Latent), (&y, Of::Observations)] {
        let (mean, variance) = fitted.predict(x, of).expect("its inputs");
        for p in 0..2 {
            for i in 0..2 {
                let (m, v) = (mean[(i, p)], variance[(i, p)]);
                let average = draws.iter().map(|d| d[(i, p)]).sum::<f64>() / 4000.0;
                let spread = draws.iter().map(|d| (d[(i, p)] - m).powi(2)).sum::<f64>() / 4000.0;
                assert!((average - m).abs() < 5.0 * (v / 4000.0).sqrt(), "{average} {m}");
                assert!((spread - v).abs() < 5.0 * v * (2.0 / 4000.0_f64).sqrt(), "{spread} {v}");
            }
        }
    }
}

/// The posterior of draws: every function belongs to one of them, so that values are a mixture.
#[test]
fn functions_of_a_sampled_posterior_are_of_its_draws() {
    let draw = Draw { n: 25, m: 5, d: 1, p: 1, kernel: "rbf", mean: "zero", seed: 6 };
    let problem = problem(&draw);
    let model = Model { q: None, ..problem.model.clone() };
    let white = |sign: f64| Mat::from_fn(5, 1, |i, _| sign * (1.0 + i as f64));
    let posterior =
        Posterior::of_draws(&model, None, vec![white(1.0), white(-1.0)]).expect("draws");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let functions = posterior.sample_functions(400, 200, &mut rng).expect("spectral");
    let z = model.inducing_points().expect("it has some");
    let values = functions.evaluate(z.as_ref()).expect("its inputs");
    let (mean, variance) = posterior.predict_f(z.as_ref()).expect("its inputs");
    // at the inducing points a function has the values of its draw but for the jitter
    let mut signs = 0;
    for v in &values {
        let apart = (v[(0, 0)] - mean[(0, 0)]) / variance[(0, 0)].sqrt();
        assert!((apart.abs() - 1.0).abs() < 0.5, "{apart}");
        signs += usize::from(apart > 0.0);
    }
    assert!((signs as f64 - 200.0).abs() < 5.0 * 10.0, "{signs}");
}

#[test]
fn functions_are_refused_with_a_remedy() {
    let draw = Draw { n: 25, m: 5, d: 1, p: 1, kernel: "rbf + arccosine", mean: "zero", seed: 6 };
    let problem = problem(&draw);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let exact = problem.with("exact").posterior(&Cpu::default(), &problem.data).expect("posed");
    let error = exact.sample_functions(1, 10, &mut rng).expect_err("arccosine").to_string();
    assert!(error.contains("`arccosine`") && error.contains("jointly"), "{error}");
    let error = exact.sample_functions(1, 0, &mut rng).expect_err("no waves").to_string();
    assert!(error.contains("at least one wave"), "{error}");
    let mut model = problem.with("rsvgp");
    model.q = Some(Variational::pseudo_observations(5, 1, Preconditioner::Inverse, true));
    let relaxed = model.posterior(&Cpu::default(), &problem.data).expect("well posed");
    let error = relaxed.sample_functions(1, 10, &mut rng).expect_err("rsvgp").to_string();
    assert!(error.contains("rsvgp") && error.contains("lsvgp"), "{error}");
}

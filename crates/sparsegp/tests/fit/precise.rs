//! Exact inference where the kernel's variance beside that of the noise nears the end of double precision.
//!
//! Right values are from a Gaussian process in arithmetic of 80 decimal digits.

use crate::support::fit;
use sparsegp::Error;
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Of};
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods::Gaussian;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::methods::precision::{LIMIT, NEAR};
use sparsegp::model::Model;
use sparsegp::rng::{stream, uniform};
use sparsegp::{means, methods};

/// Numbers that are the same in any arithmetic: a plane, and fractions of 1/1024 for noise.
fn rows() -> InMemory {
    let x =
        Mat::from_fn(
            24,
            2,
            |i, q| if q == 0 { 0.4375 * i as f64 } else { ((5 * i) % 7) as f64 / 4.0 },
        );
    let y = Mat::from_fn(24, 1, |i, _| {
        0.5 * x[(i, 0)] - 0.25 * x[(i, 1)] + (((7 * i) % 5) as f64 - 2.0) / 1024.0
    });
    InMemory::new(x, y).expect("as many rows")
}

fn model(kernel: &str, noise: f64) -> Model {
    let mut likelihood = Gaussian::new(noise);
    if noise == 0.0 {
        likelihood = Gaussian::none();
    }
    Model {
        kernels: vec![parse(kernel, Inputs::unnamed(2)).expect("a kernel")],
        mean: means::by_name("zero", 2, 1).expect("a mean"),
        likelihood: Box::new(likelihood),
        inducing: Vec::new(),
        q: None,
        method: methods::find("exact").expect("a method").method,
        jitter: Jitter::default(),
        hidden: Vec::new(),
    }
}

/// The log evidence is right to φ nats, means to φ standard deviations, variances to the fraction φ: here with φ from a
/// plain inverse (NumPy).
#[test]
fn evidence_and_predictions_are_right_to_the_rounding_that_is_estimated() {
    let at = [[0.3125, 0.625], [5.15625, 1.125], [11.5, -0.25]];
    let new = Mat::from_fn(3, 2, |i, q| at[i][q]);
    for (kernel, rounding, evidence, means, variances) in [
        (
            "matern32(variance=2e9, lengthscales=[3000, 4000])",
            2.24e-4,
            -26.16681223303368,
            [-0.0001896875605785554, 2.298856990679846, 5.804592867866701],
            [0.022995415052638787, 0.0016991298537649485, 3.0099279136802894],
        ),
        (
            "rbf(variance=1.5e6, lengthscales=[40, 60])",
            1.66e-3,
            47.13591376581795,
            [-0.000338951465575606, 2.2963207847197453, 5.804725008798465],
            [2.22628437025425e-06, 6.062378368970721e-07, 0.0001436582483017188],
        ),
        (
            "rbf(variance=5e7, lengthscales=[60, 90])",
            0.0543,
            37.87965059646401,
            [-0.0004340842940897582, 2.2964012413426493, 5.804736170628351],
            [2.3497381732403456e-06, 6.470642667768659e-07, 0.00013913601594392914],
        ),
        (
            "rbf(variance=2e8, lengthscales=[100, 150])",
            0.237,
            42.90837927713942,
            [-0.0003159071935148424, 2.29632048765239, 5.806814271527858],
            [1.9722448488217143e-06, 5.75324091247928e-07, 9.116241759899536e-05],
        ),
    ] {
        let noise: f64 = 2.5e-6;
        let model = model(kernel, noise);
        let value = model.evaluate(&Cpu::default(), &rows()).expect("a factor").value;
        assert!((value - evidence).abs() < rounding, "{kernel}: {value} {evidence}");
        let posterior = model.posterior(&Cpu::default(), &rows()).expect("a factor");
        let (mean, variance) = posterior.predict_f(new.as_ref()).expect("two columns");
        for i in 0..3 {
            let apart = (mean[(i, 0)] - means[i]).abs() / (variances[i] + noise).sqrt();
            assert!(apart < rounding, "{kernel} {i}: {apart}");
            let apart = (variance[(i, 0)] - variances[i]).abs() / (variances[i] + noise);
            assert!(apart < rounding, "{kernel} {i}: {apart}");
        }
        let (_, full) = posterior.predict_f_full(new.as_ref()).expect("two columns");
        for i in 0..3 {
            assert!((full[0][(i, i)] - variance[(i, 0)]).abs() < rounding * (variances[i] + noise));
        }
        // and trainings stop where they should
        let climbed = model.climb_free(&Cpu::default(), &rows());
        match rounding {
            r if r < NEAR => assert_eq!(climbed.expect("a value").2, 0.0),
            r if r < LIMIT => assert!(climbed.expect("a value").2 > 0.1),
            _ => assert!(matches!(climbed, Err(Error::Imprecise { .. })), "{kernel}"),
        }
    }
}

#[test]
fn a_factor_of_rounding_is_refused_by_name() {
    for kernel in
        ["rbf(variance=1e10, lengthscales=200)", "matern32(variance=1e16, lengthscales=1e6)"]
    {
        let model = model(kernel, 2.5e-6);
        for error in [
            model.evaluate(&Cpu::default(), &rows()).map(|_| ()).expect_err("no factor"),
            model.posterior(&Cpu::default(), &rows()).map(|_| ()).expect_err("no factor"),
        ] {
            assert!(error.is_recoverable() && error.to_string().contains("K + σ²I"), "{error}");
        }
    }
}

/// Without noise, exact inference interpolates where the factor of K allows it, and says so where it does not; the sparse
/// methods divide by the noise.
#[test]
fn no_noise_is_a_model_of_only_exact_inference() {
    let rough = model("matern12(variance=2.3, lengthscales=0.7)", 0.0);
    let posterior = rough.posterior(&Cpu::default(), &rows()).expect("a factor");
    let rows = rows();
    let (mean, variance) = posterior.predict_y(rows.x.as_ref(), &[]).expect("two columns");
    for i in 0..24 {
        assert!((mean[(i, 0)] - rows.y[(i, 0)]).abs() < 1e-12);
        assert!(variance[(i, 0)] > 0.0 && variance[(i, 0)] < 1e-12);
    }
    let smooth = model("rbf(variance=2.3, lengthscales=30)", 0.0);
    assert!(smooth.posterior(&Cpu::default(), &rows).expect_err("no factor").is_recoverable());
    let sparse = Model { method: methods::find("titsias2025").expect("a method").method, ..rough };
    let error = sparse.check_noise().expect_err("a division by 0").to_string();
    assert!(error.contains("exact"), "{error}");
}

/// The gradient of the barrier: that of F − b less that of F, against differences of b over a tenth of a logarithm. φ itself
/// is known to some per cent there, and b to ten.
#[test]
fn the_barrier_has_a_gradient() {
    let start = model("rbf(variance=5e7, lengthscales=[60, 90])", 2.5e-6);
    let plain = start.evaluate(&Cpu::default(), &rows()).expect("a factor").gradient;
    let held = start.method.climb(&start, &Cpu::default(), &rows()).expect("a factor").0.gradient;
    let paths =
        ["kernel.variance", "kernel.lengthscales", "kernel.lengthscales", "likelihood.variance"];
    for (at, (path, value)) in paths.into_iter().zip([5e7, 60.0, 90.0, 2.5e-6]).enumerate() {
        let barrier = |by: f64| {
            let mut other = start.clone();
            let mut values = vec![value * by];
            if path.ends_with("lengthscales") {
                values = vec![60.0, 90.0];
                values[at - 1] *= by;
            }
            other.set(path, &values).expect("a value");
            other.method.climb(&other, &Cpu::default(), &rows()).expect("a factor").1
        };
        let difference = (barrier(1.05) - barrier(1.0 / 1.05)) / (2.0 * 1.05_f64.ln());
        let slope = value * (plain[at] - held[at]);
        assert!((slope / difference - 1.0).abs() < 0.15, "{path}: {slope} {difference}");
    }
}

/// A plane of two inputs with noise of 10⁻³, some 10⁻⁷ of the variance: the evidence rises with the kernel's variance as far as
/// it can be computed. The fit ends there, says so, and what it says of new rows is right.
#[test]
fn a_fit_that_nears_the_end_of_double_precision_says_so_and_is_right() {
    let mut rng = stream(7, "plane");
    let mut draw = |n: usize| Mat::from_fn(n, 4, |_, _| 10.0 * uniform(&mut rng));
    let (x, new) = (draw(60), draw(200));
    let f = |x: &Mat<f64>, i: usize| {
        x[(i, 0)] + 2.0 * x[(i, 1)] - x[(i, 2)] + 0.5 * x[(i, 3)] + 1e-3 * x[(i, 0)].sin()
    };
    // the standard deviation of a uniform number is 1/√12
    let mut rng = stream(8, "noise");
    let y = Mat::from_fn(60, 1, |i, _| f(&x, i) + 1e-3 * 12_f64.sqrt() * (uniform(&mut rng) - 0.5));
    let dataset = Dataset::from_arrays(x, y, true).expect("a table");
    for kernel in ["matern32", "rbf"] {
        // the prior of lengthscales would end the climb before
        let lengthscale_prior = false;
        let options =
            FitOptions { kernel: kernel.into(), lengthscale_prior, ..FitOptions::default() };
        let fitted = fit(&dataset, &options).expect("a fit");
        let warned = fitted.warnings.iter().any(|text| text.contains("double precision"));
        assert!(warned, "{kernel}: {:?}", fitted.warnings);
        let (mean, variance) =
            fitted.predict(new.as_ref(), Of::Observations).expect("four columns");
        let apart = |i: usize| mean[(i, 0)] - f(&new, i);
        let inside =
            (0..200).filter(|i| apart(*i).powi(2) < 1.96 * 1.96 * variance[(*i, 0)]).count();
        assert!(inside >= 182, "{kernel}: {inside} of 200 inside of 95 %");
        let error = ((0..200).map(|i| apart(i).powi(2)).sum::<f64>() / 200.0).sqrt();
        assert!(error < 1.93e-3, "{kernel}: {error}");
        // covariances have no negative eigenvalues but for rounding of the prior, and draws their variances
        let scaled = Mat::from_fn(200, 4, |i, q| {
            (new[(i, q)] - fitted.scaler.x_mean[q]) / fitted.scaler.x_scale[q]
        });
        let (_, full) = fitted.posterior.predict_f_full(scaled.as_ref()).expect("four columns");
        let prior = crate::support::value(&fitted.model, "kernel.variance")[0];
        let least = full[0].self_adjoint_eigenvalues(faer::Side::Lower).expect("eigenvalues")[0];
        assert!(least > -200.0 * f64::EPSILON * prior, "{kernel}: {least:e}");
        let mut rng = stream(9, "draws");
        let count = 400;
        let draws = fitted.posterior.sample_f(scaled.as_ref(), count, &mut rng).expect("draws");
        let (mean, variance) = fitted.posterior.predict_f(scaled.as_ref()).expect("four columns");
        for i in (0..200).step_by(20) {
            let square: f64 = draws.iter().map(|d| (d[(i, 0)] - mean[(i, 0)]).powi(2)).sum();
            // at five standard errors √(2/400) of a variance
            assert!((square / count as f64 / variance[(i, 0)] - 1.0).abs() < 0.36, "{kernel} {i}");
        }
    }
}

/// Targets in units a million times larger have the same fit, without standardisation too: nothing is measured in raw units.
#[test]
fn noise_has_no_floor_in_raw_units() {
    let mut rng = stream(5, "sine");
    let x = Mat::from_fn(60, 1, |_, _| 10.0 * uniform(&mut rng));
    let shape = Mat::from_fn(60, 1, |i, _| x[(i, 0)].sin() + 0.17 * (uniform(&mut rng) - 0.5));
    let new = Mat::from_fn(50, 1, |i, _| 0.2 * i as f64);
    for size in [1.0, 1e-4, 1e-6] {
        let y = Mat::from_fn(60, 1, |i, _| size * shape[(i, 0)]);
        let dataset = Dataset::from_arrays(x.clone(), y, false).expect("a table");
        let fitted = fit(&dataset, &FitOptions::default()).expect("a fit");
        let (mean, variance) = fitted.predict(new.as_ref(), Of::Observations).expect("one column");
        let apart = |i: usize| (mean[(i, 0)] / size - new[(i, 0)].sin()).powi(2);
        let error = ((0..50).map(apart).sum::<f64>() / 50.0).sqrt();
        let sd = ((0..50).map(|i| variance[(i, 0)]).sum::<f64>() / 50.0).sqrt() / size;
        assert!(error < 0.04 && (0.03..0.08).contains(&sd), "{size:e}: {error} {sd}");
    }
}

/// A variance given is taken whatever its size, and one whose targets have none by name refused.
#[test]
fn variances_are_taken_at_any_size_and_refused_where_they_are_not_numbers() {
    let data = rows();
    let dataset = |size: f64| {
        let y = Mat::from_fn(24, 1, |i, _| size * data.y[(i, 0)]);
        Dataset::from_arrays(data.x.clone(), y, true).expect("a table")
    };
    for noise in [1e-8, 1e-10, 1e-13] {
        let mut options = FitOptions {
            set: vec![("likelihood.variance".into(), vec![noise])],
            ..FitOptions::default()
        };
        options.freeze = vec!["likelihood.variance".into()];
        options.kernel = "matern12".into();
        let fitted = fit(&dataset(1.0), &options).expect("a fit");
        assert_eq!(fitted.model.noise(), noise);
    }
    for size in [1e200, 1e-200] {
        let error =
            fit(&dataset(size), &FitOptions::default()).expect_err("no variance").to_string();
        assert!(error.contains("double precision") && error.contains("power of ten"), "{error}");
    }
}

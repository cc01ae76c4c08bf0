//! Draws of a series: chains in O(N) a sweep, kept by the states at rows.

use crate::support::{fit, options};
use sparsegp::data::InMemory;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of, UpdateOptions, sample_rows, update};
use sparsegp::io;
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};
use sparsegp::samplers::Target;

/// Rows in disorder far from zero, some at the same place, with outliers.
fn dataset(n: usize) -> Dataset {
    let mut rng = stream(8, "draws of a series");
    let x = Mat::from_fn(n, 1, |i, _| {
        let at = (i * 37) % n;
        900.0
            + 5.0 * if at % 9 == 4 { at as f64 - 1.0 } else { at as f64 + 0.3 * uniform(&mut rng) }
    });
    let y = Mat::from_fn(n, 1, |i, _| {
        let wild = if i % 17 == 3 { 9.0 } else { 1.0 };
        -70.0 + 30.0 * ((x[(i, 0)] / 40.0).sin() + 0.3 * wild * (uniform(&mut rng) - 0.5))
    });
    Dataset::from_arrays(x, y, true).expect("a table")
}

fn how(method: &str, kernel: &str) -> FitOptions {
    let mut own = FitOptions {
        kernel: kernel.into(),
        mean: Some("constant".into()),
        likelihood: Some("student-t(df=5)".into()),
        inducing: None,
        pilot: 0,
        ..options(method, 30)
    };
    (own.gibbs.chains, own.gibbs.draws) = (4, if method == "nuts" { 600 } else { 2000 });
    own
}

/// At the same hyperparameters.
fn with_values(mut options: FitOptions, like: &Fitted) -> FitOptions {
    options.train.max_iterations = 0;
    let params = like.model.params().into_iter().filter(|(path, _)| !path.starts_with("q."));
    options.set = params.map(|(path, p)| (path, p.value().to_vec())).collect();
    options
}

/// Between rows, at rows, before and after all.
fn places() -> Mat<f64> {
    Mat::from_fn(30, 1, |i, _| if i == 7 { 900.0 } else { 870.0 + 13.0 * i as f64 })
}

fn moments(model: &Fitted) -> Vec<(f64, f64)> {
    let x = places();
    let (mean, variance) = model.predict(x.as_ref(), Of::Latent).expect("predictions");
    (0..x.nrows()).map(|i| (mean[(i, 0)], variance[(i, 0)].sqrt())).collect()
}

#[test]
fn draws_predict_as_those_with_a_full_covariance_and_as_paths() {
    let data = dataset(60);
    for kernel in ["matern32", "matern52 + matern12", "matern32 + linear"] {
        let own = fit(&data, &how("gibbs-markov", kernel)).expect("a fit");
        assert_eq!((own.model.method.name(), own.posterior.draws().len()), ("gibbs-markov", 8000));
        let mixing = own.report.as_ref().and_then(|r| r.mixing.clone()).expect("chains");
        assert!(mixing.chains == 4 && mixing.split_rhat < 1.05, "{mixing:?}");
        let found = moments(&own);
        for method in ["gibbs", "nuts"] {
            let other = fit(&data, &with_values(how(method, kernel), &own)).expect("a fit");
            for ((a, s), (b, t)) in found.iter().zip(&moments(&other)) {
                // of some hundred draws that are independent
                let close = (a - b).abs() < 0.15 * t && (s / t - 1.0).abs() < 0.15;
                assert!(close, "{kernel} {method}: {a} ± {s} and {b} ± {t}");
            }
        }
        // the best normal q is near
        let best = fit(&data, &with_values(how("tvgp", kernel), &own)).expect("a fit");
        for ((a, s), (b, t)) in found.iter().zip(&moments(&best)) {
            assert!((a - b).abs() < 0.4 * t && (s / t - 1.0).abs() < 0.3, "{kernel}: {a} {b}");
        }
    }
}

/// Without local variables that vary, the posterior is normal, and known.
#[test]
fn draws_under_gaussian_noise_are_exact() {
    let data = dataset(60);
    let gaussian = |method: &str| {
        let mut own = how(method, "matern52 + matern12");
        own.likelihood = Some("gaussian".into());
        own.gibbs.draws = 1500;
        own
    };
    let own = fit(&data, &gaussian("gibbs-markov")).expect("a fit");
    let exact = fit(&data, &with_values(gaussian("markov"), &own)).expect("a fit");
    for ((a, s), (b, t)) in moments(&own).iter().zip(&moments(&exact)) {
        // six thousand independent draws: five standard errors
        assert!((a - b).abs() < 0.065 * t && (s / t - 1.0).abs() < 0.046, "{a} {s} {b} {t}");
    }
    let x = places();
    let mut x = x;
    data.scaler.scale_x(x.as_mut()).expect("scaled");
    let (mean, all) = own.posterior.predict_f_full(x.as_ref()).expect("a covariance");
    let (right, exact) = exact.posterior.predict_f_full(x.as_ref()).expect("a covariance");
    let mut rng = stream(1, "paths");
    let drawn = own.posterior.sample_f(x.as_ref(), 6000, &mut rng).expect("draws");
    for i in 0..x.nrows() {
        let size = |i: usize| exact[0][(i, i)].sqrt();
        assert!((mean[(i, 0)] - right[(i, 0)]).abs() < 0.065 * size(i));
        for j in 0..=i {
            let off = (all[0][(i, j)] - exact[0][(i, j)]).abs();
            assert!(off < 0.07 * size(i) * size(j), "{i} {j}: {off}");
            let apart = |f: &Mat<f64>, i: usize| f[(i, 0)] - right[(i, 0)];
            let product = |f: &Mat<f64>| apart(f, i) * apart(f, j);
            let drawn = drawn.iter().map(product).sum::<f64>() / 6000.0;
            let off = (drawn - exact[0][(i, j)]).abs();
            assert!(off < 0.1 * size(i) * size(j), "{i} {j} of paths: {off}");
        }
    }
}

#[test]
fn files_hold_the_draws_and_predictions_average_over_them() {
    let data = dataset(60);
    let mut small = how("gibbs-markov", "matern52 + white(variance=0.01)");
    (small.gibbs.chains, small.gibbs.draws) = (2, 20);
    let own = fit(&data, &small).expect("a fit");
    let again = io::from_bytes(&io::to_bytes(&own).expect("bytes")).expect("a model");
    assert_eq!(moments(&again), moments(&own));
    assert_eq!(again.posterior.draws(), own.posterior.draws());
    assert_eq!(again.posterior.points(), own.posterior.points());
    let x = places();
    let mean = own.predict(x.as_ref(), Of::Latent).expect("predictions").0;
    let each = own.predict_of_draws(x.as_ref()).expect("predictions");
    assert_eq!(each.len(), 40);
    for i in 0..x.nrows() {
        let average = each.iter().map(|f| f[(i, 0)]).sum::<f64>() / 40.0;
        assert!((average - mean[(i, 0)]).abs() < 1e-9 * average.abs(), "{average}");
    }
    // one row gone is one target missing
    let mut absent = dataset(60);
    let mut rows = sample_rows(&*absent.source, 60, 0).expect("rows");
    rows.y[(5, 0)] = f64::NAN;
    absent.source = Box::new(rows);
    let less = fit(&absent, &with_values(small, &own)).expect("a fit");
    assert_ne!(moments(&less), moments(&own));
}

#[test]
fn what_there_is_none_of_is_refused_by_name() {
    let data = dataset(60);
    let refused = |change: &dyn Fn(&mut FitOptions), words: &[&str]| {
        let mut own = how("gibbs-markov", "matern32");
        change(&mut own);
        let error = fit(&data, &own).expect_err("a refusal").to_string();
        words.iter().for_each(|word| assert!(error.contains(word), "{word}: {error}"));
    };
    refused(&|o| o.gibbs.hyperparameters = true, &["hyperparameters", "`gibbs`"]);
    refused(&|o| o.gibbs.target = Target::Fitc, &["gibbs-sparse"]);
    refused(&|o| o.gibbs.draws = 0, &["at least one"]);
    refused(&|o| o.gibbs.draws = 1 << 22, &["draws", "GiB", "at most"]);
    refused(&|o| o.kernel = "rational_quadratic".into(), &["state-space", "matern32"]);
    let column = |f: &dyn Fn(usize) -> f64| Mat::from_fn(60, 1, |i, _| f(i));
    let (x, y) = (column(&|i| 0.1 * i as f64), column(&|i| (i % 4) as f64));
    let counts = Dataset::from_arrays(x, y, false).expect("a table");
    let own = FitOptions { likelihood: Some("poisson".into()), ..how("gibbs-markov", "matern32") };
    let error = fit(&counts, &own).expect_err("a likelihood").to_string();
    assert!(error.contains("local variables") && error.contains("poisson-logistic"), "{error}");
    let mut weighted = dataset(60);
    let rows = sample_rows(&*weighted.source, 60, 0).expect("rows");
    weighted.source = Box::new(InMemory { weights: vec![0.5; 60], ..rows });
    let error = fit(&weighted, &how("gibbs-markov", "matern32")).expect_err("weights").to_string();
    assert!(error.contains("weights"), "{error}");
    let two = Mat::from_fn(60, 2, |i, j| (i * (j + 3)) as f64 * 0.1);
    let y = Mat::from_fn(60, 1, |i, _| (i as f64 * 0.2).sin());
    let two = Dataset::from_arrays(two, y, true).expect("a table");
    let error = fit(&two, &how("gibbs-markov", "matern32")).expect_err("inputs").to_string();
    assert!(error.contains("2 inputs") && error.contains("sparse"), "{error}");
    // what is not known of draws
    let mut small = how("gibbs-markov", "matern32");
    (small.gibbs.chains, small.gibbs.draws) = (1, 10);
    let own = fit(&data, &small).expect("a fit");
    let x = places();
    let error = own.posterior.predict_gradients(x.as_ref()).expect_err("slopes").to_string();
    assert!(error.contains("gibbs-markov") && error.contains("markov"), "{error}");
    assert!(own.leave_one_out(&data).is_err());
    let error = update(&own, &data, &UpdateOptions::default(), &mut |_, _| Ok(())).err();
    assert!(error.is_some_and(|e| e.to_string().contains("gibbs-markov")));
}

/// Where the prior has no variance nothing is learnt, and elsewhere all is.
#[test]
fn a_place_without_variance_does_not_end_the_rest() {
    let x = Mat::from_fn(41, 1, |i, _| f64::from(i as u32) - 20.0);
    let y = Mat::from_fn(41, 1, |i, _| 3.0 * x[(i, 0)] + (1.7 * i as f64).sin());
    let data = Dataset::from_arrays(x, y, true).expect("a table");
    let at = Mat::from_fn(3, 1, |i, _| [-10.0, 0.0, 10.0][i]);
    let mean = |method: &str| {
        let mut own = FitOptions { mean: None, ..how(method, "linear") };
        (own.gibbs.chains, own.gibbs.draws) = (2, 300);
        let fitted = fit(&data, &own).expect(method);
        let (mean, _) = fitted.predict(at.as_ref(), Of::Latent).expect("predictions");
        // means by themselves are those of all that is predicted
        let alone = fitted.predict_mean(at.as_ref()).expect("means");
        (0..3).for_each(|i| assert!((alone[(i, 0)] - mean[(i, 0)]).abs() < 1e-9, "{method}"));
        [mean[(0, 0)], mean[(1, 0)], mean[(2, 0)]]
    };
    for method in ["markov", "gibbs-markov"] {
        let found = mean(method);
        for (own, expected) in found.iter().zip([-30.0, 0.0, 30.0]) {
            assert!((own - expected).abs() < 1.0, "{method}: {found:?}");
        }
    }
}

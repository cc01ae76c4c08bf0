//! Predictions averaged over hyperparameters that few rows leave open.

use crate::support::{fit, options};
use sparsegp::data::InMemory;
use sparsegp::fit::{
    Dataset, FEW, FitOptions, Fitted, Hyperparameters, Of, Scaling, Standardise, UpdateOptions,
    update,
};
use sparsegp::io;
use sparsegp::likelihoods;
use sparsegp::linalg::{Mat, MatRef};
use sparsegp::rng::{stream, uniform};

fn noise(rng: &mut impl rand::Rng) -> f64 {
    (0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0
}

/// Rows of a curve in the first of two inputs, off zero and in units of 40.
fn table(n: usize, seed: u64) -> (Mat<f64>, Mat<f64>) {
    let mut rng = stream(seed, "rows");
    let x = Mat::from_fn(n, 2, |_, _| 30.0 * uniform(&mut rng) - 200.0);
    let y = Mat::from_fn(n, 1, |i, _| {
        500.0 + 40.0 * ((x[(i, 0)] / 6.0).sin() + 0.05 * x[(i, 1)] + 0.3 * noise(&mut rng))
    });
    (x, y)
}

fn part(a: &Mat<f64>, from: usize, to: usize) -> Mat<f64> {
    a.as_ref().subrows(from, to - from).to_owned()
}

fn how(hyperparameters: Hyperparameters) -> FitOptions {
    FitOptions { hyperparameters, kernel: "rbf".into(), ..options("auto", 200) }
}

fn fitted(x: &Mat<f64>, y: &Mat<f64>, options: &FitOptions) -> Fitted {
    let dataset = Dataset::from_arrays(x.clone(), y.clone(), true).expect("a table");
    fit(&dataset, options).expect("a fit")
}

/// Sum of the log densities of rows, and how many are in the interval of 95 %.
fn judged(fitted: &Fitted, x: MatRef<f64>, y: MatRef<f64>) -> (f64, usize) {
    let densities = fitted.log_density(x, y, &[]).expect("densities");
    let quantiles = fitted.quantiles(x, &[], &[0.025, 0.975], Of::Observations).expect("quantiles");
    let inside = (0..x.nrows())
        .filter(|i| (quantiles[0][(*i, 0)]..=quantiles[1][(*i, 0)]).contains(&y[(*i, 0)]))
        .count();
    (densities.iter().sum(), inside)
}

#[test]
fn intervals_hold_what_they_promise_with_few_rows() {
    let mut all = [(0.0, 0), (0.0, 0)];
    for seed in 0..25 {
        let (x, y) = table(20 + 60, seed);
        let (train, test) =
            ((part(&x, 0, 20), part(&y, 0, 20)), (part(&x, 20, 80), part(&y, 20, 80)));
        for (to, own) in all.iter_mut().zip([Hyperparameters::PlugIn, Hyperparameters::Auto]) {
            let found = fitted(&train.0, &train.1, &how(own));
            let (density, inside) = judged(&found, test.0.as_ref(), test.1.as_ref());
            *to = (to.0 + density, to.1 + inside);
        }
    }
    let [(plugged, few), (averaged, more)] = all;
    let share = |inside: usize| inside as f64 / (25.0 * 60.0);
    assert!(averaged > plugged + 20.0, "{plugged} {averaged}");
    assert!(share(few) < 0.93 && (0.94..0.985).contains(&share(more)), "{few} {more}");
}

#[test]
fn a_saved_average_predicts_the_same_bits() {
    let (x, y) = table(30, 3);
    let folder = tempfile::tempdir().expect("a folder");
    let over = [Hyperparameters::Laplace, Hyperparameters::Laplace, Hyperparameters::Nuts];
    for (mean, over) in ["zero", "linear", "constant"].into_iter().zip(over) {
        let options = FitOptions { mean: Some(mean.into()), ..how(over) };
        let found = fitted(&x, &y, &options);
        let report = found.report.as_ref().and_then(|report| report.averaged.clone());
        let report = report.expect("an average");
        assert_eq!(found.posterior.components_count(), report.components);
        assert_eq!(found.posterior.hyperparameters().len(), report.settings);
        let path = folder.path().join("m");
        io::save(&found, &path).expect("saved");
        let again = io::load(&path).expect("loaded");
        assert_eq!(again.report.as_ref().and_then(|r| r.averaged.clone()), Some(report));
        let (a, b) = (
            found.predict(x.as_ref(), Of::Observations),
            again.predict(x.as_ref(), Of::Observations),
        );
        assert_eq!(a.expect("predictions"), b.expect("predictions"), "{mean}");
        assert_eq!(judged(&found, x.as_ref(), y.as_ref()), judged(&again, x.as_ref(), y.as_ref()));
    }
}

#[test]
fn moments_draws_and_slopes_are_those_of_the_mixture() {
    let (x, y) = table(24, 4);
    let found = fitted(&x, &y, &how(Hyperparameters::Laplace));
    let posterior = &found.posterior;
    let at = Mat::from_fn(3, 2, |i, q| [[0.1, 0.4], [-1.2, 2.6], [3.1, -0.2]][i][q]);
    let (mean, variance) = posterior.predict_f(at.as_ref()).expect("moments");
    let each = posterior.predict_f_of_draws(at.as_ref()).expect("components");
    assert_eq!(each.len(), posterior.times().iter().sum::<usize>());
    for i in 0..3 {
        let own = each.iter().map(|m| m[(i, 0)]).sum::<f64>() / each.len() as f64;
        assert!((own - mean[(i, 0)]).abs() < 1e-12, "{own} {}", mean[(i, 0)]);
    }
    let (_, covariance) = posterior.predict_f_full(at.as_ref()).expect("a covariance");
    (0..3).for_each(|i| assert!((covariance[0][(i, i)] / variance[(i, 0)] - 1.0).abs() < 1e-9));
    // draws of the functions, by their moments
    let mut rng = stream(8, "draws");
    let draws = posterior.sample_f(at.as_ref(), 8000, &mut rng).expect("draws");
    for i in 0..3 {
        let own = draws.iter().map(|f| f[(i, 0)]).sum::<f64>() / 8000.0;
        let spread = draws.iter().map(|f| (f[(i, 0)] - own).powi(2)).sum::<f64>() / 8000.0;
        let error = (variance[(i, 0)] / 8000.0).sqrt();
        assert!((own - mean[(i, 0)]).abs() < 4.5 * error, "{i}: {own} {}", mean[(i, 0)]);
        assert!((spread / variance[(i, 0)] - 1.0).abs() < 0.15, "{i}: {spread}");
    }
    // functions by their waves, each of one of the components
    let functions = posterior.sample_functions(4000, 128, &mut rng).expect("functions");
    let draws = functions.evaluate(at.as_ref()).expect("values");
    // and with the noise of it
    let noise = |s: usize| functions.likelihood(s).as_gaussian().map(|own| own.variance.scalar());
    let noises: std::collections::BTreeSet<u64> =
        (0..functions.len()).filter_map(noise).map(f64::to_bits).collect();
    let all = posterior.hyperparameters();
    assert!(noises.len() > 1 && noises.len() <= all.len(), "{} of {}", noises.len(), all.len());
    let known = |bits: &u64| all.iter().flatten().any(|own| own.to_bits() == *bits);
    assert!(noises.iter().all(known), "noise that is of none of the settings");
    for i in 0..3 {
        let own = draws.iter().map(|f| f[(i, 0)]).sum::<f64>() / 4000.0;
        let spread = draws.iter().map(|f| (f[(i, 0)] - own).powi(2)).sum::<f64>() / 4000.0;
        let error = (variance[(i, 0)] / 4000.0).sqrt();
        assert!((own - mean[(i, 0)]).abs() < 5.0 * error, "{i}: {own} {}", mean[(i, 0)]);
        assert!((spread / variance[(i, 0)] - 1.0).abs() < 0.2, "{i}: {spread}");
    }
    // slopes by differences
    let slopes = posterior.predict_gradients(at.as_ref()).expect("slopes");
    for q in 0..2 {
        let beside = |step: f64| {
            let moved = Mat::from_fn(3, 2, |i, j| at[(i, j)] + if j == q { step } else { 0.0 });
            posterior.predict_f(moved.as_ref()).expect("moments")
        };
        let (up, down) = (beside(1e-5), beside(-1e-5));
        for i in 0..3 {
            let of = |a: &Mat<f64>, b: &Mat<f64>| (a[(i, 0)] - b[(i, 0)]) / 2e-5;
            let (m, v) = (of(&up.0, &down.0), of(&up.1, &down.1));
            assert!((slopes.mean[0][(i, q)] - m).abs() < 1e-6 * (1.0 + m.abs()), "mean {i} {q}");
            assert!(
                (slopes.variance[0][(i, q)] - v).abs() < 1e-6 * (1.0 + v.abs()),
                "variance {i} {q}"
            );
        }
    }
}

/// Counts along a curve in the first of two inputs.
fn counts(n: usize, seed: u64) -> (Mat<f64>, Mat<f64>) {
    let mut rng = stream(seed, "counts");
    let x = Mat::from_fn(n, 2, |_, _| 30.0 * uniform(&mut rng) - 200.0);
    let y = Mat::from_fn(n, 1, |i, _| {
        let rate = (1.2 + (x[(i, 0)] / 6.0).sin()).exp();
        // by inversion
        let (mut k, mut p, u) = (0.0, (-rate).exp(), uniform(&mut rng));
        let mut sum = p;
        while sum < u && k < 60.0 {
            k += 1.0;
            p *= rate / k;
            sum += p;
        }
        k
    });
    (x, y)
}

/// Under other likelihoods every setting has its own q; the mixture is that of models with these.
#[test]
fn other_likelihoods_are_averaged_by_sites_of_all_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    for (likelihood, over) in [
        ("negative-binomial", Hyperparameters::Laplace),
        ("poisson", Hyperparameters::Nuts),
        ("heteroscedastic", Hyperparameters::Laplace),
    ] {
        let (x, y) = counts(28, 2);
        let options = FitOptions {
            likelihood: Some(likelihood.into()),
            method: "tvgp".into(),
            kernel: "rbf(ard=false)".into(),
            ..how(over)
        };
        let own = likelihoods::parse(likelihood).expect("a likelihood");
        let scaling = Standardise::all_that(&*own);
        let dataset = Dataset::from_arrays(x.clone(), y.clone(), scaling).expect("a table");
        let found = fit(&dataset, &options).expect("a fit");
        let posterior = &found.posterior;
        let (times, all) = (posterior.times(), posterior.hyperparameters());
        assert_eq!((times.iter().sum::<usize>(), all.len()), (32, posterior.sites().len()));
        assert!(all.len() > 4, "{likelihood}: {}", all.len());
        let at = Mat::from_fn(3, 2, |i, q| [[0.1, 0.4], [-1.2, 2.6], [3.1, -0.2]][i][q]);
        let (mean, variance) = posterior.predict_f(at.as_ref()).expect("moments");
        // models with these hyperparameters and sites, one by one
        let rows = InMemory::new(posterior.points().to_owned(), Mat::zeros(28, 1)).expect("rows");
        let (mut first, mut second) = (Mat::<f64>::zeros(3, 2), Mat::<f64>::zeros(3, 2));
        for ((own, q), times) in all.iter().zip(posterior.sites()).zip(&times) {
            let mut model = found.model.clone();
            sparsegp::model::set_hyperparameters(&mut model, own).expect("hyperparameters");
            model.q = Some(q.clone());
            let one = model.posterior(&sparsegp::engine::Cpu::default(), &rows).expect("one");
            let (m, v) = one.predict_f(at.as_ref()).expect("moments");
            for l in 0..m.ncols() {
                for i in 0..3 {
                    let share = *times as f64 / 32.0;
                    first[(i, l)] += share * m[(i, l)];
                    second[(i, l)] += share * (v[(i, l)] + m[(i, l)] * m[(i, l)]);
                }
            }
        }
        for l in 0..mean.ncols() {
            for i in 0..3 {
                let own = second[(i, l)] - first[(i, l)].powi(2);
                assert!((mean[(i, l)] - first[(i, l)]).abs() < 1e-10, "{likelihood} {i}");
                assert!((variance[(i, l)] / own - 1.0).abs() < 1e-8, "{likelihood} {i}");
            }
        }
        // settings differ, and so does what they are conditioned by
        let sites: std::collections::BTreeSet<u64> =
            posterior.sites().iter().map(|q| q.first.value()[3].to_bits()).collect();
        assert_eq!(sites.len(), all.len(), "{likelihood}");
        let path = folder.path().join("m");
        io::save(&found, &path).expect("saved");
        let again = io::load(&path).expect("loaded");
        let of = |own: &Fitted| own.predict(x.as_ref(), Of::Observations).expect("predictions");
        assert_eq!(of(&found), of(&again), "{likelihood}");
        assert_eq!(judged(&found, x.as_ref(), y.as_ref()), judged(&again, x.as_ref(), y.as_ref()));
    }
}

#[test]
fn an_average_is_for_exact_inference() {
    let (x, y) = table(40, 5);
    for method in ["titsias2025", "tsvgp", "svgp"] {
        let options = FitOptions {
            method: method.into(),
            inducing: Some(8),
            ..how(Hyperparameters::Laplace)
        };
        let dataset = Dataset::from_arrays(x.clone(), y.clone(), true).expect("a table");
        let error = fit(&dataset, &options).expect_err("a refusal").to_string();
        assert!(error.contains("laplace") && error.contains(method), "{error}");
        let usual = FitOptions { hyperparameters: Hyperparameters::Auto, ..options };
        assert_eq!(fitted(&x, &y, &usual).posterior.times(), Vec::<usize>::new());
    }
    let (x, y) = table(FEW + 1, 6);
    let many = FitOptions {
        train: sparsegp::train::TrainOptions { max_iterations: 5, ..Default::default() },
        ..how(Hyperparameters::Auto)
    };
    assert_eq!(fitted(&x, &y, &many).posterior.times(), Vec::<usize>::new());
}

/// Weights count rows in an average too (the tests of the command line compare them with copies, to the bit), and known
/// variances of the noise are those of their rows.
#[test]
fn rows_with_weights_and_with_known_noise_are_averaged() {
    let (x, y) = table(30, 7);
    let own = how(Hyperparameters::Laplace);
    let weighted = |weight: f64| {
        let rows = InMemory::new(x.clone(), y.clone()).expect("rows");
        let rows = InMemory { weights: vec![weight; 30], ..rows };
        fit(&Dataset::from_rows(rows, true).expect("a table"), &own).expect("a fit")
    };
    let latent = |own: &Fitted| own.predict(x.as_ref(), Of::Latent).expect("predictions");
    let (one, plain) = (latent(&weighted(1.0)), latent(&fitted(&x, &y, &own)));
    let (_, four) = latent(&weighted(4.0));
    for i in 0..30 {
        assert!((one.0[(i, 0)] / plain.0[(i, 0)] - 1.0).abs() < 1e-9, "{i}");
        assert!((one.1[(i, 0)] / plain.1[(i, 0)] - 1.0).abs() < 1e-6, "{i}");
        assert!(four[(i, 0)] < 0.7 * plain.1[(i, 0)], "{i}: {} {}", four[(i, 0)], plain.1[(i, 0)]);
    }
    let extra = (0..30).map(|i| 50.0 * f64::from(i % 3)).collect();
    let known = InMemory { extra, ..InMemory::new(x.clone(), y.clone()).expect("rows") };
    let known = Dataset::from_rows(known, true).expect("a table");
    let found = fit(&known, &own).expect("a fit");
    let plugged = fit(&known, &how(Hyperparameters::PlugIn)).expect("a fit");
    let (mean, variance) = found.predict(x.as_ref(), Of::Latent).expect("predictions");
    let (other, spread) = plugged.predict(x.as_ref(), Of::Latent).expect("predictions");
    for i in 0..30 {
        assert!((mean[(i, 0)] - other[(i, 0)]).abs() < 2.0 * spread[(i, 0)].sqrt(), "{i}");
        assert!(variance[(i, 0)] > 0.5 * spread[(i, 0)], "{i}");
    }
}

#[test]
fn an_update_says_that_it_ends_the_average() {
    let (x, y) = table(30, 8);
    let found = fitted(&x, &y, &how(Hyperparameters::Auto));
    assert!(found.report.as_ref().is_some_and(|report| report.averaged.is_some()));
    let (new_x, new_y) = table(5, 9);
    let scaling = Scaling::Given(found.scaler.clone());
    let new = Dataset::from_arrays(new_x, new_y, scaling).expect("rows");
    let (later, _) =
        update(&found, &new, &UpdateOptions::default(), &mut |_, _| Ok(())).expect("an update");
    assert!(later.report.as_ref().is_some_and(|report| report.averaged.is_none()));
    assert!(
        later.warnings.iter().any(|text| text.contains("no longer average")),
        "{:?}",
        later.warnings
    );
    assert_eq!(later.posterior.times(), Vec::<usize>::new());
}

#[test]
fn averages_of_many_rows_are_left_out_by_name() {
    let (x, y) = table(1500, 10);
    let train = sparsegp::train::TrainOptions { max_iterations: 1, ..Default::default() };
    let own = FitOptions { train, pilot: 0, ..how(Hyperparameters::Laplace) };
    let found = fitted(&x, &y, &own);
    assert!(found.warnings.iter().any(|text| text.contains("memory")), "{:?}", found.warnings);
    assert_eq!(found.posterior.times(), Vec::<usize>::new());
}

/// With all else known, an average over the mean function's coefficients is universal kriging, whose variance has a closed form.
#[test]
fn what_is_not_known_of_a_mean_function_counts_once() {
    let (x, y) = table(40, 5);
    let known = [
        ("kernel.variance", vec![0.02]),
        ("kernel.lengthscales", vec![0.2, 0.3]),
        ("likelihood.variance", vec![0.06]),
    ];
    // rows know the coefficients to a twentieth of the spread of the prior that an average assumes
    let spread = |own: Hyperparameters| {
        let set = known.iter().map(|(path, value)| ((*path).to_owned(), value.clone())).collect();
        let freeze = vec!["kernel".into(), "likelihood".into()];
        let options = FitOptions { mean: Some("linear".into()), set, freeze, ..how(own) };
        let found = fitted(&x, &y, &options);
        let far = Mat::from_fn(3, 2, |i, j| [-260.0, -230.0, -120.0][i] + 40.0 * j as f64);
        let (_, variance) = found.predict(far.as_ref(), Of::Latent).expect("predictions");
        (0..3).map(|i| variance[(i, 0)].sqrt()).collect::<Vec<_>>()
    };
    let (right, averaged) = (spread(Hyperparameters::PlugIn), spread(Hyperparameters::Laplace));
    for (right, own) in right.iter().zip(&averaged) {
        assert!((own / right - 1.0).abs() < 0.1, "{own} for {right}");
    }
}

#[test]
fn chains_and_weighted_points_say_the_same() {
    let (x, y) = table(40, 12);
    let [points, chains] =
        [Hyperparameters::Laplace, Hyperparameters::Nuts].map(|own| fitted(&x, &y, &how(own)));
    let report = chains.report.as_ref().expect("a report");
    assert_eq!(report.averaged.as_ref().map(|own| own.settings), Some(32));
    assert!(!chains.warnings.iter().any(|own| own.contains("settled")), "{:?}", chains.warnings);
    let (test, _) = table(30, 13);
    let (mean, variance) = points.predict(test.as_ref(), Of::Latent).expect("predictions");
    let (own, spread) = chains.predict(test.as_ref(), Of::Latent).expect("predictions");
    for i in 0..30 {
        let deviation = variance[(i, 0)].sqrt();
        assert!((own[(i, 0)] - mean[(i, 0)]).abs() < 0.35 * deviation, "{i}");
        let ratio = spread[(i, 0)].sqrt() / deviation;
        assert!((0.75..1.35).contains(&ratio), "{i}: {ratio}");
    }
    // the same seed, the same chains
    let again = fitted(&x, &y, &how(Hyperparameters::Nuts));
    assert_eq!(again.predict(test.as_ref(), Of::Latent).expect("predictions").0, own);
    let refused = FitOptions { method: "titsias2025".into(), ..how(Hyperparameters::Nuts) };
    let dataset = Dataset::from_arrays(x, y, true).expect("a table");
    let refused = fit(&dataset, &refused).expect_err("no average").to_string();
    assert!(refused.contains("methods `exact` and `tvgp`"), "{refused}");
}

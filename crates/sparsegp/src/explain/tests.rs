use super::{Explainer, Kind, Options};
use crate::data::{Categories, Encoding, InputColumn};
use crate::engine::Cpu;
use crate::fit::{Dataset, FitOptions, Fitted, Hyperparameters, Of, Standardise, fit};
use crate::linalg::Mat;
use crate::rng::{stream, uniform};

/// Uniform on [low, high], column by column.
fn rows(n: usize, ends: &[(f64, f64)]) -> Mat<f64> {
    let mut rng = stream(4, "rows of a test");
    let mut x = Mat::zeros(n, ends.len());
    for (q, (low, high)) in ends.iter().enumerate() {
        x.col_as_slice_mut(q).iter_mut().for_each(|v| *v = low + (high - low) * uniform(&mut rng));
    }
    x
}

fn learnt(x: &Mat<f64>, y: &Mat<f64>, options: FitOptions) -> Fitted {
    let classes = options.likelihood.as_deref() == Some("bernoulli");
    let scaling = Standardise { inputs: true, targets: !classes, robust: false, constants: false };
    let dataset = Dataset::from_arrays(x.clone(), y.clone(), scaling).unwrap();
    fit(&dataset, &options, &Cpu::default(), &mut ()).unwrap()
}

fn plain(kernel: &str) -> FitOptions {
    FitOptions {
        kernel: kernel.into(),
        hyperparameters: Hyperparameters::PlugIn,
        ..FitOptions::default()
    }
}

/// Of 30 a + 20 b + 40 (a − 1) c over three columns on [0, 2], [-1, 1] and [-1, 1], the variances are
/// 300, 400/3, 0 for each by itself and 1600/9 of a with c.
fn product() -> (Mat<f64>, Mat<f64>) {
    let x = rows(250, &[(0.0, 2.0), (-1.0, 1.0), (-1.0, 1.0)]);
    let value =
        |i: usize| 30.0 * x[(i, 0)] + 20.0 * x[(i, 1)] + 40.0 * (x[(i, 0)] - 1.0) * x[(i, 2)];
    let y = Mat::from_fn(x.nrows(), 1, |i, _| value(i) + 0.3 * (7.3 * i as f64).sin());
    (x, y)
}

#[test]
fn sensitivities_are_those_of_the_function() {
    let (x, y) = product();
    let fitted = learnt(&x, &y, plain("rbf"));
    let many = rows(4000, &[(0.0, 2.0), (-1.0, 1.0), (-1.0, 1.0)]);
    let options = Options { samples: 4000, functions: 12, ..Options::default() };
    let explainer = Explainer::new(&fitted, many.as_ref(), options).unwrap();
    let (found, why) = explainer.sensitivity(&|| Ok(())).unwrap();
    assert!(why.is_none() && found.len() == 1);
    let parts = [900.0 / 3.0, 400.0 / 3.0, 1600.0 / 9.0];
    let all: f64 = parts.iter().sum();
    assert!((found[0].deviation / all.sqrt() - 1.0).abs() < 0.04, "{}", found[0].deviation);
    let first = [parts[0] / all, parts[1] / all, 0.0];
    let total = [(parts[0] + parts[2]) / all, parts[1] / all, parts[2] / all];
    for (own, want) in found[0].first.iter().zip(first).chain(found[0].total.iter().zip(total)) {
        assert!((own.mean - want).abs() < 0.05, "{own:?} for {want}");
        assert!(own.lower <= own.mean && own.mean <= own.upper);
    }
}

#[test]
fn a_posterior_without_functions_gives_shares_of_its_mean() {
    let (x, y) = product();
    let options = FitOptions { method: "markov".into(), ..plain("matern52") };
    let one = x.as_ref().subcols(0, 1).to_owned();
    let fitted = learnt(&one, &y, options);
    let explainer = Explainer::new(&fitted, one.as_ref(), Options::default()).unwrap();
    let (found, why) = explainer.sensitivity(&|| Ok(())).unwrap();
    assert!(why.is_some(), "a state-space posterior has no features");
    let (first, total) = (found[0].first[0], found[0].total[0]);
    // a single column explains everything
    assert!((first.mean - 1.0).abs() < 0.1 && (total.mean - 1.0).abs() < 0.1);
    assert!(first.lower.is_nan() && total.upper.is_nan());
}

/// The average of a Gaussian posterior over rows has the mean and the variance that its joint moments give.
#[test]
fn partial_dependence_is_the_average_with_its_own_variance() {
    let (x, y) = product();
    let few = x.as_ref().subrows(0, 40).to_owned();
    let fitted = learnt(&few, &y.as_ref().subrows(0, 40).to_owned(), plain("rbf"));
    let options = Options { points: 4, rows: 30, draws: 4000, seed: 3, ..Options::default() };
    let explainer = Explainer::new(&fitted, few.as_ref(), options).unwrap();
    let curve = explainer.partial(2).unwrap();
    assert!(curve.at.len() == 4 && !curve.centred);
    for (k, at) in curve.at.iter().enumerate() {
        let mut rows = explainer.rows.clone();
        rows.col_as_slice_mut(2).fill(*at);
        let (mean, covariance) = fitted.predict_covariance(rows.as_ref(), &[], Of::Latent).unwrap();
        let n = rows.nrows() as f64;
        let expected = mean.col_as_slice(0).iter().sum::<f64>() / n;
        assert!((curve.mean[(k, 0)] - expected).abs() < 1e-9 * expected.abs());
        let variance: f64 =
            (0..30).flat_map(|j| covariance[0].col_as_slice(j)).sum::<f64>() / (n * n);
        let half = 1.96 * variance.sqrt();
        let (low, high) = (expected - curve.lower[(k, 0)], curve.upper[(k, 0)] - expected);
        assert!((low / half - 1.0).abs() < 0.1, "{low} for {half}");
        assert!((high / half - 1.0).abs() < 0.1, "{high} for {half}");
    }
}

#[test]
fn accumulated_effects_are_sums_of_local_steps() {
    // the columns are nearly the same, and the function is of their difference too
    let mut x = rows(300, &[(3.0, 5.0), (-0.1, 0.1)]);
    for i in 0..300 {
        x[(i, 1)] += 2.0 * x[(i, 0)];
    }
    let y = Mat::from_fn(300, 1, |i, _| 5.0 * x[(i, 0)] + 0.5 * x[(i, 1)]);
    let fitted = learnt(&x, &y, plain("linear + rbf"));
    let options = Options { points: 6, rows: 300, draws: 50, ..Options::default() };
    let explainer = Explainer::new(&fitted, x.as_ref(), options).unwrap();
    let (one, other, how) = explainer.most_correlated().unwrap();
    assert!((one, other) == ("x0", "x1") && how > 0.99, "{one} {other} {how}");
    let curve = explainer.accumulated(0).unwrap();
    assert!(curve.centred && curve.at.len() == 6);
    // of a sum of functions it is the function of the column itself, less its mean
    let mean = x.col_as_slice(0).iter().sum::<f64>() / 300.0;
    for (k, at) in curve.at.iter().enumerate() {
        let want = 5.0 * (at - mean);
        assert!((curve.mean[(k, 0)] - want).abs() < 0.25, "{} for {want}", curve.mean[(k, 0)]);
        assert!(
            curve.lower[(k, 0)] <= curve.mean[(k, 0)] && curve.mean[(k, 0)] <= curve.upper[(k, 0)]
        );
    }
}

/// Latitude and longitude are two columns: of each the average prediction were it the same in all rows, east of the date line too.
#[test]
fn places_have_effects_of_latitude_and_of_longitude() {
    let degrees = rows(80, &[(0.0, 1.0), (-40.0, -10.0), (170.0, 190.0)]);
    let x = Mat::from_fn(80, 4, |i, q| match q {
        0 => degrees[(i, 0)],
        _ => crate::data::place_point(degrees[(i, 1)], degrees[(i, 2)])[q - 1],
    });
    let y = Mat::from_fn(80, 1, |i, _| {
        (degrees[(i, 1)] / 9.0).sin() + 0.05 * degrees[(i, 2)] + degrees[(i, 0)]
    });
    let mut fitted = learnt(&x, &y, plain("matern52"));
    let encoding = Encoding::Place { longitude: "long".into() };
    fitted.columns = vec![InputColumn::number("age"), InputColumn { name: "lat".into(), encoding }];
    fitted.input_names = fitted.columns.iter().flat_map(InputColumn::input_names).collect();
    let options = Options { points: 5, rows: 80, draws: 20, samples: 64, functions: 4, seed: 1 };
    let explainer = Explainer::new(&fitted, x.as_ref(), options).unwrap();
    let names: Vec<&str> = explainer.columns().iter().map(|own| own.name.as_str()).collect();
    assert_eq!(names, ["age", "lat", "long"]);
    assert!(explainer.columns().iter().all(|own| own.kind == Kind::Numbers));
    let curve = explainer.partial(2).unwrap();
    assert!(curve.at[0] > 170.0 && curve.at[4] > 188.0 && curve.at[4] < 190.0, "{:?}", curve.at);
    for (k, longitude) in curve.at.iter().enumerate() {
        let moved = Mat::from_fn(80, 4, |i, q| match q {
            0 => degrees[(i, 0)],
            _ => crate::data::place_point(degrees[(i, 1)], *longitude)[q - 1],
        });
        let (mean, _) = fitted.predict(moved.as_ref(), Of::Latent).unwrap();
        let mean = mean.col_as_slice(0).iter().sum::<f64>() / 80.0;
        assert!((curve.mean[(k, 0)] - mean).abs() < 1e-8, "{k}: {} {mean}", curve.mean[(k, 0)]);
    }
    let steps = explainer.accumulated(1).unwrap();
    assert!(steps.centred && steps.at[0] < -35.0 && steps.at.iter().all(|at| *at < -9.0));
    let (shares, _) = explainer.sensitivity(&|| Ok(())).unwrap();
    assert!(shares[0].total[1].mean > shares[0].total[2].mean);
}

#[test]
fn categories_and_classes_have_names() {
    let mut x = rows(120, &[(0.0, 1.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)]);
    for i in 0..120 {
        x[(i, 1 + i % 3)] = 1.0;
    }
    let y = Mat::from_fn(120, 1, |i, _| f64::from(i % 3 == 1 || (i % 3 == 2 && x[(i, 0)] > 0.5)));
    let mut fitted =
        learnt(&x, &y, FitOptions { likelihood: Some("bernoulli".into()), ..plain("rbf") });
    let colours = Categories::new(["blue", "green", "red"]).unwrap();
    fitted.columns = vec![
        InputColumn::number("size"),
        InputColumn { name: "colour".into(), encoding: Encoding::OneHot(colours) },
    ];
    let explainer = Explainer::new(&fitted, x.as_ref(), Options::default()).unwrap();
    assert_eq!(explainer.responses(), ["p_1"]);
    assert_eq!(explainer.columns()[1].kind, Kind::Levels);
    let curve = explainer.accumulated(1).unwrap();
    assert_eq!(
        (curve.labels.as_slice(), curve.centred),
        (&["blue", "green", "red"].map(String::from)[..], false)
    );
    assert!(curve.mean[(0, 0)] < 0.1 && curve.mean[(1, 0)] > 0.9, "{:?}", curve.mean);
    assert!((0.3..0.7).contains(&curve.mean[(2, 0)]));
    assert!((0..3).all(|k| curve.lower[(k, 0)] >= 0.0 && curve.upper[(k, 0)] <= 1.0));
    let (found, _) = explainer.sensitivity(&|| Ok(())).unwrap();
    assert!(found[0].first[1].mean > 2.0 * found[0].first[0].mean);
}

#[test]
fn averages_over_hyperparameters_have_intervals_and_seeds_repeat_them() {
    let (x, y) = product();
    let (x, y) = (x.as_ref().subrows(0, 40).to_owned(), y.as_ref().subrows(0, 40).to_owned());
    let fitted =
        learnt(&x, &y, FitOptions { hyperparameters: Hyperparameters::Laplace, ..plain("rbf") });
    assert!(fitted.posterior.components_count() > 1);
    let options =
        Options { samples: 100, functions: 5, points: 3, draws: 20, ..Options::default() };
    let shares = || {
        let explainer = Explainer::new(&fitted, x.as_ref(), options.clone()).unwrap();
        let (found, why) = explainer.sensitivity(&|| Ok(())).unwrap();
        assert!(why.is_none());
        (found[0].first.clone(), explainer.partial(0).unwrap().upper)
    };
    assert_eq!(shares(), shares());
}

#[test]
fn what_cannot_be_explained_is_refused() {
    let (x, y) = product();
    let fitted = learnt(&x, &y, plain("rbf"));
    let refused = |x: &Mat<f64>, options: Options| {
        Explainer::new(&fitted, x.as_ref(), options).unwrap_err().to_string()
    };
    assert!(refused(&Mat::zeros(0, 3), Options::default()).contains("none"));
    assert!(refused(&Mat::zeros(3, 2), Options::default()).contains("3 columns"));
    let holes = Mat::from_fn(4, 3, |i, q| if (i, q) == (2, 1) { f64::NAN } else { 0.5 });
    assert!(refused(&holes, Options::default()).contains("missing"));
    assert!(refused(&x, Options { points: 1, ..Options::default() }).contains("points is 1"));
    let explainer = Explainer::new(&fitted, x.as_ref(), Options::default()).unwrap();
    assert!(explainer.partial(3).unwrap_err().to_string().contains("no column 3"));
}

/// Of 3 a + b steps of a are lost where bins are empty, and effects of tied values do not have the mean 0 where bins are halved.
#[test]
fn accumulated_effects_of_few_and_of_tied_rows_are_whole() {
    let x = rows(80, &[(0.0, 1.0), (5.0, 7.0), (0.0, 1.0), (2.0, 2.0)]);
    let x = Mat::from_fn(80, 4, |i, q| match q {
        // a tenth are ones
        0 => f64::from(i % 10 == 0),
        2 => (7.0 * x[(i, 2)] * x[(i, 2)]).floor(),
        _ => x[(i, q)],
    });
    let y = Mat::from_fn(80, 1, |i, _| 2.0 * x[(i, 0)] + 3.0 * x[(i, 1)] + 0.5 * x[(i, 2)]);
    let fitted = learnt(&x, &y, plain("linear + constant"));
    for (n, points) in [(80, 20), (9, 20), (80, 3)] {
        let part = x.as_ref().subrows(0, n);
        let options = Options { points, draws: 20, ..Options::default() };
        let explainer = Explainer::new(&fitted, part, options).unwrap();
        for (column, slope) in [(0, 2.0), (1, 3.0), (2, 0.5), (3, 0.0)] {
            let curve = explainer.accumulated(column).unwrap();
            let mean = part.col(column).iter().sum::<f64>() / n as f64;
            for (k, at) in curve.at.iter().enumerate() {
                let want = slope * (at - mean);
                let found = curve.mean[(k, 0)];
                assert!((found - want).abs() < 0.02, "{n} {points} {column} {at}: {found} {want}");
            }
        }
        let (shares, _) = explainer.sensitivity(&|| Ok(())).unwrap();
        assert!(shares[0].total[3].mean.abs() < 1e-12);
    }
    // a single row has no variance, whatever rounding says
    let explainer = Explainer::new(&fitted, x.as_ref().subrows(5, 1), Options::default()).unwrap();
    let (shares, _) = explainer.sensitivity(&|| Ok(())).unwrap();
    assert!(shares[0].deviation == 0.0 && shares[0].first.iter().all(|own| own.mean == 0.0));
    assert!(explainer.most_correlated().is_none());
}

//! Seasons of known lengths.

use crate::support::{fit, options};
use sparsegp::data::{Encoding, InputColumn};
use sparsegp::fit::{Dataset, FitOptions, Fitted, LogInputs, Of};
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};
use std::f64::consts::TAU;

/// Weekly rows of a year's wave with a peak, on a slow trend, as dates.
fn weeks(n: usize) -> Dataset {
    let mut rng = stream(3, "seasons");
    let x = Mat::from_fn(n, 1, |i, _| 18_630.0 + 7.0 * i as f64);
    let y = Mat::from_fn(n, 1, |i, _| {
        let t = x[(i, 0)];
        500.0 + 0.02 * (t - 18_630.0) + truth(t) + 3.0 * (uniform(&mut rng) - 0.5)
    });
    dated(Dataset::from_arrays(x, y, true).expect("a table"))
}

fn truth(t: f64) -> f64 {
    40.0 * (2.0 * (TAU * t / 365.2425).sin() - 2.0).exp()
}

fn dated(mut own: Dataset) -> Dataset {
    own.input_names[0] = "day".into();
    own.columns = vec![InputColumn { name: "day".into(), encoding: Encoding::Date }];
    own
}

fn with(kernel: &str, seasons: &[&str]) -> FitOptions {
    FitOptions {
        kernel: kernel.into(),
        seasons: seasons.iter().map(|own| (*own).to_owned()).collect(),
        ..options("auto", 200)
    }
}

fn period(of: &Fitted) -> (f64, bool) {
    let params = of.model.params();
    let (_, own) = params.iter().find(|(path, _)| path.ends_with("period")).expect("a period");
    (own.scalar(), own.frozen)
}

#[test]
fn a_season_is_known_and_continued() {
    let data = weeks(150);
    let json = r#"{"type": "sum", "kernels": [{"type": "matern32"}, {"type": "linear"}]}"#;
    for kernel in ["auto", "matern32 + linear", json] {
        let found = fit(&data, &with(kernel, &["1y"])).expect("a fit");
        let (length, frozen) = period(&found);
        assert!((length * data.scaler.x_scale[0] - 365.2425).abs() < 1e-6 && frozen, "{length}");
        // a year after the last row, where only a trend knows no season
        let at = Mat::from_fn(26, 1, |i, _| 18_630.0 + 7.0 * (150 + 2 * i) as f64);
        let (mean, _) = found.predict(at.as_ref(), Of::Observations).expect("predictions");
        let centred = |of: &dyn Fn(usize) -> f64| {
            let middle = (0..26).map(of).sum::<f64>() / 26.0;
            (0..26).map(|i| of(i) - middle).collect::<Vec<f64>>()
        };
        let (own, right) = (centred(&|i| mean[(i, 0)]), centred(&|i| truth(at[(i, 0)])));
        let size = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let error: Vec<f64> = own.iter().zip(&right).map(|(a, b)| a - b).collect();
        assert!(
            size(&error) < 0.2 * size(&right),
            "{kernel}: {} of {}",
            size(&error),
            size(&right)
        );
        assert!(!found.warnings.iter().any(|text| text.contains("season")), "{:?}", found.warnings);
    }
    let choice = fit(&data, &with("auto", &["1y"])).expect("a fit").report.expect("a report");
    let choice = choice.kernels.expect("a choice");
    let all = choice.candidates.iter().filter(|own| own.kernel.contains("period={value")).count();
    assert!(all > 2 && all == choice.candidates.len(), "{choice:?}");
}

#[test]
fn seasons_have_units_names_and_limits() {
    let refused = |data: &Dataset, own: &FitOptions, words: &[&str]| {
        let error = fit(data, own).expect_err("a refusal").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    let days = weeks(60);
    refused(&days, &with("rbf", &["52"]), &["season `52`", "`day` holds dates", "1y"]);
    refused(&days, &with("rbf", &["week=1w"]), &["no input `week`", "day"]);
    refused(&days, &with("rbf", &["0d"]), &["season `0d`", "positive"]);
    refused(&days, &with("rbf", &["often"]), &["season `often`", "length of time"]);
    let short = fit(&days, &with("rbf", &["day=1y"])).expect("a fit");
    assert!(
        short.warnings.iter().any(|text| text.contains("span 1.1 of it")),
        "{:?}",
        short.warnings
    );

    let x = Mat::from_fn(60, 2, |i, q| [3.0 + i as f64, (i % 7) as f64][q]);
    let y = Mat::from_fn(60, 1, |i, _| (TAU * i as f64 / 12.0).sin() + 0.1 * (i % 5) as f64);
    let two = Dataset::from_arrays(x, y, true).expect("a table");
    refused(&two, &with("rbf", &["12"]), &["say of which input", "x0=12"]);
    refused(&two, &with("rbf", &["x0=1y"]), &["`x0` holds numbers"]);
    let logged = FitOptions { log_inputs: LogInputs::parse("x0"), ..with("rbf", &["x0=12"]) };
    refused(&two, &logged, &["season `x0=12`", "logarithm"]);
    for units in [false, true] {
        let own = FitOptions { kernel_in_data_units: units, ..with("rbf", &["x0=12", "x1=7"]) };
        let found = fit(&two, &own).expect("a fit");
        assert!((period(&found).0 * two.scaler.x_scale[0] - 12.0).abs() < 1e-7, "{units}");
        let names = found.model.params().iter().filter(|(p, _)| p.ends_with("period")).count();
        assert_eq!(names, 2);
    }
    let deep = FitOptions { method: "deep".into(), ..with("auto", &["x0=12"]) };
    refused(&two, &deep, &["season"]);
}

/// The states of all terms together are few enough wherever a training goes.
#[test]
fn several_seasons_of_a_series_have_few_enough_states() {
    let n = 400;
    let x = Mat::from_fn(n, 1, |i, _| 18_630.0 + i as f64);
    let mut rng = stream(5, "seasons");
    let y = Mat::from_fn(n, 1, |i, _| {
        let weekend = if i % 7 > 4 { 8.0 } else { 0.0 };
        truth(x[(i, 0)]) + weekend + uniform(&mut rng)
    });
    let data = dated(Dataset::from_arrays(x, y, true).expect("a table"));
    let mut own =
        FitOptions { method: "markov".into(), pilot: 60, ..with("matern32", &["1y", "1w"]) };
    own.train.max_iterations = 8;
    let found = fit(&data, &own).expect("a fit");
    let states = found.model.kernel().state_space().expect("a state").size();
    assert!(states <= 64, "{states}");
    let params = found.model.params();
    let bounded = params
        .iter()
        .filter(|(path, own)| path.contains("base.lengthscales") && own.bounds().any());
    assert_eq!(bounded.count(), 2);
    let refused = fit(&data, &with("rbf", &["1w", "day=7d"])).expect_err("a refusal").to_string();
    assert!(refused.contains("season `day=7d` is given twice"), "{refused}");
}

/// Rows at every third hour, of days that differ by the day of the week and of noise that lasts some hours.
fn hours(n: usize) -> Dataset {
    let mut rng = stream(7, "hours");
    let mut slow = 0.0;
    let x = Mat::from_fn(n, 1, |i, _| 18_630.0 + i as f64 / 8.0);
    let y = Mat::from_fn(n, 1, |i, _| {
        slow = 0.8 * slow + uniform(&mut rng) - 0.5;
        of_hours(x[(i, 0)]) + slow
    });
    dated(Dataset::from_arrays(x, y, true).expect("a table"))
}

fn of_hours(t: f64) -> f64 {
    let weekend = if t.floor().rem_euclid(7.0) < 2.0 { 0.0 } else { 2.0 };
    (weekend + 1.0) * (TAU * t).sin() + weekend
}

#[test]
fn seasons_of_the_calendar_are_found() {
    let data = hours(480);
    let found = fit(&data, &with("auto", &[])).expect("a fit");
    let choice = found.report.as_ref().and_then(|own| own.kernels.clone()).expect("a choice");
    assert!(choice.reason.contains("repeat after 1d and 1w, as `--season` would"), "{choice:?}");
    let params = found.model.params();
    let periods = params.iter().filter(|(path, own)| path.ends_with("period") && own.frozen);
    let days: Vec<f64> = periods.map(|(_, own)| own.scalar() * data.scaler.x_scale[0]).collect();
    assert!(days.len() == 2 && (days[0] - 1.0).abs() < 1e-8, "{days:?}");
    assert!((days[1] - 7.0).abs() < 1e-8, "{days:?}");
    // a week after the last row
    let at = Mat::from_fn(56, 1, |i, _| 18_630.0 + (480 + i) as f64 / 8.0);
    let error = |own: &Fitted| {
        let (mean, _) = own.predict(at.as_ref(), Of::Observations).expect("predictions");
        let squares = (0..56).map(|i| (mean[(i, 0)] - of_hours(at[(i, 0)])).powi(2));
        (squares.sum::<f64>() / 56.0).sqrt()
    };
    assert!(error(&found) < 0.6, "{}", error(&found));
    let few = |kernel: &str, seasons: &[&str]| {
        let mut own = FitOptions { pilot: 100, ..with(kernel, seasons) };
        own.train.max_iterations = 2;
        own
    };
    let none = fit(&data, &few("auto", &["none"])).expect("a fit");
    let choice = none.report.and_then(|own| own.kernels).expect("a choice");
    let known = |kernel: &str| kernel.contains("frozen");
    assert!(!choice.candidates.iter().any(|own| known(&own.kernel)), "{choice:?}");
    // neither of numbers, nor beside a kernel that was given
    let mut numbers = hours(480);
    numbers.columns[0].encoding = Encoding::Number;
    let plain = fit(&numbers, &few("auto", &[])).expect("a fit").report.and_then(|own| own.kernels);
    assert!(!plain.expect("a choice").reason.contains("repeat"));
    let given = fit(&data, &few("matern32", &[])).expect("a fit");
    assert!(!given.model.params().iter().any(|(path, _)| path.ends_with("period")));
}

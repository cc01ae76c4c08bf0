//! The kernel that rows ask for.

use crate::support::{arrays, fit, options, table};
use sparsegp::data::{Selection, Table};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted};
use sparsegp::io;
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};
use sparsegp::train::{Event, KernelChoice, Observer};
use std::ops::ControlFlow;
use std::path::Path;

fn automatic() -> FitOptions {
    FitOptions { kernel: "auto".into(), ..options("auto", 100) }
}

fn choice(fitted: &Fitted) -> &KernelChoice {
    fitted.report.as_ref().and_then(|report| report.kernels.as_ref()).expect("a choice")
}

fn noise(rng: &mut impl rand::Rng) -> f64 {
    (0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0
}

/// `n` rows of a function of `d` inputs, off zero and in units of 30.
fn of(n: usize, d: usize, f: impl Fn(&[f64]) -> f64) -> (Mat<f64>, Mat<f64>) {
    let mut rng = stream(5, "rows");
    let x = Mat::from_fn(n, d, |_, _| 4.0 * uniform(&mut rng) - 2.0);
    let y = Mat::from_fn(n, 1, |i, _| {
        let row: Vec<f64> = (0..d).map(|q| x[(i, q)]).collect();
        70.0 + 30.0 * (f(&row) + 0.05 * noise(&mut rng))
    });
    (x, y)
}

fn fitted(x: &Mat<f64>, y: &Mat<f64>, options: &FitOptions) -> Fitted {
    fit(&Dataset::from_arrays(x.clone(), y.clone(), true).expect("a table"), options)
        .expect("a fit")
}

/// The mean squared error of the function in new places.
fn error(fitted: &Fitted, d: usize, f: impl Fn(&[f64]) -> f64) -> f64 {
    let mut rng = stream(6, "places");
    let x = Mat::from_fn(300, d, |_, _| 3.8 * uniform(&mut rng) - 1.9);
    let (mean, _) = fitted.predict(x.as_ref(), sparsegp::fit::Of::Latent).expect("predictions");
    let square = |i: usize| {
        let row: Vec<f64> = (0..d).map(|q| x[(i, q)]).collect();
        ((mean[(i, 0)] - 70.0) / 30.0 - f(&row)).powi(2)
    };
    (0..300).map(square).sum::<f64>() / 300.0
}

#[test]
fn functions_of_single_inputs_are_found_as_sums() {
    let f = |x: &[f64]| (3.0 * x[0]).sin() + x[1].powi(2) / 2.0 + (2.0 * x[2]).cos() + 0.4 * x[3];
    let (x, y) = of(150, 6, f);
    let found = fitted(&x, &y, &automatic());
    let usual = fitted(&x, &y, &FitOptions { kernel: "rbf".into(), ..automatic() });
    assert!(choice(&found).kernel.contains("additive"), "{:?}", choice(&found));
    let (own, other) = (error(&found, 6, f), error(&usual, 6, f));
    assert!(own < 0.25 * other, "{own}, rbf {other}");
}

#[test]
fn a_field_on_a_trend_is_not_left_to_straight_lines() {
    // with the trend all of it looks like noise from a start far too long
    for (seed, [size, waves, sd]) in
        [(1, [0.5, 5.5, 0.45]), (2, [0.4, 6.5, 0.35]), (3, [0.4, 6.5, 0.35]), (4, [0.5, 7.0, 0.5])]
    {
        let mut rng = stream(seed, "field");
        let x = Mat::from_fn(320, 2, |_, _| 4.0 * uniform(&mut rng) - 2.0);
        let f = |a: f64, b: f64| {
            let field = (waves * a + b).sin()
                + (waves * b - 1.5 * a).sin()
                + (waves * (0.8 * a - 0.7 * b)).cos();
            1.2 * a + 0.8 * b + size * field
        };
        let y = Mat::from_fn(320, 1, |i, _| {
            70.0 + 30.0 * (f(x[(i, 0)], x[(i, 1)]) + sd * noise(&mut rng))
        });
        let found = fitted(&x, &y, &automatic());
        let (mean, _) = found.predict(x.as_ref(), sparsegp::fit::Of::Latent).expect("predictions");
        let off = |i: usize| ((mean[(i, 0)] - 70.0) / 30.0 - f(x[(i, 0)], x[(i, 1)])).powi(2);
        let error = (0..320).map(off).sum::<f64>() / 320.0;
        // straight lines leave all of the field
        assert!(error < 0.5 * 1.5 * size * size, "{error}, {:?}", choice(&found));
    }
}

#[test]
fn rough_functions_have_rough_kernels() {
    let f = |x: &[f64]| x[0].abs() - (x[1] - 0.7).abs() + 0.7 * (x[0] + x[1]).abs();
    let (x, y) = of(300, 2, f);
    let found = fitted(&x, &y, &automatic());
    let usual = fitted(&x, &y, &FitOptions { kernel: "rbf".into(), ..automatic() });
    assert!(choice(&found).kernel.contains("matern"), "{:?}", choice(&found));
    let gain = found.objective().unwrap() - usual.objective().unwrap();
    assert!(gain > 5.0, "{gain}");
}

/// On 200 of these rows straight lines are the best kernel, on all of them they are worse by tens of nats.
#[test]
fn what_few_rows_take_for_noise_is_found_by_more() {
    let mut rng = stream(9, "rows");
    let x = Mat::from_fn(600, 3, |_, _| 4.0 * uniform(&mut rng) - 2.0);
    let y = Mat::from_fn(600, 1, |i, _| {
        70.0 + 30.0 * (x[(i, 0)] + 0.5 * (4.0 * x[(i, 1)]).sin() + noise(&mut rng))
    });
    let found = fitted(&x, &y, &automatic());
    let lines = fitted(&x, &y, &FitOptions { kernel: "linear".into(), ..automatic() });
    let (own, rows) = (choice(&found), choice(&found).rows);
    assert!(own.kernel != "linear" && rows >= 450, "{own:?}");
    let gain = found.objective().unwrap() - lines.objective().unwrap();
    assert!(gain > 8.0, "{gain}");
    // those that few rows have left behind come last
    let of: Vec<bool> = own.candidates.iter().map(|other| other.rows == rows).collect();
    assert!(of.iter().filter(|first| **first).count() >= 3, "{own:?}");
    assert!(of.is_sorted_by(|a, b| a >= b), "{own:?}");
}

/// A level that wanders over years beside what varies in months.
#[test]
fn slow_trends_are_found_beside_fast_variation() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/data/co2.csv.gz");
    let selected = Table::open(path).unwrap().select(&Selection::targets(["y"])).unwrap();
    let all = selected.read_all().unwrap();
    let learnt = (0..all.x.nrows()).filter(|i| all.x[(*i, 0)] < 1990.0).collect::<Vec<_>>();
    let later = (0..all.x.nrows()).filter(|i| all.x[(*i, 0)] >= 1990.0).collect::<Vec<_>>();
    let (x, y) = (&all.x, &all.y);
    let of =
        |from: &Mat<f64>, rows: &[usize]| Mat::from_fn(rows.len(), 1, |i, _| from[(rows[i], 0)]);
    let options = FitOptions { seasons: vec!["1".into()], ..automatic() };
    let found = fitted(&of(x, &learnt), &of(y, &learnt), &options);
    assert!(choice(&found).kernel.contains("+ matern52"), "{:?}", choice(&found));
    let later = &later[..later.len().min(60)];
    let (mean, _) = found.predict(of(x, later).as_ref(), sparsegp::fit::Of::Latent).unwrap();
    let square = |i: usize| (mean[(i, 0)] - y[(later[i], 0)]).powi(2);
    let rmse = ((0..later.len()).map(square).sum::<f64>() / later.len() as f64).sqrt();
    assert!(rmse < 2.2, "{rmse}");
}

/// Months of carbon dioxide over years as numbers: a term that varies fast explains the season, and hides it from a wave.
#[test]
fn a_season_of_a_series_is_found_beside_what_varies_fast() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/data/co2.csv.gz");
    let selected = Table::open(path).unwrap().select(&Selection::targets(["y"])).unwrap();
    let all = selected.read_all().unwrap();
    let mut options = FitOptions { method: "markov".into(), ..automatic() };
    options.train.max_iterations = 1;
    let found = fitted(&all.x, &all.y, &options);
    let own = choice(&found);
    assert!(own.kernel.contains("periodic"), "{own:?}");
    // what it would be without
    let score = |of: &dyn Fn(&str) -> bool| {
        let scores = own.candidates.iter().filter(|own| of(&own.kernel)).map(|own| own.score);
        scores.fold(f64::NEG_INFINITY, f64::max)
    };
    let periodic = |kernel: &str| kernel.contains("periodic");
    let wave = |kernel: &str| kernel.contains("cosine");
    let plain = score(&|kernel| !periodic(kernel) && !wave(kernel));
    assert!(score(&periodic) > plain + 100.0, "{own:?}");
}

#[test]
fn smooth_functions_keep_the_usual_kernel_and_its_model() {
    let f = |x: &[f64]| (1.5 * x[0] * x[1]).sin();
    let (x, y) = of(120, 2, f);
    let found = fitted(&x, &y, &automatic());
    assert_eq!(choice(&found).kernel, "rbf", "{:?}", choice(&found));
    let usual = fitted(&x, &y, &FitOptions { kernel: "rbf".into(), ..automatic() });
    assert_eq!(found.objective(), usual.objective());
}

#[test]
fn seasons_of_a_single_input_are_found() {
    let x = Mat::from_fn(180, 1, |i, _| 2.0 + i as f64 / 12.0);
    let y = Mat::from_fn(180, 1, |i, _| {
        let t = i as f64 / 12.0;
        (std::f64::consts::TAU * t).sin() + 0.2 * t + 0.05 * ((7 * i % 11) as f64 - 5.0) / 3.0
    });
    let found = fitted(&x, &y, &automatic());
    assert!(choice(&found).kernel.contains("periodic"), "{:?}", choice(&found));
    // three years on
    let later = Mat::from_fn(12, 1, |i, _| 20.0 + i as f64 / 12.0);
    let (mean, _) = found.predict(later.as_ref(), sparsegp::fit::Of::Latent).expect("predictions");
    for i in 0..12 {
        let t = 18.0 + i as f64 / 12.0;
        let truth = (std::f64::consts::TAU * t).sin() + 0.2 * t;
        assert!((mean[(i, 0)] - truth).abs() < 0.4, "{i}: {}, {truth}", mean[(i, 0)]);
    }
}

/// The table of candidates is in order, comes back from a file, and is the same every time.
#[test]
fn the_choice_is_reported_saved_and_repeated() {
    let (x, y) = arrays(80, 3);
    let found = fitted(&x, &y, &automatic());
    let own = choice(&found);
    assert_eq!(own.rows, 80);
    assert!(own.candidates.len() >= 5, "{own:?}");
    assert!(own.candidates.windows(2).all(|two| two[0].score >= two[1].score), "{own:?}");
    assert!(own.candidates.iter().any(|candidate| candidate.kernel == own.kernel));
    let back = io::from_bytes(&io::to_bytes(&found).expect("a file")).expect("a model");
    assert_eq!(choice(&back), own);
    assert_eq!(choice(&fitted(&x, &y, &automatic())), own);
}

/// Equal choices in other units of inputs and targets.
#[test]
fn units_change_no_choice() {
    let (x, y) = arrays(70, 2);
    let own = choice(&fitted(&x, &y, &automatic())).clone();
    for (of_x, of_y) in [(1e4, 1e-4), (1e-4, 1e4)] {
        let scaled =
            |a: &Mat<f64>, by: f64| Mat::from_fn(a.nrows(), a.ncols(), |i, j| by * a[(i, j)]);
        let other = fitted(&scaled(&x, of_x), &scaled(&y, of_y), &automatic());
        assert_eq!(choice(&other).kernel, own.kernel);
        for (a, b) in choice(&other).candidates.iter().zip(&own.candidates) {
            assert_eq!(a.kernel, b.kernel);
            assert!((a.score - b.score).abs() < 0.05, "{a:?}, {b:?}");
        }
    }
}

#[test]
fn what_is_settled_is_not_chosen() {
    let data = table(40, 2);
    let settled = [
        FitOptions { freeze: vec!["kernel.lengthscales".into()], ..automatic() },
        FitOptions { set: vec![("kernel.variance".into(), vec![0.7])], ..automatic() },
        FitOptions { pilot: 0, ..automatic() },
    ];
    for own in settled {
        let found = fit(&data, &own).expect("a fit");
        let choice = choice(&found);
        assert_eq!((choice.kernel.as_str(), choice.rows), ("rbf", 0));
        assert!(!choice.reason.is_empty());
    }
    let named =
        fit(&data, &FitOptions { kernel: "matern52".into(), ..automatic() }).expect("a fit");
    assert!(named.report.expect("a report").kernels.is_none());
}

/// Two groups of a class, and counts: every likelihood has a choice.
#[test]
fn other_likelihoods_choose_too() {
    for (likelihood, f) in [
        ("bernoulli", (|t: f64| f64::from(t > 0.0)) as fn(f64) -> f64),
        ("poisson", |t: f64| (2.0 + t).exp().round()),
    ] {
        let (x, _) = arrays(60, 3);
        let y = Mat::from_fn(60, 1, |i, _| f((2.0 * x[(i, 0)]).sin() + 0.3 * x[(i, 1)]));
        let own = FitOptions { likelihood: Some(likelihood.into()), ..automatic() };
        let data = Dataset::from_arrays(
            x,
            y,
            sparsegp::fit::Standardise {
                inputs: true,
                targets: false,
                robust: false,
                constants: true,
            },
        );
        let found = fit(&data.expect("a table"), &own).expect("a fit");
        assert!(choice(&found).candidates.len() >= 4, "{likelihood}: {:?}", choice(&found));
    }
}

/// Ends a training after its third iteration.
struct Short(usize);

impl Observer for Short {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        self.0 += usize::from(matches!(event, Event::Iteration(_)));
        if self.0 < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// A time limit may have ended the choice of the run before: the checkpoint knows the kernel.
#[test]
fn a_resumed_run_has_the_kernel_of_its_checkpoint() {
    let data = table(80, 2);
    for kernel_in_data_units in [false, true] {
        let name = format!("sparsegp-kernel-{}-{kernel_in_data_units}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut own = FitOptions {
            kernel: "matern12".into(),
            kernel_in_data_units,
            checkpoint: Some(path.clone()),
            ..automatic()
        };
        own.train.checkpoint_seconds = 0.0;
        sparsegp::fit::fit(&data, &own, &Cpu::default(), &mut Short(0)).expect("a fit");
        assert!(path.exists());
        let resumed = fit(&data, &FitOptions { kernel: "auto".into(), ..own.clone() });
        std::fs::remove_file(&path).expect("the checkpoint");
        let resumed = resumed.expect("the same training");
        assert_eq!(choice(&resumed).kernel, "matern12");
        assert!(choice(&resumed).reason.contains("checkpoint"));
        let again = fit(&data, &FitOptions { checkpoint: None, ..automatic() }).expect("a fit");
        assert_ne!(choice(&again).kernel, "matern12");
    }
}

//! Default fits of plain functions end where the best of several starts ends: fast inputs, dead inputs, periods, changes.

use crate::support::{fit, value};
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of};
use sparsegp::io;
use sparsegp::linalg::Mat;
use sparsegp::model::Model;
use sparsegp::rng::{stream, uniform};
use std::f64::consts::TAU;

/// Uniform numbers with a standard deviation of 1.
fn noise(generator: &mut impl rand::Rng) -> f64 {
    12_f64.sqrt() * (uniform(generator) - 0.5)
}

fn rows(
    [n, d]: [usize; 2],
    seed: u64,
    widths: &[f64],
    sd: f64,
    f: impl Fn(&[f64]) -> f64,
) -> (Mat<f64>, Mat<f64>) {
    let generator = &mut stream(seed, "functions");
    let x = Mat::from_fn(n, d, |_, q| widths[q % widths.len()] * uniform(&mut *generator));
    let row = |i: usize| (0..d).map(|q| x[(i, q)]).collect::<Vec<f64>>();
    let y = Mat::from_fn(n, 1, |i, _| f(&row(i)) + sd * noise(generator));
    (x, y)
}

fn of(kernel: &str) -> FitOptions {
    FitOptions { kernel: kernel.into(), lengthscale_prior: false, ..FitOptions::default() }
}

fn trained(x: &Mat<f64>, y: &Mat<f64>, options: &FitOptions) -> Fitted {
    let data = Dataset::from_arrays(x.clone(), y.clone(), true).expect("a table");
    fit(&data, options).expect("a fit")
}

/// The default fit is at most one nat behind a fit from the kernel `start`, whose values are in the data's units.
fn no_worse(name: &str, (x, y): &(Mat<f64>, Mat<f64>), kernel: &str, start: &str) -> Fitted {
    let own = FitOptions { kernel_in_data_units: true, ..of(start) };
    let (default, other) = (trained(x, y, &of(kernel)), trained(x, y, &own));
    let [own, best] = [&default, &other].map(|f| f.objective().expect("it was trained"));
    let judged = &default.report.as_ref().expect("a report").judged;
    assert!(own > best - 1.0, "{name}: {own}, and {best} from `{start}`; {judged:?}");
    default
}

/// As many as 24 waves, with eight rows for each; in any unit.
#[test]
fn a_wave_is_not_taken_for_noise() {
    for (waves, unit) in [(24.0, 1.0), (24.0, 1e4), (60.0, 1e-4)] {
        let data = rows([8 * waves as usize, 1], 3, &[unit * waves], 0.1, |x| {
            unit * (TAU * x[0] / unit).sin()
        });
        let (x, mut y) = data;
        y.col_as_slice_mut(0).iter_mut().for_each(|v| *v += 7.0 * unit);
        let start = format!("rbf(lengthscales={})", 0.25 * unit);
        no_worse("waves", &(x, y), "rbf", &start);
    }
}

/// One input that is fast among others that are slow or idle, and two of which only the product is.
#[test]
fn an_input_that_is_fast_beside_slow_ones_is_found() {
    let data =
        rows([250, 5], 4, &[1.0, 30.0, 0.1], 0.1, |x| (TAU * 6.0 * x[0]).sin() + 0.01 * x[1]);
    no_worse("one", &data, "rbf", "rbf(lengthscales=[0.05, 90, 0.3, 3, 90])");
    let data = rows([450, 2], 5, &[1.0, 30.0], 0.1, |x| {
        (TAU * 3.5 * x[0]).sin() * (TAU * 3.5 * x[1] / 30.0).cos()
    });
    no_worse("two", &data, "rbf", "rbf(lengthscales=[0.08, 2.4])");
}

/// Inputs of unlike strength, of which the weaker are lost on few rows, and one that has no part without another.
#[test]
fn inputs_that_matter_do_not_end_dead() {
    for seed in 0..3 {
        let data = rows([320, 6], 10 + seed, &[4.0], 0.3, |x| {
            let x: Vec<f64> = x.iter().map(|v| v - 2.0).collect();
            (2.0 * x[0]).sin() + x[1] * x[1] * x[2] / 3.0 + 0.5 * (3.0 * x[3]).cos()
        });
        no_worse("dead", &data, "rbf", "rbf(lengthscales=[1, 1, 1, 1, 1, 1])");
        no_worse("dead", &data, "rbf", "rbf(lengthscales=[0.5, 0.5, 0.5, 0.5, 0.5, 0.5])");
    }
}

fn period(fitted: &Fitted, path: &str) -> f64 {
    value(&fitted.model, path)[0] * fitted.scaler.x_scale[0]
}

#[test]
fn two_terms_find_two_periods() {
    let generator = &mut stream(6, "periods");
    let x = Mat::from_fn(504, 1, |i, _| i as f64);
    let y = Mat::from_fn(504, 1, |i, _| {
        let angle = TAU * i as f64;
        10.0 + (angle / 24.0).sin() + 0.8 * (angle / 168.0 + 1.0).sin() + 0.3 * noise(generator)
    });
    let fitted = trained(&x, &y, &of("periodic + periodic"));
    let mut found = [0, 1].map(|l| period(&fitted, &format!("kernel.kernels[{l}].period")));
    found.sort_by(f64::total_cmp);
    assert!((found[0] / 24.0 - 1.0).abs() < 0.01, "{found:?}");
    assert!((found[1] / 168.0 - 1.0).abs() < 0.03, "{found:?}");
}

#[test]
fn a_season_on_a_level_that_wanders_is_found() {
    for seed in [1, 4] {
        let generator = &mut stream(seed, "season");
        let x = Mat::from_fn(200, 1, |i, _| 5.0 + i as f64 / 12.0);
        let mut level = 0.0;
        let y = Mat::from_fn(200, 1, |i, _| {
            level += noise(generator);
            level + 3.0 * (TAU * x[(i, 0)]).sin()
        });
        let fitted =
            no_worse("season", &(x, y), "periodic + matern12", "periodic(period=1.0) + matern12");
        let found = period(&fitted, "kernel.kernels[0].period");
        assert!((found - 1.0).abs() < 0.02, "{seed}: {found}");
    }
}

#[test]
fn a_change_is_found_early_and_late() {
    for (seed, at) in [(0, 0.1), (1, 0.9), (2, 0.2)] {
        let data = rows([150, 1], seed, &[1.0], 0.1, |x| match x[0] < at {
            true => 0.2 * x[0],
            false => 3.0 + (25.0 * x[0]).sin(),
        });
        let start = format!("changepoints(kernels=[rbf, rbf], locations=[{at}], steepness=[200])");
        no_worse("change", &data, "changepoints(kernels=[rbf, rbf])", &start);
    }
}

/// A kernel that cannot follow the function leaves residuals that are alike, which is said by the name of the input.
#[test]
fn residuals_that_are_alike_are_said() {
    let data = rows([300, 2], 8, &[1.0, 10.0], 0.05, |x| (TAU * 2.0 * x[0]).sin() + 0.1 * x[1]);
    let said = |kernel: &str| -> Vec<String> {
        let fitted = trained(&data.0, &data.1, &of(kernel));
        fitted.warnings.into_iter().filter(|text| text.contains("misses a part")).collect()
    };
    let slow = said("linear");
    assert!(slow.len() == 1 && slow[0].contains("along `x0`"), "{slow:?}");
    assert_eq!(said("rbf"), Vec::<String>::new());
}

/// The 0/1 inputs of a factor are one group, each factor by itself; a number is in none. They start equal, however few rows
/// have a level, and are still a group in a model that is saved and read.
#[test]
fn levels_of_a_factor_share_their_place() {
    let x = Mat::from_fn(36, 8, |i, q| match q {
        0..4 => f64::from(i % 9 / 2 == q || q == 3 && i % 9 == 8),
        4 => f64::from(i == 7),
        5..7 => f64::from(i != 7 && i % 2 == q - 5),
        _ => (i as f64 * 0.7).sin(),
    });
    let y = Mat::from_fn(36, 1, |i, _| (i % 9) as f64 + (i as f64 * 1.3).cos());
    let data = Dataset::from_arrays(x, y, true).expect("a table");
    assert!(data.scaler.x_scale[..7].iter().all(|scale| *scale == 0.5), "{:?}", data.scaler);
    let groups_of = |model: &Model| {
        let params = model.params();
        let (_, lengths) =
            params.iter().find(|(path, _)| path == "kernel.lengthscales").expect("them");
        (lengths.groups.clone(), lengths.value().to_vec())
    };
    let options = FitOptions { pilot: 0, ..FitOptions::default() };
    let (groups, start) = groups_of(&crate::support::prepare(&data, &options).expect("a model").0);
    assert_eq!(groups, [vec![0, 1, 2, 3], vec![4, 5, 6]]);
    assert!(start[..7].iter().all(|own| (own / start[0] - 1.0).abs() < 1e-12), "{start:?}");
    let fitted = fit(&data, &options).expect("a fit");
    let back = io::from_bytes(&io::to_bytes(&fitted).expect("a file")).expect("a model");
    assert_eq!(groups_of(&back.model), groups_of(&fitted.model));
    assert_eq!(back.model.assumed_log_prior(), fitted.model.assumed_log_prior());
}

/// A level that few rows have is as near to the others as one that half of them have: what they show holds there too.
#[test]
fn a_rare_level_is_not_far_away() {
    let generator = &mut stream(12, "levels");
    let u: Vec<f64> = (0..150).map(|_| 6.0 * uniform(&mut *generator)).collect();
    let y = Mat::from_fn(150, 1, |i, _| u[i].sin() + 0.1 * noise(generator));
    let x = Mat::from_fn(150, 2, |i, q| if q == 0 { u[i] } else { f64::from(i % 75 == 9) });
    let fitted = trained(&x, &y, &FitOptions { kernel: "rbf".into(), ..FitOptions::default() });
    let places = Mat::from_fn(50, 2, |i, q| if q == 0 { 0.12 * i as f64 } else { 1.0 });
    let (mean, _) = fitted.predict(places.as_ref(), Of::Latent).expect("predictions");
    let worst = (0..50).map(|i| (mean[(i, 0)] - (0.12 * i as f64).sin()).abs()).fold(0.0, f64::max);
    assert!(worst < 0.3, "{worst}");
}

/// What the largest evidence may cost in errors is said: errors of straight lines in rows that are left out are compared with the
/// model's, and few rows that decide are named.
#[test]
fn large_errors_are_said() {
    let (x, y) = rows([120, 3], 13, &[4.0], 0.1, |u| u[0] - 2.0 * u[1] + u[2]);
    let said = |of: &Mat<f64>, kernel: &str, begins: &str| -> usize {
        let freeze = vec!["kernel".into()];
        let options = FitOptions { kernel: kernel.into(), freeze, ..FitOptions::default() };
        let warnings = trained(&x, of, &options).warnings;
        warnings.iter().filter(|text| text.contains(begins)).count()
    };
    let lines = "straight lines predict rows that are left out better";
    assert_eq!(said(&y, "rbf(lengthscales=0.3)", lines), 1);
    assert_eq!(said(&y, "rbf(lengthscales=6)", lines), 0);
    let few = "1 of 120 rows hold";
    let with = |far: f64| Mat::from_fn(120, 1, |i, _| if i == 57 { far } else { y[(i, 0)] });
    assert_eq!(said(&with(60.0), "linear", few), 1);
    assert_eq!(said(&with(9.0), "linear", few), 0);
}

/// A function without noise that jumps: it is said that the model is too sure, and not said of a smooth one.
#[test]
fn jumps_without_noise_are_said() {
    let said = |f: fn(f64) -> f64| -> usize {
        let (x, y) = rows([100, 1], 14, &[4.0], 0.0, |u| f(u[0] - 2.0));
        let warnings =
            trained(&x, &y, &FitOptions { kernel: "auto".into(), ..FitOptions::default() });
        warnings.warnings.iter().filter(|text| text.contains("the model knows no noise")).count()
    };
    assert_eq!(said(|u| f64::from(u > 0.3)), 1);
    assert_eq!(said(|u| (3.0 * u).sin()), 0);
}

/// Positive values over powers of ten are said by name; the logarithm of them, and what is even, are not.
#[test]
fn inputs_over_powers_of_ten_are_said() {
    let generator = &mut stream(11, "decades");
    let u: Vec<f64> = (0..120).map(|_| 6.0 * uniform(&mut *generator)).collect();
    let y = Mat::from_fn(120, 1, |i, _| u[i].sin() + 0.1 * noise(generator));
    let said = |of: fn(f64) -> f64| {
        let x = Mat::from_fn(120, 2, |i, q| if q == 0 { of(u[i]) } else { (i % 7) as f64 });
        let fitted = trained(&x, &y, &FitOptions { pilot: 0, ..FitOptions::default() });
        fitted.warnings.into_iter().filter(|text| text.contains("powers of ten")).collect()
    };
    let found: Vec<String> = said(|u| 1e3 * 10_f64.powf(u));
    assert!(found.len() == 1 && found[0].contains("`x0` are"), "{found:?}");
    assert_eq!(said(|u| u), Vec::<String>::new());
}

//! Inputs that were measured with errors: training, predictions, files.

use rand_distr::{Distribution, StandardNormal};
use sparsegp::data::Loaded;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Hyperparameters, Of, fit};
use sparsegp::io;
use sparsegp::linalg::Mat;
use sparsegp::rng;

const SD: f64 = 0.35;

/// f(x) = sin 2x + ½x on 0 to 6.
fn truth(x: f64) -> f64 {
    (2.0 * x).sin() + 0.5 * x
}

/// Rows (t, e, x, y) with t = x + N(0, e²) and y = f(x) + N(0, 0.1²). Every fifth row knows its input exactly.
fn rows(n: usize, seed: u64) -> Vec<[f64; 4]> {
    let mut rng = rng::stream(seed, "noisy inputs");
    let mut normal = move || StandardNormal.sample(&mut rng);
    (0..n)
        .map(|i| {
            let x = 6.0 * ((i as f64 + 0.5) * 0.618).fract();
            let e = if i % 5 == 0 { 0.0 } else { SD };
            let (a, b): (f64, f64) = (normal(), normal());
            [x + e * a, e, x, truth(x) + 0.1 * b]
        })
        .collect()
}

fn loaded(rows: &[[f64; 4]], deviations: bool) -> Loaded {
    let d = if deviations { 2 } else { 1 };
    let names = ["x".to_owned(), "sx".to_owned()];
    Loaded {
        x: Mat::from_fn(rows.len(), d, |i, j| rows[i][j]),
        y: Mat::from_fn(rows.len(), 1, |i, _| rows[i][3]),
        rows: (0..rows.len()).collect(),
        deviations: if deviations { vec![("x".into(), "sx".into())] } else { Vec::new() },
        ..Loaded::head(names[..d].to_vec(), vec!["y".into()])
    }
}

fn fitted(rows: &[[f64; 4]], deviations: bool, options: &FitOptions) -> Fitted {
    let data = Dataset::from_loaded(loaded(rows, deviations), true).expect("a data set");
    fit(&data, options, &Cpu::default(), &mut ()).expect("a fit")
}

fn options() -> FitOptions {
    FitOptions { method: "titsias2025".into(), inducing: Some(30), ..FitOptions::default() }
}

/// Places from 0.1 to 5.9, with this deviation.
fn places(deviation: f64, columns: usize) -> Mat<f64> {
    Mat::from_fn(60, columns, |i, j| [0.1 + 0.098 * i as f64, deviation][j])
}

#[test]
fn the_function_is_found_behind_the_errors() {
    for seed in 0..3 {
        let train = rows(300, seed);
        let (plain, noisy) = (fitted(&train, false, &options()), fitted(&train, true, &options()));
        let error = |f: &Fitted, columns: usize| {
            let x = places(0.0, columns);
            let (mean, _) = f.predict(x.as_ref(), Of::Latent).expect("predictions");
            let squares = (0..60).map(|i| (mean[(i, 0)] - truth(x[(i, 0)])).powi(2));
            (squares.sum::<f64>() / 60.0).sqrt()
        };
        let noise = |f: &Fitted| f.model.noise() * f.scaler.y_scale[0].powi(2);
        assert!(
            error(&noisy, 2) < 0.5 * error(&plain, 1),
            "{} {}",
            error(&noisy, 2),
            error(&plain, 1)
        );
        // what the errors of inputs do to targets is noise to the one, and not to the other
        assert!(noise(&plain) > 0.1 && noise(&noisy) < 0.03, "{} {}", noise(&plain), noise(&noisy));
        // new rows with and without errors: intervals hold what they say
        let new = rows(2000, 100 + seed);
        let x = Mat::from_fn(new.len(), 2, |i, j| new[i][j]);
        let ends = noisy.quantiles(x.as_ref(), &[], &[0.05, 0.95], Of::Observations);
        let ends = ends.expect("quantiles");
        let inside = |i: &usize| ends[0][(*i, 0)] < new[*i][3] && new[*i][3] < ends[1][(*i, 0)];
        for exact in [true, false] {
            let of: Vec<usize> = (0..new.len()).filter(|i| (new[*i][1] == 0.0) == exact).collect();
            let share = of.iter().filter(|i| inside(i)).count() as f64 / of.len() as f64;
            assert!((share - 0.9).abs() < 0.07, "{exact} {share}");
        }
        // intervals of a model that takes inputs at their word are far too wide where they are exact
        let x = Mat::from_fn(new.len(), 1, |i, _| new[i][0]);
        let ends =
            plain.quantiles(x.as_ref(), &[], &[0.05, 0.95], Of::Observations).expect("quantiles");
        let of: Vec<usize> = (0..new.len()).filter(|i| new[*i][1] == 0.0).collect();
        let inside = |i: &usize| ends[0][(*i, 0)] < new[*i][3] && new[*i][3] < ends[1][(*i, 0)];
        let share = of.iter().filter(|i| inside(i)).count() as f64 / of.len() as f64;
        assert!(share > 0.97, "{share}");
    }
}

/// Averages over N(t, e²) by a fine grid.
fn averaged(f: &Fitted, t: f64, e: f64) -> (f64, f64) {
    let steps = 4001;
    let at = |i: usize| -8.0 + 16.0 * i as f64 / (steps - 1) as f64;
    let x = Mat::from_fn(steps, 1, |i, _| t + e * at(i));
    let (mean, variance) = f.predict(x.as_ref(), Of::Latent).expect("predictions");
    let weight = |i: usize| (-0.5 * at(i) * at(i)).exp();
    let total: f64 = (0..steps).map(weight).sum();
    let average =
        |g: &dyn Fn(usize) -> f64| (0..steps).map(|i| weight(i) * g(i)).sum::<f64>() / total;
    let m = average(&|i| mean[(i, 0)]);
    (m, average(&|i| variance[(i, 0)] + (mean[(i, 0)] - m).powi(2)))
}

#[test]
fn predictions_are_averages_over_the_inputs() {
    let train = rows(80, 9);
    let pairs = [("x".to_owned(), "sx".to_owned())];
    for (kernel, method, tolerance) in [
        // in closed form
        ("rbf + linear", "titsias2025", 1e-6),
        ("rbf", "exact", 1e-6),
        // by nodes
        ("matern32", "exact", 0.02),
        ("rbf", "svgp", 1e-6),
    ] {
        let options = FitOptions {
            kernel: kernel.into(),
            method: method.into(),
            inducing: (method != "exact").then_some(20),
            hyperparameters: Hyperparameters::PlugIn,
            ..FitOptions::default()
        };
        let plain = fitted(&train, false, &options);
        let noisy = plain.clone().with_input_deviations_of(&pairs).expect("a model");
        assert_eq!(noisy.input_names, ["x", "sx"]);
        let none = noisy.predict(Mat::<f64>::zeros(0, 2).as_ref(), Of::Latent);
        assert_eq!(none.expect("no rows").0.nrows(), 0);
        // rows that lie one behind the other in memory
        let straight = places(0.15, 2);
        let turned = straight.transpose().to_owned();
        let both = [turned.transpose(), straight.as_ref()];
        let both = both.map(|x| noisy.predict(x, Of::Observations).expect("predictions"));
        assert_eq!(both[0], both[1]);
        for e in [0.0, 0.15, 0.6] {
            let (mean, variance) =
                noisy.predict(places(e, 2).as_ref(), Of::Latent).expect("predictions");
            for i in [0, 17, 40, 59] {
                let t = places(e, 1)[(i, 0)];
                let (m, v) = averaged(&plain, t, e);
                let (own, spread) = (mean[(i, 0)], variance[(i, 0)]);
                let size = v.sqrt();
                assert!((own - m).abs() < tolerance * size, "{kernel} {method} {e}: {own} {m}");
                let apart = (spread - v).abs();
                assert!(apart < 3.0 * tolerance * v, "{kernel} {method} {e}: {spread} {v}");
            }
        }
        // densities are mixtures: they integrate to 1, and distribution functions are their integrals
        let x = Mat::from_fn(801, 2, |_, j| [2.0, 0.4][j]);
        let y = Mat::from_fn(801, 1, |i, _| -4.0 + 0.0125 * i as f64);
        let density = noisy.log_density(x.as_ref(), y.as_ref(), &[]).expect("densities");
        let (_, cdf) = noisy.cdf(x.as_ref(), y.as_ref(), &[]).expect("shares");
        let below = |upto: usize| density[..=upto].iter().map(|d| 0.0125 * d.exp()).sum::<f64>();
        assert!((below(800) - 1.0).abs() < 1e-3, "{}", below(800));
        let half = 0.5 * 0.0125 * density[480].exp();
        assert!((below(480) - half - cdf[(480, 0)]).abs() < 1e-3, "{method}");
        // draws have these moments
        let x = Mat::from_fn(1, 2, |_, j| [2.0, 0.4][j]);
        let draws = noisy.sample_y(x.as_ref(), &[], 4000, 3).expect("draws");
        let (mean, variance) = noisy.predict(x.as_ref(), Of::Observations).expect("predictions");
        let own = draws.iter().map(|d| d[(0, 0)]).sum::<f64>() / 4000.0;
        let sd = variance[(0, 0)].sqrt();
        assert!(
            (own - mean[(0, 0)]).abs() < 4.0 * sd / 4000.0_f64.sqrt(),
            "{own} {}",
            mean[(0, 0)]
        );
        let squares = draws.iter().map(|d| (d[(0, 0)] - own).powi(2)).sum::<f64>() / 4000.0;
        assert!((squares / variance[(0, 0)] - 1.0).abs() < 0.15, "{squares} {}", variance[(0, 0)]);
        // what applies only to rows is refused, not given for other inputs
        let error = noisy.predict_gradients(x.as_ref()).expect_err("slopes").to_string();
        assert!(error.contains("without standard deviations"), "{error}");
        let again = noisy.without_input_deviations();
        assert_eq!((&again.input_names, &again.scaler), (&plain.input_names, &plain.scaler));
        let x = places(0.0, 1);
        let both =
            [&again, &plain].map(|f| f.predict(x.as_ref(), Of::Latent).expect("predictions"));
        assert_eq!(both[0], both[1]);
    }
}

#[test]
fn two_inputs_of_counts_by_nodes() {
    let n = 60;
    let x = Mat::from_fn(n, 2, |i, j| ((7 * i + 3 * j) % 11) as f64 * 0.3 + 0.01 * i as f64);
    let y =
        Mat::from_fn(n, 1, |i, _| ((x[(i, 0)] - 0.5 * x[(i, 1)]).exp() + (i % 3) as f64).floor());
    let options = FitOptions {
        likelihood: Some("poisson".into()),
        method: "svgp".into(),
        inducing: Some(12),
        batches: None,
        ..FitOptions::default()
    };
    let data = Dataset::from_arrays(x, y, false).expect("a data set");
    let plain = fit(&data, &options, &Cpu::default(), &mut ()).expect("a fit");
    let pairs = [("x1".to_owned(), "s1".to_owned()), ("x0".to_owned(), "s0".to_owned())];
    let noisy = plain.clone().with_input_deviations_of(&pairs).expect("a model");
    let (t, e) = ([1.3, 2.1], [0.4, 0.3]);
    let row = Mat::from_fn(1, 4, |_, j| [t[0], t[1], e[1], e[0]][j]);
    let (mean, variance) = noisy.predict(row.as_ref(), Of::Observations).expect("predictions");
    let side = 61;
    let at = |i: usize| -5.0 + 10.0 * i as f64 / (side - 1) as f64;
    let grid = Mat::from_fn(side * side, 2, |i, j| t[j] + e[j] * at([i / side, i % side][j]));
    let weight = |i: usize| (-0.5 * (at(i / side).powi(2) + at(i % side).powi(2))).exp();
    let (m, v) = plain.predict(grid.as_ref(), Of::Observations).expect("predictions");
    let total: f64 = (0..side * side).map(weight).sum();
    let own = (0..side * side).map(|i| weight(i) * m[(i, 0)]).sum::<f64>() / total;
    let spread = |i: usize| weight(i) * (v[(i, 0)] + (m[(i, 0)] - own).powi(2));
    let spread = (0..side * side).map(spread).sum::<f64>() / total;
    assert!((mean[(0, 0)] / own - 1.0).abs() < 0.01, "{} {own}", mean[(0, 0)]);
    assert!((variance[(0, 0)] / spread - 1.0).abs() < 0.03, "{} {spread}", variance[(0, 0)]);
    // at only the means it would be another
    let (alone, _) =
        plain.predict(Mat::from_fn(1, 2, |_, j| t[j]).as_ref(), Of::Observations).expect("one");
    assert!((alone[(0, 0)] / own - 1.0).abs() > 0.02, "{} {own}", alone[(0, 0)]);
}

#[test]
fn known_inputs_are_the_bound_for_known_inputs() {
    let mut train = rows(120, 4);
    train.iter_mut().for_each(|row| row[1] = 0.0);
    for method in ["titsias2009", "titsias2025"] {
        let options = FitOptions { method: method.into(), ..options() };
        let (plain, noisy) = (fitted(&train, false, &options), fitted(&train, true, &options));
        let objective = |f: &Fitted| f.report.as_ref().expect("a report").objective;
        let data = Dataset::from_loaded(loaded(&train, false), true).expect("a data set");
        let again = noisy.model.evaluate(&Cpu::default(), &*data.source).expect("a bound").value;
        let found = objective(&noisy);
        assert!((again - found).abs() < 1e-6 * found.abs(), "{again} {found}");
        // it continued from there
        assert!(found > objective(&plain) - 1e-9 * found.abs());
    }
}

#[test]
fn files_keep_what_is_uncertain() {
    let noisy = fitted(&rows(60, 2), true, &options());
    let bytes = io::to_bytes(&noisy).expect("bytes");
    let again = io::from_bytes(&bytes).expect("a model");
    assert_eq!(again.deviation_columns(), [("x".to_owned(), "sx".to_owned())]);
    for e in [0.0, 0.3] {
        let both = [&noisy, &again].map(|f| f.predict(places(e, 2).as_ref(), Of::Observations));
        let [a, b] = both.map(|own| own.expect("predictions"));
        assert_eq!(a, b);
    }
    assert_eq!(io::to_bytes(&again).expect("bytes"), bytes);
}

#[test]
fn what_cannot_be_is_said() {
    let train = rows(40, 1);
    let data = || Dataset::from_loaded(loaded(&train, true), true).expect("a data set");
    type Change = fn(&mut FitOptions);
    let cases: [(&str, Change); 7] = [
        ("the likelihood is `poisson`", |o| o.likelihood = Some("poisson".into())),
        ("the method is `svgp`", |o| o.method = "svgp".into()),
        ("a deep model", |o| o.method = "deep(layers=2)".into()),
        ("matern52", |o| o.kernel = "matern52".into()),
        ("a mean function", |o| o.mean = Some("linear".into())),
        ("a checkpoint", |o| o.checkpoint = Some("checkpoint".into())),
        ("a kernel for each target", |o| o.kernel = "rbf; rbf".into()),
    ];
    for (what, change) in cases {
        let mut own = options();
        change(&mut own);
        let error = fit(&data(), &own, &Cpu::default(), &mut ()).expect_err(what).to_string();
        assert!(error.contains(what), "{what}: {error}");
    }
    for (value, word) in [(-0.5, "row 3 has -0.5"), (f64::INFINITY, "row 3 has inf")] {
        let mut wrong = train.clone();
        wrong[2][1] = value;
        let error = Dataset::from_loaded(loaded(&wrong, true), true).err().expect(word).to_string();
        assert!(error.contains(word) && error.contains("`sx`"), "{error}");
    }
    let plain = fitted(&train, false, &options());
    // those of new rows too, by their own row and in their own unit
    let known = plain.clone().with_input_deviations_of(&[("x".to_owned(), "sx".to_owned())]);
    let known = known.expect("a model");
    let wrong = Mat::from_fn(5000, 2, |i, j| if (i, j) == (4321, 1) { -0.5 } else { 0.3 });
    let of = |error: sparsegp::Error| error.to_string();
    for error in [
        of(known.predict(wrong.as_ref(), Of::Latent).expect_err("a mean")),
        of(known.sample_y(wrong.as_ref(), &[], 1, 0).expect_err("a draw")),
    ] {
        assert!(error.contains("`sx`") && error.contains("row 4322 has -0.5"), "{error}");
    }
    let pairs = |a: &str, b: &str| [(a.to_owned(), b.to_owned())];
    for (pairs, word) in [(pairs("z", "sx"), "not an input"), (pairs("x", "x"), "an input itself")]
    {
        let error = plain.clone().with_input_deviations_of(&pairs).expect_err(word).to_string();
        assert!(error.contains(word), "{error}");
    }
    let noisy = fitted(&train, true, &options());
    let more = sparsegp::fit::go_on(noisy, &data(), &options(), &Cpu::default(), &mut ());
    assert!(more.expect_err("more").to_string().contains("known exactly"));
}

/// One pass gives what three give, for a mixture, an exact posterior, a deep one, two targets of which cells are missing.
#[test]
fn judging_is_what_predictions_say() {
    let train = rows(60, 5);
    let noisy = fitted(&train, true, &options());
    let (x, y) = (
        Mat::from_fn(40, 2, |i, j| [0.15 * i as f64, 0.1 * (i % 4) as f64][j]),
        Mat::from_fn(40, 2, |i, p| if (i + p) % 7 == 0 { f64::NAN } else { (i + p) as f64 * 0.1 }),
    );
    let data = Dataset::from_arrays(
        Mat::from_fn(60, 2, |i, j| train[i][j]),
        Mat::from_fn(60, 2, |i, p| 3.0 * train[i][3] + p as f64 * train[i][2]),
        true,
    );
    let data = data.expect("a data set");
    let exact = FitOptions { method: "exact".into(), ..FitOptions::default() };
    let mut deep = FitOptions { method: "deep(layers=2)".into(), ..FitOptions::default() };
    deep.inducing = Some(10);
    let all = |options: &FitOptions| fit(&data, options, &Cpu::default(), &mut ()).expect("a fit");
    for (own, y) in
        [(noisy, y.as_ref().subcols(0, 1)), (all(&exact), y.as_ref()), (all(&deep), y.as_ref())]
    {
        let found = own.judge(x.as_ref(), y, &[]).expect("scores");
        let (mean, variance) = own.predict(x.as_ref(), Of::Observations).expect("predictions");
        let (below, up_to) = own.cdf(x.as_ref(), y, &[]).expect("shares");
        for p in 0..y.ncols() {
            // target by target
            let alone =
                Mat::from_fn(40, y.ncols(), |i, q| if q == p { y[(i, q)] } else { f64::NAN });
            let density = own.log_density(x.as_ref(), alone.as_ref(), &[]).expect("densities");
            for i in 0..40 {
                let close = |a: f64, b: f64| {
                    assert!((a - b).abs() <= 1e-10 * (1.0 + b.abs()), "{p} {i}: {a} {b}");
                };
                close(found.mean[(i, p)], mean[(i, p)]);
                close(found.variance[(i, p)], variance[(i, p)]);
                if y[(i, p)].is_nan() {
                    assert!(found.log_density[(i, p)].is_nan() && found.up_to[(i, p)].is_nan());
                    continue;
                }
                close(found.log_density[(i, p)], density[i]);
                close(found.below[(i, p)], below[(i, p)]);
                close(found.up_to[(i, p)], up_to[(i, p)]);
            }
        }
    }
}

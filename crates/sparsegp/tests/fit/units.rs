//! From the model's scale to the data's units and back.

use crate::support::{METHODS, arrays, bits, fit, options, predict};
use rand_distr::{Distribution, Exp, Poisson, StandardNormal};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted};
use sparsegp::linalg::Mat;
use sparsegp::means::by_name;
use sparsegp::model::Model;
use sparsegp::rng;

fn moved(a: &Mat<f64>, scale: f64, offset: f64) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| scale * (a[(i, j)] + offset))
}

fn on(x: &Mat<f64>, y: &Mat<f64>, own: &FitOptions) -> Fitted {
    fit(&Dataset::from_arrays(x.clone(), y.clone(), true).expect("a table"), own).expect("a fit")
}

/// Powers of two near 10⁻¹² and 10¹²: every step of the computation scales exactly.
#[test]
fn powers_of_two_change_no_bit() {
    let (x, y) = arrays(60, 2);
    for method in METHODS {
        let plain = on(&x, &y, &options(method, 30));
        let (mean, variance) = predict(&plain, &x);
        for (a, b) in [(40, -40), (-40, 40), (-40, -40)] {
            let (sx, sy) = (2.0_f64.powi(a), 2.0_f64.powi(b));
            let other = on(&moved(&x, sx, 0.0), &moved(&y, sy, 0.0), &options(method, 30));
            assert_eq!(bits(&plain.model), bits(&other.model), "{method}");
            let (own_mean, own_variance) = predict(&other, &moved(&x, sx, 0.0));
            for i in 0..60 {
                assert_eq!(own_mean[i], sy * mean[i], "{method}");
                assert_eq!(own_variance[i], sy * sy * variance[i], "{method}");
            }
        }
    }
}

/// Other factors, and offsets of 10³ times the spread, round the data by 10³ε ≈ 2·10⁻¹³ of their
/// spread. Five iterations magnify that by the conditioning of K + σ²I (below 60/σ² with σ² above
/// 10⁻²: 10⁴) each of gradient and value: 10⁻⁸ leaves a factor of ten.
#[test]
fn scales_and_offsets_hardly_matter() {
    let (x, y) = arrays(60, 2);
    for method in METHODS {
        let own = options(method, 5);
        let plain = on(&x, &y, &own);
        let spread = plain.scaler.y_scale[0];
        let (mean, variance) = predict(&plain, &x);
        for (sx, ox) in [(1e-12, 0.0), (1e12, 0.0), (3e-12, 1e3), (7e11, -1e3)] {
            for (sy, oy) in [(1e-12, 5e2), (1e12, -1e3), (0.7e-12, 0.0)] {
                let other = on(&moved(&x, sx, ox), &moved(&y, sy, oy), &own);
                let (own_mean, own_variance) = predict(&other, &moved(&x, sx, ox));
                for i in 0..60 {
                    let back = own_mean[i] / sy - oy;
                    let what = format!("{method} {sx} {ox} {sy} {oy}");
                    assert!((back - mean[i]).abs() < 1e-8 * spread, "{what}: {back} {}", mean[i]);
                    let back = own_variance[i] / sy / sy;
                    assert!((back / variance[i] - 1.0).abs() < 1e-8, "{what}");
                }
            }
        }
    }
}

fn in_data_units(fitted: &Fitted, path: &str) -> Option<Vec<f64>> {
    let rows = fitted.parameters();
    let row = rows.into_iter().find(|row| row.path == path);
    row.unwrap_or_else(|| panic!("no {path}")).data_units
}

fn close(own: Option<Vec<f64>>, expected: &[f64]) {
    let own = own.expect("a unit");
    assert_eq!(own.len(), expected.len());
    for (a, b) in own.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-14 * b.abs(), "{a} {b}");
    }
}

/// Inputs with spreads near 50 and 0.02, targets near 300 and (the second) 0.5.
fn wide(outputs: usize) -> (Mat<f64>, Mat<f64>) {
    let (x, y) = arrays(50, 2);
    let x = Mat::from_fn(50, 2, |i, q| [30.0, 0.012][q] * x[(i, q)] + [700.0, -0.3][q]);
    let y = Mat::from_fn(50, outputs, |i, p| [240.0, 0.4][p] * y[((i + 3 * p) % 50, 0)] - 90.0);
    (x, y)
}

#[test]
fn parameters_have_the_units_of_the_data() {
    let (x, y) = wide(1);
    let mut own = options("titsias2025", 4);
    own.mean = Some("constant".into());
    own.kernel = "rbf + linear(ard=true) + matern32(active_dims=[1]) * rbf(ard=false) + \
                  linear(active_dims=[1]) * constant + linear"
        .into();
    let fitted = on(&x, &y, &own);
    let (s, at) = (&fitted.scaler, |path: &str| crate::support::value(&fitted.model, path));
    let (x0, x1, v) = (s.x_scale[0], s.x_scale[1], s.y_scale[0] * s.y_scale[0]);
    assert!(x0 > 20.0 && x1 < 0.05 && v > 1e4);
    let unit = |path: &str| in_data_units(&fitted, path);
    for (path, units) in [
        ("kernel.kernels[0].variance", vec![v]),
        ("kernel.kernels[0].lengthscales", vec![x0, x1]),
        ("kernel.kernels[1].variance", vec![v / (x0 * x0), v / (x1 * x1)]),
        ("kernel.kernels[2].kernels[0].variance", vec![v]),
        ("kernel.kernels[2].kernels[0].lengthscales", vec![x1]),
        ("kernel.kernels[2].kernels[1].variance", vec![1.0]),
        ("kernel.kernels[3].kernels[0].variance", vec![v / (x1 * x1)]),
        ("kernel.kernels[3].kernels[1].variance", vec![1.0]),
        ("likelihood.variance", vec![v]),
    ] {
        let expected: Vec<f64> = at(path).iter().zip(&units).map(|(v, u)| v * u).collect();
        assert_eq!(at(path).len(), units.len(), "{path}");
        close(unit(path), &expected);
    }
    // one number for both inputs
    assert_eq!(unit("kernel.kernels[2].kernels[1].lengthscales"), None);
    assert_eq!(unit("kernel.kernels[4].variance"), None);
    close(unit("mean.constant"), &[at("mean.constant")[0] * s.y_scale[0] + s.y_mean[0]]);
    let z = fitted.inducing_points().expect("columns that fit").expect("a sparse model");
    let points: Vec<f64> = (0..2).flat_map(|q| z.col_as_slice(q).to_vec()).collect();
    close(unit("inducing.points"), &points);
    let m = z.nrows();
    let raw = at("inducing.points");
    assert!((points[m] - (raw[m] * x1 + s.x_mean[1])).abs() < 1e-12);
    // as many names as there are parameters, in their order
    let paths: Vec<String> = fitted.model.params().into_iter().map(|(path, _)| path).collect();
    assert_eq!(fitted.parameters().into_iter().map(|r| r.path).collect::<Vec<_>>(), paths);
}

#[test]
fn several_targets_of_different_scales_share_no_unit() {
    let (x, y) = wide(2);
    let mut own = options("exact", 4);
    own.mean = Some("constant".into());
    own.kernel = "rbf * matern52".into();
    let fitted = on(&x, &y, &own);
    let (s, at) = (&fitted.scaler, |path: &str| crate::support::value(&fitted.model, path));
    let unit = |path: &str| in_data_units(&fitted, path);
    assert_eq!(unit("kernel.kernels[0].variance"), None);
    assert_eq!(unit("likelihood.variance"), None);
    close(unit("kernel.kernels[1].variance"), &at("kernel.kernels[1].variance"));
    let lengths = at("kernel.kernels[0].lengthscales");
    let expected = [lengths[0] * s.x_scale[0], lengths[1] * s.x_scale[1]];
    close(unit("kernel.kernels[0].lengthscales"), &expected);
    let c = at("mean.constant");
    let expected = [0, 1].map(|p| c[p] * s.y_scale[p] + s.y_mean[p]);
    close(unit("mean.constant"), &expected);
}

/// The same model written on the data's own scale: parameters from the table, the mean function's
/// constant at the targets' mean.
fn raw_model(fitted: &Fitted) -> Model {
    let mut model = fitted.model.clone();
    let outputs = fitted.target_names.len();
    let constant = fitted.model.mean.name() == "constant";
    model.mean = by_name("constant", fitted.input_names.len(), outputs).expect("a mean function");
    for row in fitted.parameters() {
        model.set(&row.path, &row.data_units.expect("a unit")).expect("values in range");
    }
    if !constant {
        model.set("mean.constant", &fitted.scaler.y_mean).expect("values in range");
    }
    model
}

/// log N(y) = log N(ỹ) − N log scale for every target. Relative jitter scales with Kuu. What remains is
/// rounding: 10⁻¹² (the data's offsets and the conditioning, 10⁴ε) of N terms of size log 300.
#[test]
fn the_objective_is_that_of_the_data_in_their_own_units() {
    for method in METHODS {
        for (outputs, kernel) in
            [(1, "rbf"), (1, "matern32 * rbf + constant"), (1, "matern12 + white"), (2, "matern52")]
        {
            for mean in ["zero", "constant"] {
                let own_mean_name = mean;
                let (x, first) = wide(1);
                // equal scales, so that the variances have units
                let sign = [1.0, -1.0];
                let y = Mat::from_fn(50, outputs, |i, p| sign[p] * first[(i, 0)]);
                let mut own = options(method, 6);
                own.kernel = kernel.into();
                own.mean = Some(mean.into());
                let fitted = on(&x, &y, &own);
                let raw = raw_model(&fitted);
                let data = InMemory::new(x.clone(), y).expect("as many rows");
                let value = raw.evaluate(&Cpu::default(), &data).expect("well posed").value;
                let own = fitted.objective().expect("a report");
                let what = format!("{method} {kernel} {mean}");
                assert!((own - value).abs() < 1e-8, "{what}: {own} against {value}");
                let report = fitted.report.as_ref().expect("a report").objective;
                assert!((own - report).abs() > 100.0, "the Jacobian is seen");
                // and the predictions are the same
                let posterior = raw.posterior(&Cpu::default(), &data).expect("well posed");
                let (mean, variance) = posterior.predict_y(x.as_ref(), &[]).expect("two columns");
                let (own_mean, own_variance) = predict(&fitted, &x);
                for i in 0..50 {
                    assert!((mean[(i, 0)] - own_mean[i]).abs() < 1e-7, "{what}");
                    let ratio = own_variance[i] / variance[(i, 0)];
                    // the fit knows that its constant was learnt
                    let fits = match own_mean_name {
                        "zero" => (ratio - 1.0).abs() < 1e-8,
                        _ => ratio > 1.0 && ratio < 1.2,
                    };
                    assert!(fits, "{what}: {ratio}");
                }
            }
        }
    }
}

/// A target in a unit that is 1000 times smaller: its density is so much less at every cell that is there, and at no other.
#[test]
fn missing_cells_have_no_unit() {
    let (x, y) = arrays(40, 2);
    let weights: Vec<f64> = (0..40).map(|i| 1.0 + f64::from(i % 2)).collect();
    for weighted in [false, true] {
        let with = |unit: f64| {
            let both = Mat::from_fn(40, 2, |i, p| match p {
                1 if i % 4 == 0 => f64::NAN,
                1 => unit * (x[(i, 0)] - x[(i, 1)]),
                _ => y[(i, 0)],
            });
            let mut rows = InMemory::new(x.clone(), both).expect("rows");
            if weighted {
                rows.weights.clone_from(&weights);
            }
            let own = FitOptions { pilot: 0, batches: None, ..options("svgp", 3) };
            fit(&Dataset::from_rows(rows, true).expect("a table"), &own).expect("a fit")
        };
        let (plain, small) = (with(1.0), with(1024.0));
        let objective = |fitted: &Fitted| fitted.objective().expect("a training");
        // of 30 rows; of those with an even index, whose weight is 1, half are missing
        let there = if weighted { 50.0 } else { 30.0 };
        let change = objective(&plain) - objective(&small);
        assert!((change - there * 1024.0_f64.ln()).abs() < 1e-6, "{change}");
        let back = sparsegp::io::from_bytes(&sparsegp::io::to_bytes(&small).expect("a file"));
        assert_eq!(objective(&back.expect("the model")), objective(&small));
    }
}

/// Latent functions in the unit of the targets, or of an exposure, are the same whatever it is: so is the log density of
/// the model but for the Jacobian. What remains is where iterations end.
#[test]
fn links_have_the_unit_of_the_targets() {
    let n = 50;
    let x = Mat::from_fn(n, 1, |i, _| 0.12 * i as f64);
    let generator = &mut rng::stream(29, "units");
    let mut draw = |law: &str, i: usize| -> f64 {
        let mean = x[(i, 0)].sin().exp();
        match law {
            "counts" => Poisson::new(3.0 * mean).expect("a mean").sample(generator),
            "times" => Exp::new(1.0 / mean).expect("a rate").sample(generator),
            _ => {
                let z: f64 = StandardNormal.sample(generator);
                mean + 0.2 * mean * z
            }
        }
    };
    for (likelihood, law) in [
        ("gamma(link=softplus)", "times"),
        ("exponential(link=softplus)", "times"),
        ("poisson(link=softplus)", "counts"),
        ("heteroscedastic", "numbers"),
        ("heteroscedastic(scale=softplus)", "numbers"),
        ("heteroscedastic-student-t(scale=softplus)", "numbers"),
    ] {
        let y: Vec<f64> = (0..n).map(|i| draw(law, i)).collect();
        let in_unit = |unit: f64| {
            let of_rows = if law == "counts" { 1.0 } else { unit };
            let targets = Mat::from_fn(n, 1, |i, _| of_rows * y[i]);
            let mut rows = InMemory::new(x.clone(), targets).expect("as many targets");
            if law == "counts" {
                rows.extra = vec![3.0 / unit; n];
            }
            let named = Some(likelihood.into());
            let own = FitOptions { likelihood: named, pilot: 20, ..options("auto", 300) };
            let fitted = fit(&Dataset::from_rows(rows, false).expect("a table"), &own);
            let fitted = fitted.unwrap_or_else(|error| panic!("{likelihood} × {unit}: {error}"));
            fitted.report.expect("a training").objective + n as f64 * of_rows.ln()
        };
        let plain = in_unit(1.0);
        for unit in [1e-4, 1e4, 1e9] {
            let own = in_unit(unit);
            assert!((own - plain).abs() < 0.05, "{likelihood} × {unit}: {own}, {plain}");
        }
    }
}

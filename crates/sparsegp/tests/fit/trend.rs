//! Coefficients of the mean function that were learnt from rows are not certain: universal kriging.

use crate::support::{arrays, fit, options, value};
use sparsegp::fit::{Dataset, FitOptions, Fitted, UpdateOptions, update};
use sparsegp::inducing::Selection;
use sparsegp::io;
use sparsegp::linalg::{Cholesky, Jitter, Mat, MatRef};
use sparsegp::rng::stream;

fn with(method: &str, mean: &str, inducing: Option<usize>) -> (Dataset, FitOptions) {
    let (x, y) = arrays(30, 2);
    let dataset = Dataset::from_arrays(x, y, true).expect("a table");
    let own = FitOptions { mean: Some(mean.into()), pilot: 0, inducing, ..options(method, 15) };
    (dataset, own)
}

/// At the rows' places, between them and far away, on the model's scale.
fn places() -> Mat<f64> {
    Mat::from_fn(5, 2, |i, j| [0.1, -0.7, 2.0, 6.0, -20.0][i] * [1.0, 0.4][j])
}

/// Variances of universal kriging with the model's kernel and noise, for the basis of `mean`.
fn kriging(fitted: &Fitted, x: MatRef<'_, f64>, at: &Mat<f64>, mean: &str) -> Vec<f64> {
    let (n, kernel) = (x.nrows(), fitted.model.kernel());
    let basis = |x: MatRef<'_, f64>| {
        let slopes = if mean == "linear" { 2 } else { 0 };
        Mat::from_fn(x.nrows(), slopes + 1, |i, j| if j < slopes { x[(i, j)] } else { 1.0 })
    };
    let covariances = |a: MatRef<'_, f64>, b: MatRef<'_, f64>| {
        let mut k = Mat::zeros(a.nrows(), b.nrows());
        kernel.evaluate(a, Some(b), k.as_mut(), &mut sparsegp::kernels::Tape::default());
        k
    };
    let mut a = covariances(x, x);
    (0..n).for_each(|i| a[(i, i)] += fitted.model.noise());
    let a = Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "A").expect("definite");
    let (h, g, k) = (basis(x), basis(at.as_ref()), covariances(at.as_ref(), x));
    let mut prior = vec![0.0; at.nrows()];
    kernel.diag(at.as_ref(), &mut prior);
    let solved = a.solve(k.transpose().to_owned().as_ref());
    let r = g.transpose().to_owned() - h.transpose() * &solved;
    let gram = h.transpose() * a.solve(h.as_ref());
    let gram =
        Cholesky::new(gram.as_ref(), Jitter::Absolute(0.0), "the Gram matrix").expect("definite");
    let spread = gram.solve(r.as_ref());
    let own = |i: usize| {
        let explained: f64 = (0..n).map(|j| k[(i, j)] * solved[(j, i)]).sum();
        let trend: f64 = (0..r.nrows()).map(|j| r[(j, i)] * spread[(j, i)]).sum();
        prior[i] - explained + trend
    };
    (0..at.nrows()).map(own).collect()
}

fn rows(dataset: &Dataset) -> Mat<f64> {
    let mut all = Mat::zeros(dataset.source.rows(), dataset.source.inputs());
    let copy = &mut |rows: sparsegp::data::Rows<'_>| {
        all.as_mut().subrows_mut(rows.start, rows.x.nrows()).copy_from(rows.x);
        Ok(())
    };
    dataset.source.for_each_chunk(100, copy).expect("rows");
    all
}

#[test]
fn variances_are_those_of_universal_kriging() {
    for mean in ["constant", "linear"] {
        let (dataset, own) = with("exact", mean, None);
        let fitted = fit(&dataset, &own).expect("a fit");
        let (x, at) = (rows(&dataset), places());
        let found = fitted.posterior.predict_f(at.as_ref()).expect("variances").1;
        for (i, expected) in kriging(&fitted, x.as_ref(), &at, mean).into_iter().enumerate() {
            assert!((found[(i, 0)] / expected - 1.0).abs() < 1e-9, "{mean} {i}: {}", found[(i, 0)]);
        }
        // far away a slope that is not known for certain counts for more than the kernel
        let far = found[(4, 0)] / value(&fitted.model, "kernel.variance")[0];
        assert!(if mean == "linear" { far > 1.5 } else { far > 1.0 }, "{mean}: {far}");
    }
}

/// With a point at every row the collapsed bounds are exact, and so is what they know of the mean function.
#[test]
fn sparse_methods_agree_where_they_are_exact() {
    let (dataset, own) = with("exact", "linear", None);
    let exact = fit(&dataset, &own).expect("a fit");
    let at = places();
    let expected = exact.posterior.predict_f(at.as_ref()).expect("variances").1;
    let set: Vec<(String, Vec<f64>)> = exact
        .model
        .params()
        .into_iter()
        .map(|(path, param)| (path, param.value().to_vec()))
        .collect();
    for method in ["titsias2009", "titsias2025"] {
        let (_, own) = with(method, "linear", Some(30));
        let mut own = FitOptions {
            set: set.clone(),
            selection: Selection::Given(rows(&dataset)),
            jitter: Jitter::Absolute(1e-10),
            ..own
        };
        own.train.max_iterations = 1;
        own.freeze = ["kernel", "likelihood", "inducing"].map(String::from).to_vec();
        let sparse = fit(&dataset, &own).expect("a fit");
        let found = sparse.posterior.predict_f(at.as_ref()).expect("variances").1;
        for i in 0..5 {
            let (own, exact) = (found[(i, 0)], expected[(i, 0)]);
            assert!((own / exact - 1.0).abs() < 1e-5, "{method} {i}: {own} {exact}");
        }
        // what is kept was not learnt from the rows
        own.freeze.push("mean".into());
        let kept = fit(&dataset, &own).expect("a fit");
        let found = kept.posterior.predict_f(at.as_ref()).expect("variances").1;
        assert!(found[(4, 0)] < 0.9 * expected[(4, 0)], "{method}");
    }
}

#[test]
fn every_door_knows_it() {
    for (method, inducing) in [("exact", None), ("titsias2025", Some(9))] {
        let (dataset, own) = with(method, "linear", inducing);
        let fitted = fit(&dataset, &own).expect("a fit");
        let (posterior, at) = (&fitted.posterior, places());
        let variance = posterior.predict_f(at.as_ref()).expect("variances").1;
        // files
        let path =
            std::env::temp_dir().join(format!("sparsegp-trend-{}-{method}", std::process::id()));
        io::save(&fitted, &path).expect("a file");
        let back = io::load(&path).expect("the model").posterior;
        let _ = std::fs::remove_file(&path);
        let again = back.predict_f(at.as_ref()).expect("variances").1;
        for i in 0..5 {
            assert!((again[(i, 0)] / variance[(i, 0)] - 1.0).abs() < 1e-12, "{method} {i}");
        }
        // covariances between rows
        let full = &posterior.predict_f_full(at.as_ref()).expect("covariances").1[0];
        for i in 0..5 {
            assert!((full[(i, i)] / variance[(i, 0)] - 1.0).abs() < 1e-9, "{method} {i}");
        }
        // slopes
        let slopes = posterior.predict_gradients(at.as_ref()).expect("slopes").variance;
        for (i, q) in (0..5).flat_map(|i| [(i, 0), (i, 1)]) {
            let moved = |by: f64| {
                let mut own = at.clone();
                own[(i, q)] += by;
                posterior.predict_f(own.as_ref()).expect("variances").1[(i, 0)]
            };
            let by_hand = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            let room = 1e-6 * (1.0 + by_hand.abs());
            assert!((slopes[0][(i, q)] - by_hand).abs() < room, "{method} {i} {q}: {by_hand}");
        }
        // draws at rows, and drawn functions
        let mut rng = stream(5, "draws");
        let drawn = posterior.sample_f(at.as_ref(), 4000, &mut rng).expect("draws");
        let functions = posterior.sample_functions(4000, 64, &mut rng).expect("functions");
        for all in [drawn, functions.evaluate(at.as_ref()).expect("values")] {
            for i in 0..5 {
                let mean = all.iter().map(|f| f[(i, 0)]).sum::<f64>() / 4000.0;
                let square = all.iter().map(|f| (f[(i, 0)] - mean).powi(2)).sum::<f64>() / 4000.0;
                // six standard deviations of such an estimate
                let room = 6.0 * (2.0_f64 / 4000.0).sqrt();
                assert!((square / variance[(i, 0)] - 1.0).abs() < room, "{method} {i}: {square}");
            }
        }
    }
}

#[test]
fn what_is_left_out_is_said() {
    let (dataset, own) = with("titsias2025", "linear", Some(9));
    let fitted = fit(&dataset, &own).expect("a fit");
    let more = {
        let (x, y) = arrays(30, 2);
        Dataset::from_arrays(x, y, fitted.scaler.clone()).expect("a table")
    };
    let (updated, _) =
        update(&fitted, &more, &UpdateOptions::default(), &mut |_, _| Ok(())).expect("an update");
    let warnings = updated.warnings.join("\n");
    assert!(warnings.contains("mean function for certain"), "{warnings}");
}

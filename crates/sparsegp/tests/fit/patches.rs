//! Convolutional kernels with inducing patches, from data to a saved model.

use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of, fit};
use sparsegp::inducing::Selection;
use sparsegp::io;
use sparsegp::kernels::{Inputs, parse};
use sparsegp::linalg::Mat;

const KERNEL: &str =
    "convolutional(patch=[2, 2], base=rbf(variance=1.3, lengthscales=0.8, ard=false))";

/// Images of 4×4 pixels, black and white, with a cross-wise edge or not; the target counts the edges, with a little noise.
fn images(n: usize, from: usize) -> (Mat<f64>, Mat<f64>) {
    let pixel = |i: usize, q: usize| {
        let (r, c, i) = (q / 4, q % 4, i + from);
        f64::from(u8::from((i / 5 + r) % 4 < 2 + i % 2 && (i + c) % 4 > i % 3))
    };
    let x = Mat::from_fn(n, 16, pixel);
    let edges = |i: usize| -> f64 {
        let at = |r: usize, c: usize| x[(i, 4 * r + c)];
        (0..4)
            .flat_map(|r| (0..3).map(move |c| (r, c)))
            .map(|(r, c)| (at(r, c) - at(r, c + 1)).abs())
            .sum()
    };
    let y = Mat::from_fn(n, 1, |i, _| {
        0.2 * edges(i) + 0.1 * (((i + from) * 7 % 11) as f64 / 11.0 - 0.5)
    });
    (x, y)
}

fn options(method: &str, inducing: Option<usize>) -> FitOptions {
    FitOptions {
        kernel: KERNEL.into(),
        method: method.into(),
        inducing,
        mean: Some("zero".into()),
        likelihood: Some("gaussian(variance=0.02)".into()),
        batches: None,
        ..FitOptions::default()
    }
}

fn fitted(options: &FitOptions) -> Fitted {
    let (x, y) = images(60, 0);
    let data = Dataset::from_arrays(x, y, false).expect("a data set");
    fit(&data, options, &Cpu::default(), &mut ()).expect("a fit")
}

/// The distinct patches of the images.
fn distinct() -> Mat<f64> {
    let (x, _) = images(60, 0);
    let kernel = parse(KERNEL, Inputs::unnamed(16)).expect("a kernel");
    let mut rng = sparsegp::rng::stream(0, "patches");
    kernel.choose_interdomain(x.as_ref(), 1000, &mut rng)
}

#[test]
fn all_patches_leave_nothing_unexplained() {
    let (x, y) = images(60, 0);
    let data = Dataset::from_arrays(x, y, false).expect("a data set");
    let z = distinct();
    assert!((8..=16).contains(&z.nrows()), "{}", z.nrows());
    let still = |method: &str, inducing: Option<usize>| {
        let mut options = options(method, inducing);
        options.freeze = vec!["kernel".into(), "likelihood".into()];
        if inducing.is_some() {
            options.selection = Selection::Given(z.clone());
            options.freeze.push("inducing".into());
            options.jitter = sparsegp::linalg::Jitter::Absolute(1e-10);
        }
        fitted(&options)
    };
    let exact = still("exact", None);
    let evidence = exact.model.evaluate(&Cpu::default(), &*data.source).expect("evidence").value;
    let new = images(9, 100).0;
    let (mean, variance) = exact.predict(new.as_ref(), Of::Latent).expect("predictions");
    for method in ["titsias2009", "titsias2025"] {
        let sparse = still(method, Some(z.nrows()));
        assert_eq!(sparse.posterior.points().ncols(), 4);
        assert_eq!(sparse.posterior.inputs(), 16);
        let bound = sparse.model.evaluate(&Cpu::default(), &*data.source).expect("a bound").value;
        assert!((bound - evidence).abs() < 1e-5 * evidence.abs(), "{method} {bound} {evidence}");
        let (m, v) = sparse.predict(new.as_ref(), Of::Latent).expect("predictions");
        for i in 0..9 {
            assert!((m[(i, 0)] - mean[(i, 0)]).abs() < 1e-4, "{i}");
            assert!((v[(i, 0)] - variance[(i, 0)]).abs() < 1e-4, "{i}");
        }
    }
    // and q that is trained is below
    let sites = still("tsvgp", Some(z.nrows()));
    let bound = sites.report.as_ref().expect("a report").objective;
    assert!(
        bound < evidence + 1e-6 && bound > evidence - 0.01 * evidence.abs(),
        "{bound} {evidence}"
    );
}

#[test]
fn patches_are_chosen_trained_and_kept() {
    for method in ["titsias2025", "svgp", "lsvgp", "rsvgp"] {
        let mut options = options(method, Some(6));
        options.likelihood = None;
        options.kernel = "convolutional(patch=[2, 2], weighted=true)".into();
        options.batches =
            matches!(method, "svgp" | "rsvgp").then(sparsegp::fit::BatchOptions::default);
        if let Some(batches) = &mut options.batches {
            batches.training.epochs = Some(300);
            batches.training.pace.frozen = 0;
            batches.size = 30;
        }
        let own = fitted(&options);
        assert_eq!(own.posterior.points().ncols(), 4, "{method}");
        let (x, y) = images(40, 200);
        let score = |f: &Fitted| {
            let (mean, _) = f.predict(x.as_ref(), Of::Observations).expect("predictions");
            let centre = y.col_as_slice(0).iter().sum::<f64>() / 40.0;
            let of =
                |m: &dyn Fn(usize) -> f64| (0..40).map(|i| (y[(i, 0)] - m(i)).powi(2)).sum::<f64>();
            of(&|i| mean[(i, 0)]) / of(&|_| centre)
        };
        assert!(score(&own) < 0.2, "{method} {}", score(&own));
        let again = io::from_bytes(&io::to_bytes(&own).expect("bytes")).expect("a model");
        assert_eq!(score(&again), score(&own));
        assert_eq!(own.inducing_points().expect("patches").expect("patches").ncols(), 4);
        let params = own.parameters();
        assert!(params.iter().any(|row| row.path == "inducing.points"));
    }
    // images in their place where another choice is asked for
    let whole =
        FitOptions { selection: Selection::GreedyVariance, ..options("titsias2025", Some(6)) };
    assert_eq!(fitted(&whole).posterior.points().ncols(), 16);
}

#[test]
fn given_patches_are_looked_at_as_points_are() {
    let (x, y) = images(60, 0);
    let data = Dataset::from_arrays(x, y, false).expect("a data set");
    let given = |z: Mat<f64>| {
        let selection = Selection::Given(z);
        let options = FitOptions { selection, ..options("titsias2025", None) };
        fit(&data, &options, &Cpu::default(), &mut ())
    };
    let patch = |i: usize, e: usize| ((i + e) % 3) as f64;
    let message = |z: Mat<f64>| given(z).expect_err("a refusal").to_string();
    let wrong = message(Mat::from_fn(3, 4, |i, e| if i == 1 { f64::NAN } else { patch(i, e) }));
    assert!(wrong.contains("inducing points"), "{wrong}");
    let wrong = message(Mat::from_fn(3, 5, patch));
    assert!(wrong.contains("5 columns"), "{wrong}");
    let twice = given(Mat::from_fn(4, 4, |i, e| patch(i % 2, e))).expect("a fit");
    assert!(
        twice.warnings.iter().any(|text| text.contains("only 2 of the 4")),
        "{:?}",
        twice.warnings
    );
}

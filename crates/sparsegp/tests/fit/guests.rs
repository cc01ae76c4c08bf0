//! Kernels, likelihoods and mean functions of other crates: in whole fits, sums, files, and where they are refused.

use crate::support::{arrays, fit, options};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of, Standardise};
use sparsegp::io;
use sparsegp::kernels::general::{Covariance, General};
use sparsegp::kernels::{self, Args, Entry, Inputs, Kernel, parse};
use sparsegp::likelihoods::general::Density;
use sparsegp::likelihoods::{self, Likelihood, Support};
use sparsegp::linalg::{Mat, MatMut, MatRef};
use sparsegp::means::general::Function;
use sparsegp::means::{self, Mean};
use sparsegp::params::{Param, Role, Shape, Transform};

/// A squared exponential, as somebody else would write it; the built-in one is the reference.
#[derive(Clone, Debug)]
struct Bell;

impl Covariance for Bell {
    fn name(&self) -> &'static str {
        "bell"
    }

    fn parameters(&self, columns: usize) -> Vec<(String, Param)> {
        let each = Param::positive_vector(vec![1.0; columns]).of(Role::Lengthscales);
        vec![
            ("variance".into(), Param::positive(1.0).of(Role::Variance)),
            ("lengthscales".into(), each),
        ]
    }

    fn values(&self, p: &[&[f64]], x: MatRef<f64>, z: MatRef<f64>, mut out: MatMut<f64>) {
        for j in 0..z.nrows() {
            for i in 0..x.nrows() {
                let apart = |q: usize| (x[(i, q)] - z[(j, q)]) / p[1][q];
                let squares: f64 = (0..x.ncols()).map(|q| apart(q).powi(2)).sum();
                out[(i, j)] = p[0][0] * (-0.5 * squares).exp();
            }
        }
    }
}

/// Minus a squared exponential: no covariance function.
#[derive(Clone, Debug)]
struct Wrong;

impl Covariance for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn parameters(&self, _: usize) -> Vec<(String, Param)> {
        Vec::new()
    }

    fn values(&self, _: &[&[f64]], x: MatRef<f64>, z: MatRef<f64>, mut out: MatMut<f64>) {
        for j in 0..z.nrows() {
            for i in 0..x.nrows() {
                out[(i, j)] = if x[(i, 0)] == z[(j, 0)] { 1.0 } else { -0.9 };
            }
        }
    }
}

fn bell(args: Args<'_>) -> sparsegp::Result<Box<dyn Kernel>> {
    Ok(Box::new(General::read(Bell, &args)?))
}

fn wrong(args: Args<'_>) -> sparsegp::Result<Box<dyn Kernel>> {
    Ok(Box::new(General::read(Wrong, &args)?))
}

const BELL: Entry = Entry { name: "bell", aliases: &["bell-shaped"], about: "as rbf", build: bell };

fn data() -> Dataset {
    let (x, y) = arrays(120, 2);
    Dataset::from_arrays(x, y, true).expect("a table")
}

fn predictions(fitted: &Fitted) -> Mat<f64> {
    let new = Mat::from_fn(9, 2, |i, j| (0.7 * i as f64 + 1.3 * j as f64).sin());
    let (mean, variance) = fitted.predict(new.as_ref(), Of::Observations).expect("predictions");
    Mat::from_fn(9, 2, |i, j| if j == 0 { mean[(i, 0)] } else { variance[(i, 0)] })
}

fn apart(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    (a - b).norm_max()
}

#[test]
fn a_kernel_by_its_values_fits_as_the_built_in_one() {
    kernels::register(BELL).unwrap();
    for (own, reference, method) in [
        ("bell", "rbf", "exact"),
        (
            "bell(lengthscales=[0.8, 1.7]) + linear",
            "rbf(lengthscales=[0.8, 1.7]) + linear",
            "exact",
        ),
        // inducing points move, and so do the slopes in them
        ("bell * matern52(active_dims=[1])", "rbf * matern52(active_dims=[1])", "titsias2025"),
        ("bell-shaped(active_dims=[1])", "rbf(active_dims=[1])", "svgp"),
    ] {
        let with = |kernel: &str| {
            let own = FitOptions {
                kernel: kernel.into(),
                inducing: Some(12),
                batches: None,
                // points that move go apart in the end, as rounding does
                ..options(method, if method == "exact" { 200 } else { 6 })
            };
            fit(&data(), &own).expect("a fit")
        };
        let (own, reference) = (with(own), with(reference));
        let difference = apart(&predictions(&own), &predictions(&reference));
        assert!(difference < 2e-3, "{method}: {difference}");
        let objective = |fitted: &Fitted| fitted.report.as_ref().expect("a report").objective;
        let (a, b) = (objective(&own), objective(&reference));
        assert!((a - b).abs() < 2e-3 * b.abs(), "{method}: {a} and {b}");
        // without the rows
        let bytes = io::to_bytes(&own).expect("a file");
        let read = io::from_bytes(&bytes).expect("a model");
        assert_eq!(predictions(&read), predictions(&own), "{method}");
    }
}

#[test]
fn names_are_given_once() {
    kernels::register(BELL).unwrap();
    kernels::register(BELL).unwrap();
    let other = Entry { name: "bell", aliases: &[], about: "another", build: wrong };
    let error = kernels::register(other).unwrap_err().to_string();
    assert!(error.contains("`bell`: there is another one"), "{error}");
    let taken = Entry { name: "rbf", ..other };
    assert!(kernels::register(taken).is_err());
    let error = kernels::register(Entry { name: "my kernel", ..other }).unwrap_err().to_string();
    assert!(error.contains("small letters"), "{error}");
}

#[test]
fn what_is_not_a_covariance_or_is_not_known_is_refused_by_name() {
    kernels::register(Entry { name: "wrong", aliases: &[], about: "", build: wrong }).unwrap();
    let with = |kernel: &str, method: &str| {
        let own = FitOptions { kernel: kernel.into(), inducing: None, ..options(method, 20) };
        fit(&data(), &own).map(|_| ()).unwrap_err().to_string()
    };
    let error = with("wrong", "exact");
    assert!(error.contains("the kernel `wrong` is not positive semi-definite"), "{error}");
    let error = with("rbf + wrong", "svgp");
    assert!(error.contains("`wrong`"), "{error}");
    kernels::register(BELL).unwrap();
    let error = with("bell(active_dims=[0])", "markov");
    assert!(error.contains("bell"), "{error}");
    let error = with("bel", "exact");
    assert!(error.contains("unknown kernel `bel`; nearest: bell"), "{error}");
    let python = r#"{"type": "python", "class": "my.kernels:Bell"}"#;
    let error = parse(python, Inputs::unnamed(1)).unwrap_err().to_string();
    assert!(error.contains("class `my.kernels:Bell` of Python"), "{error}");
}

/// Counts by their log density on arrays, as `poisson` is.
#[derive(Clone, Debug)]
struct Counts;

impl Density for Counts {
    fn name(&self) -> &'static str {
        "own-counts"
    }

    fn parameters(&self) -> Vec<(String, Param)> {
        Vec::new()
    }

    fn support(&self) -> Support {
        Support::Counts
    }

    fn log_density(&self, _: &[&[f64]], y: &[f64], f: MatRef<f64>, out: &mut [f64]) {
        for (i, (out, y)) in out.iter_mut().zip(y).enumerate() {
            let factorial: f64 = (1..=*y as u32).map(|k| f64::from(k).ln()).sum();
            *out = y * f[(i, 0)] - f[(i, 0)].exp() - factorial;
        }
    }

    fn start(&self, targets: &[f64]) -> Vec<f64> {
        let mean = targets.iter().sum::<f64>() / targets.len().max(1) as f64;
        vec![(mean + 0.1).ln()]
    }
}

fn own_counts(args: likelihoods::Args<'_>) -> sparsegp::Result<Box<dyn Likelihood>> {
    Ok(Box::new(likelihoods::general::General::read(Counts, &args)?))
}

#[test]
fn a_likelihood_by_its_density_fits_as_the_built_in_one() {
    let entry = likelihoods::Entry {
        name: "own-counts",
        aliases: &[],
        about: "as poisson",
        targets: "counts (0, 1, 2, …)",
        latents: "1",
        augmented: false,
        build: own_counts,
    };
    likelihoods::register(entry).unwrap();
    assert!(likelihoods::register(likelihoods::Entry { name: "poisson", ..entry }).is_err());
    let (x, y) = arrays(120, 2);
    let y = Mat::from_fn(120, 1, |i, _| (0.7 * y[(i, 0)]).exp().round());
    let scaling = Standardise { inputs: true, targets: false, robust: false, constants: false };
    let data = Dataset::from_arrays(x, y, scaling.for_kernel("rbf")).expect("a table");
    for method in ["svgp", "tsvgp", "tvgp"] {
        let with = |likelihood: &str| {
            // the same start: what is not given follows the likelihood's own guesses
            let own = FitOptions {
                kernel: "rbf(variance=0.8, lengthscales=[0.9, 1.4])".into(),
                mean: Some(r#"{"type": "constant", "constant": [1.3]}"#.into()),
                likelihood: Some(likelihood.into()),
                inducing: (method != "tvgp").then_some(12),
                batches: None,
                ..options(method, 60)
            };
            fit(&data, &own).expect("a fit")
        };
        let (own, reference) = (with("own-counts"), with("poisson"));
        let (found, expected) = (predictions(&own), predictions(&reference));
        let difference = apart(&found, &expected) / expected.norm_max();
        assert!(difference < 1e-3, "{method}: {difference}");
        let objective = |fitted: &Fitted| fitted.report.as_ref().expect("a report").objective;
        let (a, b) = (objective(&own), objective(&reference));
        assert!((a - b).abs() < 1e-5 * b.abs(), "{method}: {a} and {b}");
        let bytes = io::to_bytes(&own).expect("a file");
        let read = io::from_bytes(&bytes).expect("a model");
        assert_eq!(predictions(&read), predictions(&own), "{method}");
    }
    let python = r#"{"type": "python", "class": "my.noise:Own"}"#;
    let error = likelihoods::parse(python).unwrap_err().to_string();
    assert!(error.contains("class `my.noise:Own` of Python"), "{error}");
}

/// A linear mean function, as `linear` is.
#[derive(Clone, Debug)]
struct Line;

impl Function for Line {
    fn name(&self) -> &'static str {
        "own-line"
    }

    fn parameters(&self, columns: usize) -> Vec<(String, Param)> {
        let slopes = Param::with(vec![0.1; columns], Shape::Vector(columns), Transform::Identity);
        vec![("slopes".into(), slopes), ("constant".into(), Param::real(0.2))]
    }

    fn values(&self, p: &[&[f64]], x: MatRef<f64>, mut out: MatMut<f64>) {
        for i in 0..x.nrows() {
            let line: f64 = p[0].iter().enumerate().map(|(q, w)| w * x[(i, q)]).sum();
            (0..out.ncols()).for_each(|o| out[(i, o)] = p[1][0] + line);
        }
    }
}

/// Minus infinity somewhere.
#[derive(Clone, Debug)]
struct Pole;

impl Function for Pole {
    fn name(&self) -> &'static str {
        "own-pole"
    }

    fn parameters(&self, _: usize) -> Vec<(String, Param)> {
        Vec::new()
    }

    fn values(&self, _: &[&[f64]], x: MatRef<f64>, mut out: MatMut<f64>) {
        (0..x.nrows()).for_each(|i| out[(i, 0)] = (x[(i, 0)] - 100.0).ln());
    }
}

fn own_line(args: means::Args<'_>) -> sparsegp::Result<Box<dyn Mean>> {
    Ok(Box::new(means::general::General::read(Line, &args)?))
}

fn own_pole(args: means::Args<'_>) -> sparsegp::Result<Box<dyn Mean>> {
    Ok(Box::new(means::general::General::read(Pole, &args)?))
}

#[test]
fn a_mean_function_by_its_values_fits_as_the_built_in_one() {
    let entry = means::Entry { name: "own-line", about: "as linear", build: own_line };
    means::register(entry).unwrap();
    means::register(means::Entry { name: "own-pole", about: "", build: own_pole }).unwrap();
    assert!(means::register(means::Entry { name: "linear", ..entry }).is_err());
    let (x, y) = arrays(90, 2);
    let y = Mat::from_fn(90, 1, |i, _| y[(i, 0)] + 2.0 * x[(i, 0)] - 3.0 * x[(i, 1)]);
    let data = Dataset::from_arrays(x, y, true).expect("a table");
    for method in ["exact", "titsias2025", "svgp", "tvgp"] {
        let with = |mean: &str, iterations: usize| {
            let inducing = (!["exact", "tvgp"].contains(&method)).then_some(25);
            let mean = Some(mean.into());
            let own = FitOptions { mean, inducing, batches: None, ..options(method, iterations) };
            fit(&data, &own).expect("a fit")
        };
        // the same start: `linear` begins with least squares where nothing is given
        let own = r#"{"type": "own-line", "slopes": [1.8, -2.5], "constant": 0.3}"#;
        let linear = r#"{"type": "linear", "weights": [1.8, -2.5], "constant": [0.3]}"#;
        let objective = |fitted: &Fitted| fitted.report.as_ref().expect("a report").objective;
        let [start, reference] = [with(own, 0), with(linear, 0)];
        let (before, value) = (objective(&start), objective(&reference));
        assert!((before - value).abs() < 1e-8 * value.abs(), "{method}: {before} and {value}");
        let slopes = |fitted: &Fitted| {
            let found = fitted.model.evaluate(&Cpu::default(), &*data.source);
            found.expect("an objective").gradient
        };
        let (slopes, expected) = (slopes(&start), slopes(&reference));
        assert_eq!(slopes.len(), expected.len());
        for (a, b) in slopes.iter().zip(&expected) {
            assert!((a - b).abs() < 1e-6 * (1.0 + b.abs()), "{method}: {a} and {b}");
        }
        let own = with(own, 150);
        let after = objective(&own);
        assert!(after > before, "{method}: {after} after {before}");
        let paths: Vec<String> = own.parameters().into_iter().map(|p| p.path).collect();
        assert!(paths.contains(&"mean.slopes".into()), "{paths:?}");
        let read = io::from_bytes(&io::to_bytes(&own).expect("a file")).expect("a model");
        assert_eq!(predictions(&read), predictions(&own), "{method}");
        assert_eq!(read.model.mean.name(), "own-line");
    }
    let with = |mean: &str| {
        fit(&data, &FitOptions { mean: Some(mean.into()), ..options("exact", 3) })
            .unwrap_err()
            .to_string()
    };
    assert!(with("own-pole").contains("`own-pole` is NaN for row 0"), "{}", with("own-pole"));
    let python = with(r#"{"type": "python", "class": "my.means:Own"}"#);
    assert!(python.contains("class `my.means:Own` of Python"), "{python}");
    assert!(with("own-lime").contains("nearest: own-line"), "{}", with("own-lime"));
}

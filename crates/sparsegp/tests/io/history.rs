//! Histories, long headers and times: what must not make a file too long, or differ from run to run.

use crate::support::{Parts, fitted, options, take_apart};
use sparsegp::data::Mask;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, Division, FitOptions, fit};
use sparsegp::io::{from_bytes, save, to_bytes};
use sparsegp::kernels::Inputs;
use sparsegp::kernels::custom::{Custom, Kappa};
use sparsegp::kernels::radial::Radial;
use sparsegp::likelihoods::dual::Real;
use sparsegp::linalg::Mat;
use sparsegp::train::TrainOptions;

/// The same fit writes the same bytes, but for the clock and its checksum, which end the numbers and the file.
#[test]
fn the_same_fit_writes_the_same_bytes() {
    for method in ["exact", "titsias2025", "svgp"] {
        let one = || {
            let mut own = fitted(1, &options(method, "rbf + linear"));
            own.annotations = (0..9).map(|i| (format!("note {i}"), "text".into())).collect();
            // another second, whatever the computer is doing
            own.made.at = own.made.at.map(|at| at + u64::from(own.rows as u32));
            to_bytes(&own).expect("room for a file")
        };
        let (a, b) = (one(), one());
        assert_eq!(a.len(), b.len());
        let parts = take_apart(&a);
        let start = a.len() - parts.data.len();
        let at = |name: &str, i: usize| {
            start + parts.header[name]["data_offsets"][i].as_u64().expect("a number") as usize
        };
        let clock = at("written.clock", 0)..at("written.clock", 1);
        let sums = at("written.sums", 0)..at("written.sums", 1);
        assert_eq!(sums.end, a.len());
        for (i, (a, b)) in a.iter().zip(&b).enumerate() {
            assert!(a == b || clock.contains(&i) || sums.contains(&i), "{method}: byte {i}");
        }
    }
}

/// The header holds neither history nor seconds.
#[test]
fn the_history_is_tensors() {
    let own = fitted(1, &options("titsias2025", "rbf"));
    let content = to_bytes(&own).expect("room for a file");
    let parts = take_apart(&content);
    let model = parts.model();
    assert_eq!(model["report"]["trace"], serde_json::json!([]));
    assert_eq!(model["report"]["seconds"], 0.0);
    let report = own.report.expect("a training");
    let (shape, points) = parts.tensor("training.trace");
    assert_eq!(shape, [report.trace.len(), 6]);
    assert_eq!(points[2], report.trace[0].objective);
    assert!(points[4].is_nan(), "no rows were kept aside");
    let (shape, parameters) = parts.tensor("training.parameters");
    assert_eq!(shape, [report.trace.len(), report.trace[0].parameters.len()]);
    assert_eq!(parameters[..shape[1]], report.trace[0].parameters);
    let (_, clock) = parts.tensor("written.clock");
    assert_eq!(clock[0], own.made.at.expect("a clock") as f64);
    assert_eq!(clock[1], report.seconds);
    let back = from_bytes(&content).expect("a model");
    let again = back.report.expect("a training");
    assert_eq!((again.trace, again.seconds), (report.trace, report.seconds));
    assert_eq!(back.made, own.made);
}

/// Histories whose points have different numbers of values, and values that are not finite, come back too.
#[test]
fn odd_histories_come_back() {
    let mut own = fitted(1, &options("exact", "rbf"));
    let report = own.report.as_mut().expect("a training");
    report.trace[1].parameters.clear();
    report.trace[0].gradient_norm = f64::INFINITY;
    report.trace[1].held_out = Some(-2.5);
    let trace = report.trace.clone();
    let back = from_bytes(&to_bytes(&own).expect("room for a file")).expect("a model");
    assert_eq!(back.report.expect("a training").trace, trace);
    // JSON has no infinity: the report goes, the model stays, and says so
    own.report.as_mut().expect("a training").objective = f64::INFINITY;
    let back = from_bytes(&to_bytes(&own).expect("room for a file")).expect("a model");
    assert!(back.report.is_none());
    assert!(back.warnings.iter().any(|w| w.contains("not finite")), "{:?}", back.warnings);
}

/// A table of many columns: names and lengthscales leave the header too, and the file opens.
#[test]
fn a_long_header_is_a_tensor() {
    let d = 3000;
    let x = Mat::from_fn(20, d, |i, q| ((i * (q + 3)) as f64 * 0.37).sin());
    let y = Mat::from_fn(20, 1, |i, _| x[(i, 0)] + x[(i, 1)]);
    let mut data = Dataset::from_arrays(x.clone(), y, true).expect("a table");
    data.input_names = (0..d).map(|q| format!("a column with quite a long name, {q}")).collect();
    let own = FitOptions {
        train: TrainOptions { max_iterations: 3, ..TrainOptions::default() },
        pilot: 0,
        method: "exact".into(),
        kernel: "rbf(ard=true)".into(),
        ..FitOptions::default()
    };
    let own = fit(&data, &own, &Cpu::default(), &mut ()).expect("a fit");
    let content = to_bytes(&own).expect("room for a file");
    let parts: Parts = take_apart(&content);
    let length = content.len() - parts.data.len();
    assert!(length < 4096, "{length} bytes of header");
    assert_eq!(parts.model()["header"], "model.header");
    let back = from_bytes(&content).expect("a model");
    assert_eq!(back.input_names, own.input_names);
    let of = sparsegp::fit::Of::Latent;
    let predict = |m: &sparsegp::fit::Fitted| m.predict(x.as_ref(), of).expect("inputs that fit");
    assert_eq!(predict(&back).0, predict(&own).0);
}

/// Which rows were held out is remembered.
#[test]
fn divisions_come_back() {
    let mut own = fitted(1, &options("exact", "rbf"));
    for rows in [1, 7, 8, 9, 64, 65] {
        let flags = |k: usize| (0..rows).map(move |row| row % k == 0);
        own.division = Some(Division {
            rows,
            held_out: Some(Mask::new("rows held out", flags(3))),
            aside: (rows > 8).then(|| Mask::new("rows aside", flags(4))),
            fingerprint: u64::MAX - 5,
        });
        let back = from_bytes(&to_bytes(&own).expect("room for a file")).expect("a model");
        assert_eq!(back.division, own.division);
    }
}

/// What could not be loaded is not saved, and the message says why.
#[test]
fn a_kernel_that_cannot_be_loaded_is_refused() {
    let mut own = fitted(1, &options("exact", "rbf"));
    let custom = Radial::new(Custom::new(Mine).expect("no shapes"), Inputs::unnamed(3));
    own.model.kernels = vec![Box::new(custom.expect("a kernel"))];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model");
    let reason = save(&own, &path).expect_err("nobody knows this kernel").to_string();
    assert!(reason.contains("its kernel could not be loaded again"), "{reason}");
    assert!(reason.contains("my-own") && !path.exists(), "{reason}");
}

#[derive(Clone, Debug)]
struct Mine;

impl Kappa for Mine {
    fn name(&self) -> &'static str {
        "my-own"
    }
    fn kappa<T: Real>(&self, squared_distance: T, _: &[T]) -> T {
        (-squared_distance).exp()
    }
}

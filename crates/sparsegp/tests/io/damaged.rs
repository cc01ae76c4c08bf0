//! Files that are not models: an error with a sentence, never a panic.

use crate::support::{Parts, fitted, options, refusal, take_apart};
use serde_json::{Value, json};
use sparsegp::fit::{FitOptions, Hyperparameters, Of};
use sparsegp::io::{load, save};
use sparsegp::rng::{below, stream, uniform};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tempfile::TempDir;

fn good(method: &str) -> (TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("good.safetensors");
    let own = fitted(2, &options(method, "matern32(active_dims=[\"salt\"]) + rbf"));
    save(&own, &path).expect("room for a file");
    let content = std::fs::read(path).expect("the file just written");
    (folder, content)
}

#[test]
fn truncated_files_are_refused_at_any_length() {
    for method in ["exact", "titsias2025"] {
        let (folder, content) = good(method);
        let dense = (0..300).chain((300..content.len()).step_by(97));
        for length in dense.chain([content.len() - 8, content.len() - 1]) {
            let reason = refusal(&content[..length], folder.path());
            assert!(reason.contains("not a complete sparsegp model file"), "{length}: {reason}");
        }
    }
}

#[test]
fn other_bytes_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut rng = stream(3, "bytes");
    for length in [0, 1, 7, 8, 9, 64, 4096] {
        for _ in 0..20 {
            let bytes: Vec<u8> = (0..length).map(|_| below(&mut rng, 256) as u8).collect();
            refusal(&bytes, folder.path());
        }
    }
    refusal(b"x0,x1,y\n1,2,3\n", folder.path());
    // a length of the header that no machine has memory for
    refusal(&[0xff; 64], folder.path());
    // safetensors of somebody else, without metadata and with other metadata
    for metadata in [json!(null), json!({ "format": "pt" })] {
        let tensor = json!({ "dtype": "F64", "shape": [1, 2], "data_offsets": [0, 16] });
        let mut header = serde_json::Map::from_iter([("q.mu".to_owned(), tensor)]);
        if !metadata.is_null() {
            header.insert("__metadata__".into(), metadata);
        }
        let reason = refusal(&Parts { header, data: vec![0; 16] }.put_together(), folder.path());
        assert!(reason.contains("names no model"), "{reason}");
    }
    let missing = folder.path().join("no such file");
    assert!(matches!(load(&missing), Err(sparsegp::Error::File { path, .. }) if path == missing));
}

#[test]
fn a_later_layout_says_what_to_do() {
    let (folder, content) = good("titsias2009");
    let mut parts = take_apart(&content);
    let mut model = parts.model();
    model["version"] = json!(4);
    model["something new"] = json!([1, 2]);
    parts.set_model(&model);
    let reason = refusal(&parts.put_together(), folder.path());
    assert!(reason.contains("version 4") && reason.contains("newer"), "{reason}");
}

#[test]
fn numbers_that_are_none_and_shapes_that_do_not_fit_are_refused() {
    for method in ["exact", "titsias2025"] {
        let (folder, content) = good(method);
        let whole = take_apart(&content);
        let names = whole.header.keys().filter(|name| *name != "__metadata__");
        // bytes, and a clock that may stand still
        for name in names.filter(|name| !name.starts_with("written.")) {
            let (shape, values) = whole.tensor(name);
            // a history may hold what is not finite
            let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
            let bad = if name.starts_with("training.") { &bad[..0] } else { &bad };
            for &bad in bad {
                for index in [0, values.len() - 1] {
                    let mut parts = take_apart(&content);
                    parts.poke(name, index, bad);
                    let reason = refusal(&parts.put_together(), folder.path());
                    assert!(reason.contains(name.as_str()), "{name}: {reason}");
                }
            }
            // the same numbers in another shape, and another type of numbers
            let mut transposed: Vec<usize> = shape.iter().rev().copied().collect();
            if transposed == shape {
                transposed = vec![values.len(), 1, 1];
            }
            let mut parts = take_apart(&content);
            parts.header[name]["shape"] = json!(transposed);
            refusal(&parts.put_together(), folder.path());
            let mut parts = take_apart(&content);
            parts.header[name]["dtype"] = json!("I64");
            let reason = refusal(&parts.put_together(), folder.path());
            assert!(reason.contains(name.as_str()), "{name}: {reason}");
            // another name
            let mut parts = take_apart(&content);
            let entry = parts.header.remove(name).expect("the tensor");
            parts.header.insert("something.else".into(), entry);
            let reason = refusal(&parts.put_together(), folder.path());
            assert!(reason.contains(name.as_str()), "{name}: {reason}");
        }
        let mut parts = take_apart(&content);
        parts.poke("likelihood.variance", 0, -0.5);
        let reason = refusal(&parts.put_together(), folder.path());
        assert!(reason.contains("likelihood.variance") && reason.contains("-0.5"), "{reason}");
    }
}

/// Every entry of the header taken away or replaced: an error, or (where the entry is not needed) a
/// model that can be used.
#[test]
fn no_header_makes_it_panic() {
    let others = [
        json!(null),
        json!(-1),
        json!(0),
        json!(1e300),
        json!("exact"),
        json!([]),
        json!({}),
        json!(["a", "b", "c", "d"]),
        json!([0.0, 0.0, 0.0]),
        json!({ "type": "rbf", "active_dims": [7] }),
    ];
    for method in ["exact", "titsias2025"] {
        let (folder, content) = good(method);
        let model = take_apart(&content).model();
        let mut broken: Vec<Value> = Vec::new();
        for key in model.as_object().expect("an object").keys() {
            let mut without = model.clone();
            without.as_object_mut().expect("an object").remove(key);
            broken.push(without);
            for other in &others {
                let mut changed = model.clone();
                changed[key] = other.clone();
                broken.push(changed);
            }
        }
        for key in ["x_mean", "x_scale", "y_mean", "y_scale"] {
            for other in &others {
                let mut changed = model.clone();
                changed["scaler"][key] = other.clone();
                broken.push(changed);
            }
        }
        for (inputs, targets) in [(json!([]), json!(["y"])), (json!(["a", "b", "c"]), json!([]))] {
            let mut changed = model.clone();
            changed["inputs"] = inputs;
            changed["targets"] = targets;
            changed["scaler"] = json!({ "x_mean": [], "x_scale": [], "y_mean": [], "y_scale": [] });
            broken.push(changed);
        }
        for changed in broken {
            let mut parts = take_apart(&content);
            parts.set_model(&changed);
            let path = folder.path().join("changed.safetensors");
            std::fs::write(&path, parts.put_together()).expect("a temporary file");
            let outcome = catch_unwind(AssertUnwindSafe(|| match load(&path) {
                Err(error) => assert!(matches!(error, sparsegp::Error::File { .. }), "{error:?}"),
                Ok(fitted) => {
                    let x = crate::support::places();
                    let (mean, variance) =
                        fitted.predict(x.as_ref(), Of::Observations).expect("three inputs");
                    assert_eq!((mean.ncols(), variance.ncols()), (2, 2));
                    assert!(!fitted.parameters().is_empty());
                    assert_eq!((fitted.target_mean.len(), fitted.target_variance.len()), (2, 2));
                    let scales = fitted.scaler.x_scale.iter().chain(&fitted.scaler.y_scale);
                    assert!(scales.into_iter().all(|s| *s > 0.0), "scales of 0 divide");
                }
            }));
            assert!(outcome.is_ok(), "{changed}");
        }
    }
}

/// A file as small as they get: one input, one target, six rows.
fn small(method: &str) -> Vec<u8> {
    use sparsegp::linalg::Mat;
    let x = Mat::from_fn(6, 1, |i, _| i as f64);
    let y = Mat::from_fn(6, 1, |i, _| (i as f64).sin());
    let data = sparsegp::fit::Dataset::from_arrays(x, y, true).expect("a table");
    let own = sparsegp::fit::FitOptions {
        inducing: (method != "exact").then_some(2),
        mean: None,
        ..options(method, "rbf")
    };
    let engine = sparsegp::engine::Cpu::default();
    let fitted = sparsegp::fit::fit(&data, &own, &engine, &mut ()).expect("a fit");
    sparsegp::io::to_bytes(&fitted).expect("room for a file")
}

/// The part of a file that a byte belongs to, in the words of the refusal.
fn part_of(content: &[u8], at: usize) -> String {
    let parts = take_apart(content);
    let start = content.len() - parts.data.len();
    let holds = |entry: &Value| {
        let end = |i: usize| entry["data_offsets"][i].as_u64().expect("a number") as usize;
        (start + end(0)..start + end(1)).contains(&at)
    };
    let tensors = parts.header.iter().filter(|(name, _)| *name != "__metadata__");
    let found = tensors.filter(|(_, entry)| holds(entry)).map(|(name, _)| name).next();
    found.map_or("header".into(), |name| format!("tensor `{name}`"))
}

/// Every bit of every byte: an error that names the part, never a model.
#[test]
fn a_flipped_bit_is_noticed_wherever_it_is() {
    for method in ["exact", "titsias2025", "svgp"] {
        let content = small(method);
        assert!(content.len() < 10_000, "{}", content.len());
        sparsegp::io::from_bytes(&content).expect("a model");
        for at in 0..content.len() {
            let part = part_of(&content, at);
            for bit in 0..8 {
                let mut flipped = content.clone();
                flipped[at] ^= 1 << bit;
                let reason = match sparsegp::io::from_bytes(&flipped) {
                    Ok(_) => panic!("{method}: bit {bit} of byte {at} of {part} went unnoticed"),
                    Err(error) => error.to_string(),
                };
                // in the sums it may be the sum of another part that differs, or the end that is not known
                let sums = part == "tensor `written.sums`";
                let named = sums || reason.contains(&part);
                assert!(
                    named && reason.contains("damaged"),
                    "{method}, byte {at}: {part}: {reason}"
                );
            }
        }
    }
}

/// So is one in a checkpoint of a training on all rows, which is not a model file.
#[test]
fn a_flipped_bit_in_a_checkpoint_is_noticed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("run");
    let mut own = options("exact", "rbf");
    own.train.max_iterations = 3;
    own.pilot = 0;
    own.checkpoint = Some(path.clone());
    fitted(1, &own);
    let content = std::fs::read(&path).expect("a checkpoint");
    let data = crate::support::dataset(1);
    let engine = sparsegp::engine::Cpu::default();
    for at in (0..content.len()).step_by(3).chain(content.len() - 8..content.len()) {
        let mut flipped = content.clone();
        flipped[at] ^= 1 << (at % 8);
        std::fs::write(&path, &flipped).expect("a temporary file");
        match sparsegp::fit::fit(&data, &own, &engine, &mut ()) {
            Err(sparsegp::Error::File { path: named, .. }) => assert_eq!(named, path),
            other => panic!("byte {at}: {:?}", other.map(|_| "a model")),
        }
    }
}

/// Single bits flipped anywhere in the file, with checksums that fit.
#[test]
fn flipped_bits_do_not_make_it_panic() {
    let mut rng = stream(4, "bits");
    let (folder, content) = good("titsias2025");
    let header = 8 + u64::from_le_bytes(content[..8].try_into().expect("eight bytes")) as usize;
    let path = folder.path().join("flipped.safetensors");
    for round in 0..1500 {
        let mut flipped = content.clone();
        let range = if round % 3 == 0 { content.len() } else { header };
        let at = if round < 64 { round / 8 } else { below(&mut rng, range) };
        flipped[at] ^=
            1 << (if round < 64 { round % 8 } else { (8.0 * uniform(&mut rng)) as usize });
        sparsegp::io::reseal(&mut flipped);
        std::fs::write(&path, flipped).expect("a temporary file");
        let outcome = catch_unwind(|| load(&path));
        match outcome.unwrap_or_else(|_| panic!("bit of byte {at}")) {
            Ok(_) | Err(sparsegp::Error::File { .. }) => {}
            Err(other) => panic!("byte {at}: {other:?}"),
        }
    }
}

/// An average over hyperparameters is read whole or not at all.
#[test]
fn averages_without_a_part_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let hyperparameters = Hyperparameters::Laplace;
    let own = fitted(1, &FitOptions { hyperparameters, ..options("exact", "rbf") });
    let path = folder.path().join("average");
    save(&own, &path).expect("a file");
    let content = std::fs::read(&path).expect("a file");
    for name in ["posterior.times", "posterior.hyperparameters"] {
        let mut parts = take_apart(&content);
        let entry = parts.header.remove(name).expect("the tensor");
        parts.header.insert("something.else".into(), entry);
        let reason = refusal(&parts.put_together(), folder.path());
        assert!(reason.contains("posterior."), "{name}: {reason}");
        for bad in [f64::NAN, -1.0] {
            let mut parts = take_apart(&content);
            parts.poke(name, 0, bad);
            let reason = refusal(&parts.put_together(), folder.path());
            assert!(reason.contains("posterior."), "{name}: {reason}");
        }
    }
    let mut parts = take_apart(&content);
    parts.poke("posterior.times", 0, 1.5);
    refusal(&parts.put_together(), folder.path());
}

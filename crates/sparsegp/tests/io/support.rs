//! Fitted models, and model files taken apart by hand.

use serde_json::{Map, Value};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Hyperparameters, fit};
use sparsegp::linalg::Mat;
use sparsegp::train::TrainOptions;
use std::path::Path;

/// 60 rows of three inputs and `p` targets, far from standardised.
pub fn dataset(p: usize) -> Dataset {
    let x = Mat::from_fn(60, 3, |i, q| {
        ((i * (q + 2)) as f64 * 0.37).sin() * [3.0, 0.02, 500.0][q] + [10.0, 0.0, -4e3][q]
    });
    let y = Mat::from_fn(60, p, |i, j| {
        (x[(i, 0)] * 0.9).sin() * 7.0 + 300.0 * x[(i, 1)] * j as f64 + (i as f64 * 2.1).cos() + 40.0
    });
    let mut dataset = Dataset::from_arrays(x, y, true).expect("a table");
    dataset.input_names = ["depth", "salt", "time of day"].map(String::from).to_vec();
    dataset.target_names = (0..p).map(|j| format!("température {j}")).collect();
    dataset
}

pub fn options(method: &str, kernel: &str) -> FitOptions {
    FitOptions {
        kernel: kernel.into(),
        method: method.into(),
        mean: Some("linear".into()),
        inducing: (method != "exact").then_some(9),
        seed: 5,
        train: TrainOptions { max_iterations: 4, ..TrainOptions::default() },
        batches: None,
        // averages have a test of their files
        hyperparameters: Hyperparameters::PlugIn,
        ..FitOptions::default()
    }
}

pub fn fitted(p: usize, options: &FitOptions) -> Fitted {
    fit(&dataset(p), options, &Cpu::default(), &mut ()).expect("a fit")
}

/// Inputs to predict at.
pub fn places() -> Mat<f64> {
    Mat::from_fn(23, 3, |i, q| {
        ((i + 5 * q) as f64 * 0.71).cos() * [4.0, 0.03, 700.0][q] + [10.0, 0.0, -4e3][q]
    })
}

/// A safetensors file: the header as JSON, and the bytes that the tensors' offsets count in.
pub struct Parts {
    pub header: Map<String, Value>,
    pub data: Vec<u8>,
}

/// Eight bytes with the length of the header, the header, the rest.
pub fn take_apart(file: &[u8]) -> Parts {
    let length = u64::from_le_bytes(file[..8].try_into().expect("eight bytes")) as usize;
    let header = serde_json::from_slice(&file[8..8 + length]).expect("JSON");
    Parts { header, data: file[8 + length..].to_vec() }
}

impl Parts {
    pub fn put_together(&self) -> Vec<u8> {
        let header = serde_json::to_vec(&self.header).expect("JSON");
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header);
        file.extend(&self.data);
        // so that what is wrong is the content and not its checksum
        sparsegp::io::reseal(&mut file);
        file
    }

    /// Shape and values of a tensor.
    pub fn tensor(&self, name: &str) -> (Vec<usize>, Vec<f64>) {
        let entry = &self.header[name];
        assert_eq!(entry["dtype"], "F64", "{name}");
        let numbers = |key: &str| -> Vec<usize> {
            let items = entry[key].as_array().expect("a list");
            items.iter().map(|v| v.as_u64().expect("a number") as usize).collect()
        };
        let offsets = numbers("data_offsets");
        let bytes = self.data[offsets[0]..offsets[1]].chunks_exact(8);
        let values = bytes.map(|b| f64::from_le_bytes(b.try_into().expect("eight bytes")));
        (numbers("shape"), values.collect())
    }

    /// Replaces one number of a tensor.
    pub fn poke(&mut self, name: &str, index: usize, value: f64) {
        let start = self.header[name]["data_offsets"][0].as_u64().expect("a number") as usize;
        self.data[start + 8 * index..][..8].copy_from_slice(&value.to_le_bytes());
    }

    /// Our own header.
    pub fn model(&self) -> Value {
        let text = self.header["__metadata__"]["sparsegp"].as_str().expect("text");
        serde_json::from_str(text).expect("JSON")
    }

    pub fn set_model(&mut self, model: &Value) {
        self.header["__metadata__"]["sparsegp"] = Value::String(model.to_string());
    }
}

/// The sentence with which `content` is refused; it names the file.
pub fn refusal(content: &[u8], folder: &Path) -> String {
    let path = folder.join("damaged.safetensors");
    std::fs::write(&path, content).expect("a temporary file");
    match sparsegp::io::load(&path) {
        Ok(_) => panic!("a damaged file was read"),
        Err(sparsegp::Error::File { path: named, reason }) => {
            assert_eq!(named, path);
            assert!(reason.len() > 15 && reason.contains(' '), "{reason}");
            reason
        }
        Err(other) => panic!("not the error of a file: {other:?}"),
    }
}

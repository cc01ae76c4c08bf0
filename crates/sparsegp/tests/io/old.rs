//! Files of the versions that there were, with the predictions that they were stored with: they open, and predict the same.
//!
//! `SPARSEGP_WRITE_OLD=1 cargo test -p sparsegp --test io old` writes those of the present version where they are missing; a file
//! that is there is never written again.

use crate::support::{dataset, fitted, options, places};
use serde::{Deserialize, Serialize};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of, Standardise, fit};
use sparsegp::io::{self, VERSION};
use sparsegp::linalg::Mat;
use sparsegp::samplers::gibbs::GibbsOptions;
use std::path::{Path, PathBuf};

/// What was predicted when the file was written: numbers column by column.
#[derive(Serialize, Deserialize)]
struct Predicted {
    /// The program that wrote it.
    by: String,
    inputs: usize,
    x: Vec<f64>,
    latent_mean: Vec<f64>,
    latent_variance: Vec<f64>,
    mean: Vec<f64>,
    variance: Vec<f64>,
    /// Empty where targets are not classes.
    proba: Vec<f64>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/io/old")
}

fn numbers(a: &Mat<f64>) -> Vec<f64> {
    (0..a.ncols()).flat_map(|j| a.col_as_slice(j).to_vec()).collect()
}

fn predicted(model: &Fitted, x: &Mat<f64>) -> Predicted {
    let of = |of| model.predict(x.as_ref(), of).expect("predictions");
    let (latent, observed) = (of(Of::Latent), of(Of::Observations));
    let classes = model.model.likelihood.classes().is_some();
    Predicted {
        by: format!("sparsegp {}", env!("CARGO_PKG_VERSION")),
        inputs: x.ncols(),
        x: numbers(x),
        latent_mean: numbers(&latent.0),
        latent_variance: numbers(&latent.1),
        mean: numbers(&observed.0),
        variance: numbers(&observed.1),
        proba: if classes {
            numbers(&model.predict_proba(x.as_ref()).expect("probabilities"))
        } else {
            Vec::new()
        },
    }
}

/// Models of every kind of q, and of every tensor that a file may have.
fn present() -> Vec<(&'static str, Fitted)> {
    let classes = |method: &str| {
        let Dataset { source, .. } = dataset(1);
        let mut x = Mat::zeros(source.rows(), source.inputs());
        source
            .for_each_chunk(usize::MAX, &mut |rows| {
                x.copy_from(rows.x);
                Ok(())
            })
            .expect("rows");
        let y = Mat::from_fn(x.nrows(), 1, |i, _| {
            f64::from(u8::from(x[(i, 0)] + 0.3 * x[(i, 1)] > 0.1))
        });
        let rows = InMemory::new(x, y).expect("rows");
        let data = Dataset::from_rows(
            rows,
            Standardise { inputs: true, targets: false, robust: false, constants: false },
        )
        .expect("a table");
        let options = FitOptions {
            likelihood: Some("bernoulli(link=logit)".into()),
            gibbs: GibbsOptions { chains: 2, burn_in: 5, draws: 3, ..GibbsOptions::default() },
            ..options(method, "rbf(ard=false)")
        };
        fit(&data, &options, &Cpu::default(), &mut ()).expect("a fit")
    };
    vec![
        ("exact", fitted(1, &options("exact", "matern32 + linear"))),
        ("titsias2025", fitted(2, &options("titsias2025", "rbf * constant"))),
        ("svgp", classes("svgp")),
        ("tsvgp", classes("tsvgp")),
        ("rsvgp", classes("rsvgp")),
        ("gibbs-sparse", classes("gibbs-sparse")),
    ]
}

#[test]
fn files_of_older_versions_open_and_predict_the_same() {
    let folder = folder();
    if std::env::var_os("SPARSEGP_WRITE_OLD").is_some() {
        for (name, model) in present() {
            let file = folder.join(format!("v{VERSION}-{name}.safetensors"));
            if !file.exists() {
                std::fs::create_dir_all(&folder).expect("a folder");
                let x = places();
                let x = x.subrows(0, 5).to_owned();
                let text = serde_json::to_string(&predicted(&model, &x)).expect("numbers");
                io::save(&model, &file).expect("a file");
                std::fs::write(file.with_extension("json"), text + "\n").expect("a file");
            }
        }
    }
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("the folder of old files")
        .map(|entry| entry.expect("a file").file_name().into_string().expect("a name"))
        .filter(|name| name.ends_with(".safetensors"))
        .collect();
    names.sort();
    for version in [VERSION - 1, VERSION].into_iter().filter(|version| *version > 0) {
        let prefix = format!("v{version}-");
        assert!(
            names.iter().any(|name| name.starts_with(&prefix)),
            "no stored file of version {version}: SPARSEGP_WRITE_OLD=1 writes those of the present one"
        );
    }
    for name in names {
        let file = folder.join(&name);
        let model = io::load(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
        let text = std::fs::read_to_string(file.with_extension("json")).expect("its predictions");
        let stored: Predicted = serde_json::from_str(&text).expect("its predictions");
        let rows = stored.x.len() / stored.inputs;
        let x = Mat::from_fn(rows, stored.inputs, |i, q| stored.x[q * rows + i]);
        let now = predicted(&model, &x);
        for (what, a, b) in [
            ("mean of the function", &stored.latent_mean, &now.latent_mean),
            ("variance of the function", &stored.latent_variance, &now.latent_variance),
            ("mean", &stored.mean, &now.mean),
            ("variance", &stored.variance, &now.variance),
            ("probabilities", &stored.proba, &now.proba),
        ] {
            assert_eq!(a.len(), b.len(), "{name}: {what}");
            let scale = a.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            for (a, b) in a.iter().zip(b) {
                // rounding of another processor
                assert!((a - b).abs() <= 1e-9 * scale, "{name}: {what}: {b} where {a} was");
            }
        }
        // and it can be saved again, as a file of this version
        let again = io::from_bytes(&io::to_bytes(&model).expect("bytes")).expect("a model");
        assert_eq!(predicted(&again, &x).mean, now.mean, "{name}");
    }
}

//! What is saved comes back.

use crate::support::{dataset, fitted, options, places};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of, fit};
use sparsegp::io::{load, save};
use sparsegp::linalg::Mat;
use sparsegp::params::Prior;

const KERNELS: [&str; 5] = [
    "rbf",
    r#"(matern32(active_dims=["salt", "depth"]) + linear(active_dims=["time of day"])) * rbf(ard=false)"#,
    r#"matern52(lengthscales={"value": [0.4, 1.5, 2.0], "frozen": true, "prior": {"type": "gamma", "concentration": 2.5, "rate": 0.7}}) + white(variance=0.003)"#,
    r#"matern12(variance={"value": 0.7, "transform": {"type": "interval", "lower": 0.1, "upper": 3.5}}) + constant"#,
    r#"linear(ard=true) + rbf(lengthscales=1.3, active_dims=["salt"])"#,
];

fn bits(a: &Mat<f64>) -> Vec<u64> {
    a.col_iter().flat_map(|c| c.iter().map(|v| v.to_bits()).collect::<Vec<_>>()).collect()
}

fn same(a: &Fitted, b: &Fitted) {
    let (pa, pb) = (a.model.params(), b.model.params());
    assert_eq!(pa.len(), pb.len());
    for ((path, own), (other_path, other)) in pa.iter().zip(&pb) {
        assert_eq!(path, other_path);
        let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(own.value()), bits(other.value()), "{path}");
        assert_eq!(own.shape(), other.shape(), "{path}");
        assert_eq!(own.transform(), other.transform(), "{path}");
        assert_eq!(own.prior, other.prior, "{path}");
        assert_eq!(own.frozen, other.frozen, "{path}");
    }
    let x = places();
    for of in [Of::Observations, Of::Latent] {
        let (mean, variance) = a.predict(x.as_ref(), of).expect("inputs that fit");
        let (other_mean, other_variance) = b.predict(x.as_ref(), of).expect("inputs that fit");
        assert_eq!(bits(&mean), bits(&other_mean));
        assert_eq!(bits(&variance), bits(&other_variance));
    }
    let full =
        |f: &Fitted| f.posterior.predict_f_full(x.as_ref()).expect("inputs that fit").1[0].clone();
    assert_eq!(bits(&full(a)), bits(&full(b)));
    assert_eq!(a.scaler, b.scaler);
    assert_eq!((&a.input_names, &a.target_names), (&b.input_names, &b.target_names));
    assert_eq!((&a.target_mean, &a.target_variance), (&b.target_mean, &b.target_variance));
    assert_eq!((a.rows, a.seed, &a.reason), (b.rows, b.seed, &b.reason));
    assert_eq!(a.warnings, b.warnings);
    assert_eq!(a.objective().map(f64::to_bits), b.objective().map(f64::to_bits));
    assert_eq!(a.model.method.name(), b.model.method.name());
    assert_eq!(a.model.jitter, b.model.jitter);
    let report = |f: &Fitted| f.report.as_ref().map(|r| (r.stopped.clone(), r.trace.clone()));
    assert_eq!(report(a), report(b));
}

fn through_file(fitted: &Fitted) -> Fitted {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.safetensors");
    save(fitted, &path).expect("room for a file");
    load(&path).expect("the file just written")
}

#[test]
fn everything_comes_back_to_the_bit() {
    for method in ["exact", "titsias2009", "spherical", "titsias2025", "tsvgp", "tvgp"] {
        for kernel in KERNELS {
            let own = fitted(2, &options(method, kernel));
            let back = through_file(&own);
            same(&own, &back);
            // and once more, from what was read
            same(&own, &through_file(&back));
            // the model itself gives the same objective on the same data
            let value = |f: &Fitted| {
                let data = dataset(2).source;
                f.model.evaluate(&Cpu::default(), &*data).expect("well posed").value
            };
            assert_eq!(value(&own).to_bits(), value(&back).to_bits(), "{method} {kernel}");
        }
    }
}

/// Exact inference on rows whose noise differs keeps their variances, and what other programs noted.
#[test]
fn rows_with_weights_and_noise_come_back() {
    let plain = dataset(1);
    let mut rows = InMemory::new(Mat::zeros(60, 3), Mat::zeros(60, 1)).expect("as many");
    plain
        .source
        .for_each_chunk(usize::MAX, &mut |chunk| {
            (rows.x, rows.y) = (chunk.x.to_owned(), chunk.y.to_owned());
            Ok(())
        })
        .expect("rows in memory");
    rows.weights = (0..60).map(|i| f64::from(i % 4) * 0.7).collect();
    rows.extra = (0..60).map(|i| 0.02 * f64::from(i % 3)).collect();
    let dataset = Dataset::from_rows(rows, true).expect("a table");
    let mut own = fit(&dataset, &options("exact", "rbf"), &Cpu::default(), &mut ()).expect("a fit");
    own.annotations.insert("program".into(), "{\"a\": 1.5}".into());
    // a quarter of the rows has weight 0
    assert_eq!(own.posterior.row_noise().len(), 45);
    assert!((own.total_weight.expect("weights") - 63.0).abs() < 1e-12);
    let back = through_file(&own);
    same(&own, &back);
    assert_eq!(own.posterior.row_noise(), back.posterior.row_noise());
    assert_eq!((own.total_weight, &own.annotations), (back.total_weight, &back.annotations));
}

/// Priors and frozen flags on every parameter there is, inducing points among them.
#[test]
fn priors_and_flags_come_back_wherever_they_are() {
    for method in ["exact", "titsias2025"] {
        let own = fitted(1, &options(method, "rbf + linear"));
        let paths: Vec<String> = own.model.params().into_iter().map(|(path, _)| path).collect();
        for path in paths {
            let mut own = own.clone();
            let prior = Prior::Normal { loc: 0.3, scale: 2.5 };
            let change = |param: &mut sparsegp::params::Param| {
                param.prior = Some(prior);
                param.frozen = true;
            };
            own.model.for_group(&path, change).expect("a path of the model");
            same(&own, &through_file(&own));
        }
    }
}

/// A model that was conditioned without training, and one with nothing to train.
#[test]
fn models_without_training_come_back() {
    for method in ["exact", "titsias2025"] {
        let mut untrained = options(method, "matern32");
        untrained.train.max_iterations = 0;
        let own = fitted(1, &untrained);
        same(&own, &through_file(&own));
        let freeze = ["kernel", "mean", "likelihood", "inducing"].map(String::from);
        let count = if method == "exact" { 3 } else { 4 };
        let frozen = FitOptions { freeze: freeze[..count].to_vec(), ..options(method, "matern32") };
        let own = fitted(1, &frozen);
        same(&own, &through_file(&own));
        let mut own = own;
        own.report = None;
        same(&own, &through_file(&own));
    }
}

//! Saved and loaded models of every likelihood predict the same bits.

use crate::stochastic::{dataset, stochastic};
use crate::support::fit;
use sparsegp::data::InMemory;
use sparsegp::fit::{Fitted, Of};
use sparsegp::io;
use sparsegp::likelihoods::{self, REGISTRY};
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};

/// Everything that can be asked, to the bit.
fn answers(fitted: &Fitted, x: &Mat<f64>, y: &Mat<f64>, extra: &[f64]) -> Vec<u64> {
    let x = x.as_ref();
    let mut all: Vec<f64> = Vec::new();
    for of in [Of::Observations, Of::Latent] {
        let (mean, variance) = fitted.predict_with(x, extra, of).expect("predictions");
        for a in [mean, variance] {
            (0..a.ncols()).for_each(|j| all.extend(a.col_as_slice(j)));
        }
    }
    all.extend(fitted.log_density(x, y.as_ref(), extra).expect("densities"));
    if fitted.model.likelihood.classes().is_some() {
        let p = fitted.predict_proba(x).expect("probabilities");
        (0..p.ncols()).for_each(|j| all.extend(p.col_as_slice(j)));
    }
    // a few rows: some quantiles take thousands of integrals
    let few = x.nrows().min(4);
    let extra = &extra[..few.min(extra.len())];
    for q in fitted
        .quantiles(x.subrows(0, few), extra, &[0.05, 0.9], Of::Observations)
        .expect("quantiles")
    {
        all.extend(q.col_as_slice(0));
    }
    assert!(all.iter().all(|v| !v.is_nan()));
    all.into_iter().map(f64::to_bits).collect()
}

#[test]
fn every_likelihood_is_read_back_to_the_bit() {
    for entry in REGISTRY {
        let bare = likelihoods::parse(entry.name);
        let spec = match &bare {
            Ok(_) => entry.name.to_owned(),
            Err(_) => format!("{}(classes=4)", entry.name),
        };
        let likelihood = bare.or_else(|_| likelihoods::parse(&spec)).expect("a likelihood");
        let (n, k) = (60, likelihood.latents());
        let mut rng = stream(1, "saved");
        let extra: Vec<f64> = match likelihood.extra().map(|e| e.name) {
            Some("trials") => (0..n).map(|i| (1 + i % 7) as f64).collect(),
            Some(_) => (0..n).map(|i| 0.3 + (i % 3) as f64).collect(),
            None => Vec::new(),
        };
        let x = Mat::from_fn(n, 2, |_, _| 4.0 * uniform(&mut rng) - 2.0);
        let y = Mat::from_fn(n, 1, |i, _| {
            let f: Vec<f64> = (0..k).map(|l| (x[(i, 0)] + l as f64).sin()).collect();
            likelihood.sample(extra.get(i).copied().unwrap_or(1.0), &f, &mut rng)
        });
        let rows =
            InMemory { x: x.clone(), y: y.clone(), weights: Vec::new(), extra: extra.clone() };
        let mut options = stochastic(&spec, "svgp", 25, 2);
        options.inducing = Some(8);
        options.diagonal = k > 3;
        if options.diagonal {
            options.batches.as_mut().expect("minibatches").training.natural = None;
        }
        let fitted = fit(&dataset(rows, false), &options);
        let fitted = fitted.unwrap_or_else(|e| panic!("{spec}: {e}"));
        let name = format!("sparsegp-saved-{}-{}", std::process::id(), entry.name);
        let path = std::env::temp_dir().join(name);
        io::save(&fitted, &path).expect("a file");
        let loaded = io::load(&path).unwrap_or_else(|e| panic!("{spec}: {e}"));
        let _ = std::fs::remove_file(&path);
        assert_eq!(loaded.model.likelihood.to_json(), fitted.model.likelihood.to_json());
        assert!(answers(&loaded, &x, &y, &extra) == answers(&fitted, &x, &y, &extra), "{spec}");
    }
}

//! Small models that tests of samplers share.

use crate::data::InMemory;
use crate::kernels::{Inputs, parse};
use crate::likelihoods::Likelihood;
use crate::linalg::{Jitter, Mat};
use crate::means;
use crate::methods::find;
use crate::model::{Model, inducing_param};

/// With a kernel and a mean for every latent function, away from unit parameters.
pub fn model(likelihood: Box<dyn Likelihood>, points: Option<&Mat<f64>>) -> Model {
    let latents = likelihood.latents();
    let kernels = (0..latents)
        .map(|l| {
            let spec = format!("rbf(lengthscales={}, variance={})", 0.9 + 0.3 * l as f64, 1.1);
            parse(&spec, Inputs::unnamed(1)).unwrap()
        })
        .collect();
    let constants: Vec<f64> = (0..latents).map(|l| 0.3 - 0.4 * l as f64).collect();
    let mean = serde_json::json!({"type": "constant", "constant": constants});
    Model {
        kernels,
        mean: means::from_json(&mean, 1, latents).unwrap(),
        likelihood,
        inducing: points.map(|z| inducing_param(z.as_ref())).into_iter().collect(),
        q: None,
        method: find(if points.is_some() { "gibbs-sparse" } else { "gibbs" }).unwrap().method,
        jitter: Jitter::Absolute(1e-8),
        hidden: Vec::new(),
    }
}

/// Up to four rows.
pub fn rows(y: &[f64], extra: f64) -> InMemory {
    let n = y.len();
    let x = Mat::from_fn(n, 1, |i, _| [0.2, 1.1, -0.7, 2.0][i]);
    let mut rows = InMemory::new(x, Mat::from_fn(n, 1, |i, _| y[i])).unwrap();
    rows.extra = vec![extra; n];
    rows
}

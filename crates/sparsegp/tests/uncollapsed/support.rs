//! Models with a q.

use crate::problem::Problem;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use sparsegp::data::{InMemory, Minibatch};
use sparsegp::linalg::Mat;
use sparsegp::methods::find;
use sparsegp::model::Model;
use sparsegp::variational::Variational;

/// Rows `from`, `from + step`, … of the data, for all of them.
pub fn part(data: &InMemory, from: usize, step: usize) -> Minibatch {
    let places: Vec<usize> = (from..data.x.nrows()).step_by(step).collect();
    Minibatch { rows: data.picked(&places), population: data.x.nrows() }
}

/// A random q for so many latent functions.
pub fn random_q(
    points: usize,
    latents: usize,
    diagonal: bool,
    whitened: bool,
    rng: &mut ChaCha8Rng,
) -> Variational {
    let mu = Mat::from_fn(points, latents, |_, _| rng.random_range(-0.9..0.9));
    let count = if diagonal { 1 } else { latents };
    let roots: Vec<Mat<f64>> = (0..count)
        .map(|_| match diagonal {
            true => Mat::from_fn(points, latents, |_, _| rng.random_range(0.2..0.9)),
            false => Mat::from_fn(points, points, |i, j| match i.cmp(&j) {
                std::cmp::Ordering::Less => 0.0,
                std::cmp::Ordering::Equal => rng.random_range(0.3..0.9),
                std::cmp::Ordering::Greater => rng.random_range(-0.3..0.3),
            }),
        })
        .collect();
    Variational::new(mu.as_ref(), &roots, diagonal, whitened).expect("shapes that fit")
}

/// The problem's model with an uncollapsed method and this q.
pub fn with_q(problem: &Problem, method: &str, q: Variational) -> Model {
    let method = find(method).expect("registered").method;
    Model { method, q: Some(q), ..problem.model.clone() }
}

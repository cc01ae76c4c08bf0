//! What holds whatever a posterior is of.

use crate::data::InMemory;
use crate::engine::Cpu;
use crate::error::Error;
use crate::kernels::{self, Inputs};
use crate::likelihoods;
use crate::linalg::Mat;
use crate::methods;
use crate::model::Posterior;
use crate::model::{Model, hyperparameters};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A model of one input with the inputs of its rows.
fn exact() -> (Model, Mat<f64>) {
    let kernel = kernels::parse("rbf(variance=1.7, lengthscales=0.6)", Inputs::unnamed(1)).unwrap();
    let model = Model::builder(kernel, methods::find("exact").unwrap().method)
        .likelihood(likelihoods::parse("gaussian(variance=0.2)").unwrap())
        .build(1, 1)
        .unwrap();
    (model, Mat::from_fn(6, 1, |i, _| 0.5 * i as f64 - 1.2))
}

/// A posterior of every law, with its number of input columns.
fn laws() -> Vec<(&'static str, Posterior, usize)> {
    let (model, x) = exact();
    let data = InMemory::new(x.clone(), Mat::from_fn(6, 1, |i, _| (1.3 * i as f64).sin())).unwrap();
    let draw = |s: usize| Mat::from_fn(6, 1, |i, _| ((3 * i + 5 * s) as f64).cos());
    let own = hyperparameters(&model);
    let gaussian = model.posterior(&Cpu::default(), &data).unwrap();
    let draws = Posterior::of_draws(&model, Some(&x), vec![draw(0), draw(1), draw(2)]).unwrap();
    let sampled = |n: usize| {
        let all = (0..n).map(draw).collect();
        Posterior::of_sampled(&model, Some(&x), all, vec![own.clone(); n]).unwrap()
    };
    let noisy = gaussian.clone().with_input_deviations(vec![0]).unwrap();
    let one = sampled(1).with_input_deviations(vec![0]).unwrap();
    vec![
        ("Gaussian", gaussian, 1),
        ("draws", draws, 1),
        ("sampled hyperparameters", sampled(3), 1),
        ("noisy inputs", noisy, 2),
        ("noisy inputs of a sampled draw", one, 2),
    ]
}

/// Another number of columns is refused by all that is predicted: it was not by `predict_y` at inputs with errors.
#[test]
fn rows_of_another_width_are_refused_by_every_prediction() {
    for (name, posterior, d) in laws() {
        for columns in [d - 1, d + 1, d + 4] {
            let (x, y) = (Mat::from_fn(3, columns, |i, _| 0.1 * i as f64), Mat::zeros(3, 1));
            let (x, y) = (x.as_ref(), y.as_ref());
            let rng = &mut ChaCha8Rng::seed_from_u64(3);
            let refused = [
                ("predict_mean", posterior.predict_mean(x).err()),
                ("predict_f", posterior.predict_f(x).err()),
                ("predict_y", posterior.predict_y(x, &[]).err()),
                ("quantiles of y", posterior.predict_quantiles(x, &[], &[0.3]).err()),
                ("quantiles of f", posterior.predict_f_quantiles(x, &[0.3]).err()),
                ("log density", posterior.predict_log_density(x, y, &[]).err()),
                ("judge", posterior.judge(x, y, &[]).err()),
                ("cdf", posterior.predict_cdf(x, y, &[]).err()),
                ("sample_f", posterior.sample_f(x, 2, rng).err()),
                ("sample_y", posterior.sample_y(x, &[], 2, rng).err()),
            ];
            for (what, error) in refused {
                let fits = matches!(error, Some(Error::Shape { .. }));
                assert!(fits, "{name}, {what}, {columns} columns: {error:?}");
            }
        }
    }
}

/// Draws of observations have the mean and the variance that are predicted: there were none for one draw with its
/// hyperparameters at inputs with errors.
#[test]
fn draws_of_observations_have_the_moments_that_are_predicted() {
    const DRAWS: usize = 20_000;
    for (name, posterior, d) in laws() {
        let x = Mat::from_fn(2, d, |i, q| if q == 0 { 0.4 * i as f64 } else { 0.3 });
        let (mean, variance) = posterior.predict_y(x.as_ref(), &[]).unwrap();
        let rng = &mut ChaCha8Rng::seed_from_u64(11);
        let drawn = posterior.sample_y(x.as_ref(), &[], DRAWS, rng).unwrap();
        for i in 0..2 {
            let own = drawn.iter().map(|y| y[(i, 0)]);
            let found = own.clone().sum::<f64>() / DRAWS as f64;
            let spread = own.map(|y| (y - found).powi(2)).sum::<f64>() / DRAWS as f64;
            // five standard errors, and what a hundred nodes miss of exact moments
            let room = 5.0 * (variance[(i, 0)] / DRAWS as f64).sqrt() + 1e-3;
            assert!((found - mean[(i, 0)]).abs() < room, "{name}: {found} {}", mean[(i, 0)]);
            // kurtosis of a mixture of few normals is below 6
            let relative = spread / variance[(i, 0)] - 1.0;
            assert!(relative.abs() < 5.0 * (5.0 / DRAWS as f64).sqrt(), "{name}: {relative}");
        }
    }
}

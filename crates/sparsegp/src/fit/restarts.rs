//! Other starts: hyperparameters drawn about those that the data suggest.
//!
//! The objective may have several optima; a start ends at one of them. Each further start draws every hyperparameter
//! that is trained (of kernels, mean and likelihood), and from there goes the way of the first: pilot, inducing points,
//! training. What is drawn:
//!
//! | parameter | draw |
//! | --- | --- |
//! | with a prior | from the prior |
//! | lengthscales | all times 10^u, u uniform on [−2, ½], and each times 10^w, w uniform on [−½, ½] |
//! | above a bound | its distance from the bound times 10^u, u uniform on [−1, 1] |
//! | within an interval | uniform on it |
//! | positive, with bounds that were given | as above a bound, on that part of [−1, 1] that is within the bounds |
//! | any real number | plus a standard normal number (on the model's scale) |

use crate::error::Result;
use crate::model::Model;
use crate::params::{Param, Prior, Role, Transform};
use crate::rng;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// How far a positive number may be drawn from where it would start, as a power of ten.
const DECADES: f64 = 1.0;
/// Powers of ten between which the common factor of lengthscales is drawn.
const COMMON: (f64, f64) = (-2.0, 0.5);
/// Draws from a prior before a value outside of a parameter's range is given up.
const ATTEMPTS: usize = 100;

/// Draws the hyperparameters of the further start with this number, from 1, with its own stream: it
/// is the same however many others there are.
pub(super) fn draw(model: &mut Model, seed: u64, restart: usize) -> Result<()> {
    let generator = &mut rng::stream(seed, &format!("restart/{restart}"));
    for (path, param) in model.params_mut() {
        if param.role().is_bulky() || param.frozen || param.is_empty() {
            continue;
        }
        // the plain start is a smooth function: what it misses is far shorter, for all inputs alike
        let prior = param.prior.filter(|_| !param.assumed);
        let lengths = prior.is_none() && param.role() == Role::Lengthscales;
        let common = match lengths {
            true => 10_f64.powf(COMMON.0 + (COMMON.1 - COMMON.0) * rng::uniform(generator)),
            false => 1.0,
        };
        let decades = if lengths { 0.5 * DECADES } else { DECADES };
        let transform = param.transform();
        let values = param.value().iter().map(|value| {
            let value = if transform.contains(common * value) { common * value } else { *value };
            draw_one(value, param, prior, decades, generator)
        });
        let mut values: Vec<f64> = values.collect();
        param.level(&mut values);
        param.set(&path, &values)?;
    }
    Ok(())
}

fn draw_one(
    value: f64,
    param: &Param,
    prior: Option<Prior>,
    decades: f64,
    rng: &mut impl Rng,
) -> f64 {
    let uniform = rng::uniform(rng);
    let transform = param.transform();
    let (lower, upper) = transform.ends();
    let drawn = match (prior, param.natural()) {
        (Some(prior), _) => (0..ATTEMPTS)
            .map(|_| prior.sample(rng))
            .find(|v| transform.contains(*v))
            .unwrap_or(value),
        (None, Transform::Softplus { lower: natural } | Transform::Exp { lower: natural }) => {
            let excess = value - natural;
            let power = |end: Option<f64>| end.map(|end| ((end - natural) / excess).log10());
            let least = power(lower).map_or(-decades, |p| p.max(-decades));
            let most = power(upper).map_or(decades, |p| p.min(decades));
            natural + excess * 10_f64.powf(least + (most - least) * uniform)
        }
        _ => match (lower, upper) {
            (Some(lower), Some(upper)) => lower + (upper - lower) * uniform,
            _ => (0..ATTEMPTS)
                .map(|_| {
                    let z: f64 = StandardNormal.sample(rng);
                    value + z
                })
                .find(|v| transform.contains(*v))
                .unwrap_or(value),
        },
    };
    // an end of an interval, or a number too large
    if transform.contains(drawn) { drawn } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{self, Inputs};
    use crate::likelihoods::Gaussian;
    use crate::linalg::Jitter;
    use crate::{means, methods};

    fn model(kernel: &str) -> Model {
        Model {
            kernels: vec![kernels::parse(kernel, Inputs::unnamed(2)).unwrap()],
            mean: means::by_name("constant", 2, 1).unwrap(),
            likelihood: Box::new(Gaussian::new(0.3)),
            inducing: Vec::new(),
            q: None,
            method: methods::find("exact").unwrap().method,
            jitter: Jitter::default(),
            hidden: Vec::new(),
        }
    }

    fn values(model: &Model, restart: usize) -> Vec<(String, Vec<f64>)> {
        let mut model = model.clone();
        draw(&mut model, 11, restart).unwrap();
        model.params().into_iter().map(|(path, p)| (path, p.value().to_vec())).collect()
    }

    #[test]
    fn a_start_is_that_of_its_number_and_frozen_values_stay() {
        let mut own = model("rbf(variance=2.5, lengthscales=[0.4, 30])");
        assert_eq!(values(&own, 3), values(&own, 3));
        assert_ne!(values(&own, 3), values(&own, 4));
        own.freeze("kernel.lengthscales", true).unwrap();
        let drawn = values(&own, 3);
        let lengthscales = drawn.iter().find(|(path, _)| path == "kernel.lengthscales").unwrap();
        assert_eq!(lengthscales.1, [0.4, 30.0]);
    }

    /// Within a factor of ten, log-uniform: mean 0 and variance 1/3 of the decimal logarithm, at five standard errors.
    #[test]
    fn positive_numbers_are_log_uniform_about_their_start() {
        let own = model("rbf(variance=2.5, lengthscales=[0.4, 30])");
        let n = 4000;
        let logs: Vec<f64> = (1..=n)
            .map(|restart| {
                let drawn = values(&own, restart);
                let variance = &drawn.iter().find(|(path, _)| path == "kernel.variance").unwrap().1;
                (variance[0] / 2.5).log10()
            })
            .collect();
        assert!(logs.iter().all(|l| (-1.0..=1.0).contains(l)));
        let count = n as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let square = logs.iter().map(|l| l * l).sum::<f64>() / count;
        assert!(mean.abs() < 5.0 * (1.0 / 3.0 / count).sqrt(), "{mean}");
        // the variance of u² is 1/5 − 1/9
        let error = (4.0 / 45.0 / count).sqrt();
        assert!((square - 1.0 / 3.0).abs() < 5.0 * error, "{square}");
    }

    /// As far as a factor of ten either way, but for what is beyond a bound: log-uniform on the rest.
    #[test]
    fn draws_keep_within_bounds() {
        let own = model(
            "rbf(variance={value: 2.5, max: 5}, lengthscales={value: [0.4, 30], min: 0.2, max: 1e5})",
        );
        let n = 2000_u32;
        let mut variances = 0.0;
        for restart in 1..=n {
            let drawn = values(&own, restart as usize);
            let of = |path: &str| drawn.iter().find(|(own, _)| own == path).unwrap().1.clone();
            let lengthscales = of("kernel.lengthscales");
            let variance = of("kernel.variance")[0];
            assert!(variance > 0.249 && variance < 5.0, "{variance}");
            assert!(lengthscales.iter().all(|l| *l > 0.2 && *l < 1e5), "{lengthscales:?}");
            variances += (variance / 0.25).ln() / 20_f64.ln();
        }
        // mean ½ and variance 1/12 of a uniform number, at five standard errors
        let error = 5.0 * (1.0 / 12.0 / f64::from(n)).sqrt();
        let count = f64::from(n);
        let mean = variances / count;
        assert!((mean - 0.5).abs() < error, "{mean}");
    }

    /// Priors decide where they are given, also far from the start.
    #[test]
    fn priors_are_drawn_from() {
        let own = model(
            "rbf(variance={value: 9, prior: {type: lognormal, loc: -1.2, scale: 0.3}}, lengthscales=[0.4, 30])",
        );
        let n = 2000;
        let logs: Vec<f64> = (1..=n)
            .map(|restart| {
                let drawn = values(&own, restart);
                drawn.iter().find(|(path, _)| path == "kernel.variance").unwrap().1[0].ln()
            })
            .collect();
        let mean = logs.iter().sum::<f64>() / n as f64;
        let square = logs.iter().map(|l| (l + 1.2).powi(2)).sum::<f64>() / n as f64;
        assert!((mean + 1.2).abs() < 5.0 * 0.3 / (n as f64).sqrt(), "{mean}");
        assert!((square - 0.09).abs() < 5.0 * 0.09 * (2.0 / n as f64).sqrt(), "{square}");
    }
}

//! Whether a model says less of the rows that it learnt from than a constant does.

use crate::data::InMemory;
use crate::error::Result;
use crate::fit::beginning::targets_of;
use crate::likelihoods::{Likelihood, Support, Target};
use crate::linalg::column;
use crate::model::Posterior;

/// Rows that are looked at, where no more have been drawn.
pub(super) const ROWS: usize = 500;
/// Fewer say little.
const FEWEST: usize = 20;
/// Nats a row by which a constant must be ahead.
const CLEAR: f64 = 0.2;

/// Returns what is said of a model that a constant is ahead of by so many nats a row.
pub(super) fn text(nats: f64) -> String {
    format!(
        "the model predicts the rows that it learnt from worse than a constant does, by {nats:.2} nats a row: its training has \
         not come far enough, or went wrong; try more of it (`epochs`, `max_iterations`), another learning rate, or another method"
    )
}

/// Returns by how many nats a row a constant is ahead, where it clearly is. Rows with weights may be means of several, whose
/// densities say nothing.
///
/// # Errors
/// What predicting the rows gives.
pub(super) fn than_a_constant(
    posterior: &Posterior,
    likelihood: &dyn Likelihood,
    rows: &InMemory,
) -> Result<Option<f64>> {
    let n = rows.x.nrows();
    if n < FEWEST || !rows.weights.is_empty() {
        return Ok(None);
    }
    let own = posterior.predict_log_density(rows.x.as_ref(), rows.y.as_ref(), &rows.extra)?;
    let constant: f64 = match likelihood.support(1.0) {
        Support::Real => (0..rows.y.ncols()).map(|p| normal(column(rows.y.as_ref(), p))).sum(),
        _ => targets_of(rows, likelihood).iter().map(|all| of_targets(likelihood, all)).sum(),
    };
    let ahead = (constant - own.iter().sum::<f64>()) / n as f64;
    Ok((ahead > CLEAR).then_some(ahead))
}

/// Returns the sum of the log densities of values that are there, by the normal distribution with
/// their mean and variance; −∞ for none.
fn normal(values: &[f64]) -> f64 {
    let known: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    let n = known.len() as f64;
    let mean = known.iter().sum::<f64>() / n;
    let variance = known.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    match variance > 0.0 {
        true => -0.5 * n * ((std::f64::consts::TAU * variance).ln() + 1.0),
        false => f64::NEG_INFINITY,
    }
}

/// Returns the sum of the log densities of targets where the latent functions are the constants
/// that a likelihood begins with.
fn of_targets(likelihood: &dyn Likelihood, targets: &[Target]) -> f64 {
    let mut own = likelihood.clone_box();
    let f = own.initialise(targets);
    targets.iter().map(|target| own.log_prob(*target, &f)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Cpu;
    use crate::fit::{BatchOptions, Dataset, FitOptions, fit};
    use crate::linalg::Mat;
    use crate::methods;
    use crate::rng::{stream, uniform};

    /// A wave with noise, in so many columns of targets; in a second one a value is missing.
    fn rows(likelihood: &str, columns: usize) -> InMemory {
        let mut rng = stream(3, "worse");
        let x = Mat::from_fn(120, 1, |i, _| i as f64 / 20.0);
        let y = Mat::from_fn(120, columns, |i, p| {
            let noise = uniform(&mut rng) - 0.5;
            let f = 3.0 * (2.0 * x[(i, 0)] + p as f64).sin() + noise;
            match likelihood {
                "poisson" => (1.0 + f).max(0.0).round(),
                "bernoulli" => f64::from(u8::from(f > 0.0)),
                _ if (i, p) == (7, 1) => f64::NAN,
                _ => 40.0 + f,
            }
        });
        InMemory::new(x, y).expect("rows")
    }

    fn warned(rows: InMemory, method: &str, likelihood: &str, epochs: Option<usize>) -> bool {
        let mut options = FitOptions {
            method: method.into(),
            likelihood: Some(likelihood.into()),
            kernel: "rbf".into(),
            ..FitOptions::default()
        };
        if epochs.is_some() {
            let mut batches = BatchOptions::of(methods::find(method).expect("a method").method);
            batches.training.epochs = epochs;
            options.batches = Some(batches);
        }
        let dataset = Dataset::from_rows(rows, likelihood == "gaussian").expect("a table");
        let fitted = fit(&dataset, &options, &Cpu::default(), &mut ()).expect("a model");
        fitted.warnings.iter().any(|own| own.contains("worse than a constant"))
    }

    #[test]
    fn trainings_that_have_not_come_far_are_named() {
        assert!(warned(rows("gaussian", 1), "deep", "gaussian", Some(3)));
        assert!(!warned(rows("gaussian", 1), "deep", "gaussian", Some(400)));
        for likelihood in ["gaussian", "student-t", "poisson", "bernoulli"] {
            assert!(!warned(rows(likelihood, 1), "auto", likelihood, None), "{likelihood}");
        }
        assert!(!warned(rows("gaussian", 2), "tsvgp", "gaussian", None));
    }

    /// Inputs that differ in their last digits only are left out of starting values, not of what is predicted.
    #[test]
    fn inputs_far_from_zero_are_predicted_where_they_are() {
        let mut data = rows("gaussian", 1);
        for i in 0..120 {
            let step = (i % 7) as f64;
            data.x[(i, 0)] = 1e15 + step;
            data.y[(i, 0)] = 40.0 + 3.0 * step + 0.01 * data.y[(i, 0)];
        }
        let dataset = Dataset::from_rows(data.clone(), true).expect("a table");
        assert_eq!(dataset.rounded, [0]);
        assert!(!warned(data, "exact", "gaussian", None));
    }

    #[test]
    fn a_constant_is_the_normal_of_its_moments() {
        let values = [1.0, f64::NAN, 4.0, 7.0];
        let expected = -1.5 * ((std::f64::consts::TAU * 6.0).ln() + 1.0);
        assert!((normal(&values) - expected).abs() < 1e-12);
        assert_eq!(normal(&[2.0, 2.0]), f64::NEG_INFINITY);
    }

    #[test]
    fn constants_of_other_likelihoods_are_those_of_their_targets() {
        let data = rows("poisson", 1);
        let own = crate::likelihoods::parse("poisson").expect("a likelihood");
        let targets = targets_of(&data, &*own);
        let found = of_targets(&*own, &targets[0]);
        let y = column(data.y.as_ref(), 0);
        let rate = y.iter().sum::<f64>() / y.len() as f64;
        let log_factorial = |y: f64| (1..=y as usize).map(|k| (k as f64).ln()).sum::<f64>();
        let expected: f64 = y.iter().map(|y| y * rate.ln() - rate - log_factorial(*y)).sum();
        assert!((found - expected).abs() < 0.01 * expected.abs(), "{found} {expected}");
    }
}

//! What is done to hyperparameters that a few rows have found before all rows see them.

use crate::data::InMemory;
use crate::engine::Engine;
use crate::error::Result;
use crate::linalg::{Mat, MatRef, column};
use crate::means;
use crate::methods;
use crate::model::Model;
use crate::params::Role;

/// Spans of an input within which its lengthscales start. Where ℓ is so long that an input hardly matters, slopes in log ℓ
/// fall as ℓ⁻²: what a thousand rows call irrelevant could never come back.
const SPANS: f64 = 3.0;

/// Shortens lengthscales that nobody gave to a few times what the rows span.
fn cap_lengthscales(model: &mut Model, x: MatRef<f64>) {
    let spans: Vec<f64> = (0..x.ncols()).map(|q| span(x, q)).collect();
    let widest = spans.iter().copied().fold(0.0, f64::max);
    for kernel in &mut model.kernels {
        let units = kernel.units();
        let mut at = 0;
        for (_, param) in kernel.params_mut() {
            let own = &units[at..at + param.len()];
            at += param.len();
            if param.role() != Role::Lengthscales || param.frozen || param.given {
                continue;
            }
            let capped = param.value().iter().zip(own).map(|(value, unit)| {
                let of_input = match unit {
                    Some(unit) => unit.input.map(|(q, _)| spans[q]),
                    None => Some(widest),
                };
                match of_input {
                    Some(span) if span > 0.0 => value.min(SPANS * span),
                    _ => *value,
                }
            });
            let capped: Vec<f64> = capped.collect();
            param.start(&capped);
        }
    }
}

/// Gives a model the hyperparameters that few rows have found, but for those that somebody gave.
pub(super) fn take(model: &mut Model, found: &[f64], x: MatRef<f64>) {
    let mut rest = found;
    let own = model.params_mut().into_iter().filter(|(_, param)| !param.role().is_bulky());
    for (_, param) in own {
        let (own, tail) = rest.split_at(param.len().min(rest.len()));
        rest = tail;
        if !param.frozen && !param.given && !own.is_empty() {
            param.start(own);
        }
    }
    cap_lengthscales(model, x);
}

/// Returns the largest less smallest value of a column.
pub(super) fn span(x: MatRef<f64>, q: usize) -> f64 {
    let values = column(x, q).iter();
    let (least, most) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
    most - least
}

/// Returns whether the noise is Gaussian and neither given nor frozen.
pub(super) fn free_noise(model: &Model) -> bool {
    model.likelihood.as_gaussian().is_some_and(|g| !g.variance.given && !g.variance.frozen)
}

/// Adds to the noise variance what the inducing points leave unexplained in the mean of the rows:
/// the pilot knew nothing of them, and a bound that starts with noise far below falls off a cliff.
pub(super) fn widen_noise(model: &mut Model, x: MatRef<f64>, engine: &dyn Engine) -> Result<()> {
    let rows = x.nrows() as f64;
    let collapsed = methods::find("titsias2009")?.method;
    let trial = Model {
        method: collapsed,
        q: None,
        kernels: model.kernels[..1].to_vec(),
        inducing: model.inducing[..1].to_vec(),
        mean: means::by_name("zero", x.ncols(), 1)?,
        ..model.clone()
    };
    // it does not depend on the targets
    let rest = InMemory::new(x.to_owned(), Mat::zeros(x.nrows(), 1))?;
    let unexplained = match trial.evaluate(engine, &rest) {
        Ok(evaluation) => evaluation.diagnostics.unexplained / rows,
        Err(error) if error.is_recoverable() => 0.0,
        Err(error) => return Err(error),
    };
    let noise = model.noise() + unexplained.max(0.0);
    if let Some(gaussian) = model.likelihood.as_gaussian_mut() {
        gaussian.variance.start(&[noise]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{self, Inputs};
    use crate::likelihoods::Gaussian;
    use crate::linalg::Jitter;

    #[test]
    fn long_lengthscales_are_shortened_to_spans_of_their_inputs() {
        let x = Mat::from_fn(5, 2, |i, q| if q == 0 { 0.5 * i as f64 } else { 40.0 * i as f64 });
        let capped = |spec: &str| {
            let mut model = Model {
                kernels: vec![kernels::parse(spec, Inputs::unnamed(2)).unwrap()],
                mean: means::by_name("zero", 2, 1).unwrap(),
                likelihood: Box::new(Gaussian::new(0.3)),
                inducing: Vec::new(),
                q: None,
                method: &methods::Exact,
                jitter: Jitter::default(),
                hidden: Vec::new(),
            };
            model.params_mut().into_iter().for_each(|(_, param)| param.given = false);
            cap_lengthscales(&mut model, x.as_ref());
            let params = model.params();
            params
                .iter()
                .find(|(path, _)| path == "kernel.lengthscales")
                .unwrap()
                .1
                .value()
                .to_vec()
        };
        // spans of 2 and 160
        assert_eq!(capped("rbf(lengthscales=[1e9, 3])"), [6.0, 3.0]);
        assert_eq!(capped("matern32(lengthscales=[5.9, 1e7])"), [5.9, 480.0]);
        assert_eq!(capped("rbf(lengthscales=1e7, ard=false)"), [480.0]);
    }
}

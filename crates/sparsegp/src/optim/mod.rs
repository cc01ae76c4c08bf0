//! Optimisers over a flat vector of free parameters.
//!
//! [`Lbfgs`] is for objectives that are the same at every call (all data), [`Adam`] for noisy ones
//! (minibatches). Both advance one iteration per call of [`Optimiser::step`], so that the caller
//! decides what happens between iterations (logging, checkpoints, budget, interruption), and both
//! serialise completely: a run that is read back continues bit for bit.

mod adam;
mod adam_options;
mod lbfgs;
mod lbfgs_options;
mod line_search;
mod plateau_rate;
mod progress;
mod status;
#[cfg(test)]
mod test_functions;
mod vector;

pub use adam::Adam;
pub use adam_options::{AdamOptions, Plateau, Schedule};
pub use lbfgs::Lbfgs;
pub use lbfgs_options::LbfgsOptions;
pub use plateau_rate::{FallingRate, PlateauRate};
pub use progress::Progress;
pub use status::{Reason, Stall, Status, Step};

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use vector::{first_wrong, max_norm};

/// A differentiable function to minimise.
pub trait Objective {
    /// Returns the number of free parameters.
    fn dim(&self) -> usize;
    /// Returns the value at `x`; writes the gradient. Both arguments have length
    /// [`Objective::dim`].
    ///
    /// # Errors
    /// An error for which [`crate::Error::is_recoverable`] holds means "no value here, try nearer";
    /// any other stops the optimisation.
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64>;
    /// Returns the number of terms that the value is a sum of, if that is known: log densities of
    /// so many targets. It is the scale of what counts as small then, since it does not depend on
    /// the units of the targets, as the value does.
    fn terms(&self) -> Option<f64> {
        None
    }
    /// Returns by how much the last value may be wrong, beside rounding, where its gradient is not
    /// exactly that of the value: a value that averages over draws.
    fn noise(&self) -> f64 {
        0.0
    }
}

/// An iterative minimiser.
pub trait Optimiser: Send {
    /// Makes one iteration. Once the status is no longer [`Status::Running`] the call evaluates
    /// nothing and repeats the outcome; see [`Optimiser::restart`].
    ///
    /// # Errors
    /// An error of the objective that is not recoverable; a recoverable one at the starting point,
    /// where there is nothing to fall back to; [`Error::Shape`] or [`Error::Invalid`] if starting
    /// point or options do not fit. The state is as before the call.
    fn step(&mut self, objective: &mut dyn Objective) -> Result<Step>;
    /// Returns the current point. For [`Adam`] it is the point that the next step evaluates.
    fn x(&self) -> &[f64];
    /// Returns the last accepted value; none before the first step. For [`Adam`] it belongs to the
    /// point that the last step left.
    fn value(&self) -> Option<f64>;
    /// Returns the gradient that goes with [`Optimiser::value`].
    fn gradient(&self) -> Option<&[f64]>;
    /// Returns the point with the lowest value so far, and that value. If the objective is noisy,
    /// so is the comparison.
    fn best(&self) -> Option<(&[f64], f64)>;
    /// Returns the number of iterations done.
    fn iterations(&self) -> usize;
    /// Returns the number of evaluations of the objective, failed ones included.
    fn evaluations(&self) -> usize;
    /// Returns whether and why the optimiser has come to an end.
    fn status(&self) -> &Status;
    /// Continues from the current point as from a new start, for instance after the objective
    /// itself has changed. Forgets values, the best point and what was learnt of the curvature;
    /// keeps the counts.
    fn restart(&mut self);
}

/// Any of the optimisers, for callers that store the choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnyOptimiser {
    /// Limited-memory BFGS.
    Lbfgs(Lbfgs),
    /// Adam.
    Adam(Adam),
}

impl AnyOptimiser {
    fn inner(&self) -> &dyn Optimiser {
        match self {
            Self::Lbfgs(inner) => inner,
            Self::Adam(inner) => inner,
        }
    }
    fn inner_mut(&mut self) -> &mut dyn Optimiser {
        match self {
            Self::Lbfgs(inner) => inner,
            Self::Adam(inner) => inner,
        }
    }
}

impl Optimiser for AnyOptimiser {
    fn step(&mut self, objective: &mut dyn Objective) -> Result<Step> {
        self.inner_mut().step(objective)
    }
    fn x(&self) -> &[f64] {
        self.inner().x()
    }
    fn value(&self) -> Option<f64> {
        self.inner().value()
    }
    fn gradient(&self) -> Option<&[f64]> {
        self.inner().gradient()
    }
    fn best(&self) -> Option<(&[f64], f64)> {
        self.inner().best()
    }
    fn iterations(&self) -> usize {
        self.inner().iterations()
    }
    fn evaluations(&self) -> usize {
        self.inner().evaluations()
    }
    fn status(&self) -> &Status {
        self.inner().status()
    }
    fn restart(&mut self) {
        self.inner_mut().restart();
    }
}

/// Checks what both optimisers need of a starting point.
fn check_start(x: &[f64], objective: &dyn Objective) -> Result<()> {
    if objective.dim() != x.len() {
        return Err(Error::Shape {
            what: "starting point of the optimiser".into(),
            expected: format!("{} values, one per free parameter", objective.dim()),
            found: format!("{} values", x.len()),
        });
    }
    match first_wrong(x, f64::is_finite) {
        None => Ok(()),
        // Not `NonFinite`, which is recoverable: no nearer point will help here.
        Some(i) => Err(Error::Invalid(format!(
            "the optimiser cannot start at a point whose component {i} is {}",
            x[i]
        ))),
    }
}

/// What an objective has to say about a point.
enum Outcome {
    /// Value and gradient are finite (the gradient is in the caller's buffer): the value, and the gradient's largest component.
    Finite(f64, f64),
    /// No usable value here; nearer points may have one.
    Infeasible(Error),
}

/// Evaluates, and tells recoverable failures and non-finite numbers from fatal errors.
fn evaluate(objective: &mut dyn Objective, x: &[f64], gradient: &mut [f64]) -> Result<Outcome> {
    let value = match objective.evaluate(x, gradient) {
        Ok(value) => value,
        Err(error) if error.is_recoverable() => return Ok(Outcome::Infeasible(error)),
        Err(error) => return Err(error),
    };
    if !value.is_finite() {
        return Ok(Outcome::Infeasible(Error::NonFinite { what: "objective".into(), value }));
    }
    let largest = max_norm(gradient);
    if largest.is_finite() {
        return Ok(Outcome::Finite(value, largest));
    }
    let i = first_wrong(gradient, f64::is_finite).unwrap_or(0);
    Ok(Outcome::Infeasible(Error::NonFinite {
        what: format!("component {i} of the gradient"),
        value: gradient[i],
    }))
}

#[cfg(test)]
mod tests {
    use super::test_functions::Quadratic;
    use super::*;

    #[test]
    fn any_optimiser_forwards_and_reads_back() {
        let mut each = [
            AnyOptimiser::Lbfgs(Lbfgs::new(vec![1.0, 2.0], LbfgsOptions::default())),
            AnyOptimiser::Adam(Adam::new(vec![1.0, 2.0], AdamOptions::default())),
        ];
        for (optimiser, name) in each.iter_mut().zip(["lbfgs", "adam"]) {
            assert!(optimiser.value().is_none() && optimiser.gradient().is_none());
            assert!(optimiser.best().is_none());
            let step = optimiser.step(&mut Quadratic::new(vec![1.0, 3.0])).unwrap();
            assert_eq!(optimiser.iterations(), 1);
            assert_eq!(optimiser.evaluations(), step.evaluations);
            assert_eq!(optimiser.value(), Some(step.value));
            assert_eq!(optimiser.gradient().unwrap().len(), 2);
            assert_eq!(optimiser.best().unwrap().1, step.value);
            assert_eq!(optimiser.status(), &Status::Running);
            assert_ne!(optimiser.x(), [1.0, 2.0]);
            let text = serde_json::to_string(&*optimiser).unwrap();
            assert!(text.starts_with(&format!("{{\"{name}\":")), "{text}");
            assert_eq!(&serde_json::from_str::<AnyOptimiser>(&text).unwrap(), optimiser);
            optimiser.restart();
            assert!(optimiser.value().is_none());
            assert_eq!(optimiser.iterations(), 1);
        }
    }

    #[test]
    fn a_wrong_start_is_a_sentence() {
        for x in [vec![1.0], vec![1.0, f64::NAN], vec![f64::INFINITY, 1.0]] {
            let mut objective = Quadratic::new(vec![1.0, 3.0]);
            let lbfgs = Lbfgs::new(x.clone(), LbfgsOptions::default()).step(&mut objective);
            let adam = Adam::new(x, AdamOptions::default()).step(&mut objective);
            for result in [lbfgs, adam] {
                let error = result.unwrap_err();
                assert!(!error.is_recoverable());
                assert!(error.to_string().contains("optimiser"), "{error}");
            }
            assert_eq!(objective.calls, 0);
        }
    }
}

//! Sizes of the natural-gradient steps of L, and when to stop making them.

use crate::error::{Error, Result};
use crate::linalg::Precision;
use serde::{Deserialize, Serialize};

/// How long the steps γ are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// 1 where λmax(H) is at most 2, else 1/λmax(H), by eight power iterations; a step after which the
    /// objective is higher is halved. A unit step then falls strictly: with W = Φ(E) the objective changes
    /// by −tr(HW) + ½ tr(WᵀHW) − Σ log(1 − Wⱼⱼ).
    #[default]
    Adaptive,
    /// The same in every step. 1 suffices while Z stays where it is (Cortinovis et al., §3.4).
    Constant(f64),
    /// γᵢ = exp(log γ₀ + (log γ₁ − log γ₀) i/(n − 1)) for i < n, then γ₁ (Salimbeni, Eleftheriadis &
    /// Hensman 2018). The count restarts for every matrix.
    LogLinear {
        /// γ₀.
        first: f64,
        /// γ₁.
        last: f64,
        /// n.
        steps: usize,
    },
    /// The best γ along the direction: one more product of M×M in every step. Greedy: slower than 1 from a
    /// cold start.
    LineSearch,
}

impl Schedule {
    /// The paper's log-linear schedule, 10⁻⁵ to 1 over ten steps (Cortinovis et al., §4.3).
    pub const LOG_LINEAR: Self = Self::LogLinear { first: 1e-5, last: 1.0, steps: 10 };

    /// Returns γ of step i = 0, 1, …; none where it depends on the matrix.
    pub fn rate(&self, step: usize) -> Option<f64> {
        match *self {
            Schedule::Adaptive | Schedule::LineSearch => None,
            Schedule::Constant(rate) => Some(rate),
            Schedule::LogLinear { last, steps, .. } if step + 1 >= steps => Some(last),
            Schedule::LogLinear { first, last, steps } => {
                let part = step as f64 / (steps - 1) as f64;
                Some((first.ln() + part * (last.ln() - first.ln())).exp())
            }
        }
    }
}

/// When to stop, and how to go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SolverOptions {
    /// Step sizes.
    pub schedule: Schedule,
    /// Largest normalised residual r = ‖LᵀK̃L − I‖_F/√M to stop at (Cortinovis et al., Eq. 8).
    pub tolerance: f64,
    /// Most steps.
    pub most: usize,
    /// Whether to stop where a unit step from r < 0.1 does not halve r: what is left is rounding.
    pub stall: bool,
    /// Residual above which L restarts from the scaled identity.
    pub restart_above: f64,
    /// What the products of the steps are made in. The E that is left is of double precision in any case, so that
    /// bound and gradients are those of the L that is left, whatever it is. In single precision the residual goes
    /// no lower than some 0.2·6·10⁻⁸ times the condition number of K̃ (tested), where the steps stop by
    /// themselves; where that would be above 0.01, min λ < 20·6·10⁻⁸‖K̃‖_∞, they are made in double precision.
    pub products: Precision,
}

impl Default for SolverOptions {
    /// Sets the tolerance 5·10⁻³ and at most 100 steps, which are the paper's for its regressions
    /// (§4.2, released configuration). It takes γ = 1, which the adaptive schedule takes too
    /// wherever that is safe. The stall and the restart at 10 are this library's.
    fn default() -> Self {
        Self {
            schedule: Schedule::Adaptive,
            tolerance: 5e-3,
            most: 100,
            stall: true,
            restart_above: 10.0,
            products: Precision::Double,
        }
    }
}

impl SolverOptions {
    /// Creates options by which it comes as near as rounding lets it: for objectives that must be
    /// functions of their parameters.
    pub fn strict() -> Self {
        Self { tolerance: 1e-11, most: 200, ..Self::default() }
    }

    /// Refuses what cannot be.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the value.
    pub fn check(&self) -> Result<()> {
        let positive = |v: f64| v > 0.0 && v.is_finite();
        let rates = match self.schedule {
            Schedule::Constant(rate) => positive(rate) && rate <= 1.0,
            Schedule::LogLinear { first, last, steps } => {
                [first, last].iter().all(|rate| positive(*rate) && *rate <= 1.0) && steps > 0
            }
            Schedule::Adaptive | Schedule::LineSearch => true,
        };
        if !rates {
            return Err(Error::Invalid(format!(
                "the steps of L are above 0 and at most 1, and of a schedule there is at least one: {:?}",
                self.schedule
            )));
        }
        if !positive(self.tolerance) || self.restart_above.is_nan() {
            return Err(Error::Invalid(format!(
                "the residual to stop at must be a positive number, found {}",
                self.tolerance
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_linear_steps_have_equal_ratios() {
        let schedule = Schedule::LogLinear { first: 3e-4, last: 0.6, steps: 7 };
        let rates: Vec<f64> = (0..10).filter_map(|i| schedule.rate(i)).collect();
        assert!((rates[0] - 3e-4).abs() < 1e-15 && rates[6..].iter().all(|r| *r == 0.6));
        let ratio = rates[1] / rates[0];
        assert!(rates.windows(2).take(6).all(|w| (w[1] / w[0] / ratio - 1.0).abs() < 1e-12));
        let one = Schedule::LogLinear { first: 0.1, last: 0.5, steps: 1 };
        assert_eq!(one.rate(0), Some(0.5));
        assert_eq!(
            (Schedule::Constant(0.3).rate(8), Schedule::Adaptive.rate(0)),
            (Some(0.3), None)
        );
    }

    #[test]
    fn impossible_options_are_refused_with_their_values() {
        let with = |schedule| SolverOptions { schedule, ..SolverOptions::default() };
        for (options, word) in [
            (with(Schedule::Constant(1.5)), "1.5"),
            (with(Schedule::LogLinear { first: 0.0, last: 1.0, steps: 3 }), "first: 0.0"),
            (with(Schedule::LogLinear { first: 0.1, last: 1.0, steps: 0 }), "steps: 0"),
            (SolverOptions { tolerance: 0.0, ..SolverOptions::default() }, "found 0"),
        ] {
            let error = options.check().unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        SolverOptions::strict().check().unwrap();
        with(Schedule::LOG_LINEAR).check().unwrap();
    }
}

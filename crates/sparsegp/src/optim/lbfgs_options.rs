//! Options of [`super::Lbfgs`].

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// c₁ of the sufficient decrease.
pub(super) const DECREASE: f64 = 1e-4;

/// Options of [`super::Lbfgs`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LbfgsOptions {
    /// Pairs of differences that are kept; 10 by default.
    pub memory: usize,
    /// Converged when no gradient component exceeds this times max(1, |value|); 1e-6 by default.
    /// The value sets the scale because rounding errors of a sum over rows grow with it.
    pub gradient_tolerance: f64,
    /// Converged when |f − f₊| ≤ this times max(|f|, |f₊|, 1) for [`LbfgsOptions::patience`]
    /// iterations in a row; 1e-9 by default, 0 turns the criterion off.
    pub objective_tolerance: f64,
    /// See [`LbfgsOptions::objective_tolerance`]; 3 by default.
    pub patience: usize,
    /// c₂ of the curvature condition, between 1e-4 and 1; 0.9 by default;
    /// smaller values make the line searches sharper, with more evaluations in each.
    pub curvature: f64,
    /// Most evaluations in one line search; 25 by default.
    pub line_search_evaluations: usize,
    /// No component moves further than this in one iteration; unlimited by default.
    pub largest_move: Option<f64>,
}

impl Default for LbfgsOptions {
    fn default() -> Self {
        Self {
            memory: 10,
            gradient_tolerance: 1e-6,
            objective_tolerance: 1e-9,
            patience: 3,
            curvature: 0.9,
            line_search_evaluations: 25,
            largest_move: None,
        }
    }
}

impl LbfgsOptions {
    pub(super) fn check(&self) -> Result<()> {
        for (name, value) in [
            ("gradient_tolerance", self.gradient_tolerance),
            ("objective_tolerance", self.objective_tolerance),
        ] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::Invalid(format!(
                    "L-BFGS: {name} must be a number ≥ 0, found {value}"
                )));
            }
        }
        if let Some(most) = self.largest_move.filter(|most| most.is_nan() || *most <= 0.0) {
            return Err(Error::Invalid(format!(
                "L-BFGS: largest_move must be a positive number, found {most}"
            )));
        }
        if !(self.curvature > DECREASE && self.curvature < 1.0) {
            return Err(Error::Invalid(format!(
                "L-BFGS: curvature must be between {DECREASE} and 1, found {}",
                self.curvature
            )));
        }
        if self.patience == 0 || self.line_search_evaluations == 0 {
            return Err(Error::Invalid(
                "L-BFGS: patience and line_search_evaluations must be at least 1".into(),
            ));
        }
        Ok(())
    }
}

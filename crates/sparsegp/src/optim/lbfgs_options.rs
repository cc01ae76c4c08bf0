//! Options of [`super::Lbfgs`].

use super::Plateau;
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
    /// Converged when no gradient component exceeds this times the number of terms ([`super::Objective::terms`]), or
    /// max(1, |value|) where that is unknown; 1e-6 by default. The scale is there because rounding errors of a sum
    /// over rows grow with it.
    pub gradient_tolerance: f64,
    /// Converged when |f − f₊| ≤ this times the number of terms (or max(|f|, |f₊|, 1)) for [`LbfgsOptions::patience`]
    /// iterations in a row, and the gradient promises next to nothing (½ gᵀHg); 1e-9 by default, 0 turns the criterion off.
    pub objective_tolerance: f64,
    /// See [`LbfgsOptions::objective_tolerance`]; 3 by default.
    pub patience: usize,
    /// Converged when the value has fallen by no more than `tolerance` times max(|f|, 1), or the number of terms if that
    /// is less, in the last `window` iterations together, and the gradient promises no more: the end of a long slope on which nothing visible happens any more, though
    /// no single iteration is small. Off by default, since it ends short of the optimum's last digits;
    /// [`LbfgsOptions::fitting`] has it.
    pub plateau: Option<Plateau>,
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
            plateau: None,
            curvature: 0.9,
            line_search_evaluations: 25,
            largest_move: None,
        }
    }
}

impl LbfgsOptions {
    /// Tolerance of [`LbfgsOptions::fitting`].
    pub const FITTING: f64 = 1e-4;

    /// Creates options for fits whose predictions matter rather than the last digits of the
    /// optimum: ends where ten iterations together bring no more than [`LbfgsOptions::FITTING`].
    pub fn fitting() -> Self {
        Self::ending_at(Self::FITTING)
    }

    /// Creates the default with a plateau of this tolerance, and no coarser criterion.
    pub fn ending_at(tolerance: f64) -> Self {
        let default = Self::default();
        Self {
            plateau: Some(Self::plateau(tolerance)),
            objective_tolerance: default.objective_tolerance.min(tolerance),
            ..default
        }
    }

    /// Returns the plateau over ten iterations, as many as L-BFGS remembers, with this tolerance.
    pub fn plateau(tolerance: f64) -> Plateau {
        Plateau { window: 10, tolerance }
    }

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
        if let Some(Plateau { window, tolerance }) = self.plateau
            && (window == 0 || !(tolerance >= 0.0 && tolerance.is_finite()))
        {
            return Err(Error::Invalid(format!(
                "L-BFGS: a plateau needs at least one iteration and a tolerance ≥ 0, found {window} and {tolerance}"
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

//! What was tried, and what for.

use super::{Acquisition, Constraint};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// What is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Small values of the objective.
    #[default]
    Minimise,
    /// Large ones.
    Maximise,
}

impl Goal {
    /// Returns 1 where large values are better, else −1.
    pub(super) fn sign(self) -> f64 {
        if self == Self::Maximise { 1.0 } else { -1.0 }
    }
}

/// How to search. [`Options::default`] minimises by expected improvement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// What is better.
    pub goal: Goal,
    /// How points are chosen once there are models.
    pub acquisition: Acquisition,
    /// Trials before there are models; by default three more than there are inputs.
    pub initial: Option<usize>,
    /// Bounds of further outcomes, in their order.
    pub constraints: Vec<Constraint>,
    /// Kernel of all models.
    pub kernel: String,
    /// Standard deviation of the noise of the objective, 0 for none; by default it is learnt.
    pub noise: Option<f64>,
    /// Whether points may be tried again.
    pub repeats: bool,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            goal: Goal::default(),
            acquisition: Acquisition::default(),
            initial: None,
            constraints: Vec::new(),
            kernel: "matern52".into(),
            noise: None,
            repeats: false,
            seed: 0,
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<()> {
        if self.initial == Some(0) {
            return Err(Error::Invalid(
                "there is at least one trial before there are models: give `initial` 1 or more"
                    .into(),
            ));
        }
        if let Some(noise) = self.noise.filter(|noise| !(*noise >= 0.0 && noise.is_finite())) {
            return Err(Error::Invalid(format!(
                "`noise` is {noise}; it is a standard deviation, 0 or above, or left out to be learnt"
            )));
        }
        let names: std::collections::BTreeSet<&String> =
            self.constraints.iter().map(|own| &own.name).collect();
        if names.len() < self.constraints.len() {
            return Err(Error::Invalid(
                "constraints must have different names: one is named twice".into(),
            ));
        }
        Ok(())
    }
}

/// How a trial ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is under way.
    #[default]
    Pending,
    /// The objective, none if the trial failed, then the value of each constraint's outcome, where it is known.
    Known(Vec<Option<f64>>),
}

/// A point that was tried or is being tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The point.
    pub point: Vec<f64>,
    /// How it ended.
    pub outcome: Outcome,
}

impl Trial {
    /// Returns whether it is under way.
    pub fn is_pending(&self) -> bool {
        self.outcome == Outcome::Pending
    }

    /// Returns whether it ended without a value of the objective.
    pub fn has_failed(&self) -> bool {
        !self.is_pending() && self.objective().is_none()
    }

    /// Returns the value of the objective.
    pub fn objective(&self) -> Option<f64> {
        match &self.outcome {
            Outcome::Pending => None,
            Outcome::Known(values) => values.first().copied().flatten(),
        }
    }

    /// Returns the outcome of a constraint.
    pub fn further(&self, constraint: usize) -> Option<f64> {
        match &self.outcome {
            Outcome::Pending => None,
            Outcome::Known(values) => values.get(1 + constraint).copied().flatten(),
        }
    }

    /// Returns whether no observed outcome is beyond its bound.
    pub fn holds(&self, constraints: &[Constraint]) -> bool {
        let mut all = constraints.iter().enumerate();
        all.all(|(c, own)| self.further(c).is_none_or(|value| own.excess(value) <= 0.0))
    }
}

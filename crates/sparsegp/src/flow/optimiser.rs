//! Step rules that scale a flow (Galy-Fajou, Perrone & Opper 2021, §4.4), without twisting the cloud of particles.
//!
//! A scale for every particle and dimension would break the affine map that all particles share. One for every
//! dimension keeps it: with F the flow (D×N) and q_d = (1/N) Σ_n F²_{dn}
//!
//! ```text
//! Adam       M ← β₁M + (1 − β₁)F,  v ← β₂v + (1 − β₂)q     Δ = η M / [(1 − β₁ᵗ)(√(v/(1 − β₂ᵗ)) + ε)]
//! AdaGrad    v ← v + q                                     Δ = η F / (√v + ε)
//! RMSProp    v ← ρv + (1 − ρ)q                             Δ = η F / (√v + ε)
//! ```
//! A positive scale keeps the free energy falling; Adam's momentum need not.

use super::target::check_finite;
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, column, column_mut};
use crate::optim::Schedule;

/// How a flow becomes a move.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Rule {
    /// η F.
    #[default]
    Plain,
    /// Kingma & Ba 2015.
    Adam {
        /// Decay of the momentum, from 0 to below 1.
        beta1: f64,
        /// Decay of the second moment, from 0 to below 1.
        beta2: f64,
        /// ε beside the root, above 0.
        epsilon: f64,
    },
    /// Duchi, Hazan & Singer 2011.
    AdaGrad {
        /// ε beside the root, above 0.
        epsilon: f64,
    },
    /// Tieleman & Hinton 2012.
    RmsProp {
        /// Decay of the second moment, from 0 to below 1.
        rho: f64,
        /// ε beside the root, above 0.
        epsilon: f64,
    },
}

impl Rule {
    /// Returns Adam with its usual numbers: 0.9, 0.999, 10⁻⁸.
    pub fn adam() -> Self {
        Rule::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }
    }

    /// Returns AdaGrad with ε = 10⁻⁸.
    pub fn ada_grad() -> Self {
        Rule::AdaGrad { epsilon: 1e-8 }
    }

    /// Returns RMSProp with ρ = 0.9 and ε = 10⁻⁸.
    pub fn rms_prop() -> Self {
        Rule::RmsProp { rho: 0.9, epsilon: 1e-8 }
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// [`Error::Invalid`] with what is out of range.
    pub fn check(&self) -> Result<()> {
        let decay = |v: f64| (0.0..1.0).contains(&v);
        let positive = |v: f64| v > 0.0 && v.is_finite();
        let valid = match *self {
            Rule::Plain => true,
            Rule::Adam { beta1, beta2, epsilon } => {
                decay(beta1) && decay(beta2) && positive(epsilon)
            }
            Rule::AdaGrad { epsilon } => positive(epsilon),
            Rule::RmsProp { rho, epsilon } => decay(rho) && positive(epsilon),
        };
        if valid {
            return Ok(());
        }
        Err(Error::Invalid(format!("{self:?}: decays are from 0 to below 1, and ε is above 0")))
    }
}

/// What has its own scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Every dimension: for particles.
    #[default]
    Dimension,
    /// Every number: for parameters.
    Element,
}

/// A [`Rule`] with its state, which is 0 at the start.
#[derive(Clone, Debug)]
pub struct FlowOptimiser {
    rule: Rule,
    scale: Scale,
    steps: i32,
    /// Rows and columns of the flows.
    shape: Option<(usize, usize)>,
    first: Mat<f64>,
    second: Mat<f64>,
}

impl FlowOptimiser {
    /// Makes one that has seen nothing.
    ///
    /// # Errors
    /// As for [`Rule::check`].
    pub fn new(rule: Rule, scale: Scale) -> Result<Self> {
        rule.check()?;
        Ok(Self { rule, scale, steps: 0, shape: None, first: Mat::new(), second: Mat::new() })
    }

    /// Returns the momentum M: D×N, or 0×0 of a rule without.
    pub fn first(&self) -> MatRef<'_, f64> {
        self.first.as_ref()
    }

    /// Returns the second moments v: D×1 by dimensions, D×N by elements, or 0×0 of a rule without.
    pub fn second(&self) -> MatRef<'_, f64> {
        self.second.as_ref()
    }

    /// Returns the move Δ (D×N) along a flow F (D×N, without rates) at rate η, to be added.
    ///
    /// # Errors
    /// [`Error::Shape`] if F has another shape than before.
    pub fn step(&mut self, flow: MatRef<'_, f64>, rate: f64) -> Result<Mat<f64>> {
        let (rows, columns) = (flow.nrows(), flow.ncols());
        let (old_rows, old_columns) = *self.shape.get_or_insert((rows, columns));
        if (old_rows, old_columns) != (rows, columns) {
            return Err(Error::Shape {
                what: "a flow".into(),
                expected: format!("{old_rows}×{old_columns} as before"),
                found: format!("{rows}×{columns}"),
            });
        }
        if self.rule == Rule::Plain {
            return Ok(flow.to_owned() * faer::Scale(rate));
        }
        let width = if self.scale == Scale::Dimension { 1 } else { columns };
        if self.steps == 0 {
            self.second = Mat::zeros(rows, width);
            if matches!(self.rule, Rule::Adam { .. }) {
                self.first = Mat::zeros(rows, columns);
            }
        }
        self.steps += 1;
        let mut squares = Mat::<f64>::zeros(rows, width);
        let share = if width == 1 { 1.0 / columns as f64 } else { 1.0 };
        for n in 0..columns {
            let own = column_mut(squares.as_mut(), if width == 1 { 0 } else { n }).iter_mut();
            own.zip(column(flow, n)).for_each(|(q, f)| *q += share * f * f);
        }
        let (keep, add, epsilon) = match self.rule {
            Rule::Adam { beta2, epsilon, .. } => (beta2, 1.0 - beta2, epsilon),
            Rule::RmsProp { rho, epsilon } => (rho, 1.0 - rho, epsilon),
            Rule::AdaGrad { epsilon } => (1.0, 1.0, epsilon),
            Rule::Plain => (0.0, 0.0, 0.0),
        };
        for j in 0..width {
            let own = column_mut(self.second.as_mut(), j);
            own.iter_mut()
                .zip(column(squares.as_ref(), j))
                .for_each(|(v, q)| *v = keep * *v + add * q);
        }
        let mut unbias = (1.0, 1.0);
        if let Rule::Adam { beta1, beta2, .. } = self.rule {
            unbias = (1.0 - beta1.powi(self.steps), 1.0 - beta2.powi(self.steps));
            for n in 0..columns {
                let own = column_mut(self.first.as_mut(), n);
                let flow = column(flow, n);
                own.iter_mut().zip(flow).for_each(|(m, f)| *m = beta1 * *m + (1.0 - beta1) * f);
            }
        }
        let direction = if self.first.ncols() > 0 { self.first.as_ref() } else { flow };
        Ok(Mat::from_fn(rows, columns, |i, n| {
            let v = self.second[(i, if width == 1 { 0 } else { n })];
            rate * direction[(i, n)] / (unbias.0 * ((v / unbias.1).sqrt() + epsilon))
        }))
    }

    /// Returns the move of a vector.
    ///
    /// # Errors
    /// As for [`FlowOptimiser::step`].
    pub fn step_vector(&mut self, flow: &[f64], rate: f64) -> Result<Vec<f64>> {
        let moved = self.step(MatRef::from_column_major_slice(flow, flow.len(), 1), rate)?;
        Ok(column(moved.as_ref(), 0).to_vec())
    }
}

/// Refuses a schedule whose numbers are out of range.
pub(super) fn check_schedule(schedule: Schedule) -> Result<()> {
    if schedule.is_valid() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "the schedule {schedule:?} is not possible: factors are above 0 and at most 1, steps, `after` and `speed` above \
         0, exponents at least 0"
    )))
}

/// Refuses rates that are negative or not finite.
pub(super) fn check_rates(rates: &[f64]) -> Result<()> {
    check_finite("a rate of a flow", rates)?;
    match rates.iter().find(|r| **r < 0.0) {
        None => Ok(()),
        Some(rate) => Err(Error::Invalid(format!("the rate {rate} of a flow is below 0"))),
    }
}

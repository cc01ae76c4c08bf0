//! Weights of classes: p(y = k | f) = θ_k s(f_k) / Σⱼ θⱼ s(fⱼ) (Galy-Fajou 2022, §7.4.2–3).
//!
//! A class without a latent function has a constant D for s(f). One such class, the last, is enough to make
//! the latent functions unique: of two classes the other has the probability θ₁s(f)/(θ₁s(f) + θ₂D).

use super::multi::Spec;
use crate::error::{Error, Result};
use crate::params::{Param, Transform};
use serde_json::Value;

/// θ and D.
#[derive(Clone, Debug)]
pub struct Weights {
    /// θ, one for every class.
    pub scales: Param,
    /// D in (0, 1], if the last class has no latent function.
    constant: Option<f64>,
}

impl Weights {
    /// The entries of a specification that [`Weights::read`] reads.
    pub const ENTRIES: [&'static str; 2] = ["scales", "constant"];

    /// Sets θ = 1, frozen, and a latent function for every class.
    pub fn new(classes: usize) -> Self {
        let mut scales = Param::positive_vector(vec![1.0; classes]);
        scales.frozen = true;
        Self { scales, constant: None }
    }

    /// Reads `scales` (true to train θ from 1; or θ, which is trained unless it says `frozen`) and `constant`.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for θ that are not positive or of another number, [`Error::Invalid`] for a D
    /// outside (0, 1].
    pub fn read(&mut self, spec: &Spec<'_>) -> Result<()> {
        match spec.get("scales") {
            Some(Value::Bool(trained)) => self.scales.frozen = !trained,
            given => {
                self.scales.frozen = given.is_none();
                spec.param("scales", &mut self.scales)?;
            }
        }
        self.constant = spec.option("constant")?;
        match self.constant {
            Some(d) if !(d > 0.0 && d <= 1.0) => Err(Error::Invalid(format!(
                "likelihood {}: `constant` is a number above 0, at most 1, not {d}",
                spec.name()
            ))),
            _ => Ok(()),
        }
    }

    /// Writes what differs from [`Weights::new`].
    pub fn write(&self, json: &mut Value) {
        if self.scales != Self::new(self.classes()).scales {
            json["scales"] = self.scales.to_json(Transform::POSITIVE);
        }
        if let Some(d) = self.constant {
            json["constant"] = d.into();
        }
    }

    /// Returns C.
    pub fn classes(&self) -> usize {
        self.scales.len()
    }

    /// Returns the number of classes that have a latent function, C or C − 1. They come first.
    pub fn latents(&self) -> usize {
        self.classes() - usize::from(self.constant.is_some())
    }

    /// Returns θ of a class.
    pub fn theta(&self, class: usize) -> f64 {
        self.scales.value()[class]
    }

    /// Returns D, or 0 if every class has a latent function.
    pub fn constant(&self) -> f64 {
        self.constant.unwrap_or(0.0)
    }

    /// Returns Θ₀ = θD of the class that has no latent function, 0 if there is none.
    pub fn rest(&self) -> f64 {
        self.theta(self.classes() - 1) * self.constant()
    }

    /// Writes log θ of all classes into `out`; log Θ₀ for one that has no latent function.
    pub fn log(&self, out: &mut [f64]) {
        out.iter_mut().zip(self.scales.value()).for_each(|(out, theta)| *out = theta.ln());
        if let Some(d) = self.constant {
            out[self.classes() - 1] += d.ln();
        }
    }

    /// Returns scores s(f) in (0, 1) that give the classes the probabilities `p`, or come near
    /// where a class without a latent function does not let others be as probable as that.
    pub fn scores(&self, p: &[f64]) -> Vec<f64> {
        let ratio = |k: usize| p[k] / self.theta(k);
        let Some(d) = self.constant else {
            let sum: f64 = (0..p.len()).map(ratio).sum();
            return (0..p.len()).map(|k| ratio(k) / sum).collect();
        };
        let unit = ratio(p.len() - 1) / d;
        (0..self.latents()).map(|k| (ratio(k) / unit).min(0.95)).collect()
    }
}

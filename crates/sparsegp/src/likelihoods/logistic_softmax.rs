//! Logistic-softmax: p(y = k | f) = θ_k σ(f_k) / Σⱼ θⱼ σ(fⱼ) with the logistic function σ (Galy-Fajou,
//! Wenzel, Donner & Opper 2020, Eq. 4). θ is 1 and frozen unless asked for; the last class may have a constant
//! for σ(f) ([`Weights`]).
//!
//! Without such a class θ matters up to a factor only.

use super::augmented::{Augmented, Ratios, Site};
use super::class_weights::Weights;
use super::logistic_classes::{self, draw, expect};
use super::multi::Spec;
use super::multi_scores::{Normalised, Score};
use super::registry::Entry;
use super::{Slopes, Target};
use crate::error::Result;
use crate::special::{sigmoid, softplus};
use serde_json::{Value, json};

pub use super::logistic_classes::Augmentation;

/// s(f) = σ(f), with weights.
#[derive(Clone, Debug)]
pub struct Logistic {
    /// θ, and the constant.
    pub weights: Weights,
    /// How local variables bound the expectation. It does not change the likelihood or draws of the
    /// variables.
    pub augmentation: Augmentation,
}

/// Classes by logistic-softmax.
pub type LogisticSoftmax = Normalised<Logistic>;

impl Score for Logistic {
    const NAME: &'static str = "logistic-softmax";
    const BOUNDED: bool = true;

    fn new(classes: usize) -> Self {
        Self { weights: Weights::new(classes), augmentation: Augmentation::default() }
    }

    fn log_score(f: f64) -> (f64, f64, f64) {
        let (up, down) = (sigmoid(f), sigmoid(-f));
        (-softplus(-f), down, -up * down)
    }

    fn inverse(p: f64) -> f64 {
        p.ln() - (-p).ln_1p()
    }

    fn entries() -> Vec<&'static str> {
        [&Weights::ENTRIES[..], &["augmentation"]].concat()
    }

    fn read(&mut self, spec: &Spec<'_>) -> Result<()> {
        self.augmentation = spec.option("augmentation")?.unwrap_or_default();
        self.weights.read(spec)
    }

    fn write(&self, json: &mut Value) {
        self.weights.write(json);
        if self.augmentation != Augmentation::default() {
            json["augmentation"] = json!(self.augmentation);
        }
    }

    fn weights(&self) -> Option<&Weights> {
        Some(&self.weights)
    }

    fn weights_mut(&mut self) -> Option<&mut Weights> {
        Some(&mut self.weights)
    }

    fn augmented(of: &LogisticSoftmax) -> Option<&dyn Augmented> {
        Some(of)
    }
}

impl Augmented for LogisticSoftmax {
    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        let Logistic { weights, augmentation } = &self.score;
        expect(weights, *augmentation, target.y as usize, mean, variance, out)
    }

    /// Returns the powers of θ of all classes; any multiple of them does as well where all have
    /// latent functions.
    fn powers(&self) -> Vec<Option<f64>> {
        vec![Some(1.0); self.score.weights.classes()]
    }

    fn add_ratios(&self, target: Target, mean: &[f64], variance: &[f64], out: &mut Ratios<'_>) {
        let Logistic { weights, augmentation } = &self.score;
        let (y, at) = (target.y as usize, (mean, variance));
        logistic_classes::add_ratios(weights, *augmentation, y, at, out);
    }

    fn draw(
        &self,
        _: usize,
        target: Target,
        f: &[f64],
        variance: &[f64],
        rng: &mut dyn rand::Rng,
        out: &mut [Site],
    ) {
        draw(&self.score.weights, target.y as usize, f, variance, rng, out);
    }
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: Logistic::NAME,
    aliases: &["logisticsoftmax"],
    about: "classes with probabilities in proportion to sigmoid(f)",
    targets: "classes",
    latents: "one per class; with `constant` none for the last",
    augmented: true,
    build: |args| Ok(Box::new(LogisticSoftmax::from_json(&args.json())?)),
};

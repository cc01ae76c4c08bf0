//! Logistic-softmax: p(y = k | f) = σ(f_k) / Σⱼ σ(fⱼ) with the logistic function σ (Galy-Fajou,
//! Wenzel, Donner & Opper 2020, Eq. 4).

use super::augmented::{Augmented, Site};
use super::functions::{sigmoid, softplus};
use super::logistic_classes::{Scales, draw, expect};
use super::multi_scores::{Normalised, Score};
use super::registry::Entry;
use super::{Slopes, Target};

/// s(f) = σ(f).
#[derive(Clone, Copy, Debug, Default)]
pub struct Logistic;

/// Classes by logistic-softmax.
pub type LogisticSoftmax = Normalised<Logistic>;

impl Score for Logistic {
    const NAME: &'static str = "logistic-softmax";

    fn log_score(f: f64) -> (f64, f64, f64) {
        let (up, down) = (sigmoid(f), sigmoid(-f));
        (-softplus(-f), down, -up * down)
    }

    fn inverse(p: f64) -> f64 {
        p.ln() - (-p).ln_1p()
    }

    fn augmented(of: &LogisticSoftmax) -> Option<&dyn Augmented> {
        Some(of)
    }
}

impl Augmented for LogisticSoftmax {
    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        expect(&Scales::UNIT, target.y as usize, mean, variance, out)
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
        draw(&Scales::UNIT, target.y as usize, f, variance, rng, out);
    }
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: Logistic::NAME,
    aliases: &["logisticsoftmax"],
    about: "classes with probabilities in proportion to sigmoid(f)",
    targets: "classes",
    latents: "one per class",
    augmented: true,
    build: |args| Ok(Box::new(LogisticSoftmax::from_json(&args.json())?)),
};

//! Softmax: p(y = k | f) = e^{f_k} / Σⱼ e^{fⱼ} (Williams & Barber 1998).

use super::multi_scores::{Normalised, Score};
use super::registry::Entry;

/// s(f) = eᶠ.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exponential;

/// Classes by softmax.
pub type Softmax = Normalised<Exponential>;

impl Score for Exponential {
    const NAME: &'static str = "softmax";
    const SHIFT_INVARIANT: bool = true;

    fn new(_: usize) -> Self {
        Exponential
    }

    fn log_score(f: f64) -> (f64, f64, f64) {
        (f, 1.0, 0.0)
    }

    fn inverse(p: f64) -> f64 {
        p.ln()
    }
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: Exponential::NAME,
    aliases: &["categorical", "multiclass"],
    about: "classes with probabilities in proportion to e^f",
    targets: "classes",
    latents: "one per class",
    augmented: false,
    build: |args| Ok(Box::new(Softmax::from_json(&args.json())?)),
};

//! Logistic-softmax: p(y = k | f) = σ(f_k) / Σⱼ σ(fⱼ) with the logistic function σ (Galy-Fajou,
//! Wenzel, Donner & Opper 2020, Eq. 4).

use super::multi::{sigmoid, softplus};
use super::multi_scores::{Normalised, Score};

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
}

//! Sums of kernels: k = Σ kᵢ, independent functions added.

use super::composite::{Operation, build};
use super::registry::Entry;

/// Addition.
#[derive(Clone, Copy, Debug)]
pub struct Sum;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: Sum::NAME,
    aliases: &["add"],
    about: "sum, written a + b: independent functions added",
    build: build::<Sum>,
};

impl Operation for Sum {
    const NAME: &'static str = "sum";
    const NEUTRAL: f64 = 0.0;
    const MULTIPLIES: bool = false;

    fn combine(a: f64, b: f64) -> f64 {
        a + b
    }

    fn share(variance: f64, _: usize, count: usize) -> f64 {
        variance / count as f64
    }
}

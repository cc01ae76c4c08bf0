//! Products of kernels: k = Π kᵢ, interactions.

use super::composite::{Operation, build};
use super::registry::Entry;

/// Multiplication.
#[derive(Clone, Copy, Debug)]
pub struct Product;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: Product::NAME,
    aliases: &["mul"],
    about: "product, written a * b: interactions",
    build: build::<Product>,
};

impl Operation for Product {
    const NAME: &'static str = "product";
    const NEUTRAL: f64 = 1.0;
    const MULTIPLIES: bool = true;

    fn combine(a: f64, b: f64) -> f64 {
        a * b
    }

    /// Gives the variance to the first factor.
    fn share(variance: f64, index: usize, _: usize) -> f64 {
        if index == 0 { variance } else { 1.0 }
    }
}

//! Independent functions whose sum a function is: the summands of a kernel, with names.

use super::composite::Operation;
use super::product::Product;
use super::sum::Sum;
use super::{Kernel, covariances};
use crate::linalg::Mat;
use serde_json::Value;

/// One of several independent functions whose sum has the covariance of a kernel.
#[derive(Clone, Debug)]
pub struct Term {
    /// What it is, as in a specification: `rbf`, `linear(age)`, `additive(age)`.
    pub name: String,
    /// Its covariance.
    pub kernel: Box<dyn Kernel>,
}

/// Where inputs are moved from and to, on the scale of standardised ones.
const FROM: f64 = 0.37;
const TO: [f64; 3] = [0.98, -2.2, 4.3];
/// Covariances that differ by less of them are equal.
const EQUAL: f64 = 1e-12;

impl Term {
    /// Returns which of so many inputs it is a function of, found by moving each.
    pub fn inputs(&self, count: usize) -> Vec<usize> {
        let labels = self.kernel.labels();
        let from = |q: usize| if labels.contains(&q) { 0.0 } else { FROM };
        let mut probe = Mat::from_fn(1 + TO.len(), count, |_, q| from(q));
        let first = Mat::from_fn(1, count, |_, q| from(q));
        let mut seen = Vec::new();
        for q in 0..count {
            if labels.contains(&q) {
                seen.push(q);
                continue;
            }
            TO.iter().enumerate().for_each(|(i, to)| probe[(1 + i, q)] = *to);
            let cross = covariances(&*self.kernel, probe.as_ref(), Some(first.as_ref()));
            let mut own = vec![0.0; probe.nrows()];
            self.kernel.diag(probe.as_ref(), &mut own);
            let differs = |of: &[f64]| of.iter().any(|k| (k - of[0]).abs() > EQUAL * own[0].abs());
            if differs(cross.col_as_slice(0)) || differs(&own) {
                seen.push(q);
            }
            probe.col_as_slice_mut(q).fill(FROM);
        }
        seen
    }
}

/// Returns the terms of a kernel ([`Kernel::terms`]), the kernel itself where it is not a sum. Equal names are numbered.
pub fn terms(kernel: &dyn Kernel, names: &[String]) -> Vec<Term> {
    let mut all = kernel.terms(names);
    let given: Vec<String> = all.iter().map(|term| term.name.clone()).collect();
    for (i, term) in all.iter_mut().enumerate() {
        if given.iter().filter(|name| **name == given[i]).count() > 1 {
            let before = given[..i].iter().filter(|name| **name == given[i]).count();
            term.name = format!("{} {}", given[i], before + 1);
        }
    }
    all
}

/// Returns the name of an input column.
pub(super) fn column_name(names: &[String], column: usize) -> String {
    names.get(column).map_or_else(|| column.to_string(), Clone::clone)
}

/// Returns the kind of a kernel, and the inputs that it was given.
pub(super) fn name(kernel: &Value, names: &[String]) -> String {
    let kind = kernel["type"].as_str().unwrap_or_default();
    // a class of another language goes by its own name
    let kind = kernel["class"].as_str().and_then(|c| c.rsplit([':', '.']).next()).unwrap_or(kind);
    if let Some(children) = kernel["kernels"].as_array() {
        let children: Vec<String> = children.iter().map(|own| name(own, names)).collect();
        match kind {
            Product::NAME => return children.join("*"),
            Sum::NAME => return format!("({})", children.join(" + ")),
            _ => {}
        }
    }
    let own = &kernel["active_dims"];
    let given = if own.is_null() { &kernel["base"]["active_dims"] } else { own };
    let Some(given) = given.as_array() else { return kind.to_owned() };
    let columns = given.iter().filter_map(|column| column.as_u64());
    let columns: Vec<String> = columns.map(|column| column_name(names, column as usize)).collect();
    format!("{kind}({})", columns.join(", "))
}

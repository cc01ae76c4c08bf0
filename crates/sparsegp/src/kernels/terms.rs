//! Independent functions whose sum a function is: the summands of a kernel, with names.

use super::Kernel;
use super::composite::Operation;
use super::product::Product;
use super::sum::Sum;
use serde_json::Value;

/// One of several independent functions whose sum has the covariance of a kernel.
#[derive(Clone, Debug)]
pub struct Term {
    /// What it is, as in a specification: `rbf`, `linear(age)`, `additive(age)`.
    pub name: String,
    /// Its covariance.
    pub kernel: Box<dyn Kernel>,
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

/// The name of an input column.
pub(super) fn column_name(names: &[String], column: usize) -> String {
    names.get(column).map_or_else(|| column.to_string(), Clone::clone)
}

/// The kind of a kernel, and the inputs that it was given.
pub(super) fn name(kernel: &Value, names: &[String]) -> String {
    let kind = kernel["type"].as_str().unwrap_or_default();
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

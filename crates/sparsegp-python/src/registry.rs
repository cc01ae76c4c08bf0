//! What there is by name.

use crate::errors::exception;
use pyo3::prelude::*;
use serde_json::{Value, json};
use sparsegp::kernels::{self, Inputs};
use sparsegp::likelihoods;
use sparsegp::methods;

/// Kernels, likelihoods and methods with one line about each, as JSON.
#[pyfunction]
pub fn registry() -> String {
    let kernels: Vec<Value> = kernels::REGISTRY
        .iter()
        .map(|e| json!({ "name": e.name, "aliases": e.aliases, "about": e.about }))
        .collect();
    let likelihoods: Vec<Value> = likelihoods::REGISTRY
        .iter()
        .map(|e| json!({ "name": e.name, "aliases": e.aliases, "about": e.about, "targets": e.targets }))
        .collect();
    let methods: Vec<Value> = methods::REGISTRY
        .iter()
        .map(|e| {
            json!({
                "name": e.name,
                "aliases": e.aliases,
                "about": e.about,
                "cost": e.cost,
                "source": e.source,
                "minibatches": e.method.in_minibatches(),
                "augmented": e.method.augments(),
            })
        })
        .collect();
    json!({ "kernels": kernels, "likelihoods": likelihoods, "methods": methods }).to_string()
}

/// The JSON of a kernel's short form, such as `matern52 + linear`.
#[pyfunction]
pub fn parse_kernel(spec: &str) -> PyResult<String> {
    kernels::spec::read(spec).map(|json| json.to_string()).map_err(exception)
}

/// The JSON of a likelihood's short form, such as `student-t(df=4)`.
#[pyfunction]
pub fn parse_likelihood(spec: &str) -> PyResult<String> {
    let json = kernels::spec::read_as(spec, "the name of a likelihood, such as `poisson`");
    json.map(|json| json.to_string()).map_err(exception)
}

/// A kernel from its JSON.
pub fn kernel(json: &str, inputs: usize) -> PyResult<Box<dyn kernels::Kernel>> {
    kernels::parse(json, Inputs::unnamed(inputs)).map_err(exception)
}

/// A likelihood from its JSON.
pub fn likelihood(json: &str) -> PyResult<Box<dyn likelihoods::Likelihood>> {
    likelihoods::parse(json).map_err(exception)
}

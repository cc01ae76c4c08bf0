//! What there is by name.

use crate::errors::exception;
use pyo3::prelude::*;
use serde_json::{Value, json};
use sparsegp::fit::settings::{self, Door, Kind, Trait};
use sparsegp::kernels::{self, Inputs};
use sparsegp::likelihoods;
use sparsegp::methods;

/// Returns the settings of a fit: names in Python and at the command line, what values are,
/// defaults, what each does.
fn settings() -> Vec<Value> {
    let entry = |own: &settings::Setting| {
        let (kind, least) = match own.kind {
            Kind::Flag => ("flag", None),
            Kind::Whole(least) => ("whole", Some(least)),
            Kind::Number(_) | Kind::Time => ("number", None),
            Kind::Jitter | Kind::Choice(_) | Kind::Text => ("text", None),
            Kind::Texts | Kind::Values => ("list", None),
        };
        json!({
            "name": own.name,
            "python": own.python,
            "called": own.called(Door::Python),
            "option": own.option(),
            "of_sampling": own.needs.contains(&Trait::Draws),
            "kind": kind,
            "least": least,
            "allowed": own.kind.allowed(),
            "default": own.default_value(),
            "default_text": own.default_text(),
            "about": own.about,
        })
    };
    settings::all().map(entry).collect()
}

/// Returns kernels, likelihoods and methods with one line about each, and the settings of a fit, as
/// JSON.
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
    json!({ "kernels": kernels, "likelihoods": likelihoods, "methods": methods, "settings": settings() })
        .to_string()
}

/// Returns the JSON of a kernel's short form, such as `matern52 + linear`.
#[pyfunction]
pub fn parse_kernel(spec: &str) -> PyResult<String> {
    kernels::spec::read(spec).map(|json| json.to_string()).map_err(exception)
}

/// Returns the JSON of a likelihood's short form, such as `student-t(df=4)`.
#[pyfunction]
pub fn parse_likelihood(spec: &str) -> PyResult<String> {
    let json = kernels::spec::read_as(spec, "the name of a likelihood, such as `poisson`");
    json.map(|json| json.to_string()).map_err(exception)
}

/// Returns a kernel from its JSON.
pub fn kernel(json: &str, inputs: usize) -> PyResult<Box<dyn kernels::Kernel>> {
    kernels::parse(json, Inputs::unnamed(inputs)).map_err(exception)
}

/// Returns a likelihood from its JSON.
pub fn likelihood(json: &str) -> PyResult<Box<dyn likelihoods::Likelihood>> {
    likelihoods::parse(json).map_err(exception)
}

//! The few numbers that describe a model: its parameters but for inducing points and q ([`Role::is_bulky`]).
//!
//! [`Role::is_bulky`]: crate::params::Role::is_bulky

use super::Model;
use crate::error::{Error, Result};

/// Names of the numbers that [`hyperparameters`] gives, in their order: paths, with an index where a parameter has several.
pub fn hyperparameter_names(model: &Model) -> Vec<String> {
    let mut names = Vec::new();
    for (path, param) in model.params() {
        match param.len() {
            _ if param.role().is_bulky() => {}
            1 => names.push(path.to_string()),
            several => names.extend((0..several).map(|i| format!("{path}[{i}]"))),
        }
    }
    names
}

/// All parameters of a model but its inducing points and q: constrained values, in their order.
pub fn hyperparameters(model: &Model) -> Vec<f64> {
    let mut all = Vec::new();
    model.visit(&mut |_, param| {
        if !param.role().is_bulky() {
            all.extend_from_slice(param.value());
        }
    });
    all
}

/// Sets what [`hyperparameters`] gives.
///
/// # Errors
/// [`Error::Shape`] for another number of values, [`Error::InvalidParameter`] for one out of range.
pub fn set_hyperparameters(model: &mut Model, values: &[f64]) -> Result<()> {
    let expected = hyperparameters(model).len();
    if values.len() != expected {
        return Err(Error::Shape {
            what: "hyperparameters".into(),
            expected: expected.to_string(),
            found: values.len().to_string(),
        });
    }
    let mut rest = values;
    for (path, param) in
        model.params_mut().into_iter().filter(|(_, param)| !param.role().is_bulky())
    {
        let (its, tail) = rest.split_at(param.len());
        rest = tail;
        // an empty parameter has nothing to be set to
        if !its.is_empty() {
            param.set(&path, its)?;
        }
    }
    Ok(())
}

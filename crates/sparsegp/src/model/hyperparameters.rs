//! The few numbers that describe a model: its parameters but for inducing points and q ([`Role::is_bulky`]).
//!
//! [`Role::is_bulky`]: crate::params::Role::is_bulky

use super::Model;
use crate::error::{Error, Result};

/// Returns the names of the numbers that [`hyperparameters`] gives, in their order: paths, with an
/// index where a parameter has several.
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

/// Returns all parameters of a model but its inducing points and q: constrained values, in their
/// order.
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

/// Part of an end of a range that values beyond it are kept from it.
const INSIDE: f64 = 0.01;

/// Starts a model at what [`hyperparameters`] gives of another of the same structure, whose ranges may be wider: values that it may
/// not have come as near as they can.
///
/// # Errors
/// As for [`set_hyperparameters`], for what is not of the same structure.
pub(crate) fn start_hyperparameters(model: &mut Model, values: &[f64]) -> Result<()> {
    let mut values = values.to_vec();
    let mut rest = &mut values[..];
    model.visit(&mut |_, param| {
        if param.role().is_bulky() {
            return;
        }
        let all = std::mem::take(&mut rest);
        let (own, tail) = all.split_at_mut(param.len().min(all.len()));
        rest = tail;
        let transform = param.transform();
        let (lower, upper) = transform.ends();
        for value in own.iter_mut().filter(|value| !transform.contains(**value)) {
            let near = match (lower, upper) {
                (Some(lower), _) if *value <= lower => lower + INSIDE * lower.abs(),
                (_, Some(upper)) if *value >= upper => upper - INSIDE * upper.abs(),
                _ => *value,
            };
            *value = near;
        }
    });
    set_hyperparameters(model, &values)
}

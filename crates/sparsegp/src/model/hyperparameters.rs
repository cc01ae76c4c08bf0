//! The few numbers that describe a model: its parameters but for inducing points and q.

use super::Model;
use crate::error::{Error, Result};

/// Whether a parameter is none of the few that describe a model: inducing points and q.
pub fn is_bulky(path: &str) -> bool {
    // of a hidden layer, `layers[0].q.mu`
    let own = path.strip_prefix("layers[").and_then(|rest| rest.split_once("].")).map(|(_, p)| p);
    let bulky = |path: &str| path.starts_with("inducing.points") || path.starts_with("q.");
    bulky(own.unwrap_or(path)) || own == Some("mean.weights")
}

/// All parameters of a model but its inducing points and q: constrained values, in their order.
pub fn hyperparameters(model: &Model) -> Vec<f64> {
    let params = model.params();
    let own = params.iter().filter(|(path, _)| !is_bulky(path));
    own.flat_map(|(_, p)| p.value().iter().copied()).collect()
}

/// Sets what [`hyperparameters`] gives.
///
/// # Errors
/// [`Error::Shape`] for another number of values, [`Error::InvalidParameter`] for one out of range.
pub fn set_hyperparameters(model: &mut Model, values: &[f64]) -> Result<()> {
    let own = |path: &str| !is_bulky(path);
    let expected: usize =
        model.params().iter().filter(|(path, _)| own(path)).map(|(_, p)| p.len()).sum();
    if values.len() != expected {
        return Err(Error::Shape {
            what: "hyperparameters".into(),
            expected: expected.to_string(),
            found: values.len().to_string(),
        });
    }
    let mut rest = values;
    for (path, param) in model.params_mut().into_iter().filter(|(path, _)| own(path)) {
        let (its, tail) = rest.split_at(param.len());
        rest = tail;
        // an empty parameter has nothing to be set to
        if !its.is_empty() {
            param.set(&path, its)?;
        }
    }
    Ok(())
}

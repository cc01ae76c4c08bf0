//! Values in a kernel that are given in the data's units.

use crate::data::Scaler;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, Unit};
use crate::params::{Bounds, Param, Prior, Role};

/// What turns a number of the model's scale into the data's units.
#[derive(Clone, Copy, PartialEq)]
struct Scale {
    factor: f64,
    origin: f64,
}

impl Scale {
    fn to_model(self, value: f64) -> f64 {
        (value - self.origin) / self.factor
    }

    /// Returns the same density of the number on the model's scale.
    fn prior(self, prior: Prior) -> Prior {
        let f = self.factor;
        match prior {
            Prior::Gamma { concentration, rate } => Prior::Gamma { concentration, rate: rate * f },
            Prior::LogNormal { loc, scale } => Prior::LogNormal { loc: loc - f.ln(), scale },
            Prior::Normal { loc, scale } => {
                Prior::Normal { loc: self.to_model(loc), scale: scale / f }
            }
            Prior::HalfNormal { scale } => Prior::HalfNormal { scale: scale / f },
            Prior::HalfCauchy { scale } => Prior::HalfCauchy { scale: scale / f },
            Prior::Horseshoe { scale } => Prior::Horseshoe { scale: scale / f },
            Prior::Uniform { low, high } => {
                Prior::Uniform { low: self.to_model(low), high: self.to_model(high) }
            }
            Prior::InverseGamma { concentration, scale } => {
                Prior::InverseGamma { concentration, scale: scale / f }
            }
        }
    }
}

/// Puts values, bounds and priors of a specification from the data's units on the model's scale.
///
/// # Errors
/// [`Error::InvalidParameter`] for a parameter that has no unit of the data, and for one bound or prior of numbers in
/// several units.
pub(super) fn from_data(
    kernels: &mut [Box<dyn Kernel>],
    scaler: &Scaler,
    latents: usize,
) -> Result<()> {
    let y = scaler.first_scale();
    let alike = scaler.y_scale.iter().enumerate().all(|(p, s)| *s == y || scaler.is_constant(p));
    // latent functions that differ in kind have different units
    let one_unit = alike && (y == 1.0 || latents == 1);
    let scale = |unit: &Option<Unit>| -> Option<Scale> {
        let unit = (*unit)?;
        if unit.output != 0 && !one_unit {
            return None;
        }
        // a length of a logarithm has no unit of the input
        if unit.input.is_some_and(|(q, _)| scaler.log_unit(q).is_some()) {
            return None;
        }
        let x = unit.input.map_or(1.0, |(q, power)| scaler.x_scale[q].powi(power));
        let place = unit.input.filter(|_| unit.place);
        let origin = place.map_or(0.0, |(q, _)| scaler.x_mean[q]);
        Some(Scale { factor: x * y.powi(unit.output), origin })
    };
    for kernel in kernels {
        let units = kernel.units();
        let mut at = 0;
        for (path, param) in kernel.params_mut() {
            let scales: Option<Vec<Scale>> =
                units[at..at + param.len()].iter().map(scale).collect();
            at += param.len();
            if param.given || param.prior.is_some() || param.bounds().any() {
                convert(&path.to_string(), param, scales)?;
            }
        }
    }
    Ok(())
}

fn convert(path: &str, param: &mut Param, scales: Option<Vec<Scale>>) -> Result<()> {
    let invalid = |reason: &str| Error::InvalidParameter {
        path: format!("kernel.{path}"),
        reason: format!("{reason}; or give the kernel's values on the model's scale"),
    };
    let shared = match param.role() {
        Role::Lengthscales => {
            "is one number for columns of different units: give one for each column in a list, or the columns of one unit in \
             `active_dims`"
        }
        _ => "has no unit that the data know",
    };
    let scales = scales.ok_or_else(|| invalid(shared))?;
    let Some(&first) = scales.first() else { return Ok(()) };
    let bounds = param.bounds();
    if (bounds.any() || param.prior.is_some()) && scales.iter().any(|scale| *scale != first) {
        return Err(invalid("has one bound or prior for numbers in several units"));
    }
    param.bound(path, Bounds::default())?;
    if param.given {
        let values = param.value().iter().zip(&scales);
        let values: Vec<f64> = values.map(|(value, scale)| scale.to_model(*value)).collect();
        param.set(path, &values)?;
    }
    param.prior = param.prior.map(|prior| first.prior(prior));
    let to_model = |bound: Option<f64>| bound.map(|value| first.to_model(value));
    param.bound(path, Bounds { min: to_model(bounds.min), max: to_model(bounds.max) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Inputs, parse};

    fn scaler() -> Scaler {
        let mut scaler = Scaler::identity(2, 1);
        scaler.x_mean = vec![2.0, 100.0];
        scaler.x_scale = vec![4.0, 10.0];
        scaler.y_scale = vec![3.0];
        scaler
    }

    fn converted(spec: &str) -> Result<Box<dyn Kernel>> {
        let mut kernels = vec![parse(spec, Inputs::unnamed(2)).unwrap()];
        from_data(&mut kernels, &scaler(), 1)?;
        Ok(kernels.remove(0))
    }

    #[test]
    fn values_bounds_and_priors_are_put_on_the_model_s_scale() {
        let kernel = converted("rbf(variance=18, lengthscales=[8, 5])").unwrap();
        let values: Vec<f64> =
            kernel.params().iter().flat_map(|(_, param)| param.value().to_vec()).collect();
        assert_eq!(values, [2.0, 2.0, 0.5]);
        let spec = r#"{"type": "rbf", "active_dims": [1], "lengthscales":
            {"value": 20, "min": 10, "max": 50, "prior": {"type": "gamma", "concentration": 2, "rate": 0.1}}}"#;
        let kernel = converted(spec).unwrap();
        let all = kernel.params();
        let (_, lengths) = all.iter().find(|(path, _)| path.ends_with("lengthscales")).unwrap();
        assert_eq!(lengths.value(), [2.0]);
        assert_eq!(lengths.bounds(), Bounds { min: Some(1.0), max: Some(5.0) });
        assert_eq!(lengths.prior, Some(Prior::Gamma { concentration: 2.0, rate: 1.0 }));
        // what nobody gave keeps its start
        let kernel = converted("rbf").unwrap();
        assert!(kernel.params().iter().all(|(_, param)| !param.given));
    }
}

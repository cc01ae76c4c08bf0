//! The weak prior of lengthscales that nobody asked for.
//!
//! With a lengthscale for each of many inputs and few rows, the largest log evidence is that of a function which some inputs
//! explain by chance: intervals of 95 % of the default kernel held 28 % of new rows with 354 inputs and 300 rows. A log-normal
//! prior whose location grows as ½ log D (Hvarfner, Hellsten & Nardi 2024) keeps lengthscales of inputs that the rows say
//! little about where two random rows have a correlation near e⁻¹. One lengthscale for all inputs needs none.

use crate::kernels::{Kernel, Unit};
use crate::model::Model;
use crate::params::{Prior, Role};

/// Standard deviation of the logarithm. (Their √3 leaves intervals of 95 % at 81 to 84 % with 20, 354 and 1000 inputs.)
pub(super) const SCALE: f64 = 1.0;

/// How far logarithms of the starting values may differ for one prior to serve them all.
const ALIKE: f64 = 1.0;

/// Gives the lengthscales of kernels, where there is one for each of several inputs and nobody gave values or a prior, a prior
/// with its mode where they start, √D standard deviations. Returns a warning where inputs on scales of their own leave none.
pub(super) fn assume(kernels: &mut [Box<dyn Kernel>]) -> Option<String> {
    let mut unlike = false;
    for kernel in kernels {
        let units = kernel.units();
        let mut at = 0;
        for (_, param) in kernel.params_mut() {
            let own = &units[at..at + param.len()];
            at += param.len();
            let lengths = |unit: &Option<Unit>| {
                unit.is_some_and(|unit| unit.input.is_some_and(|(_, power)| power == 1))
            };
            let free = !param.given && !param.frozen && param.prior.is_none();
            let several = param.len() > 1 && param.role() == Role::Lengthscales;
            if !(free && several && own.iter().all(lengths)) {
                continue;
            }
            let logarithms: Vec<f64> = param.value().iter().map(|v| v.ln()).collect();
            let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
            if logarithms.iter().any(|l| (l - mean).abs() > ALIKE) {
                unlike = true;
                continue;
            }
            // the mode of a log-normal density is exp(loc − scale²)
            param.prior = Some(Prior::LogNormal { loc: mean + SCALE * SCALE, scale: SCALE });
            param.assumed = true;
        }
    }
    unlike.then(|| {
        "the inputs are on scales of their own, so that their lengthscales have no prior, and many of them may be \
         taken for what explains few rows: standardise the inputs, or give priors in the kernel"
            .into()
    })
}

/// Takes the prior from lengthscales that were frozen since.
pub(super) fn leave_frozen(model: &mut Model) {
    for (_, param) in model.params_mut() {
        if param.frozen && param.assumed {
            (param.prior, param.assumed) = (None, false);
        }
    }
}

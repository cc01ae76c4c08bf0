//! What a kernel is as a function, for those who integrate it over its inputs.

use super::Kernel;
use crate::params::Param;

/// The form of a kernel whose expectations under Gaussian inputs are known ([`crate::latent`]). Parameters come in the
/// order of [`Kernel::params`].
#[derive(Clone, Copy, Debug)]
pub enum Form<'a> {
    /// k = σ².
    Constant {
        /// σ².
        variance: &'a Param,
    },
    /// k = σ² at the same row, 0 elsewhere.
    White {
        /// σ².
        variance: &'a Param,
    },
    /// k = Σ_q a_q x_q x′_q.
    Linear {
        /// a, one for all or one for each active input.
        weights: &'a Param,
        /// The active input columns.
        dims: &'a [usize],
    },
    /// k = σ² exp(−½ Σ_q (x_q − x′_q)²/ℓ_q²).
    SquaredExponential {
        /// σ².
        variance: &'a Param,
        /// ℓ, one for all or one for each active input.
        lengthscales: &'a Param,
        /// The active input columns.
        dims: &'a [usize],
    },
    /// The sum of these.
    Sum(&'a [Box<dyn Kernel>]),
    /// The product of these.
    Product(&'a [Box<dyn Kernel>]),
}

/// Returns the variances of the slopes along so many inputs of the linear terms of a kernel, which have no waves
/// ([`Kernel::spectral`]): those of a sum and of its sums.
pub fn slopes(kernel: &dyn Kernel, inputs: usize) -> Vec<f64> {
    let mut all = vec![0.0; inputs];
    add_slopes(kernel, &mut all);
    all
}

fn add_slopes(kernel: &dyn Kernel, all: &mut [f64]) {
    match kernel.form() {
        Some(Form::Linear { weights, dims }) => {
            let values = weights.value();
            for (at, d) in dims.iter().enumerate() {
                all[*d] += if values.len() == 1 { values[0] } else { values[at] };
            }
        }
        Some(Form::Sum(children)) => children.iter().for_each(|child| add_slopes(&**child, all)),
        _ => {}
    }
}

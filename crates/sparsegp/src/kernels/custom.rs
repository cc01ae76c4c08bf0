//! Stationary kernels that are given only by their κ(ϱ²).
//!
//! A type implements [`Kappa`]; [`Custom`] makes a [`Correlation`] of it, with derivatives by dual
//! numbers, and [`super::radial::Radial`] a kernel of that: variance, lengthscales, active columns and all.
//!
//! ```
//! use sparsegp::kernels::custom::{Custom, Kappa};
//! use sparsegp::kernels::{Inputs, Kernel, Tape, radial::Radial};
//! use sparsegp::likelihoods::dual::Real;
//! use sparsegp::linalg::Mat;
//! use sparsegp::params::Param;
//!
//! /// κ = (1 + ϱ²)^{−β}: functions with long memory.
//! #[derive(Clone, Debug)]
//! struct Cauchy;
//!
//! impl Kappa for Cauchy {
//!     fn name(&self) -> &'static str {
//!         "cauchy"
//!     }
//!     fn shapes(&self) -> Vec<(&'static str, Param)> {
//!         vec![("beta", Param::positive(0.5))]
//!     }
//!     fn kappa<T: Real>(&self, squared_distance: T, shapes: &[T]) -> T {
//!         (-(shapes[0] * squared_distance.ln_1p())).exp()
//!     }
//! }
//!
//! let kernel = Radial::new(Custom::new(Cauchy)?, Inputs::unnamed(1))?;
//! let x = Mat::from_fn(2, 1, |i, _| 2.0 * i as f64);
//! let mut k = Mat::zeros(2, 2);
//! kernel.evaluate(x.as_ref(), None, k.as_mut(), &mut Tape::off());
//! assert!((k[(0, 1)] - 0.2_f64.sqrt()).abs() < 1e-14);
//! # Ok::<(), sparsegp::Error>(())
//! ```
//!
//! Where κ has no parameters and its slope is known, a [`super::radial::Profile`] is less to write
//! and faster.

use super::radial::Correlation;
use crate::dual_numbers::{Dual, Real};
use crate::error::{Error, Result};
use crate::params::Param;

/// Most shape parameters of one κ.
pub const MOST_SHAPES: usize = 4;

/// κ as a function of ϱ². It must be positive definite for the number of input columns in use (twice
/// that within `periodic`), with κ(0) = 1.
pub trait Kappa: Clone + Send + Sync + std::fmt::Debug + 'static {
    /// Returns the name in model files and messages.
    fn name(&self) -> &'static str;

    /// Returns the names and starting values of the shape parameters: scalars, at most
    /// [`MOST_SHAPES`].
    fn shapes(&self) -> Vec<(&'static str, Param)> {
        Vec::new()
    }

    /// Returns κ(ϱ²), with `shapes` in the order of [`Kappa::shapes`]. Where it has no slope at 0
    /// (a kink), that counts as 0.
    fn kappa<T: Real>(&self, squared_distance: T, shapes: &[T]) -> T;
}

/// The [`Correlation`] of a [`Kappa`].
#[derive(Clone, Debug)]
pub struct Custom<K> {
    kappa: K,
    values: [f64; MOST_SHAPES],
    count: usize,
}

impl<K: Kappa> Custom<K> {
    /// Creates the kernel with the starting values of its shape parameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] for too many shape parameters, or one that is not a scalar.
    pub fn new(kappa: K) -> Result<Self> {
        let shapes = kappa.shapes();
        if shapes.len() > MOST_SHAPES || shapes.iter().any(|(_, shape)| shape.len() != 1) {
            return Err(Error::Invalid(format!(
                "kernel {}: shape parameters are at most {MOST_SHAPES} scalars",
                kappa.name()
            )));
        }
        Ok(Self { kappa, values: [0.0; MOST_SHAPES], count: shapes.len() }.at(&shapes))
    }

    /// Returns κ and its derivative by the variable of this index: ϱ², then the shape parameters.
    /// Where there is no finite one, it is 0.
    #[inline(always)]
    fn differentiate(&self, d2: f64, index: usize) -> (f64, f64) {
        let variable =
            |value, own| if own { Dual::variable(value, 0) } else { Dual::<1>::constant(value) };
        let mut shapes = [Dual::<1>::constant(0.0); MOST_SHAPES];
        for (i, (shape, value)) in shapes.iter_mut().zip(self.values).enumerate() {
            *shape = variable(value, index == i + 1);
        }
        let found = self.kappa.kappa(variable(d2, index == 0), &shapes[..self.count]);
        let slope = found.first[0];
        (found.value, if slope.is_finite() { slope } else { 0.0 })
    }
}

impl<K: Kappa> Correlation for Custom<K> {
    const SLOPE_OVER_VALUE: Option<f64> = None;
    // nobody has said whether there is a kink
    const EXACT_DISTANCES: bool = true;

    fn name(&self) -> &'static str {
        self.kappa.name()
    }

    fn shapes(&self) -> Vec<(&'static str, Param)> {
        self.kappa.shapes()
    }

    fn at(&self, shapes: &[(&'static str, Param)]) -> Self {
        let mut own = self.clone();
        own.values.iter_mut().zip(shapes).for_each(|(v, (_, shape))| *v = shape.scalar());
        own
    }

    #[inline(always)]
    fn value_and_slope<const FMA: bool>(&self, d2: f64) -> (f64, f64) {
        self.differentiate(d2, 0)
    }

    #[inline(always)]
    fn shape_slope<const FMA: bool>(&self, index: usize, d2: f64) -> f64 {
        self.differentiate(d2, index + 1).1
    }
}

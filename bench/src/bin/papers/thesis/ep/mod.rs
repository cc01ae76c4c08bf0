//! Expectation propagation for steps of Gaussian processes (Minka 2001): rivals of chapters 3 and
//! 4.
//!
//! Every factor of the likelihood is a step Θ(s) of a linear function s of the latent variables,
//! maybe with Gaussian noise, and has a Gaussian site of that function alone. R & W is Rasmussen &
//! Williams 2006, *Gaussian processes for machine learning*.

mod classes;
mod dense;
mod normal;
mod sites;
mod sparse;
#[cfg(test)]
mod tests;

pub use classes::Heaviside;
pub use sparse::Probit;

use sparsegp::kernels::Kernel;
use sparsegp::linalg::{Accum, Mat, Structure, invert_lower, par_for, structured};
use sparsegp::optim::{Lbfgs, LbfgsOptions, Objective, Optimiser};
use sparsegp::params::{free_count, free_gradient, free_values, set_free_values};

/// An evidence with a gradient, whose sites are kept from one kernel to the next.
trait Evidence {
    /// Returns log Z, and its gradient with respect to the hyperparameters; sites start where the
    /// last call left them.
    fn evaluate(&mut self, kernel: &dyn Kernel) -> sparsegp::Result<(f64, Vec<f64>)>;
    /// Returns the number of targets.
    fn rows(&self) -> usize;
}

/// −log Z of the free hyperparameters.
struct Loss<'a, E> {
    kernel: &'a mut dyn Kernel,
    evidence: &'a mut E,
}

impl<E: Evidence> Objective for Loss<'_, E> {
    fn dim(&self) -> usize {
        free_count(|v| self.kernel.visit(v))
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> sparsegp::Result<f64> {
        set_free_values(|v| self.kernel.visit_mut(v), x);
        let (log_z, slopes) = self.evidence.evaluate(self.kernel)?;
        let slopes: Vec<f64> = slopes.iter().map(|slope| -slope).collect();
        free_gradient(|v| self.kernel.visit(v), &slopes, gradient);
        Ok(-log_z)
    }

    fn terms(&self) -> Option<f64> {
        Some(self.evidence.rows() as f64)
    }
}

/// A step that gains less in log Z is the last: classes that are apart have the best variance at
/// infinity, at the end of a slope on which sites settle ever more slowly.
const LEAST_GAIN: f64 = 0.1;

/// Trains the hyperparameters by at most `iterations` of L-BFGS; leaves the kernel at the best.
fn train<E: Evidence>(
    kernel: &mut dyn Kernel,
    evidence: &mut E,
    iterations: usize,
) -> sparsegp::Result<()> {
    let mut lbfgs = Lbfgs::new(free_values(|v| kernel.visit(v)), LbfgsOptions::fitting());
    let mut loss = Loss { kernel, evidence };
    let mut last = f64::INFINITY;
    for _ in 0..iterations {
        let step = lbfgs.step(&mut loss)?;
        if step.status.is_final() || last - step.value < LEAST_GAIN {
            break;
        }
        last = step.value;
    }
    let best = lbfgs.best().map_or_else(|| lbfgs.x().to_vec(), |(x, _)| x.to_vec());
    set_free_values(|v| loss.kernel.visit_mut(v), &best);
    Ok(())
}

// A build without optimisation spends its time on places of matrices and on generic functions of
// the library, which it compiles again: many numbers go column by column, or through those that are
// not.

/// Returns the matrix with rows on another scale.
fn scaled(a: &Mat<f64>, by: &[f64]) -> Mat<f64> {
    let mut out = a.clone();
    for j in 0..a.ncols() {
        let column = out.col_as_slice_mut(j).iter_mut();
        column.zip(by).for_each(|(v, by)| *v *= by);
    }
    out
}

/// Returns L⁻¹.
fn inverse_lower(l: &Mat<f64>) -> Mat<f64> {
    let mut inverse = Mat::zeros(l.nrows(), l.nrows());
    invert_lower(inverse.as_mut(), l.as_ref(), par_for(l.nrows()));
    inverse
}

/// Returns La for a lower-triangular L.
fn lower_times(l: &Mat<f64>, a: &Mat<f64>) -> Mat<f64> {
    let mut out = Mat::zeros(a.nrows(), a.ncols());
    let (whole, lower) = (Structure::Rectangular, Structure::TriangularLower);
    let (dst, l, a) = ((out.as_mut(), whole), (l.as_ref(), lower), (a.as_ref(), whole));
    structured(dst, Accum::Replace, l, a, 1.0, par_for(l.0.nrows()));
    out
}

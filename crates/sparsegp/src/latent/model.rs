//! The Bayesian GP-LVM as a model: its parameters, and its bound as a function of them.

use super::bound::{Bound, LatentGradient, Setting};
use super::targets::Targets;
use crate::error::Result;
use crate::kernels::Kernel;
use crate::linalg::{Jitter, Mat, MatRef};
use crate::optim::Objective;
use crate::params::{
    Param, Visitor, VisitorMut, count, free_count, free_gradient, log_prior, prefixed,
    prefixed_mut, set_free_values,
};
use crate::psi::Uncertain;
use crate::terms::Term;

/// N rows with Q latent dimensions: kernel, noise, inducing points and q(X), all of them parameters (Titsias & Lawrence 2010).
#[derive(Clone)]
pub struct Gplvm {
    /// The kernel of all columns.
    pub kernel: Box<dyn Kernel>,
    /// σ².
    pub noise: Param,
    /// Inducing points, M×Q.
    pub points: Param,
    /// Means of q(X), N×Q.
    pub mean: Param,
    /// Variances of q(X), N×Q.
    pub variance: Param,
    /// What tells the bound from the others.
    pub term: &'static dyn Term,
    /// Jitter of Kuu.
    pub jitter: Jitter,
    /// Rows of a block; none for the default.
    pub block: Option<usize>,
}

impl std::fmt::Debug for Gplvm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kernel, noise, term, .. } = self;
        write!(f, "Gplvm({kernel:?}, σ² = {}, {})", noise.scalar(), term.name())
    }
}

impl Gplvm {
    /// Returns the inducing points, M×Q.
    pub fn points(&self) -> MatRef<'_, f64> {
        self.points.matrix()
    }

    /// Returns q(X).
    ///
    /// # Errors
    /// As for [`Uncertain::new`].
    pub fn latent(&self) -> Result<Uncertain<'_>> {
        Uncertain::new(self.mean.matrix(), self.variance.matrix())
    }

    /// Returns the bound after its first pass.
    ///
    /// # Errors
    /// As for [`Bound::new`].
    pub fn bound<'a>(&'a self, targets: &'a Targets) -> Result<Bound<'a>> {
        let setting = Setting {
            kernel: &*self.kernel,
            points: self.points(),
            noise: self.noise.scalar(),
            term: self.term,
            jitter: self.jitter,
            block: self.block,
        };
        Bound::new(setting, self.latent()?, targets)
    }
}

/// What is trained by a bound of its targets.
pub trait Trainable {
    /// Shows the parameters with their paths.
    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>);

    /// Shows the same, to change them.
    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>);

    /// Returns the bound and its gradient by all constrained parameters, in the order of
    /// [`Trainable::visit`].
    ///
    /// # Errors
    /// As for [`Bound::new`].
    fn evaluate(&self, targets: &Targets) -> Result<(f64, Vec<f64>)>;

    /// Returns only the bound.
    ///
    /// # Errors
    /// As for [`Bound::new`].
    fn value(&self, targets: &Targets) -> Result<f64>;
}

impl Trainable for Gplvm {
    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        prefixed(&"kernel", visitor, |v| self.kernel.visit(v));
        visitor(&"likelihood.variance", &self.noise);
        visitor(&"inducing.points", &self.points);
        visitor(&"latent.mean", &self.mean);
        visitor(&"latent.variance", &self.variance);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        prefixed_mut(&"kernel", visitor, |v| self.kernel.visit_mut(v));
        visitor(&"likelihood.variance", &mut self.noise);
        visitor(&"inducing.points", &mut self.points);
        visitor(&"latent.mean", &mut self.mean);
        visitor(&"latent.variance", &mut self.variance);
    }

    fn evaluate(&self, targets: &Targets) -> Result<(f64, Vec<f64>)> {
        let bound = self.bound(targets)?;
        let LatentGradient { mut kernel, noise, points, mean, variance } = bound.gradient()?;
        kernel.push(noise);
        for part in [points, mean, variance] {
            (0..part.ncols()).for_each(|j| kernel.extend_from_slice(part.col_as_slice(j)));
        }
        Ok((bound.value(), kernel))
    }

    fn value(&self, targets: &Targets) -> Result<f64> {
        Ok(self.bound(targets)?.value())
    }
}

/// A model with its targets, to be minimised: minus the bound and the log densities of priors.
pub(super) struct Training<'a, T> {
    pub model: T,
    pub targets: &'a Targets,
}

impl<T: Trainable> Objective for Training<'_, T> {
    fn dim(&self) -> usize {
        free_count(|v| self.model.visit(v))
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        set_free_values(|v| self.model.visit_mut(v), x);
        let (value, mut constrained) = self.model.evaluate(self.targets)?;
        debug_assert_eq!(constrained.len(), count(|v| self.model.visit(v)));
        let prior = log_prior(|v| self.model.visit(v), &mut constrained);
        free_gradient(|v| self.model.visit(v), &constrained, gradient);
        gradient.iter_mut().for_each(|slope| *slope = -*slope);
        Ok(-value - prior)
    }

    fn terms(&self) -> Option<f64> {
        Some(self.targets.cells() as f64)
    }
}

/// Returns an owned matrix from a view.
pub(super) fn owned(a: MatRef<f64>) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)])
}

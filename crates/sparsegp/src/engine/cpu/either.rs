//! Features of a block of rows for one process, in the precision of its operands: the one place where the precision of
//! products is decided on, for passes of an engine and for the layers of deep models.

use super::features::{Features, Right};
use super::operands::Either;
use crate::engine::Plan;
use crate::linalg::{Accum, Mat, MatMut, MatRef, Par};

/// [`Features`] of the one precision or the other; what each of its methods does is said there.
#[derive(Debug, Default)]
pub(crate) struct EitherFeatures {
    double: Features<f64>,
    single: Features<f32>,
}

/// Does the same in the precision of the operands.
macro_rules! in_precision {
    ($own:expr, $operands:expr, |$features:ident, $with:ident| $work:expr) => {
        match $operands {
            Either::Double($with) => {
                let $features = &mut $own.double;
                $work
            }
            Either::Single($with) => {
                let $features = &mut $own.single;
                $work
            }
        }
    };
}

impl EitherFeatures {
    pub(crate) fn project(
        &mut self,
        with: Either<'_>,
        (k, kept): (&mut Mat<f64>, bool),
        norms: &mut [f64],
        mu: MatMut<'_, f64>,
    ) {
        in_precision!(self, with, |own, with| own.project(k, kept, &with, norms, mu));
    }

    pub(crate) fn variances(
        &mut self,
        with: Either<'_>,
        of: (MatRef<'_, f64>, &[f64]),
        variances: MatMut<'_, f64>,
    ) {
        in_precision!(self, with, |own, with| own.variances(&with, of, variances));
    }

    pub(crate) fn times_slopes(
        &mut self,
        with: Either<'_>,
        a: MatRef<'_, f64>,
        target: MatMut<'_, f64>,
    ) {
        in_precision!(self, with, |own, _with| own.times_slopes(a, target));
    }

    pub(crate) fn weigh(&mut self, with: Either<'_>, weights: &[f64]) {
        in_precision!(self, with, |own, _with| own.weigh(weights));
    }

    pub(crate) fn square(
        &mut self,
        with: Either<'_>,
        right: Right,
        target: (MatMut<'_, f64>, Accum),
        scale: f64,
        par: Par,
    ) {
        in_precision!(self, with, |own, _with| own.square(right, target, scale, par));
    }

    pub(crate) fn slopes(
        &mut self,
        with: Either<'_>,
        plan: &Plan<'_>,
        a: MatRef<'_, f64>,
        b: (MatRef<'_, f64>, &[f64]),
        c: &[f64],
    ) {
        in_precision!(self, with, |own, with| own.slopes(&with, plan, a, b, c));
    }

    pub(crate) fn back(&mut self, with: Either<'_>, target: &mut Mat<f64>) {
        in_precision!(self, with, |own, with| own.back(&with, target));
    }

    /// Computes a product with covariances in single precision, without operands.
    pub(super) fn through(&mut self, k: &mut Mat<f64>, g: MatRef<'_, f32>, target: &mut Mat<f64>) {
        self.single.through(k, g, target);
    }
}

//! One block of rows for one process, from covariances to features and back to what the kernel gets: in double
//! precision, or in single precision with sums of blocks in double precision.

use super::buffers::Buffer;
use super::operands::{Form, Lead, Operands};
use crate::engine::{Plan, Slope};
use crate::linalg::{
    Accum, Mat, MatMut, MatRef, Par, Real, Structure, add_row_dots, add_scaled_rows, column,
    column_mut, gemm, scale_rows, shared, sized, solve_lower, solve_lower_transpose,
    times_triangular,
};
use faer::reborrow::ReborrowMut;

const WHOLE: Structure = Structure::Rectangular;
const LOWER: Structure = Structure::TriangularLower;
const UPPER: Structure = Structure::TriangularUpper;

/// What Φ is multiplied by.
#[derive(Clone, Copy)]
pub(crate) enum Right {
    /// What is in `other`: Φ̄ or weighed features.
    Other,
    /// Features.
    Features,
    /// 2 diag(b) ΦᵀR of one latent function.
    Root(usize),
}

/// Buffers of one thread for one process.
#[derive(Debug, Default)]
pub(super) struct Features<T: Real> {
    /// Φ, B×M.
    phi: Buffer<T>,
    /// Weighed features, or Φ̄.
    other: Buffer<T>,
    /// ΦR of every latent function, or ΦV, or ΦE.
    images: Vec<Buffer<T>>,
    /// Few columns.
    small: Buffer<T>,
    /// What goes into double precision on its way there.
    result: Buffer<T>,
}

impl<T: Real> Features<T> {
    /// Computes the features from covariances (B×M), which stay if they are `kept`; adds ‖φ‖² of
    /// every row to `norms` and φᵀm to `mu` (B×l), which costs nothing where m is 0.
    pub(super) fn project(
        &mut self,
        k: &mut Mat<f64>,
        kept: bool,
        with: &Operands<'_, T>,
        norms: &mut [f64],
        mu: MatMut<'_, f64>,
    ) {
        match with.lead {
            Lead::Solve(l, _) => {
                T::take(&mut self.phi, k, kept, with.floor);
                solve_lower(l, self.phi.as_mut().transpose_mut(), Par::Seq);
            }
            Lead::Product(l) => {
                sized(&mut self.phi, k.nrows(), k.ncols());
                let k = (T::rounded(k.as_ref(), &mut self.other), WHOLE);
                let phi = (self.phi.as_mut(), WHOLE);
                shared(phi, Accum::Replace, k, (l, LOWER), T::of(1.0), Par::Seq);
            }
        }
        let (phi, mean) = (self.phi.as_ref(), with.mean);
        add_row_dots(phi, phi, norms);
        if (0..mean.ncols()).any(|j| column(mean, j).iter().any(|v| *v != 0.0)) {
            let mean = (T::rounded(mean, &mut self.small), WHOLE);
            let (mu, phi, memory) = ((mu, WHOLE), (phi, WHOLE), &mut *self.result);
            T::product_into(mu, Accum::Add, phi, mean, 1.0, memory, Par::Seq);
        }
    }

    /// Adds s to the columns of `variances` (B×l), which are 0, or to the first one of them where all have the same;
    /// `norms` are ‖φ‖² and `k` the covariances, for the sum of r and s.
    pub(super) fn variances(
        &mut self,
        with: &Operands<'_, T>,
        (k, norms): (MatRef<'_, f64>, &[f64]),
        mut variances: MatMut<'_, f64>,
    ) {
        let phi = self.phi.as_ref();
        let count = match with.form {
            Form::Roots(all) | Form::Through(_, all) => all.len(),
            Form::Shared(form) => usize::from(form.is_some()),
        };
        self.images.resize_with(count, Buffer::default);
        self.images.iter_mut().for_each(|image| sized(image, phi.nrows(), phi.ncols()));
        match with.form {
            Form::Roots(roots) => {
                for (j, (image, root)) in self.images.iter_mut().zip(roots).enumerate() {
                    let target = image.as_mut();
                    times_triangular(target, Accum::Replace, phi, root.as_ref(), false, Par::Seq);
                    let variance = column_mut(variances.rb_mut(), j);
                    add_row_dots(image.as_ref(), image.as_ref(), variance);
                }
            }
            Form::Through(_, forms) => {
                let k = T::rounded(k, &mut self.other);
                for (j, (image, form)) in self.images.iter_mut().zip(forms).enumerate() {
                    let (image, form) = (&mut **image, form.as_ref());
                    gemm(image.as_mut(), Accum::Replace, phi, form, T::of(1.0), Par::Seq);
                    let variance = column_mut(variances.rb_mut(), j);
                    variance.copy_from_slice(norms);
                    add_row_dots(k, image.as_ref(), variance);
                }
            }
            Form::Shared(Some(form)) => {
                let image = &mut *self.images[0];
                gemm(image.as_mut(), Accum::Replace, phi, form, T::of(1.0), Par::Seq);
                add_row_dots(image.as_ref(), phi, column_mut(variances, 0));
            }
            Form::Shared(None) => {}
        }
    }

    /// Computes Φa into `target`, M×l.
    pub(super) fn times_slopes(&mut self, a: MatRef<'_, f64>, target: MatMut<'_, f64>) {
        let a = (T::rounded(a, &mut self.small), WHOLE);
        let (phi, target) = ((self.phi.transpose(), WHOLE), (target, WHOLE));
        T::product_into(target, Accum::Replace, phi, a, 1.0, &mut self.result, Par::Seq);
    }

    /// Computes features with each row multiplied by its weight.
    pub(super) fn weigh(&mut self, weights: &[f64]) {
        sized(&mut self.other, self.phi.nrows(), self.phi.ncols());
        scale_rows(self.other.as_mut(), self.phi.as_ref(), weights);
    }

    /// Computes the lower triangle of `scale` times Φ times another matrix into `target`, M×M.
    pub(super) fn square(
        &mut self,
        right: Right,
        (target, accum): (MatMut<'_, f64>, Accum),
        scale: f64,
        par: Par,
    ) {
        let phi = self.phi.as_ref();
        let (left, right) = match right {
            Right::Root(j) => (phi, self.images[j].as_ref()),
            Right::Other => (self.other.as_ref(), phi),
            Right::Features => (phi, phi),
        };
        let (left, right) = ((left.transpose(), WHOLE), (right, WHOLE));
        T::product_into((target, LOWER), accum, left, right, scale, &mut self.result, par);
    }

    /// Computes Φ̄ = Σ {m aᵀ + 2 RRᵀΦ diag(b)} − 2 Φ diag(Σc), with E for RRᵀ where it is shared;
    /// K̄uf itself for [`Form::Through`]. a and b are B×l, and beside b is its sum for every row. 2
    /// diag(b) ΦᵀR takes the place of ΦᵀR.
    pub(super) fn slopes(
        &mut self,
        with: &Operands<'_, T>,
        plan: &Plan<'_>,
        a: MatRef<'_, f64>,
        (b, sum): (MatRef<'_, f64>, &[f64]),
        c: &[f64],
    ) {
        let latents = with.mean.ncols() as f64;
        let (bar, phi) = (&mut *self.other, self.phi.as_ref());
        sized(bar, phi.nrows(), phi.ncols());
        let a = T::rounded(a, &mut self.small);
        let mean = match with.form {
            Form::Through(weights, _) => weights,
            _ => with.mean,
        };
        let mean = T::rounded(mean, &mut self.result).transpose();
        let begin = |bar: &mut Mat<T>, accum| {
            gemm(bar.as_mut(), accum, a, mean, T::of(1.0), Par::Seq);
        };
        match with.form {
            Form::Through(_, forms) => {
                begin(bar, Accum::Replace);
                for (j, image) in self.images[..forms.len()].iter().enumerate() {
                    add_scaled_rows(bar.as_mut(), image.as_ref(), column(b, j), 2.0);
                }
                return;
            }
            // nobody has looked at s: ΦE is still to be made
            Form::Shared(Some(e)) if !plan.variances => {
                let factor = match plan.b {
                    Slope::Constant(b) => 2.0 * (latents * b),
                    Slope::Rows => 1.0,
                };
                gemm(bar.as_mut(), Accum::Replace, phi, e, T::of(factor), Par::Seq);
                if plan.b == Slope::Rows {
                    multiply_rows(bar, sum);
                }
                begin(bar, Accum::Add);
            }
            Form::Shared(form) => {
                begin(bar, Accum::Replace);
                if form.is_some() {
                    add_scaled_rows(bar.as_mut(), self.images[0].as_ref(), sum, 2.0);
                }
            }
            Form::Roots(roots) => {
                begin(bar, Accum::Replace);
                for (j, (image, root)) in self.images.iter_mut().zip(roots).enumerate() {
                    let b = column(b, j);
                    multiply_rows(image, b);
                    // as of latent functions that do not count
                    if b.iter().all(|b| *b == 0.0) {
                        continue;
                    }
                    let (scaled, root) = (image.as_ref(), root.as_ref());
                    times_triangular(bar.as_mut(), Accum::Add, scaled, root, true, Par::Seq);
                }
            }
        }
        add_scaled_rows(bar.as_mut(), phi, c, -2.0);
    }

    /// Computes K GᵀG of covariances and a lower-triangular G into `target` (B×M).
    pub(super) fn through(&mut self, k: &mut Mat<f64>, g: MatRef<'_, T>, target: &mut Mat<f64>) {
        T::take(&mut self.phi, k, true, 0.0);
        sized(&mut self.other, k.nrows(), k.ncols());
        let (phi, features) = (self.phi.as_ref(), self.other.as_mut());
        times_triangular(features, Accum::Replace, phi, g, true, Par::Seq);
        sized(target, k.nrows(), k.ncols());
        let (features, target) = ((self.other.as_ref(), WHOLE), (target.as_mut(), WHOLE));
        let memory = &mut *self.result;
        T::product_into(target, Accum::Replace, features, (g, LOWER), 1.0, memory, Par::Seq);
    }

    /// Computes K̄uf into `target` (B×M), from what [`Features::slopes`] has left.
    pub(super) fn back(&mut self, with: &Operands<'_, T>, target: &mut Mat<f64>) {
        match (with.lead, with.form) {
            (_, Form::Through(..)) => T::hand_over(&mut self.other, target),
            (Lead::Solve(_, l), _) => {
                solve_lower_transpose(l, self.other.as_mut().transpose_mut(), Par::Seq);
                T::hand_over(&mut self.other, target);
            }
            (Lead::Product(l), _) => {
                sized(target, self.other.nrows(), self.other.ncols());
                let (bar, l) = ((self.other.as_ref(), WHOLE), (l.transpose(), UPPER));
                let (target, memory) = ((target.as_mut(), WHOLE), &mut *self.result);
                T::product_into(target, Accum::Replace, bar, l, 1.0, memory, Par::Seq);
            }
        }
    }
}

/// Multiplies rows by twice their weights.
fn multiply_rows<T: Real>(a: &mut Mat<T>, weights: &[f64]) {
    for j in 0..a.ncols() {
        let target = a.col_as_slice_mut(j).iter_mut();
        target.zip(weights).for_each(|(t, w)| *t = T::of((*t).into() * (2.0 * w)));
    }
}

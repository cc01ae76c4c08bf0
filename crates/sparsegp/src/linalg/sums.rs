//! Sums over entries and rows, vectorised.

use super::{MatMut, MatRef, Real, column, column_mut, exp};
use faer::reborrow::ReborrowMut;

/// Returns Σᵢⱼ aᵢⱼ bᵢⱼ.
pub fn dot(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> f64 {
    (0..a.ncols()).map(|j| sum_of_products(column(a, j), column(b, j))).sum()
}

/// Sums are kept in so many parts, which the machine adds to at the same time.
const PARTS: usize = 8;

/// Returns Σᵢ f(aᵢ).
pub fn sum<T: Real>(a: &[T], f: impl Fn(f64) -> f64) -> f64 {
    let (whole, rest) = a.as_chunks::<PARTS>();
    let mut parts = [0.0; PARTS];
    for chunk in whole {
        parts.iter_mut().zip(chunk).for_each(|(t, v)| *t += f((*v).into()));
    }
    parts.iter().sum::<f64>() + rest.iter().map(|v| f((*v).into())).sum::<f64>()
}

/// Returns Σᵢ aᵢbᵢ.
pub fn sum_of_products<T: Real>(a: &[T], b: &[T]) -> f64 {
    struct Loop<'a, T>(&'a [T], &'a [T]);
    impl<T: Real> exp::Vectorised for Loop<'_, T> {
        type Output = f64;
        #[inline(always)]
        fn run<const FMA: bool>(self) -> f64 {
            let ((whole, rest), (other, last)) =
                (self.0.as_chunks::<PARTS>(), self.1.as_chunks::<PARTS>());
            let mut parts = [0.0; PARTS];
            for (x, y) in whole.iter().zip(other) {
                let pairs = parts.iter_mut().zip(x.iter().zip(y));
                pairs.for_each(|(t, (x, y))| *t += (*x).into() * (*y).into());
            }
            let rest = rest.iter().zip(last).map(|(x, y)| (*x).into() * (*y).into());
            parts.iter().sum::<f64>() + rest.sum::<f64>()
        }
    }
    exp::dispatch(Loop(a, b))
}

/// Adds Σⱼ aᵢⱼ bᵢⱼ to `out[i]`.
pub fn add_row_dots<T: Real>(a: MatRef<'_, T>, b: MatRef<'_, T>, out: &mut [f64]) {
    struct Loop<'a, T>(&'a [T], &'a [T], &'a mut [f64]);
    impl<T: Real> exp::Vectorised for Loop<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run<const FMA: bool>(self) {
            for ((o, x), y) in self.2.iter_mut().zip(self.0).zip(self.1) {
                *o = exp::mul_add::<FMA>((*x).into(), (*y).into(), *o);
            }
        }
    }
    for j in 0..a.ncols() {
        exp::dispatch(Loop(column(a, j), column(b, j), out));
    }
}

/// Computes `dst[i, j] += factor·weights[i]·src[i, j]`.
pub fn add_scaled_rows<T: Real>(
    mut dst: MatMut<'_, T>,
    src: MatRef<'_, T>,
    weights: &[f64],
    factor: f64,
) {
    struct Loop<'a, T>(&'a mut [T], &'a [T], &'a [f64], f64);
    impl<T: Real> exp::Vectorised for Loop<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run<const FMA: bool>(self) {
            for ((t, s), w) in self.0.iter_mut().zip(self.1).zip(self.2) {
                *t = T::of(exp::mul_add::<FMA>(self.3 * w, (*s).into(), (*t).into()));
            }
        }
    }
    for j in 0..src.ncols() {
        exp::dispatch(Loop(column_mut(dst.rb_mut(), j), column(src, j), weights, factor));
    }
}

/// Copies `src` into `dst` with row i multiplied by `weights[i]`.
pub fn scale_rows<T: Real>(mut dst: MatMut<'_, T>, src: MatRef<'_, T>, weights: &[f64]) {
    struct Loop<'a, T>(&'a mut [T], &'a [T], &'a [f64]);
    impl<T: Real> exp::Vectorised for Loop<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run<const FMA: bool>(self) {
            for ((t, s), w) in self.0.iter_mut().zip(self.1).zip(self.2) {
                *t = T::of((*s).into() * w);
            }
        }
    }
    for j in 0..src.ncols() {
        exp::dispatch(Loop(column_mut(dst.rb_mut(), j), column(src, j), weights));
    }
}

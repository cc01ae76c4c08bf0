//! The few vector operations of the optimisers. Sums run in an order that depends only on the
//! number of components, so results depend on nothing but the numbers. q may have hundreds of
//! thousands of parameters: what every step does with all of them is written for vector
//! instructions.

use crate::linalg::exp::{Vectorised, dispatch};

/// Components that the machine works on at the same time.
const PARTS: usize = 8;
/// Components between two checks of whether to continue.
const BLOCK: usize = 64;

/// Takes every pair (aᵢ, bᵢ) into one of eight parts by `add`, beginning with 0, and the parts together by `join`.
fn fold(
    a: &[f64],
    b: &[f64],
    add: impl Fn(f64, f64, f64) -> f64,
    join: impl Fn(f64, f64) -> f64,
) -> f64 {
    struct Loop<'a, F>(&'a [f64], &'a [f64], F);
    impl<F: Fn(f64, f64, f64) -> f64> Vectorised for Loop<'_, F> {
        type Output = [f64; PARTS];
        #[inline(always)]
        fn run<const FMA: bool>(self) -> [f64; PARTS] {
            let Loop(a, b, add) = self;
            let mut parts = [0.0; PARTS];
            let ((whole, rest), (other, last)) = (a.as_chunks::<PARTS>(), b.as_chunks::<PARTS>());
            for (a, b) in whole.iter().zip(other) {
                let pairs = parts.iter_mut().zip(a.iter().zip(b));
                pairs.for_each(|(part, (a, b))| *part = add(*part, *a, *b));
            }
            let rest = parts.iter_mut().zip(rest.iter().zip(last));
            rest.for_each(|(part, (a, b))| *part = add(*part, *a, *b));
            parts
        }
    }
    dispatch(Loop(a, b, add)).into_iter().fold(0.0, join)
}

/// Returns the index of the first component that is not right.
pub(super) fn first_wrong(a: &[f64], right: impl Fn(f64) -> bool) -> Option<usize> {
    let all = |block: &[f64]| block.iter().fold(true, |so_far, v| so_far & right(*v));
    let from = BLOCK * a.chunks(BLOCK).position(|block| !all(block))?;
    a[from..].iter().position(|v| !right(*v)).map(|at| from + at)
}

/// Returns aᵀb.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns the largest absolute component; 0 for an empty vector, infinite or NaN if a component
/// is.
pub(super) fn max_norm(a: &[f64]) -> f64 {
    // `f64::max` forgets a NaN; this keeps it
    let larger = |a: f64, b: f64| if a > b || a.is_nan() { a } else { b };
    fold(a, a, |largest, value, _| larger(value.abs(), largest), |a, b| larger(b, a))
}

/// Returns the Euclidean norm, scaled so that squares neither overflow nor underflow.
pub(super) fn norm(a: &[f64]) -> f64 {
    scaled_norm(a, a, |a, _| a)
}

/// Returns the norm of `of(aᵢ, bᵢ)`.
fn scaled_norm(a: &[f64], b: &[f64], of: impl Fn(f64, f64) -> f64) -> f64 {
    let largest = fold(a, b, |largest, a, b| of(a, b).abs().max(largest), f64::max);
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    // A power of two, so that scaling does not round; nor does its inverse, even where that is subnormal.
    let exponent = largest.to_bits() & f64::INFINITY.to_bits();
    let scale = f64::from_bits(exponent).max(f64::MIN_POSITIVE);
    let inverse = 1.0 / scale;
    let square = |a, b| (of(a, b) * inverse).powi(2);
    scale * fold(a, b, |sum, a, b| sum + square(a, b), |sum, part| sum + part).sqrt()
}

/// Returns ‖a − b‖, scaled like [`norm`] and without a copy.
pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    scaled_norm(a, b, |a, b| a - b)
}

/// Returns a − b.
pub(super) fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// Sets y ← y + αx.
pub(super) fn add_scaled(y: &mut [f64], alpha: f64, x: &[f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += alpha * x;
    }
}

/// Returns whether every component is finite.
pub(super) fn all_finite(a: &[f64]) -> bool {
    first_wrong(a, f64::is_finite).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_survive_extreme_scales() {
        assert_eq!(norm(&[]), 0.0);
        assert_eq!(norm(&[0.0, -0.0]), 0.0);
        assert!((norm(&[3e200, -4e200]) - 5e200).abs() < 1e186);
        assert!((norm(&[5e-324, 0.0]) - 5e-324).abs() < 1e-323);
        assert!((norm(&[3e-200, 4e-200]) - 5e-200).abs() < 1e-214);
        assert!((norm(&[6e307, -8e307]) - 1e308).abs() < 1e294);
        assert_eq!(norm(&[1.5 * 2.0_f64.powi(1023)]), 1.5 * 2.0_f64.powi(1023));
        assert_eq!(norm(&[1.0, f64::INFINITY]), f64::INFINITY);
        assert_eq!(max_norm(&[1.0, -2.0]), 2.0);
        assert_eq!(max_norm(&[]), 0.0);
    }

    #[test]
    fn every_component_counts() {
        // more than a block, and not a whole number of parts
        let n = 2 * BLOCK + PARTS + 3;
        let ones = vec![1.0; n];
        assert_eq!(norm(&ones), (n as f64).sqrt());
        for at in 0..n {
            let mut a = ones.clone();
            a[at] = -3.0;
            assert_eq!(max_norm(&a), 3.0);
            assert_eq!(distance(&a, &ones), 4.0);
            assert_eq!(first_wrong(&a, |v| v > 0.0), Some(at));
            assert_eq!(first_wrong(&a, |v| v < 2.0), None);
            a[n - 1] = -3.0;
            assert_eq!(first_wrong(&a, |v| v > 0.0), Some(at));
            a[n - 1] = 1.0;
            a[at] = f64::NAN;
            assert!(!all_finite(&a) && norm(&a).is_nan() && max_norm(&a).is_nan());
            a[at] = f64::NEG_INFINITY;
            assert_eq!(max_norm(&a), f64::INFINITY);
        }
    }

    #[test]
    fn sums_and_differences() {
        assert_eq!(dot(&[1.0, 2.0], &[3.0, 4.0]), 11.0);
        assert_eq!(difference(&[1.0, 2.0], &[3.0, 5.0]), [-2.0, -3.0]);
        assert!((distance(&[4e200, 0.0], &[1e200, 4e200]) - 5e200).abs() < 1e186);
        assert_eq!(distance(&[1.0], &[1.0]), 0.0);
        let mut y = [1.0, 2.0];
        add_scaled(&mut y, 2.0, &[1.0, -1.0]);
        assert_eq!(y, [3.0, 0.0]);
        assert!(all_finite(&y) && !all_finite(&[f64::NAN]));
    }
}

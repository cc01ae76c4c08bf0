//! The few vector operations of the optimisers. Sums run in the order of the indices, so results
//! depend on nothing but the numbers.

/// aᵀb.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Largest absolute component; 0 for an empty vector.
pub(super) fn max_norm(a: &[f64]) -> f64 {
    a.iter().fold(0.0, |largest, value| value.abs().max(largest))
}

/// Euclidean norm, scaled so that squares neither overflow nor underflow.
pub(super) fn norm(a: &[f64]) -> f64 {
    scaled_norm(a.iter().copied())
}

fn scaled_norm(a: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = a.clone().fold(0.0, |largest: f64, value| value.abs().max(largest));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    // A power of two, so that scaling does not round.
    let exponent = largest.to_bits() & f64::INFINITY.to_bits();
    let scale = f64::from_bits(exponent).max(f64::MIN_POSITIVE);
    scale * a.map(|value| (value / scale).powi(2)).sum::<f64>().sqrt()
}

/// ‖a − b‖, scaled like [`norm`] and without a copy.
pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    scaled_norm(a.iter().zip(b).map(|(a, b)| a - b))
}

/// a − b.
pub(super) fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// y ← y + αx.
pub(super) fn add_scaled(y: &mut [f64], alpha: f64, x: &[f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += alpha * x;
    }
}

/// Whether every component is finite.
pub(super) fn all_finite(a: &[f64]) -> bool {
    a.iter().all(|value| value.is_finite())
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
        assert_eq!(norm(&[1.0, f64::INFINITY]), f64::INFINITY);
        assert_eq!(max_norm(&[1.0, -2.0]), 2.0);
        assert_eq!(max_norm(&[]), 0.0);
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

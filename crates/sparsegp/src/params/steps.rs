//! Steps of differences.

use super::{Param, Transform};

/// Relative step of a central difference, the cube root of the rounding error: the error of the slope is some 10⁻¹⁰ then.
pub(crate) const STEP: f64 = 6e-6;

impl Param {
    /// Returns a step for the central difference in a value of the parameter, which stays within
    /// its natural range.
    pub(crate) fn step(&self, value: f64) -> f64 {
        let size = match self.natural {
            Transform::Identity => value.abs().max(1.0),
            other => match other.ends() {
                (Some(lower), Some(upper)) => (value - lower).min(upper - value),
                (Some(lower), None) => value - lower,
                (None, Some(upper)) => upper - value,
                (None, None) => value.abs().max(1.0),
            },
        };
        STEP * size
    }

    /// Computes the slopes of a function of all values of some parameters, by central differences,
    /// one value after the other: `slope` gets what the function gives above and below with the
    /// distance between both.
    pub(crate) fn differences<T>(
        params: &[Param],
        of: impl Fn(&[&[f64]]) -> T,
        mut slope: impl FnMut(usize, T, T, f64),
    ) {
        let mut all: Vec<Vec<f64>> = params.iter().map(|p| p.value.clone()).collect();
        let mut place = 0;
        for (index, param) in params.iter().enumerate() {
            for (number, value) in param.value.iter().enumerate() {
                let h = param.step(*value);
                let mut at = |moved: f64| {
                    all[index][number] = moved;
                    of(&all.iter().map(Vec::as_slice).collect::<Vec<_>>())
                };
                let (above, below) = (value + h, value - h);
                let (up, down) = (at(above), at(below));
                all[index][number] = *value;
                slope(place, up, down, above - below);
                place += 1;
            }
        }
    }
}

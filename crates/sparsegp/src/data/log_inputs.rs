//! Inputs whose logarithms a model sees, where values are spread over powers of ten.
//!
//! The function is u(x) = asinh(x/c), with c at the small end of the values of training: log(2x/c) far above it, x/c about 0, and
//! odd, so that zeros and negative values at prediction have a place.

use super::Scaler;
use faer::MatMut;

/// Part of the values that are smaller than c.
const SMALL: f64 = 0.01;

impl Scaler {
    /// Returns c where the logarithm of an input is seen.
    pub fn log_unit(&self, input: usize) -> Option<f64> {
        self.x_log.get(input).copied().flatten()
    }

    /// Returns an input as a model sees it.
    pub fn scaled_input(&self, input: usize, x: f64) -> f64 {
        let u = self.log_unit(input).map_or(x, |c| (x / c).asinh());
        (u - self.x_mean[input]) / self.x_scale[input]
    }

    /// Returns an input in its own unit again.
    pub fn unscaled_input(&self, input: usize, value: f64) -> f64 {
        let u = value * self.x_scale[input] + self.x_mean[input];
        self.log_unit(input).map_or(u, |c| c * u.sinh())
    }

    /// Returns the slope of what a model sees in the input, at the input.
    pub fn input_slope(&self, input: usize, x: f64) -> f64 {
        self.log_unit(input).map_or(1.0, |c| x.hypot(c).recip()) / self.x_scale[input]
    }

    /// Takes the logarithms of inputs (N×D) that have some, in place.
    pub(super) fn take_logs(&self, x: MatMut<'_, f64>) {
        for (q, column) in x.col_iter_mut().enumerate() {
            if let Some(c) = self.log_unit(q) {
                column.iter_mut().for_each(|x| *x = (*x / c).asinh());
            }
        }
    }

    /// Undoes [`Scaler::take_logs`].
    pub(super) fn undo_logs(&self, x: MatMut<'_, f64>) {
        for (q, column) in x.col_iter_mut().enumerate() {
            if let Some(c) = self.log_unit(q) {
                column.iter_mut().for_each(|x| *x = c * x.sinh());
            }
        }
    }
}

/// Returns the unit c for values of training; none where no value is above 0.
pub(crate) fn log_unit(values: &[f64]) -> Option<f64> {
    let mut positive: Vec<f64> = values.iter().copied().filter(|v| *v > 0.0).collect();
    positive.sort_unstable_by(f64::total_cmp);
    positive.get((positive.len() as f64 * SMALL) as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Mat;

    #[test]
    fn logarithms_come_back_and_slopes_are_differences() {
        let mut scaler = Scaler::identity(2, 1);
        (scaler.x_mean, scaler.x_scale) = (vec![2.3, -1.0], vec![1.7, 4.0]);
        scaler.x_log = vec![Some(0.04), None];
        let raw = Mat::from_fn(5, 2, |i, q| [-3.0, 0.0, 0.01, 7.0, 4e6][i] + q as f64);
        let mut x = raw.clone();
        scaler.scale_x(x.as_mut()).unwrap();
        for i in 0..5 {
            for q in 0..2 {
                assert_eq!(x[(i, q)], scaler.scaled_input(q, raw[(i, q)]));
                let back = scaler.unscaled_input(q, x[(i, q)]);
                assert!((back - raw[(i, q)]).abs() < 1e-12 * (1.0 + raw[(i, q)].abs()), "{back}");
                let step = 1e-5 * (0.01 + raw[(i, q)].abs());
                let ends = [step, -step].map(|h| scaler.scaled_input(q, raw[(i, q)] + h));
                let slope = (ends[0] - ends[1]) / (2.0 * step);
                let own = scaler.input_slope(q, raw[(i, q)]);
                assert!((own / slope - 1.0).abs() < 1e-6, "{i} {q}: {own} {slope}");
            }
        }
        // far above c it is a logarithm
        let apart = scaler.scaled_input(0, 4e6) - scaler.scaled_input(0, 4e5);
        assert!((apart - 10.0_f64.ln() / 1.7).abs() < 1e-9);
        scaler.unscale_x(x.as_mut()).unwrap();
        let far = (0..5).map(|i| (x[(i, 0)] - raw[(i, 0)]).abs() / (1.0 + raw[(i, 0)].abs()));
        assert!(far.fold(0.0, f64::max) < 1e-12);
    }

    #[test]
    fn units_are_at_the_small_end() {
        let values: Vec<f64> = (0..1000).map(|i| f64::from(i) - 10.0).collect();
        assert_eq!(log_unit(&values), Some(10.0));
        assert_eq!(log_unit(&[0.0, -3.0]), None);
        assert_eq!(log_unit(&[0.0, 5.0, 2.0]), Some(2.0));
    }
}

//! Standardisation of inputs and targets, and its inverse for means, variances and densities.

use super::statistics::Statistics;
use super::target_transform::TargetTransform;
use crate::error::{Error, Result};
use faer::reborrow::ReborrowMut;
use faer::{MatMut, MatRef};
use serde::{Deserialize, Serialize};

/// Means and scales of the columns: a model sees `(value − mean) / scale`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaler {
    /// Mean of each input, D.
    pub x_mean: Vec<f64>,
    /// Population standard deviation (1/N) of each input, D, or half of the difference where it has two values; 1 where it is
    /// constant.
    pub x_scale: Vec<f64>,
    /// Mean of each target, P.
    pub y_mean: Vec<f64>,
    /// Population standard deviation (1/N) of each target, P; 1 where the target is constant.
    pub y_scale: Vec<f64>,
    /// Which targets are constants that nothing is learnt of, P or none: a model sees NaN (a missing value) in their
    /// place, and predicts the constant.
    // never left out: the states of trainings are written without names
    #[serde(default)]
    pub y_constant: Vec<bool>,
    /// The functions of the targets that `y_mean` and `y_scale` are of, P or none; constants have none.
    #[serde(default)]
    pub y_transform: Vec<Option<TargetTransform>>,
    /// c of asinh(x/c), which is the logarithm far above c, where `x_mean` and `x_scale` are of that; D or none.
    #[serde(default)]
    pub x_log: Vec<Option<f64>>,
}

/// Scale of a constant target, as a part of the constant: predictions have next to no variance.
const CONSTANT: f64 = 1e-12;

impl Scaler {
    /// Creates the scaler that changes nothing, for `inputs` and `outputs` columns.
    pub fn identity(inputs: usize, outputs: usize) -> Self {
        Self {
            x_mean: vec![0.0; inputs],
            x_scale: vec![1.0; inputs],
            y_mean: vec![0.0; outputs],
            y_scale: vec![1.0; outputs],
            y_constant: Vec::new(),
            y_transform: Vec::new(),
            x_log: Vec::new(),
        }
    }

    /// Returns whether a target is a constant that nothing is learnt of.
    pub fn is_constant(&self, target: usize) -> bool {
        self.y_constant.get(target).copied().unwrap_or(false)
    }

    /// Returns this scaler, with these targets taken for constants: their means.
    #[must_use]
    pub fn with_constants(mut self, targets: &[usize]) -> Self {
        self.y_constant = vec![false; if targets.is_empty() { 0 } else { self.y_mean.len() }];
        for &p in targets {
            self.y_constant[p] = true;
            let size = self.y_mean[p].abs();
            // far from where squares underflow
            self.y_scale[p] = CONSTANT * if size > 1e-80 { size } else { 1.0 };
        }
        self
    }

    /// Returns the scale of the first target that is not a constant, if there is one.
    pub fn first_scale(&self) -> f64 {
        let varying = |p: &usize| !self.is_constant(*p);
        (0..self.y_scale.len()).find(varying).map_or(1.0, |p| self.y_scale[p])
    }

    /// Returns this scaler, with targets left as they are: mean 0, scale 1.
    #[must_use]
    pub fn without_targets(mut self) -> Self {
        self.y_transform.clear();
        self.y_mean.fill(0.0);
        self.y_scale.fill(1.0);
        self.y_constant.clear();
        self
    }

    /// Returns this scaler, with inputs left as they are.
    #[must_use]
    pub fn without_inputs(mut self) -> Self {
        self.x_log.clear();
        self.x_mean.fill(0.0);
        self.x_scale.fill(1.0);
        self
    }

    /// Returns this scaler, with some inputs left as they are.
    #[must_use]
    pub fn without_columns(mut self, columns: &[usize]) -> Self {
        for &column in columns {
            self.x_mean[column] = 0.0;
            self.x_scale[column] = 1.0;
        }
        self
    }

    /// Returns this scaler, with further inputs that are standard deviations of these ones: they
    /// have no mean, and the scale of theirs.
    #[must_use]
    pub fn with_deviations(mut self, of: &[usize]) -> Self {
        for &column in of {
            self.x_mean.push(0.0);
            self.x_scale.push(self.x_scale[column]);
        }
        self
    }

    /// Returns this scaler, of the first so many inputs.
    #[must_use]
    pub fn first_inputs(mut self, count: usize) -> Self {
        self.x_log.truncate(count);
        self.x_mean.truncate(count);
        self.x_scale.truncate(count);
        self
    }

    /// Returns this scaler, with this mean and this scale for some inputs.
    #[must_use]
    pub fn with_one_scale(mut self, columns: &[usize], (mean, scale): (f64, f64)) -> Self {
        for &column in columns {
            self.x_mean[column] = mean;
            self.x_scale[column] = scale;
        }
        self
    }

    /// Creates the scaler from the statistics of these rows.
    pub fn fit(x: MatRef<'_, f64>, y: MatRef<'_, f64>) -> Self {
        Statistics::of(x, y, &[]).scaler()
    }

    /// Refuses a scaler for other numbers of columns.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape).
    pub fn check(&self, inputs: usize, outputs: usize) -> Result<()> {
        for (what, expected, found) in [
            ("input means", inputs, self.x_mean.len()),
            ("input scales", inputs, self.x_scale.len()),
            ("target means", outputs, self.y_mean.len()),
            ("target scales", outputs, self.y_scale.len()),
        ] {
            if expected != found {
                return Err(scaler_shape(what, expected, found));
            }
        }
        if self.is_transformed() && self.y_transform.len() != outputs {
            return Err(scaler_shape("functions of targets", outputs, self.y_transform.len()));
        }
        if !(self.x_log.is_empty() || self.x_log.len() == inputs) {
            return Err(scaler_shape("logarithms of inputs", inputs, self.x_log.len()));
        }
        if let Some(c) = self.x_log.iter().flatten().find(|c| !(**c > 0.0 && c.is_finite())) {
            return Err(Error::Invalid(format!(
                "the scaler has the logarithm of an input over {c}"
            )));
        }
        self.y_transform.iter().flatten().try_for_each(TargetTransform::check)
    }

    /// Scales columns as a model sees them, in place: inputs, then targets, then weights if there
    /// are any, then the further number if `extra`.
    #[cfg(feature = "tables")]
    pub(super) fn scale_columns(&self, columns: &mut [Vec<f64>], extra: bool) {
        if let Some(last) = columns.last_mut().filter(|_| extra) {
            self.scale_extra(last);
        }
        let means = self.x_mean.iter().chain(&self.y_mean);
        let scales = self.x_scale.iter().chain(&self.y_scale);
        for (q, column) in columns.iter_mut().take(self.x_mean.len()).enumerate() {
            if let Some(c) = self.log_unit(q) {
                column.iter_mut().for_each(|x| *x = (*x / c).asinh());
            }
        }
        for (p, column) in columns.iter_mut().skip(self.x_mean.len()).enumerate() {
            if let Some(transform) = self.transform(p) {
                column.iter_mut().for_each(|y| *y = transform.of(*y));
            }
        }
        for (column, (mean, scale)) in columns.iter_mut().zip(means.zip(scales)) {
            column.iter_mut().for_each(|value| *value = (*value - mean) / scale);
        }
        for p in (0..self.y_scale.len()).filter(|&p| self.is_constant(p)) {
            if let Some(column) = columns.get_mut(self.x_mean.len() + p) {
                column.fill(f64::NAN);
            }
        }
    }

    /// Scales inputs (N×D) as a model sees them, in place.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for another number of columns.
    pub fn scale_x(&self, mut x: MatMut<'_, f64>) -> Result<()> {
        self.take_logs(x.rb_mut());
        columns("inputs", x, &self.x_mean, &self.x_scale, |v, mean, scale| (v - mean) / scale)
    }

    /// Brings inputs (N×D) back to their own units, in place.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for another number of columns.
    pub fn unscale_x(&self, mut x: MatMut<'_, f64>) -> Result<()> {
        let unscaled = |v: f64, mean: f64, scale: f64| v * scale + mean;
        columns("inputs", x.rb_mut(), &self.x_mean, &self.x_scale, unscaled)?;
        self.undo_logs(x);
        Ok(())
    }

    /// Scales the further numbers of rows as a model sees them, in place. Where targets are scaled
    /// they are variances in the squared unit of the (first) target; where targets stand as they
    /// are, so do they.
    pub fn scale_extra(&self, extra: &mut [f64]) {
        let unit = self.first_scale().powi(2);
        extra.iter_mut().for_each(|value| *value /= unit);
    }

    /// Scales inducing points (M×D) as a model sees them, in place; or patches (M×d, d < D), whose
    /// pixels have one scale.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for more columns.
    pub fn scale_points(&self, points: MatMut<'_, f64>) -> Result<()> {
        self.clone().first_inputs(points.ncols()).scale_x(points)
    }

    /// Brings the same back to their own units.
    ///
    /// # Errors
    /// As for [`Scaler::scale_points`].
    pub fn unscale_points(&self, points: MatMut<'_, f64>) -> Result<()> {
        self.clone().first_inputs(points.ncols()).unscale_x(points)
    }

    /// Scales targets (N×P) as a model sees them, in place.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for another number of columns.
    pub fn scale_y(&self, mut y: MatMut<'_, f64>) -> Result<()> {
        let scaled = |v: f64, mean: f64, scale: f64| (v - mean) / scale;
        for (p, column) in y.rb_mut().col_iter_mut().enumerate() {
            if let Some(transform) = self.transform(p) {
                column.iter_mut().for_each(|y| *y = transform.of(*y));
            }
        }
        columns("targets", y.rb_mut(), &self.y_mean, &self.y_scale, scaled)?;
        for p in (0..self.y_scale.len()).filter(|&p| self.is_constant(p)) {
            y.rb_mut().col_mut(p).fill(f64::NAN);
        }
        Ok(())
    }

    /// Brings quantiles or samples (N×P) to the targets' own units, in place; means too, where
    /// targets are not transformed.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for another number of columns.
    pub fn unscale_values(&self, mut values: MatMut<'_, f64>) -> Result<()> {
        self.unscale_mean(values.rb_mut())?;
        for (p, column) in values.col_iter_mut().enumerate() {
            if let Some(transform) = self.transform(p) {
                column.iter_mut().for_each(|value| *value = transform.inverse(*value));
            }
        }
        Ok(())
    }

    /// Brings predicted means (N×P) to the units of the targets, or of their functions where they
    /// are transformed, in place.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for another number of columns.
    pub fn unscale_mean(&self, mean: MatMut<'_, f64>) -> Result<()> {
        columns("targets", mean, &self.y_mean, &self.y_scale, |v, mean, scale| v * scale + mean)
    }

    /// Brings predicted variances (N×P) to the units of the targets, or of their functions, in
    /// place: times scale².
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for another number of columns.
    pub fn unscale_variance(&self, variance: MatMut<'_, f64>) -> Result<()> {
        // Twice, because scale² may over- or underflow where the product does not.
        columns("targets", variance, &self.y_mean, &self.y_scale, |v, _, scale| v * scale * scale)
    }

    /// Returns what to add to the log density of a row of standardised targets to get the log
    /// density of the row in its own units: −Σₚ log scaleₚ over the targets that are not constants.
    pub fn log_jacobian(&self) -> f64 {
        let varying = (0..self.y_scale.len()).filter(|&p| !self.is_constant(p));
        -varying.map(|p| self.y_scale[p].ln()).sum::<f64>()
    }

    /// Returns what to add to the log density of rows of this weight together, where of some targets rows of the weights
    /// `absent` are missing (empty: none).
    pub fn log_jacobian_of(&self, weight: f64, absent: &[f64]) -> f64 {
        let varying = absent.iter().enumerate().filter(|&(p, _)| !self.is_constant(p));
        let gaps: f64 = varying.map(|(p, gap)| gap * self.y_scale[p].ln()).sum();
        weight * self.log_jacobian() + gaps
    }
}

fn columns(
    what: &str,
    mat: MatMut<'_, f64>,
    means: &[f64],
    scales: &[f64],
    f: impl Fn(f64, f64, f64) -> f64,
) -> Result<()> {
    if mat.ncols() != means.len() || mat.ncols() != scales.len() {
        return Err(scaler_shape(what, mat.ncols(), means.len().min(scales.len())));
    }
    for (column, (&mean, &scale)) in mat.col_iter_mut().zip(means.iter().zip(scales)) {
        for value in column.iter_mut() {
            *value = f(*value, mean, scale);
        }
    }
    Ok(())
}

/// Returns the error for a scaler for other columns than the data have.
pub(super) fn scaler_shape(what: &str, expected: usize, found: usize) -> Error {
    Error::Shape {
        what: format!("{what} of the scaler"),
        expected: format!("{expected} columns"),
        found: format!("{found}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    fn data() -> (Mat<f64>, Mat<f64>) {
        let x = Mat::from_fn(40, 3, |i, j| match j {
            0 => 1e9 + (i as f64 * 0.7).sin(),
            1 => 1e-12 * (i as f64).cos(),
            _ => 4.5,
        });
        let y =
            Mat::from_fn(40, 2, |i, j| (i as f64 * 0.3 + j as f64).sin() * [2.0, 1e12][j] - 7.0);
        (x, y)
    }

    fn moments(mat: &Mat<f64>, j: usize) -> (f64, f64) {
        let column = mat.col_as_slice(j);
        let mean = column.iter().sum::<f64>() / column.len() as f64;
        let square = column.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        (mean, (square / column.len() as f64).sqrt())
    }

    #[test]
    fn columns_of_one_kind_have_one_mean_and_one_scale() {
        let x = crate::linalg::Mat::from_fn(5, 4, |i, d| match d {
            1 => 7.5,
            _ => 3.0 * d as f64 + ((i * i + d) as f64).sin(),
        });
        let y = crate::linalg::Mat::from_fn(5, 1, |i, _| i as f64);
        let statistics = Statistics::of(x.as_ref(), y.as_ref(), &[]);
        let scaler = statistics.scaler();
        let one = scaler.clone().with_one_scale(&[0, 1, 3], statistics.pooled(&[0, 1, 3]));
        let all: Vec<f64> =
            [0, 1, 3].iter().flat_map(|&d| (0..5).map(move |i| (i, d))).map(|at| x[at]).collect();
        let mean = all.iter().sum::<f64>() / 15.0;
        let scale = (all.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 15.0).sqrt();
        for d in [0, 1, 3] {
            assert!((one.x_mean[d] - mean).abs() < 1e-13 && (one.x_scale[d] - scale).abs() < 1e-13);
        }
        assert_eq!((one.x_mean[2], one.x_scale[2]), (scaler.x_mean[2], scaler.x_scale[2]));
    }

    #[test]
    fn standardised_columns_have_mean_0_and_deviation_1() {
        let (mut x, mut y) = data();
        let (original_x, original_y) = (x.clone(), y.clone());
        let scaler = Scaler::fit(x.as_ref(), y.as_ref());
        scaler.scale_x(x.as_mut()).unwrap();
        scaler.scale_y(y.as_mut()).unwrap();
        for (mat, j) in [(&x, 0), (&x, 1), (&y, 0), (&y, 1)] {
            let (mean, deviation) = moments(mat, j);
            assert!(mean.abs() < 2e-7 && (deviation - 1.0).abs() < 1e-12, "{mean} {deviation}");
        }
        assert!(x.col_as_slice(2).iter().all(|&v| v == 0.0));
        scaler.unscale_x(x.as_mut()).unwrap();
        scaler.unscale_mean(y.as_mut()).unwrap();
        for (a, b) in [(&x, &original_x), (&y, &original_y)] {
            for j in 0..a.ncols() {
                let scale = b.col_as_slice(j).iter().fold(0.0f64, |m, v| m.max(v.abs()));
                for (a, b) in a.col_as_slice(j).iter().zip(b.col_as_slice(j)) {
                    assert!((a - b).abs() <= 1e-14 * scale);
                }
            }
        }
    }

    #[test]
    fn variances_scale_squared_and_densities_by_the_jacobian() {
        let scaler = Scaler {
            x_mean: vec![],
            x_scale: vec![],
            y_mean: vec![3.0, -1.0],
            y_scale: vec![0.5, 20.0],
            y_constant: vec![],
            y_transform: vec![],
            x_log: vec![],
        };
        let mut variance = Mat::from_fn(2, 2, |i, j| (i + j + 1) as f64);
        scaler.unscale_variance(variance.as_mut()).unwrap();
        assert_eq!(variance, Mat::from_fn(2, 2, |i, j| (i + j + 1) as f64 * [0.25, 400.0][j]));
        assert!((scaler.log_jacobian() + (0.5f64 * 20.0).ln()).abs() < 1e-15);
        // log N(y; μ, v) in the targets' units from the standardised one.
        let log = |y: f64, mean: f64, v: f64| {
            -0.5 * ((std::f64::consts::TAU * v).ln() + (y - mean).powi(2) / v)
        };
        let own = log(3.7, 3.0 + 0.5 * 0.2, 0.25 * 1.5) + log(9.0, -1.0 + 20.0 * 0.1, 400.0 * 0.8);
        let standard = log((3.7 - 3.0) / 0.5, 0.2, 1.5) + log(10.0 / 20.0, 0.1, 0.8);
        assert!((standard + scaler.log_jacobian() - own).abs() < 1e-12);
    }

    #[test]
    fn identity_changes_no_bit() {
        let (mut x, y) = data();
        let before = x.clone();
        let scaler = Scaler::identity(3, 2);
        scaler.scale_x(x.as_mut()).unwrap();
        scaler.unscale_x(x.as_mut()).unwrap();
        assert_eq!(x, before);
        assert_eq!(scaler.log_jacobian(), 0.0);
        assert_eq!(y.ncols(), 2);
    }

    #[test]
    fn chunks_do_not_change_the_bits_and_merging_hardly_does() {
        let (x, y) = data();
        let mut chunked = Statistics::new(3, 2);
        let mut merged = Statistics::new(3, 2);
        for start in (0..40).step_by(7) {
            let n = 7.min(40 - start);
            let (x, y) = (x.as_ref().subrows(start, n), y.as_ref().subrows(start, n));
            chunked.add_rows(x, y);
            let mut part = Statistics::new(3, 2);
            part.add_rows(x, y);
            merged.merge(&part).unwrap();
        }
        let scaler = Scaler::fit(x.as_ref(), y.as_ref());
        assert_eq!(chunked.scaler(), scaler);
        for (a, b) in merged.scaler().x_scale.iter().zip(&scaler.x_scale) {
            assert!((a / b - 1.0).abs() < 1e-13);
        }
        assert_eq!(merged.rows(), 40);
        assert!(merged.merge(&Statistics::new(2, 3)).is_err());
    }

    #[test]
    fn constants_are_reported_and_trivial_variance_is_zero_for_them() {
        let (x, _) = data();
        let y = Mat::from_fn(40, 2, |i, j| if j == 0 { 0.3 } else { (i % 2) as f64 * 6.0 });
        let mut statistics = Statistics::new(3, 2);
        statistics.add_rows(x.as_ref(), y.as_ref());
        assert_eq!(statistics.constant_inputs(), [2]);
        assert_eq!(statistics.constant_targets(), [0]);
        assert_eq!(statistics.target_mean_and_variance(), (vec![0.3, 3.0], vec![0.0, 9.0]));
    }

    #[test]
    fn another_number_of_columns_is_refused() {
        let (mut x, mut y) = data();
        let scaler = Scaler::identity(2, 1);
        for error in [scaler.scale_x(x.as_mut()), scaler.unscale_variance(y.as_mut())] {
            let text = error.unwrap_err().to_string();
            assert!(text.contains("of the scaler: expected"), "{text}");
        }
        assert!(scaler.check(2, 1).is_ok());
        assert!(scaler.check(2, 2).unwrap_err().to_string().contains("target means of the scaler"));
        assert!(Scaler { x_scale: vec![1.0], ..scaler }.check(2, 1).is_err());
    }

    #[test]
    fn json_keeps_the_fields() {
        let (x, y) = data();
        let scaler = Scaler::fit(x.as_ref(), y.as_ref());
        let text = serde_json::to_string(&scaler).unwrap();
        let back: Scaler = serde_json::from_str(&text).unwrap();
        // serde_json without `float_roundtrip` may be off by one unit in the last place.
        for (a, b) in scaler.x_mean.iter().zip(&back.x_mean) {
            assert!((a - b).abs() <= f64::EPSILON * a.abs());
        }
        assert!(text.contains("\"y_scale\""));
    }
}

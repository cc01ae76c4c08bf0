//! Data sets made of another one.

use super::{Dataset, sample_rows, target_transform};
use crate::data::{InMemory, TargetTransform};
use crate::error::Result;
use crate::linalg::{Mat, column};

impl Dataset {
    /// Returns a data set of at most so many random rows, on the same scales.
    ///
    /// # Errors
    /// What reading the rows gives.
    pub(super) fn sampled(&self, rows: usize, seed: u64) -> Result<Self> {
        self.of_sample(sample_rows(&*self.source, rows, seed)?)
    }

    /// Returns a data set of some of its rows.
    pub(super) fn of_sample(&self, source: InMemory) -> Result<Self> {
        let count = source.x.nrows();
        let log_slope = match self.scaler.is_transformed() {
            true => target_transform::log_slope(
                &self.scaler,
                self.unscaled_targets(&source).as_ref(),
                &source.weights,
            ),
            false => 0.0,
        };
        let own = self.with_rows(source);
        Ok(Self {
            rows: count,
            log_slope,
            held_out: None,
            repeated: 0,
            warnings: Vec::new(),
            counted: self.counted.min(count),
            ..own
        })
    }

    /// Returns the targets of rows in their own units.
    fn unscaled_targets(&self, rows: &InMemory) -> Mat<f64> {
        Mat::from_fn(rows.y.nrows(), rows.y.ncols(), |i, p| self.scaler.unscaled(p, rows.y[(i, p)]))
    }

    /// Returns a data set of other rows with the same columns.
    fn with_rows(&self, rows: InMemory) -> Self {
        Self {
            source: Box::new(rows),
            scaler: self.scaler.clone(),
            input_names: self.input_names.clone(),
            columns: self.columns.clone(),
            target_names: self.target_names.clone(),
            weight_name: self.weight_name.clone(),
            total_weight: self.total_weight,
            absent: self.absent.clone(),
            log_slope: self.log_slope,
            extra_name: self.extra_name.clone(),
            classes: self.classes.clone(),
            target_mean: self.target_mean.clone(),
            target_variance: self.target_variance.clone(),
            held_out: None,
            rows: self.rows,
            isolated: self.isolated.clone(),
            rounded: self.rounded.clone(),
            repeated: self.repeated,
            deviations: None,
            warnings: self.warnings.clone(),
            part: self.part,
            cells: self.cells,
            counted: self.counted,
        }
    }

    /// Returns this data set with the logarithms of these inputs (none: the input itself) in their places, standardised: c of
    /// asinh(x/c).
    ///
    /// # Errors
    /// What reading the rows gives.
    pub(super) fn with_logarithms(&self, units: Vec<Option<f64>>) -> Result<Self> {
        let mut rows = sample_rows(&*self.source, self.source.rows(), 0)?;
        self.scaler.unscale_x(rows.x.as_mut())?;
        let mut scaler = self.scaler.clone();
        for (q, unit) in units.iter().enumerate() {
            let Some(c) = unit else { continue };
            // inputs that are not to be standardised are not
            if scaler.x_mean[q] == 0.0 && scaler.x_scale[q] == 1.0 {
                continue;
            }
            let n = rows.x.nrows() as f64;
            let logs: Vec<f64> =
                column(rows.x.as_ref(), q).iter().map(|x| (x / c).asinh()).collect();
            let mean = logs.iter().sum::<f64>() / n;
            let square = logs.iter().map(|u| (u - mean).powi(2)).sum::<f64>() / n;
            scaler.x_mean[q] = mean;
            scaler.x_scale[q] = if square > 0.0 { square.sqrt() } else { 1.0 };
        }
        scaler.x_log = units;
        scaler.scale_x(rows.x.as_mut())?;
        Ok(Self { scaler, ..self.with_rows(rows) })
    }

    /// Returns this data set with these functions of its targets (none: the target itself) in their places, standardised.
    ///
    /// # Errors
    /// What reading the rows gives.
    pub(super) fn transformed(&self, transforms: Vec<Option<TargetTransform>>) -> Result<Self> {
        let mut rows = sample_rows(&*self.source, self.source.rows(), 0)?;
        rows.y = self.unscaled_targets(&rows);
        let mut scaler = self.scaler.clone();
        let weight = |i: usize| rows.weights.get(i).copied().unwrap_or(1.0);
        for (p, transform) in transforms.iter().enumerate() {
            let Some(transform) = transform else { continue };
            let known = column(rows.y.as_ref(), p).iter().enumerate().filter(|(_, y)| !y.is_nan());
            let values: Vec<(f64, f64)> =
                known.map(|(i, y)| (weight(i), transform.of(*y))).collect();
            let total: f64 = values.iter().map(|(w, _)| w).sum();
            let mean = values.iter().map(|(w, g)| w * g).sum::<f64>() / total;
            let square = values.iter().map(|(w, g)| w * (g - mean).powi(2)).sum::<f64>() / total;
            // targets that are not to be standardised are not
            if scaler.y_mean[p] != 0.0 || scaler.y_scale[p] != 1.0 {
                scaler.y_mean[p] = mean;
                scaler.y_scale[p] = if square > 0.0 { square.sqrt() } else { 1.0 };
            }
        }
        scaler.y_transform = transforms;
        let log_slope = target_transform::log_slope(&scaler, rows.y.as_ref(), &rows.weights);
        scaler.scale_y(rows.y.as_mut())?;
        Ok(Self { scaler, log_slope, ..self.with_rows(rows) })
    }
}

//! Means, spreads and isolated values of the columns of a table.

use super::fingerprint::Fingerprint;
use super::isolated::{Isolated, Sketch};
use super::moments::Moments;
use super::scaler::{Scaler, scaler_shape};
use crate::error::{Error, Result};
use faer::MatRef;
use serde::{Deserialize, Serialize};

/// Running means and standard deviations of all columns: one pass, in order, so that the result does
/// not depend on the size of the chunks; states of different parts of the data can be merged.
/// Where rows have weights, a row of weight w counts as w equal rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    inputs: usize,
    columns: Vec<Moments>,
    sketch: Sketch,
    cells: Fingerprint,
    /// Rows of a weight above 0.
    counted: usize,
    /// Isolated values, and the moments without them, once they have been looked for.
    isolated: Vec<Isolated>,
    bodies: Vec<Moments>,
}

impl Statistics {
    /// Creates statistics of no rows yet.
    pub fn new(inputs: usize, outputs: usize) -> Self {
        Self {
            inputs,
            columns: vec![Moments::default(); inputs + outputs],
            sketch: Sketch::new(inputs + outputs),
            cells: Fingerprint::new(inputs + outputs),
            counted: 0,
            isolated: Vec::new(),
            bodies: Vec::new(),
        }
    }

    /// Creates the statistics of rows in memory, with their isolated values: inputs (N×D), targets
    /// (N×P), NaN where a target is missing, and weights (N, or none).
    pub fn of(x: MatRef<'_, f64>, y: MatRef<'_, f64>, weights: &[f64]) -> Self {
        let mut statistics = Self::new(x.ncols(), y.ncols());
        statistics.add_weighted(x, y, weights);
        if statistics.find_isolated() {
            let mut bodies = statistics.without_isolated();
            bodies.add_weighted(x, y, weights);
            statistics.set_bodies(bodies);
        }
        statistics
    }

    /// Adds rows: inputs (N×D) and targets (N×P), NaN where a target is missing. Surplus columns are not
    /// looked at.
    pub fn add_rows(&mut self, x: MatRef<'_, f64>, y: MatRef<'_, f64>) {
        self.add_weighted(x, y, &[]);
    }

    /// Adds rows with weights (N, or none where all are 1).
    pub fn add_weighted(&mut self, x: MatRef<'_, f64>, y: MatRef<'_, f64>, weights: &[f64]) {
        let inputs = self.inputs.min(x.ncols());
        let value = |j: usize, i: usize| if j < inputs { x[(i, j)] } else { y[(i, j - inputs)] };
        self.add(x.nrows(), value, weights);
        self.cells.add_rows(x, y, weights);
    }

    /// Adds rows given as columns: inputs, then targets; `weight` is the index of the column of weights, and what else follows
    /// are further numbers.
    #[cfg(feature = "tables")]
    pub(super) fn add_columns(&mut self, columns: &[Vec<f64>], weight: Option<usize>) {
        let rows = columns.first().map_or(0, Vec::len);
        let weights = weight.map_or(&[][..], |j| &columns[j]);
        self.add(rows, |j, i| columns[j][i], weights);
        self.cells.add_columns(columns, weight);
    }

    /// Takes note of the further numbers of the rows that were added last.
    pub fn add_extra(&mut self, extra: &[f64]) {
        self.cells.add_extra(extra);
    }

    fn add(&mut self, rows: usize, value: impl Fn(usize, usize) -> f64, weights: &[f64]) {
        let out = weights.iter().filter(|weight| **weight <= 0.0).count();
        self.counted += rows - out.min(rows);
        for (j, moments) in self.columns.iter_mut().enumerate() {
            for i in 0..rows {
                let v = value(j, i);
                if !v.is_nan() {
                    moments.push_weighted(v, weights.get(i).copied().unwrap_or(1.0));
                }
            }
        }
        self.sketch.add_rows(rows, value);
    }

    /// Looks for isolated values among the rows seen. Where there are some, a second pass over the rows has to tell the
    /// moments of all others ([`Statistics::without_isolated`]).
    pub(super) fn find_isolated(&mut self) -> bool {
        self.isolated = self.sketch.isolated(self.inputs);
        !self.isolated.is_empty()
    }

    /// Creates the statistics of several parts of the rows together, in their order. Where
    /// [`Statistics::isolated`] then has some, a second pass has to tell the moments of the others:
    /// [`Statistics::without_isolated`], [`Statistics::set_bodies`].
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for no parts, [`Error::Shape`](crate::Error::Shape) for parts of different
    /// columns.
    pub fn gathered(parts: impl Iterator<Item = Self>) -> Result<Self> {
        let mut all = Self::merged(parts)?;
        all.find_isolated();
        Ok(all)
    }

    /// Returns them as bytes, to be sent.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid), which is a bug.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        postcard::to_stdvec(self)
            .map_err(|e| Error::Invalid(format!("statistics cannot be written: {e}")))
    }

    /// Creates statistics from the bytes of [`Statistics::to_bytes`] of the same release.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let own: Self = postcard::from_bytes(bytes)
            .map_err(|e| Error::Invalid(format!("statistics cannot be read: {e}")))?;
        let count = own.columns.len();
        let known = |isolated: &Isolated| {
            let columns = if isolated.target { count - own.inputs } else { own.inputs };
            isolated.column < columns
        };
        let fits = own.inputs <= count
            && (own.bodies.is_empty() || own.bodies.len() == count)
            && own.sketch.fits(count)
            && own.cells.fits(count)
            && own.isolated.iter().all(known);
        match fits {
            true => Ok(own),
            false => Err(Error::Invalid("statistics cannot be read: they are damaged".into())),
        }
    }

    /// Creates the sums of several parts of the rows, in their order.
    ///
    /// # Errors
    /// As for [`Statistics::gathered`].
    pub fn merged(mut parts: impl Iterator<Item = Self>) -> Result<Self> {
        let none = || Error::Invalid("there are no rows".into());
        let mut all = parts.next().ok_or_else(none)?;
        parts.try_for_each(|part| all.merge(&part))?;
        Ok(all)
    }

    /// Returns statistics for a second pass over the same rows, which looks at no isolated values.
    pub fn without_isolated(&self) -> Self {
        let mut bodies = Self::new(self.inputs, self.columns.len() - self.inputs);
        for own in &self.isolated {
            let j = if own.target { self.inputs + own.column } else { own.column };
            bodies.columns[j] = Moments::within(own.body);
        }
        bodies
    }

    /// Takes what the second pass has found.
    pub fn set_bodies(&mut self, bodies: Self) {
        self.bodies = bodies.columns;
    }

    /// Returns values that lie far from all others of their column, where they were looked for.
    pub fn isolated(&self) -> &[Isolated] {
        &self.isolated
    }

    /// Returns for every column the part of the variance that lies between stretches of these
    /// means.
    #[cfg(feature = "tables")]
    pub(super) fn drifts(&self, means: &[Moments]) -> Vec<f64> {
        let drift = |(all, means): (&Moments, &Moments)| match all.is_constant() {
            true => 0.0,
            false => means.squares() / all.squares(),
        };
        self.columns.iter().zip(means).map(drift).collect()
    }

    /// Adds the rows that another state has seen.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the numbers of columns differ.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        let (n, m) = (self.columns.len(), other.columns.len());
        if n != m || self.inputs != other.inputs {
            return Err(scaler_shape("columns", n, m));
        }
        self.columns.iter_mut().zip(&other.columns).for_each(|(a, b)| a.merge(b));
        self.sketch.merge(&other.sketch);
        self.cells.merge(&other.cells);
        self.counted += other.counted;
        (self.isolated, self.bodies) = (Vec::new(), Vec::new());
        Ok(())
    }

    /// Returns the fingerprint of all cells, weights and further numbers.
    pub fn cells(&self) -> &Fingerprint {
        &self.cells
    }

    /// Returns the number of rows seen.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |moments| moments.count() as usize)
    }

    /// Returns the number of rows of a weight above 0.
    pub fn counted(&self) -> usize {
        self.counted
    }

    /// Returns the sum of the weights of the rows.
    pub fn total_weight(&self) -> f64 {
        self.columns.first().map_or(0.0, Moments::weight)
    }

    /// Returns the number of rows in which each target is not missing.
    pub fn present_targets(&self) -> Vec<usize> {
        self.columns[self.inputs..].iter().map(|moments| moments.count() as usize).collect()
    }

    /// Returns of every target the sum of the weights of the rows in which it is missing; nothing where none is.
    pub fn absent_weights(&self) -> Vec<f64> {
        let all = self.rows() as u64;
        let weight = |own: &Moments| match own.count() == all {
            true => 0.0,
            false => (self.total_weight() - own.weight()).max(0.0),
        };
        let absent: Vec<f64> = self.columns[self.inputs..].iter().map(weight).collect();
        if absent.iter().any(|&weight| weight > 0.0) { absent } else { Vec::new() }
    }

    /// Returns the scaler that gives these rows mean 0 and standard deviation 1, inputs without
    /// their isolated values. Inputs of two values differ by 2 instead, whatever the number of rows
    /// that have either.
    pub fn scaler(&self) -> Scaler {
        let (inputs, outputs) = (self.bodies(0..self.inputs), &self.columns[self.inputs..]);
        Scaler {
            x_mean: inputs.iter().map(Moments::mean).collect(),
            x_scale: inputs.iter().map(Moments::spread).collect(),
            y_mean: outputs.iter().map(Moments::mean).collect(),
            y_scale: outputs.iter().map(Moments::scale).collect(),
            y_constant: Vec::new(),
            y_transform: Vec::new(),
            x_log: Vec::new(),
        }
    }

    /// Returns the same, targets without their isolated values too.
    pub fn robust_scaler(&self) -> Scaler {
        let targets = self.bodies(self.inputs..self.columns.len());
        Scaler {
            y_mean: targets.iter().map(Moments::mean).collect(),
            y_scale: targets.iter().map(Moments::scale).collect(),
            ..self.scaler()
        }
    }

    /// Returns mean and standard deviation of all values of these inputs together; 1 for a constant.
    pub fn pooled(&self, inputs: &[usize]) -> (f64, f64) {
        let all = self.bodies(0..self.inputs);
        let share = 1.0 / inputs.len().max(1) as f64;
        let mean: f64 = inputs.iter().map(|&d| share * all[d].mean()).sum();
        let square = |d: usize| all[d].deviation().hypot(all[d].mean() - mean).powi(2);
        let scale = inputs.iter().map(|&d| share * square(d)).sum::<f64>().sqrt();
        (mean, if scale > 0.0 { scale } else { 1.0 })
    }

    fn bodies(&self, range: std::ops::Range<usize>) -> &[Moments] {
        if self.bodies.is_empty() { &self.columns[range] } else { &self.bodies[range] }
    }

    /// Returns the mean and population variance of each target, 0 for a constant: the trivial model
    /// that the MSLL of [`crate::metrics`] compares with.
    pub fn target_mean_and_variance(&self) -> (Vec<f64>, Vec<f64>) {
        let variance = |moments: &Moments| match moments.is_constant() {
            true => 0.0,
            false => moments.scale().powi(2),
        };
        let targets = &self.columns[self.inputs..];
        (targets.iter().map(Moments::mean).collect(), targets.iter().map(variance).collect())
    }

    /// Returns the indices of the inputs that have the same value in all rows: they tell a model
    /// nothing.
    pub fn constant_inputs(&self) -> Vec<usize> {
        constant(&self.columns[..self.inputs])
    }

    /// Returns the smallest and the largest value of an input.
    pub(crate) fn input_range(&self, input: usize) -> (f64, f64) {
        self.columns[input].range()
    }

    /// Returns the indices of the targets that have the same value in all rows.
    pub fn constant_targets(&self) -> Vec<usize> {
        constant(&self.columns[self.inputs..])
    }
}

impl Statistics {
    /// Returns the indices of the inputs whose values differ by nothing but rounding: by less than
    /// 64 units in the last place of the largest, with their spread. They are not scaled up.
    pub fn rounded_inputs(&self) -> Vec<(usize, f64)> {
        let inputs = self.bodies(0..self.inputs).iter().enumerate();
        inputs.filter_map(|(j, own)| own.rounding().map(|spread| (j, spread))).collect()
    }
}

fn constant(columns: &[Moments]) -> Vec<usize> {
    (0..columns.len()).filter(|&j| columns[j].is_constant()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    #[test]
    fn weights_count_as_repeated_rows() {
        let x = Mat::from_fn(40, 2, |i, j| 1e3 + (i as f64 * 0.7 + j as f64).sin() * 5.0);
        let y = Mat::from_fn(40, 1, |i, _| (i as f64 * 0.3).cos().exp());
        let times: Vec<usize> = (0..40).map(|i| [2, 0, 1, 5][i % 4]).collect();
        let rows: Vec<usize> = (0..40).flat_map(|i| std::iter::repeat_n(i, times[i])).collect();
        let many = |a: &Mat<f64>| Mat::from_fn(rows.len(), a.ncols(), |i, j| a[(rows[i], j)]);
        let weights: Vec<f64> = times.iter().map(|&t| t as f64).collect();
        let weighted = Statistics::of(x.as_ref(), y.as_ref(), &weights).scaler();
        let repeated = Statistics::of(many(&x).as_ref(), many(&y).as_ref(), &[]).scaler();
        for (a, b) in [
            (&weighted.x_mean, &repeated.x_mean),
            (&weighted.x_scale, &repeated.x_scale),
            (&weighted.y_mean, &repeated.y_mean),
            (&weighted.y_scale, &repeated.y_scale),
        ] {
            a.iter().zip(b).for_each(|(a, b)| assert!((a / b - 1.0).abs() < 1e-13, "{a} {b}"));
        }
    }

    #[test]
    fn isolated_values_have_no_part_in_the_scale_of_inputs() {
        let value = |i: usize| (i as f64 * 0.61).fract() * 30.0;
        let x = Mat::from_fn(300, 1, |i, _| if i % 100 == 3 { -999.0 } else { value(i) });
        let y = Mat::from_fn(300, 1, |i, _| if i == 17 { 1e9 } else { value(i) });
        let statistics = Statistics::of(x.as_ref(), y.as_ref(), &[]);
        let found: Vec<_> =
            statistics.isolated().iter().map(|own| (own.target, own.values.clone())).collect();
        assert_eq!(found, [(false, vec![(-999.0, 3)]), (true, vec![(1e9, 1)])]);
        let by_hand = |gone: &dyn Fn(usize) -> bool| {
            let kept: Vec<f64> = (0..300).filter(|&i| !gone(i)).map(value).collect();
            let mean = kept.iter().sum::<f64>() / kept.len() as f64;
            let squares: f64 = kept.iter().map(|v| (v - mean).powi(2)).sum();
            (mean, (squares / kept.len() as f64).sqrt())
        };
        let (plain, robust) = (statistics.scaler(), statistics.robust_scaler());
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-13, "{a} {b}");
        let (mean, scale) = by_hand(&|i| i % 100 == 3);
        close(plain.x_mean[0], mean);
        close(plain.x_scale[0], scale);
        assert!(plain.y_scale[0] > 1e7);
        let (mean, scale) = by_hand(&|i| i == 17);
        close(robust.y_mean[0], mean);
        close(robust.y_scale[0], scale);
    }

    #[test]
    fn rounding_is_not_scaled_up() {
        let x = Mat::from_fn(50, 2, |i, j| {
            let spread = (i as f64 * 0.61).fract() - 0.5;
            if j == 0 { 1e6 + 4e-9 * spread } else { 1e6 + 1e-6 * spread }
        });
        let statistics = Statistics::of(x.as_ref(), Mat::zeros(50, 0).as_ref(), &[]);
        let rounded: Vec<usize> = statistics.rounded_inputs().iter().map(|own| own.0).collect();
        assert_eq!(rounded, [0]);
        assert_eq!(statistics.scaler().x_scale[0], 1.0);
        assert!(statistics.scaler().x_scale[1] < 1e-6);
    }
}

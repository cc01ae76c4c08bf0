//! Effects of single columns as curves.

use super::background::{Column, Explainer, Kind};
use crate::error::Result;
use crate::linalg::Mat;
use crate::rng::stream;
use rayon::prelude::*;

/// Shares of the rows between which curves run.
const ENDS: (f64, f64) = (0.025, 0.975);
/// Ends of the intervals.
const LEVELS: [f64; 2] = [0.025, 0.975];

/// The effect of a column on every response.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Which column.
    pub column: usize,
    /// Its values; of categories their places 0, 1, … in `labels`.
    pub at: Vec<f64>,
    /// Of categories their labels; else empty.
    pub labels: Vec<String>,
    /// Whether the effect is centred: its mean over the rows is 0.
    pub centred: bool,
    /// K×Q.
    pub mean: Mat<f64>,
    /// Lower ends of the 95 % intervals, K×Q.
    pub lower: Mat<f64>,
    /// Upper ends, K×Q.
    pub upper: Mat<f64>,
}

/// Sums of responses at rows with coefficients: what a curve is made of, at each of its values.
struct Average {
    /// Different rows.
    rows: Mat<f64>,
    /// Sparse, for every value of the curve: which row, and its coefficient.
    terms: Vec<Vec<(usize, f64)>>,
}

/// Returns the level of sorted values, linearly between two.
pub(super) fn quantile(sorted: &[f64], level: f64) -> f64 {
    let at = level * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (at - below as f64) * (sorted[above] - sorted[below])
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut own = values.to_vec();
    own.sort_by(f64::total_cmp);
    own
}

/// Returns the distinct rows: those that occur several times are drawn once, as their covariance
/// would be singular.
fn distinct(rows: &Mat<f64>) -> (Mat<f64>, Vec<usize>) {
    let mut known = std::collections::HashMap::new();
    let mut first = Vec::new();
    let mut which = Vec::with_capacity(rows.nrows());
    for i in 0..rows.nrows() {
        let bits: Vec<u64> = (0..rows.ncols()).map(|q| (rows[(i, q)] + 0.0).to_bits()).collect();
        which.push(*known.entry(bits).or_insert_with(|| {
            first.push(i);
            first.len() - 1
        }));
    }
    (Mat::from_fn(first.len(), rows.ncols(), |i, q| rows[(first[i], q)]), which)
}

impl Average {
    /// Creates the average of rows and coefficients over them, some of which may be the same row.
    fn new(rows: &Mat<f64>, terms: Vec<Vec<(usize, f64)>>) -> Self {
        let (rows, which) = distinct(rows);
        let of = |own: Vec<(usize, f64)>| own.into_iter().map(|(i, w)| (which[i], w)).collect();
        Self { rows, terms: terms.into_iter().map(of).collect() }
    }

    /// Returns the averages, K×Q.
    fn of(&self, responses: &Mat<f64>) -> Mat<f64> {
        Mat::from_fn(self.terms.len(), responses.ncols(), |k, c| {
            self.terms[k].iter().map(|(i, w)| w * responses[(*i, c)]).sum()
        })
    }
}

impl Explainer<'_> {
    /// Returns the partial dependence on a column (Friedman 2001, §8.2): at each of its values the mean of what is expected of
    /// all rows, had they this value. Values that do not go with the rest of a row are asked for too: where columns depend
    /// on each other, see [`Explainer::accumulated`].
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a column that is not there; what draws of the posterior give.
    pub fn partial(&self, column: usize) -> Result<Curve> {
        let own = self.column(column)?;
        let values = self.values(own);
        let weight = 1.0 / self.rows.nrows() as f64;
        let parts = values
            .par_iter()
            .enumerate()
            .map(|(k, value)| {
                let mut rows = self.rows.clone();
                set(&mut rows, own, value);
                let all = vec![(0..rows.nrows()).map(|i| (i, weight)).collect()];
                self.averages(&Average::new(&rows, all), &format!("explain/{column}/{k}"))
            })
            .collect::<Result<Vec<_>>>()?;
        let responses = parts[0][0].ncols();
        let stacked =
            |which: usize| Mat::from_fn(parts.len(), responses, |k, c| parts[k][which][(0, c)]);
        let levels = own.kind == Kind::Levels;
        let labels = match levels {
            true => values.iter().map(|value| own.label(value)).collect(),
            false => Vec::new(),
        };
        let at = |(k, value): (usize, &Vec<f64>)| if levels { k as f64 } else { value[0] };
        Ok(Curve {
            column,
            at: values.iter().enumerate().map(at).collect(),
            labels,
            centred: false,
            mean: stacked(0),
            lower: stacked(1),
            upper: stacked(2),
        })
    }

    /// Returns the accumulated local effects of a column of numbers (Apley & Zhu 2020, Eqs. 15 and 16): between two neighbouring
    /// values only rows that lie there are moved, so that none gets a value which does not go with the rest of it. Their
    /// mean over the rows is 0. Categories have no order: theirs is the partial dependence.
    ///
    /// # Errors
    /// As for [`Explainer::partial`].
    pub fn accumulated(&self, column: usize) -> Result<Curve> {
        let own = self.column(column)?;
        let input = own.inputs.start;
        let ordered = sorted(self.rows.col_as_slice(input));
        if own.kind == Kind::Levels {
            return self.partial(column);
        }
        if ordered[0] == ordered[ordered.len() - 1] {
            let none = Mat::zeros(1, self.responses().len());
            let [mean, lower, upper] = [none.clone(), none.clone(), none];
            let (at, labels) = (vec![ordered[0]], Vec::new());
            return Ok(Curve { column, at, labels, centred: true, mean, lower, upper });
        }
        // values of rows, so that each lies behind some row and no bin is empty
        let last = self.options.points - 1;
        let level = |k: usize| ordered[(k * ordered.len()).div_ceil(last).max(1) - 1];
        let mut ends: Vec<f64> = (0..=last).map(level).collect();
        ends.dedup();
        let (n, bins) = (self.rows.nrows(), ends.len() - 1);
        let bin = |x: f64| ends[1..bins].partition_point(|end| *end < x);
        let of: Vec<usize> = (0..n).map(|i| bin(self.rows[(i, input)])).collect();
        let mut count = vec![0.0; bins];
        of.iter().for_each(|k| count[*k] += 1.0);
        // rows at the lower ends of their bins, then at the upper ones
        let rows = Mat::from_fn(2 * n, self.rows.ncols(), |i, q| match q == input {
            true => ends[of[i % n] + i / n],
            false => self.rows[(i % n, q)],
        });
        // the steps of the bins before a value, less the mean of that over the rows, linearly within bins
        let mut after: Vec<f64> = (0..bins).map(|k| count[k + 1..].iter().sum::<f64>()).collect();
        for (i, k) in of.iter().enumerate() {
            after[*k] += (self.rows[(i, input)] - ends[*k]) / (ends[k + 1] - ends[*k]);
        }
        after.iter_mut().for_each(|rows| *rows /= n as f64);
        let terms = (0..=bins).map(|value| {
            let step = |i: usize| {
                let (k, size) = (of[i], 1.0 / count[of[i]]);
                size * (f64::from(k < value) - after[k])
            };
            (0..n).flat_map(|i| [(i, -step(i)), (n + i, step(i))]).collect()
        });
        let average = Average::new(&rows, terms.collect());
        let [mean, lower, upper] = self.averages(&average, &format!("explain/{column}"))?;
        Ok(Curve { column, at: ends, labels: Vec::new(), centred: true, mean, lower, upper })
    }

    /// Returns the means and ends of intervals, K×Q each.
    fn averages(&self, average: &Average, name: &str) -> Result<[Mat<f64>; 3]> {
        let rows = self.inputs(&average.rows);
        let mean = average.of(&self.fitted.predict_responses(rows.as_ref())?);
        let mut rng = stream(self.options.seed, name);
        let drawn = self.fitted.sample_responses(rows.as_ref(), self.options.draws, &mut rng)?;
        let drawn: Vec<Mat<f64>> = drawn.iter().map(|own| average.of(own)).collect();
        let ends = |level: f64| {
            Mat::from_fn(mean.nrows(), mean.ncols(), |k, c| {
                let all: Vec<f64> = drawn.iter().map(|own| own[(k, c)]).collect();
                quantile(&sorted(&all), level)
            })
        };
        let [lower, upper] = LEVELS.map(ends);
        Ok([mean, lower, upper])
    }

    /// Returns the values of a column at which partial dependence is evaluated, as inputs.
    fn values(&self, column: &Column) -> Vec<Vec<f64>> {
        let own = |i: usize| column.inputs.clone().map(|q| self.all[(i, q)]).collect::<Vec<_>>();
        let mut all: Vec<Vec<f64>> = (0..self.all.nrows()).map(own).collect();
        // indicators of the first category come first
        let places = |a: &f64, b: &f64| b.total_cmp(a);
        match column.inputs.len() {
            1 => all.sort_by(|a, b| a[0].total_cmp(&b[0])),
            _ => all.sort_by(|a, b| {
                let pairs = a.iter().zip(b).map(|(a, b)| places(a, b));
                pairs.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
            }),
        }
        let ordered: Vec<f64> = all.iter().map(|value| value[0]).collect();
        all.dedup();
        if column.kind == Kind::Levels || all.len() <= self.options.points {
            return all;
        }
        let (low, high) = (quantile(&ordered, ENDS.0), quantile(&ordered, ENDS.1));
        let (low, high) = match low < high {
            true => (low, high),
            // nearly all rows have one value
            false => (ordered[0], ordered[ordered.len() - 1]),
        };
        let step = (high - low) / (self.options.points - 1) as f64;
        (0..self.options.points).map(|k| vec![low + step * k as f64]).collect()
    }
}

/// Gives all rows the same value of a column.
fn set(rows: &mut Mat<f64>, column: &Column, value: &[f64]) {
    for (q, v) in column.inputs.clone().zip(value) {
        rows.col_as_slice_mut(q).fill(*v);
    }
}

//! Initial inducing points Z chosen from rows of the inputs.
//!
//! Rows are N×D in memory; for very large N pass a random subsample. Every selector gives distinct
//! points, because two equal ones make Kuu singular, and the same points for the same seed whatever
//! the number of threads.

mod cloud;
mod greedy_variance;
mod kmeans;
mod lloyd;
mod random;
#[cfg(test)]
mod test_data;

pub use greedy_variance::{DEFAULT_TOLERANCE, greedy_variance};
pub use kmeans::kmeans;
pub use random::random;

use crate::error::{Error, Result, nearest};
use crate::rng;
use faer::{Mat, MatRef};
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

/// Chosen inducing points.
#[derive(Clone, Debug, PartialEq)]
pub struct Selected {
    /// The points, at most `requested`×D.
    pub points: Mat<f64>,
    /// How many were asked for.
    pub requested: usize,
    /// What the user should know, for instance why there are fewer points.
    pub note: Option<String>,
    /// tr(Kff − Qff) that the points leave unexplained, from the selectors that know it.
    pub trace_left: Option<f64>,
}

/// How to choose the inducing points.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Selection {
    /// Random distinct rows, see [`random`](fn@random).
    Random,
    /// Centres of clusters, see [`kmeans`](fn@kmeans).
    #[default]
    KMeans,
    /// Rows of greatest conditional variance, see [`greedy_variance`](fn@greedy_variance).
    GreedyVariance,
    /// These points.
    Given(Mat<f64>),
}

/// What [`Selection::GreedyVariance`] asks of a kernel.
pub struct Prior<'a> {
    /// k(xᵢ, xᵢ) for the N rows.
    pub diag: &'a [f64],
    /// k(X, xᵢ) for a row i: N values.
    pub column: &'a mut dyn FnMut(usize) -> Result<Vec<f64>>,
}

const NAMES: [&str; 3] = ["random", "kmeans", "greedy-variance"];

impl Selection {
    /// Chooses `m` points from the rows of `x` (N×D) with the stream `inducing` of `seed`. Only
    /// [`Selection::GreedyVariance`] needs the prior; [`Selection::Given`] ignores `m`.
    ///
    /// # Errors
    /// [`Error::Invalid`] without rows, columns or points, or without a prior where one is needed;
    /// [`Error::NonFinite`] for a NaN or an infinity in `x`; [`Error::Shape`] if given points have
    /// another number of columns; errors of the prior.
    pub fn choose(
        &self,
        x: MatRef<'_, f64>,
        m: usize,
        seed: u64,
        prior: Option<Prior<'_>>,
    ) -> Result<Selected> {
        let generator = &mut rng::stream(seed, "inducing");
        match self {
            Selection::Random => random(x, m, generator),
            Selection::KMeans => kmeans(x, m, generator),
            Selection::GreedyVariance => match prior {
                Some(Prior { diag, column }) => {
                    greedy_variance(x, m, diag, column, DEFAULT_TOLERANCE)
                }
                None => Err(Error::Invalid(
                    "the selection `greedy-variance` needs a kernel; use `kmeans` or `random` without one".into(),
                )),
            },
            Selection::Given(points) => given(x, points),
        }
    }
}

fn given(x: MatRef<'_, f64>, points: &Mat<f64>) -> Result<Selected> {
    if points.ncols() != x.ncols() {
        return Err(Error::Shape {
            what: "inducing points".into(),
            expected: format!("{} columns, as many as the inputs have", x.ncols()),
            found: format!("{} columns", points.ncols()),
        });
    }
    check(points.as_ref(), points.nrows(), "inducing points")?;
    let requested = points.nrows();
    let distinct = distinct_rows(points.as_ref(), requested).len();
    let note = (distinct < requested)
        .then(|| format!("only {distinct} of the {requested} given inducing points are distinct"));
    Ok(Selected { points: points.clone(), requested, note, trace_left: None })
}

impl FromStr for Selection {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self> {
        match name {
            "random" => Ok(Selection::Random),
            "kmeans" => Ok(Selection::KMeans),
            "greedy-variance" => Ok(Selection::GreedyVariance),
            _ => Err(Error::Invalid(format!(
                "unknown selection of inducing points `{name}`; did you mean `{}`? Possible are {}",
                nearest(name, NAMES).swap_remove(0),
                NAMES.map(|name| format!("`{name}`")).join(", ")
            ))),
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Selection::Random => "random",
            Selection::KMeans => "kmeans",
            Selection::GreedyVariance => "greedy-variance",
            Selection::Given(_) => "given",
        })
    }
}

/// What every selector needs: rows, columns, at least one point, finite numbers.
fn check(x: MatRef<'_, f64>, m: usize, what: &str) -> Result<()> {
    if x.nrows() == 0 || x.ncols() == 0 {
        return Err(Error::Invalid(format!(
            "inducing points need data, but {what} are {}×{}",
            x.nrows(),
            x.ncols()
        )));
    }
    if m == 0 {
        return Err(Error::Invalid("at least one inducing point is needed, found 0".into()));
    }
    for column in 0..x.ncols() {
        for row in 0..x.nrows() {
            let value = x[(row, column)];
            if !value.is_finite() {
                let what = format!("{what}, row {}, column {},", row + 1, column + 1);
                return Err(Error::NonFinite { what, value });
            }
        }
    }
    Ok(())
}

/// A row as a key of equality of values (0 and −0 are equal).
fn key(x: MatRef<'_, f64>, row: usize) -> Vec<u64> {
    (0..x.ncols()).map(|column| (x[(row, column)] + 0.0).to_bits()).collect()
}

/// First occurrences of distinct rows, in order; stops after `limit` + 1.
fn distinct_rows(x: MatRef<'_, f64>, limit: usize) -> Vec<usize> {
    let mut seen = HashSet::new();
    (0..x.nrows()).filter(|&row| seen.insert(key(x, row))).take(limit.saturating_add(1)).collect()
}

/// The rows of `x` with these indices.
fn gather(x: MatRef<'_, f64>, indices: &[usize]) -> Mat<f64> {
    Mat::from_fn(indices.len(), x.ncols(), |i, j| x[(indices[i], j)])
}

/// All distinct rows, if there are no more than `m`.
fn few_rows(x: MatRef<'_, f64>, m: usize, distinct: &[usize]) -> Option<Selected> {
    (distinct.len() <= m).then(|| Selected {
        points: gather(x, distinct),
        requested: m,
        note: (distinct.len() < m).then(|| {
            format!(
                "{m} inducing points were asked for, but only {} of the {} rows are distinct: all of them are used",
                distinct.len(),
                x.nrows()
            )
        }),
        trace_left: None,
    })
}

#[cfg(test)]
mod tests;

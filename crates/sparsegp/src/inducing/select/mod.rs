//! Initial inducing points Z chosen from rows of the inputs.
//!
//! Rows are N×D in memory; for very large N pass a random subsample. Every selector gives distinct
//! points, because two equal ones make Kuu singular, and the same points for the same seed whatever
//! the number of threads.

mod cloud;
mod greedy_elbo;
mod greedy_variance;
mod grid;
mod kdpp;
mod kmeans;
mod lloyd;
pub mod oips;
#[cfg(test)]
mod oips_tests;
mod pivoted;
mod random;
#[cfg(test)]
mod test_data;

pub use greedy_elbo::{DEFAULT_CANDIDATES, Targets, greedy_elbo};
pub use greedy_variance::{DEFAULT_TOLERANCE, greedy_traces, greedy_variance};
pub use grid::{AdaptiveGrid, grid};
pub use kdpp::{MOST_POINTS as MOST_POINTS_KDPP, kdpp, kdpp_draw, kdpp_log_probability};
pub use kmeans::{Clustered, kmeans, kmeans_from, kmeans_seeds};
pub use random::random;

use crate::error::{Error, Result, nearest};
use crate::rng;
use faer::{Mat, MatRef};
use rand_chacha::ChaCha8Rng;
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
    /// Rows that raise the collapsed bound most, see [`greedy_elbo`](fn@greedy_elbo).
    GreedyElbo,
    /// Rows that repel each other, see [`kdpp`](fn@kdpp).
    KDpp,
    /// The nodes of a grid, see [`grid`](fn@grid).
    Grid,
    /// Rows in their order, none of which has a prior correlation of this or more with an earlier one, see [`oips`](oips::oips).
    Oips(f64),
    /// These points.
    Given(Mat<f64>),
}

/// Gives columns of K(X): k(X, xᵢ) for every row i of a list, N×(length of the list).
pub type Columns<'a> = &'a mut dyn FnMut(&[usize]) -> Result<Mat<f64>>;

/// What [`Selection::GreedyVariance`], [`Selection::GreedyElbo`], [`Selection::KDpp`] and [`Selection::Oips`] ask of a model.
pub struct Prior<'a> {
    /// k(xᵢ, xᵢ) for the N rows.
    pub diag: &'a [f64],
    /// Columns of K(X).
    pub columns: Columns<'a>,
    /// What there is to learn, for [`Selection::GreedyElbo`]; none unless the noise is Gaussian and the same for all
    /// rows.
    pub targets: Option<Targets<'a>>,
}

/// The selections that a name is enough for.
const NAMED: [(&str, Selection); 7] = [
    ("random", Selection::Random),
    ("kmeans", Selection::KMeans),
    ("greedy-variance", Selection::GreedyVariance),
    ("greedy-elbo", Selection::GreedyElbo),
    ("k-dpp", Selection::KDpp),
    ("grid", Selection::Grid),
    ("oips", Selection::Oips(oips::DEFAULT_RHO)),
];

impl Selection {
    /// Returns the names of the selections that a name is enough for.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMED.iter().map(|(name, _)| *name)
    }

    /// Returns whether it asks for the [`Prior`].
    pub fn needs_prior(&self) -> bool {
        matches!(self, Self::GreedyVariance | Self::GreedyElbo | Self::KDpp | Self::Oips(_))
    }

    /// Returns whether the points depend on the lengthscales of the kernel, apart from their common scale.
    pub fn is_placed_by_lengthscales(&self) -> bool {
        self.needs_prior() || matches!(self, Self::KMeans | Self::Grid)
    }

    /// Chooses `m` points from the rows of `x` (N×D) with the stream `inducing` of `seed`.
    /// [`Selection::Given`] ignores `m`.
    ///
    /// # Errors
    /// [`Error::Invalid`] without rows, columns or points, without a prior where one is needed, and for
    /// [`Selection::GreedyElbo`] without targets;
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
            Selection::Grid => grid(x, m),
            Selection::Given(points) => given(x, points),
            _ => match prior {
                Some(prior) => self.by_prior(x, m, generator, prior),
                None => Err(Error::Invalid(format!(
                    "the selection `{self}` needs a kernel; use `kmeans` or `random` without one"
                ))),
            },
        }
    }

    fn by_prior(
        &self,
        x: MatRef<'_, f64>,
        m: usize,
        generator: &mut ChaCha8Rng,
        Prior { diag, columns, targets }: Prior<'_>,
    ) -> Result<Selected> {
        match (self, targets) {
            (Selection::Oips(rho), _) => oips::oips(x, m, *rho, diag, columns),
            (Selection::KDpp, _) => kdpp(x, m, diag, columns, generator),
            (Selection::GreedyElbo, Some(targets)) => {
                let all = greedy_elbo(x, m, diag, columns, targets, DEFAULT_CANDIDATES, generator);
                Ok(all?.0)
            }
            (Selection::GreedyElbo, None) => Err(Error::Invalid(
                "the selection `greedy-elbo` is by the bound for Gaussian noise that is the same in all rows, \
                 without weights and missing targets; use `greedy-variance`"
                    .into(),
            )),
            _ => {
                let mut column = |i: usize| {
                    let columns = columns(&[i])?;
                    kdpp::check_columns(&columns, x.nrows(), 1)?;
                    Ok(columns.col_as_slice(0).to_vec())
                };
                greedy_variance(x, m, diag, &mut column, DEFAULT_TOLERANCE)
            }
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
        let threshold = name.strip_prefix("oips(").and_then(|rest| rest.strip_suffix(')'));
        if let Some(rho) = threshold.and_then(|rho| rho.trim().parse().ok()) {
            oips::check_rho(rho)?;
            return Ok(Selection::Oips(rho));
        }
        match NAMED.into_iter().find(|(known, _)| *known == name) {
            Some((_, selection)) => Ok(selection),
            None => Err(Error::Invalid(format!(
                "unknown selection of inducing points `{name}`; did you mean `{}`? Possible are {}",
                nearest(name, Self::names()).swap_remove(0),
                Self::names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            ))),
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = NAMED.into_iter().find(|(_, selection)| selection == self);
        if let (None, Selection::Oips(rho)) = (&known, self) {
            return f.pad(&format!("oips({rho})"));
        }
        f.pad(known.map_or("given", |(name, _)| name))
    }
}

/// Checks what every selector needs: rows, columns, at least one point, finite numbers.
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

/// Returns a row as a key of equality of values (0 and −0 are equal).
fn key(x: MatRef<'_, f64>, row: usize) -> Vec<u64> {
    (0..x.ncols()).map(|column| (x[(row, column)] + 0.0).to_bits()).collect()
}

/// Returns the first occurrences of distinct rows, in order; stops after `limit` + 1.
pub(crate) fn distinct_rows(x: MatRef<'_, f64>, limit: usize) -> Vec<usize> {
    let mut seen = HashSet::new();
    (0..x.nrows()).filter(|&row| seen.insert(key(x, row))).take(limit.saturating_add(1)).collect()
}

/// Returns the rows of `x` with these indices.
pub(crate) fn gather(x: MatRef<'_, f64>, indices: &[usize]) -> Mat<f64> {
    Mat::from_fn(indices.len(), x.ncols(), |i, j| x[(indices[i], j)])
}

/// Returns all distinct rows, if there are no more than `m`.
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

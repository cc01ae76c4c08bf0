//! What rows say that have left: the filter continues from the state after the last of them.
//!
//! Given the state at a place, what comes after is independent of what came before. So the mean and the covariance of the state
//! after the last of some rows, in the order of their places, are all that predictions from that place on, rows left out there and
//! later rows need of them, at O(S²) numbers for any number of rows (Kalman 1960; Särkkä & Solin 2019, §10.3).

use crate::error::{Error, Result};
use crate::kernels::{StateSpace, of_latent};
use crate::linalg::{Mat, MatRef};

/// The state after rows that are not there: those after it begin here, and not with the prior.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The place of the last of these rows.
    pub t: f64,
    /// Means, S×P.
    pub mean: Mat<f64>,
    /// The covariance, S×S.
    pub covariance: Mat<f64>,
}

/// What a series knows of rows that it no longer keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// How many they are.
    pub rows: usize,
    /// What they add to the objective.
    pub objective: f64,
    /// The state of every latent function; of all at once where they have the same covariance.
    pub starts: Vec<Start>,
}

impl Past {
    /// Returns the place of the last of these rows, from which on predictions are known.
    pub fn t(&self) -> f64 {
        self.starts.first().map_or(f64::NEG_INFINITY, |own| own.t)
    }

    /// Checks that these are states of the processes of so many latent functions.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub(crate) fn check(&self, spaces: &[Box<dyn StateSpace>], latents: usize) -> Result<()> {
        let all = &self.starts;
        let fits = |(l, own): (usize, &Start)| {
            let n = of_latent(spaces, l).size();
            let columns = if all.len() == 1 { latents } else { 1 };
            let square = (own.covariance.nrows(), own.covariance.ncols()) == (n, n);
            square
                && is_covariance(&own.covariance)
                && (own.mean.nrows(), own.mean.ncols()) == (n, columns)
        };
        let several = spaces.len() > 1 && all.len() == 1 && latents > 1;
        let counts = all.len() == 1 || all.len() == latents;
        match counts && !several && all.iter().enumerate().all(fits) {
            true => Ok(()),
            false => Err(Error::Invalid(
                "the states after rows that have left the model do not fit its kernel".into(),
            )),
        }
    }
}

/// Returns whether a square matrix is symmetric with correlations that there can be, but for
/// rounding.
fn is_covariance(c: &Mat<f64>) -> bool {
    let n = c.nrows().min(c.ncols());
    let both = |i: usize, j: usize| {
        let most = (c[(i, i)] * c[(j, j)]).sqrt();
        (c[(i, j)] - c[(j, i)]).abs() <= 1e-9 * most && c[(i, j)].abs() <= (1.0 + 1e-6) * most
    };
    (0..n).all(|i| c[(i, i)] >= 0.0 && (0..i).all(|j| both(i, j)))
}

impl Start {
    /// Returns the state of one of the columns.
    #[must_use]
    pub(crate) fn of_column(&self, p: usize) -> Self {
        let mean = Mat::from_fn(self.mean.nrows(), 1, |i, _| self.mean[(i, p)]);
        Self { mean, ..self.clone() }
    }

    /// Refuses rows of inputs (B×D) whose column `time` is before this place: what was said there is not kept.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub(crate) fn check(&self, x: MatRef<'_, f64>, time: usize) -> Result<()> {
        match (0..x.nrows()).find(|i| x[(*i, time)] < self.t) {
            None => Ok(()),
            Some(i) => Err(Error::Invalid(format!(
                "row {} is at {} of the model's scale, and rows up to {} have left the model, which knows what they say of later \
                 places only: keep more rows (`keep_rows`), or refit to all rows",
                i + 1,
                x[(i, time)],
                self.t
            ))),
        }
    }
}

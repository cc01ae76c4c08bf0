//! Gaussian processes of one input as Markov processes: exact inference in O(N) (Hartikainen & Särkkä 2010).
//!
//! Rows are in the order of their places. [`evidence`] passes them forwards and backwards, which
//! gives the log evidence with its gradient; [`Smoothed`] keeps the states of some rows, from where those of any place follow.
//! Of 128 rows one state is kept: the rows of a block are passed again on the way back.

mod filter;
mod places;
mod small;
mod smoother;

pub(crate) use places::unsorted;
pub use places::{Moments, Smoothed};

use crate::error::{Error, Result};
use crate::kernels::StateSpace;
use crate::linalg::{Mat, MatRef};
use filter::{Filter, Passed, Steps};
use smoother::{Adjoint, Slopes};

/// Rows of which one state is kept.
const BLOCK: usize = 128;

/// Most numbers of a state.
pub const MOST_STATES: usize = 64;

/// Rows in the order of their places, the targets less the mean function.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Places, which do not fall.
    pub t: &'a [f64],
    /// N×P.
    pub y: MatRef<'a, f64>,
    /// Variances of the noise.
    pub noise: &'a [f64],
}

/// What [`evidence`] gives, rows as they came.
#[derive(Debug)]
pub struct Evidence {
    /// log N(y; 0, G).
    pub value: f64,
    /// Its gradient with respect to the hyperparameters of the kernel.
    pub params: Vec<f64>,
    /// α = G⁻¹y, N×P: minus the slopes in y.
    pub alpha: Mat<f64>,
    /// The diagonal of G⁻¹.
    pub precision: Vec<f64>,
}

/// Runs `$body` with the constant `$n` at least as large as a state, of a few sizes.
macro_rules! with_size {
    ($size:expr, $n:ident => $body:expr) => {
        with_size!(@ $size, $n, $body, 1 2 3 4 6 8 12 16 24 32 48 64)
    };
    (@ $size:expr, $n:ident, $body:expr, $($fixed:literal)*) => {
        match $size {
            $(size if size <= $fixed => { const $n: usize = $fixed; $body })*
            size => Err($crate::markov::too_large(size)),
        }
    };
}
use with_size;

pub(crate) fn too_large(size: usize) -> Error {
    Error::Invalid(format!(
        "the kernel has {size} states, and `markov` takes up to {MOST_STATES}: use fewer products and periodic kernels, or a sparse \
         method such as titsias2025"
    ))
}

/// What a row without a variance is an error of.
fn unknown_variance(size: usize, pivot: usize) -> Error {
    Error::NotPositiveDefinite {
        matrix: "K + σ²I",
        size,
        pivot,
        jitter: 0.0,
        hint: "more noise, or one row a place",
    }
}

/// Returns the order of places, equal ones as they come.
pub fn order(t: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..t.len()).collect();
    if !t.is_sorted() {
        order.sort_by(|a, b| t[*a].total_cmp(&t[*b]));
    }
    order
}

/// Returns the log evidence without its gradient.
///
/// # Errors
/// [`Error::NotPositiveDefinite`]; [`Error::Invalid`] for a kernel of too many states; what `go_on` gives.
pub fn log_evidence(
    space: &dyn StateSpace,
    rows: Rows<'_>,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<f64> {
    with_size!(space.size(), N => {
        let mut filter: Filter<'_, N> = Filter::new(space, &rows);
        for range in blocks(rows.t.len()) {
            go_on()?;
            filter.pass(range, &mut [])?;
        }
        Ok(filter.value)
    })
}

/// Returns the log evidence with its gradient, for a kernel of so many hyperparameters.
///
/// # Errors
/// As for [`log_evidence`].
pub fn evidence(
    space: &dyn StateSpace,
    rows: Rows<'_>,
    params: usize,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<Evidence> {
    with_size!(space.size(), N => evidence_of::<N>(space, rows, Some(params), go_on))
}

/// Ranges of rows.
fn blocks(rows: usize) -> impl DoubleEndedIterator<Item = std::ops::Range<usize>> {
    (0..rows.div_ceil(BLOCK)).map(move |block| block * BLOCK..(block * BLOCK + BLOCK).min(rows))
}

/// The same; without a number of hyperparameters without their gradient.
fn evidence_of<const N: usize>(
    space: &dyn StateSpace,
    rows: Rows<'_>,
    params: Option<usize>,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<Evidence> {
    let (n, columns) = (rows.t.len(), rows.y.ncols());
    let mut filter: Filter<'_, N> = Filter::new(space, &rows);
    let mut states = Vec::new();
    for range in blocks(n) {
        go_on()?;
        states.push(filter.state.clone());
        filter.pass(range, &mut [])?;
    }
    let value = filter.value;
    let mut slopes = params.map(|params| Slopes::new(Steps::new(space), params));
    let mut alpha = Mat::zeros(n, columns);
    let mut precision = vec![0.0; n];
    let mut own = Adjoint::none(columns);
    let mut kept = vec![Passed::empty(); BLOCK];
    for range in blocks(n).rev() {
        go_on()?;
        let start = range.start;
        let state = states.pop().unwrap_or_else(|| filter.state.clone());
        filter.state.clone_from(&state);
        filter.pass(range.clone(), &mut kept)?;
        for i in range.rev() {
            let row = &kept[i - start];
            precision[i] = own.unsee(row, |p, e| alpha[(i, p)] = e);
            if let Some(slopes) = &mut slopes {
                let before = if i > start { &kept[i - start - 1].after } else { &state };
                match i {
                    0 => slopes.add_first(&own),
                    _ => {
                        let length = rows.t[i] - rows.t[i - 1];
                        slopes.add(&own, length, &row.a, (&before.mean, &before.covariance));
                    }
                }
            }
            if i == 0 {
                break;
            }
            own.back(&row.a, &filter.steps.blocks);
        }
    }
    let params = slopes.map_or_else(Vec::new, Slopes::finish);
    Ok(Evidence { value, params, alpha, precision })
}

#[cfg(test)]
mod tests;

//! Gaussian processes of one input as Markov processes: exact inference in O(N) (Hartikainen & Särkkä 2010).
//!
//! Rows are in the order of their times, of which several may be the same; beside the time they may have labels, which say what of the
//! state a row sees ([`StateSpace::output`]). [`evidence`] passes them forwards and backwards, which
//! gives the log evidence with its gradient; [`Smoothed`] keeps the states of some rows, from where those of any place follow.
//! Of 128 rows one state is kept: the rows of a block are passed again on the way back.

mod filter;
mod inputs;
mod kept;
mod past;
mod paths;
mod places;
mod small;
mod smoother;

pub use inputs::{Places, Sorted, not_labels};
pub use past::{Past, Start};
pub use paths::{Link, Weights, draw, links, weights};
pub(crate) use places::unsorted;
pub use places::{Moments, Smoothed};

use crate::error::{Error, Result};
use crate::kernels::StateSpace;
use crate::linalg::{Mat, MatRef};
use filter::{Filter, Passed, State, Steps};
use small::{dot, times};
use smoother::{Adjoint, Slopes};

/// Rows of which one state is kept.
const BLOCK: usize = 128;

/// Most numbers of a state.
pub const MOST_STATES: usize = 64;

/// Rows in the order of their places, the targets less the mean function.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Places, whose times do not fall.
    pub places: Places<'a>,
    /// N×P.
    pub y: MatRef<'a, f64>,
    /// Variances of the noise: infinite where a row is missing, and negative where a factor of a row grows away from its centre
    /// ([`Marginals`]).
    pub noise: &'a [f64],
    /// What is known of the state before the first row, where that is more than the prior.
    pub start: Option<&'a Start>,
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

/// What [`marginals`] gives, rows as they came: of the function whose prior is multiplied by a factor N(y; f, s) of every row.
#[derive(Debug)]
pub struct Marginals {
    /// Means at the rows, N×P.
    pub mean: Mat<f64>,
    /// Variances at the rows.
    pub variance: Vec<f64>,
    /// α = G⁻¹y, N×P.
    pub alpha: Mat<f64>,
    /// s·[G⁻¹]ᵢᵢ: what is left of the variance of a row's factor, 1 where there is none.
    pub rest: Vec<f64>,
    /// log |I + diag(s)⁻¹K|.
    pub log_det: f64,
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
        "the kernel has {size} states, and a series takes up to {MOST_STATES}: use fewer products, labels and periodic kernels, \
         or a sparse method such as titsias2025"
    ))
}

/// Returns the error of a row without a variance.
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
        for range in blocks(rows.places.len()) {
            go_on()?;
            filter.pass(range, &mut [])?;
        }
        Ok(filter.value)
    })
}

/// Returns the log evidence with its gradient, for a kernel of so many hyperparameters.
///
/// # Errors
/// As for [`log_evidence`]; [`Error::Invalid`] for rows after others that are not there, as slopes are of all rows.
pub fn evidence(
    space: &dyn StateSpace,
    rows: Rows<'_>,
    params: usize,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<Evidence> {
    with_size!(space.size(), N => evidence_of::<N>(space, rows, params, go_on))
}

/// Returns what is known of the function at the rows, given all of them.
///
/// # Errors
/// As for [`log_evidence`].
pub fn marginals(
    space: &dyn StateSpace,
    rows: Rows<'_>,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<Marginals> {
    with_size!(space.size(), N => marginals_of::<N>(space, rows, go_on))
}

/// Returns the ranges of rows.
fn blocks(rows: usize) -> impl DoubleEndedIterator<Item = std::ops::Range<usize>> {
    (0..rows.div_ceil(BLOCK)).map(move |block| block * BLOCK..(block * BLOCK + BLOCK).min(rows))
}

/// A row on the way back, with the state after the row before it.
struct Seen<'a, const N: usize> {
    at: usize,
    row: &'a Passed<N>,
    before: &'a State<N>,
    /// After the row, and then before it.
    adjoint: &'a mut Adjoint<N>,
}

/// Passes the rows forwards and backwards, of which `take` sees each with the adjoint after it, and brings that to before it.
/// Returns log N(y; 0, G).
fn there_and_back<const N: usize>(
    space: &dyn StateSpace,
    rows: Rows<'_>,
    go_on: &dyn Fn() -> Result<()>,
    take: &mut dyn FnMut(Seen<'_, N>),
) -> Result<f64> {
    let n = rows.places.len();
    let mut filter: Filter<'_, N> = Filter::new(space, &rows);
    let mut states = Vec::new();
    for range in blocks(n) {
        go_on()?;
        states.push(filter.state.clone());
        filter.pass(range, &mut [])?;
    }
    let value = filter.value;
    let mut own = Adjoint::none(rows.y.ncols());
    let mut kept = vec![Passed::empty(); BLOCK.min(n)];
    for range in blocks(n).rev() {
        go_on()?;
        let start = range.start;
        let state = states.pop().unwrap_or_else(|| filter.state.clone());
        filter.state.clone_from(&state);
        filter.pass(range.clone(), &mut kept)?;
        for i in range.rev() {
            let row = &kept[i - start];
            let before = if i > start { &kept[i - start - 1].after } else { &state };
            take(Seen { at: i, row, before, adjoint: &mut own });
            if i > 0 {
                own.back(&row.a, &filter.steps.blocks);
            }
        }
    }
    Ok(value)
}

fn evidence_of<const N: usize>(
    space: &dyn StateSpace,
    rows: Rows<'_>,
    params: usize,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<Evidence> {
    if rows.start.is_some() {
        return Err(Error::Invalid(
            "slopes of the evidence need all rows, and the first ones have left the model: refit to all rows".into(),
        ));
    }
    let (n, t) = (rows.places.len(), rows.places.t());
    let mut slopes: Slopes<'_, N> = Slopes::new(Steps::new(space), params);
    let mut alpha = Mat::zeros(n, rows.y.ncols());
    let mut precision = vec![0.0; n];
    let value = there_and_back(space, rows, go_on, &mut |seen: Seen<'_, N>| {
        let Seen { at, row, before, adjoint } = seen;
        precision[at] = adjoint.unsee(row, |p, e| alpha[(at, p)] = e);
        match at {
            0 => slopes.add_first(adjoint),
            _ => {
                let length = t[at] - t[at - 1];
                slopes.add(adjoint, length, &row.a, (&before.mean, &before.covariance));
            }
        }
    })?;
    Ok(Evidence { value, params: slopes.finish(), alpha, precision })
}

fn marginals_of<const N: usize>(
    space: &dyn StateSpace,
    rows: Rows<'_>,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<Marginals> {
    let (n, columns) = (rows.places.len(), rows.y.ncols());
    let zeros = || Mat::zeros(n, columns);
    let mut all = Marginals {
        mean: zeros(),
        variance: vec![0.0; n],
        alpha: zeros(),
        rest: vec![1.0; n],
        log_det: 0.0,
    };
    there_and_back(space, rows, go_on, &mut |seen: Seen<'_, N>| {
        let Seen { at, row, adjoint, .. } = seen;
        let precision = adjoint.unsee(row, |p, e| all.alpha[(at, p)] = e);
        let image = times(&row.before.covariance, &row.h);
        for (p, (m, r)) in row.before.mean.iter().zip(&adjoint.r).enumerate() {
            all.mean[(at, p)] = dot(&row.h, m) + dot(&image, r);
        }
        let variance = dot(&row.h, &image) - dot(&image, &times(&adjoint.n, &image));
        all.variance[at] = variance.max(0.0);
        let noise = rows.noise[at];
        if noise.is_finite() {
            all.rest[at] = noise * precision;
            all.log_det += (row.spread / noise).ln();
            // of little noise the row itself knows more digits
            if all.rest[at] < 0.5 {
                all.variance[at] = noise * (1.0 - all.rest[at]);
            }
        }
    })?;
    Ok(all)
}

#[cfg(test)]
mod paths_tests;
#[cfg(test)]
mod tests;

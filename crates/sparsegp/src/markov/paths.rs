//! Joint draws of the states at rows, and what lies between two states.
//!
//! Given normal factors of the rows, a draw is one of the prior, moved to where the factors pull it (Durbin & Koopman 2002): with a
//! path s⁺ of the prior and y⁺ = Hᵀs⁺ + ε drawn with the noise of the factors,
//!
//! ```text
//! s = s⁺ + E[s | y − y⁺]
//! ```
//!
//! which needs nothing but roots of Q and one pass there and back. Between two rows, what comes before the first and after the second
//! says nothing: with s₁ before, s₂ after, A₁, Q₁ of the step to the place and A₂, Q₂ of the step from it,
//!
//! ```text
//! s | s₁, s₂ ~ N(A₁s₁ + G(s₂ − A₂A₁s₁), (I − GA₂)Q₁(I − GA₂)ᵀ + GQ₂Gᵀ)      G = Q₁A₂ᵀ(A₂Q₁A₂ᵀ + Q₂)⁺
//! ```
//!
//! where the inverse is that on the range: states that do not move have no Q.

use super::filter::Steps;
use super::small::{
    Square, Vector, dot, product, root, solve_root, symmetrise, times, transposed,
    transposed_times, write, zeros,
};
use super::{Places, Rows, Seen, there_and_back, with_size};
use crate::error::Result;
use crate::kernels::StateSpace;
use crate::linalg::{Mat, each};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use std::ops::Range;

/// Places of which one thread finds what lies around them.
const CHUNK: usize = 256;

/// What a function at a place is made of, given the states at rows: its mean is the sum of both products, for any states.
#[derive(Clone, Debug)]
pub struct Weights {
    /// The last row at or before the place, and the weights of its state.
    pub before: Option<(usize, Vec<f64>)>,
    /// The first row after it, and the weights of its state.
    pub after: Option<(usize, Vec<f64>)>,
    /// The variance that is left.
    pub variance: f64,
}

/// How the state at a place is drawn, given that at the place before or at the rows around it.
#[derive(Clone, Debug)]
pub struct Link {
    /// Whether the place before lies between the same rows: then it takes the place of the row before.
    pub chained: bool,
    /// The last row at or before the place.
    pub before: Option<usize>,
    /// The first row after it.
    pub after: Option<usize>,
    /// What the state before is multiplied by, S×S, row by row.
    pub forward: Vec<f64>,
    /// What the state after is multiplied by, S×S, row by row.
    pub backward: Vec<f64>,
    /// The covariance that is left, S×S, row by row, and a lower root of it.
    pub left: Vec<f64>,
    /// That root.
    pub root: Vec<f64>,
    /// H at the place, S numbers.
    pub output: Vec<f64>,
}

fn normal<const N: usize>(rng: &mut dyn Rng) -> Vector<N> {
    std::array::from_fn(|_| StandardNormal.sample(&mut *rng))
}

/// Draws the states at rows, N×S row by row, of a function of the prior of which every row has a factor N(y; f, s) with these places
/// in the order of their times and variances s > 0, infinite where a row is missing. O(NS³).
///
/// # Errors
/// As for [`super::log_evidence`].
pub fn draw(
    space: &dyn StateSpace,
    (places, y, noise): (Places<'_>, &[f64], &[f64]),
    rng: &mut dyn Rng,
) -> Result<Vec<f64>> {
    with_size!(space.size(), N => draw_of::<N>(space, (places, y, noise), rng))
}

fn draw_of<const N: usize>(
    space: &dyn StateSpace,
    (places, y, noise): (Places<'_>, &[f64], &[f64]),
    rng: &mut dyn Rng,
) -> Result<Vec<f64>> {
    let (t, n, size) = (places.t(), places.len(), space.size());
    let mut steps: Steps<'_, N> = Steps::new(space);
    let mut state = times(&root(&steps.stationary()), &normal(rng));
    let (mut length, mut spread) = (f64::NAN, zeros());
    let (mut path, mut residual) = (Vec::with_capacity(n), Mat::zeros(n, 1));
    for i in 0..n {
        if i > 0 {
            let step = t[i] - t[i - 1];
            steps.of(step);
            if step.to_bits() != length.to_bits() {
                (length, spread) = (step, root(&steps.q));
            }
            let moved = times(&spread, &normal(rng));
            state = steps.blocks.times(&steps.a, &state);
            (0..N).for_each(|k| state[k] += moved[k]);
        }
        if noise[i].is_finite() {
            let own: f64 = StandardNormal.sample(&mut *rng);
            residual[(i, 0)] =
                y[i] - dot(&steps.output(places.row(i)), &state) - noise[i].sqrt() * own;
        }
        path.push(state);
    }
    let rows = Rows { places, y: residual.as_ref(), noise, start: None };
    there_and_back(space, rows, &|| Ok(()), &mut |seen: Seen<'_, N>| {
        let Seen { at, row, adjoint, .. } = seen;
        adjoint.unsee(row, |_, _| ());
        let pulled = times(&row.before.covariance, &adjoint.r[0]);
        (0..N).for_each(|k| path[at][k] += row.before.mean[0][k] + pulled[k]);
    })?;
    Ok(path.iter().flat_map(|own| own[..size].iter().copied()).collect())
}

/// A place between what is known before it and after it.
struct Bridge<const N: usize> {
    forward: Square<N>,
    backward: Square<N>,
    left: Square<N>,
}

impl<const N: usize> Bridge<N> {
    fn new(steps: &mut Steps<'_, N>, before: Option<f64>, at: f64, after: Option<f64>) -> Self {
        let (forward, q) = match before {
            Some(before) => {
                steps.of(at - before);
                (*steps.a, steps.q)
            }
            None => (zeros(), steps.stationary()),
        };
        let Some(after) = after else { return Self { forward, backward: zeros(), left: q } };
        steps.of(after - at);
        let (a, moved) = (&steps.a, product(&steps.a, &q));
        let mut total = product(&moved, &transposed(a));
        add(&mut total, &steps.q);
        symmetrise(&mut total);
        let backward = transposed(&solve_root(&root(&total), &moved));
        // I − GA₂
        let mut rest = product(&backward, a);
        for (i, row) in rest.iter_mut().enumerate() {
            row.iter_mut().for_each(|v| *v = -*v);
            row[i] += 1.0;
        }
        let sandwich = |a: &Square<N>, p: &Square<N>| product(&product(a, p), &transposed(a));
        let mut left = sandwich(&rest, &q);
        add(&mut left, &sandwich(&backward, &steps.q));
        symmetrise(&mut left);
        Self { forward: product(&rest, &forward), backward, left }
    }
}

fn add<const N: usize>(to: &mut Square<N>, other: &Square<N>) {
    super::small::add(to, 1.0, other);
}

/// Returns the weights of places, given the states at rows of rising times. O(S³) for each place.
///
/// # Errors
/// [`crate::Error::Invalid`] for a kernel of too many states.
pub fn weights(space: &dyn StateSpace, rows: &[f64], places: Places<'_>) -> Result<Vec<Weights>> {
    with_size!(space.size(), N => Ok(weights_of::<N>(space, rows, places)))
}

fn weights_of<const N: usize>(
    space: &dyn StateSpace,
    rows: &[f64],
    places: Places<'_>,
) -> Vec<Weights> {
    let (size, t) = (space.size(), places.t());
    let chunk = |own: Range<usize>| {
        let mut steps: Steps<'_, N> = Steps::new(space);
        let one = |k: usize| {
            let (before, after) = around(rows, t[k]);
            let of = |row: Option<usize>| row.map(|i| rows[i]);
            let bridge = Bridge::new(&mut steps, of(before), t[k], of(after));
            let h = steps.output(places.row(k));
            let along = |a: &Square<N>| transposed_times(a, &h)[..size].to_vec();
            Weights {
                before: before.map(|i| (i, along(&bridge.forward))),
                after: after.map(|i| (i, along(&bridge.backward))),
                variance: dot(&h, &times(&bridge.left, &h)).max(0.0),
            }
        };
        own.map(one).collect::<Vec<_>>()
    };
    let end = |c: usize| (c * CHUNK + CHUNK).min(t.len());
    each(t.len().div_ceil(CHUNK), |c| chunk(c * CHUNK..end(c))).concat()
}

/// Returns the last row at or before a place, and the first after it.
fn around(rows: &[f64], at: f64) -> (Option<usize>, Option<usize>) {
    let count = rows.partition_point(|own| *own <= at);
    (count.checked_sub(1), (count < rows.len()).then_some(count))
}

/// Returns how the states at places whose times rise are drawn one after the other, given those at rows of rising times. O(S³) for
/// each.
///
/// # Errors
/// [`crate::Error::Invalid`] for a kernel of too many states.
pub fn links(space: &dyn StateSpace, rows: &[f64], places: Places<'_>) -> Result<Vec<Link>> {
    with_size!(space.size(), N => Ok(links_of::<N>(space, rows, places)))
}

fn links_of<const N: usize>(space: &dyn StateSpace, rows: &[f64], places: Places<'_>) -> Vec<Link> {
    let (n, t) = (space.size(), places.t());
    let mut steps: Steps<'_, N> = Steps::new(space);
    let flat = |a: &Square<N>| {
        let mut out = vec![0.0; n * n];
        write(a, n, &mut out);
        out
    };
    let one = |k: usize| {
        let at = t[k];
        let (before, after) = around(rows, at);
        let last = k.checked_sub(1).map(|k| t[k]);
        let chained = last.filter(|last| around(rows, *last).0 == before);
        let from = chained.or(before.map(|i| rows[i]));
        let bridge = Bridge::new(&mut steps, from, at, after.map(|i| rows[i]));
        Link {
            chained: chained.is_some(),
            before,
            after,
            forward: flat(&bridge.forward),
            backward: flat(&bridge.backward),
            root: flat(&root(&bridge.left)),
            left: flat(&bridge.left),
            output: steps.output(places.row(k))[..n].to_vec(),
        }
    };
    (0..t.len()).map(one).collect()
}

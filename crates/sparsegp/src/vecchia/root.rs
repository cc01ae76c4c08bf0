//! The sparse root V of the precision of rows, Q = VᵀV, and incomplete factors of Q + Λ.
//!
//! Row j of V has the weights of what row j is conditioned on: with G = LLᵀ of its block, row j of L⁻¹. In the order of the plan V is
//! lower triangular, so that VᵀV is the factorisation of Q that begins with the last row: UUᵀ with U = Vᵀ, and no entry more.
//!
//! **The incomplete factor** UUᵀ ≈ Q + Λ has the pattern of Vᵀ, and drops what the factorisation would fill in beside it (Schäfer,
//! Katzfuss & Owhadi 2021, of Vecchia's approximation with noise; Zilber & Katzfuss 2021, of pseudo-observations). A pivot is what is left of
//! the precision of a row given all rows before it, and Schur complements of sums are at least the sums of those of the parts: no pivot
//! is less than Vⱼⱼ² + λⱼ. Where entries that were dropped have left less, it is raised to that.

use super::Plan;
use crate::error::{Error, Result};
use crate::linalg::exp::{Vectorised, dispatch, mul_add};
use std::sync::Arc;

/// Vectors that one pass moves, side by side.
pub(super) const LANES: usize = 8;

/// A number of each of these vectors.
pub(super) type Lanes = [f64; LANES];

/// Which rows each row is conditioned on, in the order of a plan.
#[derive(Debug)]
pub(super) struct Conditioning {
    /// Where rows begin, and the end.
    starts: Vec<usize>,
    /// Those that a row is conditioned on, ascending, and the row itself.
    columns: Vec<u32>,
    /// Where columns begin, and the end; their rows, ascending, each with its place among the numbers.
    uses: Vec<usize>,
    users: Vec<(u32, u32)>,
}

/// A matrix with a number where a row is conditioned on another.
#[derive(Debug)]
pub(super) struct Root {
    pattern: Arc<Conditioning>,
    values: Vec<f64>,
    /// Q there.
    precision: Vec<f64>,
}

/// An incomplete factor of Q + Λ: column j of U where V has row j.
#[derive(Debug)]
pub(super) struct Incomplete<'a> {
    pattern: &'a Conditioning,
    values: Vec<f64>,
}

impl Conditioning {
    /// Finds the pattern of a plan whose rows have these ranks.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more than 2³² numbers.
    pub(super) fn new(plan: &Plan, ranks: &[u32]) -> Result<Self> {
        let n = plan.rows();
        let blocks = || (0..plan.blocks()).map(|own| plan.block(own));
        let mut starts = vec![0; n + 1];
        for block in blocks() {
            for (at, row) in block.rows.iter().enumerate().filter(|(at, _)| block.responds[*at]) {
                starts[ranks[*row as usize] as usize + 1] = at + 1;
            }
        }
        (0..n).for_each(|j| starts[j + 1] += starts[j]);
        if u32::try_from(starts[n]).is_err() {
            return Err(Error::Invalid(format!(
                "{n} rows have too many neighbours for conjugate gradients; use fewer, as in `vecchia(neighbours={})`",
                (plan.neighbours() / 2).max(1)
            )));
        }
        let mut columns = vec![0; starts[n]];
        for block in blocks() {
            for (at, row) in block.rows.iter().enumerate().filter(|(at, _)| block.responds[*at]) {
                let start = starts[ranks[*row as usize] as usize];
                let own = columns[start..=start + at].iter_mut();
                own.zip(block.rows).for_each(|(own, row)| *own = ranks[*row as usize]);
            }
        }
        let mut uses = vec![0; n + 1];
        columns.iter().for_each(|column| uses[*column as usize + 1] += 1);
        (0..n).for_each(|j| uses[j + 1] += uses[j]);
        let (mut next, mut users) = (uses.clone(), vec![(0, 0); columns.len()]);
        for row in 0..n {
            for at in starts[row]..starts[row + 1] {
                let own = &mut next[columns[at] as usize];
                users[*own] = (row as u32, at as u32);
                *own += 1;
            }
        }
        Ok(Self { starts, columns, uses, users })
    }

    pub(super) fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns how many numbers a matrix has.
    pub(super) fn entries(&self) -> usize {
        self.columns.len()
    }

    /// Returns where the numbers of a row are.
    pub(super) fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }

    /// Adds `sign`·wwᵀ to those entries that the pattern has, where w has these numbers in the first columns of a row.
    fn add_outer(&self, row: usize, w: &[f64], sign: f64, sums: &mut [f64]) {
        let own = &self.columns[self.range(row)][..w.len()];
        for (b, column) in own.iter().enumerate() {
            let there = self.range(*column as usize);
            let (start, known) = (there.start, &self.columns[there]);
            let (mut at, by) = (0, sign * w[b]);
            for (a, other) in own[..=b].iter().enumerate() {
                while known[at] < *other {
                    at += 1;
                }
                // the last of a row is itself: `at` stays within
                if known[at] == *other {
                    sums[start + at] += by * w[a];
                }
            }
        }
    }
}

impl Root {
    /// Takes the numbers of V, row by row.
    pub(super) fn new(pattern: Arc<Conditioning>, values: Vec<f64>) -> Self {
        let mut precision = vec![0.0; values.len()];
        for row in 0..pattern.rows() {
            let own = &values[pattern.range(row)];
            pattern.add_outer(row, own, 1.0, &mut precision);
        }
        Self { pattern, values, precision }
    }

    fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let own = self.pattern.range(row);
        (&self.pattern.columns[own.clone()], &self.values[own])
    }

    /// Returns Vⱼⱼ.
    fn diagonal(&self, row: usize) -> f64 {
        self.values[self.pattern.starts[row + 1] - 1]
    }

    /// Returns log |Q|.
    pub(super) fn log_det(&self) -> f64 {
        2.0 * (0..self.pattern.rows()).map(|j| self.diagonal(j).ln()).sum::<f64>()
    }

    /// Returns the rows of a column with their numbers.
    pub(super) fn users(&self, column: u32) -> impl Iterator<Item = (u32, f64)> {
        let own = self.pattern.uses[column as usize]..self.pattern.uses[column as usize + 1];
        self.pattern.users[own].iter().map(|(row, at)| (*row, self.values[*at as usize]))
    }

    pub(super) fn size(&self) -> usize {
        self.pattern.rows()
    }

    /// Returns Q⁻¹t, by Vᵀ and then V.
    pub(super) fn solved(&self, t: &[Lanes]) -> Vec<Lanes> {
        let mut x = t.to_vec();
        for j in (0..x.len()).rev() {
            let (columns, values) = self.row(j);
            let own = x[j].map(|own| own / self.diagonal(j));
            x[j] = own;
            for (i, v) in columns.iter().zip(values).take(columns.len() - 1) {
                add(&mut x[*i as usize], -v, &own);
            }
        }
        for j in 0..x.len() {
            let (columns, values) = self.row(j);
            let mut own = x[j];
            for (i, v) in columns.iter().zip(values).take(columns.len() - 1) {
                add(&mut own, -v, &x[*i as usize]);
            }
            x[j] = own.map(|own| own / self.diagonal(j));
        }
        x
    }

    /// Adds Vᵀw to `out`.
    pub(super) fn add_transposed(&self, w: &[Lanes], out: &mut [Lanes]) {
        for (j, w) in w.iter().enumerate() {
            let (columns, values) = self.row(j);
            columns.iter().zip(values).for_each(|(i, v)| add(&mut out[*i as usize], *v, w));
        }
    }

    /// Computes (Q + Λ)p in `out`.
    pub(super) fn times(&self, second: &[f64], p: &[Lanes], out: &mut [Lanes]) {
        dispatch(Times { root: self, second, p, out });
    }

    /// Returns the incomplete factor with the λ of every row, none of them negative.
    pub(super) fn incomplete(&self, second: &[f64]) -> Incomplete<'_> {
        let pattern = &*self.pattern;
        let mut sums = self.precision.clone();
        let mut own = Vec::new();
        for row in (0..pattern.rows()).rev() {
            let range = pattern.range(row);
            let last = range.end - 1;
            let least = self.diagonal(row).powi(2) + second[row];
            let root = (sums[last] + second[row]).max(least).sqrt();
            sums[last] = root;
            sums[range.start..last].iter_mut().for_each(|own| *own /= root);
            own.clear();
            own.extend_from_slice(&sums[range.start..last]);
            pattern.add_outer(row, &own, -1.0, &mut sums);
        }
        Incomplete { pattern, values: sums }
    }
}

impl Incomplete<'_> {
    fn row(&self, row: usize) -> (&[u32], &[f64], f64) {
        let own = self.pattern.range(row);
        let last = own.end - 1;
        (&self.pattern.columns[own.start..last], &self.values[own.start..last], self.values[last])
    }

    /// Returns log |UUᵀ|.
    pub(super) fn log_det(&self) -> f64 {
        2.0 * (0..self.pattern.rows()).map(|j| self.row(j).2.ln()).sum::<f64>()
    }

    /// Solves UUᵀz = r in place.
    pub(super) fn solve(&self, r: &mut [Lanes]) {
        dispatch(Solve { near: self, r });
    }

    /// Returns Ue.
    pub(super) fn times(&self, e: &[Lanes]) -> Vec<Lanes> {
        let mut out = vec![[0.0; LANES]; e.len()];
        for (j, e) in e.iter().enumerate() {
            let (columns, values, diagonal) = self.row(j);
            columns.iter().zip(values).for_each(|(i, u)| add(&mut out[*i as usize], *u, e));
            add(&mut out[j], diagonal, e);
        }
        out
    }
}

/// [`Root::times`].
struct Times<'a> {
    root: &'a Root,
    second: &'a [f64],
    p: &'a [Lanes],
    out: &'a mut [Lanes],
}

impl Vectorised for Times<'_> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { root, second, p, out } = self;
        for ((out, p), by) in out.iter_mut().zip(p).zip(second) {
            *out = p.map(|p| p * by);
        }
        for j in 0..p.len() {
            let (columns, values) = root.row(j);
            let mut own = [0.0; LANES];
            for (i, v) in columns.iter().zip(values) {
                fused::<FMA>(&mut own, *v, &p[*i as usize]);
            }
            for (i, v) in columns.iter().zip(values) {
                fused::<FMA>(&mut out[*i as usize], *v, &own);
            }
        }
    }
}

/// [`Incomplete::solve`].
struct Solve<'a> {
    near: &'a Incomplete<'a>,
    r: &'a mut [Lanes],
}

impl Vectorised for Solve<'_> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { near, r } = self;
        for j in (0..r.len()).rev() {
            let (columns, values, diagonal) = near.row(j);
            let own = r[j].map(|own| own / diagonal);
            r[j] = own;
            for (i, u) in columns.iter().zip(values) {
                fused::<FMA>(&mut r[*i as usize], -u, &own);
            }
        }
        for j in 0..r.len() {
            let (columns, values, diagonal) = near.row(j);
            let mut own = r[j];
            for (i, u) in columns.iter().zip(values) {
                fused::<FMA>(&mut own, -u, &r[*i as usize]);
            }
            r[j] = own.map(|own| own / diagonal);
        }
    }
}

/// Adds `by`·`from`, in one instruction a number where there is one.
#[inline(always)]
fn fused<const FMA: bool>(own: &mut Lanes, by: f64, from: &Lanes) {
    for l in 0..LANES {
        own[l] = mul_add::<FMA>(by, from[l], own[l]);
    }
}

/// Adds `by`·`from`.
#[inline]
pub(super) fn add(own: &mut Lanes, by: f64, from: &Lanes) {
    own.iter_mut().zip(from).for_each(|(own, from)| *own += by * from);
}

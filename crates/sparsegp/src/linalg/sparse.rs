//! Sparse positive-definite matrices: the Cholesky factor, and those entries of the inverse where the factor is not zero.
//!
//! With A = LLᵀ in an order that keeps L sparse (approximate minimum degree), columns J of L that share their rows R below are
//! one dense block, a *supernode*. Its part of Z = A⁻¹ follows from Z_RR, which the supernodes after it hold (Takahashi, Fagan & Chin
//! 1973; Erisman & Tinney 1975), since ZL = L⁻ᵀ has nothing below its diagonal:
//!
//! ```text
//! Y = L_RJ L_JJ⁻¹      Z_RJ = −Z_RR Y      Z_JJ = L_JJ⁻ᵀL_JJ⁻¹ − YᵀZ_RJ
//! ```

use super::{
    Accum, Mat, MatMut, MatRef, Par, column_mut, gemm, mirror_lower, par_for, solve_lower,
    solve_lower_transpose, sum_of_products,
};
use crate::error::{Error, Result};
use faer::Side;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::LltError;
use faer::reborrow::{Reborrow, ReborrowMut};
use faer::sparse::linalg::SupernodalThreshold;
use faer::sparse::linalg::cholesky::supernodal::SymbolicSupernodalCholesky;
use faer::sparse::linalg::cholesky::{
    CholeskySymbolicParams, SymbolicCholesky, SymbolicCholeskyRaw, SymmetricOrdering,
    factorize_symbolic_cholesky,
};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use std::sync::Arc;

/// Supernodes between two checks of whether to continue.
const ASKED: usize = 64;

/// Where a symmetric matrix, and its factor, are not zero.
#[derive(Debug)]
pub struct Pattern {
    size: usize,
    /// Where columns of the lower triangle begin, and the end; their rows, ascending.
    starts: Vec<usize>,
    rows: Vec<usize>,
    factor: SymbolicCholesky<usize>,
    /// The place of every index in the order of the factor.
    places: Vec<usize>,
    /// The supernode of every place.
    nodes: Vec<usize>,
}

/// A factor of a matrix with a pattern.
#[derive(Debug)]
pub struct SparseCholesky {
    pattern: Arc<Pattern>,
    values: Vec<f64>,
}

/// The entries of an inverse where the factor is not zero.
#[derive(Debug)]
pub struct SelectedInverse {
    pattern: Arc<Pattern>,
    values: Vec<f64>,
}

/// The columns of a supernode, and its rows below these.
struct Node<'a> {
    start: usize,
    size: usize,
    below: &'a [usize],
    /// Where its numbers begin, column by column.
    at: usize,
}

impl Node<'_> {
    fn height(&self) -> usize {
        self.size + self.below.len()
    }

    fn of<'v>(&self, values: &'v [f64]) -> MatRef<'v, f64> {
        let len = self.height() * self.size;
        MatRef::from_column_major_slice(&values[self.at..][..len], self.height(), self.size)
    }

    /// Returns the place of a row at or after its first column.
    fn find(&self, row: usize) -> Option<usize> {
        match row - self.start {
            own if own < self.size => Some(own),
            _ => self.below.binary_search(&row).ok().map(|below| self.size + below),
        }
    }
}

impl Pattern {
    /// Finds the pattern of an N×N matrix whose rows are coupled where they are in a list together, and an order for its factor.
    ///
    /// # Errors
    /// [`Error::Invalid`] where memory does not suffice, and for N = 0.
    pub fn of_cliques<'a>(size: usize, cliques: impl Iterator<Item = &'a [u32]>) -> Result<Self> {
        if size == 0 {
            return Err(Error::Invalid("a sparse matrix has at least one row".into()));
        }
        let mut columns: Vec<Vec<u32>> = (0..size as u32).map(|i| vec![i]).collect();
        let sort = |own: &mut Vec<u32>| {
            own.sort_unstable();
            own.dedup();
        };
        for clique in cliques {
            for column in clique {
                let own = &mut columns[*column as usize];
                let room = own.capacity();
                own.extend(clique.iter().filter(|row| *row > column));
                // repetitions do not pile up
                if own.capacity() > room {
                    sort(own);
                }
            }
        }
        columns.iter_mut().for_each(sort);
        let mut starts = vec![0];
        starts.extend(columns.iter().scan(0, |sum, own| {
            *sum += own.len();
            Some(*sum)
        }));
        let rows: Vec<usize> = columns.into_iter().flatten().map(|row| row as usize).collect();
        let all = SymbolicSparseColMatRef::new_checked(size, size, &starts, None, &rows);
        let params = CholeskySymbolicParams {
            // below that of a matrix of one row, for which nothing is multiplied
            supernodal_flop_ratio_threshold: SupernodalThreshold(-1.0),
            ..Default::default()
        };
        let factor = factorize_symbolic_cholesky(all, Side::Lower, SymmetricOrdering::Amd, params);
        let factor = factor.map_err(|error| {
            Error::Invalid(format!("a sparse matrix of {size} rows: {error:?}"))
        })?;
        let places = match factor.perm() {
            Some(order) => order.arrays().1.to_vec(),
            None => (0..size).collect(),
        };
        let mut own = Self { size, starts, rows, factor, places, nodes: vec![0; size] };
        for s in 0..own.supernodal().n_supernodes() {
            let node = own.node(s);
            let range = node.start..node.start + node.size;
            own.nodes[range].fill(s);
        }
        Ok(own)
    }

    /// Returns how many numbers the lower triangle has, which [`Pattern::add`] fills.
    pub fn entries(&self) -> usize {
        self.rows.len()
    }

    /// Returns how many numbers the factor has.
    pub fn factor_entries(&self) -> usize {
        self.factor.len_val()
    }

    /// Estimates the multiplications of a factorisation, Σ |J|(|J| + |R|)² over supernodes.
    pub fn work(&self) -> f64 {
        let of = |s: usize| {
            let node = self.node(s);
            node.size as f64 * (node.height() as f64).powi(2)
        };
        (0..self.count()).map(of).sum()
    }

    /// Returns where the diagonal is among the numbers of the lower triangle.
    pub fn diagonal(&self) -> &[usize] {
        &self.starts[..self.size]
    }

    /// Adds the lower triangle of a symmetric k×k matrix of k rows, which ascend, to the numbers of the lower triangle.
    pub fn add(&self, entries: &mut [f64], rows: &[u32], own: MatRef<'_, f64>) {
        for (j, column) in rows.iter().enumerate() {
            let range = self.starts[*column as usize]..self.starts[*column as usize + 1];
            let (start, known) = (range.start, &self.rows[range]);
            let mut at = 0;
            for (i, row) in rows.iter().enumerate().skip(j) {
                at += known[at..].partition_point(|known| *known < *row as usize);
                debug_assert_eq!(known[at], *row as usize);
                entries[start + at] += own[(i, j)];
            }
        }
    }

    fn supernodal(&self) -> &SymbolicSupernodalCholesky<usize> {
        match self.factor.raw() {
            SymbolicCholeskyRaw::Supernodal(own) => own,
            SymbolicCholeskyRaw::Simplicial(_) => unreachable!("supernodes are asked for"),
        }
    }

    fn node(&self, s: usize) -> Node<'_> {
        let all = self.supernodal();
        let own = all.supernode(s);
        let size = all.supernode_end()[s] - own.start();
        Node { start: own.start(), size, below: own.pattern(), at: all.col_ptr_for_val()[s] }
    }

    fn count(&self) -> usize {
        self.supernodal().n_supernodes()
    }
}

impl SparseCholesky {
    /// Factorises the matrix with these numbers in its lower triangle.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`].
    pub fn new(pattern: &Arc<Pattern>, entries: &[f64], matrix: &'static str) -> Result<Self> {
        let n = pattern.size;
        let symbolic =
            SymbolicSparseColMatRef::new_checked(n, n, &pattern.starts, None, &pattern.rows);
        let par = par_for(n);
        let scratch = pattern.factor.factorize_numeric_llt_scratch::<f64>(par, Default::default());
        let mut values = vec![0.0; pattern.factor.len_val()];
        let outcome = pattern.factor.factorize_numeric_llt(
            &mut values,
            SparseColMatRef::new(symbolic, entries),
            Side::Lower,
            Default::default(),
            par,
            MemStack::new(&mut MemBuffer::new(scratch)),
            Default::default(),
        );
        let failed = match outcome {
            Ok(_) => None,
            Err(LltError::NonPositivePivot { index }) => {
                pattern.places.iter().position(|place| *place == index)
            }
        };
        let own = Self { pattern: Arc::clone(pattern), values };
        match failed.or_else(|| (!own.log_det().is_finite()).then_some(0)) {
            None => Ok(own),
            Some(pivot) => Err(Error::NotPositiveDefinite {
                matrix,
                size: n,
                pivot,
                jitter: 0.0,
                hint: "likely causes: rows that nearly follow from others under a very smooth kernel; a rougher kernel, such as matern52, helps",
            }),
        }
    }

    /// Returns the number of rows.
    pub fn size(&self) -> usize {
        self.pattern.size
    }

    /// Returns log |A|.
    pub fn log_det(&self) -> f64 {
        let of = |s: usize| {
            let node = self.pattern.node(s);
            let own = node.of(&self.values);
            (0..node.size).map(|j| own[(j, j)].ln()).sum::<f64>()
        };
        2.0 * (0..self.pattern.count()).map(of).sum::<f64>()
    }

    /// Solves AX = B in place, B of N×K.
    pub fn solve(&self, b: &mut Mat<f64>) {
        let mut own = self.whitened(b.as_ref());
        self.coloured(own.as_mut());
        *b = self.as_given(own.as_ref());
    }

    /// Returns W (N×K) with WᵀW = BᵀA⁻¹B: L⁻¹B in the order of the factor.
    pub fn whitened(&self, b: MatRef<'_, f64>) -> Mat<f64> {
        let (pattern, k) = (&*self.pattern, b.ncols());
        let mut w = Mat::zeros(pattern.size, k);
        for j in 0..k {
            let own = w.col_as_slice_mut(j);
            pattern.places.iter().enumerate().for_each(|(i, at)| own[*at] = b[(i, j)]);
        }
        let mut moved = Mat::new();
        for s in 0..pattern.count() {
            let node = pattern.node(s);
            let (top, below) = node.of(&self.values).split_at_row(node.size);
            let mut own = w.as_mut().subrows_mut(node.start, node.size);
            solve_lower(top, own.rb_mut(), par_for(node.size));
            super::sized(&mut moved, node.below.len(), k);
            gemm(moved.as_mut(), Accum::Replace, below, own.rb(), 1.0, par_for(node.height()));
            for j in 0..k {
                let (moved, own) = (moved.col_as_slice(j), w.col_as_slice_mut(j));
                node.below.iter().zip(moved).for_each(|(row, by)| own[*row] -= by);
            }
        }
        w
    }

    /// Computes L⁻ᵀW in place, in the order of the factor: of W with normal entries, draws with the
    /// covariance A⁻¹.
    fn coloured(&self, mut w: MatMut<'_, f64>) {
        let (pattern, k) = (&*self.pattern, w.ncols());
        let mut there = Mat::new();
        for s in (0..pattern.count()).rev() {
            let node = pattern.node(s);
            let (top, below) = node.of(&self.values).split_at_row(node.size);
            super::sized(&mut there, node.below.len(), k);
            for j in 0..k {
                let own = there.col_as_slice_mut(j);
                own.iter_mut().zip(node.below).for_each(|(own, row)| *own = w[(*row, j)]);
            }
            let mut own = w.rb_mut().subrows_mut(node.start, node.size);
            let par = par_for(node.height());
            gemm(own.rb_mut(), Accum::Add, below.transpose(), there.as_ref(), -1.0, par);
            solve_lower_transpose(top, own, par_for(node.size));
        }
    }

    /// Returns it in the order of the rows.
    fn as_given(&self, w: MatRef<'_, f64>) -> Mat<f64> {
        Mat::from_fn(w.nrows(), w.ncols(), |i, j| w[(self.pattern.places[i], j)])
    }

    /// Turns normal numbers (N×K) into K draws of a normal law with the covariance A⁻¹.
    pub fn drawn(&self, mut normal: Mat<f64>) -> Mat<f64> {
        self.coloured(normal.as_mut());
        self.as_given(normal.as_ref())
    }

    /// Returns bᵀA⁻¹b of K vectors that are zero but at a few rows: only supernodes on the way from these to the last one are entered,
    /// once for all. `work` has N×K zeros or more, and is left so.
    pub fn forms(&self, all: &[Vec<(u32, f64)>], work: &mut Mat<f64>) -> Vec<f64> {
        let pattern = &*self.pattern;
        let mut nodes = std::collections::BTreeSet::new();
        for (j, own) in all.iter().enumerate() {
            for (row, b) in own {
                let place = pattern.places[*row as usize];
                work[(place, j)] += b;
                nodes.insert(pattern.nodes[place]);
            }
        }
        let mut squares = vec![0.0; all.len()];
        let mut moved = Mat::new();
        while let Some(s) = nodes.pop_first() {
            let node = pattern.node(s);
            let (top, below) = node.of(&self.values).split_at_row(node.size);
            let mut own = work.as_mut().submatrix_mut(node.start, 0, node.size, all.len());
            solve_lower(top, own.rb_mut(), Par::Seq);
            super::sized(&mut moved, node.below.len(), all.len());
            gemm(moved.as_mut(), Accum::Replace, below, own.rb(), 1.0, Par::Seq);
            for (j, square) in squares.iter_mut().enumerate() {
                let (own, moved) = (work.col_as_slice_mut(j), moved.col_as_slice(j));
                let top = &mut own[node.start..][..node.size];
                *square += sum_of_products(top, top);
                top.fill(0.0);
                node.below.iter().zip(moved).for_each(|(row, by)| own[*row] -= by);
            }
            nodes.extend(node.below.first().map(|row| pattern.nodes[*row]));
        }
        squares
    }

    /// Returns those entries of A⁻¹ where the factor is not zero. `go_on` is asked now and then, and may end it.
    ///
    /// # Errors
    /// Those of `go_on`.
    pub fn inverse(&self, go_on: &dyn Fn() -> Result<()>) -> Result<SelectedInverse> {
        let pattern = &*self.pattern;
        let mut values = vec![0.0; self.values.len()];
        let (mut outer, mut y) = (Mat::new(), Mat::new());
        for s in (0..pattern.count()).rev() {
            if s % ASKED == 0 {
                go_on()?;
            }
            let node = pattern.node(s);
            let (top, below) = node.of(&self.values).split_at_row(node.size);
            let (r, par) = (node.below.len(), par_for(node.height()));
            super::sized(&mut outer, r, r);
            gather(pattern, &values, node.below, outer.as_mut());
            // Yᵀ
            super::sized(&mut y, node.size, r);
            y.copy_from(below.transpose());
            solve_lower_transpose(top, y.as_mut(), par);
            let mut root = Mat::<f64>::identity(node.size, node.size);
            solve_lower(top, root.as_mut(), par);
            let own = &mut values[node.at..][..node.height() * node.size];
            let own = MatMut::from_column_major_slice_mut(own, node.height(), node.size);
            let (mut inner, mut beside) = own.split_at_row_mut(node.size);
            let (y, outer) = (y.as_ref(), outer.as_ref());
            gemm(beside.rb_mut(), Accum::Replace, outer, y.transpose(), -1.0, par);
            let root = root.as_ref();
            gemm(inner.rb_mut(), Accum::Replace, root.transpose(), root, 1.0, par);
            gemm(inner, Accum::Add, y, beside.rb(), -1.0, par);
        }
        Ok(SelectedInverse { pattern: Arc::clone(&self.pattern), values })
    }
}

/// Copies the entries between rows, which ascend and are those of a supernode, from the supernodes of these rows.
fn gather(pattern: &Pattern, values: &[f64], rows: &[usize], mut out: MatMut<'_, f64>) {
    let mut first = 0;
    let mut at = Vec::new();
    while first < rows.len() {
        let node = pattern.node(pattern.nodes[rows[first]]);
        let from = node.of(values);
        let end = first + rows[first..].partition_point(|row| *row < node.start + node.size);
        at.clear();
        at.extend(rows[first..end].iter().map(|row| row - node.start));
        let mut next = 0;
        for row in &rows[end..] {
            next += node.below[next..].partition_point(|below| below < row);
            debug_assert_eq!(node.below[next], *row);
            at.push(node.size + next);
        }
        for j in first..end {
            let (own, from) =
                (column_mut(out.rb_mut(), j), super::column(from, rows[j] - node.start));
            own[j..].iter_mut().zip(&at[j - first..]).for_each(|(own, at)| *own = from[*at]);
        }
        first = end;
    }
    mirror_lower(out);
}

impl SelectedInverse {
    /// Returns the diagonal, N numbers.
    pub fn diagonal(&self) -> Vec<f64> {
        (0..self.pattern.size as u32).map(|i| self.at(i, i).unwrap_or(f64::NAN)).collect()
    }

    /// Returns the entry of two rows; none where the factor is zero.
    fn at(&self, i: u32, j: u32) -> Option<f64> {
        let places = &self.pattern.places;
        let (a, b) = (places[i as usize], places[j as usize]);
        let (row, column) = (a.max(b), a.min(b));
        let node = self.pattern.node(self.pattern.nodes[column]);
        node.find(row).map(|row| node.of(&self.values)[(row, column - node.start)])
    }

    /// Copies the entries between k rows that are coupled, k×k.
    pub fn of_clique(&self, rows: &[u32], mut out: MatMut<'_, f64>) {
        for (j, column) in rows.iter().enumerate() {
            for (i, row) in rows.iter().enumerate().skip(j) {
                let own = self.at(*row, *column).unwrap_or(f64::NAN);
                (out[(i, j)], out[(j, i)]) = (own, own);
            }
        }
    }
}

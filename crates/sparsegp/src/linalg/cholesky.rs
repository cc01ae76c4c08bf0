//! Cholesky factorisation with a jitter ladder, and its adjoint.

use super::transposes::TILE;
use super::triangles::{FACTORISATIONS, solve};
use super::{
    Accum, LEAF, Mat, MatMut, MatRef, Par, clear_upper, column, column_mut, gram_lower, inner_gram,
    invert_lower, par_for, sized, solve_lower, solve_lower_transpose,
};
use crate::error::{Error, Result};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::reborrow::{Reborrow, ReborrowMut};
use serde::{Deserialize, Serialize};

/// What is added to the diagonal before factorising.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Jitter {
    /// This number, once.
    Absolute(f64),
    /// This fraction of the mean of the diagonal; ten times more at each failure, up to 1e-2.
    Relative(f64),
}

impl Jitter {
    /// Returns the jitter where it is absolute; 0 where it is relative, for whoever needs none to factor.
    pub fn absolute(self) -> f64 {
        match self {
            Self::Absolute(jitter) => jitter,
            Self::Relative(_) => 0.0,
        }
    }
}

impl Default for Jitter {
    fn default() -> Self {
        Jitter::Relative(1e-6)
    }
}

const LARGEST_RELATIVE: f64 = 1e-2;

/// `A + jitter·I = L Lᵀ`.
#[derive(Clone, Debug)]
pub struct Cholesky {
    /// Lower-triangular factor, zeros above the diagonal.
    pub l: Mat<f64>,
    /// What was added to the diagonal.
    pub jitter: f64,
    /// The part of the jitter that is a multiple of the mean of the diagonal (0 for an absolute one).
    pub relative: f64,
    memory: Memory,
}

/// Larger matrices are factorised and inverted by blocks of columns, between which one may end it, and not by halves.
const BY_HALVES: usize = 2048;
/// Columns of such a block.
const BLOCK: usize = 384;

/// Factorises the lower triangle in place (Golub & Van Loan 2013, §4.2): L₁₁ of A₁₁, L₂₁ = A₂₁L₁₁⁻ᵀ, L₂₂ of A₂₂ − L₂₁L₂₁ᵀ; the inner error
/// is the index of the first pivot that is not positive. What is above the diagonal of more than `at_once` rows is not touched.
fn factorise(
    mut l: MatMut<'_, f64>,
    at_once: usize,
    par: Par,
    stack: &mut MemStack,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<std::result::Result<(), usize>> {
    let n = l.nrows();
    if n <= at_once {
        let (plain, usual) = (Default::default(), Default::default());
        let outcome = llt::factor::cholesky_in_place(l.rb_mut(), plain, Par::Seq, stack, usual);
        // it leaves scratch above the diagonal
        clear_upper(l);
        return Ok(match outcome {
            Err(llt::factor::LltError::NonPositivePivot { index }) => Err(index),
            Ok(_) => Ok(()),
        });
    }
    if n > BLOCK {
        go_on()?;
    }
    let cut = if n > BY_HALVES { BLOCK } else { (n / 2).next_multiple_of(TILE.min(at_once)) };
    let (mut first, _, mut below, mut second) = l.rb_mut().split_at_mut(cut, cut);
    if let Err(index) = factorise(first.rb_mut(), at_once, par, stack, go_on)? {
        return Ok(Err(index));
    }
    solve(first.rb(), false, below.rb_mut().transpose_mut(), par);
    let rows = below.rb().transpose();
    gram_lower(second.rb_mut(), Accum::Add, rows, rows, -1.0, par);
    let outcome = factorise(second, at_once, par, stack, go_on)?;
    Ok(outcome.map_err(|index| cut + index))
}

/// What the factorisation needs beside the factor.
struct Memory(MemBuffer, usize);

impl Clone for Memory {
    fn clone(&self) -> Self {
        Self::for_size(self.1)
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({})", self.1)
    }
}

impl Memory {
    fn for_size(n: usize) -> Self {
        let scratch = llt::factor::cholesky_in_place_scratch::<f64>;
        Self(MemBuffer::new(scratch(n.min(LEAF), Par::Seq, Default::default())), n)
    }
}

impl Cholesky {
    /// Takes a lower-triangular factor with zeros above the diagonal, of A without jitter.
    pub fn of_factor(l: Mat<f64>) -> Self {
        let memory = Memory::for_size(l.nrows());
        Self { l, jitter: 0.0, relative: 0.0, memory }
    }

    /// Factorises a symmetric matrix, of which only the lower triangle is read.
    ///
    /// # Errors
    /// [`Error::NonFinite`] if the diagonal holds a NaN or an infinity,
    /// [`Error::NotPositiveDefinite`] if it fails at the largest jitter.
    pub fn new(a: MatRef<'_, f64>, jitter: Jitter, matrix: &'static str) -> Result<Self> {
        Self::watched(a, jitter, matrix, &|| Ok(()))
    }

    /// Does the same; `go_on` is asked before it begins and before every large part, and may end it.
    ///
    /// # Errors
    /// As for [`Cholesky::new`], and those of `go_on`.
    pub fn watched(
        a: MatRef<'_, f64>,
        jitter: Jitter,
        matrix: &'static str,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let mut factor = Self::of_factor(Mat::new());
        factor.renew_watched(a, jitter, matrix, go_on)?;
        Ok(factor)
    }

    /// Factorises another matrix in the same memory, as [`Cholesky::new`] does. After an error the
    /// factor is of nothing.
    ///
    /// # Errors
    /// As for [`Cholesky::new`].
    pub fn renew(
        &mut self,
        a: MatRef<'_, f64>,
        jitter: Jitter,
        matrix: &'static str,
    ) -> Result<()> {
        self.renew_watched(a, jitter, matrix, &|| Ok(()))
    }

    /// Does the same, watched as by [`Cholesky::watched`].
    ///
    /// # Errors
    /// As for [`Cholesky::new`], and those of `go_on`.
    pub fn renew_watched(
        &mut self,
        a: MatRef<'_, f64>,
        jitter: Jitter,
        matrix: &'static str,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let n = a.nrows();
        let mean = (0..n).map(|i| a[(i, i)]).sum::<f64>() / n.max(1) as f64;
        if !mean.is_finite() {
            return Err(Error::NonFinite {
                what: format!("the diagonal of {matrix}"),
                value: mean,
            });
        }
        if self.memory.1 != n {
            self.memory = Memory::for_size(n);
        }
        if self.l.nrows() != n {
            sized(&mut self.l, n, n);
            clear_upper(self.l.as_mut());
        }
        let mut relative = match jitter {
            Jitter::Absolute(_) => 0.0,
            Jitter::Relative(fraction) => fraction,
        };
        loop {
            let added = match jitter {
                Jitter::Absolute(value) => value,
                Jitter::Relative(_) => relative * mean.abs(),
            };
            for j in 0..n {
                let target = column_mut(self.l.as_mut(), j);
                target[j..].copy_from_slice(&column(a, j)[j..]);
                target[j] += added;
            }
            go_on()?;
            FACTORISATIONS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let stack = MemStack::new(&mut self.memory.0);
            match factorise(self.l.as_mut(), LEAF, par_for(n), stack, go_on)? {
                Ok(()) => {
                    (self.jitter, self.relative) = (added, relative);
                    return Ok(());
                }
                Err(index) => {
                    let next = if relative == 0.0 { 1e-10 } else { relative * 10.0 };
                    let exhausted = next > LARGEST_RELATIVE * 1.000_001;
                    if exhausted || matches!(jitter, Jitter::Absolute(_)) {
                        return Err(Error::NotPositiveDefinite {
                            matrix,
                            size: n,
                            pivot: index,
                            jitter: added,
                            hint: "likely causes: duplicate points, a very large lengthscale, \
                                   inputs that are not scaled; fewer inducing points or a larger \
                                   jitter help",
                        });
                    }
                    relative = next;
                }
            }
        }
    }

    /// Returns the number of rows.
    pub fn size(&self) -> usize {
        self.l.nrows()
    }

    /// Returns log|A + jitter·I|.
    pub fn log_det(&self) -> f64 {
        2.0 * (0..self.size()).map(|i| self.l[(i, i)].ln()).sum::<f64>()
    }

    /// Computes the same as [`Cholesky::inverse`] into `out`, with memory for L⁻¹; of a large
    /// matrix, for which L⁻¹ is not made, `go_on` is asked before every block of columns, and may
    /// end it.
    ///
    /// # Errors
    /// Those of `go_on`.
    pub fn inverse_watched(
        &self,
        root: &mut Mat<f64>,
        out: &mut Mat<f64>,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        if self.size() > BY_HALVES {
            return self.inverse_in_blocks(BLOCK, out, go_on);
        }
        go_on()?;
        self.inverse_into(root, out);
        Ok(())
    }

    /// Inverts block by block of columns, from the diagonal down.
    fn inverse_in_blocks(
        &self,
        block: usize,
        inverse: &mut Mat<f64>,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let n = self.size();
        sized(inverse, n, n);
        for from in (0..n).step_by(block.max(1)) {
            go_on()?;
            let (size, rest) = (block.min(n - from), n - from);
            let l = self.l.as_ref().submatrix(from, from, rest, rest);
            let mut own = inverse.as_mut().submatrix_mut(from, from, rest, size);
            own.fill(0.0);
            (0..size).for_each(|j| own[(j, j)] = 1.0);
            let par = par_for(rest);
            solve_lower(l, own.rb_mut(), par);
            solve_lower_transpose(l, own, par);
        }
        super::mirror_lower(inverse.as_mut());
        Ok(())
    }

    /// Returns (A + jitter·I)⁻¹ = L⁻ᵀL⁻¹, both triangles.
    pub fn inverse(&self) -> Mat<f64> {
        let (mut root, mut inverse) = (Mat::new(), Mat::new());
        self.inverse_into(&mut root, &mut inverse);
        inverse
    }

    fn inverse_into(&self, root: &mut Mat<f64>, out: &mut Mat<f64>) {
        let n = self.size();
        let par = par_for(n);
        sized(root, n, n);
        sized(out, n, n);
        invert_lower(root.as_mut(), self.l.as_ref(), par);
        inner_gram(out.as_mut(), root.as_ref(), par);
        super::mirror_lower(out.as_mut());
    }

    /// Solves `(A + jitter·I) X = B` for B with any number of columns.
    pub fn solve(&self, b: MatRef<'_, f64>) -> Mat<f64> {
        let mut x = b.to_owned();
        let par = par_for(self.size());
        solve_lower(self.l.as_ref(), x.as_mut(), par);
        solve_lower_transpose(self.l.as_ref(), x.as_mut(), par);
        x
    }

    /// Returns a lower-triangular R with R Rᵀ = (A + jitter·I)⁻¹ ([`InverseRoot::of`]).
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] as for [`Cholesky::new`].
    pub fn inverse_root(
        a: MatRef<'_, f64>,
        jitter: Jitter,
        matrix: &'static str,
    ) -> Result<Mat<f64>> {
        let mut root = Mat::new();
        InverseRoot::default().of(a, jitter, matrix, &mut root)?;
        Ok(root)
    }

    /// Returns the adjoint of the factorisation: Ā from L̄ (lower triangle read), symmetric, Ā =
    /// sym(L⁻ᵀ P(LᵀL̄) L⁻¹) with P = lower triangle with halved diagonal (Murray 2016).
    pub fn adjoint(&self, l_bar: MatRef<'_, f64>) -> Mat<f64> {
        let n = self.size();
        let lower = Mat::from_fn(n, n, |i, j| if i >= j { l_bar[(i, j)] } else { 0.0 });
        let mut p = super::product(self.l.transpose(), lower.as_ref());
        for j in 0..n {
            p[(j, j)] *= 0.5;
            for i in 0..j {
                p[(i, j)] = 0.0;
            }
        }
        // sym(L⁻ᵀ P L⁻¹) = ½ L⁻ᵀ (P + Pᵀ) L⁻¹
        let symmetric = Mat::from_fn(n, n, |i, j| 0.5 * (p[(i, j)] + p[(j, i)]));
        super::sandwich_inverse(self.l.as_ref(), symmetric, Par::Seq)
    }

    /// Adds the part of the adjoint of A that comes from a jitter proportional to the mean of the
    /// diagonal: the factor is that of A + ε mean(diag A) I.
    pub fn pull_jitter(&self, a_bar: &mut Mat<f64>) {
        let n = self.size();
        if self.relative == 0.0 || n == 0 {
            return;
        }
        let trace: f64 = (0..n).map(|i| a_bar[(i, i)]).sum();
        let extra = self.relative * trace / n as f64;
        for i in 0..n {
            a_bar[(i, i)] += extra;
        }
    }
}

/// Lower roots of inverses, with the memory it takes.
#[derive(Clone, Debug)]
pub struct InverseRoot {
    flipped: Mat<f64>,
    factor: Cholesky,
}

impl Default for InverseRoot {
    fn default() -> Self {
        Self { flipped: Mat::new(), factor: Cholesky::of_factor(Mat::new()) }
    }
}

impl InverseRoot {
    /// Computes a lower-triangular R with R Rᵀ = (A + jitter·I)⁻¹, without squaring the condition
    /// number, into `root`; the lower triangle of A is read. With J the reversal, J A J = L̃ L̃ᵀ
    /// gives A = U Uᵀ for the upper-triangular U = J L̃ J, and R = U⁻ᵀ.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] as for [`Cholesky::new`].
    pub fn of(
        &mut self,
        a: MatRef<'_, f64>,
        jitter: Jitter,
        matrix: &'static str,
        root: &mut Mat<f64>,
    ) -> Result<()> {
        let n = a.nrows();
        sized(&mut self.flipped, n, n);
        reverse_transpose(a, self.flipped.as_mut());
        self.factor.renew(self.flipped.as_ref(), jitter, matrix)?;
        // U⁻¹ = J L̃⁻¹ J is upper triangular; its transpose is R
        invert_lower(self.flipped.as_mut(), self.factor.l.as_ref(), par_for(n));
        sized(root, n, n);
        reverse_transpose(self.flipped.as_ref(), root.as_mut());
        clear_upper(root.as_mut());
        Ok(())
    }
}

/// Computes the lower triangle of (J A J)ᵀ with J the reversal, from the lower triangle of A.
fn reverse_transpose(a: MatRef<'_, f64>, mut out: MatMut<'_, f64>) {
    let n = a.nrows();
    // (JAJ)ᵀ has a[n−1−j, n−1−i] at (i, j)
    const TILE: usize = 32;
    for j0 in (0..n).step_by(TILE) {
        for i0 in (j0..n).step_by(TILE) {
            for j in j0..(j0 + TILE).min(n) {
                for i in i0.max(j)..(i0 + TILE).min(n) {
                    out[(i, j)] = a[(n - 1 - j, n - 1 - i)];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Σₖ sin(i + 3k) sin(j + 3k) and n on the diagonal.
    fn matrix(n: usize) -> Mat<f64> {
        let entry = |i: usize, k: usize| (i as f64 * 1.7 + 3.0 * k as f64).sin();
        Mat::from_fn(n, n, |i, j| {
            let sum: f64 = (0..n).map(|k| entry(i, k) * entry(j, k)).sum();
            sum + if i == j { n as f64 } else { 0.0 }
        })
    }

    fn factor_by(a: &Mat<f64>, at_once: usize) -> std::result::Result<Mat<f64>, usize> {
        let (mut l, mut memory) = (a.clone(), Memory::for_size(a.nrows()));
        let stack = MemStack::new(&mut memory.0);
        factorise(l.as_mut(), at_once, Par::Seq, stack, &|| Ok(())).unwrap()?;
        clear_upper(l.as_mut());
        Ok(l)
    }

    #[test]
    fn parts_make_the_same_factor_and_inverse() {
        for n in [1, 5, 33, 70] {
            let a = matrix(n);
            let whole = Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "A").unwrap();
            for block in [1, 7, 16, n] {
                let l = factor_by(&a, block).unwrap();
                let mut inverse = Mat::new();
                whole.inverse_in_blocks(block, &mut inverse, &|| Ok(())).unwrap();
                assert!((&l - &whole.l).norm_max() < 1e-12 * n as f64, "{n} {block}");
                assert!((&inverse - whole.inverse()).norm_max() < 1e-12, "{n} {block}");
            }
            // the first row that depends on those before it
            let mut bad = a.clone();
            for i in [n / 2, n - 1] {
                bad[(i, i)] = -1.0;
            }
            assert_eq!(factor_by(&bad, 7), Err(n / 2));
        }
    }

    #[test]
    fn above_the_diagonal_are_zeros_whatever_was_there_before() {
        let mut factor = Cholesky::of_factor(Mat::new());
        for (n, is_positive) in [(200, true), (200, false), (200, true), (33, true), (300, true)] {
            let mut a = matrix(n);
            if !is_positive {
                a[(n - 1, n - 1)] = -1.0;
            }
            let outcome = factor.renew(a.as_ref(), Jitter::Absolute(0.0), "A");
            assert_eq!(outcome.is_ok(), is_positive);
            if is_positive {
                assert!((&factor.l * factor.l.transpose() - &a).norm_max() < 1e-10);
                let above = (0..n).flat_map(|j| (0..j).map(move |i| (i, j)));
                assert!(above.into_iter().all(|(i, j)| factor.l[(i, j)] == 0.0), "{n}");
            }
        }
    }

    #[test]
    fn large_ones_end_when_they_are_asked_to() {
        let n = BY_HALVES + BLOCK;
        let mut a = Mat::<f64>::identity(n, n);
        a[(n - 1, 0)] = 0.5;
        let asked = Cell::new(0);
        let watched = |most| {
            let asked = &asked;
            asked.set(0);
            Cholesky::watched(a.as_ref(), Jitter::Absolute(0.0), "A", &|| {
                asked.set(asked.get() + 1);
                if asked.get() > most { Err(Error::Interrupted) } else { Ok(()) }
            })
        };
        assert!(matches!(watched(2), Err(Error::Interrupted)));
        let factor = watched(9).unwrap();
        assert!((factor.log_det() - 0.75_f64.ln()).abs() < 1e-12);
        // before all, and for 2432, 2048, two of 1024 and four of 512 rows
        assert_eq!(asked.get(), 9);
        let (mut root, mut inverse) = (Mat::new(), Mat::new());
        let stop = || Err(Error::Interrupted);
        let ended = factor.inverse_watched(&mut root, &mut inverse, &stop);
        assert!(matches!(ended, Err(Error::Interrupted)));
        factor.inverse_watched(&mut root, &mut inverse, &|| Ok(())).unwrap();
        assert!((inverse[(n - 1, 0)] + 0.5 / 0.75).abs() < 1e-12);
        assert!((inverse[(0, n - 1)] + 0.5 / 0.75).abs() < 1e-12);
    }
}

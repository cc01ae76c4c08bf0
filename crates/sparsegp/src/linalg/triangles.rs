//! Triangular systems and inverses, by halves.

use super::transposes::{TILE, mirror_lower, symmetrise, with_other};
use super::{
    Accum, Cholesky, Jitter, LOWER, Mat, MatMut, MatRef, Par, Real, WHOLE, gemm, structured,
    unless_vector,
};
use faer::linalg::{triangular_inverse, triangular_solve};
use faer::reborrow::{Reborrow, ReborrowMut};
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) static FACTORISATIONS: AtomicU64 = AtomicU64::new(0);
static SOLVES: AtomicU64 = AtomicU64::new(0);

/// Returns how many matrices have been factorised, and how many triangular systems solved (inverses
/// of triangular matrices count as such), since the program began: what a method without either is
/// held to.
pub fn counts() -> (u64, u64) {
    (FACTORISATIONS.load(Ordering::Relaxed), SOLVES.load(Ordering::Relaxed))
}

/// Solves `L X = B` in place, for L of M×M and B of M×k.
pub fn solve_lower<T: Real>(l: MatRef<'_, T>, b: MatMut<'_, T>, par: Par) {
    SOLVES.fetch_add(1, Ordering::Relaxed);
    solve(l, false, b, par);
}

/// Solves `Lᵀ X = B` in place, for L of M×M and B of M×k.
pub fn solve_lower_transpose<T: Real>(l: MatRef<'_, T>, b: MatMut<'_, T>, par: Par) {
    SOLVES.fetch_add(1, Ordering::Relaxed);
    solve(l.transpose(), true, b, par);
}

/// Triangles up to this size are left to `faer`; larger ones are halved, and what is between the halves is a product.
pub(super) const LEAF: usize = 128;
/// Triangles with more rows are halved before the columns of a right-hand side are shared by threads.
const ROWS: usize = 1024;
/// Right-hand sides with as many columns are halved for threads.
const COLUMNS: usize = 384;

/// Solves `T X = B` in place for a lower or an upper triangle. Threads share what needs nothing
/// from each other, not `faer`'s solve itself, whose threads wait for each other at many small
/// parts: with rows along the columns of B, two were no faster than one.
pub(super) fn solve<T: Real>(t: MatRef<'_, T>, upper: bool, b: MatMut<'_, T>, par: Par) {
    let (rows, columns) = (b.nrows(), b.ncols());
    let par = unless_vector(rows, columns, par);
    if matches!(par, Par::Rayon(_)) && rows <= ROWS && columns >= COLUMNS {
        let (left, right) = b.split_at_col_mut((columns / 2).next_multiple_of(TILE));
        rayon::join(|| solve(t, upper, left, par), || solve(t, upper, right, par));
    } else if rows > LEAF {
        let half = (rows / 2).next_multiple_of(TILE);
        let (first, above, below, second) = t.split_at(half, half);
        let (mut top, mut bottom) = b.split_at_row_mut(half);
        if upper {
            solve(second, true, bottom.rb_mut(), par);
            gemm(top.rb_mut(), Accum::Add, above, bottom.rb(), T::of(-1.0), par);
            solve(first, true, top, par);
        } else {
            solve(first, false, top.rb_mut(), par);
            gemm(bottom.rb_mut(), Accum::Add, below, top.rb(), T::of(-1.0), par);
            solve(second, false, bottom, par);
        }
    } else if upper {
        triangular_solve::solve_upper_triangular_in_place(t, b, Par::Seq);
    } else {
        triangular_solve::solve_lower_triangular_in_place(t, b, Par::Seq);
    }
}

/// Does one after the other, or both at the same time.
fn both(par: Par, one: impl FnOnce() + Send, other: impl FnOnce() + Send) {
    match par {
        Par::Seq => {
            one();
            other();
        }
        Par::Rayon(_) => {
            rayon::join(one, other);
        }
    }
}

/// Computes the lower triangle of `dst = L⁻¹` for a lower-triangular L.
pub fn invert_lower(dst: MatMut<'_, f64>, l: MatRef<'_, f64>, par: Par) {
    SOLVES.fetch_add(1, Ordering::Relaxed);
    invert(dst, l, par);
}

/// Inverts by halves (Higham 2002, §14.2): the inverses of L₁₁ and L₂₂ on the diagonal, and
/// −L₂₂⁻¹(L₂₁L₁₁⁻¹) below.
fn invert(dst: MatMut<'_, f64>, l: MatRef<'_, f64>, par: Par) {
    let n = l.nrows();
    if n <= LEAF {
        return triangular_inverse::invert_lower_triangular(dst, l, Par::Seq);
    }
    let half = (n / 2).next_multiple_of(TILE);
    let (l11, _, l21, l22) = l.split_at(half, half);
    let (mut first, _, mut below, second) = dst.split_at_mut(half, half);
    both(par, || invert(first.rb_mut(), l11, par), || invert(second, l22, par));
    let (x, factor) = ((first.rb(), LOWER), (l21, WHOLE));
    structured((below.rb_mut(), WHOLE), Accum::Replace, factor, x, -1.0, par);
    solve(l22, false, below, par);
}

/// Returns a lower-triangular U with UᵀU = A, for a symmetric A; none where that is not positive
/// definite. It is the factor of A with rows and columns in the opposite order, turned around.
pub fn inner_root(a: MatRef<'_, f64>) -> Option<Mat<f64>> {
    let n = a.nrows();
    let last = n.wrapping_sub(1);
    let reversed = Mat::from_fn(n, n, |i, j| a[(last - i, last - j)]);
    let factor = Cholesky::new(reversed.as_ref(), Jitter::Absolute(0.0), "a matrix").ok()?;
    Some(Mat::from_fn(n, n, |i, j| if i >= j { factor.l[(last - j, last - i)] } else { 0.0 }))
}

/// Returns `L⁻ᵀ S L⁻¹` for a symmetric S, of which the lower triangle is read; symmetric again to
/// the last bit. M³ operations, where the solves from both sides have 2M³.
pub fn sandwich_inverse(l: MatRef<'_, f64>, mut s: Mat<f64>, par: Par) -> Mat<f64> {
    sandwich(l, s.as_mut(), par);
    s
}

/// Side of the blocks of [`sandwich_inverse`] that are solved from both sides.
const SANDWICH: usize = 96;

/// Computes the same in place, by halves as in a reduction of a generalised symmetric eigenproblem:
/// of T = L⁻ᵀSL⁻¹ with L₂₁ below the halves L₁₁ and L₂₂ of the diagonal,
///
/// ```text
/// T₂₂ = L₂₂⁻ᵀ S₂₂ L₂₂⁻¹       W = L₂₂⁻ᵀ S₂₁       H = ½ T₂₂ L₂₁       X = W − H
/// T₂₁ = (X − H) L₁₁⁻¹         T₁₁ = L₁₁⁻ᵀ (S₁₁ − L₂₁ᵀX − XᵀL₂₁) L₁₁⁻¹
/// ```
pub(crate) fn sandwich(l: MatRef<'_, f64>, mut s: MatMut<'_, f64>, par: Par) {
    let n = l.nrows();
    if n <= SANDWICH {
        mirror_lower(s.rb_mut());
        solve_lower_transpose(l, s.rb_mut(), par);
        // now L⁻ᵀS; its transpose is S L⁻¹, and Lᵀ X = S L⁻¹ … from the left
        solve_lower_transpose(l, s.rb_mut().transpose_mut(), par);
        return symmetrise(s);
    }
    let half = (n / 2).next_multiple_of(TILE);
    let (mut first, mut above, mut below, mut second) = s.split_at_mut(half, half);
    let (l11, _, l21, l22) = l.split_at(half, half);
    // different quarters are computed at the same time: there is little to share in a product of
    // small halves
    both(
        par,
        || sandwich(l22, second.rb_mut(), par),
        || solve_lower_transpose(l22, below.rb_mut(), par),
    );
    // Hᵀ has its place above the diagonal, and then Xᵀ
    gemm(above.rb_mut(), Accum::Replace, l21.transpose(), second.rb(), 0.5, par);
    with_other(below.rb_mut(), above.rb_mut(), &|w: f64, h| (w - 2.0 * h, w - h));
    let x = above.rb();
    both(
        par,
        || solve_lower_transpose(l11, below.rb_mut().transpose_mut(), par),
        || {
            for (a, b) in [(l21.transpose(), x.transpose()), (x, l21)] {
                structured((first.rb_mut(), LOWER), Accum::Add, (a, WHOLE), (b, WHOLE), -1.0, par);
            }
            sandwich(l11, first.rb_mut(), par);
        },
    );
    with_other(below, above, &|t: f64, _| (t, t));
}

//! Matrices of a size that the compiler knows: states have few numbers, and loops over them unroll.

use std::ops::Range;

/// N×N, row by row.
pub(super) type Square<const N: usize> = [[f64; N]; N];
/// Sums side by side in a product of long vectors.
const LANES: usize = 8;
/// N numbers.
pub(super) type Vector<const N: usize> = [f64; N];

pub(super) const fn zeros<const N: usize>() -> Square<N> {
    [[0.0; N]; N]
}

/// Reads the first n rows and columns of a square of N, from n² numbers.
pub(super) fn read<const N: usize>(from: &[f64], n: usize, to: &mut Square<N>) {
    for (i, row) in to.iter_mut().enumerate().take(n) {
        row[..n].copy_from_slice(&from[i * n..][..n]);
    }
}

/// Does the inverse of [`read`].
pub(super) fn write<const N: usize>(from: &Square<N>, n: usize, to: &mut [f64]) {
    for (i, row) in from.iter().enumerate().take(n) {
        to[i * n..][..n].copy_from_slice(&row[..n]);
    }
}

pub(super) fn dot<const N: usize>(a: &Vector<N>, b: &Vector<N>) -> f64 {
    let mut sum = 0.0;
    if N < LANES * 2 {
        for i in 0..N {
            sum += a[i] * b[i];
        }
        return sum;
    }
    // sums side by side: a single one waits for every addition before the next
    let mut sums = [0.0; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    for (a, b) in a.remainder().iter().zip(b.remainder()) {
        sum += a * b;
    }
    for (a, b) in a.zip(b) {
        (0..LANES).for_each(|lane| sums[lane] += a[lane] * b[lane]);
    }
    sum + sums.iter().sum::<f64>()
}

/// Returns Av.
pub(super) fn times<const N: usize>(a: &Square<N>, v: &Vector<N>) -> Vector<N> {
    let mut out = [0.0; N];
    for i in 0..N {
        out[i] = dot(&a[i], v);
    }
    out
}

/// Returns Aᵀv.
pub(super) fn transposed_times<const N: usize>(a: &Square<N>, v: &Vector<N>) -> Vector<N> {
    let mut out = [0.0; N];
    for i in 0..N {
        for j in 0..N {
            out[j] += a[i][j] * v[i];
        }
    }
    out
}

/// Returns AB.
pub(super) fn product<const N: usize>(a: &Square<N>, b: &Square<N>) -> Square<N> {
    let mut out = zeros();
    for i in 0..N {
        for k in 0..N {
            let factor = a[i][k];
            for j in 0..N {
                out[i][j] += factor * b[k][j];
            }
        }
    }
    out
}

/// Returns Aᵀ.
pub(super) fn transposed<const N: usize>(a: &Square<N>) -> Square<N> {
    let mut out = *a;
    transpose(&mut out);
    out
}

/// Puts Aᵀ in the place of A.
fn transpose<const N: usize>(a: &mut Square<N>) {
    for i in 1..N {
        let (above, own) = a.split_at_mut(i);
        above.iter_mut().zip(&mut own[0]).for_each(|(row, b)| std::mem::swap(&mut row[i], b));
    }
}

/// Pivots of a factor below this part of the diagonal are rounding.
const ROUNDING: f64 = 1e-14;

/// Returns a lower L with LLᵀ = A for a positive semi-definite A, of whatever rank: columns of
/// pivots that are nothing but rounding are 0.
pub(super) fn root<const N: usize>(a: &Square<N>) -> Square<N> {
    let mut l: Square<N> = zeros();
    for j in 0..N {
        let known: f64 = l[j][..j].iter().map(|v| v * v).sum();
        let pivot = a[j][j] - known;
        if pivot <= ROUNDING * a[j][j] {
            continue;
        }
        let own = pivot.sqrt();
        l[j][j] = own;
        for i in j + 1..N {
            let inner: f64 = (0..j).map(|k| l[i][k] * l[j][k]).sum();
            l[i][j] = (a[i][j] - inner) / own;
        }
    }
    l
}

/// Returns an X with LLᵀX = B for a B in the range of LLᵀ, of a [`root`]: rows of pivots that are 0
/// are 0.
pub(super) fn solve_root<const N: usize>(l: &Square<N>, b: &Square<N>) -> Square<N> {
    let mut x = *b;
    let mut row = |i: usize, others: &mut dyn Iterator<Item = (usize, f64)>| {
        let mut own = x[i];
        for (k, factor) in others {
            (0..N).for_each(|c| own[c] -= factor * x[k][c]);
        }
        let pivot = l[i][i];
        x[i] = own.map(|v| if pivot == 0.0 { 0.0 } else { v / pivot });
    };
    for (i, own) in l.iter().enumerate() {
        row(i, &mut (0..i).map(|k| (k, own[k])));
    }
    for i in (0..N).rev() {
        row(i, &mut (i + 1..N).map(|k| (k, l[k][i])));
    }
    x
}

/// Makes both triangles the same.
pub(super) fn symmetrise<const N: usize>(a: &mut Square<N>) {
    for i in 1..N {
        let (above, own) = a.split_at_mut(i);
        for (row, mirrored) in above.iter_mut().zip(&mut own[0]) {
            let mean = 0.5 * (row[i] + *mirrored);
            (row[i], *mirrored) = (mean, mean);
        }
    }
}

/// Adds a multiple of B to A.
pub(super) fn add<const N: usize>(a: &mut Square<N>, times: f64, b: &Square<N>) {
    let both = a.as_flattened_mut().iter_mut().zip(b.as_flattened());
    both.for_each(|(a, b)| *a += times * b);
}

/// Where a matrix A of a step is not 0: of each row (and column) the range of the block that it is in.
#[derive(Clone, Debug)]
pub(super) struct Blocks<const N: usize> {
    of: [Range<usize>; N],
    whole: bool,
}

/// States up to which A counts as whole: loops of a known length are faster than short ones.
const WHOLE: usize = 4;

impl<const N: usize> Blocks<N> {
    /// Creates blocks of these sizes; what is beyond them is 0.
    pub(super) fn new(sizes: &[usize]) -> Self {
        let mut of = std::array::from_fn(|i| i..i);
        let mut at = 0;
        for size in sizes {
            of[at..at + size].fill(at..at + size);
            at += size;
        }
        Self { of, whole: N <= WHOLE || sizes.len() == 1 }
    }

    /// Returns the block of a row.
    fn row(&self, i: usize) -> Range<usize> {
        if self.whole { 0..N } else { self.of[i].clone() }
    }

    /// Returns Av.
    pub(super) fn times(&self, a: &Square<N>, v: &Vector<N>) -> Vector<N> {
        if self.whole {
            return times(a, v);
        }
        std::array::from_fn(|i| self.of[i].clone().map(|k| a[i][k] * v[k]).sum())
    }

    /// Returns Aᵀv.
    pub(super) fn transposed_times(&self, a: &Square<N>, v: &Vector<N>) -> Vector<N> {
        let mut out = [0.0; N];
        for i in 0..N {
            self.row(i).for_each(|j| out[j] += a[i][j] * v[i]);
        }
        out
    }

    /// Writes AB to `out`.
    fn left(&self, a: &Square<N>, b: &Square<N>, out: &mut Square<N>) {
        for i in 0..N {
            out[i] = [0.0; N];
            for k in self.row(i) {
                let factor = a[i][k];
                for j in 0..N {
                    out[i][j] += factor * b[k][j];
                }
            }
        }
    }

    /// Returns AᵀB.
    fn left_transposed(&self, a: &Square<N>, b: &Square<N>) -> Square<N> {
        let mut out = zeros();
        for i in 0..N {
            for k in self.row(i) {
                let factor = a[k][i];
                for j in 0..N {
                    out[i][j] += factor * b[k][j];
                }
            }
        }
        out
    }

    /// Puts APAᵀ in the place of a symmetric P: loops are along rows, which vectorise.
    pub(super) fn sandwich(&self, a: &Square<N>, p: &mut Square<N>) {
        let mut image = zeros();
        self.left(a, p, &mut image);
        transpose(&mut image);
        self.left(a, &image, p);
        symmetrise(p);
    }

    /// Returns PA of a symmetric P.
    pub(super) fn right(&self, p: &Square<N>, a: &Square<N>) -> Square<N> {
        let mut out = self.left_transposed(a, p);
        transpose(&mut out);
        out
    }

    /// Returns AᵀPA of a symmetric P, of which `image` = PA.
    pub(super) fn inner(&self, a: &Square<N>, image: &Square<N>) -> Square<N> {
        let mut out = self.left_transposed(a, image);
        symmetrise(&mut out);
        out
    }

    /// Adds those entries of XY that A has to `out`, times a factor; Y is symmetric.
    pub(super) fn add_product(
        &self,
        x: &Square<N>,
        y: &Square<N>,
        times: f64,
        out: &mut Square<N>,
    ) {
        for i in 0..N {
            for j in self.row(i) {
                out[i][j] += times * dot(&x[i], &y[j]);
            }
        }
    }
}

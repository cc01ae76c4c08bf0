//! Matrices of a size that the compiler knows: states have few numbers, and loops over them unroll.

/// N×N, row by row.
pub(super) type Square<const N: usize> = [[f64; N]; N];
/// N numbers.
pub(super) type Vector<const N: usize> = [f64; N];

pub(super) const fn zeros<const N: usize>() -> Square<N> {
    [[0.0; N]; N]
}

/// The first n rows and columns of a square of N, from n² numbers.
pub(super) fn read<const N: usize>(from: &[f64], n: usize, to: &mut Square<N>) {
    for (i, row) in to.iter_mut().enumerate().take(n) {
        row[..n].copy_from_slice(&from[i * n..][..n]);
    }
}

/// The inverse of [`read`].
pub(super) fn write<const N: usize>(from: &Square<N>, n: usize, to: &mut [f64]) {
    for (i, row) in from.iter().enumerate().take(n) {
        to[i * n..][..n].copy_from_slice(&row[..n]);
    }
}

pub(super) fn dot<const N: usize>(a: &Vector<N>, b: &Vector<N>) -> f64 {
    let mut sum = 0.0;
    for i in 0..N {
        sum += a[i] * b[i];
    }
    sum
}

/// Av.
pub(super) fn times<const N: usize>(a: &Square<N>, v: &Vector<N>) -> Vector<N> {
    let mut out = [0.0; N];
    for i in 0..N {
        out[i] = dot(&a[i], v);
    }
    out
}

/// Aᵀv.
pub(super) fn transposed_times<const N: usize>(a: &Square<N>, v: &Vector<N>) -> Vector<N> {
    let mut out = [0.0; N];
    for i in 0..N {
        for j in 0..N {
            out[j] += a[i][j] * v[i];
        }
    }
    out
}

/// AB.
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

/// ABᵀ, for which a symmetric result is averaged over both triangles.
fn by_transposed<const N: usize>(a: &Square<N>, b: &Square<N>) -> Square<N> {
    let mut out = zeros();
    for i in 0..N {
        for j in 0..N {
            out[i][j] = dot(&a[i], &b[j]);
        }
    }
    out
}

/// AᵀB.
pub(super) fn transposed_product<const N: usize>(a: &Square<N>, b: &Square<N>) -> Square<N> {
    let mut out = zeros();
    for k in 0..N {
        for i in 0..N {
            let factor = a[k][i];
            for j in 0..N {
                out[i][j] += factor * b[k][j];
            }
        }
    }
    out
}

/// Makes both triangles the same.
pub(super) fn symmetrise<const N: usize>(a: &mut Square<N>) {
    for i in 0..N {
        for j in 0..i {
            let mean = 0.5 * (a[i][j] + a[j][i]);
            (a[i][j], a[j][i]) = (mean, mean);
        }
    }
}

/// APAᵀ of a symmetric P.
pub(super) fn sandwich<const N: usize>(a: &Square<N>, p: &Square<N>) -> Square<N> {
    let mut out = by_transposed(&product(a, p), a);
    symmetrise(&mut out);
    out
}

/// AᵀPA of a symmetric P.
pub(super) fn inner_sandwich<const N: usize>(a: &Square<N>, p: &Square<N>) -> Square<N> {
    let mut out = transposed_product(a, &product(p, a));
    symmetrise(&mut out);
    out
}

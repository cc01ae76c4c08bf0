//! Conjugate gradients for the precision of rows with sites.
//!
//! A = Q + Λ with Q = VᵀV ([`Root`]) has the incomplete factor P = UUᵀ for a preconditioner. Several vectors are solved for side
//! by side; each stops where its own residual is small.

use super::root::{Incomplete, LANES, Lanes, Root};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, symmetric_eigen};
use crate::rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// Most steps; a few are usual.
const MOST_STEPS: usize = 1000;
pub(super) const MATRIX: &str = "precision of rows given their neighbours, by conjugate gradients";
const SEED: u64 = 0x7665_6363;

/// Coefficients of the steps, from which Lanczos' matrix follows.
pub(super) struct Krylov {
    /// bᵀP⁻¹b.
    first: Lanes,
    alphas: Vec<Lanes>,
    betas: Vec<Lanes>,
    /// Steps of every vector.
    steps: [usize; LANES],
}

/// A system with its preconditioner.
pub(super) struct System<'a> {
    root: &'a Root,
    second: &'a [f64],
    pub(super) near: Incomplete<'a>,
}

impl<'a> System<'a> {
    /// Prepares the system of a root with the λ₂ of every row.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] for one that is negative or not finite.
    pub(super) fn new(root: &'a Root, second: &'a [f64]) -> Result<Self> {
        match second.iter().position(|own| !own.is_finite() || *own < 0.0) {
            Some(pivot) => Err(failed(second.len(), pivot)),
            None => Ok(Self { root, second, near: root.incomplete(second) }),
        }
    }

    pub(super) fn size(&self) -> usize {
        self.second.len()
    }

    /// Returns Vᵀε + Λ^½ε′, which has the covariance A.
    pub(super) fn drawn(&self, of_rows: &[Lanes], of_factors: &[Lanes]) -> Vec<Lanes> {
        let root = |(own, by): (&Lanes, &f64)| own.map(|own| own * by.sqrt());
        let mut r: Vec<Lanes> = of_factors.iter().zip(self.second).map(root).collect();
        self.root.add_transposed(of_rows, &mut r);
        r
    }

    /// Returns Λ^½ε′ − Λx of draws x, which has the covariance Λ − ΛA⁻¹Λ.
    pub(super) fn taken(&self, of_factors: &[Lanes], x: &[Lanes]) -> Vec<Lanes> {
        let one = |((own, x), by): ((&Lanes, &Lanes), &f64)| {
            std::array::from_fn(|l| own[l] * by.sqrt() - by * x[l])
        };
        of_factors.iter().zip(x).zip(self.second).map(one).collect()
    }

    /// Solves Ax = b by conjugate gradients (Hestenes & Stiefel 1952), to these relative tolerances in the norm of P⁻¹.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], and where a number is not finite or steps do not end.
    pub(super) fn solve(&self, b: &[Lanes], left: &Lanes) -> Result<(Vec<Lanes>, Krylov)> {
        let n = b.len();
        let (mut x, mut r, mut q) = (vec![[0.0; LANES]; n], b.to_vec(), vec![[0.0; LANES]; n]);
        let mut z = r.clone();
        self.near.solve(&mut z);
        let mut p = z.clone();
        let mut rz = dots(&r, &z);
        let first = rz;
        let enough: [f64; LANES] = std::array::from_fn(|l| first[l] * left[l] * left[l]);
        let mut krylov = Krylov { first, alphas: vec![], betas: vec![], steps: [0; LANES] };
        for step in 0..MOST_STEPS {
            if let Some(lane) = rz.iter().position(|own| !own.is_finite()) {
                return Err(failed(n, lane));
            }
            let open: [bool; LANES] = std::array::from_fn(|l| rz[l] > enough[l]);
            if open == [false; LANES] {
                return Ok((x, krylov));
            }
            self.root.times(self.second, &p, &mut q);
            let curved = dots(&p, &q);
            if (0..LANES).any(|l| open[l] && (curved[l].is_nan() || curved[l] <= 0.0)) {
                break;
            }
            let alpha = std::array::from_fn(|l| if open[l] { rz[l] / curved[l] } else { 0.0 });
            for i in 0..n {
                for l in 0..LANES {
                    x[i][l] += alpha[l] * p[i][l];
                    r[i][l] -= alpha[l] * q[i][l];
                }
            }
            z.copy_from_slice(&r);
            self.near.solve(&mut z);
            let next = dots(&r, &z);
            let beta = std::array::from_fn(|l| if open[l] { next[l] / rz[l] } else { 0.0 });
            for i in 0..n {
                for l in 0..LANES {
                    p[i][l] = z[i][l] + beta[l] * p[i][l];
                }
            }
            for l in (0..LANES).filter(|l| open[*l]) {
                (rz[l], krylov.steps[l]) = (next[l], step + 1);
            }
            krylov.alphas.push(alpha);
            krylov.betas.push(beta);
        }
        Err(failed(n, 0))
    }
}

impl Krylov {
    /// Returns zᵀP^-½ log(P^-½AP^-½) P^-½z of a vector z, by Gauss quadrature with Lanczos' matrix (Golub & Meurant 2010): in
    /// the coefficients of conjugate gradients (Saad 2003).
    pub(super) fn log(&self, lane: usize) -> Result<f64> {
        let steps = self.steps[lane];
        if steps == 0 {
            return Ok(0.0);
        }
        let (alpha, beta) = (|k: usize| self.alphas[k][lane], |k: usize| self.betas[k][lane]);
        let t = Mat::from_fn(steps, steps, |i, j| match i.abs_diff(j) {
            0 if i == 0 => 1.0 / alpha(0),
            0 => 1.0 / alpha(i) + beta(i - 1) / alpha(i - 1),
            1 => beta(i.min(j)).sqrt() / alpha(i.min(j)),
            _ => 0.0,
        });
        let (values, vectors) = symmetric_eigen(t.as_ref())?;
        let of = |k: usize| vectors[(0, k)].powi(2) * values[k].ln();
        Ok(self.first[lane] * (0..steps).map(of).sum::<f64>())
    }
}

/// Returns normal numbers of a name, always the same.
pub(super) fn normals(name: &str, rows: usize) -> Vec<Lanes> {
    let mut rng = rng::stream(SEED, name);
    (0..rows).map(|_| std::array::from_fn(|_| StandardNormal.sample(&mut rng))).collect()
}

/// Returns the products of two sets of vectors, one for each.
fn dots(a: &[Lanes], b: &[Lanes]) -> Lanes {
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        (0..LANES).for_each(|l| sums[l] += a[l] * b[l]);
    }
    sums
}

/// Returns what is made of the columns of a matrix, some at a time on all threads.
pub(super) fn in_lanes(
    all: MatRef<'_, f64>,
    make: impl Fn(&[Lanes]) -> Result<Vec<Lanes>> + Sync,
) -> Result<Mat<f64>> {
    let (n, columns) = (all.nrows(), all.ncols());
    let chunk = |start: usize| {
        let at = |i: usize, l: usize| if start + l < columns { all[(i, start + l)] } else { 0.0 };
        let own: Vec<Lanes> = (0..n).map(|i| std::array::from_fn(|l| at(i, l))).collect();
        make(&own)
    };
    let starts: Vec<usize> = (0..columns).step_by(LANES).collect();
    let made = starts.into_par_iter().map(chunk).collect::<Result<Vec<_>>>()?;
    let rows = made.first().map_or(0, Vec::len);
    Ok(Mat::from_fn(rows, columns, |i, s| made[s / LANES][i][s % LANES]))
}

fn failed(size: usize, pivot: usize) -> Error {
    Error::NotPositiveDefinite {
        matrix: MATRIX,
        size,
        pivot,
        jitter: 0.0,
        hint: "likely causes: rows that nearly follow from others under a very smooth kernel; a rougher kernel, such as matern52, helps",
    }
}

//! The linear part of a kernel with its constant: ψ-statistics through the second moments of the inputs, and cross terms with
//! squared exponentials.
//!
//! A constant is the weight of an input that is always 1, so everything is written for 1 + Q inputs: x̃ = (1, x), μ̃, S̃ = (0, S),
//! z̃, V = Z̃ diag(a). Then ψ₁ = μ̃Vᵀ and ψ₂ = V(μ̃μ̃ᵀ + diag S̃)Vᵀ (Titsias & Lawrence 2010). Under N(μ, S) times a
//! squared exponential around z the mean of x_q is u + vz with D = 1 + ωS, u = μ/D, v = ωS/D, so that the cross term is
//!
//! ```text
//! ⟨k(z, x) ã(x, z′)⟩ = ψ₁(z) Σ_q (u_q + v_q z̃_q) V′_q
//! ```
//!
//! with ψ₁ of the squared exponential: low rank in z′, and no loop over pairs of points is needed.

use super::parts::{Bump, Parts};
use crate::linalg::{Accum, Mat, MatRef, Par, column, gemm, product, sum_of_products, symmetrise};

/// The linear part at the inducing points.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// a, 1 + Q numbers.
    weights: Vec<f64>,
    /// Z̃, M×(1 + Q).
    z: Mat<f64>,
    /// V = Z̃ diag(a).
    v: Mat<f64>,
}

/// A symmetric matrix G, as the linear part sees it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// GV.
    gv: Mat<f64>,
    /// GV ∘ Z̃.
    gvz: Mat<f64>,
    /// VᵀGV.
    inner: Mat<f64>,
}

/// A block of rows with padding: μ̃ and S̃, and what every squared exponential makes of it.
#[derive(Clone, Debug)]
pub(super) struct Extended {
    mean: Mat<f64>,
    variance: Mat<f64>,
    tilts: Vec<Tilt>,
}

/// u and v of a squared exponential, with its ω.
#[derive(Clone, Debug)]
struct Tilt {
    omega: Vec<f64>,
    u: Mat<f64>,
    v: Mat<f64>,
}

/// Sums over rows for one column of weights w.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    /// Σ w ψ₁uᵀ and Σ w ψ₁vᵀ, M×(1 + Q), of all squared exponentials.
    first: [Mat<f64>; 2],
    /// Σ w (μ̃μ̃ᵀ + diag S̃).
    second: Mat<f64>,
}

impl Moments {
    /// Creates sums of nothing.
    pub fn zeros(line: &Line) -> Self {
        let (m, q) = (line.z.nrows(), line.z.ncols());
        Self { first: [Mat::zeros(m, q), Mat::zeros(m, q)], second: Mat::zeros(q, q) }
    }

    /// Adds others.
    pub fn add(&mut self, other: &Moments) {
        self.first.iter_mut().zip(&other.first).for_each(|(a, b)| *a += b);
        self.second += &other.second;
    }
}

fn entrywise(a: &Mat<f64>, b: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] * b[(i, j)])
}

/// Returns diag(w) a.
fn weighted(a: MatRef<f64>, w: &[f64]) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| w[i] * a[(i, j)])
}

fn add_product(to: &mut Mat<f64>, a: MatRef<f64>, b: MatRef<f64>, factor: f64) {
    gemm(to.as_mut(), Accum::Add, a, b, factor, Par::Seq);
}

/// Returns the values of ψ₁ by columns as a matrix.
fn values(columns: &[f64], rows: usize) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(columns, rows, columns.len() / rows.max(1))
}

impl Extended {
    /// Extends means and variances (with padding, B×Q).
    pub fn new(mean: MatRef<f64>, variance: MatRef<f64>, parts: &Parts) -> Self {
        let extended = |a: MatRef<f64>, first: f64| {
            Mat::from_fn(
                a.nrows(),
                a.ncols() + 1,
                |i, q| if q == 0 { first } else { a[(i, q - 1)] },
            )
        };
        let (mean, variance) = (extended(mean, 1.0), extended(variance, 0.0));
        let tilt = |bump: &Bump| {
            let omega: Vec<f64> = std::iter::once(0.0).chain(bump.omega.iter().copied()).collect();
            let (rows, columns) = (mean.nrows(), mean.ncols());
            let spread = |i: usize, q: usize| omega[q] * variance[(i, q)];
            let u = Mat::from_fn(rows, columns, |i, q| mean[(i, q)] / (1.0 + spread(i, q)));
            let v = Mat::from_fn(rows, columns, |i, q| spread(i, q) / (1.0 + spread(i, q)));
            Tilt { omega, u, v }
        };
        let tilts = parts.bumps.iter().map(tilt).collect();
        Self { mean, variance, tilts }
    }
}

impl Line {
    /// Prepares the points (M×Q).
    pub fn new(parts: &Parts, z: MatRef<f64>) -> Self {
        let weights = parts.linear.clone();
        let z =
            Mat::from_fn(z.nrows(), z.ncols() + 1, |i, q| if q == 0 { 1.0 } else { z[(i, q - 1)] });
        let v = Mat::from_fn(z.nrows(), z.ncols(), |i, q| weights[q] * z[(i, q)]);
        Self { weights, z, v }
    }

    /// Prepares a symmetric matrix.
    pub fn see(&self, g: MatRef<f64>) -> Seen {
        let gv = product(g, self.v.as_ref());
        let inner = product(self.v.transpose(), gv.as_ref());
        let gvz = entrywise(&gv, &self.z);
        Seen { gv, gvz, inner }
    }

    /// Adds ψ₀ of the rows to `out`.
    pub fn add_psi0(&self, mean: MatRef<f64>, variance: MatRef<f64>, out: &mut [f64]) {
        for (i, out) in out.iter_mut().enumerate() {
            let squares = (0..mean.ncols())
                .map(|q| self.weights[1 + q] * (mean[(i, q)] * mean[(i, q)] + variance[(i, q)]));
            *out += self.weights[0] + squares.sum::<f64>();
        }
    }

    /// Adds ψ₁ of a block to `out` (B×M).
    pub fn add_psi1(&self, block: &Extended, out: &mut Mat<f64>) {
        add_product(out, block.mean.as_ref(), self.v.transpose(), 1.0);
    }

    /// Adds a block to the sums of every column of `weights` (B×C). `psi1` has the values of every squared exponential.
    pub fn add(
        &self,
        block: &Extended,
        weights: MatRef<f64>,
        psi1: &[Vec<f64>],
        to: &mut [Moments],
    ) {
        let rows = block.mean.nrows();
        for (c, to) in to.iter_mut().enumerate() {
            let w = column(weights, c);
            for (values_of, tilt) in psi1.iter().zip(&block.tilts) {
                let values = values(values_of, rows);
                for (to, a) in to.first.iter_mut().zip([&tilt.u, &tilt.v]) {
                    add_product(to, values.transpose(), weighted(a.as_ref(), w).as_ref(), 1.0);
                }
            }
            let own = weighted(block.mean.as_ref(), w);
            add_product(&mut to.second, own.transpose(), block.mean.as_ref(), 1.0);
            for q in 0..block.mean.ncols() {
                to.second[(q, q)] += sum_of_products(w, block.variance.col_as_slice(q));
            }
        }
    }

    /// Returns Σ w ψ₁(u + vz̃)ᵀ.
    fn first(&self, moments: &Moments) -> Mat<f64> {
        &moments.first[0] + entrywise(&moments.first[1], &self.z)
    }

    /// Returns what the linear part adds to Σᵢ wᵢψ₂ᵢ.
    pub fn psi2(&self, moments: &Moments) -> Mat<f64> {
        let mut half = product(self.first(moments).as_ref(), self.v.transpose());
        let outer = product(self.v.as_ref(), moments.second.as_ref());
        add_product(&mut half, outer.as_ref(), self.v.transpose(), 0.5);
        let mut out = half;
        symmetrise(out.as_mut());
        out * faer::Scale(2.0)
    }

    /// Adds the part of tr Gψ₂ of every row to `out`.
    pub fn add_traces(&self, block: &Extended, seen: &Seen, psi1: &[Vec<f64>], out: &mut [f64]) {
        let rows = block.mean.nrows();
        let mut add = |a: &Mat<f64>, b: &Mat<f64>, factor: f64| {
            for q in 0..a.ncols() {
                let both = a.col_as_slice(q).iter().zip(b.col_as_slice(q));
                out.iter_mut().zip(both).for_each(|(t, (a, b))| *t += factor * a * b);
            }
        };
        for (values_of, tilt) in psi1.iter().zip(&block.tilts) {
            let values = values(values_of, rows);
            add(&tilt.u, &product(values, seen.gv.as_ref()), 2.0);
            add(&tilt.v, &product(values, seen.gvz.as_ref()), 2.0);
        }
        add(&block.mean, &product(block.mean.as_ref(), seen.inner.as_ref()), 1.0);
        let diagonal = Mat::from_fn(rows, seen.inner.ncols(), |_, q| seen.inner[(q, q)]);
        add(&block.variance, &diagonal, 1.0);
    }
}

/// Slopes of the rows of a block by μ and S (B×Q), and of every squared exponential by ψ₁ and ω.
#[derive(Debug)]
pub(super) struct RowSlopes<'a> {
    pub mean: &'a mut [f64],
    pub variance: &'a mut [f64],
    /// Cotangents of ψ₁ of every squared exponential, M columns: added to.
    pub psi1: &'a mut [Vec<f64>],
    /// By ω of every one, Q numbers: added to.
    pub omega: &'a mut [Vec<f64>],
}

impl Line {
    /// Pulls the cotangent Σ_c w_c G_c of ψ₂ back to the rows of a block.
    pub fn pull_rows(
        &self,
        block: &Extended,
        weights: MatRef<f64>,
        seen: &[Seen],
        psi1: &[Vec<f64>],
        to: &mut RowSlopes<'_>,
    ) {
        let (rows, columns) = (block.mean.nrows(), block.mean.ncols());
        for (b, (values_of, tilt)) in psi1.iter().zip(&block.tilts).enumerate() {
            let values = values(values_of, rows);
            let mut bars = [Mat::zeros(rows, columns), Mat::zeros(rows, columns)];
            let mut psi1_bar = Mat::zeros(rows, self.z.nrows());
            for (c, seen) in seen.iter().enumerate() {
                let w = column(weights, c);
                for ((bar, a), g) in
                    bars.iter_mut().zip([&tilt.u, &tilt.v]).zip([&seen.gv, &seen.gvz])
                {
                    *bar += weighted(product(values, g.as_ref()).as_ref(), w) * faer::Scale(2.0);
                    let own = weighted(a.as_ref(), w);
                    add_product(&mut psi1_bar, own.as_ref(), g.transpose(), 2.0);
                }
            }
            for (m, sink) in to.psi1[b].chunks_exact_mut(rows).enumerate() {
                sink.iter_mut().zip(psi1_bar.col_as_slice(m)).for_each(|(t, v)| *t += v);
            }
            // u = μ/D, v = 1 − 1/D
            for q in 1..columns {
                let at = (q - 1) * rows;
                for i in 0..rows {
                    let s = block.variance[(i, q)];
                    let inverse = 1.0 / (1.0 + tilt.omega[q] * s);
                    let (by_u, by_v) = (bars[0][(i, q)], bars[1][(i, q)]);
                    to.mean[at + i] += by_u * inverse;
                    let by_d = (by_v - by_u * block.mean[(i, q)]) * inverse * inverse;
                    to.variance[at + i] += by_d * tilt.omega[q];
                    to.omega[b][q - 1] += by_d * s;
                }
            }
        }
        for (c, seen) in seen.iter().enumerate() {
            let w = column(weights, c);
            let by_mean = product(block.mean.as_ref(), seen.inner.as_ref());
            for q in 1..columns {
                let at = (q - 1) * rows;
                for i in 0..rows {
                    to.mean[at + i] += 2.0 * w[i] * by_mean[(i, q)];
                    to.variance[at + i] += w[i] * seen.inner[(q, q)];
                }
            }
        }
    }

    /// Pulls cotangents of ψ₀ (B numbers) and ψ₁ (B×M) back to μ and S, and adds those of V to `by_v` and of a to `by_weight`.
    pub fn pull_linear(
        &self,
        block: &Extended,
        (psi0, psi1): (&[f64], MatRef<f64>),
        (mean, variance): (&mut [f64], &mut [f64]),
        (by_v, by_weight): (&mut Mat<f64>, &mut [f64]),
    ) {
        let (rows, columns) = (block.mean.nrows(), block.mean.ncols());
        add_product(by_v, psi1.transpose(), block.mean.as_ref(), 1.0);
        let by_mean = product(psi1, self.v.as_ref());
        for q in 0..columns {
            let (m, s) = (block.mean.col_as_slice(q), block.variance.col_as_slice(q));
            let squares = psi0.iter().zip(m.iter().zip(s)).map(|(g, (m, s))| g * (m * m + s));
            by_weight[q] += squares.sum::<f64>();
            if q == 0 {
                continue;
            }
            let at = (q - 1) * rows;
            for i in 0..rows {
                mean[at + i] += by_mean[(i, q)] + 2.0 * psi0[i] * self.weights[q] * m[i];
                variance[at + i] += psi0[i] * self.weights[q];
            }
        }
    }

    /// Pulls the cotangent Σ_c w_c G_c of ψ₂, summed over rows, and that of V back to the points (M×Q) and to a.
    pub fn pull_points(
        &self,
        (matrices, seen): (&[Mat<f64>], &[Seen]),
        moments: &[Moments],
        mut by_v: Mat<f64>,
        by_point: &mut Mat<f64>,
        by_weight: &mut [f64],
    ) {
        let mut direct = Mat::zeros(self.z.nrows(), self.z.ncols());
        for ((g, seen), moments) in matrices.iter().zip(seen).zip(moments) {
            let mut inner = self.first(moments);
            add_product(&mut inner, self.v.as_ref(), moments.second.as_ref(), 1.0);
            add_product(&mut by_v, g.as_ref(), inner.as_ref(), 2.0);
            direct += entrywise(&seen.gv, &moments.first[1]) * faer::Scale(2.0);
        }
        for q in 0..self.z.ncols() {
            by_weight[q] += sum_of_products(by_v.col_as_slice(q), self.z.col_as_slice(q));
            if q > 0 {
                for m in 0..self.z.nrows() {
                    by_point[(m, q - 1)] += by_v[(m, q)] * self.weights[q] + direct[(m, q)];
                }
            }
        }
    }
}

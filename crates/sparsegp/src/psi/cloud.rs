//! Expectations of squared exponentials: loops over blocks of rows.
//!
//! A product of two squared exponentials of one input is one in the input's distance from a centre c between z and z′,
//! with Ω = ω + ω′, times exp(−½ Σ ηδ²), η = ωω′/Ω, δ = z − z′. Its expectation under N(μ, S) is, with D = 1 + ΩS,
//!
//! ```text
//! Π_q D^{−½} exp(−a(μ − c)²),   a = Ω/2D,   c = (ωz + ω′z′)/Ω
//! ```
//!
//! which for ω = ω′ is ψ₂ of Titsias & Lawrence 2010, for ω′ = 0 their ψ₁. Rows of a column are side by side, padded with rows
//! that weigh nothing, so that loops have no rest.

use super::parts::Bump;
use crate::linalg::exp::{exp, mul_add};
use crate::linalg::{Mat, MatRef, column};

/// Numbers that the machine works on at the same time: blocks have a multiple of it as rows.
pub(super) const WIDTH: usize = 8;

/// No expectation has a smaller logarithm: no sum can see the difference, and products with small numbers do not become subnormal, with
/// which machines are slow.
const LEAST: f64 = -300.0;

/// Means and variances of a block of rows, by columns.
#[derive(Clone, Debug)]
pub(super) struct Rows<'a> {
    /// With padding.
    pub count: usize,
    /// Q columns of `count` numbers.
    pub mean: &'a [f64],
    /// The same.
    pub variance: &'a [f64],
}

/// What a squared exponential of the distance from a centre, as a function of that centre, expects.
#[derive(Clone, Debug)]
pub(super) struct Cloud {
    rows: usize,
    /// Inputs with Ω > 0.
    pub dims: Vec<usize>,
    /// Ω of each.
    pub omega: Vec<f64>,
    /// Columns μ of each.
    mean: Vec<f64>,
    /// Columns S.
    variance: Vec<f64>,
    /// Columns a.
    a: Vec<f64>,
    /// log σ² − ½ Σ log D.
    base: Vec<f64>,
}

/// Sums of slopes, by the columns of a [`Cloud`].
#[derive(Clone, Debug)]
pub(super) struct CloudSlopes {
    mean: Vec<f64>,
    variance: Vec<f64>,
    /// Σ t a(μ − c)².
    squares: Vec<f64>,
}

impl Cloud {
    /// Prepares a block for Ω (Q numbers) and the logarithm of the amplitude.
    pub fn new(block: &Rows<'_>, omega: &[f64], log_amplitude: f64) -> Self {
        let rows = block.count;
        let dims: Vec<usize> = (0..omega.len()).filter(|q| omega[*q] > 0.0).collect();
        let gather = |of: &[f64]| -> Vec<f64> {
            dims.iter().flat_map(|q| of[q * rows..(q + 1) * rows].iter().copied()).collect()
        };
        let (mean, variance) = (gather(block.mean), gather(block.variance));
        let omega: Vec<f64> = dims.iter().map(|q| omega[*q]).collect();
        let (mut a, mut base) = (vec![0.0; mean.len()], vec![log_amplitude; rows]);
        for (k, omega) in omega.iter().enumerate() {
            for i in 0..rows {
                let spread = omega * variance[k * rows + i];
                a[k * rows + i] = 0.5 * omega / (1.0 + spread);
                base[i] -= 0.5 * spread.ln_1p();
            }
        }
        Self { rows, dims, omega, mean, variance, a, base }
    }

    /// Creates the cloud for the product of two squared exponentials.
    pub fn of_pair(block: &Rows<'_>, left: &Bump, right: &Bump) -> Self {
        let omega: Vec<f64> = left.omega.iter().zip(&right.omega).map(|(a, b)| a + b).collect();
        Self::new(block, &omega, left.log_amplitude + right.log_amplitude)
    }

    /// Returns slopes of zero.
    pub fn slopes(&self) -> CloudSlopes {
        let zeros = vec![0.0; self.a.len()];
        CloudSlopes { mean: zeros.clone(), variance: zeros.clone(), squares: zeros }
    }

    /// Computes the expectations for one centre, times e to the `constant`.
    #[inline(always)]
    pub fn values<const FMA: bool>(&self, centre: &[f64], constant: f64, out: &mut [f64]) {
        for (o, base) in out.iter_mut().zip(&self.base) {
            *o = base + constant;
        }
        let columns = self.mean.chunks_exact(self.rows).zip(self.a.chunks_exact(self.rows));
        for ((mean, a), c) in columns.zip(centre) {
            for ((o, mean), a) in out.iter_mut().zip(mean).zip(a) {
                let r = mean - c;
                *o = mul_add::<FMA>(-a * r, r, *o);
            }
        }
        for o in out.iter_mut() {
            let logarithm = if *o < LEAST { LEAST } else { *o };
            *o = exp::<FMA>(logarithm);
        }
    }

    /// Pulls t, the values times their cotangents, back at one centre: adds to `slopes`, and writes Σ t a(μ − c) for every input
    /// to `first`. Returns Σ t.
    #[inline(always)]
    pub fn pull<const FMA: bool>(
        &self,
        centre: &[f64],
        t: &[f64],
        slopes: &mut CloudSlopes,
        first: &mut [f64],
    ) -> f64 {
        let rows = self.rows;
        for (k, c) in centre.iter().enumerate() {
            let (from, to) = (k * rows, (k + 1) * rows);
            let mut parts = [0.0; WIDTH];
            let all = self.mean[from..to]
                .as_chunks::<WIDTH>()
                .0
                .iter()
                .zip(self.a[from..to].as_chunks::<WIDTH>().0)
                .zip(t.as_chunks::<WIDTH>().0)
                .zip(slopes.mean[from..to].as_chunks_mut::<WIDTH>().0)
                .zip(slopes.variance[from..to].as_chunks_mut::<WIDTH>().0)
                .zip(slopes.squares[from..to].as_chunks_mut::<WIDTH>().0);
            for (((((mean, a), t), by_mean), by_variance), squares) in all {
                for l in 0..WIDTH {
                    let r = mean[l] - c;
                    let ta = t[l] * a[l];
                    let b = ta * r;
                    by_mean[l] = mul_add::<FMA>(-2.0, b, by_mean[l]);
                    by_variance[l] = mul_add::<FMA>(2.0 * b * a[l], r, by_variance[l] - ta);
                    squares[l] = mul_add::<FMA>(b, r, squares[l]);
                    parts[l] += b;
                }
            }
            first[k] = parts.iter().sum();
        }
        total(t)
    }

    /// Writes a and a(μ − z) of every row to the columns of `out` after the first.
    pub fn around(&self, z: &[f64], out: &mut Mat<f64>) {
        let (rows, dims) = (self.rows, self.dims.len());
        for (k, q) in self.dims.iter().enumerate() {
            let (mean, a) = (&self.mean[k * rows..], &self.a[k * rows..]);
            out.col_as_slice_mut(1 + k).copy_from_slice(&a[..rows]);
            let all = out.col_as_slice_mut(1 + dims + k).iter_mut().zip(mean).zip(a);
            all.for_each(|((o, mean), a)| *o = a * (mean - z[*q]));
        }
    }

    /// Adds what [`Cloud::pull`] adds for many centres at distances δ from z, given Σ t, Σ tδ and Σ tδ² of every row (1 + 2·dims columns).
    pub fn add_sums(&self, z: &[f64], sums: MatRef<f64>, slopes: &mut CloudSlopes) {
        let (rows, dims) = (self.rows, self.dims.len());
        let weights = column(sums, 0);
        for (k, q) in self.dims.iter().enumerate() {
            let (first, second) = (column(sums, 1 + k), column(sums, 1 + dims + k));
            let at = k * rows..(k + 1) * rows;
            let all = self.mean[at.clone()]
                .iter()
                .zip(&self.a[at.clone()])
                .zip(weights.iter().zip(first.iter().zip(second)))
                .zip(&mut slopes.mean[at.clone()])
                .zip(&mut slopes.variance[at.clone()])
                .zip(&mut slopes.squares[at]);
            for (((((mean, a), (t, (first, second))), by_mean), by_variance), squares) in all {
                let r = mean - z[*q];
                let square = a * (r * r * t - 2.0 * r * first + second);
                *by_mean -= 2.0 * a * (r * t - first);
                *by_variance += a * (2.0 * square - t);
                *squares += square;
            }
        }
    }

    /// Adds the slopes by μ and S (Q columns each); returns those by Ω at fixed centres.
    pub fn finish(&self, slopes: &CloudSlopes, mean: &mut [f64], variance: &mut [f64]) -> Vec<f64> {
        let rows = self.rows;
        let mut by_omega = Vec::with_capacity(self.dims.len());
        for (k, q) in self.dims.iter().enumerate() {
            let (own, to) = (k * rows..(k + 1) * rows, q * rows..(q + 1) * rows);
            let add = |to: &mut [f64], from: &[f64]| {
                to.iter_mut().zip(from).for_each(|(t, v)| *t += v);
            };
            add(&mut mean[to.clone()], &slopes.mean[own.clone()]);
            add(&mut variance[to], &slopes.variance[own.clone()]);
            // Ω ∂/∂Ω = S ∂/∂S − a(μ − c)²
            let spread = crate::linalg::sum_of_products(
                &self.variance[own.clone()],
                &slopes.variance[own.clone()],
            );
            by_omega.push((spread - total(&slopes.squares[own])) / self.omega[k]);
        }
        by_omega
    }
}

/// Returns Σ of a column.
#[inline(always)]
pub(super) fn total(a: &[f64]) -> f64 {
    let mut parts = [0.0; WIDTH];
    for chunk in a.as_chunks::<WIDTH>().0 {
        parts.iter_mut().zip(chunk).for_each(|(t, v)| *t += v);
    }
    parts.iter().sum()
}

/// Returns Σ of products of two columns.
#[inline(always)]
pub(super) fn products<const FMA: bool>(a: &[f64], b: &[f64]) -> f64 {
    let mut parts = [0.0; WIDTH];
    for (a, b) in a.as_chunks::<WIDTH>().0.iter().zip(b.as_chunks::<WIDTH>().0) {
        for l in 0..WIDTH {
            parts[l] = mul_add::<FMA>(a[l], b[l], parts[l]);
        }
    }
    parts.iter().sum()
}

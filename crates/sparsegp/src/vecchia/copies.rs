//! Rows at the same place are one row of less noise.
//!
//! Of targets rᵢ at one place, with normal noise of variances sᵢ, all that matters for the function is r̄ = s̄ Σ rᵢ/sᵢ, which has the noise
//! s̄ = 1/Σ sᵢ⁻¹: hundreds of copies would otherwise have only each other for neighbours. With wᵢ = s̄/sᵢ the
//! density of the rows is that of r̄, and beside it for every place and target column
//!
//! ```text
//! ½ log 2πs̄ − ½ Σ log 2πsᵢ − ½ Σ (rᵢ − r̄)²/sᵢ
//! ∂r̄/∂rᵢ = wᵢ      ∂s̄/∂sᵢ = wᵢ²      ∂r̄/∂sᵢ = (r̄ − rᵢ) wᵢ/sᵢ
//! ```

use super::{Rows, Slopes};
use crate::kernels::{Kernel, covariances};
use crate::linalg::{Mat, MatRef};
use std::collections::HashMap;
use std::f64::consts::TAU;

/// Which rows are at the same place.
#[derive(Clone, Debug)]
pub struct Copies {
    /// The place of every row.
    of: Vec<u32>,
    /// The first row of every place.
    first: Vec<usize>,
}

/// A row for every place.
#[derive(Clone, Debug)]
pub struct Merged {
    /// Inputs.
    pub x: Mat<f64>,
    /// r̄.
    pub residual: Mat<f64>,
    /// s̄.
    pub noise: Vec<f64>,
    /// Log of the factors beside the density of these.
    pub log_factors: f64,
}

impl Merged {
    /// Returns the rows.
    pub fn rows(&self) -> Rows<'_> {
        Rows { x: self.x.as_ref(), residual: self.residual.as_ref(), noise: &self.noise }
    }
}

/// Returns whether a kernel tells copies of a row apart, as white noise does.
fn tells_apart(kernel: &dyn Kernel, x: MatRef<f64>) -> bool {
    let twice = Mat::from_fn(2, x.ncols(), |_, j| x[(0, j)]);
    let k = covariances(kernel, twice.as_ref(), None);
    k[(0, 1)] != k[(0, 0)]
}

impl Copies {
    /// Finds rows (N×D) at the same place; none if there are none, or if the kernel tells them apart.
    pub fn find(kernel: &dyn Kernel, x: MatRef<f64>) -> Option<Self> {
        let mut places = HashMap::with_capacity(x.nrows());
        let (mut of, mut first) = (Vec::with_capacity(x.nrows()), Vec::new());
        for i in 0..x.nrows() {
            // 0 and −0 are one place
            let key: Vec<u64> = (0..x.ncols()).map(|j| (x[(i, j)] + 0.0).to_bits()).collect();
            let place = *places.entry(key).or_insert_with(|| {
                first.push(i);
                first.len() as u32 - 1
            });
            of.push(place);
        }
        (first.len() < of.len() && !tells_apart(kernel, x)).then_some(Self { of, first })
    }

    /// Returns the place of every row.
    pub fn of(&self) -> &[u32] {
        &self.of
    }

    /// Returns the first row of every place.
    pub fn first(&self) -> &[usize] {
        &self.first
    }

    /// Returns a row for every place; none if some row has no noise, which no other row can add to.
    pub fn merge(&self, rows: Rows<'_>) -> Option<Merged> {
        if rows.noise.iter().any(|s| *s <= 0.0) {
            return None;
        }
        let (places, p) = (self.first.len(), rows.residual.ncols());
        let x = Mat::from_fn(places, rows.x.ncols(), |g, j| rows.x[(self.first[g], j)]);
        let (mut residual, mut precision) = (Mat::zeros(places, p), vec![0.0; places]);
        let mut log_factors = 0.0;
        for (i, (g, s)) in self.of.iter().zip(rows.noise).enumerate() {
            precision[*g as usize] += 1.0 / s;
            log_factors -= 0.5 * p as f64 * (TAU * s).ln();
            (0..p).for_each(|t| residual[(*g as usize, t)] += rows.residual[(i, t)] / s);
        }
        let noise: Vec<f64> = precision.iter().map(|sum| 1.0 / sum).collect();
        for (g, s) in noise.iter().enumerate() {
            (0..p).for_each(|t| residual[(g, t)] *= s);
            log_factors += 0.5 * p as f64 * (TAU * s).ln();
        }
        for (i, (g, s)) in self.of.iter().zip(rows.noise).enumerate() {
            let apart = |t: usize| rows.residual[(i, t)] - residual[(*g as usize, t)];
            log_factors -= 0.5 * (0..p).map(|t| apart(t) * apart(t)).sum::<f64>() / s;
        }
        Some(Merged { x, residual, noise, log_factors })
    }

    /// Returns slopes in all rows, from those in the merged ones.
    pub fn pull(&self, rows: Rows<'_>, merged: &Merged, slopes: Slopes) -> Slopes {
        let (n, p) = (self.of.len(), rows.residual.ncols());
        let (mut residual, mut noise) = (Mat::zeros(n, p), vec![0.0; n]);
        for (i, g) in self.of.iter().enumerate() {
            let (g, s) = (*g as usize, rows.noise[i]);
            let w = merged.noise[g] / s;
            noise[i] = w * w * slopes.noise[g] + 0.5 * p as f64 * (w - 1.0) / s;
            for t in 0..p {
                let apart = rows.residual[(i, t)] - merged.residual[(g, t)];
                let slope = slopes.residual[(g, t)];
                residual[(i, t)] = w * slope - apart / s;
                noise[i] += 0.5 * apart * apart / (s * s) - slope * apart * w / s;
            }
        }
        Slopes { residual, noise, ..slopes }
    }

    /// Returns means and variances of the function at every row, given the other rows: from those at every place, given the
    /// other places, and what is left of the row's own place without it.
    pub fn left_out(
        &self,
        rows: Rows<'_>,
        merged: &Merged,
        (mean, variance): (&Mat<f64>, &[f64]),
    ) -> (Mat<f64>, Vec<f64>) {
        let (n, p) = (self.of.len(), rows.residual.ncols());
        let (mut means, mut variances) = (Mat::zeros(n, p), vec![0.0; n]);
        for (i, g) in self.of.iter().enumerate() {
            let (g, v) = (*g as usize, variance[*g as usize]);
            let (all, own) = (1.0 / merged.noise[g], 1.0 / rows.noise[i]);
            // of one row there is nothing but rounding left
            let left = if all - own > 1e-9 * all { all - own } else { 0.0 };
            variances[i] = v / (1.0 + v * left);
            for t in 0..p {
                let rest = merged.residual[(g, t)] * all - rows.residual[(i, t)] * own;
                let rest = if left > 0.0 { rest } else { 0.0 };
                means[(i, t)] = (mean[(g, t)] + v * rest) / (1.0 + v * left);
            }
        }
        (means, variances)
    }
}

//! Pull-backs of ψ-statistics, block by block.

use super::bumps::{self, Cotangent, PointSlopes};
use super::cloud::{Rows, WIDTH};
use super::line::{Moments, RowSlopes, Seen};
use super::parts::PartSlopes;
use super::statistics::{Block, Psi, Uncertain, flat, mirrored};
use crate::error::{Error, Result};
use crate::linalg::{Accum, Mat, MatRef, Par, gemm};

/// Cotangents of the ψ-statistics of N rows: that of ψ₁ is left·rightᵀ, that of row i's ψ₂ is Σ_c w_ic G_c.
#[derive(Clone, Copy, Debug)]
pub struct Bars<'a> {
    /// Of ψ₀, N numbers.
    pub psi0: &'a [f64],
    /// Factors of that of Ψ₁: N×P and M×P.
    pub psi1: (MatRef<'a, f64>, MatRef<'a, f64>),
    /// w, N×C.
    pub weights: MatRef<'a, f64>,
    /// C symmetric matrices G, M×M.
    pub psi2: &'a [Mat<f64>],
    /// A column of w with which Σᵢ wᵢψ₂ᵢ is wanted too.
    pub kept: Option<usize>,
}

/// What cotangents of ψ-statistics say of everything these depend on.
#[derive(Clone, Debug)]
pub struct Slopes {
    /// By the kernel's constrained parameters.
    pub kernel: Vec<f64>,
    /// By the inducing points, M×Q.
    pub points: Mat<f64>,
    /// By μ, N×Q.
    pub mean: Mat<f64>,
    /// By S, N×Q.
    pub variance: Mat<f64>,
    /// Σᵢ wᵢψ₂ᵢ, if it was asked for, symmetric.
    pub kept: Option<Mat<f64>>,
}

/// Sums of slopes of one lane.
struct Lane {
    parts: PartSlopes,
    points: Vec<f64>,
    moments: Vec<Moments>,
    by_v: Mat<f64>,
    by_weight: Vec<f64>,
    kept: Vec<f64>,
    rows: Vec<(usize, usize, Vec<f64>, Vec<f64>)>,
}

impl Psi {
    /// Pulls cotangents of the ψ-statistics of rows `x` back to kernel, points, means and variances. O(N M² (Q + C)).
    ///
    /// # Errors
    /// [`Error::Shape`] for sizes that do not fit.
    pub fn pull(&self, x: Uncertain<'_>, bars: &Bars<'_>) -> Result<Slopes> {
        self.check(x)?;
        let (n, m, q) = (x.mean.nrows(), self.z.nrows(), self.z.ncols());
        let (left, right) = bars.psi1;
        let fits = [
            ("cotangents of ψ₀", bars.psi0.len(), n),
            ("the left factor of the cotangent of ψ₁", left.nrows(), n),
            ("the right factor of the cotangent of ψ₁", right.nrows(), m),
            ("columns of the factors of the cotangent of ψ₁", right.ncols(), left.ncols()),
            ("weights of rows", bars.weights.nrows(), n),
            ("matrices of the cotangent of ψ₂", bars.psi2.len(), bars.weights.ncols()),
        ];
        if let Some((what, found, expected)) = fits.into_iter().find(|(_, a, b)| a != b) {
            let (expected, found) = (format!("{expected}"), format!("{found}"));
            return Err(Error::Shape { what: what.into(), expected, found });
        }
        self.check_matrices("matrices of the cotangent of ψ₂", bars.psi2)?;
        if let Some(column) = bars.kept.filter(|column| *column >= bars.weights.ncols()) {
            return Err(Error::Shape {
                what: "the column of weights with which a sum is kept".into(),
                expected: format!("one of {}, from 0 on", bars.weights.ncols()),
                found: format!("{column}"),
            });
        }
        let matrices: Vec<f64> = bars.psi2.iter().flat_map(|a| flat(a.as_ref())).collect();
        let seen: Vec<Seen> = bars.psi2.iter().map(|a| self.line.see(a.as_ref())).collect();
        let lanes = self.in_lanes(n, 1, |blocks| {
            let mut lane = self.lane(bars);
            blocks.for_each(|(from, rows)| {
                self.pull_block(x, bars, (&matrices, &seen), (from, rows), &mut lane);
            });
            lane
        });
        let mut total = self.lane(bars);
        let (mut mean, mut variance) = (Mat::zeros(n, q), Mat::zeros(n, q));
        for lane in lanes {
            let add = |a: &mut [f64], b: &[f64]| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            total.parts.add(&lane.parts);
            add(&mut total.points, &lane.points);
            add(&mut total.by_weight, &lane.by_weight);
            add(&mut total.kept, &lane.kept);
            total.by_v += &lane.by_v;
            total.moments.iter_mut().zip(&lane.moments).for_each(|(a, b)| a.add(b));
            for (from, rows, by_mean, by_variance) in lane.rows {
                let padded = rows.next_multiple_of(WIDTH);
                for q in 0..q {
                    for i in 0..rows {
                        mean[(from + i, q)] = by_mean[q * padded + i];
                        variance[(from + i, q)] = by_variance[q * padded + i];
                    }
                }
            }
        }
        let mut points = Mat::from_fn(m, q, |i, k| total.points[i * q + k]);
        if self.parts.is_linear {
            let matrices = (bars.psi2, seen.as_slice());
            let by_weight = &mut total.parts.linear;
            by_weight.iter_mut().zip(&total.by_weight).for_each(|(a, b)| *a += b);
            let moments = &total.moments;
            self.line.pull_points(matrices, moments, total.by_v, &mut points, by_weight);
        }
        let kept = bars.kept.map(|column| {
            let mut own = mirrored(&total.kept, m);
            if self.parts.is_linear {
                own += self.line.psi2(&total.moments[column]);
            }
            own
        });
        let mut kernel = vec![0.0; self.params];
        self.parts.pull(&total.parts, &mut kernel);
        Ok(Slopes { kernel, points, mean, variance, kept })
    }

    fn lane(&self, bars: &Bars<'_>) -> Lane {
        let (m, q) = (self.z.nrows(), self.z.ncols());
        Lane {
            parts: self.parts.slopes(),
            points: vec![0.0; m * q],
            moments: vec![Moments::zeros(&self.line); bars.psi2.len()],
            by_v: Mat::zeros(m, q + 1),
            by_weight: vec![0.0; q + 1],
            kept: vec![0.0; if bars.kept.is_some() { m * m } else { 0 }],
            rows: Vec::new(),
        }
    }

    fn pull_block(
        &self,
        x: Uncertain<'_>,
        bars: &Bars<'_>,
        (matrices, seen): (&[f64], &[Seen]),
        (from, rows): (usize, usize),
        lane: &mut Lane,
    ) {
        let block = Block::new(x.rows(from, rows), bars.weights.subrows(from, rows));
        let (padded, q) = (block.padded(), self.z.ncols());
        let (means, variances) = (flat(block.mean.as_ref()), flat(block.variance.as_ref()));
        let own_rows = Rows { count: padded, mean: &means, variance: &variances };
        let (mut by_mean, mut by_variance) = (vec![0.0; padded * q], vec![0.0; padded * q]);
        let mut psi0: Vec<f64> = bars.psi0[from..from + rows].to_vec();
        psi0.resize(padded, 0.0);
        let total = psi0.iter().sum::<f64>();
        lane.parts.white += total;
        for (bump, slope) in self.parts.bumps.iter().zip(&mut lane.parts.log_amplitude) {
            *slope += bump.log_amplitude.exp() * total;
        }
        let mut psi1_bar = Mat::zeros(padded, self.z.nrows());
        let (left, right) = (bars.psi1.0.subrows(from, rows), bars.psi1.1.transpose());
        let target = psi1_bar.as_mut().subrows_mut(0, rows);
        gemm(target, Accum::Replace, left, right, 1.0, Par::Seq);
        let mut bump_bars = vec![flat(psi1_bar.as_ref()); self.parts.bumps.len()];
        let psi1 = self.bump_psi1(&block);
        if self.parts.is_linear {
            let extended = self.extended(&block);
            let sinks = (by_mean.as_mut_slice(), by_variance.as_mut_slice());
            let own = (psi0.as_slice(), psi1_bar.as_ref());
            let totals = (&mut lane.by_v, lane.by_weight.as_mut_slice());
            self.line.pull_linear(&extended, own, sinks, totals);
            self.line.add(&extended, block.weights.as_ref(), &psi1, &mut lane.moments);
            let mut slopes = RowSlopes {
                mean: &mut by_mean,
                variance: &mut by_variance,
                psi1: &mut bump_bars,
                omega: &mut lane.parts.omega,
            };
            self.line.pull_rows(&extended, block.weights.as_ref(), seen, &psi1, &mut slopes);
        }
        let mut sinks = PointSlopes {
            mean: &mut by_mean,
            variance: &mut by_variance,
            points: &mut lane.points,
        };
        let points = self.all_points();
        for (index, (bar, values)) in bump_bars.iter_mut().zip(&psi1).enumerate() {
            bar.iter_mut().zip(values).for_each(|(t, v)| *t *= v);
            let of = (&self.parts, index);
            bumps::pull_psi1((&own_rows, points), of, bar, &mut sinks, &mut lane.parts);
        }
        let weights = flat(block.weights.as_ref());
        for which in self.pairs() {
            let kept = bars.kept.map(|column| (column, lane.kept.as_mut_slice()));
            let mut cotangent = Cotangent { weights: &weights, matrices, kept };
            let of = (&self.parts, which);
            bumps::pull_psi2((&own_rows, points), of, &mut cotangent, &mut sinks, &mut lane.parts);
        }
        lane.rows.push((from, block.rows, by_mean, by_variance));
    }
}

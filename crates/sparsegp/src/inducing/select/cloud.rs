//! The rows as k-means sees them: centred, scaled and one after the other in memory.

use crate::linalg::{Accum, Mat, MatMut, MatRef, Par, gemm};
use rayon::prelude::*;

/// Rows per block of work. Fixed, so that sums do not depend on the number of threads; the block of
/// scores stays in the second-level cache.
pub(super) const BLOCK: usize = 128;

/// N points in D dimensions. Each is followed by a 1, so that one product with a
/// [factor](Cloud::factor) gives all ‖c‖² − 2cᵀx.
pub(super) struct Cloud {
    pub rows: usize,
    pub columns: usize,
    data: Vec<f64>,
    /// ‖x‖².
    pub norms: Vec<f64>,
    /// What differences are divided by.
    pub unit: f64,
}

impl Cloud {
    /// Creates the cloud centred, so that ‖x‖² + ‖c‖² − 2xᵀc does not cancel more than it must, and
    /// scaled by a power of two, so that squares neither overflow nor underflow. Neither changes
    /// the clusters.
    pub fn new(x: MatRef<'_, f64>) -> Self {
        let (rows, columns) = (x.nrows(), x.ncols());
        let mut largest = 0.0_f64;
        for j in 0..columns {
            largest = (0..rows).fold(largest, |largest, i| largest.max(x[(i, j)].abs()));
        }
        let first = power_of_two_near(largest);
        let mut data = vec![1.0; rows * (columns + 1)];
        let mut spread = 0.0_f64;
        for j in 0..columns {
            let mean = (0..rows).map(|i| x[(i, j)] / first).sum::<f64>() / rows as f64;
            for i in 0..rows {
                let value = x[(i, j)] / first - mean;
                data[i * (columns + 1) + j] = value;
                spread = spread.max(value.abs());
            }
        }
        let second = power_of_two_near(spread);
        let mut norms = Vec::with_capacity(rows);
        for row in data.chunks_mut(columns + 1) {
            let values = &mut row[..columns];
            values.iter_mut().for_each(|value| *value /= second);
            norms.push(values.iter().map(|value| value * value).sum());
        }
        Self { rows, columns, data, norms, unit: first * second }
    }

    /// Returns the length of a stored row.
    fn width(&self) -> usize {
        self.columns + 1
    }

    /// Returns the point i.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.width()..][..self.columns]
    }

    /// Returns [−2C, ‖c‖²] for centres stored one after the other.
    fn factor(&self, centres: &[f64]) -> Mat<f64> {
        Mat::from_fn(centres.len() / self.columns, self.width(), |i, j| {
            let centre = &centres[i * self.columns..][..self.columns];
            match centre.get(j) {
                Some(value) => -2.0 * value,
                None => centre.iter().map(|value| value * value).sum(),
            }
        })
    }

    /// Finds the nearest centre of each point, the first of equals, and the squared distance to it.
    pub fn assign(&self, centres: &[f64], labels: &mut [u32], distances: &mut [f64]) {
        let factor = self.factor(centres);
        let count = factor.nrows();
        labels
            .par_chunks_mut(BLOCK)
            .zip(distances.par_chunks_mut(BLOCK))
            .zip(self.data.par_chunks(BLOCK * self.width()))
            .for_each_init(
                || vec![0.0; count * BLOCK],
                |scores, ((labels, distances), data)| {
                    let scores = &mut scores[..count * labels.len()];
                    self.scores(&factor, data, scores);
                    let rows = data.chunks(self.width()).zip(scores.chunks(count));
                    for ((label, distance), (row, scores)) in
                        labels.iter_mut().zip(distances).zip(rows)
                    {
                        let nearest = first_minimum(scores);
                        *label = nearest as u32;
                        let centre = &centres[nearest * self.columns..][..self.columns];
                        // Not from the score, which carries the rounding errors of ‖x‖².
                        *distance = squared_distance(&row[..self.columns], centre);
                    }
                },
            );
    }

    /// Returns the squared distances of all points to a few candidates, point by point, and for
    /// each candidate the potential Σᵢ min(closestᵢ, distanceᵢ).
    pub fn potentials(
        &self,
        candidates: &[f64],
        closest: &[f64],
        distances: &mut [f64],
    ) -> Vec<f64> {
        let factor = self.factor(candidates);
        let count = factor.nrows();
        let sums: Vec<Vec<f64>> = distances
            .par_chunks_mut(BLOCK * 8 * count)
            .zip(self.data.par_chunks(BLOCK * 8 * self.width()))
            .zip(closest.par_chunks(BLOCK * 8).zip(self.norms.par_chunks(BLOCK * 8)))
            .map(|((distances, data), (closest, norms))| {
                self.scores(&factor, data, distances);
                let mut sums = vec![0.0; count];
                let points = closest.iter().zip(norms).zip(distances.chunks_mut(count));
                for ((closest, norm), distances) in points {
                    for (sum, distance) in sums.iter_mut().zip(distances) {
                        *distance = (*distance + norm).max(0.0);
                        *sum += distance.min(*closest);
                    }
                }
                sums
            })
            .collect();
        let mut total = vec![0.0; count];
        for sums in sums {
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        total
    }

    /// Computes factor · data, one column per row of the block.
    fn scores(&self, factor: &Mat<f64>, data: &[f64], scores: &mut [f64]) {
        let rows = data.len() / self.width();
        gemm(
            MatMut::from_column_major_slice_mut(scores, factor.nrows(), rows),
            Accum::Replace,
            factor.as_ref(),
            MatRef::from_column_major_slice(data, self.width(), rows),
            1.0,
            Par::Seq,
        );
    }
}

/// Returns the power of two with the exponent of a positive number, 1 for 0.
fn power_of_two_near(value: f64) -> f64 {
    let power = f64::from_bits(value.to_bits() & f64::INFINITY.to_bits());
    if value == 0.0 { 1.0 } else { power.max(f64::MIN_POSITIVE) }
}

/// Returns ‖a − b‖².
pub(super) fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Returns the index of the first smallest value. Two passes, the first of which vectorises.
fn first_minimum(values: &[f64]) -> usize {
    let mut lanes = [f64::INFINITY; 8];
    let chunks = values.chunks_exact(8);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = if value < *lane { value } else { *lane };
        }
    }
    let smallest = lanes.iter().chain(rest).fold(f64::INFINITY, |a, &b| if b < a { b } else { a });
    values.iter().position(|&value| value == smallest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inducing::select::test_data::uniform;

    #[test]
    fn first_minimum_agrees_with_a_loop() {
        let x = uniform(7, 40, 41);
        for row in 0..40 {
            for length in 1..=41 {
                // Rounded, so that there are ties.
                let values: Vec<f64> = (0..length).map(|j| (x[(row, j)] * 6.0).round()).collect();
                let mut expected = 0;
                for (i, value) in values.iter().enumerate() {
                    if *value < values[expected] {
                        expected = i;
                    }
                }
                assert_eq!(first_minimum(&values), expected, "{values:?}");
            }
        }
    }

    #[test]
    fn assignment_and_potentials_agree_with_loops() {
        for (n, d, m) in [(1, 1, 1), (5, 3, 2), (300, 2, 17), (1500, 18, 40)] {
            let x = uniform(n as u64, n, d);
            let cloud = Cloud::new(x.as_ref());
            let centres: Vec<f64> = (0..m).flat_map(|i| cloud.row(i * 7 % n).to_vec()).collect();
            let (mut labels, mut distances) = (vec![0; n], vec![0.0; n]);
            cloud.assign(&centres, &mut labels, &mut distances);
            let closest: Vec<f64> = (0..n).map(|i| 0.1 * (i % 5) as f64).collect();
            let mut all = vec![0.0; n * m];
            let potentials = cloud.potentials(&centres, &closest, &mut all);
            let mut expected = vec![0.0; m];
            for i in 0..n {
                let exact: Vec<f64> =
                    centres.chunks(d).map(|c| squared_distance(cloud.row(i), c)).collect();
                let least = exact.iter().copied().fold(f64::INFINITY, f64::min);
                assert!(exact[labels[i] as usize] <= least + 1e-13);
                assert_eq!(distances[i], exact[labels[i] as usize]);
                for j in 0..m {
                    assert!((all[i * m + j] - exact[j]).abs() < 1e-13);
                    expected[j] += exact[j].min(closest[i]);
                }
            }
            for (a, b) in potentials.iter().zip(expected) {
                assert!((a - b).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn a_cloud_is_of_size_one_at_every_scale_and_place() {
        for scale in [1e-300, 1e-12, 1.0, 1e12, 1e300] {
            for shift in [0.0, 100.0] {
                let x = uniform(3, 20, 2);
                let x = Mat::from_fn(20, 2, |i, j| scale * (x[(i, j)] + shift));
                let cloud = Cloud::new(x.as_ref());
                let largest = cloud.data.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
                assert!((0.5..=2.0).contains(&largest), "{scale} {shift}: {largest}");
            }
        }
        let constant = Cloud::new(Mat::from_fn(4, 2, |_, _| 0.0).as_ref());
        assert!(constant.norms.iter().all(|&norm| norm == 0.0));
    }
}

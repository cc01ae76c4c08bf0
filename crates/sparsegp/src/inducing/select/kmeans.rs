//! k-means with careful seeding.

use super::cloud::{BLOCK, Cloud};
use super::lloyd::{Clusters, lloyd};
use super::{Selected, check, distinct_rows, few_rows, gather, key};
use crate::error::Result;
use crate::rng::uniform;
use faer::{Mat, MatRef};
use rand::Rng;
use std::collections::HashSet;

/// Most of Lloyd's iterations.
const ITERATIONS: usize = 30;

/// Returns the centres of `m` clusters of the rows of `x` (N×D): seeds by greedy k-means++ (Arthur
/// & Vassilvitskii 2007, with the several candidates per step that their conclusion advises), then
/// at most 30 of Lloyd's iterations. If no more than `m` rows are distinct, these are the points.
///
/// Distances are Euclidean, so columns should have comparable scales. O(N M D) per iteration; runs
/// on the current rayon pool, and the result does not depend on its size.
///
/// # Errors
/// [`crate::Error::Invalid`] without rows, columns or points; [`crate::Error::NonFinite`] for a NaN
/// or an infinity in `x`.
pub fn kmeans(x: MatRef<'_, f64>, m: usize, generator: &mut impl Rng) -> Result<Selected> {
    check(x, m, "inputs")?;
    let distinct = distinct_rows(x, m);
    if let Some(all) = few_rows(x, m, &distinct) {
        return Ok(all);
    }
    let cloud = Cloud::new(x);
    let candidates = 2 + (m as f64).ln() as usize;
    let seeds = seed(&cloud, x, m, candidates, &distinct, &mut || uniform(generator));
    let centres = seeds.iter().flat_map(|&i| cloud.row(i).iter().copied()).collect();
    let Clusters { labels, .. } = lloyd(&cloud, centres, ITERATIONS);
    let points = means(x, &labels, m);
    // Means of different clusters may coincide if Lloyd has not come to its end.
    let kept = distinct_rows(points.as_ref(), m);
    let note = (kept.len() < m).then(|| {
        format!("{m} inducing points were asked for, but only {} centres are distinct", kept.len())
    });
    Ok(Selected { points: gather(points.as_ref(), &kept), requested: m, note, trace_left: None })
}

/// Returns the rows of `m` seeds of k-means++ among the rows of `x` (N×D): the best of `candidates` at each step, 1 for the plain
/// algorithm. Fewer if fewer rows are distinct.
///
/// # Errors
/// As for [`kmeans`].
pub fn kmeans_seeds(
    x: MatRef<'_, f64>,
    m: usize,
    candidates: usize,
    generator: &mut impl Rng,
) -> Result<Vec<usize>> {
    check(x, m, "inputs")?;
    let distinct = distinct_rows(x, m);
    Ok(seed(&Cloud::new(x), x, m, candidates.max(1), &distinct, &mut || uniform(generator)))
}

/// Clusters of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Clustered {
    /// Means of the clusters, M×D.
    pub centres: Mat<f64>,
    /// The cluster of every row, N numbers.
    pub labels: Vec<u32>,
    /// Sums of squared distances to the nearest centre, before each move of the centres.
    pub inertia: Vec<f64>,
}

/// Clusters the rows of `x` (N×D) by at most `iterations` of Lloyd's from these of them as centres. None stays empty: it takes
/// the row that is farthest from its centre.
///
/// # Errors
/// As for [`kmeans`].
pub fn kmeans_from(x: MatRef<'_, f64>, seeds: &[usize], iterations: usize) -> Result<Clustered> {
    check(x, seeds.len(), "inputs")?;
    let cloud = Cloud::new(x);
    let centres = seeds.iter().flat_map(|&i| cloud.row(i).iter().copied()).collect();
    let Clusters { labels, inertia } = lloyd(&cloud, centres, iterations);
    let inertia = inertia.into_iter().map(|sum| sum * cloud.unit * cloud.unit).collect();
    Ok(Clustered { centres: means(x, &labels, seeds.len()), labels, inertia })
}

/// Returns the rows of the seeds. The first is ⌊u n⌋; then each of the candidates is the first row
/// at which the running sum of squared distances exceeds u times their sum, and the one that leaves
/// the smallest sum is taken, the first of equals. `uniforms` gives u in [0, 1).
fn seed(
    cloud: &Cloud,
    x: MatRef<'_, f64>,
    m: usize,
    candidates: usize,
    distinct: &[usize],
    uniforms: &mut dyn FnMut() -> f64,
) -> Vec<usize> {
    let n = cloud.rows;
    let first = ((uniforms() * n as f64) as usize).min(n - 1);
    let mut seeds = vec![first];
    let mut closest = vec![f64::INFINITY; n];
    let mut distances = vec![0.0; n];
    cloud.potentials(cloud.row(first), &closest, &mut distances);
    closest.copy_from_slice(&distances);
    closest[first] = 0.0;
    distances.resize(n * candidates, 0.0);
    while seeds.len() < m {
        let sums: Vec<f64> = closest.chunks(BLOCK).map(|block| block.iter().sum()).collect();
        let total: f64 = sums.iter().sum();
        let (row, chosen) = if total > 0.0 {
            let rows: Vec<usize> =
                (0..candidates).map(|_| draw(&closest, &sums, uniforms() * total)).collect();
            let points: Vec<f64> = rows.iter().flat_map(|&i| cloud.row(i).to_vec()).collect();
            let potentials = cloud.potentials(&points, &closest, &mut distances);
            let best = (1..candidates)
                .fold(0, |best, i| if potentials[i] < potentials[best] { i } else { best });
            (rows[best], Some(best))
        } else {
            // What is left lies within rounding of the seeds.
            let taken: HashSet<_> = seeds.iter().map(|&i| key(x, i)).collect();
            match distinct.iter().find(|&&i| !taken.contains(&key(x, i))) {
                Some(&row) => (row, None),
                None => break,
            }
        };
        if let Some(chosen) = chosen {
            for (closest, distances) in closest.iter_mut().zip(distances.chunks(candidates)) {
                *closest = closest.min(distances[chosen]);
            }
        }
        closest[row] = 0.0;
        seeds.push(row);
    }
    seeds
}

/// Returns the first row at which the running sum exceeds `target`, by way of the sums of the
/// blocks.
fn draw(weights: &[f64], sums: &[f64], target: f64) -> usize {
    let mut before = 0.0;
    for (block, (sum, weights)) in sums.iter().zip(weights.chunks(BLOCK)).enumerate() {
        if before + sum > target {
            let mut running = before;
            for (i, weight) in weights.iter().enumerate() {
                running += weight;
                if running > target && *weight > 0.0 {
                    return block * BLOCK + i;
                }
            }
        }
        before += sum;
    }
    // Rounding has let the sum end below the target.
    weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0)
}

/// Returns the means of the clusters in the original units. Differences to the first member are
/// averaged, so that a cluster of equal rows has exactly that row as its centre.
fn means(x: MatRef<'_, f64>, labels: &[u32], m: usize) -> Mat<f64> {
    let mut first = vec![usize::MAX; m];
    let mut counts = vec![0.0; m];
    for (i, &label) in labels.iter().enumerate() {
        let label = label as usize;
        first[label] = first[label].min(i);
        counts[label] += 1.0;
    }
    let mut centres = Mat::zeros(m, x.ncols());
    for j in 0..x.ncols() {
        for (i, &label) in labels.iter().enumerate() {
            let label = label as usize;
            centres[(label, j)] += (x[(i, j)] - x[(first[label], j)]) / counts[label];
        }
        for label in 0..m {
            if let Some(&start) = first.get(label).filter(|&&i| i < x.nrows()) {
                centres[(label, j)] += x[(start, j)];
            }
        }
    }
    centres
}

#[cfg(test)]
#[path = "kmeans_tests.rs"]
mod tests;

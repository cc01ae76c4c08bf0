//! A determinantal point process of fixed size.

use super::pivoted::{Pivoted, check_variances};
use super::{Columns, Selected, check, distinct_rows, few_rows, gather};
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Jitter, Mat, MatRef, column, symmetric_eigen};
use crate::rng;
use rand::Rng;

/// Most points of [`kdpp`], which factorises a matrix of twice as many rows.
pub const MOST_POINTS: usize = 2000;

/// Fewest rows that are drawn from, if there are so many.
const CANDIDATES: usize = 1000;

/// What is added to the diagonal, as a share of its mean: as for Kuu, of which the law is the determinant.
const JITTER: f64 = 1e-6;

/// Rows of the candidates' covariances that are asked for at once.
const CHUNK: usize = 64;

/// Returns `m` distinct rows of `x` (N×D) drawn from the k-DPP of the kernel: P(S) ∝ |K_SS + εI|
/// over all sets of m candidates, so that rows repel each other as the kernel sees them (Kulesza &
/// Taskar 2011, "k-DPPs"; as inducing points Burt, Rasmussen & van der Wilk 2020, §4.2). The draw
/// is exact: eigenvectors by elementary symmetric polynomials (Kulesza & Taskar 2012, Alg. 7 and
/// 8), then rows one after the other by the chain rule. Candidates are all distinct rows, or
/// max(1000, 2m) of them drawn at random. ε is 10⁻⁶ of the mean variance, as in Kuu.
///
/// `diag` has the N prior variances, `columns` gives columns of K(X). O(C³) time for C candidates. If no more
/// than `m` rows are distinct, these are the points.
///
/// # Errors
/// [`Error::Invalid`] without rows, columns or points, for more than [`MOST_POINTS`] points, for a negative
/// variance, or if all are zero; [`Error::Shape`] and [`Error::NonFinite`] for variances and covariances that
/// are wrong in number or not finite; errors of `columns`.
pub fn kdpp(
    x: MatRef<'_, f64>,
    m: usize,
    diag: &[f64],
    columns: Columns<'_>,
    generator: &mut impl Rng,
) -> Result<Selected> {
    check(x, m, "inputs")?;
    check_variances(diag, x.nrows(), "k-dpp")?;
    let distinct = distinct_rows(x, x.nrows());
    if let Some(all) = few_rows(x, m, &distinct) {
        return Ok(all);
    }
    if m > MOST_POINTS {
        return Err(Error::Invalid(format!(
            "k-dpp: {m} inducing points are too many for exact draws, which cost the cube of their number (up to \
             {MOST_POINTS}); use `greedy-variance` or `kmeans`"
        )));
    }
    let count = CANDIDATES.max(2 * m).min(distinct.len());
    let mut candidates: Vec<usize> = rng::permutation(generator, distinct.len(), count)
        .into_iter()
        .map(|i| distinct[i])
        .collect();
    candidates.sort_unstable();
    let mut k = Mat::zeros(count, count);
    for first in (0..count).step_by(CHUNK) {
        let chunk = &candidates[first..count.min(first + CHUNK)];
        let some = columns(chunk)?;
        check_columns(&some, x.nrows(), chunk.len())?;
        for j in 0..chunk.len() {
            let own = column(some.as_ref(), j);
            let to = k.col_as_slice_mut(first + j);
            to.iter_mut().zip(&candidates).for_each(|(to, &i)| *to = own[i]);
        }
    }
    // a kernel that looks at identity has its own diagonal
    let mean = candidates.iter().map(|&i| diag[i]).sum::<f64>() / count as f64;
    (0..count).for_each(|i| k[(i, i)] = diag[candidates[i]] + JITTER * mean);
    let rows: Vec<usize> =
        kdpp_draw(k.as_ref(), m, generator)?.into_iter().map(|i| candidates[i]).collect();
    Ok(Selected { points: gather(x, &rows), requested: m, note: None, trace_left: None })
}

/// Refuses columns that are too few or too short, or not finite.
pub(super) fn check_columns(columns: &Mat<f64>, n: usize, count: usize) -> Result<()> {
    if (columns.nrows(), columns.ncols()) != (n, count) {
        return Err(Error::Shape {
            what: "covariances with some rows".into(),
            expected: format!("{n}×{count}"),
            found: format!("{}×{}", columns.nrows(), columns.ncols()),
        });
    }
    for j in 0..count {
        super::pivoted::check_length(columns.col_as_slice(j), n, "covariances with one row")?;
    }
    Ok(())
}

/// Returns log P(S) of a set of rows under the k-DPP of K (N×N, symmetric): log|K_SS| − log e_m(λ),
/// with e_m the elementary symmetric polynomial of the eigenvalues λ of K. −∞ for a set of equal
/// rows.
///
/// # Errors
/// Those of eigenvalues that are not found.
pub fn kdpp_log_probability(k: MatRef<'_, f64>, rows: &[usize]) -> Result<f64> {
    let own = Mat::from_fn(rows.len(), rows.len(), |i, j| k[(rows[i], rows[j])]);
    let log_det = match Cholesky::new(own.as_ref(), Jitter::Absolute(0.0), "K_SS") {
        Ok(factor) => factor.log_det(),
        Err(_) => return Ok(f64::NEG_INFINITY),
    };
    let polynomials = log_polynomials(&logs(&symmetric_eigen(k)?.0), rows.len());
    Ok(log_det - polynomials[polynomials.len() - 1])
}

/// Returns the logarithms of eigenvalues, of which rounding may leave some below 0: a jitter is
/// larger.
fn logs(values: &[f64]) -> Vec<f64> {
    let largest = values.iter().fold(0.0_f64, |m, v| m.max(*v));
    values.iter().map(|v| v.max(largest * f64::EPSILON).ln()).collect()
}

/// Draws a set S of m rows with P(S) ∝ |K_SS| from K (N×N, symmetric), in the order in which the chain rule draws them:
/// a number of `generator` for every eigenvector that is looked at, from that of the largest value, then one for every row.
///
/// # Errors
/// Those of eigenvectors that are not found.
pub fn kdpp_draw(k: MatRef<'_, f64>, m: usize, generator: &mut impl Rng) -> Result<Vec<usize>> {
    let n = k.nrows();
    let (values, vectors) = symmetric_eigen(k)?;
    let chosen = choose_vectors(&logs(&values), m, generator);
    // P(i | the rows drawn) is the conditional variance under the projection VVᵀ
    let v = Mat::from_fn(n, m, |i, j| vectors[(i, chosen[j])]);
    let diag: Vec<f64> = (0..n).map(|i| (0..m).map(|j| v[(i, j)] * v[(i, j)]).sum()).collect();
    let mut projected = Pivoted::new(&diag, m);
    let mut rows = Vec::with_capacity(m);
    let mut covariances = vec![0.0; n];
    while rows.len() < m {
        let row = draw_one(&projected.left, generator);
        covariances.fill(0.0);
        for j in 0..m {
            let weight = v[(row, j)];
            let own = column(v.as_ref(), j);
            covariances.iter_mut().zip(own).for_each(|(c, v)| *c += weight * v);
        }
        projected.choose(row, &covariances);
        rows.push(row);
    }
    Ok(rows)
}

/// Returns which m eigenvectors span the projection: J with P(J) ∝ Π_J λ (Kulesza & Taskar 2012,
/// Alg. 8), by logarithms of the elementary symmetric polynomials e_l(λ₁, …, λᵢ), which span
/// hundreds of orders of magnitude.
fn choose_vectors(logs: &[f64], m: usize, generator: &mut impl Rng) -> Vec<usize> {
    let n = logs.len();
    let at = |i: usize, l: usize| i * (m + 1) + l;
    let e = log_polynomials(logs, m);
    let (mut chosen, mut l) = (Vec::with_capacity(m), m);
    for i in (1..=n).rev() {
        if l == 0 {
            break;
        }
        let inside = (logs[i - 1] + e[at(i - 1, l - 1)] - e[at(i, l)]).exp();
        // with as many left as are needed all of them are taken
        if rng::uniform(generator) < inside || l == i {
            chosen.push(i - 1);
            l -= 1;
        }
    }
    chosen
}

/// Returns log e_l of the first i of n numbers, given their logarithms, at [i·(m + 1) + l], l ≤ m.
fn log_polynomials(logs: &[f64], m: usize) -> Vec<f64> {
    let n = logs.len();
    let at = |i: usize, l: usize| i * (m + 1) + l;
    let mut e = vec![f64::NEG_INFINITY; (n + 1) * (m + 1)];
    e[at(0, 0)] = 0.0;
    for i in 1..=n {
        e[at(i, 0)] = 0.0;
        for l in 1..=m.min(i) {
            let (without, with) = (e[at(i - 1, l)], logs[i - 1] + e[at(i - 1, l - 1)]);
            let most = without.max(with);
            e[at(i, l)] = most + ((without - most).exp() + (with - most).exp()).ln();
        }
    }
    e
}

/// Draws an index with probability in proportion to its weight; negative weights are rounding
/// errors around zero.
fn draw_one(weights: &[f64], generator: &mut impl Rng) -> usize {
    let total: f64 = weights.iter().map(|w| w.max(0.0)).sum();
    let mut rest = total * rng::uniform(generator);
    let mut last = 0;
    for (i, weight) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
        last = i;
        rest -= weight;
        if rest < 0.0 {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{bits, in_pools, uniform};
    use super::*;
    use statrs::distribution::{ChiSquared, ContinuousCDF};
    use std::collections::HashMap;

    /// |K_SS| by elimination.
    fn determinant(k: &Mat<f64>, rows: &[usize]) -> f64 {
        let mut a = Mat::from_fn(rows.len(), rows.len(), |i, j| k[(rows[i], rows[j])]);
        let mut product = 1.0;
        for p in 0..rows.len() {
            product *= a[(p, p)];
            for i in p + 1..rows.len() {
                let weight = a[(i, p)] / a[(p, p)];
                (p..rows.len()).for_each(|j| a[(i, j)] -= weight * a[(p, j)]);
            }
        }
        product
    }

    fn subsets(n: usize, m: usize) -> Vec<Vec<usize>> {
        (0..1_usize << n)
            .filter(|set| set.count_ones() as usize == m)
            .map(|set| (0..n).filter(|i| set >> i & 1 == 1).collect())
            .collect()
    }

    /// Variances that differ by row, rows that are near each other and rows that are not.
    fn kernel(n: usize) -> Mat<f64> {
        let x = uniform(31, n, 2);
        Mat::from_fn(n, n, |i, j| {
            let square: f64 = (0..2).map(|q| ((x[(i, q)] - x[(j, q)]) / 0.4).powi(2)).sum();
            2.5 * (1.0 + x[(i, 0)]) * (1.0 + x[(j, 0)]) * (-0.5 * square).exp()
                + if i == j { 0.05 } else { 0.0 }
        })
    }

    /// All sets are enumerated, and draws counted: Pearson's χ², at a level of 10⁻³ for each size.
    #[test]
    fn the_law_is_that_of_determinants() {
        let n = 7;
        let k = kernel(n);
        for m in [1, 2, 3, 5, 7] {
            let all = subsets(n, m);
            let weights: Vec<f64> = all.iter().map(|set| determinant(&k, set)).collect();
            let total: f64 = weights.iter().sum();
            let mut counts: HashMap<Vec<usize>, u64> = HashMap::new();
            let draws = 20_000;
            let mut generator = rng::stream(5, "k-dpp");
            for _ in 0..draws {
                let mut rows = kdpp_draw(k.as_ref(), m, &mut generator).unwrap();
                rows.sort_unstable();
                *counts.entry(rows).or_default() += 1;
            }
            // rare sets together
            let (mut statistic, mut cells, mut rest) = (0.0, 0, (0.0, 0.0));
            for (set, weight) in all.iter().zip(&weights) {
                let expected = f64::from(draws) * weight / total;
                let found = counts.get(set).copied().unwrap_or(0) as f64;
                if expected < 10.0 {
                    rest = (rest.0 + expected, rest.1 + found);
                } else {
                    statistic += (found - expected).powi(2) / expected;
                    cells += 1;
                }
            }
            if rest.0 > 5.0 {
                statistic += (rest.1 - rest.0).powi(2) / rest.0;
                cells += 1;
            }
            if cells < 2 {
                assert_eq!(counts.len(), 1, "m = {m}");
                continue;
            }
            let law = ChiSquared::new(f64::from(cells - 1)).unwrap();
            let p = law.sf(statistic);
            assert!(p > 1e-3, "m = {m}: χ² = {statistic} of {cells} cells, p = {p}");
        }
    }

    /// Uniform draws, and draws that ignore a variance, do not pass: the test can fail.
    #[test]
    fn the_law_is_far_from_uniform() {
        let k = kernel(7);
        let weights: Vec<f64> = subsets(7, 3).iter().map(|set| determinant(&k, set)).collect();
        let total: f64 = weights.iter().sum();
        let uniform = total / weights.len() as f64;
        let statistic: f64 =
            weights.iter().map(|w| 20_000.0 / total * (w - uniform).powi(2) / uniform).sum();
        // the 10⁻³ quantile of 34 degrees of freedom is 65
        assert!(statistic > 1000.0, "{statistic}");
    }

    #[test]
    fn polynomials_agree_with_sums_over_sets() {
        let logs = [1.2_f64, 0.3, -4.0, 2.2, 0.0].map(|v: f64| v);
        // P(J) ∝ Π λ: each pair as often as it should be, at six standard deviations
        let mut counts = HashMap::new();
        let mut generator = rng::stream(9, "pairs");
        for _ in 0..20_000 {
            let mut pair = choose_vectors(&logs, 2, &mut generator);
            pair.sort_unstable();
            *counts.entry(pair).or_insert(0.0) += 1.0;
        }
        let pairs = subsets(5, 2);
        let weight = |set: &Vec<usize>| set.iter().map(|&i| logs[i]).sum::<f64>().exp();
        let total: f64 = pairs.iter().map(weight).sum();
        for set in &pairs {
            let p = weight(set) / total;
            let found = counts.get(set).copied().unwrap_or(0.0);
            let sd = (20_000.0 * p * (1.0 - p)).sqrt();
            assert!((found - 20_000.0 * p).abs() < 6.0 * sd + 1.0, "{set:?}: {found} {p}");
        }
    }

    fn select(x: &Mat<f64>, m: usize, l: f64, seed: u64) -> Result<Selected> {
        let n = x.nrows();
        let k = |i: usize, j: usize| {
            let square: f64 = (0..x.ncols()).map(|d| ((x[(i, d)] - x[(j, d)]) / l).powi(2)).sum();
            1.7 * (-0.5 * square).exp()
        };
        let columns = &mut |rows: &[usize]| Ok(Mat::from_fn(n, rows.len(), |i, j| k(i, rows[j])));
        kdpp(x.as_ref(), m, &vec![1.7; n], columns, &mut rng::stream(seed, "k-dpp"))
    }

    /// Far more points than the kernel has eigenvalues above rounding.
    #[test]
    fn smooth_kernels_give_as_many_distinct_rows() {
        let x = uniform(32, 300, 1);
        let points = select(&x, 120, 2.0, 1).unwrap().points;
        assert_eq!(points.nrows(), 120);
        assert_eq!(distinct_rows(points.as_ref(), 200).len(), 120);
        assert_eq!(bits(&select(&x, 120, 2.0, 1).unwrap().points), bits(&points));
        assert_ne!(bits(&select(&x, 120, 2.0, 2).unwrap().points), bits(&points));
    }

    /// Repulsion: the nearest two of ten points are farther apart than of ten at random.
    #[test]
    fn points_repel_each_other() {
        let x = uniform(33, 200, 1);
        let nearest = |points: &Mat<f64>| {
            let mut own = points.col_as_slice(0).to_vec();
            own.sort_by(f64::total_cmp);
            own.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min)
        };
        let mean = |of: &dyn Fn(u64) -> Mat<f64>| {
            (0..20).map(|seed| nearest(&of(seed))).sum::<f64>() / 20.0
        };
        let drawn = mean(&|seed| select(&x, 10, 0.1, seed).unwrap().points);
        let random = mean(&|seed| {
            super::super::random(x.as_ref(), 10, &mut rng::stream(seed, "r")).unwrap().points
        });
        assert!(drawn > 2.0 * random, "{drawn} {random}");
    }

    #[test]
    fn does_not_depend_on_threads() {
        let x = uniform(34, 2500, 2);
        let all = in_pools(|| bits(&select(&x, 30, 0.2, 3).unwrap().points));
        assert!(all.iter().all(|one| *one == all[0]));
    }

    #[test]
    fn too_many_points_are_refused() {
        let x = uniform(35, 2100, 1);
        let error = select(&x, 2001, 0.1, 1).unwrap_err().to_string();
        assert!(error.contains("2001") && error.contains("greedy-variance"), "{error}");
    }
}

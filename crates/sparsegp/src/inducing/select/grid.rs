//! A uniform grid.

use super::{Selected, check};
use crate::error::{Error, Result};
use faer::{Mat, MatRef};

/// Returns the nodes of a grid over the box that holds the rows of `x` (N×D), from edge to edge,
/// evenly spaced along every column: as many as fit into `m`, which a note says if it is fewer.
/// Columns get nodes in proportion to their ranges, as nearly as whole numbers allow: where the
/// scales of the columns are of no relation, divide them by lengthscales before. A constant column
/// has the one value.
///
/// A grid needs two nodes along every column that varies. Their number is the product over the columns, which
/// is why this is for one, two or three of them.
///
/// # Errors
/// [`Error::Invalid`] without rows, columns or points, and where 2 to the power of the number of columns that
/// vary exceeds `m`; [`Error::NonFinite`] for a NaN or an infinity in `x`.
pub fn grid(x: MatRef<'_, f64>, m: usize) -> Result<Selected> {
    check(x, m, "inputs")?;
    let edges: Vec<(f64, f64)> = (0..x.ncols())
        .map(|q| {
            (0..x.nrows()).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), i| {
                (low.min(x[(i, q)]), high.max(x[(i, q)]))
            })
        })
        .collect();
    let varying: Vec<usize> = (0..x.ncols()).filter(|&q| edges[q].0 < edges[q].1).collect();
    let least = u32::try_from(varying.len()).ok().and_then(|d| 2_usize.checked_pow(d));
    if least.is_none_or(|least| least > m) {
        return Err(Error::Invalid(format!(
            "grid: a grid over {} inputs has at least 2^{} points, and {m} inducing points are asked for; a grid is \
             for few inputs: use `kmeans` or `greedy-variance`",
            varying.len(),
            varying.len()
        )));
    }
    let mut nodes = vec![1; x.ncols()];
    varying.iter().for_each(|&q| nodes[q] = 2);
    // halves, so that the difference of two large numbers is finite
    let half_range = |q: usize| 0.5 * edges[q].1 - 0.5 * edges[q].0;
    // where nodes are farthest apart one more of them helps most
    let apart = |nodes: &[usize], q: usize| half_range(q) / (nodes[q] - 1) as f64;
    loop {
        let count: usize = nodes.iter().product();
        let fits = |q: &&usize| count / nodes[**q] * (nodes[**q] + 1) <= m;
        let widest = varying
            .iter()
            .filter(fits)
            .copied()
            .reduce(|best, q| if apart(&nodes, q) > apart(&nodes, best) { q } else { best });
        let Some(q) = widest else { break };
        nodes[q] += 1;
    }
    let count: usize = nodes.iter().product();
    let mut points = Mat::zeros(count, x.ncols());
    let mut period = 1;
    for q in 0..x.ncols() {
        let (low, high) = edges[q];
        for i in 0..count {
            let node = i / period % nodes[q];
            let share = node as f64 / (nodes[q].max(2) - 1) as f64;
            // exact at both ends
            points[(i, q)] = low * (1.0 - share) + high * share;
        }
        period *= nodes[q];
    }
    let note = (count < m).then(|| {
        let sides: Vec<String> = nodes.iter().map(usize::to_string).collect();
        format!(
            "{m} inducing points were asked for, but the largest even grid has {count} ({})",
            sides.join("×")
        )
    });
    Ok(Selected { points, requested: m, note, trace_left: None })
}

/// A grid over all rows that were seen so far, for streams: its edges move out with every batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdaptiveGrid {
    /// The least and the largest value of every column.
    edges: Vec<(f64, f64)>,
}

impl AdaptiveGrid {
    /// Moves the edges out to the rows of `x` (N×D).
    ///
    /// # Errors
    /// [`Error::Shape`] where earlier rows had another number of columns; [`Error::NonFinite`].
    pub fn see(&mut self, x: MatRef<'_, f64>) -> Result<()> {
        check(x, 1, "inputs")?;
        if self.edges.is_empty() {
            self.edges = vec![(f64::INFINITY, f64::NEG_INFINITY); x.ncols()];
        }
        if self.edges.len() != x.ncols() {
            return Err(Error::Shape {
                what: "rows for a grid".into(),
                expected: format!("{} columns", self.edges.len()),
                found: format!("{}", x.ncols()),
            });
        }
        for (q, (low, high)) in self.edges.iter_mut().enumerate() {
            for i in 0..x.nrows() {
                (*low, *high) = (low.min(x[(i, q)]), high.max(x[(i, q)]));
            }
        }
        Ok(())
    }

    /// Returns the nodes, `per` along every column (`per`^D×D, the first column moves fastest); one where it has one value.
    ///
    /// # Errors
    /// [`Error::Invalid`] before rows were seen, for fewer than 2 nodes, and where there are more than a million in all.
    pub fn nodes(&self, per: usize) -> Result<Mat<f64>> {
        const MOST: usize = 1_000_000;
        let sides: Vec<usize> =
            self.edges.iter().map(|(low, high)| if low < high { per } else { 1 }).collect();
        let count = sides.iter().try_fold(1_usize, |all, side| all.checked_mul(*side));
        let count = match count.filter(|count| *count <= MOST) {
            Some(count) if per > 1 && !sides.is_empty() => count,
            _ => {
                return Err(Error::Invalid(format!(
                    "grid: {per} nodes along each of {} columns: give at least 2, for rows that were seen, and at most {MOST} in \
                     all",
                    sides.len()
                )));
            }
        };
        let mut points = Mat::zeros(count, sides.len());
        let mut period = 1;
        for (q, side) in sides.iter().enumerate() {
            let (low, high) = self.edges[q];
            for i in 0..count {
                let share = (i / period % side) as f64 / (side.max(&2) - 1) as f64;
                points[(i, q)] = low * (1.0 - share) + high * share;
            }
            period *= side;
        }
        Ok(points)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_data::uniform;
    use super::*;
    use std::collections::BTreeSet;

    fn axis(points: &Mat<f64>, q: usize) -> Vec<f64> {
        let values: BTreeSet<u64> =
            (0..points.nrows()).map(|i| (points[(i, q)] + 8.0).to_bits()).collect();
        values.into_iter().map(|bits| f64::from_bits(bits) - 8.0).collect()
    }

    #[test]
    fn a_grid_that_adapts_moves_out_and_never_in() {
        let mut grid = AdaptiveGrid::default();
        assert!(grid.nodes(3).is_err());
        grid.see(Mat::from_fn(2, 2, |i, q| (i * 2) as f64 + q as f64).as_ref()).unwrap();
        let first = grid.nodes(3).unwrap();
        assert_eq!(axis(&first, 0), [0.0, 1.0, 2.0]);
        assert_eq!(axis(&first, 1), [1.0, 2.0, 3.0]);
        grid.see(Mat::from_fn(1, 2, |_, q| if q == 0 { -4.0 } else { 1.5 }).as_ref()).unwrap();
        let second = grid.nodes(3).unwrap();
        assert_eq!((second.nrows(), axis(&second, 0)), (9, vec![-4.0, -1.0, 2.0]));
        assert_eq!(axis(&second, 1), axis(&first, 1));
        assert!(grid.see(Mat::zeros(1, 3).as_ref()).is_err() && grid.nodes(1).is_err());
        assert!(grid.nodes(2000).is_err());
        let mut flat = AdaptiveGrid::default();
        flat.see(Mat::from_fn(4, 2, |i, q| if q == 0 { i as f64 } else { 7.0 }).as_ref()).unwrap();
        assert_eq!(flat.nodes(4).unwrap().nrows(), 4);
    }

    #[test]
    fn nodes_are_evenly_spaced_from_edge_to_edge() {
        let mut x = uniform(1, 60, 2);
        // the second column three times as wide
        (0..60).for_each(|i| x[(i, 1)] = 3.0 * x[(i, 1)] - 1.5);
        let selected = grid(x.as_ref(), 50).unwrap();
        let (first, second) = (axis(&selected.points, 0), axis(&selected.points, 1));
        let (a, b) = (first.len(), second.len());
        let count = selected.points.nrows();
        assert_eq!(a * b, count);
        assert!(count <= 50 && (a + 1) * b > 50 && a * (b + 1) > 50, "{a}×{b}: no room for more");
        // spacings alike: 1/(a − 1) and 3/(b − 1)
        let ratio = 3.0 * (a - 1) as f64 / (b - 1) as f64;
        assert!((0.7..1.4).contains(&ratio), "{a}×{b}");
        assert_eq!(selected.note.is_some(), count < 50);
        for (q, own) in [(0, first), (1, second)] {
            let least = (0..60).map(|i| x[(i, q)]).fold(f64::INFINITY, f64::min);
            let most = (0..60).map(|i| x[(i, q)]).fold(f64::NEG_INFINITY, f64::max);
            let step = (most - least) / (own.len() - 1) as f64;
            for (k, value) in own.iter().enumerate() {
                assert!((value - least - k as f64 * step).abs() < 1e-12);
            }
        }
        // every pair of nodes once
        let pairs: BTreeSet<(u64, u64)> = (0..count)
            .map(|i| (selected.points[(i, 0)].to_bits(), selected.points[(i, 1)].to_bits()))
            .collect();
        assert_eq!(pairs.len(), count);
    }

    #[test]
    fn one_column_has_exactly_so_many() {
        let x = uniform(2, 9, 1);
        for m in [2, 3, 7, 40] {
            let selected = grid(x.as_ref(), m).unwrap();
            assert_eq!((selected.points.nrows(), selected.note), (m, None));
        }
    }

    #[test]
    fn constant_columns_keep_their_value() {
        let mut x = uniform(3, 20, 3);
        (0..20).for_each(|i| x[(i, 1)] = -2.5);
        let selected = grid(x.as_ref(), 9).unwrap();
        assert_eq!(selected.points.nrows(), 9);
        assert!((0..9).all(|i| selected.points[(i, 1)] == -2.5));
        let one = grid(Mat::full(4, 2, 1.25).as_ref(), 5).unwrap();
        assert_eq!((one.points.nrows(), one.points[(0, 1)]), (1, 1.25));
    }

    #[test]
    fn many_columns_are_refused_with_the_number() {
        let x = uniform(4, 20, 6);
        let error = grid(x.as_ref(), 63).unwrap_err().to_string();
        assert!(error.contains("over 6 inputs has at least 2^6 points, and 63"), "{error}");
        assert!(error.contains("`kmeans`"));
        assert_eq!(grid(x.as_ref(), 64).unwrap().points.nrows(), 64);
        assert!(grid(uniform(5, 3, 200).as_ref(), 1000).is_err());
        let one = grid(uniform(6, 3, 1).as_ref(), 1).unwrap_err().to_string();
        assert!(one.contains("2^1"), "{one}");
    }

    #[test]
    fn huge_ranges_stay_finite() {
        let x = Mat::from_fn(2, 1, |i, _| if i == 0 { -f64::MAX } else { f64::MAX });
        let points = grid(x.as_ref(), 3).unwrap().points;
        assert_eq!((points[(0, 0)], points[(1, 0)], points[(2, 0)]), (-f64::MAX, 0.0, f64::MAX));
    }
}

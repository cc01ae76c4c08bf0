//! Lines of equal value of a function on a grid: marching squares.

use super::style::range;
use std::collections::BTreeMap;

/// Points in the order in which a line joins them.
pub type Line = Vec<(f64, f64)>;

/// Nodes of a rectangle, the outer ones on its border.
#[derive(Clone, Debug)]
pub struct Grid {
    /// From left to right.
    pub x: (f64, f64),
    /// From bottom to top.
    pub y: (f64, f64),
    /// Nodes of a row, at least 2.
    pub columns: usize,
    /// Rows, at least 2.
    pub rows: usize,
}

impl Grid {
    /// Creates a grid around these points, with a margin.
    pub fn around(points: impl Iterator<Item = (f64, f64)> + Clone) -> Self {
        let (x, y) = (points.clone().map(|(x, _)| x), points.map(|(_, y)| y));
        Self { x: range(x, 0.06), y: range(y, 0.06), columns: 91, rows: 61 }
    }

    /// Returns where a node is. Halves lie between nodes; beyond the border is on it.
    pub fn place(&self, column: f64, row: f64) -> (f64, f64) {
        let between = |(low, high): (f64, f64), at: f64, nodes: usize| {
            low + (high - low) * (at / (nodes - 1) as f64).clamp(0.0, 1.0)
        };
        (between(self.x, column, self.columns), between(self.y, row, self.rows))
    }

    /// Returns all nodes, row by row from the bottom: the order of values on the grid.
    pub fn nodes(&self) -> Vec<(f64, f64)> {
        let row = |j| (0..self.columns).map(move |i| (i, j));
        (0..self.rows).flat_map(row).map(|(i, j)| self.place(i as f64, j as f64)).collect()
    }

    /// Returns the lines on which `values` are `level`, linear between nodes; closed ones end where
    /// they begin. There are none where values are not finite.
    pub fn contours(&self, values: &[f64], level: f64) -> Vec<Line> {
        let mut crossings = Crossings { grid: self, values, level, beside: BTreeMap::new() };
        for j in 0..self.rows - 1 {
            for i in 0..self.columns - 1 {
                crossings.add_square(i, j);
            }
        }
        crossings.lines()
    }
}

/// An edge of the grid: from this node to the right (`false`) or upwards (`true`).
type Edge = (usize, usize, bool);

/// The edges that a line crosses, with those beside them on the line: one or two.
struct Crossings<'a> {
    grid: &'a Grid,
    values: &'a [f64],
    level: f64,
    beside: BTreeMap<Edge, Vec<Edge>>,
}

impl Crossings<'_> {
    fn value(&self, i: usize, j: usize) -> f64 {
        self.values[j * self.grid.columns + i]
    }

    fn add_square(&mut self, i: usize, j: usize) {
        let corners =
            [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)].map(|(i, j)| self.value(i, j));
        if corners.iter().any(|value| !value.is_finite()) {
            return;
        }
        let above = corners.map(|value| value > self.level);
        // Edge k is from corner k to the next: bottom, right, top, left.
        let edges = [(i, j, false), (i + 1, j, true), (i, j + 1, false), (i, j, true)];
        let crossed: Vec<Edge> =
            (0..4).filter(|k| above[*k] != above[(k + 1) % 4]).map(|k| edges[k]).collect();
        match crossed[..] {
            [a, b] => self.join(a, b),
            [bottom, right, top, left] => {
                // A saddle: the middle tells which corners are together.
                let middle = corners.iter().map(|value| value / 4.0).sum::<f64>() > self.level;
                let (with_bottom, with_top) =
                    if middle == above[0] { (right, left) } else { (left, right) };
                self.join(bottom, with_bottom);
                self.join(top, with_top);
            }
            _ => {}
        }
    }

    fn join(&mut self, a: Edge, b: Edge) {
        self.beside.entry(a).or_default().push(b);
        self.beside.entry(b).or_default().push(a);
    }

    /// Returns where the line crosses an edge.
    fn place(&self, (i, j, upwards): Edge) -> (f64, f64) {
        let (a, b) =
            (self.value(i, j), self.value(i + usize::from(!upwards), j + usize::from(upwards)));
        let share = (self.level - a) / (b - a);
        let (column, row) = if upwards { (0.0, share) } else { (share, 0.0) };
        self.grid.place(i as f64 + column, j as f64 + row)
    }

    /// Follows lines until all are used up, those with ends first.
    fn lines(mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(start) = {
            let end = self.beside.iter().find(|(_, beside)| beside.len() == 1);
            end.or(self.beside.iter().next()).map(|(edge, _)| *edge)
        } {
            let (mut at, mut line) = (start, vec![self.place(start)]);
            while let Some(next) = self.step(at) {
                line.push(self.place(next));
                at = next;
            }
            lines.push(line);
        }
        lines
    }

    /// Goes along one link and removes it.
    fn step(&mut self, from: Edge) -> Option<Edge> {
        let to = self.beside.get_mut(&from)?.pop()?;
        for (edge, other) in [(from, to), (to, from)] {
            if let Some(beside) = self.beside.get_mut(&edge) {
                beside.retain(|edge| *edge != other);
                if beside.is_empty() {
                    self.beside.remove(&edge);
                }
            }
        }
        Some(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(columns: usize, rows: usize) -> Grid {
        Grid { x: (-3.0, 5.0), y: (10.0, 16.0), columns, rows }
    }

    fn values(grid: &Grid, f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        grid.nodes().into_iter().map(|(x, y)| f(x, y)).collect()
    }

    fn length(line: &[(f64, f64)]) -> f64 {
        line.windows(2).map(|w| (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1)).sum()
    }

    #[test]
    fn a_circle_is_one_closed_line() {
        let grid = grid(161, 121);
        let values = values(&grid, |x, y| (x - 1.0).powi(2) + (y - 13.0).powi(2));
        let lines = grid.contours(&values, 4.0);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].first(), lines[0].last());
        for (x, y) in &lines[0] {
            // Linear in squares of step h = 0.05: off by h²/8R at most.
            assert!(((x - 1.0).hypot(y - 13.0) - 2.0).abs() < 2e-4);
        }
        assert!((length(&lines[0]) - 4.0 * std::f64::consts::PI).abs() < 5e-3);
    }

    #[test]
    fn a_plane_has_straight_lines_from_border_to_border() {
        let grid = grid(9, 7);
        let lines = grid.contours(&values(&grid, |x, _| 2.0 * x), 0.5);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].len(), 7);
        assert!(lines[0].iter().all(|(x, _)| (x - 0.25).abs() < 1e-15));
        assert!((length(&lines[0]) - 6.0).abs() < 1e-12);
        assert!(grid.contours(&values(&grid, |x, _| 2.0 * x), 11.0).is_empty());
        let broken = values(&grid, |x, y| if y > 12.5 { f64::NAN } else { x });
        assert!(grid.contours(&broken, 0.5).iter().flatten().all(|(_, y)| *y <= 12.0 + 1e-12));
    }

    #[test]
    fn a_saddle_is_cut_as_its_middle_says() {
        let grid = Grid { x: (0.0, 1.0), y: (0.0, 1.0), columns: 2, rows: 2 };
        // Nodes (0, 0), (1, 0), (0, 1), (1, 1). Middle above: the low corners are cut off.
        let lines = grid.contours(&[1.0, 0.0, 0.0, 1.0], 0.25);
        assert_eq!(lines.len(), 2);
        for line in &lines {
            let near = |corner: (f64, f64)| {
                line.iter().all(|p| (p.0 - corner.0).hypot(p.1 - corner.1) <= 0.25 + 1e-12)
            };
            assert!(near((1.0, 0.0)) || near((0.0, 1.0)), "{line:?}");
        }
        let lines = grid.contours(&[1.0, 0.0, 0.0, 1.0], 0.75);
        for line in &lines {
            let near = |corner: (f64, f64)| {
                line.iter().all(|p| (p.0 - corner.0).hypot(p.1 - corner.1) <= 0.25 + 1e-12)
            };
            assert!(near((0.0, 0.0)) || near((1.0, 1.0)), "{line:?}");
        }
    }

    #[test]
    fn every_crossing_is_on_one_line() {
        let grid = grid(40, 30);
        let values = values(&grid, |x, y| (1.7 * x).sin() * (1.3 * y).cos());
        let lines = grid.contours(&values, 0.1);
        let points: usize =
            lines.iter().map(|l| l.len() - usize::from(l.first() == l.last())).sum();
        let above = |i: usize, j: usize| values[j * 40 + i] > 0.1;
        let mut crossed = 0;
        for j in 0..30 {
            for i in 0..40 {
                crossed += usize::from(i < 39 && above(i, j) != above(i + 1, j));
                crossed += usize::from(j < 29 && above(i, j) != above(i, j + 1));
            }
        }
        assert_eq!(points, crossed);
        assert!(lines.len() > 5);
    }
}

//! Counts over one input: mean and intervals.

use super::style::{BLUE, INK, Key, Mark, ORANGE, RED, Ticks, axes_with, band, header, range};
use super::{Drawn, Panel};
use plotters::prelude::*;

/// What there is to show.
#[derive(Clone, Copy)]
pub struct Counts<'a> {
    pub caption: &'a str,
    /// What the numbers on the first axis are.
    pub ticks: Ticks,
    /// Names of input and target.
    pub names: (&'a str, &'a str),
    /// Places, ascending.
    pub x: &'a [f64],
    /// Predictive mean at these places.
    pub mean: &'a [f64],
    /// Ends of the central 50 % intervals of new counts.
    pub half: (&'a [f64], &'a [f64]),
    /// Ends of the central 95 % intervals.
    pub most: (&'a [f64], &'a [f64]),
    /// What these rows are called.
    pub named: &'a str,
    /// Training rows.
    pub train: &'a [(f64, f64)],
    /// Test rows.
    pub test: &'a [(f64, f64)],
    /// Inducing points.
    pub inducing: &'a [f64],
}

/// Draws them. Intervals of counts begin and end half a count further: one count is as wide as one.
pub fn panel(panel: &Panel, of: &Counts<'_>) -> Drawn {
    let edges = |(low, high): (&[f64], &[f64])| -> Vec<(f64, f64, f64)> {
        let ends = low.iter().zip(high).map(|(low, high)| (low - 0.5, high + 0.5));
        of.x.iter().zip(ends).map(|(x, (low, high))| (*x, low, high)).collect()
    };
    let (half, most) = (edges(of.half), edges(of.most));
    let rows = || of.train.iter().chain(of.test);
    let (left, right) = range(of.x.iter().copied().chain(rows().map(|(x, _)| *x)), 0.0);
    let heights = most.iter().map(|(.., high)| *high).chain(of.mean.iter().copied());
    let (_, top) = range(heights.chain(rows().map(|(_, y)| *y)).chain([0.0]), 0.06);
    let bottom = -0.5f64.max(0.06 * top);

    let mut keys = vec![
        Key { text: "mean", mark: Mark::Line(BLUE) },
        Key { text: "50 % of new counts", mark: Mark::Area(0.42) },
        Key { text: "95 % of new counts", mark: Mark::Area(0.14) },
        Key { text: of.named, mark: Mark::Dot(INK) },
    ];
    if !of.test.is_empty() {
        keys.push(Key { text: "test rows", mark: Mark::Ring(ORANGE) });
    }
    if !of.inducing.is_empty() {
        keys.push(Key { text: "inducing points", mark: Mark::Triangle(RED) });
    }
    let rest = header(panel, of.caption, &keys)?;
    let mut chart =
        axes_with(&rest, (left, right), (bottom, top), of.names, (of.ticks, Ticks::Numbers))?;
    band(&mut chart, &most, 0.14)?;
    band(&mut chart, &half, 0.32)?;
    let line = of.x.iter().copied().zip(of.mean.iter().copied());
    chart.draw_series(LineSeries::new(line, BLUE.stroke_width(2)))?;
    chart.draw_series(of.train.iter().map(|at| Circle::new(*at, 2, INK.filled())))?;
    chart.draw_series(of.test.iter().map(|at| Circle::new(*at, 3, ORANGE.stroke_width(2))))?;
    let inside = of.inducing.iter().filter(|z| (left..=right).contains(*z));
    let height = bottom + 0.015 * (top - bottom);
    chart.draw_series(inside.map(|z| TriangleMarker::new((*z, height), 6, RED.filled())))?;
    Ok(())
}

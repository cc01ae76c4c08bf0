//! The fit over its one input.

use super::style::{BLUE, INK, Key, Mark, ORANGE, RED, axes, band, caption, header, range};
use super::{Drawn, Panel, Sampled};
use plotters::prelude::*;
use sparsegp::Result;
use sparsegp::fit::Fitted;
use sparsegp::fit::Of;
use sparsegp::linalg::Mat;
use sparsegp::metrics::standard_normal_quantile;

/// Points of the curves.
const GRID: usize = 400;

/// Draws target `p`.
pub fn panel(
    panel: &Panel,
    fitted: &Fitted,
    p: usize,
    train: &Sampled,
    test: Option<&Sampled>,
) -> Drawn {
    let rows = |s: &Sampled| -> Vec<(f64, f64)> {
        (0..s.x.nrows()).map(|i| (s.x[(i, 0)], s.y[(i, p)])).collect()
    };
    let (train, test) = (rows(train), test.map(rows).unwrap_or_default());
    let inducing: Vec<f64> = match fitted.inducing_points()? {
        Some(z) => (0..z.nrows()).map(|i| z[(i, 0)]).collect(),
        None => Vec::new(),
    };
    let (low, high) = range(train.iter().chain(&test).map(|(x, _)| *x), 0.06);
    let at = |i: usize| low + (high - low) * i as f64 / (GRID - 1) as f64;
    let grid = Mat::from_fn(GRID, 1, |i, _| at(i));
    let width = standard_normal_quantile(0.975);
    let bounds = |of: Of| -> Result<Vec<(f64, f64, f64)>> {
        let (mean, variance) = fitted.predict(grid.as_ref(), of)?;
        let one = |i: usize| {
            let half = width * variance[(i, p)].sqrt();
            (mean[(i, p)] - half, mean[(i, p)], mean[(i, p)] + half)
        };
        Ok((0..GRID).map(one).collect())
    };
    let (observed, latent) = (bounds(Of::Observations)?, bounds(Of::Latent)?);
    let heights = observed.iter().flat_map(|(a, _, b)| [*a, *b]);
    let (bottom, top) = range(heights.chain(train.iter().chain(&test).map(|(_, y)| *y)), 0.06);

    let mut keys = vec![
        Key { text: "mean", mark: Mark::Line(BLUE) },
        Key { text: "95 % for the function", mark: Mark::Area(0.42) },
        Key { text: "95 % of new observations", mark: Mark::Area(0.14) },
        Key { text: "training rows", mark: Mark::Dot(INK) },
    ];
    if !test.is_empty() {
        keys.push(Key { text: "test rows", mark: Mark::Ring(ORANGE) });
    }
    if !inducing.is_empty() {
        keys.push(Key { text: "inducing points", mark: Mark::Triangle(RED) });
    }
    let rest = header(panel, &caption(fitted, p, ""), &keys)?;
    let names = (fitted.input_names[0].as_str(), fitted.target_names[p].as_str());
    let mut chart = axes(&rest, (low, high), (bottom, top), names)?;
    for (of, strength) in [(&observed, 0.14), (&latent, 0.32)] {
        let edges = of.iter().enumerate().map(|(i, (low, _, high))| (at(i), *low, *high));
        band(&mut chart, &edges.collect::<Vec<_>>(), strength)?;
    }
    let line = latent.iter().enumerate().map(|(i, (_, mean, _))| (at(i), *mean));
    chart.draw_series(LineSeries::new(line, BLUE.stroke_width(2)))?;
    chart.draw_series(train.iter().map(|at| Circle::new(*at, 2, INK.filled())))?;
    chart.draw_series(test.iter().map(|at| Circle::new(*at, 3, ORANGE.stroke_width(2))))?;
    let inside = inducing.iter().filter(|z| (low..=high).contains(*z));
    let height = bottom + 0.025 * (top - bottom);
    chart.draw_series(inside.map(|z| TriangleMarker::new((*z, height), 6, RED.filled())))?;
    Ok(())
}

//! How often central intervals hold the targets, against how often they should.

use super::style::{BLUE, INK, Key, Mark, axes, band, header};
use super::{Drawn, Panel, Sampled};
use crate::format::count;
use plotters::prelude::*;
use sparsegp::fit::Fitted;
use sparsegp::metrics::density::{DensityMetrics, Predictions};

/// Levels of the intervals: 5 %, 10 %, …, 95 %.
const LEVELS: usize = 19;

/// Draws target `p` for these rows.
pub fn panel(panel: &Panel, fitted: &Fitted, p: usize, rows: &Sampled, which: &str) -> Drawn {
    let levels: Vec<f64> = (1..=LEVELS).map(|l| l as f64 / (LEVELS + 1) as f64).collect();
    let n = rows.x.nrows();
    let (below, up_to) = fitted.cdf(rows.x.as_ref(), rows.y.as_ref(), &rows.extra)?;
    let mut metrics = DensityMetrics::new(&levels)?;
    metrics.add(&Predictions {
        y: rows.y.col_as_slice(p),
        cdf: Some((below.col_as_slice(p), up_to.col_as_slice(p))),
        ..Predictions::default()
    })?;
    let shares: Vec<f64> = metrics.finish()?.coverage.iter().map(|c| c.share).collect();
    let target = &fitted.target_names[p];
    let caption = format!("{target}: intervals and {} of {which}", count(n, "row"));
    let keys = [
        Key { text: "share of the rows within the interval", mark: Mark::Dot(BLUE) },
        Key { text: "as it should be", mark: Mark::Thin(INK) },
        Key { text: "what chance allows (95 %)", mark: Mark::Area(0.14) },
    ];
    let rest = header(panel, &caption, &keys)?;
    let names = ("probability of the central interval", "share of the rows within it");
    let mut chart = axes(&rest, (0.0, 1.0), (0.0, 1.0), names)?;
    // a binomial share of n rows, by its normal approximation
    let chance: Vec<(f64, f64, f64)> = (0..=50)
        .map(|i| {
            let level = f64::from(i) / 50.0;
            let wide = 1.96 * (level * (1.0 - level) / n.max(1) as f64).sqrt();
            (level, (level - wide).max(0.0), (level + wide).min(1.0))
        })
        .collect();
    band(&mut chart, &chance, 0.14)?;
    chart.draw_series(LineSeries::new([(0.0, 0.0), (1.0, 1.0)], INK.stroke_width(1)))?;
    let points = || levels.iter().copied().zip(shares.iter().copied());
    chart.draw_series(LineSeries::new(points(), BLUE.stroke_width(2)))?;
    chart.draw_series(points().map(|at| Circle::new(at, 3, BLUE.filled())))?;
    Ok(())
}

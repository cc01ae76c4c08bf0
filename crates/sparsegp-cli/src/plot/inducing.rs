//! How much of every row's prior variance the inducing points leave unexplained: a histogram.

use super::style::{BLUE, INK, Key, Mark, axes, header, pale};
use super::{Drawn, Panel};
use crate::format::{count, number};
use plotters::prelude::*;
use sparsegp::fit::quality::Explained;

/// Powers of ten that are drawn, at least.
const LEAST: f64 = 2.0;

/// Draws the shares by their logarithm; what is explained to rounding stands in the first bin.
pub fn panel(panel: &Panel, name: &str, own: &Explained) -> Drawn {
    let keys = [Key { text: "share of the rows, %", mark: Mark::Area(0.5) }];
    let caption = format!(
        "{name}: {} leave {} % of the prior variance",
        count(own.points, "inducing point"),
        number(100.0 * own.trace_residual().max(0.0), 3)
    );
    let rest = header(panel, &caption, &keys)?;
    let logs: Vec<f64> = own.shares.edges[1..].iter().map(|edge| edge.log10()).collect();
    let width = logs[1] - logs[0];
    let total = own.rows.max(1) as f64;
    // (from, to, per cent)
    let bins: Vec<(f64, f64, f64)> = own
        .shares
        .counts
        .iter()
        .zip(&logs)
        .map(|(count, high)| (high - width, *high, 100.0 * *count as f64 / total))
        .collect();
    let first = bins.iter().find(|bin| bin.2 > 0.0).map_or(-LEAST, |bin| bin.0);
    let left = first.min(-LEAST);
    let most = bins.iter().map(|bin| bin.2).fold(0.0, f64::max).max(1e-9);
    let names =
        ("log10 of the share of a row's prior variance that is left unexplained", "rows, %");
    let mut chart = axes(&rest, (left, 0.0), (0.0, 1.06 * most), names)?;
    chart.draw_series(bins.iter().filter(|bin| bin.2 > 0.0).flat_map(|(from, to, share)| {
        let corners = [(*from, 0.0), (*to, *share)];
        [
            Rectangle::new(corners, pale(BLUE, 0.5).filled()),
            Rectangle::new(corners, BLUE.stroke_width(1)),
        ]
    }))?;
    // 1 % and 10 %
    for edge in [-2.0, -1.0] {
        chart.draw_series(LineSeries::new([(edge, 0.0), (edge, 1.06 * most)], INK.mix(0.4)))?;
    }
    Ok(())
}

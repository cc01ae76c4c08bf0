//! Predictions against observations.

use super::style::{BLUE, INK, Key, Mark, axes, caption, header, range};
use super::{Drawn, Panel, Sampled};
use plotters::prelude::*;
use sparsegp::fit::Fitted;
use sparsegp::fit::Of;
use sparsegp::metrics::standard_normal_quantile;

/// Draws target `p` for these rows.
pub fn panel(panel: &Panel, fitted: &Fitted, p: usize, rows: &Sampled, which: &str) -> Drawn {
    let (mean, variance) = fitted.predict(rows.x.as_ref(), Of::Observations)?;
    let width = standard_normal_quantile(0.975);
    let points: Vec<(f64, f64, f64)> = (0..rows.x.nrows())
        .map(|i| (rows.y[(i, p)], mean[(i, p)], width * variance[(i, p)].sqrt()))
        .collect();
    let (low, high) = range(points.iter().flat_map(|(y, mean, _)| [*y, *mean]), 0.05);
    let keys = [
        Key { text: "mean of the prediction", mark: Mark::Dot(BLUE) },
        Key { text: "95 % interval", mark: Mark::Bar },
        Key { text: "predicted = observed", mark: Mark::Line(INK) },
    ];
    let rest = header(panel, &caption(fitted, p, &format!(", {which}")), &keys)?;
    let mut chart = axes(&rest, (low, high), (low, high), ("observed", "predicted"))?;
    let bar = |(y, mean, half): &(f64, f64, f64)| {
        let ends = [(*y, (mean - half).max(low)), (*y, (mean + half).min(high))];
        PathElement::new(ends, BLUE.mix(0.25))
    };
    chart.draw_series(points.iter().map(bar))?;
    let dot = |(y, mean, _): &(f64, f64, f64)| Circle::new((*y, *mean), 2, BLUE.filled());
    chart.draw_series(points.iter().map(dot))?;
    chart.draw_series(LineSeries::new([(low, low), (high, high)], INK.stroke_width(1)))?;
    Ok(())
}

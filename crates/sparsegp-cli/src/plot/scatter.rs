//! Predictions against observations.

use super::style::{BLUE, INK, Key, Mark, axes, caption, header, range};
use super::{Drawn, Panel, Sampled};
use plotters::prelude::*;
use sparsegp::fit::Fitted;
use sparsegp::fit::Of;

/// Draws target `p` for these rows.
pub fn panel(panel: &Panel, fitted: &Fitted, p: usize, rows: &Sampled, which: &str) -> Drawn {
    let (x, extra) = (rows.x.as_ref(), &rows.extra[..]);
    let levels = [0.025, 0.975];
    let known = fitted.predict_with_quantiles(x, extra, &levels, Of::Observations)?;
    let (mean, ends) = (known.mean, known.quantiles);
    let points: Vec<[f64; 4]> = (0..rows.x.nrows())
        .map(|i| [rows.y[(i, p)], mean[(i, p)], ends[0][(i, p)], ends[1][(i, p)]])
        .collect();
    let (low, high) = range(points.iter().flat_map(|[y, mean, ..]| [*y, *mean]), 0.05);
    let keys = [
        Key { text: "mean of the prediction", mark: Mark::Dot(BLUE) },
        Key { text: "95 % interval", mark: Mark::Bar },
        Key { text: "predicted = observed", mark: Mark::Line(INK) },
    ];
    let rest = header(panel, &caption(fitted, p, &format!(", {which}")), &keys)?;
    let mut chart = axes(&rest, (low, high), (low, high), ("observed", "predicted"))?;
    let bar = |[y, _, from, to]: &[f64; 4]| {
        let ends = [(*y, from.clamp(low, high)), (*y, to.clamp(low, high))];
        PathElement::new(ends, BLUE.mix(0.25))
    };
    chart.draw_series(points.iter().map(bar))?;
    let dot = |[y, mean, ..]: &[f64; 4]| Circle::new((*y, *mean), 2, BLUE.filled());
    chart.draw_series(points.iter().map(dot))?;
    chart.draw_series(LineSeries::new([(low, low), (high, high)], INK.stroke_width(1)))?;
    Ok(())
}

//! How the objective rose in training.

use super::style::{BLUE, Key, Mark, ORANGE, axes, header, range};
use super::{Drawn, Panel};
use crate::format::{count, number};
use plotters::prelude::*;
use sparsegp::fit::Fitted;

/// Returns whether there is a history.
pub fn has_history(fitted: &Fitted) -> bool {
    fitted.report.as_ref().is_some_and(|report| report.trace.len() > 1)
}

/// Draws objective and, where rows were kept aside, their mean log density, both in the data's units.
pub fn panel(panel: &Panel, fitted: &Fitted) -> Drawn {
    let trace = fitted.report.as_ref().map_or(&[][..], |report| &report.trace);
    let jacobian = fitted.scaler.log_jacobian();
    let rows = fitted.rows.max(1) as f64;
    // per row, so that both curves have one axis
    let objective: Vec<(f64, f64)> = trace
        .iter()
        .map(|point| (point.iteration as f64, (point.objective + fitted.log_jacobian()) / rows))
        .filter(|point| point.1.is_finite())
        .collect();
    let held_out: Vec<(f64, f64)> = trace
        .iter()
        .filter_map(|point| Some((point.iteration as f64, point.held_out? + jacobian)))
        .collect();
    let mut keys = vec![Key { text: "objective per row", mark: Mark::Line(BLUE) }];
    if !held_out.is_empty() {
        keys.push(Key { text: "mean log density of rows kept aside", mark: Mark::Line(ORANGE) });
    }
    let last = objective.last().map_or(f64::NAN, |point| point.1 * rows);
    let x = range(objective.iter().map(|point| point.0), 0.0);
    // the first steps come from far below: what matters is where most of the points are
    let mut heights: Vec<f64> = objective.iter().chain(&held_out).map(|point| point.1).collect();
    heights.sort_by(f64::total_cmp);
    let from = heights.len() / 10;
    let y = range(heights[from.min(heights.len().saturating_sub(1))..].iter().copied(), 0.06);
    // iterations from far below are left out rather than drawn along the edge
    let lower = objective.iter().filter(|point| point.1 < y.0).count();
    let left_out = match lower {
        0 => String::new(),
        _ => format!("; {} from below not shown", count(lower, "iteration")),
    };
    let caption = format!("training: the objective ended at {} nats{left_out}", number(last, 6));
    let rest = header(panel, &caption, &keys)?;
    let mut chart = axes(&rest, x, y, ("iteration", "nats per row"))?;
    let within = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        points.iter().copied().filter(|(_, v)| (y.0..=y.1).contains(v)).collect()
    };
    chart.draw_series(LineSeries::new(within(&objective), BLUE.stroke_width(2)))?;
    chart.draw_series(LineSeries::new(within(&held_out), ORANGE.stroke_width(2)))?;
    Ok(())
}

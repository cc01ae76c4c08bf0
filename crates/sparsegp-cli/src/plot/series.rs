//! A series along time: what was observed, and forecasts with their 95 % intervals.

use super::style::{BLUE, GREY, INK, Key, Mark, ORANGE, Ticks, axes_with, band, header, range};
use super::{Drawn, POINTS, Panel};
use plotters::prelude::*;

/// Time, mean, and both ends of the interval at places along a stretch of time, in order.
#[derive(Clone, Debug, Default)]
pub struct Stretch(pub Vec<[f64; 4]>);

/// A series with forecasts.
pub struct Series {
    /// Above the picture.
    pub caption: String,
    /// Of time and target.
    pub names: (String, String),
    /// Whether times are days since 1970.
    pub dates: bool,
    /// Times and targets of rows, in any order; those that are not finite are left out.
    pub observed: Vec<(f64, f64)>,
    /// What the model says where it has learnt.
    pub past: Option<Stretch>,
    /// Forecasts.
    pub ahead: Vec<Stretch>,
    /// Where they begin.
    pub begins: Vec<f64>,
}

/// Returns evenly spaced ones of many, at most twice [`POINTS`] of them.
fn some<T: Copy>(all: &[T]) -> Vec<T> {
    all.iter().step_by((all.len() / POINTS).max(1)).copied().collect()
}

/// Draws a series.
pub fn panel(panel: &Panel, of: &Series) -> Drawn {
    let finite = of.observed.iter().copied().filter(|(t, y)| t.is_finite() && y.is_finite());
    let mut observed: Vec<(f64, f64)> = finite.collect();
    observed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let observed = some(&observed);
    let past: Vec<[f64; 4]> = of.past.as_ref().map(|own| some(&own.0)).unwrap_or_default();
    let ahead: Vec<Vec<[f64; 4]>> = of.ahead.iter().map(|own| some(&own.0)).collect();
    let all = || past.iter().chain(ahead.iter().flatten());
    let times = observed.iter().map(|at| at.0).chain(all().map(|own| own[0]));
    let (low, high) = range(times, 0.02);
    let heights = observed.iter().map(|at| at.1).chain(all().flat_map(|own| [own[2], own[3]]));
    let (bottom, top) = range(heights, 0.06);

    let begin = match of.begins.len() {
        1 => "end of the rows",
        _ => "cut-offs",
    };
    let mut keys = vec![Key { text: "rows", mark: Mark::Dot(INK) }];
    if !past.is_empty() {
        keys.push(Key { text: "mean of what is known", mark: Mark::Line(BLUE) });
    }
    keys.push(Key { text: "forecast", mark: Mark::Line(ORANGE) });
    keys.push(Key { text: "95 % of new observations", mark: Mark::Area(0.2) });
    keys.push(Key { text: begin, mark: Mark::Thin(GREY) });
    let rest = header(panel, &of.caption, &keys)?;
    let ticks = if of.dates { Ticks::Dates } else { Ticks::Numbers };
    let names = (of.names.0.as_str(), of.names.1.as_str());
    let mut chart = axes_with(&rest, (low, high), (bottom, top), names, (ticks, Ticks::Numbers))?;
    for own in std::iter::once(&past).chain(&ahead).filter(|own| !own.is_empty()) {
        let edges: Vec<_> = own.iter().map(|[t, _, low, high]| (*t, *low, *high)).collect();
        band(&mut chart, &edges, 0.2)?;
    }
    for begin in &of.begins {
        let line = [(*begin, bottom), (*begin, top)];
        chart.draw_series(LineSeries::new(line, GREY.stroke_width(1)))?;
    }
    chart.draw_series(observed.iter().map(|at| Circle::new(*at, 2, INK.filled())))?;
    for (own, colour) in std::iter::once((&past, BLUE)).chain(ahead.iter().map(|own| (own, ORANGE)))
    {
        let line = own.iter().map(|[t, mean, ..]| (*t, *mean));
        chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
    }
    Ok(())
}

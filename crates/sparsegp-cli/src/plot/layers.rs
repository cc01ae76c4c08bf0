//! What the hidden layers of a deep model do to one input.

use super::style::{Ticks, axes_with, class_colour, header, range};
use super::{Drawn, Panel, Sampled, relevance};
use plotters::prelude::*;
use sparsegp::fit::Fitted;
use sparsegp::linalg::Mat;

/// Points of the curves.
const GRID: usize = 200;
/// Most functions of a layer that are drawn.
const MOST: usize = 7;

/// Returns the input that the first layer varies most along.
fn along(fitted: &Fitted) -> usize {
    let names = fitted.measured_names();
    let first = relevance::inputs(fitted).into_iter().next();
    first.and_then(|(name, _)| names.iter().position(|own| *own == name)).unwrap_or(0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Draws the functions of layer `l` with a band of two deviations along the input that matters most, others at their medians.
pub fn panel(panel: &Panel, fitted: &Fitted, l: usize, train: &Sampled) -> Drawn {
    let q = along(fitted);
    let column = |q: usize| train.x.col_as_slice(q).to_vec();
    let (low, high) = range(column(q).into_iter(), 0.06);
    let at = |i: usize| low + (high - low) * i as f64 / (GRID - 1) as f64;
    let middle: Vec<f64> = (0..train.x.ncols()).map(|q| median(column(q))).collect();
    let x = Mat::from_fn(GRID, middle.len(), |i, j| if j == q { at(i) } else { middle[j] });
    let layers = fitted.hidden_layers(x.as_ref())?;
    let Some((mean, variance)) = layers.get(l) else { return Err("there is no such layer".into()) };
    let shown = mean.ncols().min(MOST);
    let deviation = |i: usize, p: usize| variance[(i, p)].max(0.0).sqrt();
    let edges = (0..shown).flat_map(|p| {
        (0..GRID).flat_map(move |i| {
            [mean[(i, p)] - 2.0 * deviation(i, p), mean[(i, p)] + 2.0 * deviation(i, p)]
        })
    });
    let (bottom, top) = range(edges, 0.06);
    let more = mean.ncols() - shown;
    let more = if more > 0 { format!(", {more} more left out") } else { String::new() };
    let name = &fitted.input_names[q];
    let others = if middle.len() > 1 { ", other inputs at their medians" } else { "" };
    let caption = format!(
        "hidden layer {} of {}: its functions ± 2 sd along {name}{others}{more}",
        l + 1,
        layers.len()
    );
    let rest = header(panel, &caption, &[])?;
    let ticks = (Ticks::of(fitted, q), Ticks::Numbers);
    let names = (name.as_str(), "model's scale");
    let mut chart = axes_with(&rest, (low, high), (bottom, top), names, ticks)?;
    for p in 0..shown {
        let colour = class_colour(p);
        let edge = |i: usize, side: f64| (at(i), mean[(i, p)] + side * deviation(i, p));
        let outline = (0..GRID).map(|i| edge(i, -2.0)).chain((0..GRID).rev().map(|i| edge(i, 2.0)));
        chart.draw_series([Polygon::new(outline.collect::<Vec<_>>(), colour.mix(0.15))])?;
        let line = (0..GRID).map(|i| (at(i), mean[(i, p)]));
        chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
    }
    Ok(())
}

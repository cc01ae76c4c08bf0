//! Reliability diagram: how often a class is right against how certain it was.

use super::style::{BLUE, INK, Key, Mark, ORANGE, axes, header, pale};
use super::{Drawn, Panel};
use crate::format::number;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use sparsegp::metrics::classes::ReliabilityBin;

/// Draws the bins that have rows: a bar as high as the accuracy with the number of rows at its foot,
/// the darker the more there are, and the gap between accuracy and mean confidence.
pub fn panel(panel: &Panel, caption: &str, bins: &[ReliabilityBin], ece: f64) -> Drawn {
    let keys = [
        Key { text: "accuracy, with the number of rows (darker: more)", mark: Mark::Area(0.5) },
        Key { text: "gap to the mean confidence", mark: Mark::Line(ORANGE) },
        Key { text: "as certain as right", mark: Mark::Thin(INK) },
    ];
    let caption = format!("{caption}: calibration error {}", number(ece, 3));
    let rest = header(panel, &caption, &keys)?;
    let filled = || bins.iter().filter_map(|bin| Some((bin, bin.confidence?, bin.accuracy?)));
    // Two classes never have a confidence below a half.
    let first = filled().map(|(bin, ..)| bin.low).fold(0.5, f64::min);
    let left = bins.iter().map(|bin| bin.low).filter(|low| *low <= first).fold(0.0, f64::max);
    let names = ("confidence in the predicted class", "accuracy");
    let mut chart = axes(&rest, (left, 1.0), (0.0, 1.06), names)?;
    let most = filled().map(|(bin, ..)| bin.rows).max().unwrap_or(1).max(1) as f64;
    chart.draw_series(filled().flat_map(|(bin, _, accuracy)| {
        let colour = pale(BLUE, 0.12 + 0.6 * (bin.rows as f64 / most).sqrt());
        let corners = [(bin.low, 0.0), (bin.high, accuracy)];
        [Rectangle::new(corners, colour.filled()), Rectangle::new(corners, BLUE.stroke_width(1))]
    }))?;
    chart.draw_series(LineSeries::new([(left, left), (1.0, 1.0)], INK.stroke_width(1)))?;
    chart.draw_series(filled().map(|(_, confidence, accuracy)| {
        let ends = [(confidence, confidence), (confidence, accuracy)];
        PathElement::new(ends, ORANGE.stroke_width(2))
    }))?;
    chart.draw_series(filled().map(|(_, confidence, accuracy)| {
        Circle::new((confidence, accuracy), 3, ORANGE.filled())
    }))?;
    let style = ("sans-serif", 13).into_font().color(&INK);
    let style = style.pos(Pos::new(HPos::Center, VPos::Bottom));
    let width = (chart.plotting_area().dim_in_pixel().0 as f64) / (1.0 - left);
    chart.draw_series(filled().filter_map(|(bin, ..)| {
        // At the foot, clear of the gap; left out where it would touch its neighbours.
        let text = bin.rows.to_string();
        let fits = 7.0 * text.chars().count() as f64 <= width * (bin.high - bin.low);
        let at = (0.5 * (bin.low + bin.high), 0.0);
        fits.then(|| EmptyElement::at(at) + Text::new(text, (0, -5), style.clone()))
    }))?;
    Ok(())
}

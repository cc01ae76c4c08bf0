//! Effects of inputs on predictions: curves with their bands, or marks for categories.

use super::style::{BLUE, INK, Key, Mark, Ticks, axes_with, band, header, range};
use super::{Drawn, Panel};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use sparsegp::explain::{Curve, Explainer, Kind};

/// One panel: the effect of a column on a response.
pub struct Effect<'a> {
    pub curve: &'a Curve,
    pub response: usize,
}

impl Effect<'_> {
    /// Returns how far the mean moves.
    pub fn span(&self) -> f64 {
        let own = self.curve.mean.col_as_slice(self.response);
        let (low, high) = range(own.iter().copied(), 0.0);
        high - low
    }

    fn ends(&self) -> impl Iterator<Item = f64> {
        let of = |all: &sparsegp::linalg::Mat<f64>| all.col_as_slice(self.response).to_vec();
        of(&self.curve.lower).into_iter().chain(of(&self.curve.upper))
    }
}

/// Draws one; all panels of a response have the same heights, those of changes and those of averages.
pub fn panel(
    panel: &Panel,
    explainer: &Explainer<'_>,
    effect: &Effect<'_>,
    all: &[Effect<'_>],
) -> Drawn {
    let Effect { curve, response } = effect;
    let column = &explainer.columns()[curve.column];
    let names = explainer.responses();
    let alike = |own: &&Effect<'_>| own.response == *response && own.curve.centred == curve.centred;
    let same = all.iter().filter(alike);
    let heights = range(same.flat_map(Effect::ends), 0.06);
    let levels = column.kind == Kind::Levels;
    let what = if curve.centred { "change" } else { "average" };
    let keys = [
        Key { text: what, mark: if levels { Mark::Dot(BLUE) } else { Mark::Line(BLUE) } },
        Key { text: "95 %", mark: Mark::Area(0.32) },
    ];
    let rest = header(panel, &column.name, &keys)?;
    let (ticks, across) = match column.kind {
        Kind::Levels => (Ticks::None, (-0.5, curve.at.len() as f64 - 0.5)),
        Kind::Dates => (Ticks::Dates, range(curve.at.iter().copied(), 0.0)),
        Kind::Numbers => (Ticks::Numbers, range(curve.at.iter().copied(), 0.0)),
    };
    let axes = (column.name.as_str(), names[*response].as_str());
    let mut chart = axes_with(&rest, across, heights, axes, (ticks, Ticks::Numbers))?;
    let at = |k: usize| (curve.at[k], curve.mean[(k, *response)]);
    let edges = |k: usize| (curve.lower[(k, *response)], curve.upper[(k, *response)]);
    if !levels {
        let all: Vec<(f64, f64, f64)> =
            (0..curve.at.len()).map(|k| (curve.at[k], edges(k).0, edges(k).1)).collect();
        band(&mut chart, &all, 0.32)?;
        chart.draw_series(LineSeries::new((0..curve.at.len()).map(at), BLUE.stroke_width(2)))?;
        return Ok(());
    }
    chart.draw_series((0..curve.at.len()).map(|k| {
        let (low, high) = edges(k);
        Rectangle::new([(k as f64 - 0.2, low), (k as f64 + 0.2, high)], BLUE.mix(0.32).filled())
    }))?;
    chart.draw_series((0..curve.at.len()).map(|k| Circle::new(at(k), 4, BLUE.filled())))?;
    let style =
        ("sans-serif", 14).into_font().color(&INK).pos(Pos::new(HPos::Center, VPos::Bottom));
    chart.draw_series((0..curve.at.len()).map(|k| {
        EmptyElement::at((k as f64, edges(k).1))
            + Text::new(curve.labels[k].clone(), (0, -4), style.clone())
    }))?;
    Ok(())
}

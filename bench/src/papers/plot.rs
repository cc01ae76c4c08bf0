//! Draws figures: panels side by side with axes, legends and series.

use crate::page::Drawn;
use plotters::prelude::*;
use sparsegp::linalg::Mat;
use std::path::Path;

/// Colours that people without red-green sight tell apart (Okabe & Ito).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(90, 90, 90),
    RGBColor(0, 0, 0),
];

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A line through the points.
    Line,
    /// A thin pale line.
    Thin,
    /// Points.
    Dots,
    /// Crosses.
    Crosses,
    /// The area between pairs of points: first the upper edge, then the lower one in the same order.
    Band,
    /// Bars from zero, of the width between the first two points.
    Bars,
    /// Straight lines between the first and the second point, the third and the fourth, and so on.
    Segments,
}

/// Points with a name and a look.
#[derive(Clone, Debug)]
pub struct Series {
    /// Stands in the legend, unless it is empty.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Its look.
    pub kind: Kind,
    /// Its colour, by number.
    pub colour: usize,
}

impl Series {
    /// Returns a series.
    pub fn new(
        name: impl Into<String>,
        kind: Kind,
        colour: usize,
        points: Vec<(f64, f64)>,
    ) -> Self {
        Self { name: name.into(), points, kind, colour }
    }
}

/// An axis: what is on it, whether its scale is logarithmic, and its ends if the points do not say.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// Its label.
    pub label: String,
    /// Whether powers of ten are equally far apart.
    pub log: bool,
    /// From where to where.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// Returns an axis that its points range.
    pub fn new(label: &str) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Returns the axis with a logarithmic scale.
    pub fn log(self) -> Self {
        Self { log: true, ..self }
    }

    /// Returns the axis from one value to another.
    pub fn from_to(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }

    fn place(&self, value: f64) -> f64 {
        if self.log { value.max(1e-300).log10() } else { value }
    }

    fn shown(&self, place: &f64) -> String {
        match self.log {
            true if !(-3.0..4.0).contains(place) => format!("{:.0e}", 10_f64.powf(*place)),
            true => format!("{}", (10_f64.powf(*place) * 1e4).round() / 1e4),
            false if place.abs() >= 1e5 => format!("{place:.1e}"),
            false => format!("{}", (place * 1e4).round() / 1e4),
        }
    }

    fn ends(&self, values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
        if let Some((low, high)) = self.range {
            return self.place(low)..self.place(high);
        }
        let places = values.map(|v| self.place(v)).filter(|v| v.is_finite());
        let (low, high) =
            places.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return 0.0..1.0;
        }
        let room = 0.04 * (high - low).max(1e-9 * high.abs().max(1e-3));
        low - room..high + room
    }
}

/// One chart of a figure.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Stands above it.
    pub title: String,
    /// The axis across.
    pub x: Axis,
    /// The axis up.
    pub y: Axis,
    /// What is drawn, in order.
    pub series: Vec<Series>,
}

/// Draws panels in rows of `columns`, as SVG.
///
/// # Errors
/// A picture that cannot be written.
pub fn figure(path: &Path, columns: usize, panels: &[Panel]) -> Drawn {
    let columns = columns.clamp(1, panels.len().max(1));
    let rows = panels.len().div_ceil(columns).max(1);
    let size = (340 * columns as u32, 290 * rows as u32);
    let root = SVGBackend::new(path, size).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, panel) in root.split_evenly((rows, columns)).iter().zip(panels) {
        draw(area, panel)?;
    }
    root.present()?;
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw(area: &Area<'_>, panel: &Panel) -> Drawn {
    let all = || panel.series.iter().flat_map(|series| series.points.iter());
    let across = panel.x.ends(all().map(|p| p.0));
    let up = panel.y.ends(all().map(|p| p.1));
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(54)
        .build_cartesian_2d(across.clone(), up.clone())?;
    let (of_x, of_y) = (|v: &f64| panel.x.shown(v), |v: &f64| panel.y.shown(v));
    let mut mesh = chart.configure_mesh();
    mesh.disable_mesh().x_desc(&panel.x.label).y_desc(&panel.y.label).x_labels(6).y_labels(6);
    mesh.x_label_formatter(&of_x).y_label_formatter(&of_y).draw()?;
    let inside = |v: f64, range: &std::ops::Range<f64>| v.clamp(range.start, range.end);
    for series in &panel.series {
        let colour = COLOURS[series.colour % COLOURS.len()];
        let place =
            |p: &(f64, f64)| (inside(panel.x.place(p.0), &across), inside(panel.y.place(p.1), &up));
        let finite = |p: &&(f64, f64)| p.0.is_finite() && p.1.is_finite();
        let points: Vec<(f64, f64)> = series.points.iter().filter(finite).map(place).collect();
        let line = |width| colour.stroke_width(width);
        let drawn = match series.kind {
            Kind::Line => chart.draw_series(LineSeries::new(points, line(2)))?,
            Kind::Thin => chart.draw_series(LineSeries::new(points, colour.mix(0.35)))?,
            Kind::Dots => chart
                .draw_series(points.iter().map(|p| Circle::new(*p, 3, colour.mix(0.7).filled())))?,
            Kind::Crosses => {
                chart.draw_series(points.iter().map(|p| Cross::new(*p, 4, line(2))))?
            }
            Kind::Band => {
                let (upper, lower) = points.split_at(points.len() / 2);
                let edge: Vec<_> = upper.iter().chain(lower.iter().rev()).copied().collect();
                chart.draw_series([Polygon::new(edge, colour.mix(0.18))])?
            }
            Kind::Segments => chart.draw_series(
                points.chunks(2).map(|pair| PathElement::new(pair.to_vec(), colour.mix(0.6))),
            )?,
            Kind::Bars => {
                let width = points.get(1).map_or(1.0, |p| p.0 - points[0].0);
                chart.draw_series(points.iter().map(|p| {
                    let corners = [(p.0, inside(0.0, &up)), (p.0 + width, p.1)];
                    Rectangle::new(corners, colour.mix(0.5).filled())
                }))?
            }
        };
        if !series.name.is_empty() {
            drawn.label(&series.name).legend(move |(x, y)| {
                PathElement::new(vec![(x, y), (x + 14, y)], colour.stroke_width(3))
            });
        }
    }
    if panel.series.iter().any(|series| !series.name.is_empty()) {
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.8))
            .label_font(("sans-serif", 11))
            .position(least_covered(panel, &across, &up))
            .draw()?;
    }
    Ok(())
}

/// Returns the corner where a legend covers the fewest points of lines and marks.
fn least_covered(
    panel: &Panel,
    across: &std::ops::Range<f64>,
    up: &std::ops::Range<f64>,
) -> SeriesLabelPosition {
    let share =
        |v: f64, range: &std::ops::Range<f64>| (v - range.start) / (range.end - range.start);
    let mut covered = [0; 4];
    for series in panel.series.iter().filter(|s| s.kind != Kind::Segments && s.kind != Kind::Band) {
        let places = series.points.iter().map(|p| {
            (share(panel.x.place(p.0), across), share(panel.y.place(p.1), up).clamp(0.0, 1.0))
        });
        let places: Vec<(f64, f64)> = places.collect();
        // a line also covers what is between its points
        let lines = matches!(series.kind, Kind::Line | Kind::Thin);
        for pair in places.windows(2).filter(|_| lines) {
            for step in 0..10 {
                let between = |a: f64, b: f64| a + (b - a) * f64::from(step) / 10.0;
                count(&mut covered, (between(pair[0].0, pair[1].0), between(pair[0].1, pair[1].1)));
            }
        }
        places.iter().filter(|_| !lines).for_each(|place| count(&mut covered, *place));
    }
    let corners = [
        SeriesLabelPosition::UpperRight,
        SeriesLabelPosition::LowerRight,
        SeriesLabelPosition::UpperLeft,
        SeriesLabelPosition::LowerLeft,
    ];
    let least = (0..4).min_by_key(|k| covered[*k]).unwrap_or(0);
    corners.into_iter().nth(least).unwrap_or(SeriesLabelPosition::UpperRight)
}

/// Counts a place in the corner that it is in, if any: half as wide, and four tenths as high as the chart.
fn count(covered: &mut [usize; 4], (x, y): (f64, f64)) {
    let (right, left) = ((0.5..=1.0).contains(&x), (0.0..0.5).contains(&x));
    let (top, bottom) = (y > 0.6, y < 0.4);
    let hits = [right && top, right && bottom, left && top, left && bottom];
    covered.iter_mut().zip(hits).for_each(|(all, hit)| *all += usize::from(hit));
}

/// Returns the level lines of values on a grid, as [`Kind::Segments`] has them: `values[(i, j)]` is at `x[i]`, `y[j]`.
pub fn contours(x: &[f64], y: &[f64], values: &Mat<f64>, levels: &[f64]) -> Vec<(f64, f64)> {
    let mut segments = Vec::new();
    for (i, j) in (1..x.len()).flat_map(|i| (1..y.len()).map(move |j| (i, j))) {
        let corners = [(i - 1, j - 1), (i, j - 1), (i, j), (i - 1, j)];
        for level in levels {
            // where the level crosses the sides of the cell, in their order: two or four points
            let sides = (0..4).map(|k| (corners[k], corners[(k + 1) % 4]));
            let crossings: Vec<(f64, f64)> = sides
                .filter_map(|(a, b)| {
                    let (low, high) = (values[a] - level, values[b] - level);
                    let share = low / (low - high);
                    let between = |p: f64, q: f64| p + share * (q - p);
                    let place = (between(x[a.0], x[b.0]), between(y[a.1], y[b.1]));
                    ((low < 0.0) != (high < 0.0)).then_some(place)
                })
                .collect();
            segments.extend(crossings.chunks_exact(2).flatten().copied());
        }
    }
    segments
}

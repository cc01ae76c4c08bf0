//! Tables and lines.

use plotters::prelude::*;

/// Colours that people without red-green sight tell apart (Okabe & Ito).
pub const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];

pub use sparsegp_bench::page::{Area, Drawn, head, normal, number, option, row};
pub use sparsegp_bench::streams::*;

/// A line with a name.
pub struct Line<'a> {
    pub name: &'a str,
    pub points: Vec<(f64, f64)>,
}

/// Draws lines with names and marks; `logarithmic` says which axes are.
pub fn lines(
    area: &Area<'_>,
    (title, x, y): (&str, &str, &str),
    all: &[Line<'_>],
    logarithmic: [bool; 2],
) -> Drawn {
    let change = |v: f64, log: bool| if log { v.log10() } else { v };
    let map = |p: &(f64, f64)| (change(p.0, logarithmic[0]), change(p.1, logarithmic[1]));
    let points: Vec<(f64, f64)> = all.iter().flat_map(|l| l.points.iter().map(map)).collect();
    let range = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let low = points.iter().map(of).fold(f64::INFINITY, f64::min);
        let high = points.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
        let margin = 0.05 * (high - low).max(1e-9);
        low - margin..high + margin
    };
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 15))
        .margin(10)
        .x_label_area_size(38)
        .y_label_area_size(56)
        .build_cartesian_2d(range(&|p| p.0), range(&|p| p.1))?;
    let plain = |v: &f64, log: bool| match log {
        true => {
            format!("{:.3}", 10_f64.powf(*v)).trim_end_matches('0').trim_end_matches('.').into()
        }
        false => format!("{}", (v * 1e4).round() / 1e4),
    };
    let (of_x, of_y) = (|v: &f64| plain(v, logarithmic[0]), |v: &f64| plain(v, logarithmic[1]));
    let mut mesh = chart.configure_mesh();
    mesh.disable_mesh().x_desc(x).y_desc(y).x_labels(6).y_labels(6);
    mesh.x_label_formatter(&of_x).y_label_formatter(&of_y).draw()?;
    for (line, colour) in all.iter().zip(COLOURS.iter().cycle()) {
        let own: Vec<(f64, f64)> = line.points.iter().map(map).collect();
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(own.iter().copied(), style))?
            .label(line.name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], style));
        chart.draw_series(own.iter().map(|p| Circle::new(*p, 2, colour.filled())))?;
    }
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .label_font(("sans-serif", 11))
        .draw()?;
    Ok(())
}

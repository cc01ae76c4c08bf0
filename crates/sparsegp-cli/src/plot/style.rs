//! Colours, ranges, labels, legend: what the pictures have in common.

use super::Panel;
use crate::format::{count, number};
use crate::report::kernel_name;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use sparsegp::fit::Fitted;

pub const BLUE: RGBColor = RGBColor(31, 98, 173);
pub const INK: RGBColor = RGBColor(45, 45, 50);
pub const ORANGE: RGBColor = RGBColor(222, 106, 16);
pub const RED: RGBColor = RGBColor(190, 30, 60);
pub const GREY: RGBColor = RGBColor(120, 120, 125);

/// The range of finite values with a margin, never empty.
pub fn range(values: impl Iterator<Item = f64>, margin: f64) -> (f64, f64) {
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|v| v.is_finite()) {
        (least, most) = (least.min(value), most.max(value));
    }
    if least > most {
        return (0.0, 1.0);
    }
    let size = least.abs().max(most.abs());
    // Labels on an axis need more than the last few bits.
    let span = (most - least).max(if size > 0.0 { 1e-9 * size } else { 1.0 });
    let middle = 0.5 * (least + most);
    let half = span * (0.5 + margin);
    (middle - half, middle + half)
}

/// A label on an axis.
pub fn label(value: &f64) -> String {
    let text = number(if value.abs() < 1e-300 { 0.0 } else { *value }, 4);
    match text.split_once('e') {
        None if text.contains('.') => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        _ => text,
    }
}

pub fn caption(fitted: &Fitted, p: usize, what: &str) -> String {
    let kernel = kernel_name(&fitted.model.kernel().to_json());
    let points = match fitted.model.inducing_points() {
        Ok(z) => format!(", {}", count(z.nrows(), "inducing point")),
        Err(_) => String::new(),
    };
    format!(
        "{}{what}: {}, {kernel}, {}{points}",
        fitted.target_names[p],
        fitted.model.method.name(),
        count(fitted.rows, "row")
    )
}

/// An entry of the legend.
pub struct Key {
    pub text: &'static str,
    pub mark: Mark,
}

/// How a thing is drawn.
pub enum Mark {
    Area(f64),
    Line(RGBColor),
    Bar,
    Dot(RGBColor),
    Ring(RGBColor),
    Triangle(RGBColor),
}

/// Pixels of the caption and the legend.
const HEADER: u32 = 74;

/// Draws caption and legend at the top of a panel, and gives what is left of it.
pub fn header<'a>(
    panel: &Panel<'a>,
    caption: &str,
    keys: &[Key],
) -> std::result::Result<Panel<'a>, Box<dyn std::error::Error>> {
    let (top, rest) = panel.split_vertically(HEADER);
    let centred = ("sans-serif", 20).into_font().color(&INK);
    let centred = centred.pos(Pos::new(HPos::Center, VPos::Center));
    let (width, _) = top.dim_in_pixel();
    top.draw(&Text::new(caption.to_owned(), (width as i32 / 2, 26), centred))?;
    let style = ("sans-serif", 14).into_font().color(&INK);
    let style = style.pos(Pos::new(HPos::Left, VPos::Center));
    let (mut x, y) = (84_i32, 56_i32);
    for key in keys {
        match key.mark {
            Mark::Area(strength) => top.draw(&Rectangle::new(
                [(x, y - 6), (x + 20, y + 6)],
                BLUE.mix(strength).filled(),
            ))?,
            Mark::Line(colour) => {
                let ends = [(x, y), (x + 20, y)];
                top.draw(&PathElement::new(ends, colour.stroke_width(2)))?;
            }
            Mark::Bar => {
                let ends = [(x + 10, y - 8), (x + 10, y + 8)];
                top.draw(&PathElement::new(ends, BLUE.mix(0.4)))?;
            }
            Mark::Dot(colour) => top.draw(&Circle::new((x + 10, y), 3, colour.filled()))?,
            Mark::Ring(colour) => {
                top.draw(&Circle::new((x + 10, y), 4, colour.stroke_width(2)))?;
            }
            Mark::Triangle(colour) => {
                top.draw(&TriangleMarker::new((x + 10, y), 6, colour.filled()))?;
            }
        }
        top.draw(&Text::new(key.text, (x + 26, y), style.clone()))?;
        // Letters of this size are about six pixels wide, with room to spare.
        x += 26 + (6.2 * key.text.chars().count() as f64) as i32 + 16;
    }
    Ok(rest)
}

/// A chart of two axes of numbers.
pub type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

/// Axes with their names.
pub fn axes<'a, 'b>(
    area: &'a Panel<'b>,
    x: (f64, f64),
    y: (f64, f64),
    names: (&str, &str),
) -> std::result::Result<Chart<'a, 'b>, Box<dyn std::error::Error>> {
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .margin_top(4)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(x.0..x.1, y.0..y.1)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.18))
        .axis_style(GREY)
        .label_style(("sans-serif", 14).into_font().color(&INK))
        .axis_desc_style(("sans-serif", 16).into_font().color(&INK))
        .x_desc(names.0)
        .y_desc(names.1)
        .x_label_formatter(&label)
        .y_label_formatter(&label)
        .draw()?;
    Ok(chart)
}

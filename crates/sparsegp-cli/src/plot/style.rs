//! Colours, ranges, labels, legend: what the pictures have in common.

use super::marker::Marker;
use super::{Drawn, Panel};
use crate::format::{count, number};
use crate::report::kernel_names;
use plotters::coord::ranged1d::{BoldPoints, DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use sparsegp::data::{InputColumn, date_text, days};
use sparsegp::fit::Fitted;

pub const BLUE: RGBColor = RGBColor(31, 98, 173);
pub const INK: RGBColor = RGBColor(45, 45, 50);
pub const ORANGE: RGBColor = RGBColor(222, 106, 16);
pub const RED: RGBColor = RGBColor(190, 30, 60);
pub const GREY: RGBColor = RGBColor(120, 120, 125);

/// Returns the range of finite values with a margin, never empty.
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

/// Returns a label on an axis of this span.
pub fn label(value: f64, span: f64) -> String {
    // Sums of steps miss 0 by rounding.
    let text = number(if value.abs() <= 1e-9 * span { 0.0 } else { value }, 4);
    match text.split_once('e') {
        None if text.contains('.') => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        _ => text,
    }
}

/// Returns the multiples of 1, 2, 2.5 or 5 times a power of ten from `low` to `high`, two to six of
/// them.
pub fn round_values((low, high): (f64, f64)) -> Vec<f64> {
    let least = (high - low) / 4.5;
    let power = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|s| s * power);
    let step = steps.into_iter().find(|s| *s >= least).unwrap_or(10.0 * power);
    // The ends belong to it, whatever their rounding.
    let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
    (0..=6).map(|k| first + f64::from(k)).take_while(|k| *k <= last).map(|k| k * step).collect()
}

pub fn caption(fitted: &Fitted, p: usize, what: &str) -> String {
    let kernel = kernel_names(fitted);
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
pub struct Key<'a> {
    pub text: &'a str,
    pub mark: Mark,
}

/// How a thing is drawn.
pub enum Mark {
    Area(f64),
    Line(RGBColor),
    Thin(RGBColor),
    Bar,
    /// From white to grey.
    Fade,
    Dot(RGBColor),
    Ring(RGBColor),
    Triangle(RGBColor),
    On(Marker),
}

/// Returns the colour of a class: after Okabe & Ito 2008, "Color universal design", distinguished
/// by readers who do not see red and green alike. They repeat after seven; with the shapes of
/// [`Marker::Class`], after 21.
pub fn class_colour(class: usize) -> RGBColor {
    const COLOURS: [RGBColor; 7] = [
        BLUE,
        ORANGE,
        RGBColor(0, 140, 105),
        RGBColor(186, 96, 150),
        RGBColor(70, 160, 215),
        RGBColor(205, 170, 0),
        RGBColor(110, 85, 70),
    ];
    COLOURS[class % COLOURS.len()]
}

/// Returns a colour with `1 − strength` of white in it: opaque, so that what overlaps does not add
/// up.
pub fn pale(colour: RGBColor, strength: f64) -> RGBColor {
    blend(WHITE, colour, strength)
}

/// Blends from one colour (`share` 0) to another (1).
pub fn blend(from: RGBColor, to: RGBColor, share: f64) -> RGBColor {
    let mix = |a: u8, b: u8| (f64::from(a) + share * (f64::from(b) - f64::from(a))).round() as u8;
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// Pixels of the caption and of one line of the legend.
const HEADER: u32 = 74;
/// Pixels of every further line of the legend.
const LINE: u32 = 20;
/// Where the legend begins.
const LEFT: i32 = 84;

/// Returns a text of at most so many letters: of a longer one, as that of a sum of many kernels,
/// the middle is left out.
pub fn cut(text: &str, most: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= most {
        return text.to_owned();
    }
    let (first, last) = (most / 2, most.saturating_sub(most / 2 + 1));
    letters[..first].iter().chain(&['…']).chain(&letters[letters.len() - last..]).collect()
}

/// Draws caption and legend at the top of a panel, and gives what is left of it.
pub fn header<'a>(panel: &Panel<'a>, caption: &str, keys: &[Key<'_>]) -> Drawn<Panel<'a>> {
    let width = panel.dim_in_pixel().0 as i32;
    let (mut places, mut x, mut line) = (Vec::new(), LEFT, 0);
    for key in keys {
        // Letters of this size are about six pixels wide, with room to spare.
        let wide = 26 + (6.2 * key.text.chars().count() as f64) as i32 + 16;
        if x > LEFT && x + wide > width {
            (x, line) = (LEFT, line + 1);
        }
        places.push((x, 56 + (line * LINE) as i32));
        x += wide;
    }
    let (top, rest) = panel.split_vertically(HEADER + line * LINE);
    let top = panel.part(top);
    let caption = match &panel.look.title {
        Some(title) => title.clone(),
        None => cut(caption, width as usize / 11),
    };
    let centred = ("sans-serif", 20).into_font().color(&INK);
    let centred = centred.pos(Pos::new(HPos::Center, VPos::Center));
    top.draw(&Text::new(caption, (width / 2, 26), centred))?;
    let style = ("sans-serif", 14).into_font().color(&INK);
    let style = style.pos(Pos::new(HPos::Left, VPos::Center));
    for (key, (x, y)) in keys.iter().zip(places) {
        let middle = (x + 10, y);
        let line = |style| PathElement::new([(x, y), (x + 20, y)], style);
        match key.mark {
            Mark::Area(strength) => top.draw(&Rectangle::new(
                [(x, y - 6), (x + 20, y + 6)],
                BLUE.mix(strength).filled(),
            ))?,
            Mark::Line(colour) => top.draw(&line(colour.stroke_width(2)))?,
            Mark::Thin(colour) => top.draw(&line(colour.stroke_width(1)))?,
            Mark::Bar => {
                let ends = [(x + 10, y - 8), (x + 10, y + 8)];
                top.draw(&PathElement::new(ends, BLUE.mix(0.4)))?;
            }
            Mark::Fade => {
                for step in 0..5 {
                    let corners = [(x + 4 * step, y - 6), (x + 4 * step + 4, y + 6)];
                    let colour = pale(GREY, 0.1 + 0.2 * f64::from(step));
                    top.draw(&Rectangle::new(corners, colour.filled()))?;
                }
            }
            Mark::Dot(colour) => top.draw(&Circle::new(middle, 3, colour.filled()))?,
            Mark::Ring(colour) => top.draw(&Circle::new(middle, 4, colour.stroke_width(2)))?,
            Mark::Triangle(colour) => {
                top.draw(&TriangleMarker::new(middle, 6, colour.filled()))?;
            }
            Mark::On(marker) => marker.draw(&top, middle)?,
        }
        top.draw(&Text::new(key.text.to_owned(), (x + 26, y), style.clone()))?;
    }
    Ok(panel.part(rest))
}

/// An axis of numbers with lines and labels at given places.
pub struct Axis {
    range: RangedCoordf64,
    places: Vec<f64>,
}

impl Axis {
    fn new(range: (f64, f64), places: Vec<f64>) -> Self {
        Self { range: (range.0..range.1).into(), places }
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.range.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // between them there are no others
        if hint.weight().allow_light_points() { Vec::new() } else { self.places.clone() }
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.range.range()
    }
}

/// A chart of two axes of numbers.
pub type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

/// Draws axes with their names.
pub fn axes<'a, 'b>(
    area: &'a Panel<'b>,
    x: (f64, f64),
    y: (f64, f64),
    names: (&str, &str),
) -> Drawn<Chart<'a, 'b>> {
    axes_with(area, x, y, names, (Ticks::Numbers, Ticks::Numbers))
}

/// What the numbers on an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticks {
    Numbers,
    /// Days since 1970.
    Dates,
    /// Nothing that is written along the axis.
    None,
}

impl Ticks {
    /// Creates the ticks of an input.
    pub fn of(fitted: &Fitted, input: usize) -> Self {
        let is_date = |column: &InputColumn| {
            column.encoding.is_date() && column.name == fitted.input_names[input]
        };
        if fitted.columns.iter().any(is_date) { Self::Dates } else { Self::Numbers }
    }

    /// Returns a number or a date as it is written.
    pub fn label(self, value: f64, (low, high): (f64, f64)) -> String {
        let text = match self {
            Self::Numbers | Self::None => return label(value, high - low),
            // whole days, unless there are too few of them for that
            Self::Dates => date_text(if high - low > 3.0 { value.round() } else { value }),
        };
        // beginnings of years and months are called by these
        match high - low {
            span if span > YEARS * YEAR => text.strip_suffix("-01-01").unwrap_or(&text).to_owned(),
            span if span > WEEKS => text.strip_suffix("-01").unwrap_or(&text).to_owned(),
            _ => text,
        }
    }

    /// Returns where lines and labels are, at most so many of them: of dates where days, months or
    /// years begin.
    pub fn places(self, (low, high): (f64, f64), most: usize) -> Vec<f64> {
        if self == Self::None {
            return Vec::new();
        }
        let numbers = || RangedCoordf64::from(low..high).key_points(BoldPoints(most));
        let span = high - low;
        if self == Self::Numbers || span <= 3.0 || !span.is_finite() {
            return numbers();
        }
        if span <= WEEKS {
            let step = [1.0, 2.0, 7.0, 14.0].into_iter().find(|step| span / step <= most as f64);
            let step = step.unwrap_or(14.0);
            let first = (low / step).ceil() as i64;
            return (first..).map(|i| i as f64 * step).take_while(|day| *day <= high).collect();
        }
        let steps = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12_000];
        let months = span / YEAR * 12.0;
        let Some(step) = steps.into_iter().find(|step| months / f64::from(*step) <= most as f64)
        else {
            return numbers();
        };
        // months since the year 0
        let of = |day: f64| (1970.0 + day / YEAR) * 12.0;
        let first = (of(low).floor() as i64 - 1).div_euclid(i64::from(step)) * i64::from(step);
        let begin = |month: i64| {
            let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
            days(&format!("{year:04}-{month:02}-01"))
        };
        let all = (0..).map(|i| begin(first + i * i64::from(step)));
        let all = all.map_while(|day| day.filter(|day| *day <= high));
        all.filter(|day| *day >= low).collect()
    }
}

/// Days of a year, on average.
const YEAR: f64 = 365.2425;
/// Years from which on their beginnings are labelled with only the year.
const YEARS: f64 = 4.0;
/// Days up to which dates are of days.
const WEEKS: f64 = 62.0;

/// Draws the same where the axes may be of dates.
pub fn axes_with<'a, 'b>(
    area: &'a Panel<'b>,
    x: (f64, f64),
    y: (f64, f64),
    names: (&str, &str),
    ticks: (Ticks, Ticks),
) -> Drawn<Chart<'a, 'b>> {
    let look = &area.look;
    // a date is some 90 pixels wide
    let most = match ticks.0 {
        Ticks::Dates => (area.dim_in_pixel().0 as usize / 130).max(2),
        Ticks::Numbers | Ticks::None => 10,
    };
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .margin_top(4)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(
            Axis::new(x, ticks.0.places(x, most)),
            Axis::new(y, ticks.1.places(y, 10)),
        )?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.18))
        .axis_style(GREY)
        .label_style(("sans-serif", 14).into_font().color(&INK))
        .axis_desc_style(("sans-serif", 16).into_font().color(&INK))
        .x_desc(look.x_label.as_deref().unwrap_or(names.0))
        .y_desc(look.y_label.as_deref().unwrap_or(names.1))
        .x_label_formatter(&|value| ticks.0.label(*value, x))
        .y_label_formatter(&|value| ticks.1.label(*value, y))
        .draw()?;
    Ok(chart)
}

/// Draws the area between two lines over the same places, from low to high.
pub fn band(chart: &mut Chart<'_, '_>, edges: &[(f64, f64, f64)], strength: f64) -> Drawn {
    let below = edges.iter().map(|(x, low, _)| (*x, *low));
    let above = edges.iter().rev().map(|(x, _, high)| (*x, *high));
    let outline: Vec<(f64, f64)> = below.chain(above).collect();
    chart.draw_series([Polygon::new(outline, BLUE.mix(strength))])?;
    Ok(())
}

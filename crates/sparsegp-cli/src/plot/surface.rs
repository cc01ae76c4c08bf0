//! A function of two inputs: probabilities of classes, or a mean with its uncertainty.

use super::contour::{Grid, Line};
use super::marker::Marker;
use super::style::{
    Chart, GREY, INK, Key, Mark, Ticks, axes_with, blend, class_colour, header, label, pale,
    round_values,
};
use super::{Drawn, Panel};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use sparsegp::linalg::Mat;

/// Shades of a scale: neighbours of the same shade become one rectangle.
const SHADES: f64 = 40.0;
/// Pixels of the scale beside the chart.
const SCALE: i32 = 84;

/// What all pictures of two inputs show.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    pub caption: &'a str,
    /// Names of the two inputs.
    pub names: (&'a str, &'a str),
    /// What the numbers on the axes are.
    pub ticks: (Ticks, Ticks),
    /// Where the function is known; the whole picture.
    pub grid: &'a Grid,
    /// Inputs of the rows to show.
    pub points: &'a [(f64, f64)],
    /// Inducing points.
    pub inducing: &'a [(f64, f64)],
}

/// Probabilities of classes.
#[derive(Clone, Copy)]
pub struct Classes<'a> {
    /// Of the C classes.
    pub names: &'a [String],
    /// Of each class at every node of the grid (nodes×C).
    pub probabilities: &'a Mat<f64>,
    /// Classes of the rows to show.
    pub labels: &'a [usize],
}

/// A number that is predicted.
#[derive(Clone, Copy)]
pub struct Values<'a> {
    pub name: &'a str,
    /// At every node of the grid.
    pub mean: &'a [f64],
    /// Standard deviation at every node.
    pub deviation: &'a [f64],
    /// Targets of the rows to show.
    pub targets: &'a [f64],
}

/// Returns the most probable class, and how certain it is: 0 where all are alike, 1 where there is
/// no other.
fn certainty(probabilities: &[f64]) -> (usize, f64) {
    let larger = |a: usize, b: usize| if probabilities[b] > probabilities[a] { b } else { a };
    let class = (0..probabilities.len()).fold(0, larger);
    let least = 1.0 / probabilities.len() as f64;
    (class, ((probabilities[class] - least) / (1.0 - least)).clamp(0.0, 1.0))
}

/// Returns a colour paler than the rows, which have the same colours.
fn shade(class: usize, certainty: f64) -> RGBColor {
    pale(class_colour(class), 0.04 + 0.56 * (SHADES * certainty).round() / SHADES)
}

/// Draws who is where: colours of classes, the paler the less certain.
pub fn classes(panel: &Panel, scene: &Scene<'_>, of: &Classes<'_>) -> Drawn {
    let node = |i: usize| (0..of.names.len()).map(|c| of.probabilities[(i, c)]).collect::<Vec<_>>();
    let nodes: Vec<Vec<f64>> = (0..of.probabilities.nrows()).map(node).collect();
    let binary = of.names.len() == 2;
    let mut keys: Vec<Key<'_>> = of.names.iter().enumerate().map(Key::class).collect();
    if binary {
        keys.push(Key { text: "p = 0.5", mark: Mark::Line(INK) });
        keys.push(Key { text: "p = 0.1, 0.9", mark: Mark::Thin(INK) });
    } else {
        keys.push(Key { text: "the most probable class changes", mark: Mark::Line(INK) });
        keys.push(Key { text: "its probability is 0.9", mark: Mark::Thin(INK) });
        keys.push(Key { text: "paler: less certain", mark: Mark::Fade });
    }
    let rest = scene.header(panel, keys)?;
    let rest = if binary {
        let (rest, beside) = rest.split_horizontally(rest.dim_in_pixel().0 as i32 - SCALE);
        let (rest, beside) = (panel.part(rest), panel.part(beside));
        let colour = |p: f64| shade(usize::from(p > 0.5), (2.0 * p - 1.0).abs());
        scale(&beside, &format!("p({})", of.names[1]), (0.0, 1.0), colour)?;
        rest
    } else {
        rest
    };
    let mut chart = axes_with(&rest, scene.grid.x, scene.grid.y, scene.names, scene.ticks)?;
    let colours: Vec<RGBColor> =
        nodes.iter().map(|p| certainty(p)).map(|(c, t)| shade(c, t)).collect();
    fill(&mut chart, scene.grid, &colours)?;
    for c in usize::from(binary)..of.names.len() {
        let ahead = |p: &Vec<f64>| {
            let others = p.iter().enumerate().filter(|(other, _)| *other != c);
            p[c] - others.map(|(_, p)| *p).fold(0.0, f64::max)
        };
        let (own, lead): (Vec<f64>, Vec<f64>) = nodes.iter().map(|p| (p[c], ahead(p))).unzip();
        contours(&mut chart, scene.grid, &own, 0.9, 1)?;
        if binary {
            contours(&mut chart, scene.grid, &own, 0.1, 1)?;
        }
        contours(&mut chart, scene.grid, &lead, 0.0, 2)?;
    }
    let rows = scene.points.iter().zip(of.labels);
    Marker::draw_all(&chart, rows.map(|(at, class)| (*at, Marker::Class(*class))))?;
    scene.inducing(&chart)
}

/// Draws a mean as colours, its standard deviation as lines.
pub fn values(panel: &Panel, scene: &Scene<'_>, of: &Values<'_>) -> Drawn {
    let (low, high) = extent(of);
    let colour = |value: f64| sequential((value - low) / (high - low));
    let mut keys = vec![Key { text: "standard deviation", mark: Mark::Thin(INK) }];
    if !scene.points.is_empty() {
        keys.insert(
            0,
            Key {
                text: "rows, in the colour of the target",
                mark: Mark::On(Marker::Value(sequential(0.7))),
            },
        );
    }
    let rest = scene.header(panel, keys)?;
    let (rest, beside) = rest.split_horizontally(rest.dim_in_pixel().0 as i32 - SCALE);
    let (rest, beside) = (panel.part(rest), panel.part(beside));
    scale(&beside, of.name, (low, high), colour)?;
    let mut chart = axes_with(&rest, scene.grid.x, scene.grid.y, scene.names, scene.ticks)?;
    let colours: Vec<RGBColor> = of.mean.iter().map(|value| colour(*value)).collect();
    fill(&mut chart, scene.grid, &colours)?;
    let mut texts = Vec::new();
    for level in levels(of.deviation) {
        let lines = contours(&mut chart, scene.grid, of.deviation, level, 1)?;
        if let Some(longest) = lines.iter().max_by_key(|line| line.len()).filter(|l| l.len() > 8) {
            texts.push((longest[longest.len() / 2], label(level, level)));
        }
    }
    let rows = scene.points.iter().zip(of.targets);
    Marker::draw_all(&chart, rows.map(|(at, y)| (*at, Marker::Value(colour(*y)))))?;
    scene.inducing(&chart)?;
    let style = ("sans-serif", 13).into_font().color(&INK);
    let style = style.pos(Pos::new(HPos::Center, VPos::Center));
    chart.draw_series(texts.into_iter().map(|(at, text)| {
        let half = (3.6 * text.chars().count() as f64) as i32 + 3;
        let plate = Rectangle::new([(-half, -8), (half, 8)], WHITE.mix(0.85).filled());
        EmptyElement::at(at) + plate + Text::new(text, (0, 0), style.clone())
    }))?;
    Ok(())
}

impl<'a> Key<'a> {
    fn class((class, name): (usize, &'a String)) -> Self {
        Self { text: name, mark: Mark::On(Marker::Class(class)) }
    }
}

impl Scene<'_> {
    fn header<'p>(&self, panel: &Panel<'p>, mut keys: Vec<Key<'_>>) -> Drawn<Panel<'p>> {
        if !self.inducing.is_empty() {
            keys.push(Key { text: "inducing points", mark: Mark::On(Marker::Inducing) });
        }
        header(panel, self.caption, &keys)
    }

    fn inducing(&self, chart: &Chart<'_, '_>) -> Drawn {
        let (x, y) = (self.grid.x, self.grid.y);
        let inside = |at: &&(f64, f64)| at.0 >= x.0 && at.0 <= x.1 && at.1 >= y.0 && at.1 <= y.1;
        Marker::draw_all(
            chart,
            self.inducing.iter().filter(inside).map(|at| (*at, Marker::Inducing)),
        )
    }
}

/// Fills the grid: every node's surroundings in its colour.
fn fill(chart: &mut Chart<'_, '_>, grid: &Grid, colours: &[RGBColor]) -> Drawn {
    for (j, row) in colours.chunks(grid.columns).enumerate() {
        let mut from = 0;
        for run in row.chunk_by(|a, b| a == b) {
            let low = grid.place(from as f64 - 0.5, j as f64 - 0.5);
            let high = grid.place((from + run.len()) as f64 - 0.5, j as f64 + 0.5);
            chart.draw_series([Rectangle::new([low, high], run[0].filled())])?;
            from += run.len();
        }
    }
    Ok(())
}

/// Draws and returns the lines where `values` are `level`.
fn contours(
    chart: &mut Chart<'_, '_>,
    grid: &Grid,
    values: &[f64],
    level: f64,
    width: u32,
) -> Drawn<Vec<Line>> {
    let lines = grid.contours(values, level);
    let path = |line: &Line| PathElement::new(line.clone(), INK.stroke_width(width));
    chart.draw_series(lines.iter().map(path))?;
    Ok(lines)
}

/// Returns what the colours of a mean span: its values and nine tenths of the targets, so that one
/// of these far away does not take the contrast from all else.
fn extent(of: &Values<'_>) -> (f64, f64) {
    let mut targets: Vec<f64> = of.targets.iter().copied().filter(|y| y.is_finite()).collect();
    targets.sort_unstable_by(f64::total_cmp);
    let aside = targets.len().div_ceil(20);
    let most = targets.get(aside..targets.len().saturating_sub(aside)).unwrap_or(&[]);
    let finite = of.mean.iter().chain(most).copied().filter(|v| v.is_finite());
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) = finite.fold(ends, |(low, high), v| (low.min(v), high.max(v)));
    let size = low.abs().max(high.abs());
    match high - low {
        span if span > 1e-9 * size => (low, high),
        _ if size.is_finite() && size > 0.0 => (low - 0.5 * size, high + 0.5 * size),
        _ => (-0.5, 0.5),
    }
}

/// Returns the round levels between the least and the largest value.
fn levels(values: &[f64]) -> Vec<f64> {
    let finite = || values.iter().copied().filter(|v| v.is_finite());
    let low = finite().fold(f64::INFINITY, f64::min);
    let high = finite().fold(f64::NEG_INFINITY, f64::max);
    // Less than a thousandth of variation is rounding.
    if high - low > 1e-3 * high { round_values((low, high)) } else { Vec::new() }
}

/// Returns a scale from dark blue to pale yellow (viridis, van der Walt & Smith 2015, CC0, at ten
/// places): lightness grows all the way, whatever colours a reader sees.
fn sequential(share: f64) -> RGBColor {
    const PLACES: [(u8, u8, u8); 10] = [
        (68, 1, 84),
        (72, 40, 120),
        (62, 74, 137),
        (49, 104, 142),
        (38, 130, 142),
        (31, 158, 137),
        (53, 183, 121),
        (109, 205, 89),
        (180, 222, 44),
        (253, 231, 37),
    ];
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let at = (SHADES * share).round() / SHADES * (PLACES.len() - 1) as f64;
    let below = (at as usize).min(PLACES.len() - 2);
    let colour = |i: usize| RGBColor(PLACES[i].0, PLACES[i].1, PLACES[i].2);
    blend(colour(below), colour(below + 1), at - below as f64)
}

/// Draws the colours with their values, beside a chart that [`axes`] draws.
fn scale(
    area: &Panel,
    name: &str,
    (low, high): (f64, f64),
    colour: impl Fn(f64) -> RGBColor,
) -> Drawn {
    const WIDTH: i32 = 16;
    // The chart's margins and the room for the labels of its axis.
    let (top, bottom) = (24, area.dim_in_pixel().1 as i32 - 58);
    let style = ("sans-serif", 14).into_font().color(&INK);
    let left = style.clone().pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(name.to_owned(), (0, top - 14), left.clone()))?;
    let shades = SHADES as i32;
    let y = |share: f64| bottom - (f64::from(bottom - top) * share).round() as i32;
    for k in 0..shades {
        let (from, to) = (f64::from(k) / SHADES, f64::from(k + 1) / SHADES);
        let corners = [(0, y(to)), (WIDTH, y(from))];
        let middle = low + (high - low) * 0.5 * (from + to);
        area.draw(&Rectangle::new(corners, colour(middle).filled()))?;
    }
    area.draw(&Rectangle::new([(0, top), (WIDTH, bottom)], GREY.stroke_width(1)))?;
    for value in round_values((low, high)) {
        let y = y((value - low) / (high - low));
        area.draw(&PathElement::new([(WIDTH, y), (WIDTH + 4, y)], GREY.stroke_width(1)))?;
        let text = label(value, high - low);
        area.draw(&Text::new(text, (WIDTH + 7, y), left.clone()))?;
    }
    Ok(())
}

//! A map of rows that were embedded, and which of its dimensions are used.

use super::style::{BLUE, GREY, Key, Mark, ORANGE, axes, blend, class_colour, header, range};
use super::{Drawn, Look, Panel, relevance, svg, write};
use crate::fail::Result;
use crate::format::number;
use plotters::prelude::*;
use sparsegp::linalg::MatRef;
use std::path::Path;

/// Most labels that have their own colours and words.
const LABELS: usize = 12;

/// What the colours of rows mean.
pub enum Colours {
    /// Nothing.
    None,
    /// A number of every row, NaN where missing; with the column's name.
    Numbers(String, Vec<f64>),
    /// A label of every row, empty where missing; with the column's name.
    Labels(String, Vec<String>),
}

impl Colours {
    /// Reads the cells of a column: as numbers where all that are there are some, and they are more than a few.
    pub fn of(name: &str, cells: Vec<String>, number: impl Fn(&str) -> Option<f64>) -> Self {
        let known = || cells.iter().filter(|cell| !cell.trim().is_empty());
        let values: Vec<f64> = cells.iter().map(|c| number(c).unwrap_or(f64::NAN)).collect();
        let numeric = known().all(|cell| number(cell).is_some());
        let mut distinct: Vec<&String> = known().collect();
        distinct.sort();
        distinct.dedup();
        match numeric && distinct.len() > LABELS {
            true => Self::Numbers(name.into(), values),
            false => Self::Labels(name.into(), cells),
        }
    }
}

/// Draws the two most relevant dimensions of `mean` (N×Q) and, in a second panel, the relevance of all of them.
pub fn draw(
    path: &Path,
    look: &Look,
    caption: &str,
    mean: MatRef<'_, f64>,
    relevance: &[f64],
    colours: &Colours,
) -> Result<()> {
    let mut order: Vec<usize> = (0..relevance.len()).collect();
    order.sort_by(|a, b| relevance[*b].total_cmp(&relevance[*a]));
    let bars: Vec<(String, f64)> =
        order.iter().map(|q| (format!("z{}", q + 1), relevance[*q])).collect();
    let panels = if bars.len() > 1 { 2 } else { 1 };
    let drawn = svg(panels, look, |at, panel| match at {
        0 => map(panel, caption, mean, &order, colours),
        _ => relevance::bars(
            panel,
            "relevance of the dimensions",
            &bars[..bars.len().min(16)],
            "prior variance of the slope, of the largest",
        ),
    })?;
    write(path, &drawn)
}

fn map(
    panel: &Panel,
    caption: &str,
    mean: MatRef<'_, f64>,
    order: &[usize],
    colours: &Colours,
) -> Drawn {
    let n = mean.nrows();
    let x = |i: usize| mean[(i, order[0])];
    // a single dimension is drawn against the rows' order
    let y = |i: usize| order.get(1).map_or(i as f64, |q| mean[(i, *q)]);
    let (colour, words) = coloured(colours, n);
    let keys: Vec<Key<'_>> =
        words.iter().map(|(text, colour)| Key { text, mark: Mark::Dot(*colour) }).collect();
    let rest = header(panel, caption, &keys)?;
    let names = (format!("z{}", order[0] + 1), order.get(1).map(|q| format!("z{}", q + 1)));
    let names = (names.0.as_str(), names.1.as_deref().unwrap_or("row"));
    let mut chart = axes(&rest, range((0..n).map(x), 0.05), range((0..n).map(y), 0.05), names)?;
    chart
        .draw_series((0..n).map(|i| Circle::new((x(i), y(i)), 3, colour(i).mix(0.75).filled())))?;
    Ok(())
}

type Colour<'a> = Box<dyn Fn(usize) -> RGBColor + 'a>;

/// Returns the colour of every row, and the words of the legend.
fn coloured(colours: &Colours, n: usize) -> (Colour<'_>, Vec<(String, RGBColor)>) {
    match colours {
        Colours::None => (Box::new(|_| BLUE), Vec::new()),
        Colours::Numbers(name, values) => {
            let known = || values.iter().copied().filter(|v| v.is_finite());
            let low = known().fold(f64::INFINITY, f64::min);
            let high = known().fold(f64::NEG_INFINITY, f64::max);
            let of = move |v: f64| match v.is_finite() {
                true => blend(BLUE, ORANGE, (v - low) / (high - low).max(f64::MIN_POSITIVE)),
                false => GREY,
            };
            let words = [(low, BLUE), (0.5 * (low + high), of(0.5 * (low + high))), (high, ORANGE)];
            let word = |(v, colour)| (format!("{name} = {}", number(v, 4)), colour);
            (Box::new(move |i| of(values[i])), words.map(word).to_vec())
        }
        Colours::Labels(name, labels) => {
            let mut counts = std::collections::BTreeMap::new();
            for label in labels.iter().take(n).filter(|label| !label.trim().is_empty()) {
                *counts.entry(label.clone()).or_insert(0) += 1;
            }
            let mut all: Vec<(String, i32)> = counts.into_iter().collect();
            let shown = all.len().min(LABELS);
            if all.len() > LABELS {
                // the most frequent have colours
                all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            }
            let all: Vec<String> = all.into_iter().take(shown).map(|(label, _)| label).collect();
            let mut words: Vec<(String, RGBColor)> = all
                .iter()
                .enumerate()
                .map(|(c, label)| (format!("{name} = {label}"), class_colour(c)))
                .collect();
            let of = |label: &String| all.iter().position(|known| known == label);
            let found: Vec<Option<usize>> = labels.iter().map(of).collect();
            if found.iter().take(n).any(Option::is_none) {
                words.push(("others".into(), GREY));
            }
            (Box::new(move |i| found[i].map_or(GREY, class_colour)), words)
        }
    }
}

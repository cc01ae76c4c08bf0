//! The terms of a sum that are functions of one input each: effects with their bands.

use super::style::{BLUE, Key, Mark, Ticks, axes_with, band, header, range};
use super::{Drawn, Panel, Sampled};
use crate::report::latent_names;
use plotters::prelude::*;
use sparsegp::Result;
use sparsegp::fit::Fitted;
use sparsegp::linalg::Mat;
use sparsegp::model::PredictedTerm;

/// Points of the curves.
const GRID: usize = 200;
/// Most panels; the effects that change least are left out.
const MOST: usize = 16;

/// A term of one input.
struct Effect {
    input: usize,
    term: PredictedTerm,
}

/// All effects that are drawn, on common scales.
pub struct Effects {
    all: Vec<Effect>,
    /// Lower and upper end of the rows along every input.
    ends: Vec<(f64, f64)>,
    heights: (f64, f64),
    /// How many more there are.
    more: usize,
}

/// Returns the input of a term that is a function of one, if that is not a label.
fn input(fitted: &Fitted, term: &PredictedTerm) -> Option<usize> {
    let [q] = term.inputs[..] else { return None };
    let labels = fitted.model.kernels.iter().any(|kernel| kernel.labels().contains(&q));
    (!labels).then_some(q)
}

/// Returns why there are none.
pub fn cannot(fitted: &Fitted) -> Option<&'static str> {
    let names = fitted.measured_names();
    let sum = fitted.model.kernels.iter().any(|kernel| kernel.terms(names).len() > 1);
    if !sum {
        return Some(
            "its kernel is not a sum: `additive`, or `rbf + additive`, has a term for every input",
        );
    }
    let row = Mat::from_fn(1, names.len(), |_, q| fitted.scaler.unscaled_input(q, 0.0));
    match fitted.predict_terms(row.as_ref(), true) {
        Err(_) => Some(
            "its posterior is of draws, of layers or of inputs with errors, and has no terms, or keeps its rows (`markov`, \
             `vecchia`, `full-scale`), and has none that are centred",
        ),
        Ok(terms) if terms.iter().all(|term| input(fitted, term).is_none()) => Some(
            "no term of its kernel is a function of one input: `additive` has one for every input",
        ),
        Ok(_) => None,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn spread(term: &PredictedTerm) -> f64 {
    let (low, high) = range(term.mean.iter().copied(), 0.0);
    high - low
}

impl Effects {
    /// Finds them along the inputs of rows.
    pub fn of(fitted: &Fitted, rows: &Sampled) -> Result<Self> {
        let d = rows.x.ncols();
        let column = |q: usize| rows.x.col_as_slice(q).to_vec();
        let middle: Vec<f64> = (0..d).map(|q| median(column(q))).collect();
        let ends: Vec<(f64, f64)> = (0..d).map(|q| range(column(q).into_iter(), 0.0)).collect();
        // terms of one input do not see that all others move too; labels do not
        let labels: Vec<usize> =
            fitted.model.kernels.iter().flat_map(|kernel| kernel.labels()).collect();
        let share = |i: usize| i as f64 / (GRID - 1) as f64;
        let grid = Mat::from_fn(GRID, d, |i, q| match ends[q] {
            _ if labels.contains(&q) => middle[q],
            (low, high) => low + (high - low) * share(i),
        });
        let terms = fitted.predict_terms(grid.as_ref(), true)?.into_iter();
        let effect = |term| Some(Effect { input: input(fitted, &term)?, term });
        let mut all: Vec<Effect> = terms.filter_map(effect).collect();
        all.sort_by(|a, b| spread(&b.term).total_cmp(&spread(&a.term)));
        let more = all.len().saturating_sub(MOST);
        all.truncate(MOST);
        let edges = all.iter().flat_map(|own| {
            let pairs = own.term.mean.iter().zip(&own.term.variance);
            pairs.flat_map(|(mean, variance)| {
                [-1.96, 1.96].map(|side| mean + side * variance.sqrt())
            })
        });
        let heights = range(edges, 0.04);
        Ok(Self { all, ends, heights, more })
    }

    /// Returns how many panels there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Draws one of them.
    pub fn panel(&self, panel: &Panel, fitted: &Fitted, index: usize) -> Drawn {
        let Effect { input, term } = &self.all[index];
        let more = match self.more {
            more if more > 0 && index == 0 => format!(", the largest of {}", more + self.all.len()),
            _ => String::new(),
        };
        let keys = [
            Key { text: "mean, centred", mark: Mark::Line(BLUE) },
            Key { text: "95 %", mark: Mark::Area(0.32) },
        ];
        let rest = header(panel, &format!("{}{more}", term.name), &keys)?;
        let latents = latent_names(fitted);
        let names = (fitted.input_names[*input].as_str(), latents[term.latent].as_str());
        let ticks = (Ticks::of(fitted, *input), Ticks::Numbers);
        let (low, high) = self.ends[*input];
        let at = |i: usize| low + (high - low) * i as f64 / (GRID - 1) as f64;
        let mut chart = axes_with(&rest, (low, high), self.heights, names, ticks)?;
        let edges =
            term.mean.iter().zip(&term.variance).enumerate().map(|(i, (mean, variance))| {
                let half = 1.96 * variance.sqrt();
                (at(i), mean - half, mean + half)
            });
        band(&mut chart, &edges.collect::<Vec<_>>(), 0.32)?;
        let line = term.mean.iter().enumerate().map(|(i, mean)| (at(i), *mean));
        chart.draw_series(LineSeries::new(line, BLUE.stroke_width(2)))?;
        Ok(())
    }
}

//! The fit over its one input.

use super::counts::{self, Counts};
use super::style::{
    BLUE, INK, Key, Mark, ORANGE, RED, Ticks, axes_with, band, caption, header, range,
};
use super::{Drawn, Panel, Sampled};
use crate::kind::Kind;
use plotters::prelude::*;
use sparsegp::Result;
use sparsegp::fit::Fitted;
use sparsegp::fit::Of;
use sparsegp::linalg::{Mat, column};

/// Points of the curves.
const GRID: usize = 400;
/// Levels at the ends of the central 50 and 95 % intervals.
const ENDS: [f64; 4] = [0.25, 0.75, 0.025, 0.975];

fn points(of: &Sampled, p: usize) -> Vec<(f64, f64)> {
    (0..of.x.nrows()).map(|i| (of.x[(i, 0)], of.y[(i, p)])).collect()
}

fn inducing(fitted: &Fitted) -> Result<Vec<f64>> {
    Ok(match fitted.inducing_points()? {
        Some(z) => (0..z.nrows()).map(|i| z[(i, 0)]).collect(),
        None => Vec::new(),
    })
}

/// Lower and upper ends at every place.
type Ends = Vec<(f64, f64)>;

/// What is drawn at every place: lower and upper ends of a wide and of a narrow band, and a line.
struct Bands {
    wide: Ends,
    narrow: Ends,
    line: Vec<f64>,
}

/// Returns the bands of Gaussian noise: 95 % intervals of observations and of the function.
fn gaussian(fitted: &Fitted, p: usize, grid: &Mat<f64>) -> Result<Bands> {
    let (x, levels) = (grid.as_ref(), [0.025, 0.975]);
    let bounds = |ends: &[Mat<f64>]| -> Ends {
        (0..GRID).map(|i| (ends[0][(i, p)], ends[1][(i, p)])).collect()
    };
    let known = fitted.predict_with_quantiles(x, &[], &levels, Of::Latent)?;
    let wide = fitted.quantiles(x, &[], &levels, Of::Observations)?;
    let line = column(known.mean.as_ref(), p).to_vec();
    Ok(Bands { wide: bounds(&wide), narrow: bounds(&known.quantiles), line })
}

/// Returns the bands of anything else: 95 and 50 % intervals of observations.
fn quantiles(fitted: &Fitted, p: usize, grid: &Mat<f64>) -> Result<Bands> {
    let known = fitted.predict_with_quantiles(grid.as_ref(), &[], &ENDS, Of::Observations)?;
    let (mean, ends) = (known.mean, known.quantiles);
    let pairs = |a: usize| (0..GRID).map(|i| (ends[a][(i, p)], ends[a + 1][(i, p)])).collect();
    Ok(Bands { wide: pairs(2), narrow: pairs(0), line: column(mean.as_ref(), p).to_vec() })
}

/// Draws target `p`.
pub fn panel(
    panel: &Panel,
    fitted: &Fitted,
    p: usize,
    train: &Sampled,
    test: Option<&Sampled>,
) -> Drawn {
    let named = train.named;
    let (train, test) = (points(train, p), test.map(|t| points(t, p)).unwrap_or_default());
    let inducing = inducing(fitted)?;
    let (low, high) = range(train.iter().chain(&test).map(|(x, _)| *x), 0.06);
    let at = |i: usize| low + (high - low) * i as f64 / (GRID - 1) as f64;
    let grid = Mat::from_fn(GRID, 1, |i, _| at(i));
    let plain = Kind::of(fitted) == Kind::Gaussian;
    let of = if plain { gaussian(fitted, p, &grid) } else { quantiles(fitted, p, &grid) }?;
    let heights = of.wide.iter().flat_map(|(a, b)| [*a, *b]);
    let (bottom, top) = range(heights.chain(train.iter().chain(&test).map(|(_, y)| *y)), 0.06);

    let (narrow, wide) = match plain {
        true => ("95 % for the function", "95 % of new observations"),
        false => ("50 % of new observations", "95 % of new observations"),
    };
    let mut keys = vec![
        Key { text: "mean", mark: Mark::Line(BLUE) },
        Key { text: narrow, mark: Mark::Area(0.42) },
        Key { text: wide, mark: Mark::Area(0.14) },
        Key { text: named, mark: Mark::Dot(INK) },
    ];
    if !test.is_empty() {
        keys.push(Key { text: "test rows", mark: Mark::Ring(ORANGE) });
    }
    if !inducing.is_empty() {
        keys.push(Key { text: "inducing points", mark: Mark::Triangle(RED) });
    }
    let rest = header(panel, &caption(fitted, p, ""), &keys)?;
    let names = (fitted.input_names[0].as_str(), fitted.target_names[p].as_str());
    let ticks = (Ticks::of(fitted, 0), Ticks::Numbers);
    let mut chart = axes_with(&rest, (low, high), (bottom, top), names, ticks)?;
    for (of, strength) in [(&of.wide, 0.14), (&of.narrow, 0.32)] {
        let edges = of.iter().enumerate().map(|(i, (low, high))| (at(i), *low, *high));
        band(&mut chart, &edges.collect::<Vec<_>>(), strength)?;
    }
    let line = of.line.iter().enumerate().map(|(i, mean)| (at(i), *mean));
    chart.draw_series(LineSeries::new(line, BLUE.stroke_width(2)))?;
    chart.draw_series(train.iter().map(|at| Circle::new(*at, 2, INK.filled())))?;
    chart.draw_series(test.iter().map(|at| Circle::new(*at, 3, ORANGE.stroke_width(2))))?;
    let inside = inducing.iter().filter(|z| (low..=high).contains(*z));
    let height = bottom + 0.025 * (top - bottom);
    chart.draw_series(inside.map(|z| TriangleMarker::new((*z, height), 6, RED.filled())))?;
    Ok(())
}

/// Draws counts of target `p`: per unit of exposure, where rows have exposures.
pub fn counts(
    panel: &Panel,
    fitted: &Fitted,
    p: usize,
    train: &Sampled,
    test: Option<&Sampled>,
) -> Drawn {
    let (exposed, named) = (!train.extra.is_empty(), train.named);
    let rates = |of: &Sampled| -> Vec<(f64, f64)> {
        let per = |i: usize| of.extra.get(i).copied().unwrap_or(1.0);
        points(of, p).into_iter().enumerate().map(|(i, (x, y))| (x, y / per(i))).collect()
    };
    let (train, test) = (rates(train), test.map(rates).unwrap_or_default());
    let inducing = inducing(fitted)?;
    let (low, high) = range(train.iter().chain(&test).map(|(x, _)| *x), 0.06);
    let x: Vec<f64> =
        (0..GRID).map(|i| low + (high - low) * i as f64 / (GRID - 1) as f64).collect();
    let grid = Mat::from_fn(GRID, 1, |i, _| x[i]);
    let known = fitted.predict_with_quantiles(grid.as_ref(), &[], &ENDS, Of::Observations)?;
    let (mean, ends) = (known.mean, known.quantiles);
    let end = |k: usize| column(ends[k].as_ref(), p);
    let caption = caption(fitted, p, if exposed { " for an exposure of 1" } else { "" });
    counts::panel(
        panel,
        &Counts {
            caption: &caption,
            ticks: Ticks::of(fitted, 0),
            names: (&fitted.input_names[0], &fitted.target_names[p]),
            x: &x,
            mean: column(mean.as_ref(), p),
            half: (end(0), end(1)),
            most: (end(2), end(3)),
            named,
            train: &train,
            test: &test,
            inducing: &inducing,
        },
    )
}

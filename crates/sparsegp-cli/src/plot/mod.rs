//! Pictures as SVG: the fit over its one input, or predictions against observations.

#[cfg_attr(not(test), expect(dead_code, reason = "wired to the commands in the next change"))]
mod contour;
#[cfg_attr(not(test), expect(dead_code, reason = "wired to the commands in the next change"))]
mod counts;
mod curve;
mod marker;
#[cfg_attr(not(test), expect(dead_code, reason = "wired to the commands in the next change"))]
mod reliability;
mod scatter;
mod style;
#[cfg_attr(not(test), expect(dead_code, reason = "wired to the commands in the next change"))]
mod surface;
#[cfg(test)]
mod tests;

use crate::data::{BLOCK, Opened};
use crate::fail::{Fail, Result};
use plotters::coord::Shift;
use plotters::prelude::*;
use sparsegp::atomic::write_atomically;
use sparsegp::data::Selected;
use sparsegp::fit::Fitted;
use sparsegp::linalg::Mat;
use std::path::Path;

/// Size of a panel in pixels.
const SIZE: (u32, u32) = (900, 520);
/// Most points in a panel, up to a factor of two.
const POINTS: usize = 3000;
type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Rows of a picture: inputs (B×D) and targets (B×P) in their own units.
struct Sampled {
    x: Mat<f64>,
    y: Mat<f64>,
}

/// Evenly spaced rows, at most twice [`POINTS`] of them.
fn sample(fitted: &Fitted, rows: &Selected) -> Result<Sampled> {
    let (mut kept, mut stride) = (Vec::new(), 1);
    for block in rows.blocks(BLOCK, None)? {
        let block = block?;
        for i in (0..block.rows.len()).filter(|i| (block.start + i) % stride == 0) {
            let row = |a: &Mat<f64>| (0..a.ncols()).map(|j| a[(i, j)]).collect::<Vec<_>>();
            kept.push((block.start + i, row(&block.x), row(&block.y)));
        }
        while kept.len() > 2 * POINTS {
            stride *= 2;
            kept.retain(|(index, ..)| index % stride == 0);
        }
    }
    let (d, p) = (fitted.input_names.len(), fitted.target_names.len());
    Ok(Sampled {
        x: Mat::from_fn(kept.len(), d, |i, j| kept[i].1[j]),
        y: Mat::from_fn(kept.len(), p, |i, j| kept[i].2[j]),
    })
}

/// Draws a model into a file.
pub fn draw(path: &Path, fitted: &Fitted, opened: &Opened) -> Result<()> {
    let train = sample(fitted, &opened.train)?;
    let test = opened.test.as_ref().map(|rows| sample(fitted, rows)).transpose()?;
    let panels = fitted.target_names.len();
    let mut svg = String::new();
    let root =
        SVGBackend::with_string(&mut svg, (SIZE.0, SIZE.1 * panels as u32)).into_drawing_area();
    let draw_all = || -> Drawn {
        root.fill(&WHITE)?;
        for (p, panel) in root.split_evenly((panels, 1)).iter().enumerate() {
            match (fitted.input_names.len(), &test) {
                (1, _) => curve::panel(panel, fitted, p, &train, test.as_ref())?,
                (_, Some(test)) => scatter::panel(panel, fitted, p, test, "test rows")?,
                (_, None) => scatter::panel(panel, fitted, p, &train, "training rows")?,
            }
        }
        root.present()?;
        Ok(())
    };
    let drawn = draw_all();
    drop(root);
    drawn.map_err(|e| Fail::Work(format!("{}: cannot be drawn: {e}", path.display())))?;
    Ok(write_atomically(path, svg.as_bytes())?)
}

//! The inducing patches of a convolutional kernel, and how much the places of an image count.

use super::style::header;
use super::{Drawn, Panel};
use crate::format::count;
use plotters::prelude::*;
use serde_json::Value;
use sparsegp::fit::Fitted;
use sparsegp::linalg::Mat;

/// Most patches that are drawn.
const MOST: usize = 100;

/// The patches in the data's units, and the kernel.
struct Learnt {
    patches: Mat<f64>,
    kernel: Value,
}

impl Learnt {
    fn of(fitted: &Fitted) -> Option<Self> {
        let own = fitted.model.kernel().interdomain()?;
        let patches = fitted.inducing_points().ok().flatten()?;
        let kernel = fitted.model.kernel().to_json();
        (patches.ncols() == own.columns && kernel["patch"].is_array())
            .then_some(Self { patches, kernel })
    }

    fn numbers(&self, name: &str) -> Vec<usize> {
        let all = self.kernel[name].as_array().into_iter().flatten();
        all.filter_map(Value::as_u64).map(|v| v as usize).collect()
    }

    /// Returns the places of patches of a channel, row by row: rows and columns of them.
    fn places(&self) -> (usize, usize) {
        let (image, patch) = (self.numbers("image"), self.numbers("patch"));
        let stride = self.kernel["stride"].as_u64().unwrap_or(1).max(1) as usize;
        let along = |i: usize| match (image.get(i), patch.get(i)) {
            (Some(whole), Some(part)) => (whole - part) / stride + 1,
            _ => 1,
        };
        (along(0), along(1))
    }
}

/// Returns whether there are such patches.
pub fn are_there(fitted: &Fitted) -> bool {
    Learnt::of(fitted).is_some()
}

/// Returns a grey between the least and the largest value.
fn grey(value: f64, (least, most): (f64, f64)) -> RGBColor {
    let share = if most > least { (value - least) / (most - least) } else { 0.5 };
    let level = (255.0 * (1.0 - share.clamp(0.0, 1.0))) as u8;
    RGBColor(level, level, level)
}

/// Returns blue for what counts against, red for what counts for.
fn signed(value: f64, most: f64) -> RGBColor {
    let share = if most > 0.0 { (value / most).clamp(-1.0, 1.0) } else { 0.0 };
    let pale = (255.0 * (1.0 - share.abs())) as u8;
    if share > 0.0 { RGBColor(255, pale, pale) } else { RGBColor(pale, pale, 255) }
}

/// Draws them: patches on the left, weights of places on the right.
pub fn panel(panel: &Panel, fitted: &Fitted) -> Drawn {
    let Some(own) = Learnt::of(fitted) else { return Err("the model has no patches".into()) };
    let all = own.patches.nrows();
    let shown = all.min(MOST);
    let more = if shown < all { format!(", {} more left out", all - shown) } else { String::new() };
    let caption =
        format!("{} in the data's units, and weights of places{more}", count(all, "patch"));
    let rest = header(panel, &caption, &[])?;
    let (width, height) = rest.dim_in_pixel();
    let side = (width / 2).min(height) as i32;
    let patch = own.numbers("patch");
    let (h, w) =
        (patch.first().copied().unwrap_or(1).max(1), patch.get(1).copied().unwrap_or(1).max(1));
    let colours = (own.patches.ncols() / (h * w)).max(1);
    let across = (shown as f64).sqrt().ceil() as i32;
    let cell = (side / across.max(1)).max(2);
    let pixel = ((cell - 2) / h.max(w) as i32).max(1);
    let mut range = (f64::INFINITY, f64::NEG_INFINITY);
    for j in 0..own.patches.ncols() {
        for v in own.patches.col_as_slice(j) {
            range = (range.0.min(*v), range.1.max(*v));
        }
    }
    for m in 0..shown {
        let (left, top) = ((m as i32 % across) * cell, (m as i32 / across) * cell);
        for (a, b) in (0..h).flat_map(|a| (0..w).map(move |b| (a, b))) {
            // the mean of colours
            let entry = (a * w + b) * colours;
            let value =
                (0..colours).map(|c| own.patches[(m, entry + c)]).sum::<f64>() / colours as f64;
            let (x, y) = (left + b as i32 * pixel, top + a as i32 * pixel);
            rest.draw(&Rectangle::new(
                [(x, y), (x + pixel, y + pixel)],
                grey(value, range).filled(),
            ))?;
        }
    }
    let weights: Vec<f64> = fitted
        .model
        .params()
        .into_iter()
        .find(|(path, _)| path == "kernel.weights")
        .map(|(_, param)| param.value().to_vec())
        .unwrap_or_default();
    let (rows, columns) = own.places();
    let most = weights.iter().fold(0.0_f64, |m, w| m.max(w.abs()));
    let size = (side / rows.max(columns).max(1) as i32).max(1);
    let left = width as i32 / 2 + 8;
    // of several channels the first
    for (p, weight) in weights.iter().take(rows * columns).enumerate() {
        let (x, y) = (left + (p % columns) as i32 * size, (p / columns) as i32 * size);
        let fill = signed(*weight, most).filled();
        rest.draw(&Rectangle::new([(x, y), (x + size, y + size)], fill))?;
    }
    Ok(())
}

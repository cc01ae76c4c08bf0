//! How finely the function varies along every input: bars of 1/lengthscale.

use super::style::{BLUE, GREY, INK, header, label};
use super::{Drawn, Panel};
use crate::format::number;
use crate::report::kernel_names;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use sparsegp::fit::Fitted;

/// Most bars; the least relevant inputs are left out.
const MOST: usize = 16;

/// Returns inputs with 1/lengthscale on the model's scale (per standard deviation of the column
/// where inputs are standardised), the largest first; none where no kernel has lengthscales.
pub fn inputs(fitted: &Fitted) -> Vec<(String, f64)> {
    let names = fitted.measured_names();
    let mut relevance = vec![0.0; names.len()];
    fitted.model.input_kernels().into_iter().for_each(|kernel| kernel.relevance(&mut relevance));
    let mut all: Vec<(String, f64)> = names.iter().cloned().zip(relevance).collect();
    all.retain(|(_, r)| *r > 0.0);
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

/// Draws them.
pub fn panel(panel: &Panel, fitted: &Fitted) -> Drawn {
    let all = inputs(fitted);
    let shown = &all[..all.len().min(MOST)];
    let more = all.len() - shown.len();
    let more = if more > 0 { format!(", {more} less relevant left out") } else { String::new() };
    let caption = format!("relevance of inputs: {}{more}", kernel_names(fitted));
    bars(panel, &caption, shown, "1/lengthscale, model's scale")
}

/// Draws named bars, the first of which is the longest.
pub fn bars(panel: &Panel, caption: &str, shown: &[(String, f64)], axis: &str) -> Drawn {
    let rest = header(panel, caption, &[])?;
    let longest = shown.first().map_or(1.0, |(_, r)| *r);
    let rows = shown.len().max(1) as f64;
    // names stand in the chart, above their bars: they may be long, and there is nothing to read on that axis
    let mut chart = ChartBuilder::on(&rest)
        .margin(14)
        .margin_top(4)
        .x_label_area_size(44)
        .build_cartesian_2d(0.0..1.12 * longest, -rows..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.18))
        .axis_style(GREY)
        .label_style(("sans-serif", 14).into_font().color(&INK))
        .axis_desc_style(("sans-serif", 16).into_font().color(&INK))
        .x_desc(rest.look.x_label.as_deref().unwrap_or(axis))
        .x_label_formatter(&|value| label(*value, longest))
        .draw()?;
    chart.draw_series(shown.iter().enumerate().map(|(i, (_, r))| {
        let top = -(i as f64) - 0.45;
        Rectangle::new([(0.0, top), (*r, top - 0.45)], BLUE.mix(0.6).filled())
    }))?;
    let style = ("sans-serif", 14).into_font().color(&INK);
    let style = style.pos(Pos::new(HPos::Left, VPos::Center));
    chart.draw_series(shown.iter().enumerate().map(|(i, (name, r))| {
        let text = format!("{name}  {}", number(*r, 3));
        EmptyElement::at((0.0, -(i as f64) - 0.25)) + Text::new(text, (4, 0), style.clone())
    }))?;
    Ok(())
}

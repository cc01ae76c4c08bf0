//! The banana: what particles make of a density that no Gaussian fits.

use crate::common::{Area, Drawn, shown};
use plotters::prelude::*;
use sparsegp::flow::targets::Banana;
use sparsegp::flow::{Evaluation, Gpf, GpfOptions, Particles, Rule, Solver};
use sparsegp::linalg::Mat;
use sparsegp_bench::page::{head, row};

const STEPS: usize = 2000;

/// Particles at the end of plain steps and of Adam's.
pub fn banana(_: &[String], areas: &[Area<'_>]) -> Drawn {
    println!("\n### A banana: {STEPS} steps, from N((0, 5), I)");
    head(&["particles", "rule", "free energy", "mean", "variances", "affine residual"]);
    let rules = [("plain, 0.02", Rule::Plain, 0.02), ("Adam, 0.1", Rule::adam(), 0.1)];
    let mut pictures = areas.iter();
    for count in [3, 5, 10, 20, 50] {
        let mut ends = Vec::new();
        for (name, rule, rate) in rules {
            let root = Mat::<f64>::identity(2, 2);
            let start = Particles::matched(&[0.0, 5.0], root.as_ref(), count, 1)?;
            let options =
                GpfOptions { mean_rate: rate, spread_rate: rate, rule, ..GpfOptions::default() };
            let mut gpf = Gpf::new(start.clone(), options)?;
            let mut target = Banana::default();
            for step in 0..STEPS {
                gpf.advance(&mut target, step)?;
            }
            let own = gpf.particles();
            let (mean, variances) = (own.mean(), own.variances());
            let residual = start.affine_residual(own)?;
            let energy = gpf.state(&mut target)?.free_energy;
            row(&[
                count.to_string(),
                name.into(),
                format!("{energy:.4}"),
                format!("{:.2}, {:.2}", mean[0], mean[1]),
                format!("{:.2}, {:.2}", variances[0], variances[1]),
                shown(residual),
            ]);
            ends.push(own.x().to_owned());
        }
        if count == 3 {
            continue;
        }
        let Some(area) = pictures.next() else { continue };
        draw(area, count, &ends)?;
    }
    Ok(())
}

fn draw(area: &Area<'_>, count: usize, ends: &[Mat<f64>]) -> Drawn {
    let (across, up) = (-25.0..25.0, -12.0..16.0);
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{count} particles"), ("sans-serif", 14))
        .margin(8)
        .x_label_area_size(24)
        .y_label_area_size(30)
        .build_cartesian_2d(across.clone(), up.clone())?;
    chart.configure_mesh().disable_mesh().draw()?;
    let side = 90;
    let mut target = Banana::default();
    let at = |range: &std::ops::Range<f64>, k: usize| {
        range.start + (range.end - range.start) * (k as f64 + 0.5) / side as f64
    };
    let grid = Mat::from_fn(2, side * side, |q, k| match q {
        0 => at(&across, k % side),
        _ => at(&up, k / side),
    });
    let phi = Evaluation::of(&mut target, grid.as_ref())?.phi;
    let least = phi.iter().copied().fold(f64::INFINITY, f64::min);
    let (w, h) = (50.0 / side as f64, 28.0 / side as f64);
    chart.draw_series(phi.iter().enumerate().filter(|(_, p)| **p - least < 8.0).map(
        |(k, p)| {
            let (x, y) = (at(&across, k % side), at(&up, k / side));
            let shade = (-(p - least)).exp().sqrt();
            let fill = RGBAColor(70, 110, 180, 0.75 * shade).filled();
            Rectangle::new([(x - w / 2.0, y - h / 2.0), (x + w / 2.0, y + h / 2.0)], fill)
        },
    ))?;
    for (end, color) in ends.iter().zip([RGBColor(20, 20, 20), RGBColor(200, 60, 30)]) {
        let points =
            (0..end.ncols()).map(|n| Circle::new((end[(0, n)], end[(1, n)]), 3, color.filled()));
        chart.draw_series(points)?;
    }
    Ok(())
}

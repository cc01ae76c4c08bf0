//! How often central intervals hold the targets, against how often they should.
//!
//! Counts have steps in their distribution functions, so that intervals hold too many of them even if all is well: a target
//! is put at a random place within its step (randomised probability integral transform, Smith 1985; Czado, Gneiting & Held
//! 2009), which is uniform where the distribution is right.

use super::style::{BLUE, INK, Key, Mark, axes, band, header};
use super::{Drawn, Panel, Sampled};
use crate::format::count;
use crate::kind::Kind;
use plotters::prelude::*;
use sparsegp::fit::Fitted;
use sparsegp::metrics::density::{DensityMetrics, Predictions};
use sparsegp::rng;

/// Levels of the intervals: 5 %, 10 %, …, 95 %.
const LEVELS: usize = 19;

/// Returns the places of targets within the steps of their distribution functions, drawn with a
/// seed.
fn within_steps(below: &[f64], up_to: &[f64], seed: u64) -> Vec<f64> {
    let mut draws = rng::stream(seed, "calibration");
    let place = |(low, high): (&f64, &f64)| low + rng::uniform(&mut draws) * (high - low);
    below.iter().zip(up_to).map(place).collect()
}

/// Draws target `p` for these rows.
pub fn panel(panel: &Panel, fitted: &Fitted, p: usize, rows: &Sampled, which: &str) -> Drawn {
    let levels: Vec<f64> = (1..=LEVELS).map(|l| l as f64 / (LEVELS + 1) as f64).collect();
    let n = rows.x.nrows();
    let (below, up_to) = fitted.cdf(rows.x.as_ref(), rows.y.as_ref(), &rows.extra)?;
    let within = within_steps(below.col_as_slice(p), up_to.col_as_slice(p), fitted.seed);
    let steps = Kind::of(fitted) == Kind::Counts;
    let mut metrics = DensityMetrics::new(&levels)?;
    metrics.add(&Predictions {
        y: rows.y.col_as_slice(p),
        cdf: Some((&within, &within)),
        ..Predictions::default()
    })?;
    let shares: Vec<f64> = metrics.finish()?.coverage.iter().map(|c| c.share).collect();
    let target = &fitted.target_names[p];
    let caption = format!("{target}: intervals and {} of {which}", count(n, "row"));
    let keys = [
        Key {
            text: match steps {
                true => "share of the rows within the interval, at random within steps of counts",
                false => "share of the rows within the interval",
            },
            mark: Mark::Dot(BLUE),
        },
        Key { text: "as it should be", mark: Mark::Thin(INK) },
        Key { text: "what chance allows (95 %)", mark: Mark::Area(0.14) },
    ];
    let rest = header(panel, &caption, &keys)?;
    let names = ("probability of the central interval", "share of the rows within it");
    let mut chart = axes(&rest, (0.0, 1.0), (0.0, 1.0), names)?;
    // a binomial share of n rows, by its normal approximation
    let chance: Vec<(f64, f64, f64)> = (0..=50)
        .map(|i| {
            let level = f64::from(i) / 50.0;
            let wide = 1.96 * (level * (1.0 - level) / n.max(1) as f64).sqrt();
            (level, (level - wide).max(0.0), (level + wide).min(1.0))
        })
        .collect();
    band(&mut chart, &chance, 0.14)?;
    chart.draw_series(LineSeries::new([(0.0, 0.0), (1.0, 1.0)], INK.stroke_width(1)))?;
    let points = || levels.iter().copied().zip(shares.iter().copied());
    chart.draw_series(LineSeries::new(points(), BLUE.stroke_width(2)))?;
    chart.draw_series(points().map(|at| Circle::new(at, 3, BLUE.filled())))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_counts_are_calibrated() {
        // a fair coin, predicted as such: P(y < 0) = 0, P(y ≤ 0) = ½, P(y ≤ 1) = 1
        let coins = |low: f64| -> Vec<f64> {
            (0..2000).map(|i| if i % 2 == 0 { low } else { low + 0.5 }).collect()
        };
        let places = within_steps(&coins(0.0), &coins(0.5), 0);
        for level in [0.2, 0.5, 0.8] {
            let inside = places.iter().filter(|u| (**u - 0.5).abs() < 0.5 * level).count();
            // four standard deviations of a share of 2000 rows
            assert!((inside as f64 / 2000.0 - level).abs() < 0.045, "{level}: {inside}");
        }
        assert_eq!(within_steps(&[0.3], &[0.3], 1), [0.3]);
    }
}

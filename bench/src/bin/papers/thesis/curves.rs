//! Error and NLL of classes by time, which several figures show.

use sparsegp::data::Loaded;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, fit};
use sparsegp_bench::papers::{Axis, Kind, Panel, Series};
use sparsegp_bench::{class_scores, processor_seconds};

/// What whole trainings of growing length come to.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Seconds of the processor, of preparation and predictions too.
    pub seconds: f64,
    /// Share of wrong classes.
    pub error: f64,
    /// Mean negative log probability of the right class.
    pub nll: f64,
}

/// Trains, and scores test rows.
pub fn point(training: &Dataset, test: &Loaded, options: &FitOptions) -> sparsegp::Result<Point> {
    let begun = processor_seconds();
    let fitted = fit(training, options, &Cpu::default(), &mut ())?;
    let p = fitted.predict_proba(test.x.as_ref())?;
    let (error, nll) = class_scores(&p, &test.y);
    Ok(Point { seconds: processor_seconds() - begun, error, nll })
}

/// Returns the averages of curves of the same lengths, point by point.
pub fn averaged(curves: &[Vec<Point>]) -> Vec<Point> {
    let n = curves.len() as f64;
    let at = |k: usize, of: fn(&Point) -> f64| curves.iter().map(|c| of(&c[k])).sum::<f64>() / n;
    let points = curves.first().map_or(0, Vec::len);
    let one = |k| Point {
        seconds: at(k, |p| p.seconds),
        error: at(k, |p| p.error),
        nll: at(k, |p| p.nll),
    };
    (0..points).map(one).collect()
}

/// The last point of a curve.
///
/// # Panics
/// If it has none.
pub fn end(curve: &[Point]) -> Point {
    *curve.last().expect("a training")
}

/// Says when a curve comes within a margin of where a rival's ends, and whether that takes at most so large a share of the rival's
/// time.
pub fn sooner(
    own: &[Point],
    rival: &[Point],
    of: fn(&Point) -> f64,
    margin: f64,
    share: f64,
) -> (String, bool) {
    let goal = end(rival);
    match own.iter().find(|p| of(p) <= of(&goal) + margin) {
        Some(p) => {
            let ratio = goal.seconds / p.seconds.max(1e-9);
            (format!("after {:.2} s, {ratio:.1} times as fast", p.seconds), ratio * share >= 1.0)
        }
        None => {
            let last = end(own);
            let text = format!(
                "never: {:.3} after {:.2} s, the rival {:.3} after {:.2} s",
                of(&last),
                last.seconds,
                of(&goal),
                goal.seconds
            );
            (text, false)
        }
    }
}

/// Returns the cells of a table for a point: seconds, error, NLL.
pub fn cells(point: &Point) -> [String; 3] {
    [format!("{:.2}", point.seconds), format!("{:.3}", point.error), format!("{:.3}", point.nll)]
}

/// Returns panels of error and NLL by seconds, a line for every name.
pub fn panels(title: &str, names: &[&str], curves: &[Vec<Point>]) -> [Panel; 2] {
    let panel = |label: &str, of: fn(&Point) -> f64| {
        let lines = names.iter().zip(curves).enumerate().map(|(colour, (name, curve))| {
            let points = curve.iter().map(|p| (p.seconds, of(p))).collect();
            Series::new(*name, Kind::Line, colour, points)
        });
        Panel {
            title: if title.is_empty() { label.into() } else { format!("{title}: {label}") },
            x: Axis::new("seconds of the processor").log(),
            y: Axis::new(label),
            series: lines.collect(),
        }
    };
    [panel("error", |p| p.error), panel("NLL", |p| p.nll)]
}

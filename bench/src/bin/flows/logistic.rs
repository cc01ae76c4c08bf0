//! Logistic regression with a Gaussian prior on small tables, by minibatches, cross-validated.

use crate::common::{Area, Drawn, Law, Method, Start, follow};
use plotters::prelude::*;
use sparsegp::flow::targets::Logistic;
use sparsegp::flow::{MeanFlow, Rule};
use sparsegp::linalg::Mat;
use sparsegp::rng;
use sparsegp_bench::load;
use sparsegp_bench::page::{head, number, row};

const TABLES: [&str; 3] = ["ionosphere", "sonar", "heart"];
const METHODS: [Method; 8] = [
    Method::GpfMeanField,
    Method::GfMeanField,
    Method::DsviMeanField,
    Method::IblrMeanField,
    Method::Gpf(MeanFlow::Plain),
    Method::Gf(MeanFlow::Plain),
    Method::Fcs,
    Method::Svgd(crate::common::MEDIAN),
];

/// Seconds, NLL and error of a method.
type Curve = (Method, Vec<(f64, f64, f64)>);

/// A standardised design with a column of ones, and labels −1 and 1.
fn read(name: &str) -> (Mat<f64>, Vec<f64>) {
    let table = load(name, true);
    let (n, d) = (table.x.nrows(), table.x.ncols());
    let column = |q: usize| {
        let values: Vec<f64> = (0..n).map(|i| table.x[(i, q)]).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let size = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        (mean, if size > 0.0 { size } else { 1.0 })
    };
    let scales: Vec<(f64, f64)> = (0..d).map(column).collect();
    let x = Mat::from_fn(n, d + 1, |i, q| match scales.get(q) {
        Some((mean, size)) => (table.x[(i, q)] - mean) / size,
        None => 1.0,
    });
    (x, (0..n).map(|i| 2.0 * table.y[(i, 0)] - 1.0).collect())
}

fn some(x: &Mat<f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), x.ncols(), |i, q| x[(rows[i], q)])
}

/// Mean negative log likelihood and error of new rows.
fn judged(target: &Logistic, law: &Law, x: &Mat<f64>, y: &[f64]) -> sparsegp::Result<(f64, f64)> {
    let Law::Draws(w) = law else { return Ok((f64::NAN, f64::NAN)) };
    let p = target.probabilities(w.as_ref(), x.as_ref())?;
    let of = |i: usize| if y[i] > 0.0 { p[i] } else { 1.0 - p[i] };
    let n = y.len() as f64;
    let nll = (0..y.len()).map(|i| -of(i).max(1e-300).ln()).sum::<f64>() / n;
    Ok((nll, (0..y.len()).filter(|i| of(*i) < 0.5).count() as f64 / n))
}

/// Scores at the end, and against time.
pub fn tables(rest: &[String], areas: &[Area<'_>]) -> Drawn {
    let folds = number(rest, "--folds", 10.0) as usize;
    let steps = number(rest, "--steps", 5000.0) as usize;
    let rate = number(rest, "--rate", 1e-4);
    for (name, area) in TABLES.iter().zip(areas) {
        let (x, y) = read(name);
        let (n, d) = (x.nrows(), x.ncols());
        let order = rng::permutation(&mut rng::stream(0, "flows/folds"), n, n);
        let particles = 100.min(d + 1);
        println!(
            "\n### `{name}`, {n} rows, {d} weights, prior variance 10: {steps} steps of 100 rows, {folds} folds"
        );
        head(&["method", "rule", "NLL half way", "at the end", "error", "µs a step"]);
        let mut curves = Vec::new();
        for (rule, eta) in [(Rule::Plain, rate), (Rule::rms_prop(), 100.0 * rate)] {
            let kind = if rule == Rule::Plain { "plain" } else { "RMSProp" };
            for method in METHODS {
                let mut curve: Vec<(f64, f64, f64)> = Vec::new();
                let (mut lost, mut each) = (0, 0.0);
                for fold in 0..folds {
                    let (test, train): (Vec<usize>, Vec<usize>) =
                        (0..n).partition(|at| at % folds == fold);
                    let rows = |of: &[usize]| of.iter().map(|at| order[*at]).collect::<Vec<_>>();
                    let (test, train) = (rows(&test), rows(&train));
                    let labels = |of: &[usize]| of.iter().map(|i| y[*i]).collect::<Vec<_>>();
                    let seed = fold as u64;
                    let of_fold = Logistic::new(some(&x, &train), labels(&train), 10.0)?;
                    let mut target = of_fold.in_batches(100, seed)?;
                    let start = Start {
                        mean: vec![0.0; d],
                        deviation: 1.0,
                        particles,
                        // the rule of the precision has a rate of its own
                        rate: if method == Method::IblrMeanField { 0.01 } else { eta },
                        of_particles: rule,
                        of_parameters: rule,
                        seed,
                    };
                    let plan = (steps, (steps / 20).max(1));
                    let (path, gone) = follow(method, &start, &mut target, plan, Some(1000))?;
                    lost += usize::from(gone.is_some());
                    let (x, y) = (some(&x, &test), labels(&test));
                    curve.resize(curve.len().max(path.len()), (0.0, 0.0, 0.0));
                    for (sum, (_, seconds, law)) in curve.iter_mut().zip(&path) {
                        let (nll, error) = judged(&target, law, &x, &y)?;
                        let share = 1.0 / folds as f64;
                        *sum =
                            (sum.0 + share * seconds, sum.1 + share * nll, sum.2 + share * error);
                    }
                    each += path.last().map_or(0.0, |(done, s, _)| s / (*done).max(1) as f64);
                }
                let last = curve.last().copied().unwrap_or_default();
                let mut cells = vec![method.name().to_owned(), kind.to_owned()];
                cells.push(format!("{:.3}", curve[0].1));
                cells.push(format!("{:.3}", curve[curve.len() / 2].1));
                cells.push(match lost {
                    0 => format!("{:.3}", last.1),
                    lost => format!("lost in {lost} folds"),
                });
                cells.push(format!("{:.3}", last.2));
                cells.push(format!("{:.0}", 1e6 * each / folds as f64));
                row(&cells);
                if lost == 0 && rule != Rule::Plain {
                    curves.push((method, curve));
                }
            }
        }
        draw(area, name, &curves)?;
    }
    Ok(())
}

fn draw(area: &Area<'_>, name: &str, curves: &[Curve]) -> Drawn {
    let all = || curves.iter().flat_map(|(_, curve)| curve);
    let longest = all().map(|(s, ..)| *s).fold(0.01, f64::max);
    let least = all().map(|(_, nll, _)| *nll).fold(f64::INFINITY, f64::min);
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{name}, RMSProp"), ("sans-serif", 14))
        .margin(8)
        .x_label_area_size(30)
        .y_label_area_size(44)
        .build_cartesian_2d((0.002..longest).log_scale(), 0.97 * least..2.0 * least)?;
    chart.configure_mesh().x_desc("seconds").y_desc("NLL of new rows").draw()?;
    for (i, (method, curve)) in curves.iter().enumerate() {
        let color = Palette99::pick(i).to_rgba();
        let points = curve.iter().skip(1).map(|(s, nll, _)| (*s, *nll));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(method.name())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 12, y)], color));
    }
    chart.configure_series_labels().label_font(("sans-serif", 9)).draw()?;
    Ok(())
}

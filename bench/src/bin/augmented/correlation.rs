//! How fast chains forget where they were: autocorrelation of f under Gibbs, Hamiltonian paths of fixed length and paths without
//! U-turns, with the local variables and without (Galy-Fajou 2022, Figure 7.3).

use crate::common::{Table, digits, kernel, number, option, problem};
use plotters::prelude::*;
use sparsegp::linalg::Mat;
use sparsegp::samplers::gibbs::{self, GibbsOptions};
use sparsegp::samplers::hmc::{self, HmcOptions, Path};
use sparsegp::samplers::joint::Variables;
use sparsegp_bench::load;
use std::ops::ControlFlow;
use std::time::Instant;

/// Lags that are looked at.
const LAGS: usize = 20;

/// A sampler with the mean and the deviation over the rows of the autocorrelation at every lag.
type Curve = (String, Vec<(f64, f64)>);

/// Runs one chain of each sampler.
pub fn run(arguments: &[String]) {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    one.install(|| all(arguments));
}

fn all(arguments: &[String]) {
    let draws = number(arguments, "--draws", 2000.0) as usize;
    let burn_in = number(arguments, "--burn-in", 500.0) as usize;
    let spec = kernel(number(arguments, "--lengthscale", 3.0), 1.0);
    let likelihood = "student-t(df=3, scale=1)";
    let (model, rows, _) = problem(&load("housing", false), likelihood, &spec, "gibbs");
    let header = ["sampler", "seconds", "lag 1", "lag 5", "lag 10", "deviation at lag 1"];
    let mut table = Table::new(arguments, &header);
    let mut curves: Vec<Curve> = Vec::new();
    let mut say = |name: &str, f: &[Mat<f64>], seconds: f64| {
        let curve = autocorrelation(f);
        let at = |lag: usize| format!("{:.3}", curve[lag].0);
        table.row(&[
            name.into(),
            digits(seconds),
            at(1),
            at(5),
            at(10),
            format!("{:.3}", curve[1].1),
        ]);
        curves.push((name.into(), curve));
    };
    let options = GibbsOptions { chains: 1, draws, burn_in, ..GibbsOptions::default() };
    let clock = Instant::now();
    let found = gibbs::sample(&model, &rows, &options, &mut |_, _| ControlFlow::Continue(()));
    say("Gibbs", &found.expect("a chain").f[0], clock.elapsed().as_secs_f64());
    for (variables, model_name) in
        [(Variables::Augmented, "augmented"), (Variables::Original, "original")]
    {
        for (path, name) in [(Path::Steps(10), "HMC"), (Path::NoUTurn { depth: 10 }, "NUTS")] {
            let options =
                HmcOptions { chains: 1, draws, burn_in, variables, path, ..HmcOptions::default() };
            let clock = Instant::now();
            let mut watch = |_, _| ControlFlow::Continue(());
            let found = hmc::sample(&model, &rows, &options, &mut watch).expect("a chain");
            let seconds = clock.elapsed().as_secs_f64();
            say(&format!("{name}, {model_name} model"), &found.draws.f[0], seconds);
        }
    }
    if let Some(path) = option(arguments, "--svg") {
        draw(&path, &curves).expect("a picture");
    }
}

/// Mean and deviation over the rows of the autocorrelation of f at lags 0 to [`LAGS`].
fn autocorrelation(draws: &[Mat<f64>]) -> Vec<(f64, f64)> {
    let (count, rows) = (draws.len(), draws[0].nrows());
    let of = |row: usize| -> Vec<f64> {
        let values: Vec<f64> = draws.iter().map(|f| f[(row, 0)]).collect();
        let mean = values.iter().sum::<f64>() / count as f64;
        let at = |lag: usize| -> f64 {
            values.iter().zip(&values[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum()
        };
        let variance = at(0);
        (0..=LAGS).map(|lag| at(lag) / variance).collect()
    };
    let each: Vec<Vec<f64>> = (0..rows).map(of).collect();
    let over = |lag: usize| {
        let mean = each.iter().map(|own| own[lag]).sum::<f64>() / rows as f64;
        let square = each.iter().map(|own| (own[lag] - mean).powi(2)).sum::<f64>() / rows as f64;
        (mean, square.sqrt())
    };
    (0..=LAGS).map(over).collect()
}

fn draw(path: &str, curves: &[Curve]) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, (640, 420)).into_drawing_area();
    root.fill(&WHITE)?;
    let low = curves.iter().flat_map(|(_, c)| c).map(|(m, d)| m - d).fold(0.0_f64, f64::min);
    let mut chart = ChartBuilder::on(&root)
        .margin(14)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..LAGS as f64, low - 0.05..1.05)?;
    chart.configure_mesh().disable_mesh().x_desc("lag").y_desc("autocorrelation of f").draw()?;
    let colours = [
        BLACK,
        RGBColor(213, 94, 0),
        RGBColor(230, 159, 0),
        RGBColor(0, 114, 178),
        RGBColor(86, 180, 233),
    ];
    for ((name, curve), colour) in curves.iter().zip(colours) {
        let upper = curve.iter().enumerate().map(|(lag, (m, d))| (lag as f64, m + d));
        let lower = curve.iter().enumerate().rev().map(|(lag, (m, d))| (lag as f64, m - d));
        let band: Vec<(f64, f64)> = upper.chain(lower).collect();
        chart.draw_series([Polygon::new(band, colour.mix(0.12))])?;
        let line = curve.iter().enumerate().map(|(lag, (m, _))| (lag as f64, *m));
        chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?.label(name).legend(
            move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2)),
        );
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).draw()?;
    root.present()?;
    Ok(())
}

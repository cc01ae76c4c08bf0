//! Gaussian targets: rising condition numbers, fewer particles than dimensions, few dimensions that matter.

use crate::common::{Area, Drawn, MEDIAN, Method, Start, follow, middle, shown};
use plotters::prelude::*;
use sparsegp::flow::compared::SvgdKernel;
use sparsegp::flow::targets::Gaussian;
use sparsegp::flow::{MeanFlow, Rule};
use sparsegp::linalg::Mat;
use sparsegp::rng;
use sparsegp_bench::page::{head, normal, number, row};

/// Errors of a method by seconds.
type Line = (Method, Vec<(f64, f64)>);

/// A target N(μ, Σ) with these eigenvalues in a random basis.
struct Problem {
    mean: Vec<f64>,
    covariance: Mat<f64>,
    target: Gaussian,
}

/// A random orthogonal matrix.
fn basis(dim: usize, seed: u64) -> Mat<f64> {
    let mut rng = rng::stream(seed, "flows/basis");
    Mat::from_fn(dim, dim, |_, _| normal(&mut rng)).qr().compute_thin_Q()
}

fn problem(eigenvalues: &[f64], seed: u64) -> sparsegp::Result<Problem> {
    let dim = eigenvalues.len();
    let q = basis(dim, seed);
    let mut rng = rng::stream(seed, "flows/mean");
    let mean: Vec<f64> = (0..dim).map(|_| normal(&mut rng)).collect();
    let of = |power: f64| {
        let scaled = Mat::from_fn(dim, dim, |i, k| q[(i, k)] * eigenvalues[k].powf(power));
        let full = &scaled * q.transpose();
        // symmetric to the bit
        Mat::from_fn(dim, dim, |i, j| 0.5 * (full[(i, j)] + full[(j, i)]))
    };
    let target = Gaussian::new(mean.clone(), of(-1.0))?;
    Ok(Problem { mean, covariance: of(1.0), target })
}

/// log₁₀ λ rises from −1 to log₁₀ κ − 1.
fn eigenvalues(dim: usize, condition: f64) -> Vec<f64> {
    let at = |i: usize| condition.log10() * i as f64 / (dim - 1) as f64 - 1.0;
    (0..dim).map(|i| 10.0_f64.powf(at(i))).collect()
}

fn start(problem: &Problem, particles: usize, rate: f64, seed: u64) -> Start {
    let mut rng = rng::stream(seed, "flows/start");
    Start {
        mean: problem.mean.iter().map(|_| normal(&mut rng)).collect(),
        deviation: 1.0,
        particles,
        rate,
        of_particles: Rule::Plain,
        of_parameters: Rule::rms_prop(),
        seed,
    }
}

const CONDITIONS: [f64; 3] = [1.0, 10.0, 100.0];
const METHODS: [Method; 10] = [
    Method::Gpf(MeanFlow::Plain),
    Method::Gpf(MeanFlow::Natural),
    Method::Gf(MeanFlow::Plain),
    Method::Gf(MeanFlow::Natural),
    Method::Dsvi,
    Method::Fcs,
    Method::IblrHessian,
    Method::Iblr,
    Method::Svgd(MEDIAN),
    Method::Svgd(SvgdKernel::Linear),
];

/// Errors of mean and covariance at the end, and of the covariance against time.
pub fn conditions(rest: &[String], areas: &[Area<'_>]) -> Drawn {
    let runs = number(rest, "--runs", 10.0) as u64;
    let steps = number(rest, "--steps", 30_000.0) as usize;
    let dim = number(rest, "--dimensions", 20.0) as usize;
    println!(
        "\n### Gaussian targets, {dim} dimensions, {} particles, {steps} steps of 0.01, medians of {runs} runs",
        dim + 1
    );
    head(&[
        "method",
        "κ = 1: mean",
        "covariance",
        "κ = 10: mean",
        "covariance",
        "κ = 100: mean",
        "covariance",
        "µs a step",
    ]);
    let mut curves: Vec<Vec<Line>> = vec![Vec::new(); CONDITIONS.len()];
    for method in METHODS {
        let (mut cells, mut seconds) = (vec![method.name().to_owned()], f64::NAN);
        for (at, condition) in CONDITIONS.iter().enumerate() {
            let (mut means, mut covariances) = (Vec::new(), Vec::new());
            for seed in 0..runs {
                let mut own = problem(&eigenvalues(dim, *condition), seed)?;
                let begin = start(&own, dim + 1, 0.01, seed);
                let every = (steps / 40).max(1);
                let (path, lost) = follow(method, &begin, &mut own.target, (steps, every), None)?;
                let errors = |law: &crate::common::Law| law.errors(&own.mean, &own.covariance);
                let (m, c) = match lost {
                    Some(_) => (f64::NAN, f64::NAN),
                    None => path.last().map_or((f64::NAN, f64::NAN), |(.., law)| errors(law)),
                };
                means.push(m);
                covariances.push(c);
                if let Some((done, own_seconds, _)) = path.last() {
                    seconds = own_seconds / (*done).max(1) as f64;
                }
                if seed == 0 {
                    let points =
                        path.iter().skip(1).map(|(_, s, law)| (*s, errors(law).1.max(1e-14)));
                    curves[at].push((method, points.collect()));
                }
            }
            cells.push(shown(middle(&means)));
            cells.push(shown(middle(&covariances)));
        }
        cells.push(format!("{:.0}", 1e6 * seconds));
        row(&cells);
    }
    for ((area, condition), lines) in areas.iter().zip(CONDITIONS).zip(&curves) {
        let longest = lines.iter().flat_map(|(_, l)| l).map(|(s, _)| *s).fold(0.01, f64::max);
        let mut chart = ChartBuilder::on(area)
            .caption(format!("κ = {condition}"), ("sans-serif", 14))
            .margin(8)
            .x_label_area_size(30)
            .y_label_area_size(48)
            .build_cartesian_2d((0.003..longest).log_scale(), (1e-14..100.0_f64).log_scale())?;
        chart
            .configure_mesh()
            .x_desc("seconds")
            .y_desc("error of the covariance")
            .y_label_formatter(&|v| format!("{v:.0e}"))
            .draw()?;
        for (i, (method, line)) in lines.iter().enumerate() {
            let color = Palette99::pick(i).to_rgba();
            let points = line.iter().copied();
            chart
                .draw_series(LineSeries::new(points, color.stroke_width(2)))?
                .label(method.name())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 12, y)], color));
        }
        if condition == 1.0 {
            chart
                .configure_series_labels()
                .label_font(("sans-serif", 9))
                .position(SeriesLabelPosition::LowerLeft)
                .draw()?;
        }
    }
    Ok(())
}

/// |tr(C − Σ)| with N particles against the sum of the smallest eigenvalues, which they cannot have.
pub fn ranks(rest: &[String], area: &Area<'_>) -> Drawn {
    let steps = number(rest, "--steps", 20_000.0) as usize;
    let rate = number(rest, "--rate", 1e-3);
    let dim = 50;
    let counts = [2, 5, 10, 20, 30, 40, 50, 51];
    println!(
        "\n### Fewer particles than dimensions: tr Σ − tr C, {dim} dimensions, {steps} steps of {rate}"
    );
    head(&["κ", "N", "found", "predicted", "off by"]);
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(30)
        .y_label_area_size(48)
        .build_cartesian_2d(0..dim + 2, (1e-6..1000.0_f64).log_scale())?;
    chart.configure_mesh().x_desc("particles").y_desc("missing variance").draw()?;
    for (k, condition) in [1.0, 5.0, 10.0, 50.0, 100.0].into_iter().enumerate() {
        let mut sorted = eigenvalues(dim, condition);
        sorted.sort_by(|a, b| b.total_cmp(a));
        let mut points = Vec::new();
        for count in counts {
            let mut own = problem(&eigenvalues(dim, condition), 1)?;
            let begin = Start { mean: own.mean.clone(), ..start(&own, count, rate, 3) };
            let method = Method::Gpf(MeanFlow::Plain);
            let (path, _) = follow(method, &begin, &mut own.target, (steps, steps), None)?;
            let Some((.., crate::common::Law::Moments(_, c))) = path.last() else { continue };
            let trace = |m: &Mat<f64>| (0..dim).map(|i| m[(i, i)]).sum::<f64>();
            let found = trace(&own.covariance) - trace(c);
            let predicted: f64 = sorted.iter().skip(count - 1).sum();
            let off = (found - predicted).abs() / trace(&own.covariance);
            row(&[
                condition.to_string(),
                count.to_string(),
                shown(found),
                shown(predicted),
                format!("{:.2} % of tr Σ", 100.0 * off),
            ]);
            points.push((count, found.abs().max(1e-6), predicted.max(1e-6)));
        }
        let color = Palette99::pick(k).to_rgba();
        chart
            .draw_series(LineSeries::new(points.iter().map(|(n, _, p)| (*n, *p)), color))?
            .label(format!("κ = {condition}"))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 12, y)], color));
        chart
            .draw_series(points.iter().map(|(n, f, _)| Circle::new((*n, *f), 3, color.filled())))?;
    }
    chart
        .configure_series_labels()
        .label_font(("sans-serif", 10))
        .position(SeriesLabelPosition::LowerLeft)
        .draw()?;
    Ok(())
}

/// 500 dimensions, of which K have a variance.
pub fn low_rank(rest: &[String]) -> Drawn {
    let runs = number(rest, "--runs", 3.0) as u64;
    let steps = number(rest, "--steps", 5000.0) as usize;
    let dim = number(rest, "--dimensions", 500.0) as usize;
    println!(
        "\n### {dim} dimensions of which K matter: 20 particles, {steps} steps of 0.01 by RMSProp, medians of {runs} runs"
    );
    head(&[
        "method",
        "K = 10: mean",
        "covariance",
        "K = 20: mean",
        "covariance",
        "K = 30: mean",
        "covariance",
        "ms a step",
    ]);
    for method in [
        Method::Gpf(MeanFlow::Plain),
        Method::Gf(MeanFlow::Plain),
        Method::Fcs,
        Method::Svgd(MEDIAN),
        Method::Svgd(SvgdKernel::Linear),
    ] {
        let (mut cells, mut seconds) = (vec![method.name().to_owned()], f64::NAN);
        for k in [10, 20, 30] {
            let (mut means, mut covariances) = (Vec::new(), Vec::new());
            for seed in 0..runs {
                let mut rng = rng::stream(seed, "flows/eigenvalues");
                let mut large = || loop {
                    let value = 2.0 + normal(&mut rng);
                    if value > 0.1 {
                        break value;
                    }
                };
                let values: Vec<f64> =
                    (0..dim).map(|i| if i < k { large() } else { 1e-8 }).collect();
                let mut own = problem(&values, seed)?;
                let begin = Start { of_particles: Rule::rms_prop(), ..start(&own, 20, 0.01, seed) };
                let (path, lost) = follow(method, &begin, &mut own.target, (steps, steps), None)?;
                let (m, c) = match (path.last(), lost) {
                    (Some((.., law)), None) => law.errors(&own.mean, &own.covariance),
                    _ => (f64::NAN, f64::NAN),
                };
                means.push(m);
                covariances.push(c);
                if let Some((done, own, _)) = path.last() {
                    seconds = own / (*done).max(1) as f64;
                }
            }
            cells.push(shown(middle(&means)));
            cells.push(shown(middle(&covariances)));
        }
        cells.push(format!("{:.1}", 1e3 * seconds));
        row(&cells);
    }
    Ok(())
}

//! A rough field over a plane, by nearest neighbours and by other methods: `cargo run --release -p sparsegp-bench --bin space -- [OPTION …]
//! [METHOD …]`.
//!
//! The field is a sum of 300 waves with the heavy tails of a Matérn spectrum, three times as rough along one input as along the
//! other, with noise of variance 0.04; 4000 other places are for testing. Kernel `matern32`, all else as by default. Prints seconds of the fit and of an
//! evaluation with its gradient, and scores in standardised units.
//!
//! With `--field` it is a draw of a Matérn kernel of smoothness NU (`inf`: squared exponential) over the unit cube of D inputs, by 1500
//! waves, with lengthscales about LENGTH (each times e^u, u uniform on ±0.7), and noise of standard deviation NOISE; with FAR, another such draw
//! with lengthscales FAR/LENGTH times as long is added.
//!
//! With `--likelihood bernoulli | poisson` targets are classes with the log odds 2f, or counts about e^f, of the field without noise; scores
//! are the mean log density of new targets, and the error and coverage of intervals of what the model calls f.

use clap::Parser;
use rand_distr::{ChiSquared, Distribution, Poisson, StandardNormal};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, fit};
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};
use std::f64::consts::TAU;
use std::time::Instant;

/// Test rows.
const TEST: usize = 4000;

/// A rough field over a plane, by nearest neighbours and by other methods
#[derive(Parser)]
struct Options {
    /// Methods
    #[arg(default_value = "vecchia")]
    methods: Vec<String>,
    /// Rows to learn from
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 30_000, 100_000])]
    rows: Vec<usize>,
    /// D,LENGTH,NU,NOISE of a drawn field, and FAR where there is another
    #[arg(long, value_delimiter = ',')]
    field: Option<Vec<f64>>,
    /// Kernel; `matern32`, and `auto` for a drawn field
    #[arg(long)]
    kernel: Option<String>,
    /// Inducing points of the methods that have them
    #[arg(long)]
    inducing: Option<usize>,
    /// Distribution of the targets
    #[arg(long, default_value = "gaussian", value_parser = ["gaussian", "bernoulli", "poisson"])]
    likelihood: String,
}

/// Targets of another likelihood at values of the field.
fn observed(likelihood: &str, f: &Mat<f64>, name: &str) -> Mat<f64> {
    let mut rng = stream(13, name);
    Mat::from_fn(f.nrows(), 1, |i, _| match likelihood {
        "bernoulli" => f64::from(uniform(&mut rng) < 1.0 / (1.0 + (-2.0 * f[(i, 0)]).exp())),
        _ => Poisson::new(f[(i, 0)].exp()).expect("a mean").sample(&mut rng),
    })
}

fn field(rows: usize, name: &str, noise: f64) -> InMemory {
    let (mut rng, mut of_waves) = (stream(11, name), stream(12, "waves"));
    let mut wave = || {
        let far = 3.0 / (0.05 + uniform(&mut of_waves)).sqrt();
        let angle = TAU * uniform(&mut of_waves);
        let phase = TAU * uniform(&mut of_waves);
        [0.9 * far * angle.cos(), 0.3 * far * angle.sin(), phase]
    };
    let waves: Vec<[f64; 3]> = (0..300).map(|_| wave()).collect();
    let x = Mat::from_fn(rows, 2, |_, _| 20.0 * uniform(&mut rng));
    let y = Mat::from_fn(rows, 1, |i, _| {
        let value = |[a, b, c]: &[f64; 3]| (a * x[(i, 0)] + b * x[(i, 1)] + c).sin();
        let normal: f64 = (0..12).map(|_| uniform(&mut rng)).sum::<f64>() - 6.0;
        let sum = waves.iter().map(value).sum::<f64>() / 300_f64.sqrt();
        if noise > 0.0 { 3.0 + sum + noise * normal } else { sum }
    });
    InMemory::new(x, y).expect("rows")
}

/// Waves of a drawn field.
const WAVES: usize = 1500;

fn drawn(rows: usize, name: &str, [d, length, nu, noise, far]: [f64; 5]) -> InMemory {
    let (mut rng, mut of_waves) = (stream(11, name), stream(12, "waves"));
    let d = d as usize;
    let scales: Vec<f64> =
        (0..d).map(|_| length * (1.4 * uniform(&mut of_waves) - 0.7).exp()).collect();
    let mut wave = || {
        let heavy = match nu.is_finite() {
            true => {
                let drawn = ChiSquared::new(2.0 * nu).expect("a smoothness").sample(&mut of_waves);
                (drawn / (2.0 * nu)).sqrt()
            }
            false => 1.0,
        };
        let mut along = |scale: &f64| {
            let normal: f64 = StandardNormal.sample(&mut of_waves);
            normal / (heavy * scale)
        };
        let mut own: Vec<f64> = scales.iter().map(&mut along).collect();
        own.push(TAU * uniform(&mut of_waves));
        own
    };
    let mut waves: Vec<Vec<f64>> = (0..WAVES).map(|_| wave()).collect();
    if far > 0.0 {
        let slower = |own: Vec<f64>| {
            let along = own.iter().enumerate();
            along.map(|(q, v)| if q < d { v * length / far } else { *v }).collect()
        };
        waves.extend((0..WAVES).map(|_| slower(wave())).collect::<Vec<_>>());
    }
    let x = Mat::from_fn(rows, d, |_, _| uniform(&mut rng));
    let y = Mat::from_fn(rows, 1, |i, _| {
        let phase = |own: &Vec<f64>| (0..d).map(|q| own[q] * x[(i, q)]).sum::<f64>() + own[d];
        let normal: f64 = StandardNormal.sample(&mut rng);
        let sum: f64 = waves.iter().map(|own| phase(own).cos()).sum();
        sum * (2.0 / WAVES as f64).sqrt() + noise * normal
    });
    InMemory::new(x, y).expect("rows")
}

fn main() {
    let options = Options::parse();
    let gaussian = options.likelihood == "gaussian";
    let of_kernel: Option<[f64; 5]> = options.field.clone().map(|mut own| {
        own.resize(5, 0.0);
        if !gaussian {
            own[3] = 0.0;
        }
        own.try_into().expect("five numbers")
    });
    let rows_of = |rows: usize, name: &str| match of_kernel {
        Some(own) => drawn(rows, name, own),
        None => field(rows, name, if gaussian { 0.2 } else { 0.0 }),
    };
    // a drawn field is not said to be of a kernel that is known
    let usual = if of_kernel.is_some() { "auto" } else { "matern32" };
    let test = rows_of(TEST, "test");
    // the log odds are those of the field
    let named = match &*options.likelihood {
        "bernoulli" => "bernoulli(link=logit)",
        other => other,
    };
    println!("| method | rows | fit s | evaluations | one s | NLPD | RMSE | in 95 % |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for rows in &options.rows {
        let mut rows = rows_of(*rows, "rows");
        if !gaussian {
            rows.y = observed(&options.likelihood, &rows.y, "rows");
        }
        let data = Dataset::from_rows(rows, gaussian).expect("a table");
        for method in &options.methods {
            let own = FitOptions {
                method: method.clone(),
                kernel: options.kernel.clone().unwrap_or_else(|| usual.into()),
                likelihood: Some(named.into()),
                inducing: options.inducing.filter(|_| !method.starts_with("vecchia")),
                ..FitOptions::default()
            };
            row(&data, &own, &test);
        }
    }
}

/// Mean log density, error and coverage of 95 % intervals, in standardised units of the targets.
fn of_numbers(fitted: &Fitted, test: &InMemory) -> [f64; 3] {
    let (mut x, mut y) = (test.x.clone(), test.y.clone());
    fitted.scaler.scale_x(x.as_mut()).expect("two inputs");
    fitted.scaler.scale_y(y.as_mut()).expect("one target");
    let (mean, variance) = fitted.posterior.predict_f(x.as_ref()).expect("predictions");
    let (mut density, mut squares, mut within) = (0.0, 0.0, 0);
    for i in 0..TEST {
        let (apart, v) = (y[(i, 0)] - mean[(i, 0)], variance[(i, 0)] + fitted.model.noise());
        density -= 0.5 * ((TAU * v).ln() + apart * apart / v);
        squares += apart * apart;
        within += usize::from(apart.abs() < 1.96 * v.sqrt());
    }
    [density, squares, within as f64]
}

/// The same of other targets, whose error and coverage are those of the function.
fn of_others(fitted: &Fitted, test: &InMemory, likelihood: &str) -> [f64; 3] {
    let y = observed(likelihood, &test.y, "test");
    let density = fitted.log_density(test.x.as_ref(), y.as_ref(), &[]).expect("densities");
    let mut x = test.x.clone();
    fitted.scaler.scale_x(x.as_mut()).expect("inputs");
    let (mean, variance) = fitted.posterior.predict_f(x.as_ref()).expect("predictions");
    let times = if likelihood == "bernoulli" { 2.0 } else { 1.0 };
    let (mut squares, mut within) = (0.0, 0.0);
    for i in 0..TEST {
        let apart = times * test.y[(i, 0)] - mean[(i, 0)];
        squares += apart * apart;
        within += f64::from(u8::from(apart.abs() < 1.96 * variance[(i, 0)].sqrt()));
    }
    [density.iter().sum(), squares, within]
}

fn row(data: &Dataset, options: &FitOptions, test: &InMemory) {
    let start = Instant::now();
    let fitted = fit(data, options, &Cpu::default(), &mut ()).expect("a fit");
    let seconds = start.elapsed().as_secs_f64();
    let report = fitted.report.as_ref().expect("a report");
    let start = Instant::now();
    fitted.model.evaluate(&Cpu::default(), &*data.source).expect("a value");
    let one = start.elapsed().as_secs_f64();
    let [density, squares, within] = match options.likelihood.as_deref().unwrap_or("gaussian") {
        "gaussian" => of_numbers(&fitted, test),
        other => of_others(&fitted, test, other.split('(').next().unwrap_or(other)),
    };
    let count = TEST as f64;
    println!(
        "| `{}` | {} | {seconds:.1} | {} | {one:.2} | {:.3} | {:.3} | {:.1} |",
        fitted.model.method.name(),
        data.source.rows(),
        report.evaluations,
        -density / count,
        (squares / count).sqrt(),
        100.0 * within / count
    );
}

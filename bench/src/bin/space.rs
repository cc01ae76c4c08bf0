//! A rough field over a plane, by nearest neighbours and by other methods: `cargo run --release -p sparsegp-bench --bin space --
//! [--rows 10000,30000,100000] [METHOD …]`.
//!
//! The field is a sum of 300 waves with the heavy tails of a Matérn spectrum, three times as rough along one input as along the
//! other, with noise of variance 0.04; 4000 other places are for testing. Kernel `matern32`, all else as by default. Prints seconds of the fit and of an
//! evaluation with its gradient, and scores in standardised units.

use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, fit};
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};
use std::f64::consts::TAU;
use std::time::Instant;

/// Test rows.
const TEST: usize = 4000;

fn field(rows: usize, name: &str) -> InMemory {
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
        3.0 + waves.iter().map(value).sum::<f64>() / 300_f64.sqrt() + 0.2 * normal
    });
    InMemory::new(x, y).expect("rows")
}

fn main() {
    let (mut sizes, mut methods) = (vec![10_000, 30_000, 100_000], Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--rows" => {
                let list = words.next().expect("numbers of rows");
                sizes = list.split(',').map(|n| n.parse().expect("a number")).collect();
            }
            _ => methods.push(word),
        }
    }
    if methods.is_empty() {
        methods.push("vecchia".into());
    }
    let test = field(TEST, "test");
    println!("| method | rows | fit s | evaluations | one s | NLPD | RMSE | in 95 % |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for rows in sizes {
        let data = Dataset::from_rows(field(rows, "rows"), true).expect("a table");
        for method in &methods {
            row(&data, method, &test);
        }
    }
}

fn row(data: &Dataset, method: &str, test: &InMemory) {
    let (method, kernel) = (method.to_owned(), "matern32".to_owned());
    let options = FitOptions { method, kernel, ..FitOptions::default() };
    let start = Instant::now();
    let fitted = fit(data, &options, &Cpu::default(), &mut ()).expect("a fit");
    let seconds = start.elapsed().as_secs_f64();
    let report = fitted.report.as_ref().expect("a report");
    let start = Instant::now();
    fitted.model.evaluate(&Cpu::default(), &*data.source).expect("a value");
    let one = start.elapsed().as_secs_f64();
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
    let count = TEST as f64;
    println!(
        "| `{}` | {} | {seconds:.1} | {} | {one:.2} | {:.3} | {:.3} | {:.1} |",
        fitted.model.method.name(),
        data.source.rows(),
        report.evaluations,
        -density / count,
        (squares / count).sqrt(),
        100.0 * within as f64 / count
    );
}

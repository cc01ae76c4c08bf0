//! What it is worth to look through errors of inputs: `cargo run --release -p sparsegp-bench --bin noisy_inputs`.
//!
//! Simulates tables of a function of one or two inputs, of which the first is measured with errors of a known standard deviation
//! in four of five rows. Each is fitted with these (`titsias2025`, q of every uncertain input), and without, as if inputs were
//! exact. Both are judged by the function itself on a grid, and by new rows with and without errors. The model that ignores the
//! errors also gets them for its predictions only. Prints means over tables.

use rand_distr::{Distribution, StandardNormal};
use sparsegp::data::Loaded;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of, fit};
use sparsegp::linalg::Mat;
use sparsegp::rng;

const TABLES: u64 = 20;
const NOISE: f64 = 0.1;

type Row = (Vec<f64>, f64, f64);

/// What is simulated.
struct Problem {
    name: &'static str,
    rows: usize,
    inputs: usize,
    /// Standard deviation of the errors.
    error: f64,
    function: fn(&[f64]) -> f64,
}

const PROBLEMS: &[Problem] = &[
    Problem {
        name: "sin 2x + x/2",
        rows: 300,
        inputs: 1,
        error: 0.35,
        function: |x| (2.0 * x[0]).sin() + 0.5 * x[0],
    },
    Problem {
        name: "sin 2x + x/2, small errors",
        rows: 300,
        inputs: 1,
        error: 0.1,
        function: |x| (2.0 * x[0]).sin() + 0.5 * x[0],
    },
    Problem {
        name: "tanh 3(x − 3), few rows",
        rows: 80,
        inputs: 1,
        error: 0.5,
        function: |x| (3.0 * (x[0] - 3.0)).tanh(),
    },
    Problem {
        name: "sin 2x cos z",
        rows: 600,
        inputs: 2,
        error: 0.3,
        function: |x| (2.0 * x[0]).sin() * x[1].cos(),
    },
];

impl Problem {
    /// What was measured, its standard deviation, and the target.
    fn rows(&self, n: usize, seed: u64) -> Vec<Row> {
        let mut rng = rng::stream(seed, self.name);
        (0..n)
            .map(|i| {
                let x: Vec<f64> = (0..self.inputs).map(|_| 6.0 * rng::uniform(&mut rng)).collect();
                let e = if i % 5 == 0 { 0.0 } else { self.error };
                let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
                let y = (self.function)(&x) + NOISE * normal();
                let mut t = x;
                t[0] += e * normal();
                (t, e, y)
            })
            .collect()
    }

    fn fitted(&self, rows: &[Row], deviations: bool) -> sparsegp::Result<Fitted> {
        let d = self.inputs;
        let mut names: Vec<String> = (0..d).map(|q| format!("x{q}")).collect();
        names.extend(deviations.then(|| "sd".into()));
        let loaded = Loaded {
            x: Mat::from_fn(rows.len(), names.len(), |i, j| cell(&rows[i], j)),
            y: Mat::from_fn(rows.len(), 1, |i, _| rows[i].2),
            rows: (0..rows.len()).collect(),
            deviations: if deviations { vec![("x0".into(), "sd".into())] } else { Vec::new() },
            ..Loaded::head(names, vec!["y".into()])
        };
        let options = FitOptions {
            method: "titsias2025".into(),
            inducing: Some(if d == 1 { 30 } else { 100 }),
            kernel: "rbf".into(),
            ..FitOptions::default()
        };
        fit(&Dataset::from_loaded(loaded, true)?, &options, &Cpu::default(), &mut ())
    }
}

/// An input, or after them the standard deviation.
fn cell(row: &Row, j: usize) -> f64 {
    row.0.get(j).copied().unwrap_or(row.1)
}

/// What a model is worth.
#[derive(Default)]
struct Judged {
    noise: f64,
    /// Root mean square error of the function, and share of it within 95 % intervals.
    function: (f64, f64),
    /// Mean negative log density, and share of targets within 95 % intervals, of new rows without errors and with.
    exact: (f64, f64),
    uncertain: (f64, f64),
    seconds: f64,
}

fn judged(problem: &Problem, model: &Fitted, new: &[Row]) -> sparsegp::Result<Judged> {
    let d = problem.inputs;
    let columns = model.input_names.len();
    let side: usize = if d == 1 { 200 } else { 20 };
    let at = |k: usize| 0.3 + 5.4 * k as f64 / (side - 1) as f64;
    let n = side.pow(d as u32);
    let grid = Mat::from_fn(n, columns, |i, j| match j {
        0 => at(i % side),
        1 if d == 2 => at(i / side),
        _ => 0.0,
    });
    let (mean, variance) = model.predict(grid.as_ref(), Of::Latent)?;
    let (mut square, mut inside) = (0.0, 0.0);
    for i in 0..n {
        let place: Vec<f64> = (0..d).map(|j| grid[(i, j)]).collect();
        let apart = mean[(i, 0)] - (problem.function)(&place);
        square += apart * apart / n as f64;
        inside += f64::from(u8::from(apart.abs() < 1.96 * variance[(i, 0)].sqrt())) / n as f64;
    }
    let of = |rows: Vec<&Row>| -> sparsegp::Result<(f64, f64)> {
        let x = Mat::from_fn(rows.len(), columns, |i, j| cell(rows[i], j));
        let y = Mat::from_fn(rows.len(), 1, |i, _| rows[i].2);
        let density = model.log_density(x.as_ref(), y.as_ref(), &[])?;
        let ends = model.quantiles(x.as_ref(), &[], &[0.025, 0.975], Of::Observations)?;
        let within = |i: &usize| ends[0][(*i, 0)] < y[(*i, 0)] && y[(*i, 0)] < ends[1][(*i, 0)];
        let count = rows.len() as f64;
        let share = (0..rows.len()).filter(within).count() as f64 / count;
        Ok((-density.iter().sum::<f64>() / count, share))
    };
    let (uncertain, exact): (Vec<&Row>, Vec<&Row>) = new.iter().partition(|row| row.1 > 0.0);
    Ok(Judged {
        noise: model.model.noise().sqrt() * model.scaler.y_scale[0],
        function: (square.sqrt(), inside),
        exact: of(exact)?,
        uncertain: of(uncertain)?,
        seconds: model.report.as_ref().map_or(0.0, |report| report.seconds),
    })
}

fn main() -> sparsegp::Result<()> {
    println!(
        "| function | fit | noise | RMSE of f | f in 95 % | exact rows: NLPD | in 95 % | uncertain rows: NLPD | in 95 % | s |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let pairs = [("x0".to_owned(), "sd".to_owned())];
    for problem in PROBLEMS {
        let mut all: [Vec<Judged>; 3] = Default::default();
        for seed in 0..TABLES {
            let rows = problem.rows(problem.rows, seed);
            let new = problem.rows(2000, 1000 + seed);
            let plain = problem.fitted(&rows, false)?;
            let noisy = problem.fitted(&rows, true)?;
            let given = plain.clone().with_input_deviations_of(&pairs)?;
            for (list, model) in all.iter_mut().zip([&plain, &given, &noisy]) {
                list.push(judged(problem, model, &new)?);
            }
        }
        let names = ["errors ignored", "ignored, given to predictions", "`--input-sd`"];
        for (name, list) in names.iter().zip(&all) {
            let mean =
                |of: &dyn Fn(&Judged) -> f64| list.iter().map(of).sum::<f64>() / list.len() as f64;
            println!(
                "| {} | {name} | {:.3} | {:.3} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
                problem.name,
                mean(&|j| j.noise),
                mean(&|j| j.function.0),
                mean(&|j| j.function.1),
                mean(&|j| j.exact.0),
                mean(&|j| j.exact.1),
                mean(&|j| j.uncertain.0),
                mean(&|j| j.uncertain.1),
                mean(&|j| j.seconds),
            );
        }
    }
    Ok(())
}

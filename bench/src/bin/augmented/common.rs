//! Options, tables, models on bundled data.

use sparsegp::data::{InMemory, Loaded, Scaler};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Standardise, prepare};
use sparsegp::likelihoods;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::model::Model;

/// The value after an option.
pub fn option(arguments: &[String], name: &str) -> Option<String> {
    let at = arguments.iter().position(|a| a == name)?;
    arguments.get(at + 1).cloned()
}

/// A number after an option.
pub fn number(arguments: &[String], name: &str, default: f64) -> f64 {
    option(arguments, name).map_or(default, |text| text.parse().expect("a number"))
}

/// A table that is printed as Markdown row by row and may be written as CSV at the end.
pub struct Table {
    csv: Option<String>,
    lines: Vec<String>,
}

impl Table {
    pub fn new(arguments: &[String], header: &[&str]) -> Self {
        println!("| {} |\n|{}", header.join(" | "), " --- |".repeat(header.len()));
        Self { csv: option(arguments, "--csv"), lines: vec![header.join(",")] }
    }

    pub fn row(&mut self, cells: &[String]) {
        println!("| {} |", cells.join(" | "));
        self.lines.push(cells.join(","));
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if let Some(path) = &self.csv {
            std::fs::write(path, self.lines.join("\n") + "\n").expect("space on disk");
        }
    }
}

/// Three significant digits or so.
pub fn digits(value: f64) -> String {
    match value.abs() {
        v if v == 0.0 || !v.is_finite() => format!("{value}"),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.2}"),
        v if v >= 1e-3 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}

/// Rows in memory, inputs standardised and targets too where the likelihood allows it, and a model of them that is not
/// trained; with what scaled them.
pub fn problem(
    rows: &Loaded,
    likelihood: &str,
    kernel: &str,
    method: &str,
) -> (Model, InMemory, Scaler) {
    let built = likelihoods::parse(likelihood).expect("a likelihood");
    let scaling = Standardise::all_that(&*built);
    let dataset = Dataset::from_loaded(rows.clone(), scaling).expect("rows");
    let options = FitOptions {
        kernel: kernel.into(),
        likelihood: Some(likelihood.into()),
        mean: Some("zero".into()),
        method: method.into(),
        pilot: 0,
        jitter: Jitter::Relative(1e-4),
        ..FitOptions::default()
    };
    let model = prepare(&dataset, &options, &Cpu::default(), &mut ()).expect("a model").model;
    let (n, d) = (dataset.source.rows(), dataset.source.inputs());
    let (mut x, mut y) = (Mat::zeros(n, d), Mat::zeros(n, 1));
    dataset
        .source
        .for_each_chunk(usize::MAX, &mut |chunk| {
            let count = chunk.x.nrows();
            x.as_mut().subrows_mut(chunk.start, count).copy_from(chunk.x);
            y.as_mut().subrows_mut(chunk.start, count).copy_from(chunk.y);
            Ok(())
        })
        .expect("rows");
    (model, InMemory::new(x, y).expect("shapes that fit"), dataset.scaler)
}

/// The kernel with these values.
pub fn kernel(lengthscale: f64, variance: f64) -> String {
    format!("rbf(ard=false, lengthscales={lengthscale}, variance={variance})")
}

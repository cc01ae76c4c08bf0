//! A mean function of your own, with a name: a physical law with unknown constants, and a Gaussian process for what it misses.
//!
//! `cargo run --release -p sparsegp --example own_mean`

use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Of, fit};
use sparsegp::io;
use sparsegp::linalg::{Mat, MatMut, MatRef};
use sparsegp::means::general::{Function, General};
use sparsegp::means::{self, Args, Entry, Mean};
use sparsegp::params::Param;

/// Cooling: m(t) = room + excess · exp(−rate t). Slopes are differences of the values.
#[derive(Clone, Debug)]
struct Cooling;

impl Function for Cooling {
    fn name(&self) -> &'static str {
        "cooling"
    }

    fn parameters(&self, _columns: usize) -> Vec<(String, Param)> {
        vec![
            ("room".into(), Param::real(15.0)),
            ("excess".into(), Param::real(50.0)),
            ("rate".into(), Param::positive(0.2)),
        ]
    }

    fn values(&self, p: &[&[f64]], x: MatRef<f64>, mut out: MatMut<f64>) {
        for i in 0..x.nrows() {
            out[(i, 0)] = p[0][0] + p[1][0] * (-p[2][0] * x[(i, 0)]).exp();
        }
    }
}

/// How it is built from a specification, such as `{"type": "cooling", "rate": 0.1}`.
fn cooling(args: Args<'_>) -> sparsegp::Result<Box<dyn Mean>> {
    Ok(Box::new(General::read(Cooling, &args)?))
}

/// Fits a temperature and predicts it far beyond the rows, from a file.
pub fn main() -> sparsegp::Result<()> {
    means::register(Entry { name: "cooling", about: "Newton's law of cooling", build: cooling })?;

    let truth = |t: f64| 21.0 + 64.0 * (-0.31 * t).exp();
    let x = Mat::from_fn(60, 1, |i, _| i as f64 / 6.0);
    let y = Mat::from_fn(60, 1, |i, _| truth(x[(i, 0)]) + 0.2 * (7.0 * (i * i) as f64).cos());
    // a law in the units of the data: neither inputs nor targets are scaled
    let data = Dataset::from_arrays(x, y, false)?;
    let options = FitOptions {
        kernel: "rbf".into(),
        mean: Some("cooling".into()),
        method: "exact".into(),
        ..FitOptions::default()
    };
    let fitted = fit(&data, &options, &Cpu::default(), &mut ())?;
    for parameter in fitted.parameters() {
        println!("{:24} {:?}", parameter.path, parameter.value);
    }

    // the program that reads the file registers the mean function too
    let read = io::from_bytes(&io::to_bytes(&fitted)?)?;
    let later = Mat::from_fn(1, 1, |_, _| 25.0);
    let (mean, _) = read.predict(later.as_ref(), Of::Latent)?;
    println!("after 25 minutes {:.2}, and truly {:.2}", mean[(0, 0)], truth(25.0));
    assert!((mean[(0, 0)] - truth(25.0)).abs() < 1.0);
    Ok(())
}

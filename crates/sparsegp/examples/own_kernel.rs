//! A kernel of your own, with a name: fits, sums, predictions and model files know it.
//!
//! `cargo run --release -p sparsegp --example own_kernel`

use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Of, fit};
use sparsegp::io;
use sparsegp::kernels::general::{Covariance, General};
use sparsegp::kernels::{self, Args, Entry, Kernel};
use sparsegp::linalg::{Mat, MatMut, MatRef};
use sparsegp::params::{Param, Role};

/// σ² (1 + ‖x − x′‖²/ℓ²)^−β, functions with long memory, by its values. Slopes are differences of them. (A stationary kernel like
/// this one is faster, and has its own slopes, by `kernels::custom::Kappa`.)
#[derive(Clone, Debug)]
struct Cauchy;

impl Covariance for Cauchy {
    fn name(&self) -> &'static str {
        "cauchy"
    }

    fn parameters(&self, _columns: usize) -> Vec<(String, Param)> {
        vec![
            ("variance".into(), Param::positive(1.0).of(Role::Variance)), // starts from the data
            ("lengthscale".into(), Param::positive(1.0).of(Role::Lengthscales)),
            ("beta".into(), Param::positive(0.5)),
        ]
    }

    fn values(&self, p: &[&[f64]], x: MatRef<f64>, z: MatRef<f64>, mut out: MatMut<f64>) {
        let [variance, lengthscale, beta] = [p[0][0], p[1][0], p[2][0]];
        for j in 0..z.nrows() {
            for i in 0..x.nrows() {
                let squares: f64 = (0..x.ncols()).map(|q| (x[(i, q)] - z[(j, q)]).powi(2)).sum();
                out[(i, j)] = variance * (1.0 + squares / lengthscale.powi(2)).powf(-beta);
            }
        }
    }
}

/// How it is built from a specification, such as `cauchy(beta=2) + linear`.
fn cauchy(args: Args<'_>) -> sparsegp::Result<Box<dyn Kernel>> {
    Ok(Box::new(General::read(Cauchy, &args)?))
}

/// Fits a model with this kernel, and reads it from a file.
pub fn main() -> sparsegp::Result<()> {
    // once, before anything names it
    let about = "long memory: variance·(1 + ‖x − x′‖²/ℓ²)^−β";
    kernels::register(Entry { name: "cauchy", aliases: &[], about, build: cauchy })?;

    // a slow wave and small fast ones
    let truth = |x: f64| (x / 4.0).sin() + 0.2 * (2.0 * x).sin() + 0.1 * (5.0 * x).sin();
    let x = Mat::from_fn(120, 1, |i, _| i as f64 / 6.0);
    let y = Mat::from_fn(120, 1, |i, _| truth(x[(i, 0)]) + 0.05 * (7.0 * (i * i) as f64).cos());
    let data = Dataset::from_arrays(x, y, true)?;
    let options = FitOptions { kernel: "cauchy + linear".into(), ..FitOptions::default() };
    let fitted = fit(&data, &options, &Cpu::default(), &mut ())?;
    for parameter in fitted.parameters() {
        println!("{:32} {:?}", parameter.path, parameter.value);
    }

    // a file has the name and the numbers; the program that reads it registers the kernel too
    let read = io::from_bytes(&io::to_bytes(&fitted)?)?;
    let new = Mat::from_fn(1, 1, |_, _| 2.1);
    let (mean, variance) = read.predict(new.as_ref(), Of::Latent)?;
    println!("f(2.1) = {:.3} ± {:.3}", mean[(0, 0)], variance[(0, 0)].sqrt());
    assert!((mean[(0, 0)] - truth(2.1)).abs() < 0.1);
    Ok(())
}

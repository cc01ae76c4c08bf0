//! A kernel by its formula only, in a model made by hand: exact inference, trained by L-BFGS.
//!
//! `cargo run --release -p sparsegp --example own_kernel`

use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::kernels::custom::{Custom, Kappa};
use sparsegp::kernels::{Inputs, radial::Radial};
use sparsegp::likelihoods::{Gaussian, dual::Real};
use sparsegp::linalg::Mat;
use sparsegp::methods;
use sparsegp::model::Model;
use sparsegp::params::Param;
use sparsegp::train::{TrainOptions, train};

/// κ(ϱ²) = (1 + ϱ²)^−β: functions with long memory. Slopes come from dual numbers.
#[derive(Clone, Debug)]
struct Cauchy;

impl Kappa for Cauchy {
    fn name(&self) -> &'static str {
        "cauchy"
    }
    fn shapes(&self) -> Vec<(&'static str, Param)> {
        vec![("beta", Param::positive(0.5))] // trained with the rest
    }
    fn kappa<T: Real>(&self, squared_distance: T, shapes: &[T]) -> T {
        (-(shapes[0] * squared_distance.ln_1p())).exp()
    }
}

/// Trains a model with this kernel and predicts one value.
pub fn main() -> sparsegp::Result<()> {
    // a slow wave and small fast ones
    let truth = |x: f64| (x / 4.0).sin() + 0.2 * (2.0 * x).sin() + 0.1 * (5.0 * x).sin();
    let x = Mat::from_fn(120, 1, |i, _| i as f64 / 6.0);
    let y = Mat::from_fn(120, 1, |i, _| truth(x[(i, 0)]) + 0.05 * (7.0 * (i * i) as f64).cos());
    let rows = InMemory::new(x, y)?;

    let kernel = Radial::new(Custom::new(Cauchy)?, Inputs::unnamed(1))?;
    let mut model = Model::builder(Box::new(kernel), methods::find("exact")?.method)
        .likelihood(Box::new(Gaussian::new(0.1)))
        .build(1, 1)?;

    let engine = Cpu::default();
    let before = model.evaluate(&engine, &rows)?.value;
    let report = train(&mut model, &engine, &rows, &TrainOptions::default(), &mut ())?;
    println!("log evidence: {before:.2} at the start, {:.2} trained", report.objective);
    for (path, parameter) in model.params() {
        println!("{path:24} {:?}", parameter.value());
    }
    assert!(report.objective > before);

    let posterior = model.posterior(&engine, &rows)?;
    let (mean, variance) = posterior.predict_f(Mat::from_fn(1, 1, |_, _| 2.1).as_ref())?;
    println!("f(2.1) = {:.3} ± {:.3}", mean[(0, 0)], variance[(0, 0)].sqrt());
    assert!((mean[(0, 0)] - truth(2.1)).abs() < 0.1);
    Ok(())
}

//! A likelihood of your own, with a name: a fit from its log density only, and a model file.
//!
//! `cargo run --release -p sparsegp --example own_likelihood`

use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Of, fit};
use sparsegp::io;
use sparsegp::likelihoods::custom::{Custom, LogProb, Parameter};
use sparsegp::likelihoods::dual::Real;
use sparsegp::likelihoods::{self, Args, Entry, Likelihood};
use sparsegp::linalg::Mat;

/// y = f + Cauchy noise. Slopes come from dual numbers. (By `likelihoods::general::Density` the density is one of arrays, and
/// slopes are differences.)
#[derive(Clone, Debug)]
struct Cauchy;

impl LogProb for Cauchy {
    fn name(&self) -> &'static str {
        "cauchy-noise"
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter { unit: 1, ..Parameter::positive("width", 0.2) }]
    }

    fn log_prob<T: Real>(&self, y: f64, _extra: f64, f: &[T], params: &[T]) -> T {
        let z = (f[0] - y) / params[0];
        -(z * z).ln_1p() - params[0].ln() - std::f64::consts::PI.ln()
    }

    fn standardises(&self) -> bool {
        true
    }
}

/// How it is built from a specification, such as `cauchy-noise(width=0.1)`.
fn cauchy(args: Args<'_>) -> sparsegp::Result<Box<dyn Likelihood>> {
    Ok(Box::new(Custom::from_json(Cauchy, &args.json())?))
}

/// Fits a curve through outliers, and reads the model from a file.
pub fn main() -> sparsegp::Result<()> {
    likelihoods::register(Entry {
        name: "cauchy-noise",
        aliases: &[],
        about: "robust: Cauchy noise",
        targets: "numbers",
        latents: "1",
        augmented: false,
        build: cauchy,
    })?;

    let x = Mat::from_fn(150, 1, |i, _| i as f64 / 15.0);
    let noise =
        |i: usize| if i.is_multiple_of(11) { 3.0 } else { 0.1 * (7.0 * (i * i) as f64).cos() };
    let y = Mat::from_fn(150, 1, |i, _| x[(i, 0)].sin() + noise(i));
    let data = Dataset::from_arrays(x, y, true)?;
    let options = FitOptions {
        kernel: "rbf".into(),
        likelihood: Some("cauchy-noise".into()),
        method: "svgp".into(),
        inducing: Some(20),
        batches: None,
        ..FitOptions::default()
    };
    let fitted = fit(&data, &options, &Cpu::default(), &mut ())?;
    for parameter in fitted.parameters() {
        println!("{:24} {:?}", parameter.path, parameter.value);
    }

    // the program that reads the file registers the likelihood too
    let read = io::from_bytes(&io::to_bytes(&fitted)?)?;
    let new = Mat::from_fn(1, 1, |_, _| 2.0);
    let (mean, _) = read.predict(new.as_ref(), Of::Latent)?;
    println!("f(2) = {:.3}, and the sine is {:.3}", mean[(0, 0)], 2.0_f64.sin());
    assert!((mean[(0, 0)] - 2.0_f64.sin()).abs() < 0.1);
    Ok(())
}

//! Classification: points inside or outside of a ring, probabilities of new ones.
//!
//! `cargo run --release -p sparsegp --example classification`

use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Standardise, fit};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;

/// Learns the two classes and prints probabilities.
pub fn main() -> sparsegp::Result<()> {
    // a spiral covers the disc of radius 2 evenly; classes are 0 and 1
    let x = Mat::from_fn(200, 2, |i, j| {
        let (radius, angle) = ((i as f64 / 50.0).sqrt(), 2.399963 * i as f64);
        radius * if j == 0 { angle.cos() } else { angle.sin() }
    });
    let y = Mat::from_fn(200, 1, |i, _| f64::from(x[(i, 0)].hypot(x[(i, 1)]) < 1.2));

    // targets of this likelihood are labels, which stay as they are
    let likelihood = likelihoods::parse("bernoulli(link=logit)")?;
    let data = Dataset::from_arrays(x, y, Standardise::all_that(&*likelihood))?;
    let options = FitOptions {
        kernel: "rbf".into(),
        likelihood: Some("bernoulli(link=logit)".into()),
        inducing: Some(30),
        ..FitOptions::default()
    };
    let fitted = fit(&data, &options, &Cpu::default(), &mut ())?;

    let new = Mat::from_fn(3, 2, |i, j| if j == 0 { 0.9 * i as f64 } else { 0.1 });
    let probabilities = fitted.predict_proba(new.as_ref())?; // one column for each class
    for i in 0..3 {
        println!("({}, {}): p(inside) = {:.3}", new[(i, 0)], new[(i, 1)], probabilities[(i, 1)]);
    }
    assert!(probabilities[(0, 1)] > 0.9 && probabilities[(2, 1)] < 0.1);
    Ok(())
}

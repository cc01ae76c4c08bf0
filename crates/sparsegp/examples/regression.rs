//! Regression: 300 noisy rows of one input, predictions with intervals.
//!
//! `cargo run --release -p sparsegp --example regression`

use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Of, fit};
use sparsegp::linalg::Mat;

/// Fits a curve and prints predictions with intervals.
pub fn main() -> sparsegp::Result<()> {
    let x = Mat::from_fn(300, 1, |i, _| i as f64 / 30.0);
    let y = Mat::from_fn(300, 1, |i, _| x[(i, 0)].sin() + 0.1 * (7.0 * (i * i) as f64).cos());
    let data = Dataset::from_arrays(x, y, true)?; // true: standardise

    // everything else has a default; `()` watches nothing
    let options = FitOptions { kernel: "matern52".into(), ..FitOptions::default() };
    let fitted = fit(&data, &options, &Cpu::default(), &mut ())?;
    for parameter in fitted.parameters() {
        println!("{:24} {:?}", parameter.path, parameter.value);
    }

    let new = Mat::from_fn(5, 1, |i, _| 2.0 * i as f64 + 1.0);
    let levels = fitted.quantiles(new.as_ref(), &[], &[0.025, 0.5, 0.975], Of::Observations)?;
    for i in 0..new.nrows() {
        let [low, median, high] = [0, 1, 2].map(|level| levels[level][(i, 0)]);
        println!("x = {}: {median:.3}, 95 % from {low:.3} to {high:.3}", new[(i, 0)]);
        let truth = new[(i, 0)].sin();
        assert!(low < truth && truth < high && high - low < 0.6);
    }
    Ok(())
}

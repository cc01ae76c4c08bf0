//! A long series: a slow wave and a daily one, hour by hour, exact inference in linear time, a forecast.
//!
//! `cargo run --release -p sparsegp --example series`

use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Of, fit};
use sparsegp::linalg::Mat;
use std::f64::consts::TAU;

/// Learns both waves and prints the next day.
pub fn main() -> sparsegp::Result<()> {
    let value = |day: f64| (day / 40.0).sin() + 0.5 * (TAU * day).sin();
    let x = Mat::from_fn(4800, 1, |i, _| i as f64 / 24.0); // hours of 200 days
    let y = Mat::from_fn(4800, 1, |i, _| value(x[(i, 0)]) + 0.1 * (7.0 * (i * i) as f64).cos());

    let data = Dataset::from_arrays(x, y, true)?;
    let options = FitOptions {
        method: "markov".into(),
        kernel: "matern52 + periodic(period=1)".into(),
        kernel_in_data_units: true, // the period is a day
        ..FitOptions::default()
    };
    let fitted = fit(&data, &options, &Cpu::default(), &mut ())?;

    let next = Mat::from_fn(6, 1, |i, _| 200.0 + i as f64 / 6.0);
    let (mean, variance) = fitted.predict(next.as_ref(), Of::Latent)?;
    for i in 0..next.nrows() {
        let (day, mean, sd) = (next[(i, 0)], mean[(i, 0)], variance[(i, 0)].sqrt());
        println!("day {day:.2}: {mean:.3} ± {sd:.3}, truth {:.3}", value(day));
        assert!((mean - value(day)).abs() < 0.1);
    }
    Ok(())
}

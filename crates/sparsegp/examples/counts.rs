//! Counts: events per month at a rate that changes, with the days that each month was observed.
//!
//! `cargo run --release -p sparsegp --example counts`

use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Of, Standardise, fit};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;

/// Learns the rate and prints what to expect of a month of 30 days.
pub fn main() -> sparsegp::Result<()> {
    let rate = |month: f64| 0.4 + 0.3 * (month / 8.0).sin(); // events a day
    let days = |month: usize| if month.is_multiple_of(3) { 10.0 } else { 30.0 };
    let x = Mat::from_fn(60, 1, |i, _| i as f64);
    let y = Mat::from_fn(60, 1, |i, _| (days(i) * rate(i as f64)).round());

    // the exposure of every row: expected counts are exposure times rate
    let mut rows = InMemory::new(x, y)?;
    rows.extra = (0..60).map(days).collect();

    let likelihood = likelihoods::parse("poisson")?;
    let data = Dataset::from_rows(rows, Standardise::all_that(&*likelihood))?;
    let options = FitOptions {
        kernel: "rbf".into(),
        likelihood: Some("poisson".into()),
        inducing: Some(15),
        ..FitOptions::default()
    };
    let fitted = fit(&data, &options, &Cpu::default(), &mut ())?;

    let new = Mat::from_fn(3, 1, |i, _| 12.0 + 12.0 * i as f64);
    let exposure = [30.0; 3];
    let (mean, _) = fitted.predict_with(new.as_ref(), &exposure, Of::Observations)?;
    let bounds = fitted.quantiles(new.as_ref(), &exposure, &[0.025, 0.975], Of::Observations)?;
    for i in 0..3 {
        let (low, high) = (bounds[0][(i, 0)], bounds[1][(i, 0)]);
        println!("month {}: {:.1}, 95 % from {low} to {high}", new[(i, 0)], mean[(i, 0)]);
        let truth = 30.0 * rate(new[(i, 0)]);
        assert!(low < truth && truth < high && high < 40.0);
    }
    Ok(())
}

//! Whether counts vary as the likelihood `poisson` says: by their dispersion (Pearson's statistic by its degrees of freedom;
//! McCullagh & Nelder 1989, section 6.2.3) and by the number of zeros.

use super::sample_rows;
use crate::data::{InMemory, Source};
use crate::error::Result;
use crate::linalg::Mat;
use crate::model::{Model, Posterior};

/// Rows that are looked at.
const ROWS: usize = 2000;
/// Dispersion, and part of the expected zeros, from which something is said.
const LEAST: f64 = 1.3;
/// Standard errors by which they must be beyond chance.
const CLEAR: f64 = 4.0;

/// Returns a warning where counts are dispersed more, or 0 more often, than a fitted Poisson likelihood says.
pub(super) fn remarks(
    model: &Model,
    posterior: &Posterior,
    data: &dyn Source,
    seed: u64,
) -> Result<Option<String>> {
    if model.likelihood.name() != "poisson" {
        return Ok(None);
    }
    let rows = sample_rows(data, ROWS, seed)?;
    let dispersion = dispersion(posterior, &rows)?;
    let zeros = zeros(posterior, &rows)?;
    if dispersion.is_none() && zeros.is_none() {
        return Ok(None);
    }
    let mut said = Vec::new();
    let mut remedies = vec!["negative-binomial"];
    if let Some(factor) = dispersion {
        said.push(format!("vary {factor:.1} times as much about their means"));
    }
    if let Some((found, expected)) = zeros {
        said.push(format!("are 0 in {found} rows, where {expected:.0} are expected,"));
        remedies.push("zero-inflated-poisson");
    }
    Ok(Some(format!(
        "the counts {} as the likelihood `poisson` says, so that its intervals are too narrow: try `{}`",
        said.join(" and ").trim_end_matches(','),
        remedies.join("` or `")
    )))
}

/// The dispersion, if it is clearly above 1.
fn dispersion(posterior: &Posterior, rows: &InMemory) -> Result<Option<f64>> {
    let (mean, _) = posterior.predict_y(rows.x.as_ref(), &rows.extra)?;
    let (mut sum, mut variance, mut count) = (0.0, 0.0, 0.0);
    for p in 0..rows.y.ncols() {
        for i in 0..rows.y.nrows() {
            let (y, mu) = (rows.y[(i, p)], mean[(i, p)]);
            let counts = rows.weights.get(i).is_none_or(|w| *w > 0.0);
            if counts && !y.is_nan() && mu > 0.0 {
                sum += (y - mu).powi(2) / mu;
                // of (y − μ)²/μ where y is Poisson
                variance += 2.0 + 1.0 / mu;
                count += 1.0;
            }
        }
    }
    // no rows, no number, no warning
    let (factor, error) = (sum / count, variance.sqrt() / count);
    Ok((factor > LEAST && factor > 1.0 + CLEAR * error).then_some(factor))
}

/// Zeros among the rows, and how many are expected, if these are clearly fewer.
fn zeros(posterior: &Posterior, rows: &InMemory) -> Result<Option<(usize, f64)>> {
    let none = Mat::zeros(rows.y.nrows(), rows.y.ncols());
    if rows.y.ncols() != 1 || rows.y.col_iter().any(|y| y.iter().any(|y| y.is_nan())) {
        return Ok(None);
    }
    let chances = posterior.predict_log_density(rows.x.as_ref(), none.as_ref(), &rows.extra)?;
    let found = rows.y.col(0).iter().filter(|y| **y == 0.0).count();
    let expected: f64 = chances.iter().map(|log| log.exp()).sum();
    let variance: f64 = chances.iter().map(|log| log.exp() * (1.0 - log.exp())).sum();
    let clear = found as f64 > LEAST * expected
        && found as f64 > expected + CLEAR * variance.max(0.0).sqrt();
    Ok(clear.then_some((found, expected)))
}

//! Whether counts vary as their likelihood says: by their dispersion (Pearson's statistic by its degrees of freedom; McCullagh &
//! Nelder 1989, sections 4.5 and 6.2.3) and by the number of zeros.

use super::{Asked, ROWS};
use crate::data::InMemory;
use crate::error::Result;
use crate::fit::{sample_rows, weights};
use crate::linalg::Mat;
use crate::model::Posterior;
use crate::train::Finding;

/// Dispersion, and part of the expected zeros, from which something is said.
const LEAST: f64 = 1.3;
/// Standard errors by which they must be beyond chance.
const CLEAR: f64 = 4.0;

/// Nats a row, and of all rows of the sample, by which another likelihood must be better.
const GAIN: f64 = 0.03;
const NATS: f64 = 8.0;

/// Returns whether counts are dispersed more, or 0 more often, than a fitted Poisson or binomial likelihood says.
pub(super) fn findings(asked: &Asked<'_>, posterior: &Posterior) -> Result<Vec<Finding>> {
    let rows = sample_rows(&*asked.dataset.source, ROWS, asked.options.seed)?;
    let poisson = posterior.likelihood().name() == "poisson";
    let targets = &asked.dataset.target_names;
    let (mean, _) = posterior.predict_y(rows.x.as_ref(), &rows.extra)?;
    let mut found = Vec::new();
    for (p, target) in targets.iter().enumerate() {
        let factor = dispersion(poisson, &mean, &rows, p);
        // a function that follows every row makes up for the dispersion
        let gain = match poisson && targets.len() == 1 {
            true => {
                asked.gain("negative-binomial")?.map(|(nats, count)| (nats, nats / count as f64))
            }
            false => None,
        };
        let how = match (factor, gain) {
            (Some(factor), _) => format!("{factor:.1} times as much about their means as"),
            (None, Some((nats, gain))) if nats > NATS && gain > GAIN => {
                "more about their means than".into()
            }
            _ => continue,
        };
        let (name, remedy, word) = match poisson {
            true => ("poisson", "the likelihood `negative-binomial`", "negative-binomial"),
            false => (
                "binomial",
                "noise of every row on the function, `+ white` in the kernel",
                "+ white",
            ),
        };
        found.push(Finding {
            name: "dispersion".into(),
            target: target.clone(),
            text: format!(
                "`{target}`: the counts vary {how} the likelihood `{name}` says, so that its predictions are too sure: try {remedy}"
            ),
            remedies: vec![word.into()],
            gain: gain.map(|(_, gain)| gain),
        });
    }
    if let (true, Some((zeros, expected))) = (poisson, zeros(posterior, &rows)?) {
        found.push(Finding {
            name: "zeros".into(),
            target: targets[0].clone(),
            text: format!(
                "`{}`: the counts are 0 in {zeros} rows, where {expected:.0} are as many as the likelihood `poisson` says: \
                 try the likelihood `negative-binomial` or `zero-inflated-poisson`",
                targets[0]
            ),
            remedies: vec!["negative-binomial".into(), "zero-inflated-poisson".into()],
            gain: None,
        });
    }
    Ok(found)
}

/// Returns the dispersion of a target, if it is clearly above 1.
fn dispersion(poisson: bool, mean: &Mat<f64>, rows: &InMemory, p: usize) -> Option<f64> {
    let (mut sum, mut spread, mut count) = (0.0, 0.0, 0.0);
    for i in weights::counting(rows) {
        let (y, mu) = (rows.y[(i, p)], mean[(i, p)]);
        let trials = rows.extra.get(i).copied().unwrap_or(1.0);
        // one trial has the variance of its mean, whatever that is
        let can = poisson || trials > 1.0;
        let failure = if poisson { 1.0 } else { 1.0 - mu / trials };
        if !y.is_nan() && can && mu > 0.0 && failure > 0.0 {
            let variance = mu * failure;
            sum += (y - mu).powi(2) / variance;
            // the variance of that term
            spread += match poisson {
                true => 2.0 + 1.0 / mu,
                false => 2.0 + (1.0 - 6.0 * variance / trials) / variance,
            };
            count += 1.0;
        }
    }
    // no rows, no number, no finding
    let (factor, error) = (sum / count, spread.sqrt() / count);
    (factor > LEAST && factor > 1.0 + CLEAR * error).then_some(factor)
}

/// Returns the number of zeros among the rows, and how many are expected, if these are clearly
/// fewer.
fn zeros(posterior: &Posterior, rows: &InMemory) -> Result<Option<(usize, f64)>> {
    let none = Mat::zeros(rows.y.nrows(), rows.y.ncols());
    if rows.y.ncols() != 1 || rows.y.col_iter().any(|y| y.iter().any(|y| y.is_nan())) {
        return Ok(None);
    }
    let chances = posterior.predict_log_density(rows.x.as_ref(), none.as_ref(), &rows.extra)?;
    let counting = weights::counting(rows);
    let chance = |i: &usize| chances[*i].exp();
    let found = counting.iter().filter(|i| rows.y[(**i, 0)] == 0.0).count();
    let expected: f64 = counting.iter().map(chance).sum();
    let variance: f64 = counting.iter().map(chance).map(|p| p * (1.0 - p)).sum();
    let clear = found as f64 > LEAST * expected
        && found as f64 > expected + CLEAR * variance.max(0.0).sqrt();
    Ok(clear.then_some((found, expected)))
}

//! Whether numbers are about their means as Gaussian noise says.
//!
//! Every row has a mean m and a standard deviation s by the other rows. Another density with the same m and s that predicts the rows
//! better is a reason to try a likelihood of its kind: Student's t of the errors z = (y − m)/s, z with a deviation for each fifth
//! of the rows in the order of an input or of m, a logarithm or power of y with errors of one size, and beta densities. What each
//! gains in nats a row is about what its likelihood gains on new rows (`bench/findings.py` measures it).

use super::filled::Gaps;
use super::{Predicted, whole};
use crate::data::TargetTransform;
use crate::fit::Dataset;
use crate::fit::places::by_name;
use crate::train::Finding;
use statrs::distribution::{ChiSquared, ContinuousCDF};
use statrs::function::gamma::ln_gamma;

/// Fewest rows from which anything is said.
const FEWEST: usize = 40;
/// Nats a row that a finding gains at least.
pub(super) const LEAST: f64 = 0.03;
/// Twice the nats of all rows that Student's t must gain: its two numbers gain 10 by chance in one of a thousand tables.
const CLEAR: f64 = 12.0;
/// Chance of a spread as clear as this, over all inputs, where there is none.
pub(super) const CHANCE: f64 = 1e-4;
/// Standard errors by which a density that has no fitted numbers must be better.
const ERRORS: f64 = 2.5;
/// How many times the gain of tails that of a spread must be to be named in their place.
const MORE: f64 = 1.2;
/// Parts of the rows whose spreads are compared, and the fewest rows of one.
const PARTS: usize = 5;
const FEWEST_OF_PART: usize = 8;
/// Degrees of freedom of Student's t that are tried.
const DEGREES: [f64; 7] = [2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0];

/// Noise variance, as a part of that of the targets, below which there is none.
const NOISELESS: f64 = 3e-4;
/// Spread of the predictions, in standard deviations of one, from which they have an order.
const SIGNAL: f64 = 0.3;
/// Powers of the targets that are tried.
const POWERS: [f64; 4] = [0.0, 0.5, 1.5, 2.0];

/// One target: its rows, and what the others say of it.
pub(super) struct Errors {
    /// Targets, means and standard deviations in the data's units.
    pub(super) y: Vec<f64>,
    pub(super) mean: Vec<f64>,
    pub(super) sd: Vec<f64>,
    /// (y − mean)/sd.
    pub(super) z: Vec<f64>,
}

/// Returns what the rows say against Gaussian noise; where somebody has `chosen` it, not that the targets are counts. Targets of two
/// values are classes, if anything (`two_values` of the checks).
pub(super) fn findings(
    seen: &Predicted,
    noise: f64,
    dataset: &Dataset,
    chosen: bool,
) -> Vec<Finding> {
    let (mut found, gaps) = (Vec::new(), Gaps::of(dataset, seen.rows.x.as_ref()));
    for (p, target) in dataset.target_names.iter().enumerate() {
        let rows = seen.known(p);
        if rows.len() < FEWEST || dataset.scaler.is_constant(p) {
            continue;
        }
        let (centre, unit) = (dataset.scaler.y_mean[p], dataset.scaler.y_scale[p]);
        let of = |f: &dyn Fn(usize) -> f64| rows.iter().map(|i| f(*i)).collect::<Vec<f64>>();
        let sd = |i: usize| seen.variance[(i, p)].sqrt();
        let errors = Errors {
            y: of(&|i| centre + unit * seen.rows.y[(i, p)]),
            mean: of(&|i| centre + unit * seen.mean[(i, p)]),
            sd: of(&|i| unit * sd(i)),
            z: of(&|i| (seen.rows.y[(i, p)] - seen.mean[(i, p)]) / sd(i)),
        };
        // errors of a function without noise are its own, not the noise's
        let noiseless = noise * unit * unit < NOISELESS * deviation(&errors.y).powi(2);
        if noiseless || errors.z.iter().any(|z| !z.is_finite()) {
            continue;
        }
        if whole::are_two(&errors) {
            continue;
        }
        let plain = !chosen && dataset.scaler.transform(p).is_none();
        if let Some(counts) = whole::counts(target, &errors).filter(|_| plain) {
            // what else there is to say is that they are
            found.push(counts);
            continue;
        }
        let inputs = by_name(dataset, seen.rows.x.as_ref()).into_iter();
        let inputs = inputs.map(|(name, values)| (format!("`{name}`"), of(&|i| values[i])));
        let mut ordered: Vec<(String, Vec<f64>)> = inputs.collect();
        // the mean of the others is in the order of the row's own target where that is all there is to predict
        if deviation(&errors.mean) > SIGNAL * mean(errors.sd.iter().copied()) {
            ordered.push(("the prediction".into(), errors.mean.clone()));
        }
        if let Some(filled) = gaps.finding(target, &errors.z, &rows) {
            // a mixture of two noises looks like heavy tails, too
            found.push(filled);
            continue;
        }
        let (varies, heavy) = (spread(target, &errors.z, &ordered), tails(target, &errors.z));
        // a mixture of spreads has heavy tails, and outliers are somewhere: the better explanation is the one
        let gain = |own: &Option<Finding>| own.as_ref().and_then(|own| own.gain).unwrap_or(0.0);
        let clear = gain(&varies) > MORE * gain(&heavy);
        found.extend(if clear { varies } else { heavy });
        if dataset.scaler.transform(p).is_none() {
            found.extend(shares(target, &errors).or_else(|| skew(target, &errors)));
        }
    }
    // the best guess first
    found.sort_by(|a: &Finding, b: &Finding| {
        b.gain.unwrap_or(0.0).total_cmp(&a.gain.unwrap_or(0.0))
    });
    found
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

fn deviation(values: &[f64]) -> f64 {
    let centre = mean(values.iter().copied());
    mean(values.iter().map(|v| (v - centre).powi(2))).sqrt()
}

/// Returns log N(z; 0, 1).
fn gaussian(z: f64) -> f64 {
    -0.5 * (z * z + std::f64::consts::TAU.ln())
}

/// Finds Student's t: the scale by expectation maximisation for every number of degrees of freedom.
fn tails(target: &str, z: &[f64]) -> Option<Finding> {
    let n = z.len() as f64;
    let variance = mean(z.iter().map(|z| z * z));
    // the Gaussian may have its best scale too
    let best_gaussian = gaussian(1.0) - 0.5 * variance.ln();
    let of_degrees = |df: f64| {
        let mut square = variance;
        for _ in 0..100 {
            square = mean(z.iter().map(|z| (df + 1.0) / (df + z * z / square) * z * z));
        }
        let constant = ln_gamma(0.5 * (df + 1.0))
            - ln_gamma(0.5 * df)
            - 0.5 * (df * std::f64::consts::PI * square).ln();
        constant - 0.5 * (df + 1.0) * mean(z.iter().map(|z| (z * z / square / df).ln_1p()))
    };
    let best = DEGREES.iter().map(|df| of_degrees(*df)).fold(f64::NEG_INFINITY, f64::max);
    let gain = best - best_gaussian;
    if !(gain > LEAST && 2.0 * n * gain > CLEAR) {
        return None;
    }
    let far = z.iter().filter(|z| z.abs() > 4.0 * variance.sqrt()).count();
    let kurtosis = mean(z.iter().map(|z| z.powi(4))) / variance.powi(2) - 3.0;
    Some(Finding {
        name: "tails".into(),
        target: target.into(),
        text: format!(
            "`{target}`: the errors of rows that are left out have heavier tails than Gaussian noise (excess kurtosis \
             {kurtosis:.1}; {far} of {} lie beyond 4 standard deviations): try the likelihood `student-t`",
            z.len()
        ),
        remedies: vec!["student-t".into()],
        gain: Some(gain),
    })
}

/// Returns the parts of rows in an order: for each row its part. Equal values are of one part.
fn parts(values: &[f64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut cuts: Vec<f64> = (1..PARTS).map(|k| sorted[sorted.len() * k / PARTS]).collect();
    cuts.dedup();
    values.iter().map(|v| cuts.partition_point(|cut| cut <= v)).collect()
}

/// Returns how clearly errors differ in size between parts, of which `of` has the number for each: the chance of that, the gain of
/// a deviation for each, and the ratio of the largest to the smallest.
pub(super) fn between(z: &[f64], of: &[usize]) -> Option<(f64, f64, f64)> {
    let own = |k: usize| z.iter().zip(of).filter(move |(_, part)| **part == k).map(|(z, _)| *z);
    let all: Vec<Vec<f64>> =
        (0..PARTS).map(|k| own(k).collect()).filter(|part: &Vec<f64>| !part.is_empty()).collect();
    if all.len() < 2 || all.iter().any(|part| part.len() < FEWEST_OF_PART) {
        return None;
    }
    let n = z.len() as f64;
    let size = |part: &[f64]| mean(part.iter().map(|z| z.abs()));
    let (overall, square) = (size(z), mean(z.iter().map(|z| z * z)));
    let spread = square - overall * overall;
    let between: f64 =
        all.iter().map(|part| part.len() as f64 * (size(part) - overall).powi(2)).sum();
    let further = (all.len() - 1) as f64;
    let squares: Vec<f64> = all.iter().map(|part| mean(part.iter().map(|z| z * z))).collect();
    let logs: f64 =
        all.iter().zip(&squares).map(|(part, own)| part.len() as f64 * (own / square).ln()).sum();
    // less what as many numbers gain by chance
    let gain = -0.5 * (logs + further) / n;
    let most = squares.iter().copied().fold(0.0, f64::max);
    let least = squares.iter().copied().fold(f64::INFINITY, f64::min);
    let chance = ChiSquared::new(further).ok()?.sf(between / spread);
    Some((chance, gain, (most / least).sqrt()))
}

/// Finds noise that varies, in the order of the rows in which it does so most clearly.
fn spread(target: &str, z: &[f64], ordered: &[(String, Vec<f64>)]) -> Option<Finding> {
    let all = ordered.iter().filter_map(|(by, values)| {
        between(z, &parts(values)).map(|(chance, gain, ratio)| (by, chance, gain, ratio))
    });
    let (by, chance, gain, ratio) = all.min_by(|a, b| a.1.total_cmp(&b.1))?;
    if !(chance * (ordered.len() as f64) < CHANCE && gain > LEAST) {
        return None;
    }
    Some(Finding {
        name: "spread".into(),
        target: target.into(),
        text: format!(
            "`{target}`: the noise varies with {by}: the errors of rows that are left out are {ratio:.1} times as large in one \
             fifth of the rows as in another: try the likelihood `heteroscedastic`"
        ),
        remedies: vec!["heteroscedastic".into()],
        gain: Some(gain),
    })
}

/// Returns what other densities about the same means gain in nats a row, where that is clear of
/// chance.
fn gain_of(errors: &Errors, densities: &[f64]) -> Option<f64> {
    let gains: Vec<f64> = densities
        .iter()
        .zip(errors.z.iter().zip(&errors.sd))
        .map(|(own, (z, sd))| own - gaussian(*z) + sd.ln())
        .collect();
    let gain = mean(gains.iter().copied());
    let variance = mean(gains.iter().map(|own| (own - gain).powi(2)));
    (gain > LEAST && gain > ERRORS * (variance / gains.len() as f64).sqrt()).then_some(gain)
}

/// Finds targets between 0 and 1 that a beta density predicts better.
fn shares(target: &str, errors: &Errors) -> Option<Finding> {
    if !errors.y.iter().all(|y| *y > 0.0 && *y < 1.0) {
        return None;
    }
    let gain = gain_of(errors, &betas(errors))?;
    Some(Finding {
        name: "shares".into(),
        target: target.into(),
        text: format!(
            "`{target}`: all targets lie between 0 and 1, and beta densities about the same means would have predicted the rows \
             that are left out better, by {gain:.2} nats a row: try the likelihood `beta`"
        ),
        remedies: vec!["beta".into()],
        gain: Some(gain),
    })
}

/// Finds a function of the targets whose errors are more Gaussian than theirs: the best of the
/// logarithm and some powers.
fn skew(target: &str, errors: &Errors) -> Option<Finding> {
    let (centre, scale) = (mean(errors.y.iter().copied()), deviation(&errors.y));
    let powers = POWERS.map(|lambda| TargetTransform::YeoJohnson { lambda, centre, scale });
    let positive = errors.y.iter().all(|y| *y > 0.0);
    let all = positive.then_some(TargetTransform::Log).into_iter().chain(powers);
    let gains = all.filter_map(|own| Some((gain_of(errors, &transformed(errors, &own))?, own)));
    let (gain, best) = gains.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (what, word) = match best {
        TargetTransform::Log => ("the logarithm", "log"),
        TargetTransform::YeoJohnson { .. } => ("a power", "yeo-johnson"),
    };
    let log = matches!(best, TargetTransform::Log).then(|| "log-normal".to_owned());
    Some(Finding {
        name: "skew".into(),
        target: target.into(),
        text: format!(
            "`{target}`: {what} of the targets with errors of one size would have predicted the rows that are left out better, by \
             {gain:.2} nats a row: try `--target-transform {word}` (`target_transform=\"{word}\"` in Python)"
        ),
        remedies: std::iter::once(format!("target_transform={word}")).chain(log).collect(),
        gain: Some(gain),
    })
}

/// Standard deviations above a bound where a mean beyond it is put.
const INSIDE: f64 = 0.3;

/// Returns the log densities of targets whose functions are normal about those of the means, with
/// one mean and deviation of the errors.
fn transformed(errors: &Errors, transform: &TargetTransform) -> Vec<f64> {
    let inside = |i: usize| match transform {
        TargetTransform::Log => errors.mean[i].max(INSIDE * errors.sd[i]),
        TargetTransform::YeoJohnson { .. } => errors.mean[i],
    };
    let own: Vec<f64> =
        (0..errors.y.len()).map(|i| transform.of(errors.y[i]) - transform.of(inside(i))).collect();
    let centre = mean(own.iter().copied());
    let sd = mean(own.iter().map(|own| (own - centre).powi(2))).sqrt();
    let density =
        |(own, y): (&f64, &f64)| gaussian((own - centre) / sd) - sd.ln() + transform.log_slope(*y);
    own.iter().zip(&errors.y).map(density).collect()
}

/// Returns the log densities of beta distributions of the same means and deviations.
fn betas(errors: &Errors) -> Vec<f64> {
    let density = |i: usize| {
        let (y, sd) = (errors.y[i], errors.sd[i]);
        let least = (INSIDE * sd).min(0.5);
        let mean = errors.mean[i].clamp(least, 1.0 - least);
        let precision = (mean * (1.0 - mean) / (sd * sd) - 1.0).max(0.5);
        let (a, b) = (mean * precision, (1.0 - mean) * precision);
        ln_gamma(precision) - ln_gamma(a) - ln_gamma(b)
            + (a - 1.0) * y.ln()
            + (b - 1.0) * (-y).ln_1p()
    };
    (0..errors.y.len()).map(density).collect()
}

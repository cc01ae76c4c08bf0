//! Targets that all lie at an end of what they can be: counts that are all 0, trials that all fail or all succeed.
//!
//! The likelihood then rises without end as the rate goes to 0, and a mean and a variance that maximise the bound follow it: predictions
//! would be certain where all that is known is that nothing was seen so far. So mean and variance are held where the rate is about what it is after
//! one event in all rows, with the uncertainty that this leaves: of a rate with the exponential distribution that a flat prior leaves after no
//! events in the exposure E, the logarithm has the variance π²/6 and 95 % lie below 3/E (Hanley & Lippman-Hand 1983, the rule of three).

use super::Dataset;
use crate::likelihoods::{Likelihood, Support, Target};
use crate::linalg::Mat;
use crate::means::Mean;
use crate::model::Model;
use crate::params::Role;
use std::f64::consts::PI;

/// Variance of the logarithm of an exponential variable, ψ′(1).
const VARIANCE: f64 = PI * PI / 6.0;
/// Mean of the prior rate in units of 1/E: with [`VARIANCE`] the posterior rate after no event has a mean of 0.9 and 95 % below 2.6, as
/// near as a log-normal prior comes to 1 and 3 (by numerical integration).
const RATE: f64 = 3.0;
/// Rate in units of 1/E at which likelihoods start, half an event.
const START: f64 = 0.5;

/// Says in words what is the same of all targets, if that is an end of their support.
fn end(likelihood: &dyn Likelihood, targets: &[Target]) -> Option<&'static str> {
    let known = || targets.iter().filter(|t| likelihood.check(**t).is_ok());
    let most = |t: &Target| match likelihood.support(t.extra) {
        Support::Trials(most) => Some(most),
        Support::Classes(2) => Some(1.0),
        _ => None,
    };
    let counts = |t: &Target| most(t).is_some() || likelihood.support(t.extra) == Support::Counts;
    known().next()?;
    if known().all(|t| counts(t) && t.y == 0.0) {
        Some("0")
    } else if known().all(|t| most(t) == Some(t.y)) {
        Some("as large as they can be")
    } else {
        None
    }
}

/// Holds mean, variance of the kernel and parameters of the likelihood if all targets of all columns lie at an end; says so. What was given
/// stays. The mean is held from where it began: trials on these rows have moved it without end.
pub(super) fn hold(
    model: &mut Model,
    begun: &dyn Mean,
    dataset: &Dataset,
    targets: &[Vec<Target>],
) -> Option<String> {
    // later parts of a table may differ, and a sample is not all rows
    let constant = dataset.target_variance.iter().all(|v| *v == 0.0);
    if dataset.part
        || !constant
        || model.likelihood.latents() != 1
        || model.likelihood.mixing().is_some()
    {
        return None;
    }
    let ends: Vec<&str> =
        targets.iter().map(|own| end(&*model.likelihood, own)).collect::<Option<_>>()?;
    let where_ = ends.first()?;
    // a link that is exponential where rates are small
    let likelihood = model.likelihood.clone();
    let extra = targets.iter().flatten().next().map_or(1.0, |t| t.extra);
    let rate = |f: f64| likelihood.predict(extra, &[f], &[0.0]).0;
    let mut held = Vec::new();
    for ((path, param), (_, start)) in model.mean.params_mut().into_iter().zip(begun.params()) {
        if param.role() == Role::Constant && !param.given && !param.frozen {
            let raised = start.value().iter().map(|f| {
                let sign = if *where_ == "0" { 1.0 } else { -1.0 };
                let up = f + sign * (RATE / START).ln();
                let ratio = (rate(up) / rate(*f)).ln();
                let exponential = (ratio - (RATE / START).ln()).abs() < 0.05;
                if exponential || sign < 0.0 { up } else { *f }
            });
            let raised: Vec<f64> = raised.collect();
            if param.set("mean.constant", &raised).is_ok() {
                param.frozen = true;
                held.push(format!("mean.{path}"));
            }
        }
    }
    for (path, param) in model.likelihood.params_mut() {
        if !param.given && !param.frozen {
            param.frozen = true;
            held.push(format!("likelihood.{path}"));
        }
    }
    let inputs = dataset.source.inputs();
    for (k, kernel) in model.kernels.iter_mut().enumerate() {
        let mut prior = [0.0];
        kernel.diag(Mat::<f64>::zeros(1, inputs).as_ref(), &mut prior);
        for (path, param) in kernel.params_mut() {
            if param.role() == Role::Variance && !param.given && !param.frozen && prior[0] > 0.0 {
                let value: Vec<f64> =
                    param.value().iter().map(|v| v * VARIANCE / prior[0]).collect();
                if param.set(&path, &value).is_ok() {
                    param.frozen = true;
                    held.push(if k == 0 {
                        format!("kernel.{path}")
                    } else {
                        format!("kernel[{k}].{path}")
                    });
                }
            }
        }
    }
    let held = if held.is_empty() { "nothing".to_owned() } else { held.join(", ") };
    Some(format!(
        "all targets are {where_}: how near to that end they stay cannot be learnt from them; held where predictions are as uncertain as \
         after no event in so many rows (95 % below about 3 events in all of them): {held}"
    ))
}

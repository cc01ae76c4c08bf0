//! Where a posterior keeps its rows: μ₋ = y − α/D, s₋ = 1/D − σ² with α = G⁻¹(y − m) and D the diagonal of G⁻¹ (Rasmussen & Williams
//! 2006, Eq. 5.12), for any of the rows in any order.

use super::LeaveOneOut;
use crate::data::{Rows, Source};
use crate::error::{Error, Result};
use crate::likelihoods::Target;
use crate::linalg::{Mat, MatRef};
use crate::model::Model;
use crate::model::posterior::Conditioned;
use std::collections::HashMap;

/// What tells rows apart: all their numbers, the variance of the noise among them where it is not that of all.
fn key(x: MatRef<f64>, y: MatRef<f64>, noise: Option<f64>, i: usize) -> Vec<u64> {
    let x = (0..x.ncols()).map(|q| x[(i, q)].to_bits());
    let y = (0..y.ncols()).map(|p| y[(i, p)].to_bits());
    x.chain(y).chain(noise.map(f64::to_bits)).collect()
}

/// The variance of the noise of a row that brings a weight or a known variance.
fn noise_of(model: &Model, rows: &Rows<'_>, i: usize) -> Option<f64> {
    let weight = rows.weights.get(i).copied();
    let known = rows.extra.get(i).copied();
    let plain = weight.is_none() && known.is_none();
    (!plain).then(|| (model.noise() + known.unwrap_or(0.0)) / weight.unwrap_or(1.0))
}

/// Every row of `data` as the others predict it.
///
/// # Errors
/// [`Error::Invalid`] for a row that the posterior does not keep.
pub(super) fn leave_one_out(
    own: &Conditioned,
    model: &Model,
    data: &dyn Source,
) -> Result<LeaveOneOut> {
    let (alpha, precision) = own.known.at_rows()?;
    let kept = &own.rows;
    // the rows that are asked for may be few of those that are kept; equal ones have equal predictions
    let mut places: HashMap<Vec<u64>, Option<usize>> = HashMap::new();
    data.for_each_chunk(1 << 14, &mut |rows| {
        let y = rows.y - own.mean_at(rows.x);
        let key = |i| key(rows.x, y.as_ref(), noise_of(model, &rows, i), i);
        places.extend((0..rows.x.nrows()).map(|i| (key(i), None)));
        Ok(())
    })?;
    let plain = data.is_plain();
    for i in 0..kept.x.nrows() {
        let noise = (!plain).then(|| kept.noise[i]);
        if let Some(place) = places.get_mut(&key(kept.x.as_ref(), kept.y.as_ref(), noise, i)) {
            *place = Some(i);
        }
    }
    let (n, outputs) = (data.rows(), kept.y.ncols());
    let zeros = || Mat::zeros(n, outputs);
    let mut all = LeaveOneOut {
        f_mean: zeros(),
        f_variance: zeros(),
        mean: zeros(),
        variance: zeros(),
        log_density: zeros(),
    };
    let likelihood = &*model.likelihood;
    let default = likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
    data.for_each_chunk(1 << 14, &mut |rows| {
        // less the mean function, as they were kept
        let mean = own.mean_at(rows.x);
        let y = rows.y - &mean;
        for i in 0..rows.x.nrows() {
            let row = rows.start + i;
            let extra = rows.extra.get(i).copied().unwrap_or(default);
            let uncounted = rows.weights.get(i).is_some_and(|w| *w == 0.0);
            let own_key = key(rows.x, y.as_ref(), noise_of(model, &rows, i), i);
            let at = places.get(&own_key).copied().flatten();
            let (means, variance) = match at {
                Some(at) => {
                    let d = precision[at];
                    let f = |p: usize| mean[(i, p)] + kept.y[(at, p)] - alpha[(at, p)] / d;
                    let means: Vec<f64> = (0..outputs).map(f).collect();
                    (means, (1.0 / d - kept.noise[at]).max(0.0))
                }
                None if uncounted => own.at(rows.x.subrows(i, 1))?,
                None => {
                    return Err(Error::Invalid(format!(
                        "row {} cannot be left out: it is none of those that the model was conditioned on",
                        row + 1
                    )));
                }
            };
            for (p, f) in means.into_iter().enumerate() {
                let target = Target { y: rows.y[(i, p)], extra };
                let (f, spread) = ([f], [variance]);
                (all.f_mean[(row, p)], all.f_variance[(row, p)]) = (f[0], variance);
                (all.mean[(row, p)], all.variance[(row, p)]) =
                    likelihood.predict(extra, &f, &spread);
                all.log_density[(row, p)] = match target.y.is_nan() {
                    true => f64::NAN,
                    false => likelihood.predict_log_density(target, &f, &spread),
                };
            }
        }
        Ok(())
    })?;
    Ok(all)
}

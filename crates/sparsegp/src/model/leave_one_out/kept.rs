//! Where a posterior keeps its rows, and its method knows what the others predict of each: for any of the rows in any order.

use super::LeaveOneOut;
use crate::data::{Rows, Source};
use crate::error::{Error, Result};
use crate::likelihoods::Target;
use crate::linalg::Mat;
use crate::model::Model;
use crate::model::posterior::Conditioned;
use std::collections::HashMap;

/// Returns what tells rows apart: all their numbers.
fn key(rows: &Rows<'_>, i: usize) -> Vec<u64> {
    let x = (0..rows.x.ncols()).map(|q| rows.x[(i, q)]);
    let y = (0..rows.y.ncols()).map(|p| rows.y[(i, p)]);
    // a weight of 1 need not be given
    let weight = rows.weights.get(i).copied().unwrap_or(1.0);
    x.chain(y).chain([weight]).chain(rows.extra.get(i).copied()).map(f64::to_bits).collect()
}

/// Returns every row of `data` as the others predict it.
///
/// # Errors
/// [`Error::Invalid`] for a row that the posterior does not keep.
pub(super) fn leave_one_out(
    own: &Conditioned,
    model: &Model,
    data: &dyn Source,
) -> Result<LeaveOneOut> {
    let (means, variances) = own.known.left_out()?;
    let kept = own.rows.all();
    // the rows that are asked for may be few of those that are kept; equal ones have equal predictions
    let mut places: HashMap<Vec<u64>, Option<usize>> = HashMap::new();
    data.for_each_chunk(1 << 14, &mut |rows| {
        places.extend((0..rows.x.nrows()).map(|i| (key(&rows, i), None)));
        Ok(())
    })?;
    for i in 0..kept.x.nrows() {
        if let Some(place) = places.get_mut(&key(&kept, i)) {
            *place = Some(i);
        }
    }
    let likelihood = &*model.likelihood;
    let (n, outputs, k) = (data.rows(), kept.y.ncols(), likelihood.latents());
    let zeros = |columns| Mat::zeros(n, columns);
    let mut all = LeaveOneOut {
        f_mean: zeros(means.ncols()),
        f_variance: zeros(means.ncols()),
        mean: zeros(outputs),
        variance: zeros(outputs),
        log_density: zeros(outputs),
    };
    let default = likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
    data.for_each_chunk(1 << 14, &mut |rows| {
        let mean = own.mean_at(rows.x);
        for i in 0..rows.x.nrows() {
            let row = rows.start + i;
            let extra = rows.extra.get(i).copied().unwrap_or(default);
            let uncounted = rows.weights.get(i).is_some_and(|w| *w == 0.0);
            let at = places.get(&key(&rows, i)).copied().flatten();
            let (f, spread) = match at {
                Some(at) => (means.row(at).to_owned(), variances.row(at).to_owned()),
                None if uncounted => {
                    let (f, spread) = own.known.moments(rows.x.subrows(i, 1))?;
                    (f.row(0).to_owned(), spread.row(0).to_owned())
                }
                None => {
                    let left = own.known.past().map_or(0, |past| past.rows);
                    let why = match left {
                        0 => "it is none of those that the model was conditioned on".to_owned(),
                        _ => format!(
                            "it is none of those that the model keeps, which {left} rows have left (`keep_rows` keeps more)"
                        ),
                    };
                    return Err(Error::Invalid(format!("row {} cannot be left out: {why}", row + 1)));
                }
            };
            for l in 0..f.ncols() {
                all.f_mean[(row, l)] = mean[(i, l)] + f[l];
                all.f_variance[(row, l)] = spread[l];
            }
            for p in 0..outputs {
                let part =
                    |a: &Mat<f64>| (p * k..(p + 1) * k).map(|l| a[(row, l)]).collect::<Vec<_>>();
                let (f, spread) = (part(&all.f_mean), part(&all.f_variance));
                let target = Target { y: rows.y[(i, p)], extra };
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

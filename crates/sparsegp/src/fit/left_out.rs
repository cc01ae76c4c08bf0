//! What rows say that are left out: whether straight lines predict them better than the model does, and whether they lie where
//! it says.
//!
//! The kernel with the largest evidence describes most rows best. Where targets or inputs have heavy tails, its errors in the few
//! rows far out may all the same be larger than those of least squares. A smooth function without noise explains both sides of
//! a jump, and is certain of what lies between.

use super::learning::Trained;
use super::{AUTO_EXACT, Dataset, sample, weights};
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, column, product, sum_of_products, symmetric_eigen};
use crate::model::LeaveOneOut;

/// By how much errors must be larger for a warning.
const WORSE: f64 = 1.25;
/// Standard deviations from which a row lies elsewhere. The squares of all together say nothing: the largest evidence makes their
/// mean 1.
const FAR: f64 = 6.0;
/// Noise variances below this part of that of the target are none.
const NO_NOISE: f64 = 1e-4;
/// Errors that do not matter, as a part of the standard deviation of the targets.
const EXPLAINED: f64 = 1e-2;
/// Rows that are left out, at most; fewer than the least tell nothing.
const MOST_ROWS: usize = AUTO_EXACT;
const LEAST_ROWS: usize = 20;
/// Inputs of straight lines, at most.
const MOST_INPUTS: usize = 500;
/// Penalties of slopes that are tried, as powers of ten of the mean square of an input.
const PENALTIES: std::ops::RangeInclusive<i32> = -8..=3;

/// Returns warnings about a target that straight lines predict clearly better, and about one whose rows lie elsewhere. Gaussian
/// noise only: other likelihoods do not ask for small squares.
pub(super) fn warnings(trained: &Trained, dataset: &Dataset, seed: u64) -> Result<Vec<String>> {
    let Trained { model, posterior, .. } = trained;
    let plain = model.likelihood.as_gaussian().is_some() && model.likelihood.mixing().is_none();
    let all = dataset.source.rows() <= MOST_ROWS;
    let judged = plain
        && (all || model.method.is_sparse())
        && !dataset.has_constants()
        && dataset.source.sharded().is_none()
        && posterior.leaves_one_out(model);
    if !judged {
        return Ok(Vec::new());
    }
    let rows = sample::sample_rows(&*dataset.source, MOST_ROWS, seed)?;
    let left_out = match posterior.leave_one_out(model, &rows) {
        Ok(found) => found,
        // q of a training that was cut short may be far from its optimum
        Err(error) if error.is_recoverable() || matches!(error, Error::Invalid(_)) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    let count = dataset.target_names.len();
    for (p, name) in dataset.target_names.iter().enumerate() {
        let of = if count > 1 { format!(" of `{name}`") } else { String::new() };
        let Some(own) = Errors::of(&rows, &left_out, p)? else { continue };
        if own.far > 0 && model.noise() < NO_NOISE * own.spread * own.spread {
            found.push(format!(
                "{} of {} rows{of} lie more than six standard deviations away when they are left out, and the model knows no noise: \
                 the function jumps or bends, or some rows are wrong, and intervals hold less than they say; try a rougher kernel \
                 (`matern12`)",
                own.far, own.rows
            ));
        }
        // errors of a function of the target are in no unit that a person knows
        let plain = dataset.scaler.transform(p).is_none();
        let line = own.lines.filter(|line| plain && own.model > WORSE * line);
        if let Some(line) = line.filter(|_| own.model > EXPLAINED * own.spread) {
            let scale = dataset.scaler.y_scale[p];
            found.push(format!(
                "straight lines predict rows{of} that are left out better than the model: the root mean square of errors is \
                 {:.3e} for {:.3e}; where that matters more than densities, try the kernel `linear` or a sum with it, a \
                 transformed target, or a likelihood with heavy tails",
                scale * line,
                scale * own.model
            ));
        }
        if !found.is_empty() {
            break;
        }
    }
    Ok(found)
}

/// Errors in rows that are left out.
struct Errors {
    /// Root mean squares.
    model: f64,
    /// None for too many inputs.
    lines: Option<f64>,
    /// Rows that lie elsewhere, of so many.
    far: usize,
    rows: usize,
    /// Standard deviation of the target.
    spread: f64,
}

impl Errors {
    fn of(rows: &InMemory, left_out: &LeaveOneOut, p: usize) -> Result<Option<Self>> {
        let usable = |i: &usize| !rows.y[(*i, p)].is_nan();
        let known: Vec<usize> = weights::counting(rows).into_iter().filter(usable).collect();
        if known.len() < LEAST_ROWS {
            return Ok(None);
        }
        let weight: Vec<f64> =
            known.iter().map(|&i| rows.weights.get(i).copied().unwrap_or(1.0)).collect();
        let total: f64 = weight.iter().sum();
        let square = |i: &usize| (rows.y[(*i, p)] - left_out.mean[(*i, p)]).powi(2);
        let far = |i: &&usize| square(i) > FAR * FAR * left_out.variance[(**i, p)];
        let mut y: Vec<f64> = known.iter().map(|i| rows.y[(*i, p)]).collect();
        centre(&mut y, &weight);
        let lines = match rows.x.ncols() <= MOST_INPUTS {
            true => {
                let x = Mat::from_fn(known.len(), rows.x.ncols(), |i, q| rows.x[(known[i], q)]);
                Some((of_lines(x, &y, &weight)? / total).sqrt())
            }
            false => None,
        };
        let squares = known.iter().zip(&weight).map(|(i, weight)| weight * square(i));
        Ok(Some(Self {
            model: (squares.sum::<f64>() / total).sqrt(),
            lines,
            far: known.iter().filter(far).count(),
            rows: known.len(),
            spread: (sum_of_products(&y, &y) / total).sqrt(),
        }))
    }
}

/// Returns the weighted sum of the squared errors of straight lines in rows that are left out, at the best penalty of their
/// slopes, for [centred](centre) targets. An error is r/(1 − h) with the residual r and the leverage h of its row.
fn of_lines(mut x: Mat<f64>, y: &[f64], weights: &[f64]) -> Result<f64> {
    (0..x.ncols()).for_each(|q| centre(x.col_as_slice_mut(q), weights));
    let (squares, vectors) = symmetric_eigen(product(x.transpose(), x.as_ref()).as_ref())?;
    let along = product(x.as_ref(), vectors.as_ref());
    let unit = squares.iter().sum::<f64>() / squares.len().max(1) as f64;
    let penalised =
        |power: i32| sum_left_out(along.as_ref(), &squares, y, weights, unit * 10_f64.powi(power));
    Ok(PENALTIES.map(penalised).fold(f64::INFINITY, f64::min))
}

fn sum_left_out(
    along: MatRef<f64>,
    squares: &[f64],
    y: &[f64],
    weights: &[f64],
    penalty: f64,
) -> f64 {
    let total: f64 = weights.iter().sum();
    let mut residuals = y.to_vec();
    let mut leverages: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
    for (k, square) in squares.iter().enumerate() {
        let own = column(along, k);
        let weight = 1.0 / (square.max(0.0) + penalty);
        let slope = weight * sum_of_products(own, y);
        for ((residual, leverage), value) in residuals.iter_mut().zip(&mut leverages).zip(own) {
            *residual -= slope * value;
            *leverage += weight * value * value;
        }
    }
    // a row that has an input to itself is left out by no penalty of 0
    let error =
        |(residual, leverage): (&f64, &f64)| (residual / (1.0 - leverage).max(1e-9)).powi(2);
    residuals.iter().zip(&leverages).map(error).sum()
}

/// Takes the weighted mean from values, and multiplies them by the roots of their weights: least squares with weights are plain
/// ones of such values.
fn centre(values: &mut [f64], weights: &[f64]) {
    let mean = sum_of_products(values, weights) / weights.iter().sum::<f64>();
    values.iter_mut().zip(weights).for_each(|(v, weight)| *v = (*v - mean) * weight.sqrt());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors in rows left out, by leaving them out.
    #[test]
    fn errors_are_those_of_lines_without_the_row() {
        let x = Mat::from_fn(12, 2, |i, q| ((i * i + 3 * q) as f64 * 0.7).sin() + q as f64);
        let y: Vec<f64> = (0..12).map(|i| (i as f64).cos() + 2.0 * x[(i, 0)]).collect();
        let weights: Vec<f64> = (0..12).map(|i| 0.5 + 0.3 * (i % 4) as f64).collect();
        let mut own = y.clone();
        centre(&mut own, &weights);
        let found = of_lines(x.clone(), &own, &weights).unwrap();
        let best = |penalty: f64| {
            let square = |out: usize| {
                let rows: Vec<usize> = (0..12).filter(|i| *i != out).collect();
                // least squares with the constant and the penalty as further rows
                let a = Mat::from_fn(3, 3, |j, k| {
                    let of = |i: usize, j: usize| if j == 2 { 1.0 } else { x[(i, j)] };
                    let sum: f64 = rows.iter().map(|&i| weights[i] * of(i, j) * of(i, k)).sum();
                    sum + if j == k && j < 2 { penalty } else { 0.0 }
                });
                let b: Vec<f64> = (0..3)
                    .map(|j| {
                        let of = |i: usize| if j == 2 { 1.0 } else { x[(i, j)] };
                        rows.iter().map(|&i| weights[i] * y[i] * of(i)).sum()
                    })
                    .collect();
                let (values, vectors) = symmetric_eigen(a.as_ref()).unwrap();
                let mut slopes = [0.0; 3];
                for (k, value) in values.iter().enumerate() {
                    let own = vectors.col_as_slice(k);
                    let share = sum_of_products(own, &b) / value;
                    (0..3).for_each(|j| slopes[j] += share * own[j]);
                }
                let line = slopes[0] * x[(out, 0)] + slopes[1] * x[(out, 1)] + slopes[2];
                weights[out] * (y[out] - line).powi(2)
            };
            (0..12).map(square).sum::<f64>()
        };
        let mut centred = x.clone();
        (0..2).for_each(|q| centre(centred.col_as_slice_mut(q), &weights));
        let unit = (0..2)
            .map(|q| sum_of_products(centred.col_as_slice(q), centred.col_as_slice(q)))
            .sum::<f64>()
            / 2.0;
        let expected =
            PENALTIES.map(|power| best(unit * 10_f64.powi(power))).fold(f64::INFINITY, f64::min);
        assert!((found - expected).abs() < 1e-9 * expected, "{found} {expected}");
    }
}

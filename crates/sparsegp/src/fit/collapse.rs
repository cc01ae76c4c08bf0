//! Whether a fit has ended as a constant where the rows say something else.

use super::near;
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Jitter, Mat, column, dot};
use crate::linalg::{in_parts, stacked};
use crate::model::{Model, Posterior};

/// A latent mean that moves by no more than this part of the noise, or of 1 where the likelihood has another, is a constant.
const STILL: f64 = 0.02;

/// Standard deviations by which the score statistic must exceed its mean.
const CLEAR: f64 = 6.0;

/// Further starts where mixed functions ended as constants, until one does not.
pub(super) const ATTEMPTS: usize = 4;

/// Rows that are looked at.
pub(super) const ROWS: usize = 20_000;

/// What is said of layers.
const LAYERS: &str = "the layers ended as a constant, although the targets have a trend in the inputs (a score test is clear): \
     try more epochs (`epochs`), another `seed` (`random_state`), or a method of one layer";
/// What is said where there was no other start.
const CONSTANT: &str = "the model is a constant, although the targets have a trend in the inputs (a score test is clear): try \
     --restarts 5 (`n_restarts_optimizer=5`), another kernel, or more steps";
/// What is said where nothing better was found.
pub(super) const STILL_CONSTANT: &str = "the model is a constant, although the targets have a trend in the inputs (a score test is \
     clear), and another start has found nothing better: try --restarts 5 (`n_restarts_optimizer=5`), another kernel, or more rows";
/// What is said where there is no trend either.
pub(super) const NOTHING_FOUND: &str = "the model is a constant: it has found nothing in the inputs that tells targets apart, and \
     predicts nearly the same for every row";
/// What is said where it was.
pub(super) const MENDED: &str = "the model had ended as a constant, although the targets depend on the inputs: it was \
     trained again from another start, which is the better one";

/// Returns what is said where there is no second training.
pub(super) fn failed(error: &Error) -> String {
    format!(
        "the model is a constant, although the targets have a trend in the inputs (a score test is clear), and training from \
         another start did not end ({error}): try --restarts 5 (`n_restarts_optimizer=5`)"
    )
}

/// Returns what is said of a model that misses a trend.
pub(super) fn constant(model: &Model) -> &'static str {
    if model.hidden.is_empty() { CONSTANT } else { LAYERS }
}

/// Returns the latent means at rows, N×L.
pub(super) fn means(posterior: &Posterior, rows: &InMemory) -> Result<Mat<f64>> {
    let parts = in_parts(rows.x.as_ref(), |_, x| posterior.predict_mean(x))?;
    Ok(stacked(&parts, rows.x.nrows(), posterior.latents()))
}

/// Returns whether a model with these latent means is a constant although the targets have a trend
/// in the inputs.
pub(super) fn misses_a_trend(model: &Model, mean: &Mat<f64>, rows: &InMemory) -> bool {
    let (n, d) = (rows.x.nrows(), rows.x.ncols());
    let judged = model.likelihood.mixing().is_none() && n > 2 * d;
    judged && is_constant(model, mean) && has_trend(model, mean, rows)
}

/// Returns whether all latent functions that a likelihood mixes are constants, which is a place
/// where gradients vanish: functions and the weights that mix them are at 0 together. No score test
/// tells then, and another start is worth its time.
pub(super) fn mixes_constants(model: &Model, mean: &Mat<f64>) -> bool {
    model.likelihood.mixing().is_some() && is_constant(model, mean)
}

/// Returns whether the means of all latent functions, N×L, are constants that were not asked for by
/// name.
pub(super) fn is_constant(model: &Model, mean: &Mat<f64>) -> bool {
    if model.kernels.iter().all(|kernel| kernel.name() == "constant") {
        return false;
    }
    let noise = model.noise();
    let unit = if noise.is_nan() { 1.0 } else { noise.sqrt() };
    (0..mean.ncols()).all(|l| {
        let values = column(mean.as_ref(), l);
        let n = values.len().max(1) as f64;
        let centre = values.iter().sum::<f64>() / n;
        let square = values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / n;
        square.sqrt() <= STILL * unit
    })
}

/// Returns the score statistic for a linear trend at a function that is a constant (Rao 1948; Cox &
/// Hinkley 1974, §9.3): with gᵢ = ∂ log p(yᵢ | f)/∂f, weights wᵢ and centred inputs, s = Σ wᵢgᵢxᵢ
/// and V = Σ wᵢgᵢ²xᵢxᵢᵀ, it is sᵀV⁻¹s, which is χ² with D degrees of freedom if there is none.
/// Returns whether it is clearly more for some latent function. It needs no fit, whatever the
/// likelihood.
fn has_trend(model: &Model, mean: &Mat<f64>, rows: &InMemory) -> bool {
    let d = rows.x.ncols() as f64;
    let slopes = near::slopes(&*model.likelihood, mean, rows);
    let bar = d + CLEAR * (2.0 * d).sqrt();
    (0..slopes.ncols()).any(|l| statistic(rows, column(slopes.as_ref(), l)) > bar)
}

/// Returns sᵀV⁻¹s; 0 where it cannot be found.
fn statistic(rows: &InMemory, slopes: &[f64]) -> f64 {
    let (n, d) = (rows.x.nrows(), rows.x.ncols());
    let total: f64 = slopes.iter().map(|g| g * g).sum();
    if !(total > 0.0 && total.is_finite()) {
        return 0.0;
    }
    let weight = |i: usize| rows.weights.get(i).copied().unwrap_or(1.0);
    let weights: f64 = (0..n).map(weight).sum();
    let of = |q: usize| column(rows.x.as_ref(), q).iter().enumerate();
    let means: Vec<f64> =
        (0..d).map(|q| of(q).map(|(i, v)| weight(i) * v).sum::<f64>() / weights).collect();
    // rows times the root of their weights
    let centred =
        Mat::from_fn(n, d, |i, q| (rows.x[(i, q)] - means[q]) * slopes[i] * weight(i).sqrt());
    let variance = crate::linalg::product(centred.transpose(), centred.as_ref());
    let score = Mat::from_fn(d, 1, |q, _| {
        let values = column(centred.as_ref(), q).iter().enumerate();
        values.map(|(i, v)| weight(i).sqrt() * v).sum::<f64>()
    });
    match Cholesky::new(variance.as_ref(), Jitter::Relative(1e-10), "the variance of the score") {
        Ok(factor) => dot(score.as_ref(), factor.solve(score.as_ref()).as_ref()),
        Err(_) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use rand_distr::{Distribution, StandardNormal};

    /// Without a trend the statistic is χ² with D degrees of freedom: mean D and variance 2D, whatever the slopes' size.
    #[test]
    fn the_statistic_is_chi_squared_where_there_is_no_trend() {
        let (n, d, runs) = (400, 3, 400);
        let generator = &mut rng::stream(4, "score");
        let mut values = Vec::new();
        for _ in 0..runs {
            let mut normal = || -> f64 { StandardNormal.sample(&mut *generator) };
            let x = Mat::from_fn(n, d, |_, q| 7.0 + 10_f64.powi(q as i32) * normal());
            let slopes: Vec<f64> =
                (0..n).map(|i| 0.03 * (1.0 + (i % 4) as f64) * normal()).collect();
            let rows = InMemory::new(x, Mat::zeros(n, 1)).unwrap();
            values.push(statistic(&rows, &slopes));
        }
        let count = runs as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
        // at four standard errors; of the variance those of a χ²: 8D² + 48D for the square of the deviation
        assert!((mean - 3.0).abs() < 4.0 * (6.0 / count).sqrt(), "{mean}");
        assert!(
            (variance - 6.0).abs() < 4.0 * (8.0 * 9.0_f64 + 48.0 * 3.0).sqrt() / count.sqrt(),
            "{variance}"
        );
    }

    /// A linear trend of a tenth of the noise in 4000 rows is clear.
    #[test]
    fn a_weak_trend_in_many_rows_is_seen() {
        let n = 4000;
        let generator = &mut rng::stream(5, "trend");
        let mut normal = || -> f64 { StandardNormal.sample(&mut *generator) };
        let x = Mat::from_fn(n, 2, |_, _| 2.0 + normal());
        let slopes: Vec<f64> = (0..n).map(|i| 0.1 * (x[(i, 1)] - 2.0) + normal()).collect();
        let rows = InMemory::new(x, Mat::zeros(n, 1)).unwrap();
        // expected: n·0.01 = 40 above 2, against a bar of 14
        assert!(statistic(&rows, &slopes) > 2.0 + CLEAR * 2.0);
        assert_eq!(statistic(&rows, &vec![0.0; n]), 0.0);
    }
}

//! What several experiments need: splits, averages, scores, traces.

use sparsegp::data::Loaded;
use sparsegp::fit::Fitted;
use sparsegp::kernels::Tape;
use sparsegp::linalg::{Cholesky, Mat};
use sparsegp::model::{Model, hyperparameter_names};
use sparsegp::rng;
use sparsegp::train::TrainReport;

/// Returns the mean with its standard error, 0 for one value.
pub fn average(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 {
        return (mean, 0.0);
    }
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Returns the average in words.
pub fn averaged(values: &[f64], digits: usize) -> String {
    let (mean, error) = average(values);
    match values.len() {
        0 | 1 => format!("{mean:.digits$}"),
        _ => format!("{mean:.digits$} ± {error:.digits$}"),
    }
}

/// Returns these rows of a matrix.
pub fn pick(a: &Mat<f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), a.ncols(), |i, j| a[(rows[i], j)])
}

/// Training and test rows.
pub struct Split {
    /// Inputs to learn from.
    pub x: Mat<f64>,
    /// Targets to learn from.
    pub y: Mat<f64>,
    /// Inputs to predict at.
    pub test_x: Mat<f64>,
    /// Targets to predict.
    pub test_y: Mat<f64>,
}

/// Splits rows at random: a fifth to test, and of the rest a fifth left out, which the papers validate on. At
/// most `most` rows are learnt from.
pub fn fifths(all: &Loaded, seed: u64, most: usize) -> Split {
    let n = all.x.nrows();
    let order = rng::permutation(&mut rng::stream(seed, "split"), n, n);
    let (test, rest) = order.split_at(n / 5);
    let training = &rest[rest.len() / 5..];
    let training = &training[..training.len().min(most)];
    Split {
        x: pick(&all.x, training),
        y: pick(&all.y, training),
        test_x: pick(&all.x, test),
        test_y: pick(&all.y, test),
    }
}

/// Scores test rows in standardised units: the mean log density and the root mean square error.
pub fn judge(fitted: &Fitted, split: &Split) -> sparsegp::Result<(f64, f64)> {
    let (mut x, mut y) = (split.test_x.clone(), split.test_y.clone());
    fitted.scaler.scale_x(x.as_mut())?;
    fitted.scaler.scale_y(y.as_mut())?;
    let (mut density, mut squares) = (0.0, 0.0);
    for start in (0..x.nrows()).step_by(1024) {
        let len = 1024.min(x.nrows() - start);
        let (x, y) = (x.as_ref().subrows(start, len), y.as_ref().subrows(start, len));
        density += fitted.posterior.predict_log_density(x, y, &[])?.iter().sum::<f64>();
        let means = fitted.posterior.predict_mean(x)?;
        squares += (0..len).map(|i| (y[(i, 0)] - means[(i, 0)]).powi(2)).sum::<f64>();
    }
    let n = x.nrows() as f64;
    Ok((density / n, (squares / n).sqrt()))
}

/// Returns the objective by iteration, and a hyperparameter by iteration.
pub fn traces(model: &Model, report: &TrainReport, path: &str) -> [Vec<(f64, f64)>; 2] {
    let at = hyperparameter_names(model).iter().position(|name| name == path);
    let objective = report.trace.iter().map(|p| (p.iteration as f64, p.objective));
    let value = |parameters: &[f64]| at.and_then(|at| parameters.get(at)).copied();
    let values =
        report.trace.iter().map(|p| (p.iteration as f64, value(&p.parameters).unwrap_or(f64::NAN)));
    [thin(objective.collect(), 300), thin(values.collect(), 300)]
}

/// Leaves out points of a curve evenly, so that a picture stays small; the last one stays.
pub fn thin(points: Vec<(f64, f64)>, most: usize) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(most.max(1)).max(1);
    let last = points.len().saturating_sub(1);
    points
        .into_iter()
        .enumerate()
        .filter(|(i, _)| i % step == 0 || *i == last)
        .map(|(_, p)| p)
        .collect()
}

/// Returns what the inducing points leave of the prior variance of every row, kᵢᵢ − qᵢᵢ.
pub fn unexplained(model: &Model, x: &Mat<f64>) -> sparsegp::Result<Vec<f64>> {
    let z = model.inducing_points()?;
    let (kernel, mut tape) = (model.kernel(), Tape::off());
    let mut kuu = Mat::zeros(z.nrows(), z.nrows());
    kernel.evaluate(z.as_ref(), None, kuu.as_mut(), &mut tape);
    let factor = Cholesky::new(kuu.as_ref(), model.jitter, "Kuu")?;
    let mut left = vec![0.0; x.nrows()];
    kernel.diag(x.as_ref(), &mut left);
    for start in (0..x.nrows()).step_by(512) {
        let rows = x.as_ref().subrows(start, 512.min(x.nrows() - start));
        let mut kuf = Mat::zeros(z.nrows(), rows.nrows());
        kernel.evaluate(z.as_ref(), Some(rows), kuf.as_mut(), &mut tape);
        let solved = factor.solve(kuf.as_ref());
        for i in 0..rows.nrows() {
            let explained: f64 = (0..z.nrows()).map(|m| kuf[(m, i)] * solved[(m, i)]).sum();
            left[start + i] = (left[start + i] - explained).max(0.0);
        }
    }
    Ok(left)
}

/// Returns bars of a histogram: the left edge of every bin, and its share of the values.
pub fn histogram(values: &[f64], (low, high): (f64, f64), bins: usize) -> Vec<(f64, f64)> {
    let width = (high - low) / bins as f64;
    let mut counts = vec![0.0; bins];
    for value in values {
        let bin = ((value - low) / width).max(0.0) as usize;
        counts[bin.min(bins - 1)] += 1.0 / values.len() as f64;
    }
    counts.into_iter().enumerate().map(|(i, share)| (low + width * i as f64, share)).collect()
}

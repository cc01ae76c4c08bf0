//! Whether the formula gives what the model gives, before anybody uses it.

use super::program::Program;
use crate::error::{Error, Result};
use crate::fit::{Fitted, Of};
use crate::linalg::{Mat, MatRef};

/// Points that rows are made of.
const POINTS: usize = 12;
/// How far outside of the points rows are too, in ranges of the points.
const FAR: [f64; 3] = [0.3, 3.0, 40.0];
/// How far where a logarithm is taken: values are exponentials of it.
const FAR_IN_LOGARITHMS: f64 = 3.0;
/// Relative difference that is rounding.
const RELATIVE: f64 = 1e-6;
/// Difference of variances that is rounding, as a part of the target's variance: at most, and where a better form may be had.
pub(super) const OF_VARIANCE: f64 = 1e-11;
pub(super) const STRICT: f64 = 1e-14;

/// Returns rows in the data's units: at points, between them, and outside.
fn rows(fitted: &Fitted) -> Mat<f64> {
    let points = fitted.posterior.points();
    let (m, inputs) = (points.nrows(), points.ncols());
    let mut labels: Vec<usize> = Vec::new();
    for kernel in &fitted.model.kernels {
        labels.extend(kernel.labels());
        labels.extend(super::kernels::groups(&kernel.to_json()));
    }
    let at = |i: usize| (i * m / POINTS.min(m)) % m;
    let mut all: Vec<Vec<f64>> = Vec::new();
    for i in 0..POINTS.min(m) {
        let (own, next) = (at(i), at((i + 1) % POINTS.min(m)));
        all.push((0..inputs).map(|d| points[(own, d)]).collect());
        let between = |d: usize| 0.37 * points[(own, d)] + 0.63 * points[(next, d)];
        all.push((0..inputs).map(between).collect());
    }
    for (k, far) in FAR.iter().enumerate() {
        for sign in [1.0, -1.0] {
            let outside = |d: usize| {
                let column = points.col(d);
                let (low, high) = column
                    .iter()
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
                let far = if fitted.scaler.log_unit(d).is_some() {
                    far.min(FAR_IN_LOGARITHMS)
                } else {
                    *far
                };
                // not all inputs in the same direction
                let own = if (d + k).is_multiple_of(2) { sign } else { -0.7 * sign };
                0.5 * (low + high) + own * (0.5 + far) * (high - low).max(1e-3)
            };
            all.push((0..inputs).map(outside).collect());
        }
    }
    let value = |i: usize, d: usize| {
        let own = if labels.contains(&d) { points[(at(i % POINTS), d)] } else { all[i][d] };
        fitted.scaler.unscaled_input(d, own)
    };
    Mat::from_fn(all.len(), inputs, value)
}

/// What is predicted, in the units of a target of this mean and scale.
struct Known {
    mean: Mat<f64>,
    sd: Mat<f64>,
}

fn known(fitted: &Fitted, x: MatRef<f64>, of: Of) -> Result<Known> {
    let (mean, variance) = fitted.predict(x, of)?;
    let sd = Mat::from_fn(variance.nrows(), variance.ncols(), |i, p| variance[(i, p)].sqrt());
    Ok(Known { mean, sd })
}

/// Returns the centres and sizes of what is predicted, where the scales of targets are not its
/// units: medians, which rows far outside do not move.
fn units_of(known: &Known) -> Vec<(f64, f64)> {
    let median = |mut all: Vec<f64>| {
        all.retain(|v| v.is_finite());
        all.sort_unstable_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    };
    let column = |of: &Mat<f64>, p: usize| (0..of.nrows()).map(|i| of[(i, p)]).collect::<Vec<_>>();
    let one = |p: usize| {
        let (mean, sd) = (column(&known.mean, p), median(column(&known.sd, p)));
        let centre = median(mean.clone());
        let spread = median(mean.iter().map(|m| (m - centre).abs()).collect());
        (centre, sd.max(spread))
    };
    (0..known.mean.ncols()).map(one).collect()
}

/// Where and by how much they differ, if they do.
struct Apart {
    what: &'static str,
    row: usize,
    expected: f64,
    found: f64,
}

/// Returns whether a difference is more than it may be, or no number.
fn is_beyond(apart: f64, most: f64) -> bool {
    apart.is_nan() || apart > most
}

fn differs(
    known: &Known,
    found: [&[f64]; 2],
    i: usize,
    units: &[(f64, f64)],
    rounding_of_variance: f64,
) -> Option<Apart> {
    for p in 0..known.mean.ncols() {
        let (mean, sd) = (known.mean[(i, p)], known.sd[(i, p)]);
        let (centre, unit) = units.get(p).copied().unwrap_or((0.0, 1.0));
        let [own_mean, own_sd] = found.map(|all| all[p]);
        if !(mean.is_finite() && sd.is_finite()) {
            continue;
        }
        let rounding = 1e-10 * unit + 1e-13 * mean.abs();
        let most = RELATIVE * ((mean - centre).abs() + sd) + rounding;
        if is_beyond((mean - own_mean).abs(), most) {
            return Some(Apart { what: "mean", row: i, expected: mean, found: own_mean });
        }
        let of_variance = (sd * sd - own_sd * own_sd).abs();
        let most = 2.0 * RELATIVE * sd * sd + rounding_of_variance * unit * unit;
        if is_beyond(of_variance, most) {
            return Some(Apart { what: "standard deviation", row: i, expected: sd, found: own_sd });
        }
    }
    None
}

/// Compares the program with the model at rows inside and far outside of the points; variances but for such a part of that of
/// the target.
///
/// # Errors
/// [`Error::Invalid`] where they differ by more than 10⁻⁶, and what helps; what predictions give.
pub(super) fn check(program: &Program, fitted: &Fitted, part: f64) -> Result<()> {
    let x = rows(fitted);
    let plain = !fitted.scaler.is_transformed();
    let units: Vec<(f64, f64)> = match plain {
        true => fitted
            .scaler
            .y_mean
            .iter()
            .copied()
            .zip(fitted.scaler.y_scale.iter().copied())
            .collect(),
        false => Vec::new(),
    };
    let latent = known(fitted, x.as_ref(), Of::Latent)?;
    let units_of_latent = match plain && fitted.model.likelihood.latents() == 1 {
        true => units.clone(),
        false => units_of(&latent),
    };
    let observed = match program.output("mean") {
        Some(_) => Some(known(fitted, x.as_ref(), Of::Observations)?),
        None => None,
    };
    let units = match &observed {
        Some(observed) if !plain => units_of(observed),
        _ => units,
    };
    let classes = match program.output("probabilities") {
        Some(_) => Some(fitted.predict_proba(x.as_ref())?),
        None => None,
    };
    for i in 0..x.nrows() {
        let row: Vec<f64> = (0..x.ncols()).map(|d| x[(i, d)]).collect();
        let found = program.at(&row);
        let of = |name: &str| {
            let at = program.outputs.iter().position(|own| own.name == name);
            at.map_or(&[][..], |at| &found[at])
        };
        let mut apart =
            differs(&latent, [of("latent_mean"), of("latent_sd")], i, &units_of_latent, part);
        if let Some(observed) = &observed {
            apart = apart.or_else(|| differs(observed, [of("mean"), of("sd")], i, &units, part));
        }
        if let Some(classes) = &classes {
            let own = of("probabilities");
            let wrong = (0..classes.ncols()).find(|c| {
                let p = classes[(i, *c)];
                is_beyond((p - own[*c]).abs(), RELATIVE * p + 1e-9)
            });
            apart = apart.or_else(|| {
                wrong.map(|c| Apart {
                    what: "probability",
                    row: i,
                    expected: classes[(i, c)],
                    found: own[c],
                })
            });
        }
        if let Some(apart) = apart {
            return Err(refusal(&apart, &row));
        }
    }
    Ok(())
}

fn refusal(apart: &Apart, row: &[f64]) -> Error {
    let Apart { what, row: i, expected, found } = apart;
    Error::Invalid(format!(
        "the exported formula is not the model to six digits: at row {i} of those it was compared at ({row:?}) its {what} is \
         {found} where the model says {expected}. Rounding does that where the covariance of the points is nearly singular: fit \
         with fewer inducing points, or with more noise"
    ))
}

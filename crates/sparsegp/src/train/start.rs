//! Where a training on all rows begins, if the model's own start is far from anything: means in closed form, and q by guesses.

use super::ascent::terms;
use super::frame::Spreads;
use crate::data::Source;
use crate::engine::Engine;
use crate::error::Result;
use crate::linalg::{Cholesky, Jitter, Mat};
use crate::means::Mean;
use crate::methods::q_steps;
use crate::methods::uncollapsed::guesses::{Guesses, constants};
use crate::model::Model;
use crate::params::{Param, Role};
use crate::variational::Variational;

/// Nats per target by which guesses must be better than the q that is there.
const FAR: f64 = 10.0;

/// Rows for every input that least squares has to have: with fewer it would fit noise.
const ROWS: usize = 10;

/// Most inputs that least squares is for: it takes their cube.
const MOST_INPUTS: usize = 500;

/// Moves means that are still 0, and a q far below what guesses give, to a better start; the rest stays.
///
/// # Errors
/// Those that are not recoverable.
pub(super) fn improve(model: &mut Model, engine: &dyn Engine, data: &dyn Source) -> Result<()> {
    let found = match means(model, data) {
        Err(error) if error.is_recoverable() => None,
        outcome => outcome?,
    };
    if let Some(mean) = found {
        let before = objective(model, engine, data)?;
        let old = std::mem::replace(&mut model.mean, mean);
        let after = objective(model, engine, data)?;
        if after.is_none() || before.is_some_and(|before| after < Some(before)) {
            model.mean = old;
        }
    }
    guesses(model, engine, data)
}

/// Returns the objective without priors; none where there is none.
fn objective(model: &Model, engine: &dyn Engine, data: &dyn Source) -> Result<Option<f64>> {
    let value = match q_steps(model) {
        Ok(mut steps) => steps.value(model, engine, data),
        Err(_) => model.evaluate(engine, data).map(|evaluation| evaluation.value),
    };
    match value {
        Ok(value) => Ok(Some(value).filter(|value| value.is_finite())),
        Err(error) if error.is_recoverable() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether nothing of a parameter has been given yet.
fn untouched(param: &Param) -> bool {
    movable(param) && param.value().iter().all(|v| *v == 0.0)
}

fn movable(param: &Param) -> bool {
    !param.frozen && !param.given && param.prior.is_none()
}

/// Returns the mean function at a start in closed form; none where it stays.
fn means(model: &Model, data: &dyn Source) -> Result<Option<Box<dyn Mean>>> {
    let of_mean = model.mean.params();
    let find = |role: Role| of_mean.iter().find(|(_, p)| p.role() == role).map(|(_, param)| *param);
    let (constant, weights) = (find(Role::Constant), find(Role::Slopes));
    let lines = weights.is_some_and(untouched);
    if !lines && !constant.is_some_and(untouched) {
        return Ok(None);
    }
    let mut mean = model.mean.clone();
    let levels = if model.likelihood.as_gaussian().is_none() {
        if !constant.is_some_and(untouched) {
            return Ok(None);
        }
        constants(model, data)?
    } else {
        let (n, d) = (data.rows(), data.inputs());
        let enough = n >= ROWS * (d + 1) && d <= MOST_INPUTS;
        let free = constant.is_some_and(movable);
        if !free || !(lines && enough || constant.is_some_and(untouched)) {
            return Ok(None);
        }
        let (slopes, mut levels) = least_squares(model, data, lines && enough)?;
        if lines && enough {
            set(&mut *mean, "weights", &slopes)?;
        }
        let old = constant.map_or(&[][..], |param| param.value());
        levels.iter_mut().zip(old).for_each(|(level, old)| *level += old);
        levels
    };
    set(&mut *mean, "constant", &levels)?;
    Ok(Some(mean))
}

fn set(mean: &mut dyn Mean, name: &str, values: &[f64]) -> Result<()> {
    for (path, param) in mean.params_mut() {
        if path == name && values.iter().all(|v| v.is_finite()) {
            param.set(&path, values)?;
        }
    }
    Ok(())
}

/// Solves the weighted least squares of what the mean function leaves of the targets, with the
/// noise variances that are known: slopes (D numbers of every target in turn, if they are wanted)
/// and constants.
fn least_squares(model: &Model, data: &dyn Source, lines: bool) -> Result<(Vec<f64>, Vec<f64>)> {
    if let Some(rows) = data.sharded() {
        return least_squares(model, &rows.spread()?, lines);
    }
    let (d, p) = (if lines { data.inputs() } else { 0 }, data.outputs());
    let spreads = Spreads::of(data)?;
    let units: Vec<(f64, f64)> = spreads.inputs[..d]
        .iter()
        .map(|moments| {
            let deviation = (moments.squares() / moments.count().max(1) as f64).sqrt();
            (moments.mean(), if deviation > 0.0 { deviation } else { 1.0 })
        })
        .collect();
    // differences from these, so that sums of squares keep their digits
    let levels: Vec<f64> = spreads.targets.iter().map(|moments| moments.mean()).collect();
    let noise = model.noise();
    let mut normal = vec![Mat::<f64>::zeros(d + 1, d + 1); p];
    let mut right = vec![Mat::<f64>::zeros(d + 1, 1); p];
    data.for_each_chunk(1 << 14, &mut |rows| {
        let mut design = vec![1.0; d + 1];
        let mut mean = Mat::zeros(rows.x.nrows(), p);
        model.mean.evaluate(rows.x, mean.as_mut());
        for i in 0..rows.x.nrows() {
            let weight = rows.weights.get(i).copied().unwrap_or(1.0);
            let known = rows.extra.get(i).copied().unwrap_or(0.0);
            // also where there is no noise at all
            let weight = if known > 0.0 { weight * noise / (noise + known) } else { weight };
            for (j, (centre, unit)) in units.iter().enumerate() {
                design[j] = (rows.x[(i, j)] - centre) / unit;
            }
            for (l, level) in levels.iter().enumerate() {
                let y = rows.y[(i, l)] - level - mean[(i, l)];
                if !y.is_finite() || weight <= 0.0 {
                    continue;
                }
                for a in 0..=d {
                    right[l][(a, 0)] += weight * design[a] * y;
                    for b in 0..=a {
                        normal[l][(a, b)] += weight * design[a] * design[b];
                    }
                }
            }
        }
        Ok(())
    })?;
    let (mut slopes, mut constants) = (Vec::new(), Vec::new());
    for (l, level) in levels.iter().enumerate() {
        // inputs that are the same but for a factor share the slope
        let factor = Cholesky::new(normal[l].as_ref(), Jitter::Relative(1e-12), "least squares")?;
        let found = factor.solve(right[l].as_ref());
        let own: Vec<f64> = units.iter().enumerate().map(|(j, u)| found[(j, 0)] / u.1).collect();
        let shift: f64 = own.iter().zip(&units).map(|(w, (centre, _))| w * centre).sum();
        constants.push(level + found[(d, 0)] - shift);
        slopes.extend(own);
    }
    Ok((slopes, constants))
}

/// Gives the model the q of guesses where its own is far below.
fn guesses(model: &mut Model, engine: &dyn Engine, data: &dyn Source) -> Result<()> {
    // Gaussian noise knows no explosions, and a frozen q stays
    let frozen = |q: &Variational| q.tying().is_none() && q.stays();
    if model.likelihood.as_gaussian().is_some() || model.q.as_ref().is_none_or(frozen) {
        return Ok(());
    }
    let Some(guess) = Guesses::of(model, data)? else { return Ok(()) };
    let before = objective(model, engine, data)?.unwrap_or(f64::NEG_INFINITY);
    let far = FAR * terms(data);
    // what is known of the rows without a prior limits what can be gained
    if before >= guess.value - far {
        return Ok(());
    }
    let q = match guess.q(model, engine, data) {
        Ok(Some(q)) => q,
        Ok(None) => return Ok(()),
        Err(error) if error.is_recoverable() => return Ok(()),
        Err(error) => return Err(error),
    };
    let old = model.q.replace(q);
    if objective(model, engine, data)?.is_none_or(|value| value <= before + far) {
        model.q = old;
    }
    Ok(())
}

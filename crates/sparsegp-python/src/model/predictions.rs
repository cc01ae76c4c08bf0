//! Predictions of a posterior by hand, as arrays.

use super::rows::finite;
use super::{Array1, Array2, Pair};
use crate::arrays::{Matrix, array, matrix, owned, stack, vector};
use crate::errors::exception;
use crate::fitted::{FEWER, JOINT};
use crate::pool::unlocked;
use crate::room::room;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparsegp::Error;
use sparsegp::data::{InMemory, Sample};
use sparsegp::engine::Cpu;
use sparsegp::linalg::{Mat, MatRef, in_parts, stacked};
use sparsegp::methods;
use sparsegp::model::{LeaveOneOut, Model, Posterior};

/// Returns the means and such of every row, made in parts.
pub fn by_parts<'py>(
    py: Python<'py>,
    posterior: &Posterior,
    (x, extra): (&Array2<'py>, Option<&Array1<'py>>),
    predict: impl Fn(&Posterior, MatRef<'_, f64>, &[f64]) -> sparsegp::Result<(Mat<f64>, Mat<f64>)>
    + Sync
    + Send,
    columns: impl Fn(&Posterior) -> usize,
) -> PyResult<Pair<'py>> {
    let (x, extra) = (Matrix::of(x), vector(extra));
    let rows = x.as_ref().nrows();
    finite(x.as_ref())?;
    if !extra.is_empty() && extra.len() != rows {
        let text = format!("{} further numbers for {rows} rows", extra.len());
        return Err(exception(Error::Invalid(text)));
    }
    let columns = columns(posterior);
    let (mean, variance) = unlocked(py, || {
        let parts = in_parts(x.as_ref(), |start, rows| {
            let own = if extra.is_empty() { &[] } else { &extra[start..start + rows.nrows()] };
            predict(posterior, rows, own)
        })?;
        let (means, variances): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok((stacked(&means, rows, columns), stacked(&variances, rows, columns)))
    })?;
    Ok((matrix(py, mean.as_ref())?, matrix(py, variance.as_ref())?))
}

/// Returns the log densities of the rows of targets, which `check` may refuse.
pub fn log_density<'py>(
    py: Python<'py>,
    posterior: &Posterior,
    check: impl Fn(&InMemory) -> PyResult<()>,
    [x, y]: [&Array2<'py>; 2],
    extra: Option<&Array1<'py>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (x, y, extra) = (Matrix::of(x), Matrix::of(y), vector(extra));
    let rows = x.as_ref().nrows();
    if y.as_ref().nrows() != rows || !extra.is_empty() && extra.len() != rows {
        let text = format!("{} targets for {rows} rows", y.as_ref().nrows());
        return Err(exception(Error::Invalid(text)));
    }
    finite(x.as_ref())?;
    {
        let rows = InMemory {
            x: Mat::zeros(rows, 0),
            y: y.to_owned(),
            weights: Vec::new(),
            extra: extra.clone(),
        };
        check(&rows)?;
    }
    let parts = unlocked(py, || {
        in_parts(x.as_ref(), |start, x| {
            let y = y.as_ref().subrows(start, x.nrows());
            let own = if extra.is_empty() { &[] } else { &extra[start..start + x.nrows()] };
            posterior.predict_log_density(x, y, own)
        })
    })?;
    array(py, parts.concat(), &[rows])
}

/// Returns the probabilities of the classes, N×C, of one target column.
pub fn probabilities<'py>(
    py: Python<'py>,
    posterior: &Posterior,
    x: &Array2<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let x = Matrix::of(x);
    finite(x.as_ref())?;
    let x = x.as_ref();
    let parts = unlocked(py, || in_parts(x, |_, x| posterior.predict_proba(x)))?;
    // none of no rows
    let classes = match parts.first() {
        Some(part) => part.ncols(),
        None => {
            posterior.predict_proba(Mat::zeros(0, x.ncols()).as_ref()).map_err(exception)?.ncols()
        }
    };
    matrix(py, stacked(&parts, x.nrows(), classes).as_ref())
}

/// Returns the means and variances of the latent functions by q(f | u), which takes the rows.
pub fn high_cost<'py>(
    py: Python<'py>,
    (model, engine): (&Model, &Cpu),
    data: &Sample,
    new: &Mat<f64>,
) -> PyResult<Pair<'py>> {
    finite(new.as_ref())?;
    let (mean, variance) = unlocked(py, || {
        let costly = methods::HighCost::new(model, engine, data)?;
        let parts = in_parts(new.as_ref(), |_, x| costly.predict_f(x))?;
        let (means, variances): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let latents = costly.posterior().latents();
        let whole = |parts: &[Mat<f64>]| stacked(parts, new.nrows(), latents);
        Ok((whole(&means), whole(&variances)))
    })?;
    Ok((matrix(py, mean.as_ref())?, matrix(py, variance.as_ref())?))
}

/// Returns joint draws of the latent functions, S×N×L.
pub fn joint_draws<'py>(
    py: Python<'py>,
    posterior: &Posterior,
    x: &Array2<'py>,
    samples: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let x = owned(x);
    let (n, latents) = (x.nrows(), posterior.latents());
    let joint = format!("joint draws ({samples}) at {n} rows");
    room(&joint, &[&[n, n, latents + 1], &[n, samples, 2 * latents]], JOINT)?;
    let draws = unlocked(py, || {
        let mut rng = sparsegp::rng::stream(seed, "samples of latent functions");
        posterior.sample_f(x.as_ref(), samples, &mut rng)
    })?;
    let draws: Vec<_> = draws.iter().map(|d| d.as_ref()).collect();
    stack(py, &draws)
}

/// Returns means N×L of the latent functions, and covariances L×N×N.
pub fn with_covariances<'py>(
    py: Python<'py>,
    posterior: &Posterior,
    x: &Array2<'py>,
) -> PyResult<Pair<'py>> {
    let x = owned(x);
    let (n, latents) = (x.nrows(), posterior.latents());
    room(&format!("the covariance of {n} rows"), &[&[n, n, 2 * latents + 1]], FEWER)?;
    let (mean, all) = unlocked(py, || posterior.predict_f_full(x.as_ref()))?;
    let all: Vec<_> = all.iter().map(|c| c.as_ref()).collect();
    Ok((matrix(py, mean.as_ref())?, stack(py, &all)?))
}

/// Returns what the others predict of every row, by name.
pub fn left_out<'py>(py: Python<'py>, found: &LeaveOneOut) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for (name, part) in [
        ("f_mean", &found.f_mean),
        ("f_variance", &found.f_variance),
        ("mean", &found.mean),
        ("variance", &found.variance),
        ("log_density", &found.log_density),
    ] {
        all.set_item(name, matrix(py, part.as_ref())?)?;
    }
    Ok(all)
}

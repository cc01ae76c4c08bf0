//! Markov chains on densities that Python knows.

use crate::arrays::{array, matrix, vector};
use crate::errors::{exception, read_json};
use crate::pool::unlocked;
use crate::watch::continues;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::json;
use sparsegp::error::{Error, Result};
use sparsegp::linalg::Mat;
use sparsegp::samplers::density::{BatchDensity, DensityDraws};
use sparsegp::samplers::elliptical::{self, EllipticalOptions, GaussianPrior};
use sparsegp::samplers::hmc::{self, HmcOptions, Path};
use sparsegp::samplers::metropolis::{self, MetropolisOptions};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Shortest time between two events.
const PATIENCE: Duration = Duration::from_millis(50);

/// Of the steps of paths of fixed length, which without it hardly mix in densities close to a normal one.
const JITTER: f64 = 0.2;

/// What the interpreter asks for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    method: Method,
    dim: usize,
    chains: usize,
    draws: usize,
    warmup: usize,
    thin: usize,
    seed: u64,
    steps: usize,
    max_depth: usize,
    step_size: Option<f64>,
    target_acceptance: f64,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Method {
    Nuts,
    Hmc,
    Elliptical,
    Metropolis,
}

/// A function of the interpreter: of N×D positions, N log densities, with N×D gradients where they are asked for.
struct Density<'py> {
    py: Python<'py>,
    function: Bound<'py, PyAny>,
    dim: usize,
    /// Positions at which a number was NaN or +∞, and all positions.
    not_numbers: usize,
    positions: usize,
    /// What it raised.
    raised: Option<PyErr>,
}

/// Fills the places, for which there must be as many numbers.
fn fill(places: &mut [f64], found: impl ExactSizeIterator<Item = f64>) -> PyResult<()> {
    if found.len() != places.len() {
        return Err(PyValueError::new_err(format!(
            "the density gave {} numbers; expected {}",
            found.len(),
            places.len()
        )));
    }
    places.iter_mut().zip(found).for_each(|(place, v)| *place = v);
    Ok(())
}

impl Density<'_> {
    fn call(
        &mut self,
        positions: &[f64],
        values: &mut [f64],
        gradients: Option<&mut [f64]>,
    ) -> PyResult<()> {
        let n = values.len();
        let rows = PyArray1::from_slice(self.py, positions).reshape([n, self.dim])?;
        let found = self.function.call1((rows,))?;
        let odd = |v: &f64| v.is_nan() || *v == f64::INFINITY;
        match gradients {
            None => {
                let own: PyReadonlyArray1<'_, f64> = found.extract()?;
                fill(values, own.as_array().iter().copied())?;
                self.not_numbers += values.iter().filter(|v| odd(v)).count();
            }
            Some(gradients) => {
                let (own, slopes): (PyReadonlyArray1<'_, f64>, PyReadonlyArray2<'_, f64>) =
                    found.extract()?;
                fill(values, own.as_array().iter().copied())?;
                if slopes.shape() != [n, self.dim] {
                    return Err(PyValueError::new_err(format!(
                        "the density gave gradients of {:?} at {n} positions; expected [{n}, {}]",
                        slopes.shape(),
                        self.dim
                    )));
                }
                fill(gradients, slopes.as_array().iter().copied())?;
                let each = values.iter().zip(gradients.chunks(self.dim));
                // the slope of nothing may be anything
                let wrong = each.filter(|(v, slope)| {
                    odd(v) || v.is_finite() && slope.iter().any(|g| !g.is_finite())
                });
                self.not_numbers += wrong.count();
            }
        }
        self.positions += n;
        Ok(())
    }
}

impl BatchDensity for Density<'_> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(
        &mut self,
        positions: &[f64],
        values: &mut [f64],
        gradients: Option<&mut [f64]>,
    ) -> Result<()> {
        self.call(positions, values, gradients).map_err(|error| {
            self.raised = Some(error);
            Error::Invalid("the density raised an exception".into())
        })
    }
}

type Watch<'a> = &'a mut dyn FnMut(usize, usize) -> ControlFlow<()>;

fn run(
    density: &mut Density<'_>,
    starts: Option<&[f64]>,
    prior: Option<(Vec<f64>, Mat<f64>)>,
    asked: &Asked,
    watch: Watch<'_>,
) -> Result<DensityDraws> {
    let &Asked { chains, draws, thin, seed, warmup: burn_in, step_size: step, .. } = asked;
    match asked.method {
        Method::Nuts | Method::Hmc => {
            let path = match asked.method {
                Method::Nuts => Path::NoUTurn { depth: asked.max_depth },
                _ => Path::Steps(asked.steps),
            };
            let acceptance = asked.target_acceptance;
            let own = HmcOptions {
                chains,
                burn_in,
                draws,
                thin,
                seed,
                path,
                step,
                acceptance,
                jitter: JITTER,
                ..HmcOptions::default()
            };
            hmc::sample_density(density, starts, &own, watch)
        }
        Method::Elliptical => {
            let prior = match prior {
                Some((mean, factor)) => GaussianPrior::new(mean, factor)?,
                None => GaussianPrior::standard(asked.dim),
            };
            let own = EllipticalOptions { chains, burn_in, draws, thin, seed };
            elliptical::sample_density(density, &prior, starts, &own, watch)
        }
        Method::Metropolis => {
            let own = MetropolisOptions { chains, burn_in, draws, thin, seed, step };
            metropolis::sample_density(density, starts, &own, watch)
        }
    }
}

/// Draws (chains×draws×D), their log densities, acceptances, evaluations and divergences (chains×draws each), summaries (D×6),
/// and a report as JSON.
type Sampled<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    String,
);

/// Samples a density. The exception of the density, of the callback or of a signal is raised. The density is called on this
/// thread, for all chains together.
#[pyfunction]
#[pyo3(signature = (function, options, *, starts=None, prior=None, callback=None))]
pub fn sample<'py>(
    py: Python<'py>,
    function: Bound<'py, PyAny>,
    options: &str,
    starts: Option<PyReadonlyArray1<'py, f64>>,
    prior: Option<(PyReadonlyArray1<'py, f64>, PyReadonlyArray2<'py, f64>)>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Sampled<'py>> {
    let asked: Asked = read_json(options)?;
    let starts = starts.as_ref().map(|starts| vector(Some(starts)));
    let prior = prior.map(|(mean, factor)| (vector(Some(&mean)), crate::arrays::owned(&factor)));
    let mut density =
        Density { py, function, dim: asked.dim, not_numbers: 0, positions: 0, raised: None };
    let mut stopped: Option<PyErr> = None;
    let begun = Instant::now();
    let mut last = begun;
    let mut watch = |done: usize, total: usize| {
        let mut answer = || -> PyResult<bool> {
            py.check_signals()?;
            let Some(callback) = &callback else { return Ok(false) };
            if last.elapsed() < PATIENCE && done < total {
                return Ok(false);
            }
            last = Instant::now();
            let seconds = begun.elapsed().as_secs_f64();
            let event =
                json!({ "event": "sampling", "sweep": done, "sweeps": total, "seconds": seconds });
            callback.call1((event.to_string(),))?.is_truthy()
        };
        continues(answer(), &mut stopped)
    };
    let drawn = run(&mut density, starts.as_deref(), prior, &asked, &mut watch);
    if let Some(error) = density.raised.take().or(stopped) {
        return Err(error);
    }
    let drawn = drawn.map_err(exception)?;
    let summaries = unlocked(py, || Ok(drawn.summaries()))?;
    let text = json!({
        "steps": drawn.steps,
        "not_numbers": density.not_numbers,
        "positions": density.positions,
    });
    let shape = [drawn.positions.len(), drawn.draws()];
    let flat = |all: &[Vec<f64>]| all.iter().flatten().copied().collect::<Vec<f64>>();
    let numbers = |all: &[Vec<f64>]| array(py, flat(all), &shape);
    let counts = drawn.evaluations.iter().flatten().map(|n| *n as f64).collect();
    let flags = drawn.diverging.iter().flatten().map(|d| f64::from(u8::from(*d))).collect();
    let columns = Mat::from_fn(summaries.len(), 6, |i, j| {
        let s = &summaries[i];
        [s.mean, s.deviation, s.error, s.rhat, s.ess_bulk, s.ess_tail][j]
    });
    Ok((
        array(py, flat(&drawn.positions), &[shape[0], shape[1], drawn.dim])?,
        numbers(&drawn.log_density)?,
        numbers(&drawn.acceptance)?,
        array(py, counts, &shape)?,
        array(py, flags, &shape)?,
        matrix(py, columns.as_ref())?,
        text.to_string(),
    ))
}

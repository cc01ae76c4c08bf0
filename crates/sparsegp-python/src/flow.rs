//! Gaussian approximations of densities that Python knows.

use crate::arrays::matrix;
use crate::errors::exception;
use crate::watch::continues;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::json;
use sparsegp::error::Error;
use sparsegp::flow::{
    Blocks, Control, Ended, Evaluation, Gpf, GpfOptions, MeanFlow, Particles, RunOptions, Settled,
    Target, evidence_bound, free_energy, log_determinants, run,
};
use sparsegp::linalg::{Mat, MatMut, MatRef};

/// Positions that a result is judged by.
const LOOKED: usize = 1000;

/// What the interpreter asks for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    steps: usize,
    tolerance: f64,
    mean_rate: f64,
    spread_rate: f64,
    natural_mean: bool,
    preconditioned: bool,
    control: String,
    blocks: Option<Vec<Vec<usize>>>,
    diagonal: bool,
    noisy: bool,
    seed: u64,
    particles: usize,
}

impl Asked {
    fn blocks(&self) -> Blocks {
        match (&self.blocks, self.diagonal) {
            (Some(blocks), _) => Blocks::Of(blocks.clone()),
            (None, true) => Blocks::Diagonal,
            (None, false) => Blocks::Whole,
        }
    }

    /// Puts particles about a mean.
    fn solver(&self, mean: &[f64], deviations: &[f64]) -> sparsegp::Result<Gpf> {
        let blocks = self.blocks();
        blocks.check(mean.len())?;
        let start = match self.particles > mean.len() {
            true => {
                // no more numbers than the particles have
                let scale = |i: usize, j: usize| if i == j { deviations[i] } else { 0.0 };
                let root = Mat::from_fn(deviations.len(), deviations.len(), scale);
                Particles::matched(mean, root.as_ref(), self.particles, self.seed)
            }
            false => Particles::around(mean, deviations, self.particles, self.seed),
        };
        let how = GpfOptions {
            mean_rate: self.mean_rate,
            spread_rate: self.spread_rate,
            mean_flow: if self.natural_mean { MeanFlow::Natural } else { MeanFlow::Plain },
            blocks,
            control: match self.control.as_str() {
                "halve" => Control::Halve,
                "cap" => Control::Cap,
                _ => Control::Free,
            },
            preconditioned: self.preconditioned,
            ..GpfOptions::default()
        };
        Gpf::new(start?, how)
    }
}

/// Returns how a flow ended, and why.
fn in_words(ended: &Ended) -> (&'static str, String) {
    match ended {
        Ended::AllSteps => ("all steps", String::new()),
        Ended::Converged => ("converged", String::new()),
        Ended::Stalled => ("stalled", String::new()),
        Ended::Interrupted => ("interrupted", String::new()),
        Ended::Restored { step, reason } => ("restored", format!("step {step}: {reason}")),
    }
}

/// A function of the interpreter: of N×D positions, N log densities and N×D gradients.
struct Density<'py> {
    py: Python<'py>,
    function: Bound<'py, PyAny>,
    dim: usize,
    noisy: bool,
    /// What it raised.
    raised: Option<PyErr>,
}

impl Density<'_> {
    fn call(&self, x: MatRef<'_, f64>) -> PyResult<(Vec<f64>, Mat<f64>)> {
        let (d, n) = (x.nrows(), x.ncols());
        // a column after the other is a row after the other there
        let values = (0..n).flat_map(|i| (0..d).map(move |q| x[(q, i)])).collect();
        let rows = PyArray1::from_vec(self.py, values).reshape([n, d])?;
        let found = self.function.call1((rows,))?;
        let (values, gradient): (PyReadonlyArray1<'_, f64>, PyReadonlyArray2<'_, f64>) =
            found.extract()?;
        if values.len() != n || gradient.shape() != [n, d] {
            return Err(PyValueError::new_err(format!(
                "the density gave {} values and gradients of {:?} at {n} positions; expected {n} and [{n}, {d}]",
                values.len(),
                gradient.shape()
            )));
        }
        let gradient = gradient.as_array();
        let gradient = Mat::from_fn(d, n, |q, i| -gradient[[i, q]]);
        Ok((values.as_array().iter().map(|v| -v).collect(), gradient))
    }
}

impl Target for Density<'_> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(
        &mut self,
        x: MatRef<'_, f64>,
        phi: &mut [f64],
        mut gradient: MatMut<'_, f64>,
    ) -> sparsegp::Result<()> {
        match self.call(x) {
            Ok((values, slopes)) => {
                phi.copy_from_slice(&values);
                gradient.copy_from(slopes.as_ref());
                Ok(())
            }
            Err(error) => {
                self.raised = Some(error);
                Err(Error::Invalid("the density raised an exception".into()))
            }
        }
    }

    fn is_noisy(&self) -> bool {
        self.noisy
    }
}

/// Lets particles flow to the Gaussian that is nearest to a density. Returns the particles (N×D) and a report as JSON. The
/// exception of the density, of the callback or of a signal is raised.
#[pyfunction]
#[pyo3(signature = (function, mean, deviations, options, *, callback=None))]
pub fn flow<'py>(
    py: Python<'py>,
    function: Bound<'py, PyAny>,
    mean: PyReadonlyArray1<'py, f64>,
    deviations: PyReadonlyArray1<'py, f64>,
    options: &str,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, String)> {
    let asked: Asked =
        serde_json::from_str(options).map_err(|e| PyValueError::new_err(e.to_string()))?;
    let mean: Vec<f64> = mean.as_array().iter().copied().collect();
    let deviations: Vec<f64> = deviations.as_array().iter().copied().collect();
    let dim = mean.len();
    let blocks = asked.blocks();
    let mut solver = asked.solver(&mean, &deviations).map_err(exception)?;
    let mut target = Density { py, function, dim, noisy: asked.noisy, raised: None };
    let steps = RunOptions { steps: asked.steps, tolerance: asked.tolerance, every: 1 };
    let mut stopped: Option<PyErr> = None;
    let report = run(&mut solver, &mut target, &steps, &mut |step, progress| {
        let answer = || -> PyResult<bool> {
            py.check_signals()?;
            let Some(callback) = &callback else { return Ok(false) };
            let event = json!({
                "event": "step",
                "step": step,
                "free_energy": progress.free_energy,
                "stationarity": progress.stationarity,
                "scale": progress.scale,
            });
            callback.call1((event.to_string(),))?.is_truthy()
        };
        continues(answer(), &mut stopped)
    });
    if let Some(error) = target.raised.take().or(stopped) {
        return Err(error);
    }
    let report = report.map_err(exception)?;
    let particles = solver.particles();
    // where it ended
    let last = Evaluation::of(&mut target, particles.x());
    if let Some(error) = target.raised.take() {
        return Err(error);
    }
    let last = last.map_err(exception)?;
    let spread = particles.deviations();
    let determinants = log_determinants(spread.as_ref(), &blocks).map_err(exception)?;
    let energy = free_energy(last.mean_phi(), &determinants);
    let (ended, reason) = in_words(&report.ended);
    let full = particles.count() > dim;
    // by positions that did not move the particles
    let settled = match asked.noisy || blocks != Blocks::Whole {
        true => None,
        false => Some(Settled::look(particles, &mut target, LOOKED, asked.seed)),
    };
    if let Some(error) = target.raised.take() {
        return Err(error);
    }
    let settled = settled.map(|found| match found {
        Ok(found) => json!({ "mean": found.mean, "spread": found.spread, "near": found.is_near() }),
        // the density is not finite at a draw
        Err(error) => json!({ "error": error.to_string() }),
    });
    let text = json!({
        "steps": report.steps,
        "ended": ended,
        "reason": reason,
        "free_energy": energy,
        "settled": settled,
        "bound": full.then(|| evidence_bound(energy, dim)),
        "trace": report.trace.iter().map(|(step, p)| json!([step, p.free_energy, p.stationarity, p.scale]))
            .collect::<Vec<_>>(),
    });
    let rows = particles.x().transpose().to_owned();
    Ok((matrix(py, rows.as_ref())?, text.to_string()))
}

//! Exact inference of one input by Kalman filters, for kernels that are Markov processes ([`mod@crate::markov`]).
//!
//! The log evidence is that of [`super::Exact`], at O(N) instead of O(N³). Weights and known
//! variances of noise are as there, too.

use super::{Diagnostics, Evaluation, Method};
use crate::data::Source;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::kernels::StateSpace;
use crate::linalg::{Mat, MatRef, column};
use crate::markov::{self, MOST_STATES, Moments, Smoothed};
use crate::model::{Conditional, ConditioningRows, Model, Posterior, RowNoise};
use std::sync::Arc;

/// Exact inference of one input.
#[derive(Debug)]
pub struct Markov;

/// Rows in the order of their places.
struct Sorted {
    order: Vec<usize>,
    t: Vec<f64>,
    y: Mat<f64>,
    noise: Vec<f64>,
}

impl Sorted {
    fn new(rows: &ConditioningRows) -> Self {
        let t = column(rows.x.as_ref(), 0);
        let order = markov::order(t);
        let y = Mat::from_fn(t.len(), rows.y.ncols(), |i, p| rows.y[(order[i], p)]);
        let pick = |of: &[f64]| order.iter().map(|i| of[*i]).collect();
        Self { t: pick(t), noise: pick(&rows.noise), y, order }
    }

    fn rows(&self) -> markov::Rows<'_> {
        markov::Rows { t: &self.t, y: self.y.as_ref(), noise: &self.noise }
    }
}

/// What all passes need of a model and its rows.
struct Seen {
    space: Box<dyn StateSpace>,
    rows: ConditioningRows,
    noise: RowNoise,
}

/// The process of a model's kernel.
///
/// # Errors
/// [`Error::Invalid`] for several inputs, several kernels and too many states.
fn space(model: &Model, inputs: usize) -> Result<Box<dyn StateSpace>> {
    if inputs != 1 {
        return Err(Error::Invalid(format!(
            "method `markov` is for one input, and there are {inputs}: use `exact` for small tables, or a sparse method such as \
             titsias2025"
        )));
    }
    let space = model.kernel().state_space()?;
    match space.size() {
        size if size > MOST_STATES => Err(markov::too_large(size)),
        _ => Ok(space),
    }
}

impl Seen {
    fn new(model: &Model, data: &dyn Source) -> Result<Self> {
        let space = space(model, data.inputs())?;
        let (rows, noise) = ConditioningRows::of(model, super::collect(data)?)?;
        Ok(Self { space, rows, noise })
    }
}

/// Predictions from rows in the order of their places.
#[derive(Debug)]
struct Known {
    smoothed: Smoothed,
    order: Vec<usize>,
}

/// The first column, which may not lie side by side.
fn places(x: MatRef<f64>) -> Vec<f64> {
    (0..x.nrows()).map(|i| x[(i, 0)]).collect()
}

impl Conditional for Known {
    fn moments(&self, x: MatRef<f64>) -> Result<Moments> {
        self.smoothed.moments(&places(x))
    }

    fn joint(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        self.smoothed.joint(&places(x))
    }

    fn at_rows(&self) -> Result<Moments> {
        Ok(markov::unsorted(&self.order, self.smoothed.at_rows()?))
    }

    fn log_density(&self) -> f64 {
        self.smoothed.log_evidence()
    }

    fn terms(&self, x: MatRef<f64>) -> Result<Option<Vec<Moments>>> {
        self.smoothed.terms(&places(x)).map(Some)
    }
}

impl Method for Markov {
    fn name(&self) -> &'static str {
        "markov"
    }

    fn is_sparse(&self) -> bool {
        false
    }

    fn is_of_series(&self) -> bool {
        true
    }

    fn divides_by_noise(&self) -> bool {
        false
    }

    fn check(&self, model: &Model) -> Result<()> {
        model.gaussian()?;
        match model.kernel().state_space() {
            // there is none at these hyperparameters; others are tried
            Err(error) if error.is_recoverable() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    fn evaluate(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Evaluation> {
        let Seen { space, rows, noise } = Seen::new(model, data)?;
        let sorted = Sorted::new(&rows);
        let count = model.kernel().num_params();
        let found = markov::evidence(&*space, sorted.rows(), count, &|| engine.go_on())?;
        let columns = rows.y.ncols();
        let (mut alpha, mut slopes) = (rows.y, vec![0.0; sorted.order.len()]);
        for (at, i) in sorted.order.iter().enumerate() {
            let mut squares = 0.0;
            for p in 0..columns {
                alpha[(*i, p)] = found.alpha[(at, p)];
                squares += found.alpha[(at, p)].powi(2);
            }
            slopes[*i] = 0.5 * (squares - columns as f64 * found.precision[at]);
        }
        let mut gradient = vec![0.0; model.num_params()];
        let parts = model.parts_of(&mut gradient);
        parts.kernel.copy_from_slice(&found.params);
        model.mean.vjp(rows.x.as_ref(), alpha.as_ref(), parts.mean);
        let (factors, slope) = noise.factors();
        parts.likelihood[0] = noise.pull(slopes.into_iter()) + columns as f64 * slope;
        let value = super::finite(found.value + columns as f64 * factors, "the log evidence")?;
        Ok(Evaluation { value, gradient, diagnostics: Diagnostics::default() })
    }

    fn posterior(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Posterior> {
        let Seen { rows, .. } = Seen::new(model, data)?;
        self.conditioned(model, engine, rows)
    }

    fn conditioned(
        &self,
        model: &Model,
        engine: &dyn Engine,
        rows: ConditioningRows,
    ) -> Result<Posterior> {
        let space = space(model, rows.x.ncols())?;
        let sorted = Sorted::new(&rows);
        let smoothed = Smoothed::new(space, sorted.rows(), &|| engine.go_on())?;
        let known = Arc::new(Known { smoothed, order: sorted.order });
        Ok(Posterior::of_kept_rows(model, rows, known))
    }
}

//! Inference of one input by Kalman filters, for kernels that are Markov processes ([`mod@crate::markov`]).
//!
//! With Gaussian noise the objective is the log evidence, that of [`super::Exact`], at O(N) instead of O(N³); weights and known
//! variances of noise are as there, too, and targets may be missing. With another likelihood it is the best bound that any
//! normal q(f) has, that of [`super::Tvgp`] at its best sites ([`sites`]).

mod sites;

use super::{Diagnostics, Evaluation, Method};
use crate::bounds::Bound;
use crate::data::{InMemory, Source};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, StateSpace, of_latent, place_of};
use crate::linalg::{Mat, MatRef, column};
use crate::markov::{self, MOST_STATES, Smoothed};
use crate::model::{Conditional, Model, Moments, Posterior, RowNoise, weighty};
use std::sync::Arc;

/// Inference of one input.
#[derive(Clone, Copy)]
pub struct Markov {
    /// What a row contributes under another likelihood than Gaussian noise.
    pub bound: &'static dyn Bound,
}

impl std::fmt::Debug for Markov {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Markov")
    }
}

/// Rows in the order of their places, with what all passes need of a model.
struct Series {
    /// Positions of the rows as they came.
    order: Vec<usize>,
    rows: InMemory,
    /// The mean function at the rows, N×L.
    mean: Mat<f64>,
    /// The processes of the kernels.
    spaces: Vec<Box<dyn StateSpace>>,
}

/// Normal factors of rows, for columns that share their variances: the function of each is that of one kernel.
#[derive(Clone, Debug)]
struct Factors {
    /// The first latent function; the others follow it.
    first: usize,
    /// N×C, less the mean function.
    y: Mat<f64>,
    noise: Vec<f64>,
}

/// The process of a kernel.
///
/// # Errors
/// [`Error::Invalid`] for a kernel that is none, and for too many states.
fn space(kernel: &dyn Kernel) -> Result<Box<dyn StateSpace>> {
    let space = kernel.state_space()?;
    match space.size() {
        size if size > MOST_STATES => Err(markov::too_large(size)),
        _ => Ok(space),
    }
}

impl Series {
    fn new(model: &Model, rows: &InMemory) -> Result<Self> {
        let inputs = rows.x.ncols();
        if inputs != 1 {
            return Err(Error::Invalid(format!(
                "method `markov` is for one input, and there are {inputs}: use `exact` for small tables, or a sparse \
                 method such as titsias2025"
            )));
        }
        let spaces = model.kernels.iter().map(|kernel| space(&**kernel)).collect::<Result<_>>()?;
        let order = markov::order(column(rows.x.as_ref(), 0));
        let rows = rows.picked(&order);
        let mut mean = Mat::zeros(order.len(), model.latents(rows.y.ncols()));
        model.mean.evaluate(rows.x.as_ref(), mean.as_mut());
        Ok(Self { order, rows, mean, spaces })
    }

    fn places(&self) -> &[f64] {
        column(self.rows.x.as_ref(), 0)
    }

    /// The process of a latent function.
    fn space(&self, latent: usize) -> &dyn StateSpace {
        &**of_latent(&self.spaces, latent)
    }

    /// Factors as rows of their columns.
    fn seen<'a>(&'a self, own: &'a Factors) -> markov::Rows<'a> {
        markov::Rows { t: self.places(), y: own.y.as_ref(), noise: &own.noise }
    }

    /// Those of Gaussian noise: of all columns at once where they share a kernel and none has missing targets.
    fn gaussian(&self, noise: &RowNoise) -> Vec<Factors> {
        let (n, columns) = (self.rows.y.nrows(), self.rows.y.ncols());
        let y = &self.rows.y - &self.mean;
        if y.is_all_finite() && self.spaces.len() == 1 {
            return vec![Factors { first: 0, y, noise: (0..n).map(|i| noise.of(i)).collect() }];
        }
        let one = |p: usize| {
            let known = |i: usize| !y[(i, p)].is_nan();
            let own = Mat::from_fn(n, 1, |i, _| if known(i) { y[(i, p)] } else { 0.0 });
            let noise = (0..n).map(|i| if known(i) { noise.of(i) } else { f64::INFINITY });
            Factors { first: p, y: own, noise: noise.collect() }
        };
        (0..columns).map(one).collect()
    }

    /// The log density of factors; adds its slopes to those of the kernels.
    fn add_evidence(
        &self,
        model: &Model,
        own: &Factors,
        slopes: &mut [f64],
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<markov::Evidence> {
        let index = place_of(self.spaces.len(), own.first);
        let start: usize = model.kernels[..index].iter().map(|kernel| kernel.num_params()).sum();
        let slots = &mut slopes[start..start + model.kernels[index].num_params()];
        let rows = self.seen(own);
        let found = markov::evidence(&*self.spaces[index], rows, slots.len(), go_on)?;
        slots.iter_mut().zip(&found.params).for_each(|(sum, own)| *sum += own);
        Ok(found)
    }

    /// The log evidence under Gaussian noise, and with `gradient` its slopes.
    fn evidence(
        &self,
        model: &Model,
        gradient: &mut [f64],
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<f64> {
        let noise = RowNoise::new(model.gaussian()?.variance.scalar(), &self.rows);
        let parts = model.parts_of(gradient);
        let mut alpha = Mat::zeros(self.order.len(), self.mean.ncols());
        let mut value = 0.0;
        for own in self.gaussian(&noise) {
            let columns = own.y.ncols();
            let found = self.add_evidence(model, &own, parts.kernel, go_on)?;
            alpha.as_mut().subcols_mut(own.first, columns).copy_from(&found.alpha);
            let slope = |i: usize| {
                let squares: f64 = (0..columns).map(|p| found.alpha[(i, p)].powi(2)).sum();
                0.5 * (squares - columns as f64 * found.precision[i])
            };
            let (factors, by_noise) = noise.factors_where(|i| own.noise[i].is_finite());
            parts.likelihood[0] +=
                noise.pull((0..own.noise.len()).map(slope)) + columns as f64 * by_noise;
            value += found.value + columns as f64 * factors;
        }
        model.mean.vjp(self.rows.x.as_ref(), alpha.as_ref(), parts.mean);
        super::finite(value, "the log evidence")
    }

    /// The bound at its best sites, with its slopes: as it cannot rise in these, they are those at fixed sites.
    fn bound(
        &self,
        model: &Model,
        bound: &dyn Bound,
        gradient: &mut [f64],
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<f64> {
        let found = sites::best(self, model, bound, go_on)?;
        let parts = model.parts_of(gradient);
        for own in &found.factors {
            self.add_evidence(model, own, parts.kernel, go_on)?;
        }
        model.mean.vjp(self.rows.x.as_ref(), found.a.as_ref(), parts.mean);
        parts.likelihood.copy_from_slice(&found.params);
        Ok(found.value)
    }
}

/// Predictions from rows in the order of their places: of all latent functions at once, or of one after the other.
#[derive(Debug)]
struct Known {
    all: Vec<Smoothed>,
    order: Vec<usize>,
    objective: f64,
}

/// The first column, which may not lie side by side.
fn places(x: MatRef<f64>) -> Vec<f64> {
    (0..x.nrows()).map(|i| x[(i, 0)]).collect()
}

/// Moments of functions side by side.
fn beside(all: Vec<markov::Moments>) -> Moments {
    let (rows, latents) =
        (all[0].0.nrows(), all.iter().map(|(mean, _)| mean.ncols()).sum::<usize>());
    let (mut means, mut variances) = (Mat::zeros(rows, latents), Mat::zeros(rows, latents));
    let mut first = 0;
    for (mean, variance) in all {
        for l in 0..mean.ncols() {
            variances.col_as_slice_mut(first + l).copy_from_slice(&variance);
        }
        means.as_mut().subcols_mut(first, mean.ncols()).copy_from(&mean);
        first += mean.ncols();
    }
    (means, variances)
}

impl Conditional for Known {
    fn moments(&self, x: MatRef<f64>) -> Result<Moments> {
        let t = places(x);
        Ok(beside(self.all.iter().map(|own| own.moments(&t)).collect::<Result<_>>()?))
    }

    fn joint(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
        let t = places(x);
        let all: Vec<_> = self.all.iter().map(|own| own.joint(&t)).collect::<Result<_>>()?;
        let mean = beside(all.iter().map(|own| (own.0.clone(), vec![0.0; t.len()])).collect()).0;
        Ok((mean, all.into_iter().map(|own| own.1).collect()))
    }

    /// Without its own factor, of which α = G⁻¹y and D of the diagonal of G⁻¹ are known, the variance v of a row becomes v/(sD), and
    /// its mean falls by as much times α: Rasmussen & Williams 2006, Eq. 5.12, and the cavities of other likelihoods.
    fn left_out(&self) -> Result<Moments> {
        let one = |own: &Smoothed| {
            let mut own = own.at_rows()?;
            for i in 0..own.variance.len() {
                own.variance[i] /= own.rest[i];
                for p in 0..own.mean.ncols() {
                    own.mean[(i, p)] -= own.variance[i] * own.alpha[(i, p)];
                }
            }
            Ok(markov::unsorted(&self.order, (own.mean, own.variance)))
        };
        Ok(beside(self.all.iter().map(one).collect::<Result<_>>()?))
    }

    fn objective(&self) -> f64 {
        self.objective
    }

    fn terms(&self, x: MatRef<f64>) -> Result<Option<Vec<Moments>>> {
        let t = places(x);
        let all: Vec<Vec<markov::Moments>> =
            self.all.iter().map(|own| own.terms(&t)).collect::<Result<_>>()?;
        // functions of several kernels have other terms each
        if all.iter().any(|own| own.len() != all[0].len()) {
            return Ok(None);
        }
        let term = |k: usize| beside(all.iter().map(|own| own[k].clone()).collect());
        Ok(Some((0..all[0].len()).map(term).collect()))
    }
}

impl Method for Markov {
    fn name(&self) -> &'static str {
        "markov"
    }

    fn is_sparse(&self) -> bool {
        false
    }

    fn keeps_rows(&self) -> bool {
        true
    }

    fn is_of_series(&self) -> bool {
        true
    }

    fn takes_kernels(&self) -> bool {
        true
    }

    fn takes_missing(&self) -> bool {
        true
    }

    fn divides_by_noise(&self) -> bool {
        false
    }

    fn check(&self, model: &Model) -> Result<()> {
        if model.likelihood.as_gaussian().is_none() {
            sites::check(model, self.bound)?;
        }
        for kernel in &model.kernels {
            match kernel.state_space() {
                // there is none at these hyperparameters; others are tried
                Err(error) if error.is_recoverable() => {}
                other => drop(other?),
            }
        }
        Ok(())
    }

    fn evaluate(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Evaluation> {
        let series = Series::new(model, &weighty(super::collect(data)?))?;
        let (mut gradient, go_on) = (vec![0.0; model.num_params()], || engine.go_on());
        let value = match model.likelihood.as_gaussian() {
            Some(_) => series.evidence(model, &mut gradient, &go_on)?,
            None => series.bound(model, self.bound, &mut gradient, &go_on)?,
        };
        Ok(Evaluation { value, gradient, diagnostics: Diagnostics::default() })
    }

    fn posterior(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Posterior> {
        self.conditioned(model, engine, super::collect(data)?)
    }

    fn conditioned(&self, model: &Model, engine: &dyn Engine, rows: InMemory) -> Result<Posterior> {
        let rows = weighty(rows);
        let series = Series::new(model, &rows)?;
        let go_on = || engine.go_on();
        let (factors, mut objective) = match model.likelihood.as_gaussian() {
            Some(own) => {
                let noise = RowNoise::new(own.variance.scalar(), &series.rows);
                let all = series.gaussian(&noise);
                let weighed = |own: &Factors| {
                    own.y.ncols() as f64 * noise.factors_where(|i| own.noise[i].is_finite()).0
                };
                let objective: f64 = all.iter().map(weighed).sum();
                (all, objective)
            }
            None => {
                let found = sites::best(&series, model, self.bound, &go_on)?;
                (found.factors, found.value)
            }
        };
        let mut all = Vec::new();
        for own in &factors {
            let space = space(&**of_latent(&model.kernels, own.first))?;
            all.push(Smoothed::new(space, series.seen(own), &go_on)?);
        }
        if model.likelihood.as_gaussian().is_some() {
            objective += all.iter().map(Smoothed::log_evidence).sum::<f64>();
        }
        let known = Known { all, order: series.order, objective };
        Ok(Posterior::of_kept_rows(model, rows, Arc::new(known)))
    }
}

#[cfg(test)]
mod tests;

//! Inference of one input, beside labels, by Kalman filters, for kernels that are Markov processes ([`mod@crate::markov`]).
//!
//! With Gaussian noise the objective is the log evidence, that of [`super::Exact`], at O(N) instead of O(N³); weights and known
//! variances of noise are as there, too, and targets may be missing. With another likelihood it is the best bound that any
//! normal q(f) has, that of [`super::Tvgp`] at its best sites ([`sites`]). `gibbs-markov` trains so, and then samples the posterior
//! ([`crate::samplers::series`]); `cavi-markov` has the bound of the local variables that make a likelihood Gaussian ([`Augmented`]).

mod known;

use super::sites::{self, Prior, Search};
use super::training_rows::TrainingRows;
use super::{Diagnostics, Entry, Evaluation, Method, Sampler};
use crate::bounds::{Augmented, Bound};
use crate::data::{InMemory, Source};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, StateSpace, of_latent, place_of};
use crate::linalg::Mat;
use crate::markov::{self, MOST_STATES, Past, Places, Start};
use crate::model::{Model, Posterior, RowNoise, weighty};
use crate::params::Role;
use known::Known;
use std::sync::Arc;

/// The part of a gain that ends coordinate ascent: slopes at its end then have five digits where a step leaves nine tenths of the way.
const COORDINATES: f64 = 1e-4;

/// Inference of one input beside labels.
#[derive(Clone, Copy)]
pub struct Markov {
    /// Its name.
    pub name: &'static str,
    /// What a row contributes under another likelihood than Gaussian noise.
    pub bound: &'static dyn Bound,
    /// What samples the posterior in the end.
    pub sampler: Option<Sampler>,
    /// Rows that a training sees.
    pub(super) training_rows: TrainingRows,
}

impl Markov {
    /// Makes the method without options.
    pub(super) const fn usual(
        name: &'static str,
        bound: &'static dyn Bound,
        sampler: Option<Sampler>,
    ) -> Self {
        Self { name, bound, sampler, training_rows: TrainingRows::USUAL }
    }

    /// Returns the method of an entry with options, as [`crate::methods::find`] gives it for `markov(training_rows=…)`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown option or a value out of range.
    pub(super) fn entry(self, registered: &'static Entry, options: &str) -> Result<&'static Entry> {
        let plain = registered.name;
        let invalid = |reason: String| Error::Invalid(format!("method `{plain}`: {reason}"));
        let mut own = self;
        for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            match option.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
                Some(("training_rows", value)) => {
                    own.training_rows = TrainingRows::parse(value).map_err(invalid)?;
                }
                _ => return Err(invalid(format!("`{option}` is unknown; known: training_rows"))),
            }
        }
        let Some(said) = own.training_rows.said() else { return Ok(registered) };
        Ok(registered.variant(format!("{plain}({said})"), |name| Box::new(Self { name, ..own })))
    }
}

impl std::fmt::Debug for Markov {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Markov({})", self.name)
    }
}

/// Rows in the order of their places, with what all passes need of a model.
struct Series {
    /// Positions of the rows as they came.
    order: Vec<usize>,
    rows: InMemory,
    /// The input that is the time.
    time: usize,
    /// The mean function at the rows, N×L.
    mean: Mat<f64>,
    /// The processes of the kernels.
    spaces: Vec<Box<dyn StateSpace>>,
    /// What is known of the states before the first row: of every latent function, or of all at once; none for the prior.
    starts: Vec<Start>,
}

/// Normal factors of rows, for columns that share their variances: the function of each is that of one kernel.
#[derive(Clone, Debug)]
struct Factors {
    /// The first latent function; the others follow it.
    first: usize,
    /// N×C, less the mean function.
    y: Mat<f64>,
    noise: Vec<f64>,
    /// The state before the first row, where it is not the prior's.
    start: Option<Start>,
}

/// Returns how the sites of a bound are searched for. With local variables a step is one of coordinate ascent.
fn search(bound: &dyn Bound) -> Search {
    let part = if bound.augments() { COORDINATES } else { 1.0 };
    Search { part, ..Search::default() }
}

/// Returns the process of a kernel.
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
    fn new(model: &Model, rows: &InMemory, past: Option<&Past>) -> Result<Self> {
        let time = model.time(rows.x.ncols())?;
        let spaces: Vec<Box<dyn StateSpace>> =
            model.kernels.iter().map(|kernel| space(&**kernel)).collect::<Result<_>>()?;
        let order = markov::order(Places::new(rows.x.as_ref(), time).t());
        let rows = rows.picked(&order);
        let mut mean = Mat::zeros(order.len(), model.latents(rows.y.ncols()));
        model.mean.evaluate(rows.x.as_ref(), mean.as_mut());
        let starts = past.map_or_else(Vec::new, |past| past.starts.clone());
        if let Some(past) = past {
            past.check(&spaces, mean.ncols())?;
            past.starts[0].check(rows.x.as_ref(), time)?;
        }
        Ok(Self { order, rows, time, mean, spaces, starts })
    }

    /// Returns the state before the first row, of one column.
    fn start(&self, column: usize) -> Option<Start> {
        match &self.starts[..] {
            [one] => Some(one.of_column(column)),
            all => all.get(column).cloned(),
        }
    }

    fn places(&self) -> Places<'_> {
        Places::new(self.rows.x.as_ref(), self.time)
    }

    /// Returns the process of a latent function.
    fn space(&self, latent: usize) -> &dyn StateSpace {
        &**of_latent(&self.spaces, latent)
    }

    /// Returns the sites of every latent function as factors of its rows.
    fn sited(&self, all: Vec<sites::Factors>) -> Vec<Factors> {
        let one = |(first, own): (usize, sites::Factors)| Factors {
            first,
            y: own.y,
            noise: own.noise,
            start: self.start(first),
        };
        all.into_iter().enumerate().map(one).collect()
    }

    /// Returns factors as rows of their columns.
    fn seen<'a>(&'a self, own: &'a Factors) -> markov::Rows<'a> {
        let start = own.start.as_ref();
        markov::Rows { places: self.places(), y: own.y.as_ref(), noise: &own.noise, start }
    }

    /// Returns the factors of Gaussian noise: of all columns at once where they share a kernel and
    /// none has missing targets, nor had before.
    fn gaussian(&self, noise: &RowNoise) -> Vec<Factors> {
        let (n, y) = (self.rows.y.nrows(), &self.rows.y - &self.mean);
        if y.is_all_finite() && self.spaces.len() == 1 && self.starts.len() <= 1 {
            let start = self.starts.first().cloned();
            let noise = (0..n).map(|i| noise.of(i)).collect();
            return vec![Factors { first: 0, y, noise, start }];
        }
        self.by_column(noise)
    }

    /// Returns the same, of every column.
    fn by_column(&self, noise: &RowNoise) -> Vec<Factors> {
        let (n, y) = (self.rows.y.nrows(), &self.rows.y - &self.mean);
        let one = |p: usize| {
            let known = |i: usize| !y[(i, p)].is_nan();
            let own = Mat::from_fn(n, 1, |i, _| if known(i) { y[(i, p)] } else { 0.0 });
            let noise = (0..n).map(|i| if known(i) { noise.of(i) } else { f64::INFINITY });
            Factors { first: p, y: own, noise: noise.collect(), start: self.start(p) }
        };
        (0..y.ncols()).map(one).collect()
    }

    /// Adds the means of the states before the first row to the mean function, so that what the likelihood is asked about is a function
    /// of mean 0. Returns the means at the rows, N×L, with the states; none without states.
    fn centre(&mut self) -> Result<Option<(Mat<f64>, Vec<Start>)>> {
        if self.starts.is_empty() {
            return Ok(None);
        }
        let (n, latents) = (self.mean.nrows(), self.mean.ncols());
        let (mut means, missing) = (Mat::zeros(n, latents), vec![f64::INFINITY; n]);
        let starts: Vec<Start> = (0..latents).filter_map(|l| self.start(l)).collect();
        for (l, start) in starts.iter().enumerate() {
            let none = Mat::zeros(n, 1);
            let own = markov::Rows {
                places: self.places(),
                y: none.as_ref(),
                noise: &missing,
                start: Some(start),
            };
            let found = markov::marginals(self.space(l), own, &|| Ok(()))?;
            means.as_mut().subcols_mut(l, 1).copy_from(&found.mean);
        }
        self.mean += &means;
        let centred = starts.iter().map(|own| Start { mean: &own.mean * 0.0, ..own.clone() });
        self.starts = centred.collect();
        Ok(Some((means, starts)))
    }

    /// Returns the log density of factors; adds its slopes to those of the kernels.
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

    /// Returns the log evidence under Gaussian noise, and with `gradient` its slopes.
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

    /// Returns the bound at its best sites, with its slopes: as it cannot rise in these, they are
    /// those at fixed sites.
    fn bound(
        &self,
        model: &Model,
        bound: &dyn Bound,
        gradient: &mut [f64],
        engine: &dyn Engine,
    ) -> Result<f64> {
        let found = sites::best_on(engine, self, model, bound, search(bound))?;
        let parts = model.parts_of(gradient);
        model.mean.vjp(self.rows.x.as_ref(), found.a.as_ref(), parts.mean);
        for own in self.sited(found.factors) {
            self.add_evidence(model, &own, parts.kernel, &|| engine.go_on())?;
        }
        parts.likelihood.copy_from_slice(&found.params);
        Ok(found.value)
    }
}

impl Prior for Series {
    fn rows(&self) -> &InMemory {
        &self.rows
    }

    fn mean(&self) -> &Mat<f64> {
        &self.mean
    }

    /// Returns whether functions have a common covariance: those that differ in what is known
    /// before the first row have none.
    fn alike(&self) -> bool {
        self.spaces.len() == 1 && self.starts.is_empty()
    }

    fn marginals(&self, latent: usize, own: &sites::Factors) -> Result<markov::Marginals> {
        let start = self.start(latent);
        let rows = markov::Rows {
            places: self.places(),
            y: own.y.as_ref(),
            noise: &own.noise,
            start: start.as_ref(),
        };
        markov::marginals(self.space(latent), rows, &|| Ok(()))
    }
}

impl Method for Markov {
    fn name(&self) -> &'static str {
        self.name
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

    /// States of few numbers are passed so fast that all rows are taken; periods have many.
    fn training_rows(&self, model: &Model, rows: usize) -> usize {
        let periodic = model.params().iter().any(|(_, own)| own.role() == Role::Period);
        self.training_rows.of(rows, periodic)
    }

    fn sampler(&self) -> Option<Sampler> {
        self.sampler
    }

    fn augments(&self) -> bool {
        self.bound.augments() || self.sampler.is_some()
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
        if self.augments() {
            Augmented.check(&*model.likelihood)?;
        }
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
        let series = Series::new(model, &weighty(super::collect(data)?), None)?;
        let mut gradient = vec![0.0; model.num_params()];
        let value = match model.likelihood.as_gaussian() {
            Some(_) => series.evidence(model, &mut gradient, &|| engine.go_on())?,
            None => series.bound(model, self.bound, &mut gradient, engine)?,
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
        let known = Known::new(*self, model, &rows, None, &|| engine.go_on())?;
        Ok(Posterior::of_kept_rows(model, rows, Arc::new(known)))
    }

    fn conditioned_after(
        &self,
        model: &Model,
        engine: &dyn Engine,
        rows: InMemory,
        past: Past,
    ) -> Result<Posterior> {
        let rows = weighty(rows);
        let known = Known::new(*self, model, &rows, Some(past), &|| engine.go_on())?;
        Ok(Posterior::of_kept_rows(model, rows, Arc::new(known)))
    }
}

#[cfg(test)]
mod labels_tests;
#[cfg(test)]
mod tests;

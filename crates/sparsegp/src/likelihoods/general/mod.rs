//! Likelihoods that are given by their log density on arrays.
//!
//! A type implements [`Density`]; [`General`] makes a likelihood of it: slopes are central differences of log p (or those that the
//! type gives), predictions are integrals over the support. Everything is asked for many rows at once, which suits functions of
//! another language; for Rust [`super::custom`] is faster, and takes slopes by dual numbers.
//!
//! Expectations over one latent function are computed to about seven digits of E|log p| by a rule that is refined row by row: 41 nodes where log p
//! is smooth over a deviation of f, up to some thousand where it has a kink, or where p is a narrow peak. log p must be
//! continuous in f. Expectations over several latent functions take [`Density::points`] of Gauss–Hermite for each: exact for
//! polynomials of degree 39 with 20, and good to about exp(−6d) where log p is analytic up to d deviations from the real line.
//!
//! ```
//! use sparsegp::likelihoods::general::{Density, General};
//! use sparsegp::likelihoods::{Likelihood, Target};
//! use sparsegp::linalg::MatRef;
//! use sparsegp::params::Param;
//!
//! /// y = f + Cauchy noise of some width.
//! #[derive(Clone, Debug)]
//! struct Cauchy;
//!
//! impl Density for Cauchy {
//!     fn name(&self) -> &'static str {
//!         "cauchy"
//!     }
//!     fn parameters(&self) -> Vec<(String, Param)> {
//!         vec![("width".into(), Param::positive(0.5))]
//!     }
//!     fn log_density(&self, parameters: &[&[f64]], y: &[f64], f: MatRef<f64>, out: &mut [f64]) {
//!         let width = parameters[0][0];
//!         for (i, (out, y)) in out.iter_mut().zip(y).enumerate() {
//!             let z = (f[(i, 0)] - y) / width;
//!             *out = -(z * z).ln_1p() - width.ln() - std::f64::consts::PI.ln();
//!         }
//!     }
//! }
//!
//! let likelihood = General::new(Cauchy)?;
//! let target = Target { y: 1.3, extra: 0.0 };
//! assert!(likelihood.log_prob(target, &[1.3]) > likelihood.log_prob(target, &[0.2]));
//! let median = likelihood.quantile(0.0, &[0.2], &[0.1], 0.5);
//! assert!((median - 0.2).abs() < 1e-8);
//! # Ok::<(), sparsegp::Error>(())
//! ```
//!
//! [`super::register`] gives such a likelihood a name in specifications and model files.

mod expectations;
mod integrals;

use super::custom_law::Law;
use super::multi::{LogSum, index_quantile, uniform};
use super::multi_points::Points;
use super::{Args, Likelihood, Many, Slopes, Support, Target};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};
use crate::params::{Param, Transform, Visitor, VisitorMut};
use crate::special::HALF_LOG_TAU;
use integrals::{integrals, log_integrals};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// What a density may integrate to.
const MASS: std::ops::Range<f64> = 0.99..1.01;
/// Densities of y below this logarithm are of no account for its distribution.
const LEAST: f64 = -200.0;

/// Returns the density of the standard normal.
fn normal(t: f64) -> f64 {
    (-0.5 * t * t - HALF_LOG_TAU).exp()
}

/// A density of y given K latent values, on arrays of rows. Only `name`, `parameters` and `log_density` must be given.
///
/// `parameters` are values in the order of [`Density::parameters`]. Methods may be called from several threads at once.
pub trait Density: Send + Sync + std::fmt::Debug + 'static {
    /// Returns the name in specifications, model files and messages.
    fn name(&self) -> &'static str;

    /// Returns the names of the parameters with their starting values.
    fn parameters(&self) -> Vec<(String, Param)>;

    /// Computes log p(yᵢ | fᵢ) into `out` for every row i of `f` (N×K), with its constants.
    fn log_density(&self, parameters: &[&[f64]], y: &[f64], f: MatRef<f64>, out: &mut [f64]);

    /// Returns whether [`Density::slopes`] gives slopes; else they are differences.
    fn has_slopes(&self) -> bool {
        false
    }

    /// Computes slopes of log p(yᵢ | fᵢ): in `f` into `by_f` (N×K), in all parameters into `by_parameters` (N×P).
    fn slopes(
        &self,
        parameters: &[&[f64]],
        y: &[f64],
        f: MatRef<f64>,
        by_f: &mut Mat<f64>,
        by_parameters: &mut Mat<f64>,
    ) {
        let _ = (parameters, y, f, by_f, by_parameters);
    }

    /// Returns K, the number of latent functions.
    fn latents(&self) -> usize {
        1
    }

    /// Returns the number of points of Gauss–Hermite for each of several latent functions.
    fn points(&self) -> usize {
        20
    }

    /// Returns where y can lie.
    fn support(&self) -> Support {
        Support::Real
    }

    /// Returns whether targets may be shifted and scaled: the family of densities is the same afterwards.
    fn standardises(&self) -> bool {
        false
    }

    /// Returns whether [`Density::moments`] gives moments; else predictions integrate over the support.
    fn has_moments(&self) -> bool {
        false
    }

    /// Computes mean and variance of yᵢ given fᵢ, for every row of `f` (N×K).
    fn moments(
        &self,
        parameters: &[&[f64]],
        f: MatRef<f64>,
        mean: &mut [f64],
        variance: &mut [f64],
    ) {
        let _ = (parameters, f, mean, variance);
    }

    /// Returns where the latent functions start, by the targets: K numbers.
    fn start(&self, targets: &[f64]) -> Vec<f64> {
        let _ = targets;
        vec![0.0; self.latents()]
    }

    /// Returns the further entries of the specification, for the builder of the likelihood: no parameters.
    fn entries(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// The likelihood of a [`Density`].
#[derive(Clone, Debug)]
pub struct General {
    density: Arc<dyn Density>,
    names: Vec<String>,
    params: Vec<Param>,
    /// Ranges as the density gave them.
    ranges: Vec<Transform>,
    /// Of several latent functions.
    points: Option<Arc<Points>>,
}

impl General {
    /// Makes the likelihood of a density, with the starting values of its parameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more latent functions than a rule of points can have.
    pub fn new(density: impl Density) -> Result<Self> {
        Self::of(Arc::new(density))
    }

    fn of(density: Arc<dyn Density>) -> Result<Self> {
        let points = match density.latents() {
            1 => None,
            latents => Some(Arc::new(Points::tensor(density.points(), latents)?)),
        };
        let (names, params): (Vec<String>, Vec<Param>) = density.parameters().into_iter().unzip();
        let ranges = params.iter().map(Param::natural).collect();
        Ok(Self { density, names, params, ranges, points })
    }

    /// Reads what [`Likelihood::to_json`] writes: the parameters. The density itself is code and comes with `density`, as do
    /// its [`entries`](Density::entries).
    ///
    /// # Errors
    /// As for [`super::build`].
    pub fn read(density: impl Density, args: &Args<'_>) -> Result<Self> {
        let mut own = Self::new(density)?;
        let entries = own.density.entries();
        let further: Vec<&str> = entries.keys().map(String::as_str).collect();
        args.allow(&own.names.iter().map(String::as_str).collect::<Vec<_>>(), &further)?;
        for (name, param) in own.names.iter().zip(&mut own.params) {
            args.read(name, param)?;
        }
        Ok(own)
    }

    /// Returns the density.
    pub fn density(&self) -> &dyn Density {
        &*self.density
    }

    /// Returns the present values.
    fn numbers(&self) -> Vec<&[f64]> {
        self.params.iter().map(Param::value).collect()
    }

    /// Returns log p of pairs of targets and rows.
    fn log(&self, y: &[f64], f: MatRef<f64>) -> Vec<f64> {
        let mut out = vec![f64::NAN; y.len()];
        self.density.log_density(&self.numbers(), y, f, &mut out);
        out
    }

    /// Returns log E[p(y | f)] for several y; below `least` roughly.
    fn predicted(&self, y: &[f64], mean: &[f64], variance: &[f64], least: f64) -> Vec<f64> {
        let rows = |of: &[usize], f: &dyn Fn(usize, usize) -> f64| {
            let all: Vec<f64> = of.iter().map(|row| y[*row]).collect();
            self.log(&all, Mat::from_fn(all.len(), mean.len(), f).as_ref())
        };
        if variance.iter().all(|v| *v <= 0.0) {
            return self.log(y, Mat::from_fn(y.len(), mean.len(), |_, k| mean[k]).as_ref());
        }
        let Some(points) = &self.points else {
            let deviation = variance[0].sqrt();
            let mut log = |of: &[usize], t: &[f64]| {
                let mut log = rows(of, &|i, _| mean[0] + deviation * t[i]);
                log.iter_mut().zip(t).for_each(|(log, t)| *log -= 0.5 * t * t + HALF_LOG_TAU);
                log
            };
            return log_integrals(y.len(), least, &mut log);
        };
        let (x, w): (Vec<&[f64]>, Vec<f64>) = points.iter().unzip();
        let of: Vec<usize> = (0..y.len()).flat_map(|row| vec![row; w.len()]).collect();
        let f = |i: usize, k: usize| mean[k] + variance[k].max(0.0).sqrt() * x[i % w.len()][k];
        let sum = |own: &[f64]| {
            let mut total = LogSum::EMPTY;
            own.iter().zip(&w).for_each(|(g, w)| total.add(*g, *w));
            total.ln()
        };
        rows(&of, &f).chunks(w.len()).map(sum).collect()
    }

    /// Returns the mean and variance of y by those given f.
    fn moments(&self, mean: &[f64], variance: &[f64]) -> (f64, f64) {
        let given = |f: &Mat<f64>| {
            let (mut m, mut v) = (vec![f64::NAN; f.nrows()], vec![f64::NAN; f.nrows()]);
            self.density.moments(&self.numbers(), f.as_ref(), &mut m, &mut v);
            (m, v)
        };
        let (m, v) = given(&Mat::from_fn(1, mean.len(), |_, k| mean[k]));
        if variance.iter().all(|v| *v <= 0.0) {
            return (m[0], v[0]);
        }
        // from the mean at the middle, lest a difference of large squares is left
        let centre = m[0];
        let totals = match &self.points {
            None => {
                let deviation = variance[0].sqrt();
                let mut of = |_: &[usize], t: &[f64], _: bool| {
                    let (m, v) =
                        given(&Mat::from_fn(t.len(), 1, |i, _| mean[0] + deviation * t[i]));
                    Mat::from_fn(t.len(), 2, |i, q| {
                        let apart = m[i] - centre;
                        normal(t[i]) * if q == 0 { apart } else { v[i] + apart * apart }
                    })
                };
                integrals(1, 2, |_| false, &mut of).remove(0)
            }
            Some(points) => {
                let (x, w): (Vec<&[f64]>, Vec<f64>) = points.iter().unzip();
                let f = |s: usize, k: usize| mean[k] + variance[k].max(0.0).sqrt() * x[s][k];
                let (m, v) = given(&Mat::from_fn(w.len(), mean.len(), f));
                let first = w.iter().zip(&m).map(|(w, m)| w * (m - centre)).sum();
                let each = w.iter().zip(m.iter().zip(&v));
                vec![first, each.map(|(w, (m, v))| w * (v + (m - centre).powi(2))).sum()]
            }
        };
        (centre + totals[0], totals[1] - totals[0] * totals[0])
    }

    /// Returns the distribution of y; none where its density does not integrate to 1.
    fn known_law(&self, mean: &[f64], variance: &[f64]) -> Option<Law> {
        Some(self.law(mean, variance)).filter(|law| MASS.contains(&law.mass()))
    }

    /// Returns the distribution of y.
    fn law(&self, mean: &[f64], variance: &[f64]) -> Law {
        let support = self.density.support();
        let (at, width) = match support {
            Support::Interval(low, high) => (0.5 * (low + high), 0.5 * (high - low)),
            Support::Positive => (1.0, 1.0),
            // where f is of the targets
            Support::Real if self.density.standardises() => (mean[0], 1.0),
            _ => (0.0, 1.0),
        };
        Law::new(support, at, width, |y| self.predicted(y, mean, variance, LEAST))
    }
}

impl Likelihood for General {
    fn name(&self) -> &'static str {
        self.density.name()
    }

    fn latents(&self) -> usize {
        self.density.latents()
    }

    fn classes(&self) -> Option<usize> {
        match self.density.support() {
            Support::Classes(c) => Some(c),
            _ => None,
        }
    }

    fn standardises(&self) -> bool {
        self.density.standardises()
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        self.names.iter().zip(&self.params).for_each(|(name, param)| visitor(name, param));
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        self.names.iter().zip(&mut self.params).for_each(|(name, param)| visitor(name, param));
    }

    fn initialise(&mut self, targets: &[Target]) -> Vec<f64> {
        let y: Vec<f64> = targets.iter().map(|t| t.y).filter(|y| !y.is_nan()).collect();
        self.density.start(&y)
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        let support = self.density.support();
        if support.contains(target.y) { Ok(()) } else { Err(support.words()) }
    }

    fn trial(&self, targets: &[Target]) -> Result<()> {
        self.tried(targets)
    }

    fn log_prob(&self, target: Target, f: &[f64]) -> f64 {
        if !self.density.support().contains(target.y) {
            return f64::NEG_INFINITY;
        }
        self.log(&[target.y], MatRef::from_row_major_slice(f, 1, f.len()))[0]
    }

    fn log_probs(&self, targets: &[Target], f: &[f64], out: &mut [f64]) {
        let (y, k): (Vec<f64>, usize) = (targets.iter().map(|t| t.y).collect(), self.latents());
        let support = self.density.support();
        if y.iter().all(|y| support.contains(*y)) && !y.is_empty() {
            let rows = MatRef::from_row_major_slice(f, y.len(), k);
            return self.density.log_density(&self.numbers(), &y, rows, out);
        }
        let rows = f.chunks_exact(k).zip(targets);
        out.iter_mut().zip(rows).for_each(|(log, (f, target))| *log = self.log_prob(*target, f));
    }

    fn log_prob_slopes(
        &self,
        targets: &[Target],
        f: &[f64],
        value: &mut [f64],
        slopes: &mut [f64],
    ) {
        let y: Vec<f64> = targets.iter().map(|target| target.y).collect();
        if !y.is_empty() {
            self.slopes_in_f(&y, f, value, slopes);
        }
    }

    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        let mut value = [0.0];
        let Slopes { mean: by_mean, variance: by_variance, params } = out;
        let many = Many { value: &mut value, mean: by_mean, variance: by_variance, params };
        self.expected(&[target.y], mean, variance, many);
        value[0]
    }

    fn in_blocks(&self) -> bool {
        true
    }

    fn expect_rows(&self, targets: &[Target], mean: &[f64], variance: &[f64], out: Many<'_>) {
        let y: Vec<f64> = targets.iter().map(|target| target.y).collect();
        self.expected(&y, mean, variance, out);
    }

    fn predict(&self, _: f64, mean: &[f64], variance: &[f64]) -> (f64, f64) {
        if self.density.has_moments() {
            return self.moments(mean, variance);
        }
        self.known_law(mean, variance).map_or((f64::NAN, f64::NAN), |law| law.moments())
    }

    fn predict_log_density(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        if !self.density.support().contains(target.y) {
            return f64::NEG_INFINITY;
        }
        self.predicted(&[target.y], mean, variance, f64::NEG_INFINITY)[0]
    }

    fn support(&self, _: f64) -> Support {
        self.density.support()
    }

    fn cdf(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        match self.density.support().certain(target.y) {
            Some(certain) => certain,
            None => self.known_law(mean, variance).map_or(f64::NAN, |law| law.cdf(target.y)),
        }
    }

    fn quantile(&self, _: f64, mean: &[f64], variance: &[f64], level: f64) -> f64 {
        self.known_law(mean, variance).map_or(f64::NAN, |law| law.quantile(level))
    }

    fn probabilities(&self, mean: &[f64], variance: &[f64], out: &mut [f64]) {
        let Support::Classes(_) = self.density.support() else { return };
        let y: Vec<f64> = (0..out.len()).map(|k| k as f64).collect();
        let log = self.predicted(&y, mean, variance, f64::NEG_INFINITY);
        out.iter_mut().zip(log).for_each(|(p, log)| *p = log.exp());
        let sum: f64 = out.iter().sum();
        out.iter_mut().for_each(|p| *p /= sum);
    }

    fn sample(&self, _: f64, f: &[f64], rng: &mut dyn rand::Rng) -> f64 {
        let still = vec![0.0; f.len()];
        if let Support::Classes(c) = self.density.support() {
            let mut p = vec![0.0; c];
            self.probabilities(f, &still, &mut p);
            return index_quantile(&p, uniform(rng));
        }
        // never 0
        self.quantile(0.0, f, &still, uniform(rng) + 0.5 / (1_u64 << 53) as f64)
    }

    fn to_json(&self) -> Value {
        let mut object = json!({ "type": self.name() });
        for (name, entry) in self.density.entries() {
            object[name] = entry;
        }
        for ((name, param), range) in self.names.iter().zip(&self.params).zip(&self.ranges) {
            object[name] = param.to_json(*range);
        }
        object
    }

    fn clone_box(&self) -> Box<dyn Likelihood> {
        Box::new(self.clone())
    }
}

impl General {
    fn wrong(&self, what: &str) -> Error {
        Error::Invalid(format!("the likelihood `{}` {what}", self.density.name()))
    }

    /// Refuses log densities at a few of these targets that are not finite, slopes that are not theirs, and a density that does
    /// not integrate to 1.
    fn tried(&self, targets: &[Target]) -> Result<()> {
        const ROWS: usize = 5;
        let y: Vec<f64> = targets.iter().map(|t| t.y).filter(|y| !y.is_nan()).collect();
        let count = ROWS.min(y.len());
        let y: Vec<f64> = (0..count).map(|i| y[i * y.len() / count]).collect();
        let (start, latents) = (self.density.start(&y), self.latents());
        if start.len() != latents || start.iter().any(|f| !f.is_finite()) {
            return Err(self.wrong(&format!(
                "starts at {start:?}; `start` must give {latents} finite numbers, one for each latent function"
            )));
        }
        let f = Mat::from_fn(count, start.len(), |i, k| start[k] + 0.1 * i as f64 - 0.2);
        let log = self.log(&y, f.as_ref());
        if let Some(i) = log.iter().position(|g| g.is_nan() || *g == f64::INFINITY) {
            return Err(self.wrong(&format!(
                "has the log density {} for y = {} and f = {}",
                log[i],
                y[i],
                f[(i, 0)]
            )));
        }
        if self.density.has_slopes() {
            self.tried_slopes(&y, f.as_ref())?;
        }
        let mass = self.law(&start, &vec![0.0; start.len()]).mass();
        // also where it is NaN
        if (mass - 1.0).abs().partial_cmp(&1e-3) != Some(std::cmp::Ordering::Less) {
            return Err(self.wrong(&format!(
                "has a density whose integral over y is {mass:.4} at f = {}, and it must be 1: `log_density` needs its constants",
                start[0]
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Missing cells of new rows, averaged over all places where a row may lie.
//!
//! q(x) of a row is one Gaussian without correlations about one of several places: 95 % intervals of what is predicted there held
//! 82 to 93 % of simulated cells. The density of a place x given the cells of the row, N(x; 0, I) Πₚ N(yₚ; mₚ(x), vₚ(x) + σ²), is
//! cheap, so that draws from a mixture are weighted by what it is of theirs (importance sampling; Owen 2013, §9). Their moments
//! are those of all cells.

use super::embed::{Candidates, Cells, EmbedOptions, Optimum, cells};
use super::predict::Posterior;
use crate::error::Result;
use crate::linalg::{Mat, MatRef};
use crate::psi::Uncertain;
use crate::rng;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// Draws for a row, one half about its optima and the other about candidates.
const DRAWS: usize = 600;
/// How much wider than q(x) the mixture is: variances given all other dimensions are smaller than those of a dimension.
const WIDER: f64 = 4.0;
/// Part of the logarithm of its density by which a candidate is drawn.
const TEMPERED: f64 = 0.25;

/// A part of the mixture that places are drawn from.
struct Component {
    share: f64,
    mean: Vec<f64>,
    variance: Vec<f64>,
}

impl Posterior {
    /// Returns the means and variances of the observations in all cells of new rows (N×P, NaN where
    /// missing), on the scale of the targets; those of cells that a row has are not looked at. As
    /// for [`Posterior::embed`], whose candidates and options these are.
    ///
    /// # Errors
    /// As for [`Posterior::embed`].
    pub fn impute(
        &self,
        y: MatRef<f64>,
        candidates: Uncertain<'_>,
        options: &EmbedOptions,
    ) -> Result<(Mat<f64>, Mat<f64>)> {
        let near = self.candidates(y, candidates, options)?;
        let (n, columns, q) = (y.nrows(), y.ncols(), self.dimensions());
        // of a row without cells
        let (zeros, ones) = (Mat::zeros(1, q), Mat::from_fn(1, q, |_, _| 1.0));
        let prior = self.predict_f(Uncertain::new(zeros.as_ref(), ones.as_ref())?)?;
        let rows: Vec<Vec<(f64, f64)>> = (0..n)
            .into_par_iter()
            .map(|i| {
                let own = cells(y, i)?;
                match own.len() {
                    0 => Ok((0..columns).map(|p| (prior.0[(0, p)], prior.1[(0, p)])).collect()),
                    count if count == columns => Ok(vec![(0.0, 0.0); columns]),
                    _ => self.averaged(&own, &near, options),
                }
            })
            .collect::<Result<_>>()?;
        Ok((
            Mat::from_fn(n, columns, |i, p| rows[i][p].0),
            Mat::from_fn(n, columns, |i, p| rows[i][p].1 + self.noise),
        ))
    }

    /// Returns the means and variances of the latent functions of every column over the places of a
    /// row with these cells.
    fn averaged(
        &self,
        y: &Cells,
        near: &Candidates,
        options: &EmbedOptions,
    ) -> Result<Vec<(f64, f64)>> {
        let q = self.dimensions();
        let mixture = self.mixture(y, near, &self.optima(y, near, options)?);
        // the same draws for a row wherever it stands
        let mut generator = rng::stream(0, "places of a row");
        let places = drawn(&mixture, q, &mut generator);
        let none = Mat::zeros(DRAWS, q);
        let (mean, variance) = self.predict_f(Uncertain::new(places.as_ref(), none.as_ref())?)?;
        let log_weight = |i: usize| {
            let place: Vec<f64> = (0..q).map(|j| places[(i, j)]).collect();
            let of = |(p, y): &(usize, f64)| {
                let spread = variance[(i, *p)] + self.noise;
                (y - mean[(i, *p)]).powi(2) / spread + spread.ln()
            };
            let squares: f64 = place.iter().map(|v| v * v).sum();
            -0.5 * (squares + y.iter().map(of).sum::<f64>()) - log_density(&mixture, &place)
        };
        let logs: Vec<f64> = (0..DRAWS).map(log_weight).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= total);
        let moments = |p: usize| {
            let sum = |f: &dyn Fn(usize) -> f64| -> f64 {
                weights.iter().enumerate().map(|(i, weight)| weight * f(i)).sum()
            };
            let centre = sum(&|i| mean[(i, p)]);
            (centre, sum(&|i| variance[(i, p)] + (mean[(i, p)] - centre).powi(2)))
        };
        Ok((0..self.columns()).map(moments).collect())
    }

    /// Returns what places are drawn from: wider Gaussians at the optima, and at candidates by how
    /// probable the cells are there, as wide as these lie apart.
    fn mixture(&self, y: &Cells, near: &Candidates, optima: &[Optimum]) -> Vec<Component> {
        let q = self.dimensions();
        let of_optimum = |own: &Optimum| Component {
            share: 0.5 / optima.len() as f64,
            mean: own.at[..q].to_vec(),
            variance: own.at[q..].iter().map(|log| WIDER * log.exp()).collect(),
        };
        let misfits = self.misfits(y, near);
        let least = misfits.iter().copied().fold(f64::INFINITY, f64::min);
        let shares: Vec<f64> =
            misfits.iter().map(|own| (-0.5 * TEMPERED * (own - least)).exp()).collect();
        let total: f64 = shares.iter().sum();
        // the width of a kernel density estimate (Scott 1992)
        let apart = (misfits.len() as f64).powf(-2.0 / (q as f64 + 4.0));
        let of_candidate = |(i, share): (usize, &f64)| Component {
            share: 0.5 * share / total,
            mean: (0..q).map(|j| near.mean[(i, j)]).collect(),
            variance: (0..q).map(|j| near.variance[(i, j)] + apart).collect(),
        };
        let candidates = shares.iter().enumerate().map(of_candidate);
        optima.iter().map(of_optimum).chain(candidates).collect()
    }
}

/// Draws places, as many from every component as its share says (systematic resampling).
fn drawn(mixture: &[Component], q: usize, generator: &mut impl Rng) -> Mat<f64> {
    let mut places = Mat::zeros(DRAWS, q);
    let (mut at, mut below) = (0, mixture[0].share);
    for i in 0..DRAWS {
        while at + 1 < mixture.len() && below < (i as f64 + 0.5) / DRAWS as f64 {
            at += 1;
            below += mixture[at].share;
        }
        for j in 0..q {
            let normal: f64 = StandardNormal.sample(generator);
            places[(i, j)] = mixture[at].mean[j] + mixture[at].variance[j].sqrt() * normal;
        }
    }
    places
}

/// Returns the log density of a mixture but for a constant.
fn log_density(mixture: &[Component], place: &[f64]) -> f64 {
    let of = |own: &Component| {
        let both = own.mean.iter().zip(&own.variance).zip(place);
        let misfit: f64 = both.map(|((m, v), x)| (x - m).powi(2) / v + v.ln()).sum();
        own.share.ln() - 0.5 * misfit
    };
    let logs: Vec<f64> = mixture.iter().map(of).collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln()
}

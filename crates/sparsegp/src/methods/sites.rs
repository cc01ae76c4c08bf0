//! The best normal q(f) of rows under any likelihood, by sites of all of them (Chang, Wilkinson, Khan & Solin 2020; Adam, Chang, Khan &
//! Solin 2021, §3, for the bound).
//!
//! A row has the site exp(λ₁f − ½λ₂f²), which is a normal factor with y = λ₁/λ₂ and the variance s = 1/λ₂: what the factors make
//! of the prior, a [`Prior`] finds. With those m, v, d = G⁻¹y and D of the diagonal of G⁻¹, every latent
//! function has
//!
//! ```text
//! KL = ½{Σ(sD − 1) + dᵀm + log|I + Λ₂K|}       λ ← (1 − ρ)λ + ρ(α + βm, β),  α = ∂ℓ/∂m,  β = −2 ∂ℓ/∂v
//! ```
//!
//! and steps end where α = d and β = λ₂. There the bound has no slope in the sites, so that its slopes in the hyperparameters are
//! those of log N(y; 0, G) at fixed sites. λ₂ may be negative, where a likelihood is not log-concave: the best sites are then those,
//! and no cut moves the optimum. Steps go to the best of those that are not negative first. A step that lowers the bound, or whose
//! sites leave no density, is halved.

use super::finite;
use super::tvgp::centred;
use super::uncollapsed::rows::{LikelihoodRows, sum};
use crate::bounds::Bound;
use crate::data::InMemory;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::linalg::{Mat, column, in_parts};
use crate::markov::Marginals;
use crate::model::Model;
use rayon::prelude::*;

/// The smallest part of a step.
const SMALLEST: f64 = 1e-4;
/// Precision of a site, in prior precisions, below which it counts as this much: λ₁ keeps its digits.
const WEAKEST: f64 = 1e-12;
/// Steps of the means between two looks, at most.
const MOST_OF_MEANS: usize = 20;
/// What a step may promise at the end, in nats, for each row.
const ENDED: f64 = 1e-13;

/// The prior of functions of mean 0 at rows, one for each latent function.
pub(super) trait Prior: Sync {
    /// Returns the rows.
    fn rows(&self) -> &InMemory;

    /// Returns the mean function at the rows, N×L.
    fn mean(&self) -> &Mat<f64>;

    /// Returns whether all latent functions have the same prior.
    fn alike(&self) -> bool;

    /// Returns what normal factors make of a function.
    ///
    /// # Errors
    /// Where no density is left, and what the method gives.
    fn marginals(&self, latent: usize, own: &Factors) -> Result<Marginals>;

    /// Returns whether means cost much less than all of [`Prior::marginals`].
    fn means_are_cheap(&self) -> bool {
        false
    }

    /// Returns the mean only, N×1.
    ///
    /// # Errors
    /// As for [`Prior::marginals`].
    fn mean_of(&self, latent: usize, own: &Factors) -> Result<Mat<f64>> {
        Ok(self.marginals(latent, own)?.mean)
    }
}

/// Normal factors of the rows of a latent function.
#[derive(Clone, Debug)]
pub(super) struct Factors {
    /// y, N×1, less the mean function.
    pub(super) y: Mat<f64>,
    /// s: infinite for a row without a factor.
    pub(super) noise: Vec<f64>,
}

impl Factors {
    /// Returns λ₁ of the rows.
    pub(super) fn first(&self) -> Vec<f64> {
        let one = |(s, y): (&f64, &f64)| if s.is_infinite() { 0.0 } else { y / s };
        self.noise.iter().zip(self.y.col_as_slice(0)).map(one).collect()
    }

    /// Returns λ₂ of the rows.
    pub(super) fn second(&self) -> Vec<f64> {
        self.noise.iter().map(|s| 1.0 / s).collect()
    }
}

/// The best sites, and the bound there.
pub(super) struct Best {
    pub(super) sites: Sites,
    /// The same, of every latent function.
    pub(super) factors: Vec<Factors>,
    pub(super) value: f64,
    /// ∂ℓ/∂m, N×L.
    pub(super) a: Mat<f64>,
    /// Slopes of the likelihood's parameters.
    pub(super) params: Vec<f64>,
}

/// λ₁ and λ₂ of the rows, N×L.
#[derive(Clone)]
pub(super) struct Sites {
    pub(super) first: Mat<f64>,
    pub(super) second: Mat<f64>,
}

/// How the best sites are searched for.
pub(super) struct Search {
    /// Where from, if the bound is higher there than without sites.
    pub(super) start: Option<Sites>,
    /// The least precisions of sites, one search after the other.
    pub(super) least: Vec<f64>,
    /// What a step may promise at the end, in nats, beside what is a matter of rounding.
    pub(super) ended: f64,
    /// The part of both that counts, where steps come nearer to the end by a part of what is left each, and promise less than that.
    pub(super) part: f64,
    /// Most steps; log-concave likelihoods need some ten.
    pub(super) steps: usize,
    /// By how much a step may lower the bound, in nats, where the bound is an average over draws.
    pub(super) slack: f64,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            start: None,
            least: vec![0.0, f64::NEG_INFINITY],
            ended: 1e-10,
            part: 1.0,
            steps: 200,
            slack: 0.0,
        }
    }
}

/// What is known at some sites.
#[derive(Clone)]
struct Look {
    value: f64,
    /// The part of the likelihood.
    expected: f64,
    /// ∂ℓ/∂m and ∂ℓ/∂v.
    a: Mat<f64>,
    b: Mat<f64>,
    params: Vec<f64>,
    /// d, m less the mean function, and v.
    d: Mat<f64>,
    m: Mat<f64>,
    v: Mat<f64>,
}

/// Refuses what sites of rows cannot have.
///
/// # Errors
/// [`Error::Invalid`] for mixed latent functions, and what the bound refuses.
pub(super) fn check(model: &Model, bound: &dyn Bound) -> Result<()> {
    if model.likelihood.mixing().is_some() {
        return Err(Error::Invalid(format!(
            "method `{}` has latent functions that are not mixed; `svgp` mixes them",
            model.method.name()
        )));
    }
    bound.check(&*model.likelihood)
}

/// Finds the best sites.
///
/// # Errors
/// [`Error::NonFinite`] where the bound is not finite under the prior; those of the passes, and what `go_on` gives.
pub(super) fn best(
    prior: &dyn Prior,
    model: &Model,
    bound: &dyn Bound,
    search: &Search,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<Best> {
    let place = Place { prior, model, bound };
    let none = || Mat::zeros(prior.mean().nrows(), prior.mean().ncols());
    let mut sites = Sites { first: none(), second: none() };
    let mut look = place.look(&sites, None, go_on)?;
    let before = look.v.clone();
    if let Some(start) = &search.start {
        match place.look(start, Some(&before), go_on) {
            Ok(found) if found.value > look.value => (sites, look) = (start.clone(), found),
            Err(error) if !error.is_recoverable() => return Err(error),
            _ => {}
        }
    }
    let ended = search.part * (search.ended + ENDED * before.nrows() as f64);
    for least in &search.least {
        let ends = Ends { prior: &before, least: *least, ended, search };
        place.climb(&mut sites, &mut look, ends, go_on)?;
    }
    let Look { value, a, params, .. } = look;
    Ok(Best { factors: place.factors(&sites, Some(&before)), sites, value, a, params })
}

/// Where the search of the last evaluation ended.
#[derive(Clone)]
struct Last(Option<Sites>);

/// Has searches on an engine begin where the last one ended, as long as what it returns lives: the optimum is the same to what a
/// search promises at its end, but not to the last bit, so that trainings that are resumed from a checkpoint begin at nothing.
/// An engine that two fits share at the same time would mix them up.
pub(crate) fn remember(engine: &dyn Engine) -> Remembered<'_> {
    engine.shelf().put(Last(None));
    Remembered(engine)
}

/// An engine on which searches begin where the last one ended.
#[must_use]
pub(crate) struct Remembered<'a>(&'a dyn Engine);

impl Drop for Remembered<'_> {
    fn drop(&mut self) {
        self.0.shelf().remove::<Last>();
    }
}

/// Finds the best sites for an evaluation, from the last ones where they are remembered.
///
/// # Errors
/// Those of [`best`].
pub(super) fn best_on(
    engine: &dyn Engine,
    prior: &dyn Prior,
    model: &Model,
    bound: &dyn Bound,
    search: Search,
) -> Result<Best> {
    let last = engine.shelf().copy::<Last>();
    let shape = (prior.mean().nrows(), prior.mean().ncols());
    let fits = |own: &Sites| (own.first.nrows(), own.first.ncols()) == shape;
    let start = last.iter().find_map(|Last(own)| own.clone()).filter(fits);
    let found = best(prior, model, bound, &Search { start, ..search }, &|| engine.go_on())?;
    if last.is_some() {
        engine.shelf().put(Last(Some(found.sites.clone())));
    }
    Ok(found)
}

impl Sites {
    /// Returns a step of size `rate`, towards precisions that are not below `least`.
    fn moved(&self, look: &Look, rate: f64, least: f64) -> Self {
        let beta = |i: usize, l: usize| (-2.0 * look.b[(i, l)]).max(least);
        let towards = |old: f64, target: f64| old + rate * (target - old);
        let (n, latents) = (self.first.nrows(), self.first.ncols());
        Self {
            first: Mat::from_fn(n, latents, |i, l| {
                towards(self.first[(i, l)], look.a[(i, l)] + beta(i, l) * look.m[(i, l)])
            }),
            second: Mat::from_fn(n, latents, |i, l| towards(self.second[(i, l)], beta(i, l))),
        }
    }
}

impl Look {
    /// Returns what such a step promises if rows were independent: δ²v + ½(vΔ)² of each with the δ
    /// and Δ by which a site moves.
    fn promise(&self, sites: &Sites, least: f64) -> f64 {
        let mut all = 0.0;
        for l in 0..self.a.ncols() {
            for i in 0..self.a.nrows() {
                let at = (i, l);
                let by_mean = self.a[at] - self.d[at];
                let by_precision = (-2.0 * self.b[at]).max(least) - sites.second[at];
                let v = self.v[at];
                all += v * by_mean * by_mean + 0.5 * (v * by_precision).powi(2);
            }
        }
        all
    }
}

/// Where steps end: they go to precisions that are not below `least`, until they promise no more than `ended`.
struct Ends<'a> {
    /// Variances of the prior.
    prior: &'a Mat<f64>,
    least: f64,
    ended: f64,
    search: &'a Search,
}

/// What the bound is of.
struct Place<'a> {
    prior: &'a dyn Prior,
    model: &'a Model,
    bound: &'a dyn Bound,
}

impl Place<'_> {
    /// Takes steps until they end, or nothing is gained.
    fn climb(
        &self,
        sites: &mut Sites,
        look: &mut Look,
        ends: Ends<'_>,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let (mut rate, mut highest) = (1.0_f64, look.value);
        for _ in 0..ends.search.steps {
            self.centre(look, sites);
            highest = highest.max(look.value);
            if look.promise(sites, ends.least) <= ends.ended {
                break;
            }
            loop {
                let settled = match rate == 1.0 && self.prior.means_are_cheap() {
                    true => self.settled(sites, look, &ends, go_on)?,
                    false => None,
                };
                let next = settled.unwrap_or_else(|| sites.moved(look, rate, ends.least));
                let enough = match ends.search.slack {
                    0.0 => look.value - 1e-13 * look.value.abs(),
                    slack => highest - slack,
                };
                match self.look(&next, Some(ends.prior), go_on) {
                    Ok(new) if new.value >= enough => {
                        (*sites, *look) = (next, new);
                        rate = (2.0 * rate).min(1.0);
                        break;
                    }
                    Err(error) if !error.is_recoverable() => return Err(error),
                    _ => rate *= 0.5,
                }
                if rate < SMALLEST {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the best sites for the variances that there are, by Newton steps of the means; none where no step raises the bound.
    fn settled(
        &self,
        sites: &Sites,
        look: &Look,
        ends: &Ends<'_>,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<Option<Sites>> {
        let mut now = look.clone();
        let fit = |look: &Look| -> f64 {
            let pairs = (0..look.m.ncols()).flat_map(|l| (0..look.m.nrows()).map(move |i| (i, l)));
            look.expected - 0.5 * pairs.map(|at| look.d[at] * look.m[at]).sum::<f64>()
        };
        let (mut best, mut rate) = (None, 1.0);
        for _ in 0..MOST_OF_MEANS {
            go_on()?;
            let from = best.as_ref().unwrap_or(sites);
            let next = from.moved(&now, rate, ends.least);
            let gain = match self.with_means(&next, &now, ends.prior) {
                Ok(new) => Some((fit(&new) - fit(&now), new)),
                Err(error) if error.is_recoverable() => None,
                Err(error) => return Err(error),
            };
            // a NaN does not raise it
            let Some((gain, new)) = gain.filter(|(gain, _)| *gain >= 0.0) else {
                rate *= 0.5;
                if rate < SMALLEST {
                    break;
                }
                continue;
            };
            (best, now, rate) = (Some(next), new, (2.0 * rate).min(1.0));
            if gain <= 0.1 * ends.ended {
                break;
            }
        }
        Ok(best)
    }

    /// Returns what is known at sites with the means of these, and the variances of a look.
    fn with_means(&self, sites: &Sites, look: &Look, prior: &Mat<f64>) -> Result<Look> {
        let mut new = look.clone();
        for (l, own) in self.factors(sites, Some(prior)).iter().enumerate() {
            let mean = self.prior.mean_of(l, own)?;
            let (first, second) = (own.first(), own.second());
            for i in 0..mean.nrows() {
                new.m[(i, l)] = mean[(i, 0)];
                new.d[(i, l)] = first[i] - second[i] * mean[(i, 0)];
            }
        }
        let sums = self.expectations(&new.m, &new.v, (&mut new.a, &mut new.b))?;
        new.expected = sums[sum::VALUE];
        Ok(new)
    }

    /// Returns the sites of every latent function as normal factors, with the prior's variances.
    fn factors(&self, sites: &Sites, prior: Option<&Mat<f64>>) -> Vec<Factors> {
        let one = |l: usize| {
            let (first, second) =
                (column(sites.first.as_ref(), l), column(sites.second.as_ref(), l));
            let precision = |i: usize| {
                let least = prior.map_or(0.0, |prior| WEAKEST / prior[(i, l)]);
                match (first[i], second[i]) {
                    (0.0, 0.0) => 0.0,
                    // what is known before any row is learnt from none
                    _ if least == f64::INFINITY => 0.0,
                    (_, own) if own.abs() < least => least,
                    (_, own) => own,
                }
            };
            let all: Vec<f64> = (0..first.len()).map(precision).collect();
            let y = |i: usize| if all[i] == 0.0 { 0.0 } else { first[i] / all[i] };
            let noise = |own: &f64| if *own == 0.0 { f64::INFINITY } else { 1.0 / own };
            let y = Mat::from_fn(first.len(), 1, |i, _| y(i));
            Factors { y, noise: all.iter().map(noise).collect() }
        };
        (0..sites.first.ncols()).map(one).collect()
    }

    fn look(
        &self,
        sites: &Sites,
        prior: Option<&Mat<f64>>,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<Look> {
        go_on()?;
        let one = |(l, own): (usize, &Factors)| self.prior.marginals(l, own);
        let factors = self.factors(sites, prior);
        let all = factors.par_iter().enumerate().map(one).collect::<Result<Vec<_>>>()?;
        let (n, latents) = (self.prior.mean().nrows(), self.prior.mean().ncols());
        let m = Mat::from_fn(n, latents, |i, l| all[l].mean[(i, 0)]);
        let v = Mat::from_fn(n, latents, |i, l| all[l].variance[i]);
        let d = Mat::from_fn(n, latents, |i, l| all[l].alpha[(i, 0)]);
        let mut value = 0.0;
        for (l, own) in all.iter().enumerate() {
            let trace: f64 = own.rest.iter().map(|rest| rest - 1.0).sum();
            let fit: f64 = (0..n).map(|i| d[(i, l)] * m[(i, l)]).sum();
            value -= 0.5 * (trace + fit + own.log_det);
        }
        let (mut a, mut b) = (Mat::zeros(n, latents), Mat::zeros(n, latents));
        let sums = self.expectations(&m, &v, (&mut a, &mut b))?;
        let expected = sums[sum::VALUE];
        let value = finite(value + expected, "the bound")?;
        let params = sums[sum::PARAMS..][..self.model.likelihood.num_params()].to_vec();
        Ok(Look { value, expected, a, b, params, d, m, v })
    }

    /// Returns sums over rows of what the likelihood contributes, and its slopes.
    fn expectations(
        &self,
        m: &Mat<f64>,
        v: &Mat<f64>,
        (a, b): (&mut Mat<f64>, &mut Mat<f64>),
    ) -> Result<Vec<f64>> {
        let (likelihood, latents) = (&*self.model.likelihood, m.ncols());
        let ones = vec![1.0; latents];
        let local = LikelihoodRows {
            likelihood,
            bound: self.bound,
            v: &ones,
            params: likelihood.num_params(),
            rounding: 0.0,
            most: f64::INFINITY,
            chosen: None,
            ratios: None,
        };
        let all = self.prior.rows().all();
        let parts = in_parts(all.x, |start, x| {
            let n = x.nrows();
            let mu = self.prior.mean().subrows(start, n) + m.subrows(start, n);
            Ok((start, local.at(all.part(start, n), mu.as_ref(), v.subrows(start, n))))
        })?;
        let mut total = vec![0.0; local.sums()];
        for (start, (sums, own_a, own_b)) in parts {
            a.as_mut().subrows_mut(start, own_a.nrows()).copy_from(&own_a);
            b.as_mut().subrows_mut(start, own_b.nrows()).copy_from(&own_b);
            total.iter_mut().zip(&sums).for_each(|(sum, own)| *sum += own);
        }
        if a.is_all_finite() && b.is_all_finite() {
            return Ok(total);
        }
        Err(Error::NonFinite { what: "a slope of the bound".into(), value: f64::NAN })
    }

    /// Does what [`super::Tvgp::centre`] does.
    fn centre(&self, look: &mut Look, sites: &mut Sites) {
        let likelihood = &*self.model.likelihood;
        if !likelihood.shift_invariant() || !self.prior.alike() {
            return;
        }
        let (first, second) = (&mut sites.first, &sites.second);
        look.value += centred(likelihood.latents(), &mut look.d, &mut look.m, |i, l, d, m| {
            first[(i, l)] -= d + second[(i, l)] * m;
        });
    }
}

//! Neighbours under other likelihoods: the latent form of the prior ([`crate::vecchia::Latent`]), and the best sites of all rows.

use super::held::{self, Held};
use super::{Vecchia, sites};
use crate::bounds::{Bound, Hensman};
use crate::data::InMemory;
use crate::engine::Engine;
use crate::error::Result;
use crate::kernels::{Kernel, place_of};
use crate::linalg::{Jitter, Mat, MatRef};
use crate::markov::Marginals;
use crate::methods::sites::Search;
use crate::methods::{Diagnostics, Evaluation};
use crate::model::{Conditional, Model, Moments};
use crate::vecchia::{Copies, Coupled, Fields, Latent, Metric, Plan, Sited};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use std::sync::Arc;

/// What is added to every prior variance, as a part of it.
const JITTER: Jitter = Jitter::Relative(1e-6);

/// What a step may promise at the end, in nats, where variances are averages over draws, and most steps then.
const ENDED_BY_DRAWS: f64 = 1e-3;
const STEPS_BY_DRAWS: usize = 40;
/// By how much the bound may be below the highest then, in nats a row.
const SLACK_OF_DRAWS: f64 = 1e-4;

/// What a row contributes.
pub(super) const BOUND: &dyn Bound = &Hensman;

/// The rows of one kernel: those at the same place have the same function.
#[derive(Debug)]
struct Places {
    /// The place of every row, and the first row of every place; none where each row has a place to itself.
    copies: Option<Copies>,
    x: Mat<f64>,
}

impl Places {
    fn new(kernel: &dyn Kernel, x: MatRef<f64>) -> Self {
        let copies = Copies::find(kernel, x);
        let x = match &copies {
            Some(own) => Mat::from_fn(own.first().len(), x.ncols(), |g, j| x[(own.first()[g], j)]),
            None => x.to_owned(),
        };
        Self { copies, x }
    }

    fn of(&self, row: usize) -> usize {
        self.copies.as_ref().map_or(row, |own| own.of()[row] as usize)
    }

    /// Returns the sums at every place.
    fn sums(&self, rows: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.x.nrows()];
        rows.iter().enumerate().for_each(|(row, own)| sums[self.of(row)] += own);
        sums
    }
}

/// The prior of the latent functions of a model at its rows.
struct Field<'a> {
    engine: &'a dyn Engine,
    rows: InMemory,
    mean: Mat<f64>,
    /// One for each kernel.
    priors: Vec<(Places, Latent)>,
    /// Whether draws describe what factors make of some of them.
    averaged: bool,
}

impl<'a> Field<'a> {
    fn new(
        method: &Vecchia,
        model: &Model,
        engine: &'a dyn Engine,
        rows: InMemory,
    ) -> Result<Self> {
        let mut mean = Mat::zeros(rows.x.nrows(), model.latents(rows.y.ncols()));
        model.mean.evaluate(rows.x.as_ref(), mean.as_mut());
        let (mut priors, mut averaged) = (Vec::new(), false);
        for (index, kernel) in model.kernels.iter().enumerate() {
            let places = Places::new(&**kernel, rows.x.as_ref());
            let x = places.x.as_ref();
            let metric = method.metric(&**kernel, x.ncols())?;
            let own = match Held::of(engine, index, method.latent_neighbours(), x) {
                Some(own) => own,
                None => coupled(method, model, x, metric, rows.y.ncols())?,
            };
            averaged |= own.is_iterative();
            let watch = || engine.go_on();
            let latent = Latent::new(&**kernel, own, x, JITTER, &watch)?;
            priors.push((places, latent));
        }
        Ok(Self { engine, rows, mean, priors, averaged })
    }

    /// Returns how the best sites are searched for. Draws need precisions that are not negative, and variances by draws are not exact.
    fn search(&self) -> Search {
        match self.averaged {
            true => Search {
                least: vec![0.0],
                ended: ENDED_BY_DRAWS,
                slack: SLACK_OF_DRAWS * self.mean.nrows() as f64,
                steps: STEPS_BY_DRAWS,
                ..Search::default()
            },
            false => Search::default(),
        }
    }

    /// Takes as many draws as predictions are to have.
    fn for_predictions(self) -> Self {
        let all = self.priors.into_iter();
        let priors = all.map(|(places, own)| (places, own.for_predictions())).collect();
        Self { priors, ..self }
    }

    fn prior(&self, latent: usize) -> &(Places, Latent) {
        &self.priors[place_of(self.priors.len(), latent)]
    }

    /// Returns the function given its factors.
    fn sited(&self, latent: usize, own: &sites::Factors) -> Result<Sited> {
        let (places, prior) = self.prior(latent);
        prior.sited(&places.sums(&own.first()), &places.sums(&own.second()))
    }

    /// Returns what its factors make of a function, at the rows.
    fn marginals_of(
        &self,
        latent: usize,
        own: &sites::Factors,
        sited: &Sited,
    ) -> Result<Marginals> {
        let (places, prior) = self.prior(latent);
        let (at_places, _) = prior.variances(sited, &|| self.engine.go_on())?;
        let n = own.noise.len();
        let (first, second) = (own.first(), own.second());
        let mean = Mat::from_fn(n, 1, |i, _| sited.mean[places.of(i)]);
        let variance: Vec<f64> = (0..n).map(|i| at_places[places.of(i)]).collect();
        let alpha = Mat::from_fn(n, 1, |i, _| first[i] - second[i] * mean[(i, 0)]);
        let rest = (0..n).map(|i| 1.0 - second[i] * variance[i]).collect();
        Ok(Marginals { mean, variance, alpha, rest, log_det: sited.log_det })
    }
}

impl sites::Prior for Field<'_> {
    fn rows(&self) -> &InMemory {
        &self.rows
    }

    fn mean(&self) -> &Mat<f64> {
        &self.mean
    }

    fn alike(&self) -> bool {
        self.priors.len() == 1
    }

    fn marginals(&self, latent: usize, own: &sites::Factors) -> Result<Marginals> {
        self.marginals_of(latent, own, &self.sited(latent, own)?)
    }

    fn means_are_cheap(&self) -> bool {
        self.averaged
    }

    fn mean_of(&self, latent: usize, own: &sites::Factors) -> Result<Mat<f64>> {
        let (places, prior) = self.prior(latent);
        let mean = prior.mean(&places.sums(&own.first()), &places.sums(&own.second()))?;
        Ok(Mat::from_fn(own.noise.len(), 1, |i, _| mean[places.of(i)]))
    }
}

/// Returns the neighbours of places for a kernel of a model with so many targets.
fn coupled(
    method: &Vecchia,
    model: &Model,
    x: MatRef<f64>,
    metric: Metric,
    targets: usize,
) -> Result<Arc<Coupled>> {
    let plan = Plan::new(x, metric, method.latent_neighbours());
    Ok(Arc::new(Coupled::new(Arc::new(plan), model.latents(targets), method.solver)?))
}

/// Does what [`crate::methods::Method::hold`] does.
pub(super) fn hold(
    method: &Vecchia,
    model: &Model,
    engine: &dyn Engine,
    rows: &InMemory,
) -> Result<bool> {
    let places: Vec<Places> =
        model.kernels.iter().map(|kernel| Places::new(&**kernel, rows.x.as_ref())).collect();
    let pairs = model.kernels.iter().zip(&places);
    let metrics = pairs.map(|(kernel, own)| method.metric(&**kernel, own.x.ncols()));
    let metrics = metrics.collect::<Result<Vec<_>>>()?;
    let all = metrics.into_iter().zip(places.iter().map(|own| own.x.as_ref())).collect();
    held::hold(engine, method.latent_neighbours(), all, |metric, x| {
        coupled(method, model, x, metric, rows.y.ncols())
    })
}

/// Returns the bound at its best sites, with its slopes: as it cannot rise in these, they are those
/// at fixed sites.
pub(super) fn evaluate(
    method: &Vecchia,
    model: &Model,
    engine: &dyn Engine,
    rows: InMemory,
) -> Result<Evaluation> {
    let field = Field::new(method, model, engine, rows)?;
    let go_on = || engine.go_on();
    let found = sites::best(&field, model, BOUND, &field.search(), &go_on)?;
    let mut gradient = vec![0.0; model.num_params()];
    let parts = model.parts_of(&mut gradient);
    let mut noise = 0.0;
    for (l, own) in found.factors.iter().enumerate() {
        let index = place_of(model.kernels.len(), l);
        let start: usize = model.kernels[..index].iter().map(|kernel| kernel.num_params()).sum();
        let (_, prior) = field.prior(l);
        let sited = field.sited(l, own)?;
        // all functions have the same normal numbers: errors may be equal
        noise += 0.5 * sited.noise;
        let (_, covariances) = prior.variances(&sited, &go_on)?;
        let slopes = prior.slopes(&sited, &covariances, &go_on)?;
        parts.kernel[start..].iter_mut().zip(&slopes).for_each(|(sum, own)| *sum += own);
    }
    model.mean.vjp(field.rows.x.as_ref(), found.a.as_ref(), parts.mean);
    parts.likelihood.copy_from_slice(&found.params);
    let diagnostics = Diagnostics { noise, ..Diagnostics::default() };
    Ok(Evaluation { value: found.value, gradient, diagnostics })
}

/// Predictions from the nearest rows.
#[derive(Debug)]
pub(super) struct Known {
    /// The functions of one kernel after the other.
    fields: Vec<Fields>,
    left_out: Moments,
    objective: f64,
}

impl Known {
    /// Conditions on rows.
    pub(super) fn new(
        method: &Vecchia,
        model: &Model,
        engine: &dyn Engine,
        rows: InMemory,
    ) -> Result<Self> {
        let field = Field::new(method, model, engine, rows)?;
        let found = sites::best(&field, model, BOUND, &field.search(), &|| engine.go_on())?;
        let field = field.for_predictions();
        let all = found.factors.iter().enumerate().map(|(l, own)| field.sited(l, own));
        let all = all.collect::<Result<Vec<_>>>()?;
        let left_out = left_out(&field, &found.factors, &all)?;
        let mut all = all.into_iter();
        let alone = field.priors.len() == 1;
        let mut fields = Vec::new();
        for (_, prior) in field.priors {
            let count = if alone { all.len() } else { 1 };
            fields.push(prior.into_fields(all.by_ref().take(count).collect())?);
        }
        Ok(Self { fields, left_out, objective: found.value })
    }
}

/// Returns what the other sites say of the function at every row: the marginal without the row's
/// own factor.
fn left_out(field: &Field<'_>, factors: &[sites::Factors], all: &[Sited]) -> Result<Moments> {
    let (n, latents) = (field.mean.nrows(), field.mean.ncols());
    let (mut mean, mut variance) = (Mat::zeros(n, latents), Mat::zeros(n, latents));
    for (l, (own, sited)) in factors.iter().zip(all).enumerate() {
        let (found, first) = (field.marginals_of(l, own, sited)?, own.first());
        for i in 0..n {
            let v = found.variance[i];
            variance[(i, l)] = v / found.rest[i];
            mean[(i, l)] = (found.mean[(i, 0)] - v * first[i]) / found.rest[i];
        }
    }
    Ok((mean, variance))
}

/// Returns columns side by side.
fn beside<'a>(rows: usize, all: impl Iterator<Item = &'a Mat<f64>> + Clone) -> Mat<f64> {
    let mut out = Mat::zeros(rows, all.clone().map(Mat::ncols).sum());
    let mut first = 0;
    for own in all {
        out.as_mut().subcols_mut(first, own.ncols()).copy_from(own);
        first += own.ncols();
    }
    out
}

impl Conditional for Known {
    fn moments(&self, x: MatRef<f64>) -> Result<Moments> {
        let all = self.fields.iter().map(|own| own.marginals(x)).collect::<Result<Vec<_>>>()?;
        let (means, variances) = (all.iter().map(|own| &own.0), all.iter().map(|own| &own.1));
        Ok((beside(x.nrows(), means), beside(x.nrows(), variances)))
    }

    fn joint(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
        let all = self.fields.iter().map(|own| own.joint(x)).collect::<Result<Vec<_>>>()?;
        let mean = beside(x.nrows(), all.iter().map(|own| &own.0));
        Ok((mean, all.into_iter().flat_map(|own| own.1).collect()))
    }

    fn left_out(&self) -> Result<Moments> {
        Ok(self.left_out.clone())
    }

    fn objective(&self) -> f64 {
        self.objective
    }

    fn draws(
        &self,
        x: MatRef<f64>,
        samples: usize,
        rng: &mut dyn Rng,
    ) -> Result<Option<Vec<Mat<f64>>>> {
        let mut normal = |n, p| Mat::from_fn(n, p, |_, _| StandardNormal.sample(rng));
        let mut all = Vec::new();
        for own in &self.fields {
            all.extend(own.draws(x, samples, &mut normal)?);
        }
        let one = |s: usize| Mat::from_fn(x.nrows(), all.len(), |i, l| all[l][(i, s)]);
        Ok(Some((0..samples).map(one).collect()))
    }
}

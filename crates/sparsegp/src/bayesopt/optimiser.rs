//! Points to try, and what came of them.

use super::design::{farthest, latin_hypercube, random};
use super::models::Models;
use super::promise::Promise;
use super::search::{Search, Taken, any, is_taken};
use super::{Options, Outcome, Space, Trial};
use crate::error::{Error, Result};
use crate::linalg::Mat;
use crate::rng::stream;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Trials near which the search looks too.
const GOOD: usize = 5;
/// Random points of which the farthest from all trials is taken where there is no model.
const FAR: usize = 200;

/// The best trial so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Best {
    /// Its place among the trials.
    pub trial: usize,
    /// The point.
    pub point: Vec<f64>,
    /// What was observed there.
    pub observed: f64,
    /// The posterior mean of the objective there, and its standard deviation; what was observed and NaN where there is no model.
    pub mean: f64,
    /// See `mean`.
    pub sd: f64,
}

/// What is expected of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Means of the objective without its noise, in its own units.
    pub mean: Vec<f64>,
    /// Standard deviations.
    pub sd: Vec<f64>,
    /// Probabilities that all constraints hold and that a trial does not fail.
    pub feasible: Vec<f64>,
}

/// Bayesian optimisation by ask and tell. It serialises whole, so that a search can continue
/// elsewhere; the same trials and seed give the same points.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Optimiser {
    space: Space,
    options: Options,
    trials: Vec<Trial>,
    /// Models of all reported trials; none while it is not known whether there are some.
    #[serde(skip)]
    models: Option<Option<Arc<Models>>>,
}

impl Optimiser {
    /// Begins a search.
    ///
    /// # Errors
    /// [`Error::Invalid`] for options that do not fit.
    pub fn new(space: Space, options: Options) -> Result<Self> {
        options.check()?;
        Ok(Self { space, options, trials: Vec::new(), models: None })
    }

    /// Reads what [`Optimiser::to_json`] wrote.
    ///
    /// # Errors
    /// [`Error::Invalid`] for anything else.
    pub fn from_json(text: &str) -> Result<Self> {
        let wrong =
            |reason: String| Error::Invalid(format!("this is not a saved search: {reason}"));
        let own: Self = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
        Space::new(own.space.dimensions().to_vec())?;
        own.options.check()?;
        for trial in &own.trials {
            own.space.check(&trial.point)?;
            if let Outcome::Known(values) = &trial.outcome
                && (values.len() != 1 + own.options.constraints.len()
                    || values.iter().flatten().any(|v| !v.is_finite()))
            {
                return Err(wrong("a trial has other outcomes than its options say".into()));
            }
        }
        Ok(own)
    }

    /// Writes all that there is to know but the models, which follow from it.
    ///
    /// # Errors
    /// None that a search can cause.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|e| Error::Invalid(format!("cannot write the search: {e}")))
    }

    /// Returns the space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Returns the options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns all trials, in the order in which they were asked for or reported.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Returns the number of trials before there are models.
    pub fn initial(&self) -> usize {
        self.options.initial.unwrap_or(self.space.dimensions().len() + 3)
    }

    /// Proposes the next points to try, as many as are asked for. They are under way until [`Optimiser::tell`] or
    /// [`Optimiser::forget`].
    ///
    /// # Errors
    /// [`Error::Invalid`] where no point is left, for a kernel that does not fit, and for one without a spectral density where
    /// functions are drawn ([`Acquisition::Thompson`](super::Acquisition::Thompson)); what the fits give. Points that were found
    /// before an error are under way.
    pub fn ask(&mut self, count: usize) -> Result<Vec<Vec<f64>>> {
        let mut points = Vec::with_capacity(count);
        for _ in 0..count {
            let parts = self.next()?;
            let point = self.space.at(&parts);
            self.trials.push(Trial { point: point.clone(), outcome: Outcome::Pending });
            points.push(point);
        }
        Ok(points)
    }

    /// Takes what came of a point, which need not have been asked for: the objective, then the outcome of every constraint. NaN
    /// is a value that is missing; without the objective the trial has failed, and points like it are avoided. Returns the place
    /// among the trials.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of outcomes, [`Error::Invalid`] for a point that is not in the space and for infinite
    /// outcomes.
    pub fn tell(&mut self, point: &[f64], outcomes: &[f64]) -> Result<usize> {
        self.space.check(point)?;
        let expected = 1 + self.options.constraints.len();
        if outcomes.len() != expected {
            return Err(Error::Shape {
                what: "outcomes of a trial".into(),
                expected: format!("{expected}, the objective and one for every constraint"),
                found: format!("{}", outcomes.len()),
            });
        }
        if let Some(value) = outcomes.iter().find(|value| value.is_infinite()) {
            return Err(Error::Invalid(format!(
                "an outcome is {value}; where a trial gave no value, say NaN"
            )));
        }
        let known = outcomes.iter().map(|value| (!value.is_nan()).then_some(*value)).collect();
        let outcome = Outcome::Known(known);
        self.models = None;
        let point = point.to_vec();
        let same = |own: &Trial| own.is_pending() && self.is_at(&own.point, &point);
        let at = self.trials.iter().position(same).unwrap_or(self.trials.len());
        match self.trials.get_mut(at) {
            Some(own) => own.outcome = outcome,
            None => self.trials.push(Trial { point, outcome }),
        }
        Ok(at)
    }

    /// Notes a point as under way that was not asked for. Returns the place among the trials.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Invalid`] for a point that is not in the space.
    pub fn begin(&mut self, point: &[f64]) -> Result<usize> {
        self.space.check(point)?;
        self.trials.push(Trial { point: point.to_vec(), outcome: Outcome::Pending });
        Ok(self.trials.len() - 1)
    }

    /// Gives up a point that is under way, whose value will not be reported. Returns whether there
    /// was one.
    pub fn forget(&mut self, point: &[f64]) -> bool {
        let found =
            self.trials.iter().position(|own| own.is_pending() && self.is_at(&own.point, point));
        if let Some(at) = found {
            self.trials.remove(at);
            // places of trials have moved
            self.models = None;
        }
        found.is_some()
    }

    pub(super) fn is_at(&self, a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && self.space.same(&self.space.parts(a), &self.space.parts(b))
    }

    /// Returns the best trial of those that keep the constraints, by the posterior mean of the objective, since single values are noisy;
    /// none where no trial does.
    ///
    /// # Errors
    /// What the fits give.
    pub fn best(&mut self) -> Result<Option<Best>> {
        let sign = self.options.goal.sign();
        if let Some(models) = self.learnt()? {
            let mut mean = models.objective.posterior.predict_f(models.rows.x.as_ref())?;
            models.objective.scaler.unscale_mean(mean.0.as_mut())?;
            models.objective.scaler.unscale_variance(mean.1.as_mut())?;
            let of = (0..models.trials.len()).filter(|i| models.feasible[*i]);
            let best = of.max_by(|a, b| mean.0[(*a, 0)].total_cmp(&mean.0[(*b, 0)]));
            return Ok(best.map(|i| {
                let trial = models.trials[i];
                let own = &self.trials[trial];
                let observed = own.objective().unwrap_or(f64::NAN);
                let (mean, sd) = (sign * mean.0[(i, 0)], mean.1[(i, 0)].sqrt());
                Best { trial, point: own.point.clone(), observed, mean, sd }
            }));
        }
        let of = self.trials.iter().enumerate();
        let known = of.filter(|(_, own)| own.holds(&self.options.constraints));
        let known = known.filter_map(|(trial, own)| Some((trial, own, own.objective()?)));
        let best = known.max_by(|a, b| (sign * a.2).total_cmp(&(sign * b.2)));
        Ok(best.map(|(trial, own, observed)| Best {
            trial,
            point: own.point.clone(),
            observed,
            mean: observed,
            sd: f64::NAN,
        }))
    }

    /// Predicts the objective at points.
    ///
    /// # Errors
    /// [`Error::Invalid`] while there is no model, and for points that are not in the space; what the fits give.
    pub fn predict(&mut self, points: &[Vec<f64>]) -> Result<Prediction> {
        points.iter().try_for_each(|point| self.space.check(point))?;
        let Some(models) = self.learnt()? else {
            return Err(Error::Invalid(
                "there is no model yet: report at least two trials with different values of the objective first".into(),
            ));
        };
        let parts: Vec<_> = points.iter().map(|point| self.space.parts(point)).collect();
        let x = self.space.encoded(&parts);
        let (mut mean, mut variance) = models.objective.posterior.predict_f(x.as_ref())?;
        models.objective.scaler.unscale_mean(mean.as_mut())?;
        models.objective.scaler.unscale_variance(variance.as_mut())?;
        let sign = self.options.goal.sign();
        Ok(Prediction {
            mean: mean.col_as_slice(0).iter().map(|m| sign * m).collect(),
            sd: variance.col_as_slice(0).iter().map(|v| v.sqrt()).collect(),
            feasible: models.probability(&x)?,
        })
    }

    /// Returns the models of the trials so far.
    fn learnt(&mut self) -> Result<Option<Arc<Models>>> {
        if let Some(known) = &self.models {
            return Ok(known.clone());
        }
        let known = Models::learnt(&self.space, &self.options, &self.trials)?.map(Arc::new);
        self.models = Some(known.clone());
        Ok(known)
    }

    /// Returns the parts of the ranges of the next point.
    fn next(&mut self) -> Result<Vec<f64>> {
        let count = self.trials.len();
        let places = |own: &Trial| self.space.snapped(&self.space.parts(&own.point));
        let tried: Vec<Vec<f64>> = self.trials.iter().map(places).collect();
        let all = self.trials.iter().filter(|_| !self.options.repeats);
        let taken = all.map(|own| Taken::new(places(own), own.has_failed())).collect::<Vec<_>>();
        let taken = &taken[..];
        let finished = self.trials.iter().filter(|own| !own.is_pending()).count();
        let mut rng = stream(self.options.seed, &format!("bayesopt/{count}"));
        let models = if finished < self.initial() { None } else { self.learnt()? };
        let found = match &models {
            Some(models) => self.promising(models, taken, &mut rng)?,
            None => self.designed(count, &tried, taken, &mut rng),
        };
        // a kernel may have no opinion at all
        found.or_else(|| any(&self.space, taken, &mut rng)).ok_or_else(|| {
            Error::Invalid(format!(
                "no point of the space is left to try after {count}: allow points to be tried again (`repeats`), or widen \
                 the ranges"
            ))
        })
    }

    /// Returns a point of the design to begin with, or far from all trials beyond it.
    fn designed(
        &self,
        count: usize,
        tried: &[Vec<f64>],
        taken: &[Taken],
        rng: &mut impl rand::Rng,
    ) -> Option<Vec<f64>> {
        let free = |parts: &Vec<f64>| !is_taken(parts, taken);
        if count < self.initial() {
            let mut design = stream(self.options.seed, "bayesopt/design");
            let own = latin_hypercube(&self.space, self.initial(), &mut design);
            let point = self.space.snapped(&own[count]);
            if free(&point) {
                return Some(point);
            }
        }
        let points = random(&self.space, FAR, rng).into_iter();
        let points = points.map(|parts| self.space.snapped(&parts)).filter(free).collect();
        farthest(&self.space, points, tried)
    }

    /// Returns the point that promises most.
    fn promising(
        &self,
        models: &Models,
        taken: &[Taken],
        rng: &mut impl rand::Rng,
    ) -> Result<Option<Vec<f64>>> {
        let pending = self.trials.iter().filter(|own| own.is_pending());
        let pending: Vec<Vec<f64>> = pending.map(|own| self.space.parts(&own.point)).collect();
        let pending = self.space.encoded(&pending);
        let promise = Promise::new(models, self.options.acquisition, &pending, rng)?;
        let good = self.good(models)?;
        let score = |parts: &[Vec<f64>], slopes: bool| {
            let x: Mat<f64> = self.space.encoded(parts);
            let found = promise.at(x.as_ref(), slopes)?;
            let pulled = (0..found.slopes.nrows())
                .map(|i| self.space.pulled(|q| found.slopes[(i, q)]))
                .collect();
            Ok((found.values, pulled))
        };
        Search { space: &self.space, score: &score, taken, good: &good }.best(rng)
    }

    /// Returns the parts of the best trials by their means, those that keep the constraints first.
    fn good(&self, models: &Models) -> Result<Vec<Vec<f64>>> {
        let mean = models.objective.posterior.predict_mean(models.rows.x.as_ref())?;
        let mut of: Vec<usize> = (0..models.trials.len()).collect();
        let order = |i: &usize| (models.feasible[*i], mean[(*i, 0)]);
        of.sort_by(|a, b| {
            let ((a, m), (b, n)) = (order(a), order(b));
            b.cmp(&a).then(n.total_cmp(&m))
        });
        let parts = |i: &usize| self.space.parts(&self.trials[models.trials[*i]].point);
        Ok(of.iter().take(GOOD).map(parts).collect())
    }
}

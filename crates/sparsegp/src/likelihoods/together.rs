//! Expectations of many rows that are computed together, for likelihoods for which that costs less.
//!
//! Whoever sums over rows asks for one expectation after the other. So it asks twice: a [`Rows`] first notes what is asked for,
//! then has all answers computed, and gives them in the same order.

use super::{Likelihood, Many, Slopes, Support, Target};
use crate::params::{Visitor, VisitorMut};
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was asked for, and the answers.
#[derive(Debug, Default)]
struct Asked {
    targets: Vec<Target>,
    mean: Vec<f64>,
    variance: Vec<f64>,
    /// Of E[log p(y | f)], its slopes in means, variances and parameters; none before all is known that is asked for.
    answers: Option<[Vec<f64>; 4]>,
    /// The next answer.
    next: usize,
    /// Whether an expectation was asked for, and not only log p with its slopes.
    expectations: bool,
}

/// A likelihood that answers for rows in the order in which it was asked for them before.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    likelihood: &'a dyn Likelihood,
    asked: Mutex<Asked>,
}

/// Does some work with a likelihood; twice, with expectations and slopes of log p computed together, where that costs less.
pub(crate) fn at_once<T>(
    likelihood: &dyn Likelihood,
    mut work: impl FnMut(&dyn Likelihood) -> T,
) -> T {
    if !likelihood.in_blocks() {
        return work(likelihood);
    }
    let rows = Rows::of(likelihood);
    work(&rows);
    work(&rows.answer())
}

impl<'a> Rows<'a> {
    /// Notes what is asked for from now on.
    pub(crate) fn of(likelihood: &'a dyn Likelihood) -> Self {
        Self { likelihood, asked: Mutex::default() }
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Computes all answers, and gives them from now on.
    pub(crate) fn answer(self) -> Self {
        let (k, p) = (self.likelihood.latents(), self.likelihood.num_params());
        {
            let mut asked = self.asked();
            let n = asked.targets.len();
            let mut answers = [n, n * k, n * k, n * p].map(|count| vec![f64::NAN; count]);
            let [value, mean, variance, params] = &mut answers;
            let (targets, f) = (&asked.targets, &asked.mean);
            if asked.expectations {
                let out = Many { value, mean, variance, params };
                self.likelihood.expect_rows(targets, f, &asked.variance, out);
            } else {
                self.likelihood.log_prob_slopes(targets, f, value, mean);
            }
            asked.answers = Some(answers);
        }
        self
    }
}

impl Likelihood for Rows<'_> {
    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        let mut asked = self.asked();
        let Asked { answers: Some(answers), next, targets, .. } = &mut *asked else {
            asked.targets.push(target);
            asked.mean.extend(mean);
            asked.variance.extend(variance);
            asked.expectations = true;
            out.mean.fill(0.0);
            out.variance.fill(0.0);
            out.params.fill(0.0);
            return 0.0;
        };
        debug_assert_eq!(targets[*next], target);
        let (at, k, p) = (*next, mean.len(), out.params.len());
        out.mean.copy_from_slice(&answers[1][at * k..(at + 1) * k]);
        out.variance.copy_from_slice(&answers[2][at * k..(at + 1) * k]);
        out.params.copy_from_slice(&answers[3][at * p..(at + 1) * p]);
        *next += 1;
        answers[0][at]
    }

    fn log_prob_slope(&self, target: Target, f: &[f64], slope: &mut [f64]) -> f64 {
        let mut asked = self.asked();
        let Asked { answers: Some(answers), next, targets, .. } = &mut *asked else {
            asked.targets.push(target);
            asked.mean.extend(f);
            asked.variance.extend(f.iter().map(|_| 0.0));
            slope.fill(0.0);
            return 0.0;
        };
        debug_assert_eq!(targets[*next], target);
        let (at, k) = (*next, f.len());
        slope.copy_from_slice(&answers[1][at * k..(at + 1) * k]);
        *next += 1;
        answers[0][at]
    }

    fn name(&self) -> &'static str {
        self.likelihood.name()
    }

    fn latents(&self) -> usize {
        self.likelihood.latents()
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        self.likelihood.visit(visitor);
    }

    fn visit_mut<'a>(&'a mut self, _: VisitorMut<'a, '_>) {}

    fn initialise(&mut self, _: &[Target]) -> Vec<f64> {
        vec![0.0; self.latents()]
    }

    fn check(&self, target: Target) -> Result<(), String> {
        self.likelihood.check(target)
    }

    fn log_prob(&self, target: Target, f: &[f64]) -> f64 {
        self.likelihood.log_prob(target, f)
    }

    fn predict(&self, extra: f64, mean: &[f64], variance: &[f64]) -> (f64, f64) {
        self.likelihood.predict(extra, mean, variance)
    }

    fn predict_log_density(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        self.likelihood.predict_log_density(target, mean, variance)
    }

    fn support(&self, extra: f64) -> Support {
        self.likelihood.support(extra)
    }

    fn cdf(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        self.likelihood.cdf(target, mean, variance)
    }

    fn sample(&self, extra: f64, f: &[f64], rng: &mut dyn rand::Rng) -> f64 {
        self.likelihood.sample(extra, f, rng)
    }

    fn to_json(&self) -> Value {
        self.likelihood.to_json()
    }

    fn clone_box(&self) -> Box<dyn Likelihood> {
        self.likelihood.clone_box()
    }
}

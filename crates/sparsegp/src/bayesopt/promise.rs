//! What points promise: an acquisition function on the posteriors of all outcomes, with its slopes in the inputs.

use super::acquisition::{Acquisition, Slopes, log_expected_improvement, log_probability_below};
use super::models::{Further, Models};
use crate::error::Result;
use crate::linalg::{Mat, MatRef};
use crate::model::{DEFAULT_WAVES, Functions, InputGradients, Posterior};
use rand::Rng;

/// What a unit of the standardised excess over a bound costs where a bound is to be kept, in standard deviations of the objective.
const PENALTY: f64 = 10.0;
/// Draws of what trials under way may give.
const DRAWS: usize = 16;

/// Values of points, and their slopes in the inputs of the models (B×E) where these are asked for.
pub(super) struct Scores {
    pub values: Vec<f64>,
    pub slopes: Mat<f64>,
}

/// An acquisition function, ready to be evaluated.
pub(super) struct Promise<'a> {
    models: &'a Models,
    rule: Rule,
}

enum Rule {
    /// The posterior of the objective, a latent function for each imagined course of the trials under way; the best value in
    /// each, none where no trial keeps the constraints.
    Improvement(Posterior, Option<Vec<f64>>),
    Bound(Posterior, f64),
    /// Functions of the objective, of constraints and of success.
    Drawn(Functions, Vec<Option<Functions>>, Option<Functions>),
}

/// Means and standard deviations of latent functions with their slopes.
struct Moments {
    mean: Mat<f64>,
    sd: Mat<f64>,
    slopes: Option<InputGradients>,
}

impl Moments {
    fn of(posterior: &Posterior, x: MatRef<f64>, slopes: bool) -> Result<Self> {
        let (mean, variance) = posterior.predict_f(x)?;
        let sd = Mat::from_fn(x.nrows(), mean.ncols(), |i, s| variance[(i, s)].sqrt());
        let slopes = slopes.then(|| posterior.predict_gradients(x)).transpose()?;
        Ok(Self { mean, sd, slopes })
    }

    /// Adds so much of what a function at row `i` gives.
    fn add(&self, i: usize, s: usize, share: f64, own: Slopes, scores: &mut Scores) {
        scores.values[i] += share * own.value;
        if let Some(slopes) = &self.slopes {
            for q in 0..scores.slopes.ncols() {
                let by_sd = 0.5 * slopes.variance[s][(i, q)] / self.sd[(i, s)];
                scores.slopes[(i, q)] +=
                    share * (own.mean * slopes.mean[s][(i, q)] + own.sd * by_sd);
            }
        }
    }
}

impl<'a> Promise<'a> {
    /// Creates the promise of a rule, given points under way (B×E); `functions` are drawn again for
    /// every promise.
    pub fn new(
        models: &'a Models,
        rule: Acquisition,
        pending: &Mat<f64>,
        rng: &mut impl Rng,
    ) -> Result<Self> {
        let rule = match rule {
            Acquisition::Thompson => {
                let mut draw =
                    |posterior: &Posterior| posterior.sample_functions(1, DEFAULT_WAVES, rng);
                let objective = draw(&models.objective.posterior)?;
                let mut constraints = Vec::new();
                for known in &models.constraints {
                    constraints.push(match known {
                        Further::Model(fitted, _) => Some(draw(&fitted.posterior)?),
                        Further::Unknown => None,
                    });
                }
                let success = models.success.as_ref().map(|fitted| draw(&fitted.posterior));
                Rule::Drawn(objective, constraints, success.transpose()?)
            }
            Acquisition::UpperBound { beta } => {
                Rule::Bound(models.imagined(pending, DRAWS, rng)?, beta)
            }
            Acquisition::ExpectedImprovement => {
                let posterior = models.imagined(pending, DRAWS, rng)?;
                let best = models.best_of(&posterior, pending)?;
                Rule::Improvement(posterior, best)
            }
        };
        Ok(Self { models, rule })
    }

    /// Returns the values at `x` (B×E), and slopes if they are asked for.
    pub fn at(&self, x: MatRef<f64>, slopes: bool) -> Result<Scores> {
        let mut scores = Scores {
            values: vec![0.0; x.nrows()],
            slopes: Mat::zeros(if slopes { x.nrows() } else { 0 }, x.ncols()),
        };
        match &self.rule {
            Rule::Improvement(posterior, best) => {
                if let Some(best) = best {
                    improvement(&Moments::of(posterior, x, slopes)?, best, &mut scores);
                }
                self.add_log_probability(x, slopes, &mut scores)?;
            }
            Rule::Bound(posterior, beta) => {
                let moments = Moments::of(posterior, x, slopes)?;
                let share = 1.0 / moments.mean.ncols() as f64;
                for s in 0..moments.mean.ncols() {
                    for i in 0..x.nrows() {
                        let value = moments.mean[(i, s)] + beta * moments.sd[(i, s)];
                        moments.add(
                            i,
                            s,
                            share,
                            Slopes { value, mean: 1.0, sd: *beta },
                            &mut scores,
                        );
                    }
                }
                self.subtract_hopeless(*beta, x, slopes, &mut scores)?;
            }
            Rule::Drawn(objective, constraints, success) => {
                add_drawn(objective, x, slopes, |v| (v, 1.0), &mut scores)?;
                for (drawn, known) in constraints.iter().zip(&self.models.constraints) {
                    let (Some(drawn), Further::Model(_, bound)) = (drawn, known) else { continue };
                    add_drawn(drawn, x, slopes, |c| beyond(c - bound, 1.0), &mut scores)?;
                }
                if let Some(drawn) = success {
                    add_drawn(drawn, x, slopes, |g| beyond(-g, -1.0), &mut scores)?;
                }
            }
        }
        Ok(scores)
    }

    /// Adds the log probability that constraints hold and that trials do not fail.
    fn add_log_probability(&self, x: MatRef<f64>, slopes: bool, scores: &mut Scores) -> Result<()> {
        for known in &self.models.constraints {
            let Further::Model(fitted, bound) = known else { continue };
            let own = Moments::of(&fitted.posterior, x, slopes)?;
            for i in 0..x.nrows() {
                let value = log_probability_below(own.mean[(i, 0)], own.sd[(i, 0)], *bound);
                own.add(i, 0, 1.0, value, scores);
            }
        }
        if let Some(success) = &self.models.success {
            let own = Moments::of(&success.posterior, x, slopes)?;
            for i in 0..x.nrows() {
                // a probit: P = Φ(μ/√(1 + v)) (Rasmussen & Williams 2006, Eq. 3.82)
                let sd = own.sd[(i, 0)];
                let wide = (1.0 + sd * sd).sqrt();
                let Slopes { value, mean, sd: by_wide } =
                    log_probability_below(-own.mean[(i, 0)], wide, 0.0);
                own.add(i, 0, 1.0, Slopes { value, mean: -mean, sd: by_wide * sd / wide }, scores);
            }
        }
        Ok(())
    }

    /// Subtracts what constraints are beyond their bounds by their own confidence bounds (Xu et al. 2023, "Constrained efficient
    /// global optimization of expensive black-box functions").
    fn subtract_hopeless(
        &self,
        beta: f64,
        x: MatRef<f64>,
        slopes: bool,
        scores: &mut Scores,
    ) -> Result<()> {
        let bounds = self.models.constraints.iter().filter_map(|known| match known {
            Further::Model(fitted, bound) => Some((&fitted.posterior, *bound, 1.0)),
            Further::Unknown => None,
        });
        let success = self.models.success.iter().map(|fitted| (&fitted.posterior, 0.0, -1.0));
        for (posterior, bound, sign) in bounds.chain(success) {
            let own = Moments::of(posterior, x, slopes)?;
            for i in 0..x.nrows() {
                let least = sign * own.mean[(i, 0)] - beta * own.sd[(i, 0)] - bound;
                let (value, slope) = beyond(least, 1.0);
                own.add(i, 0, 1.0, Slopes { value, mean: sign * slope, sd: -beta * slope }, scores);
            }
        }
        Ok(())
    }
}

/// Returns the penalty of an excess with its slope, where the excess has that `slope`.
fn beyond(excess: f64, slope: f64) -> (f64, f64) {
    if excess > 0.0 { (-PENALTY * excess, -PENALTY * slope) } else { (0.0, 0.0) }
}

/// Adds the logarithm of the improvement that is expected over all imagined courses.
fn improvement(moments: &Moments, best: &[f64], scores: &mut Scores) {
    let count = best.len();
    for i in 0..moments.mean.nrows() {
        let each: Vec<Slopes> = (0..count)
            .map(|s| log_expected_improvement(moments.mean[(i, s)], moments.sd[(i, s)], best[s]))
            .collect();
        let top = each.iter().fold(f64::NEG_INFINITY, |top, own| top.max(own.value));
        let total: f64 = each.iter().map(|own| (own.value - top).exp()).sum();
        let mean = top + (total / count as f64).ln();
        for (s, own) in each.into_iter().enumerate() {
            let share = (own.value - top).exp() / total;
            // shares of the slopes, and of the mean, which they sum to
            moments.add(i, s, share, Slopes { value: mean, ..own }, scores);
        }
    }
}

/// Adds a function of what a drawn function gives.
fn add_drawn(
    drawn: &Functions,
    x: MatRef<f64>,
    slopes: bool,
    of: impl Fn(f64) -> (f64, f64),
    scores: &mut Scores,
) -> Result<()> {
    let values = drawn.evaluate(x)?;
    let gradients = slopes.then(|| drawn.gradients(x)).transpose()?;
    for i in 0..x.nrows() {
        let (value, slope) = of(values[0][(i, 0)]);
        scores.values[i] += value;
        if let Some(gradients) = &gradients {
            for q in 0..x.ncols() {
                scores.slopes[(i, q)] += slope * gradients[0][0][(i, q)];
            }
        }
    }
    Ok(())
}

impl Models {
    /// Returns the best mean of every latent function of `posterior` over the trials that keep the
    /// constraints and those under way that probably do; none if there are no such trials.
    fn best_of(&self, posterior: &Posterior, pending: &Mat<f64>) -> Result<Option<Vec<f64>>> {
        if !self.feasible.iter().any(|holds| *holds) {
            return Ok(None);
        }
        let known = posterior.predict_mean(self.rows.x.as_ref())?;
        let mut best = vec![f64::NEG_INFINITY; known.ncols()];
        let mut see = |means: &Mat<f64>, counts: &dyn Fn(usize) -> bool| {
            for (s, best) in best.iter_mut().enumerate() {
                let own = means.col_as_slice(s).iter().enumerate();
                *best = own.filter(|(i, _)| counts(*i)).fold(*best, |best, (_, v)| best.max(*v));
            }
        };
        see(&known, &|i| self.feasible[i]);
        if pending.nrows() > 0 {
            let probable = self.probability(pending)?;
            see(&posterior.predict_mean(pending.as_ref())?, &|i| probable[i] >= 0.5);
        }
        Ok(Some(best))
    }
}

//! New rows: their sites, the bound, and what is carried on.

use super::moments::Moments;
use super::prior::{Posterior, Prior};
use super::site::Site;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, of_latent};
use crate::likelihoods::augmented::Augmented;
use crate::likelihoods::{Likelihood, Slopes, Target};
use crate::linalg::{Jitter, Mat, MatRef};

/// New rows of one target.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Inputs, B×D.
    pub x: MatRef<'a, f64>,
    /// Targets, B; NaN where missing.
    pub y: &'a [f64],
    /// Further numbers of the rows ([`Likelihood::extra`]), B or none.
    pub extra: &'a [f64],
    /// Weights, B or none.
    pub weights: &'a [f64],
    /// Prior means of the L latent functions at the rows, B×L; none for 0.
    pub mean: Option<MatRef<'a, f64>>,
}

/// How sites are found.
#[derive(Clone, Copy, Debug)]
pub struct SolveOptions {
    /// Length of the first step, in (0, 1]: 1 is exact at once for Gaussian noise. Halved where the bound falls.
    pub step: f64,
    /// Most steps.
    pub steps: usize,
    /// Relative rise of the bound below which it has converged.
    pub tolerance: f64,
}

impl Default for SolveOptions {
    fn default() -> Self {
        Self { step: 1.0, steps: 200, tolerance: 1e-10 }
    }
}

/// The parts of the bound (Bui, Nguyen & Turner 2017, with log|K̃_a| cancelled).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Σᵢ E[log p(yᵢ | f)].
    pub expected: f64,
    /// KL(q(b) ‖ p(b)), of all latent functions.
    pub kl: f64,
    /// E[log(old site)].
    pub old: f64,
}

impl Bound {
    /// Returns their sum: about log p(new rows | old rows).
    pub fn total(&self) -> f64 {
        self.expected - self.kl + self.old
    }
}

/// What steps have found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solved {
    /// The bound at the end.
    pub bound: Bound,
    /// Steps made.
    pub steps: usize,
    /// Whether the last step moved the bound by less than the tolerance.
    pub converged: bool,
    /// By how much the last step raised the bound.
    pub rise: f64,
    /// Sites whose precision would have been negative and was kept at 0, in the last step: the likelihood is not
    /// log-concave there.
    pub clipped: usize,
}

/// A batch meets the prior and what old rows said. It changes nothing until [`Update::sites`] is asked for.
#[derive(Debug)]
pub struct Update<'a> {
    pub(super) kernels: &'a [Box<dyn Kernel>],
    pub(super) likelihood: &'a dyn Likelihood,
    /// Whether the bound is that of the likelihood's local variables.
    local: bool,
    pub(super) z: MatRef<'a, f64>,
    pub(super) batch: Batch<'a>,
    /// Of every latent function.
    pub(super) priors: Vec<Prior>,
    /// L⁻¹K_bf, M×B, and prior variances.
    pub(super) rows: Vec<(Mat<f64>, Vec<f64>)>,
    /// λ and β, of every latent function.
    pub first: Vec<Vec<f64>>,
    /// β.
    pub second: Vec<Vec<f64>>,
    posteriors: Vec<Posterior>,
    /// The likelihood's expectations under them.
    expected: Expected,
}

/// Values and slopes of the likelihood at all rows.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    /// Σ E log p.
    pub(super) total: f64,
    /// Means of the latent functions less their prior means, of every latent function.
    means: Vec<Vec<f64>>,
    /// ∂/∂mean and ∂/∂variance, of every latent function.
    pub(super) mean: Vec<Vec<f64>>,
    pub(super) variance: Vec<Vec<f64>>,
    /// Of the likelihood's parameters.
    pub(super) params: Vec<f64>,
}

impl Expected {
    fn none() -> Self {
        let none = Vec::new;
        Self { total: 0.0, means: none(), mean: none(), variance: none(), params: Vec::new() }
    }
}

impl<'a> Update<'a> {
    /// Prepares the update: `kernels` is one for each latent function of `likelihood`, or one for all, `z` are the new inducing
    /// points (M×D), `old` the sites of old rows, one for each latent function, none before the first batch. Sites begin
    /// at 0: q is what the old rows say.
    ///
    /// # Errors
    /// [`Error::Shape`] where sizes differ; [`Error::NotPositiveDefinite`] for points too close.
    pub fn new(
        kernels: &'a [Box<dyn Kernel>],
        likelihood: &'a dyn Likelihood,
        z: MatRef<'a, f64>,
        jitter: Jitter,
        old: &[Site],
        batch: Batch<'a>,
    ) -> Result<Self> {
        let (latents, n) = (likelihood.latents(), batch.x.nrows());
        let fits = |what: &str, found: usize, allowed: &[usize]| match allowed.contains(&found) {
            true => Ok(()),
            false => Err(Error::Shape {
                what: what.into(),
                expected: format!("{}", allowed[0]),
                found: format!("{found}"),
            }),
        };
        fits("kernels of the latent functions", kernels.len(), &[latents, 1])?;
        fits("sites of old rows", old.len(), &[latents, 0])?;
        fits("targets", batch.y.len(), &[n])?;
        fits("further numbers", batch.extra.len(), &[n, 0])?;
        fits("weights", batch.weights.len(), &[n, 0])?;
        if let Some(mean) = batch.mean {
            fits("rows of prior means", mean.nrows(), &[n])?;
            fits("columns of prior means", mean.ncols(), &[latents])?;
        }
        let of = |l: usize| &**of_latent(kernels, l);
        let prior = |l: usize| Prior::new(of(l), z, jitter, old.get(l));
        let priors: Vec<Prior> = (0..latents).map(prior).collect::<Result<_>>()?;
        let rows = (0..latents).map(|l| priors[l].rows(of(l), z, batch.x)).collect();
        let zeros = vec![vec![0.0; n]; latents];
        let (first, second) = (zeros.clone(), zeros);
        let mut own = Self {
            kernels,
            likelihood,
            local: false,
            z,
            batch,
            priors,
            rows,
            first,
            second,
            posteriors: Vec::new(),
            expected: Expected::none(),
        };
        own.posteriors = own.posteriors_at(&own.first, &own.second)?;
        own.expected = own.expect(&own.moments());
        Ok(own)
    }

    /// Takes the likelihood with local variables that make it Gaussian, at the optimum of their q: the sites of rows have a
    /// closed form, and a step of length 1 is coordinate ascent, which never lowers the bound (that of `cavi` and `svi`: below
    /// the one without local variables).
    ///
    /// # Errors
    /// [`Error::Invalid`] if the likelihood has none.
    pub fn with_local_variables(mut self) -> Result<Self> {
        if self.likelihood.augmented().is_none() {
            return Err(Error::Invalid(format!(
                "`{}` has no local variables that would make it Gaussian",
                self.likelihood.to_json()
            )));
        }
        self.local = true;
        self.expected = self.expect(&self.moments());
        Ok(self)
    }

    /// Begins at these sites of the first rows, λ and β of every latent function: those that were found before.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if they leave no Gaussian.
    pub fn begin_at(&mut self, first: &[Vec<f64>], second: &[Vec<f64>]) -> Result<()> {
        let own = self.first.iter_mut().chain(&mut self.second);
        for (own, found) in own.zip(first.iter().chain(second)) {
            own[..found.len()].copy_from_slice(found);
        }
        self.posteriors = self.posteriors_at(&self.first, &self.second)?;
        self.expected = self.expect(&self.moments());
        Ok(())
    }

    fn posteriors_at(&self, first: &[Vec<f64>], second: &[Vec<f64>]) -> Result<Vec<Posterior>> {
        let of =
            |l: usize| self.priors[l].posterior(self.rows[l].0.as_ref(), &first[l], &second[l]);
        (0..self.priors.len()).map(of).collect()
    }

    /// Returns the likelihood with its local variables, where the bound is that of them.
    fn augmented(&self) -> Option<&'a dyn Augmented> {
        self.likelihood.augmented().filter(|_| self.local)
    }

    /// Returns the kernel of a latent function.
    pub(super) fn kernel(&self, l: usize) -> &dyn Kernel {
        &**of_latent(self.kernels, l)
    }

    /// Returns q of every latent function, given the sites.
    pub fn moments(&self) -> Vec<Moments> {
        self.posteriors.iter().map(|p| p.q.clone()).collect()
    }

    /// Returns what every latent function has of prior and old rows.
    pub fn priors(&self) -> &[Prior] {
        &self.priors
    }

    /// Returns the likelihood's expectations with slopes under any q.
    pub(super) fn expect(&self, q: &[Moments]) -> Expected {
        let (latents, n) = (q.len(), self.batch.y.len());
        let marginals: Vec<_> = (0..latents)
            .map(|l| q[l].marginals(self.rows[l].0.as_ref(), &self.rows[l].1))
            .collect();
        let zeros = vec![vec![0.0; n]; latents];
        let count = self.likelihood.num_params();
        let mut out = Expected {
            mean: zeros.clone(),
            variance: zeros,
            params: vec![0.0; count],
            ..Expected::none()
        };
        let default = self.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        let (mut slope, mut spread) = (vec![0.0; latents], vec![0.0; latents]);
        let mut params = vec![0.0; count];
        let augmented = self.augmented();
        for i in (0..n).filter(|i| !self.batch.y[*i].is_nan()) {
            let offset = |l: usize| self.batch.mean.map_or(0.0, |mean| mean[(i, l)]);
            let mean: Vec<f64> = (0..latents).map(|l| marginals[l].0[i] + offset(l)).collect();
            let variance: Vec<f64> = (0..latents).map(|l| marginals[l].1[i]).collect();
            let extra = self.batch.extra.get(i).copied().unwrap_or(default);
            let target = Target { y: self.batch.y[i], extra };
            let slopes = Slopes { mean: &mut slope, variance: &mut spread, params: &mut params };
            let value = match augmented {
                None => self.likelihood.expect(target, &mean, &variance, slopes),
                Some(augmented) => augmented.expect(target, &mean, &variance, slopes),
            };
            let weight = self.batch.weights.get(i).copied().unwrap_or(1.0);
            out.total += weight * value;
            for l in 0..latents {
                out.mean[l][i] = weight * slope[l];
                out.variance[l][i] = weight * spread[l];
            }
            out.params.iter_mut().zip(&params).for_each(|(sum, own)| *sum += weight * own);
        }
        out.means = marginals.into_iter().map(|(means, _)| means).collect();
        out
    }

    /// Returns the bound at any q, whitened.
    pub fn bound_at(&self, q: &[Moments]) -> Bound {
        self.bound_with(q.iter(), &self.expect(q))
    }

    fn bound_with<'q>(
        &self,
        q: impl Iterator<Item = &'q Moments> + Clone,
        expected: &Expected,
    ) -> Bound {
        let old = self.priors.iter().zip(q.clone()).map(|(prior, q)| prior.old_term(q)).sum();
        Bound { expected: expected.total, kl: q.map(Moments::kl).sum(), old }
    }

    /// Returns the bound at the q of the sites.
    pub fn bound(&self) -> Bound {
        self.bound_with(self.posteriors.iter().map(|p| &p.q), &self.expected)
    }

    /// Moves the sites by a natural-gradient step of length `step` (Khan & Lin 2017): β to −2 ∂E/∂v and λ to
    /// ∂E/∂μ + βμ. Precisions stay at or above 0; returns how many would have been below. With local variables of which
    /// some are renewed after others, latent functions move in that order.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] and [`Error::NonFinite`], with the sites of what had not moved as they were.
    pub fn step(&mut self, step: f64) -> Result<usize> {
        let turns = self.augmented().map_or(1, |augmented| augmented.turns());
        (0..turns).map(|turn| self.step_of(turn, step)).sum()
    }

    /// Moves the latent functions of a turn.
    fn step_of(&mut self, turn: usize, step: f64) -> Result<usize> {
        let expected = &self.expected;
        let (mut first, mut second, mut clipped) = (self.first.clone(), self.second.clone(), 0);
        let augmented = self.augmented();
        let moves = |l: &usize| augmented.is_none_or(|own| own.turn(*l) == turn);
        for l in (0..self.priors.len()).filter(moves) {
            let means = &expected.means[l];
            for i in 0..means.len() {
                let beta = -2.0 * expected.variance[l][i];
                clipped += usize::from(beta < 0.0);
                let beta = beta.max(0.0);
                let lambda = expected.mean[l][i] + beta * means[i];
                if !(beta.is_finite() && lambda.is_finite()) {
                    return Err(Error::NonFinite {
                        what: format!("the slopes of the likelihood at row {}", i + 1),
                        value: lambda,
                    });
                }
                second[l][i] += step * (beta - second[l][i]);
                first[l][i] += step * (lambda - first[l][i]);
            }
        }
        self.posteriors = self.posteriors_at(&first, &second)?;
        (self.first, self.second) = (first, second);
        self.expected = self.expect(&self.moments());
        Ok(clipped)
    }

    /// Makes steps until the bound stands still: one step for Gaussian noise.
    ///
    /// # Errors
    /// As for [`Update::step`] where shorter steps do not help.
    pub fn solve(&mut self, options: &SolveOptions) -> Result<Solved> {
        if self.likelihood.as_gaussian().is_some() && options.steps > 0 {
            // sites of Gaussian noise depend on nothing
            let clipped = self.step(1.0)?;
            let bound = self.bound();
            return Ok(Solved { bound, steps: 1, converged: true, rise: 0.0, clipped });
        }
        let (mut step, mut bound) = (options.step, self.bound());
        let mut solved = Solved { bound, steps: 0, converged: false, rise: 0.0, clipped: 0 };
        while solved.steps < options.steps {
            let kept = (
                self.first.clone(),
                self.second.clone(),
                self.posteriors.clone(),
                self.expected.clone(),
            );
            solved.steps += 1;
            let outcome = self.step(step);
            let next = self.bound();
            let size = 1.0 + bound.total().abs();
            let rise = next.total() - bound.total();
            // a fall beyond rounding, or no Gaussian
            if outcome.is_err() || rise.is_nan() || rise < -1e-12 * size {
                (self.first, self.second, self.posteriors, self.expected) = kept;
                if step < 1e-4 {
                    outcome?;
                    return Ok(Solved { bound, ..solved });
                }
                step *= 0.5;
                continue;
            }
            solved.clipped = outcome?;
            bound = next;
            (solved.bound, solved.rise) = (bound, rise);
            if rise <= options.tolerance * size {
                solved.converged = true;
                break;
            }
        }
        Ok(solved)
    }

    /// Returns the sites of old and new rows together, one for each latent function: what is
    /// carried on.
    pub fn sites(&self) -> Vec<Site> {
        let of = |l: usize| {
            let rows = (self.first[l].as_slice(), self.second[l].as_slice());
            let w = self.rows[l].0.as_ref();
            self.priors[l].site(self.z, w, rows, self.posteriors[l].gain)
        };
        (0..self.priors.len()).map(of).collect()
    }

    /// Returns the sites of old rows and of those of the batch that are not to be met again:
    /// `again` has a flag for every row.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if what is left is not a Gaussian.
    pub fn sites_without(&self, again: &[bool]) -> Result<Vec<Site>> {
        let rest = |own: &[f64]| -> Vec<f64> {
            own.iter().zip(again).map(|(own, again)| if *again { 0.0 } else { *own }).collect()
        };
        let of = |l: usize| {
            let (first, second) = (rest(&self.first[l]), rest(&self.second[l]));
            let w = self.rows[l].0.as_ref();
            let gain = self.priors[l].posterior(w, &first, &second)?.gain;
            Ok(self.priors[l].site(self.z, w, (&first, &second), gain))
        };
        (0..self.priors.len()).map(of).collect()
    }

    /// Returns the means and variances of the latent functions, less their prior means, at other
    /// inputs (B×D): B×L each.
    pub fn predict(&self, x: MatRef<f64>) -> (Mat<f64>, Mat<f64>) {
        let latents = self.priors.len();
        let (mut mean, mut variance) =
            (Mat::zeros(x.nrows(), latents), Mat::zeros(x.nrows(), latents));
        for (l, prior) in self.priors.iter().enumerate() {
            let (w, diag) = prior.rows(self.kernel(l), self.z, x);
            let (own, spread) = self.posteriors[l].q.marginals(w.as_ref(), &diag);
            for i in 0..x.nrows() {
                (mean[(i, l)], variance[(i, l)]) = (own[i], spread[i]);
            }
        }
        (mean, variance)
    }
}

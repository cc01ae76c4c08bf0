//! Posteriors that were sampled: even mixtures of what is known at every draw.

use super::Posterior;
use super::process::{Process, factor_of, points_of};
use super::rounding::{around, part, roots_of};
use crate::error::{Error, Result};
use crate::kernels::Tape;
use crate::likelihoods::Likelihood;
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, Par, add_row_dots, column, column_mut, gemm,
    mirror_lower, par_for, solve_lower,
};
use crate::model::Model;
use crate::model::set_hyperparameters;
use crate::rng;
use rayon::prelude::*;

/// Takes a component into mean and variance of an even mixture, of which its share is `share`: Welford's sums, which for
/// one component are its moments.
pub(super) fn pool(share: f64, (mean, variance): (&mut f64, &mut f64), (own, within): (f64, f64)) {
    let apart = own - *mean;
    *mean += share * apart;
    let between = (1.0 - share) * apart * apart;
    *variance += share * (within + between - *variance);
}

impl Posterior {
    /// From draws of the whitened variables of points (one set for every kernel; training inputs where there
    /// are no inducing points). Means and variances of latent functions are those of the mixture; so are means,
    /// variances, densities, probabilities and distribution functions of observations, each an average over the
    /// draws, and quantiles by the last.
    ///
    /// # Errors
    /// [`Error::Shape`] for draws that do not fit, [`Error::NotPositiveDefinite`].
    pub fn of_draws(model: &Model, x: Option<&Mat<f64>>, draws: Vec<Mat<f64>>) -> Result<Self> {
        let count = draws.len() as f64;
        let (Some(first), kernels) = (draws.first(), model.kernels.len()) else {
            return Err(Error::Invalid("a posterior needs at least one draw".into()));
        };
        let latents = first.ncols();
        let mut q_mu = Mat::zeros(first.nrows(), latents);
        draws.iter().for_each(|z| q_mu += z);
        q_mu *= faer::Scale(1.0 / count);
        let mut processes = Vec::new();
        for l in 0..latents {
            let points = points_of(model, x, l)?;
            let m = points.nrows();
            if m > first.nrows() || draws.iter().any(|z| z.ncols() != latents || z.nrows() < m) {
                return Err(Error::Shape {
                    what: "posterior.draws".into(),
                    expected: format!("{m}×{latents}"),
                    found: format!("{}×{}", first.nrows(), first.ncols()),
                });
            }
            let kernel = model.kernels[if kernels == 1 { 0 } else { l }].clone();
            let factor = factor_of(model, &points, l)?;
            let mut covariance = Mat::zeros(m, m);
            let apart = Mat::from_fn(m, draws.len(), |i, s| draws[s][(i, l)] - q_mu[(i, l)]);
            let out = covariance.as_mut();
            gemm(out, Accum::Replace, apart.as_ref(), apart.transpose(), 1.0 / count, par_for(m));
            // fewer draws than points leave it without full rank, and one draw without any
            let root = match draws.len() {
                1 => covariance,
                _ => Cholesky::new(covariance.as_ref(), Jitter::Relative(1e-10), "draws")?.l,
            };
            let mean = q_mu.as_ref().subcols(l, 1).subrows(0, m);
            processes.push(Process::new(l..l + 1, kernel, points, factor, vec![root], mean));
        }
        Ok(Self { draws, ..Self::assemble(model, q_mu, processes) })
    }

    /// From draws with hyperparameters of their own: as [`Posterior::of_draws`], with a factor for every draw. The
    /// moments of q(u) are those under the model's hyperparameters.
    ///
    /// # Errors
    /// As for [`Posterior::of_draws`]; [`Error::Shape`] for hyperparameters that are not the model's.
    pub fn of_sampled(
        model: &Model,
        x: Option<&Mat<f64>>,
        draws: Vec<Mat<f64>>,
        hyperparameters: Vec<Vec<f64>>,
    ) -> Result<Self> {
        if hyperparameters.len() != draws.len() {
            return Err(Error::Shape {
                what: "hyperparameters of draws".into(),
                expected: format!("those of {} draws", draws.len()),
                found: hyperparameters.len().to_string(),
            });
        }
        let each = draws
            .par_iter()
            .zip(&hyperparameters)
            .map(|(z, own)| Self::of_draw(model, x, z, own))
            .collect::<Result<Vec<_>>>()?;
        // the same u in the coordinates of the model's own hyperparameters
        let mut common = draws.clone();
        if let Some(first) = draws.first() {
            for l in 0..first.ncols() {
                let points = points_of(model, x, l)?;
                let factor = factor_of(model, &points, l)?;
                let mut mean = Mat::zeros(points.nrows(), first.ncols());
                model.mean.evaluate(points.as_ref(), mean.as_mut());
                for (own, at) in each.iter().zip(&mut common) {
                    let u = own.predict_mean(points.as_ref())?;
                    let mut z = Mat::from_fn(points.nrows(), 1, |i, _| u[(i, l)] - mean[(i, l)]);
                    solve_lower(factor.l.as_ref(), z.as_mut(), par_for(points.nrows()));
                    at.as_mut().subcols_mut(l, 1).subrows_mut(0, z.nrows()).copy_from(&z);
                }
            }
        }
        Ok(Self { draws, each, hyperparameters, ..Self::of_draws(model, x, common)? })
    }

    /// What is known at one draw with these hyperparameters: as after exact inference, means and what is left
    /// unexplained.
    fn of_draw(model: &Model, x: Option<&Mat<f64>>, z: &Mat<f64>, own: &[f64]) -> Result<Self> {
        let mut model = model.clone();
        set_hyperparameters(&mut model, own)?;
        let latents = z.ncols();
        let shared = model.kernels.len() == 1 && (x.is_some() || model.inducing.len() == 1);
        let mut processes = Vec::new();
        for l in 0..if shared { 1 } else { latents } {
            let points = points_of(&model, x, l)?;
            let factor = factor_of(&model, &points, l)?;
            let range = if shared { 0..latents } else { l..l + 1 };
            if points.nrows() > z.nrows() {
                return Err(Error::Shape {
                    what: "posterior.draws".into(),
                    expected: format!("{}×{latents}", points.nrows()),
                    found: format!("{}×{latents}", z.nrows()),
                });
            }
            let mean = z.as_ref().subcols(range.start, range.len()).subrows(0, points.nrows());
            let kernel = model.kernels[if model.kernels.len() == 1 { 0 } else { l }].clone();
            processes.push(Process::new(range, kernel, points, factor, vec![], mean));
        }
        Ok(Self::assemble(&model, z.clone(), processes))
    }

    /// Draws of the whitened variables, M×L each, where the posterior was sampled; else empty.
    pub fn draws(&self) -> &[Mat<f64>] {
        &self.draws
    }

    /// Hyperparameters of every draw, where they were sampled too, in the order of the parameters but for inducing points
    /// and q; else empty.
    pub fn hyperparameters(&self) -> &[Vec<f64>] {
        &self.hyperparameters
    }

    /// Calls `work` with what is known at every draw: likelihood, means of the latent functions and what is left
    /// unexplained (B×L each); on every path of a deep model; once with the moments of any other posterior.
    pub(super) fn components(
        &self,
        x: MatRef<f64>,
        mut work: impl FnMut(&dyn Likelihood, MatRef<f64>, MatRef<f64>),
    ) -> Result<()> {
        if let Some(before) = &self.before {
            self.check(x)?;
            return before.paths(x, |mean, variance| work(&*self.likelihood, mean, variance));
        }
        for own in &self.each {
            let (mean, variance) = own.predict_f(x)?;
            work(&*own.likelihood, mean.as_ref(), variance.as_ref());
        }
        if !self.each.is_empty() {
            return Ok(());
        }
        if self.draws.is_empty() {
            let (mean, variance) = self.predict_f(x)?;
            work(&*self.likelihood, mean.as_ref(), variance.as_ref());
            return Ok(());
        }
        self.check(x)?;
        let n = x.nrows();
        let mut prior = Mat::zeros(n, self.latents());
        self.mean.evaluate(x, prior.as_mut());
        let mut means = vec![prior; self.draws.len()];
        let mut unexplained = Mat::zeros(n, self.latents());
        for (l, p) in self.processes.iter().enumerate() {
            let mut phi = p.covariances(x);
            solve_lower(p.factor.l.as_ref(), phi.as_mut().transpose_mut(), Par::Seq);
            let m = phi.ncols();
            let z = Mat::from_fn(m, self.draws.len(), |i, s| self.draws[s][(i, l)]);
            let mut f = Mat::zeros(n, self.draws.len());
            gemm(f.as_mut(), Accum::Replace, phi.as_ref(), z.as_ref(), 1.0, Par::Seq);
            for (s, mean) in means.iter_mut().enumerate() {
                let own = column_mut(mean.as_mut(), l).iter_mut();
                own.zip(column(f.as_ref(), s)).for_each(|(t, v)| *t += v);
            }
            let left = column_mut(unexplained.as_mut(), l);
            let mut explained = vec![0.0; n];
            add_row_dots(phi.as_ref(), phi.as_ref(), &mut explained);
            p.kernel.diag(x, left);
            let part = part(m);
            left.iter_mut().zip(&explained).for_each(|(r, e)| *r = (*r - e).max(part * *r));
        }
        for mean in &means {
            work(&*self.likelihood, mean.as_ref(), unexplained.as_ref());
        }
        Ok(())
    }

    /// Moments of the mixture over draws with hyperparameters of their own, B×L each.
    pub(super) fn pooled_f(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        let n = x.nrows();
        let mut mean = Mat::zeros(n, self.latents());
        let mut variance = Mat::zeros(n, self.latents());
        let mut count = 0.0;
        self.components(x, |_, own, within| {
            count += 1.0;
            for l in 0..own.ncols() {
                let (own, within) = (column(own, l), column(within, l));
                let mean = column_mut(mean.as_mut(), l).iter_mut();
                let all = mean.zip(column_mut(variance.as_mut(), l)).zip(own.iter().zip(within));
                all.for_each(|((m, v), (own, within))| {
                    pool(1.0 / count, (m, v), (*own, *within));
                });
            }
        })?;
        Ok((mean, variance))
    }

    /// The same with full covariances, B×B for every latent function.
    pub(super) fn pooled_f_full(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
        let n = x.nrows();
        let share = 1.0 / self.each.len() as f64;
        let mean = self.predict_mean(x)?;
        let mut covariances = vec![Mat::zeros(n, n); self.latents()];
        for own in &self.each {
            let (its, within) = own.predict_f_full(x)?;
            let apart = &its - &mean;
            for (l, (sum, within)) in covariances.iter_mut().zip(&within).enumerate() {
                *sum += faer::Scale(share) * within;
                let d = apart.as_ref().subcols(l, 1);
                gemm(sum.as_mut(), Accum::Add, d, d.transpose(), share, Par::Seq);
            }
        }
        Ok((mean, covariances))
    }

    /// Joint samples of the latent functions, each of a draw that is picked at random, with that draw's index.
    pub(super) fn sample_of_draws(
        &self,
        x: MatRef<f64>,
        samples: usize,
        rng: &mut impl rand::Rng,
    ) -> Result<(Vec<usize>, Vec<Mat<f64>>)> {
        self.check(x)?;
        let of: Vec<usize> = (0..samples).map(|_| rng::below(rng, self.draws.len())).collect();
        let mut drawn = Vec::with_capacity(samples);
        if !self.each.is_empty() {
            drawn.resize_with(samples, Mat::new);
            for (own, posterior) in self.each.iter().enumerate() {
                let places: Vec<usize> = (0..samples).filter(|s| of[*s] == own).collect();
                if !places.is_empty() {
                    let all = posterior.sample_f(x, places.len(), rng)?;
                    places.into_iter().zip(all).for_each(|(s, f)| drawn[s] = f);
                }
            }
            return Ok((of, drawn));
        }
        let n = x.nrows();
        let mut mean = Mat::zeros(n, self.latents());
        self.mean.evaluate(x, mean.as_mut());
        let mut means = vec![mean; samples];
        let mut unexplained = Vec::with_capacity(self.latents());
        for (l, p) in self.processes.iter().enumerate() {
            let mut phi = p.covariances(x);
            p.project(phi.as_mut());
            for (mean, of) in means.iter_mut().zip(&of) {
                let z = self.draws[*of].as_ref().subcols(l, 1).subrows(0, phi.ncols());
                let own = mean.as_mut().subcols_mut(l, 1);
                gemm(own, Accum::Add, phi.as_ref(), z, 1.0, Par::Seq);
            }
            let mut prior = Mat::zeros(n, n);
            p.kernel.evaluate(x, None, prior.as_mut(), &mut Tape::off());
            gemm(prior.as_mut(), Accum::Add, phi.as_ref(), phi.transpose(), -1.0, par_for(n));
            mirror_lower(prior.as_mut());
            unexplained.push(prior);
        }
        let roots = roots_of(&unexplained, &self.prior_sizes(x))?;
        drawn.extend(means.into_iter().map(|mean| around(mean, &roots, rng)));
        Ok((of, drawn))
    }
}

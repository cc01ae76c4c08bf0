//! Posteriors whose hyperparameters were sampled too, or integrated over: even mixtures of what is known at every draw
//! under its own.

use super::closed_form::ClosedForm;
use super::draws::{Draws, unfit};
use super::gaussian::Gaussian;
use super::law::{Drawn, Joint, Law, Marginals, Work, pool};
use super::pathwise::Bundle;
use super::process::Process;
use super::{InputGradients, PredictedTerm};
use crate::engine::Cpu;
use crate::error::{Error, Result};
use crate::likelihoods::Likelihood;
use crate::linalg::{Accum, Mat, MatRef, Par, gemm, par_for, solve_lower};
use crate::model::{Model, set_hyperparameters};
use crate::rng;
use crate::variational::Variational;
use rand::Rng;
use rayon::prelude::*;

/// Draws of the whitened variables with their own hyperparameters, or Gaussian processes with
/// these.
#[derive(Clone, Debug)]
pub(super) struct Sampled {
    /// Moments of the same values in the coordinates of the model's own hyperparameters.
    common: Gaussian,
    /// M×L each; none of exact inference.
    draws: Vec<Mat<f64>>,
    each: Vec<Known>,
    /// Sum of [`Known::times`].
    count: usize,
    /// In the order of [`crate::model::hyperparameters`].
    hyperparameters: Vec<Vec<f64>>,
    /// What each was conditioned by, where methods keep sites of all rows; else empty.
    sites: Vec<Variational>,
}

/// What is known at one draw: as after exact inference, means and what is left unexplained.
#[derive(Clone, Debug)]
struct Known {
    /// How many of the components it is.
    times: usize,
    likelihood: Box<dyn Likelihood>,
    gaussian: Gaussian,
}

impl Known {
    fn new(model: &Model, x: Option<&Mat<f64>>, z: &Mat<f64>, own: &[f64]) -> Result<Self> {
        let mut model = model.clone();
        set_hyperparameters(&mut model, own)?;
        let mut processes = Vec::new();
        for latents in model.processes(z.ncols()) {
            let (points, factor) = model.points_and_factor(x, latents.start)?;
            if points.nrows() > z.nrows() {
                return Err(unfit(points.nrows(), z.ncols(), z));
            }
            let mean = z.as_ref().subcols(latents.start, latents.len()).subrows(0, points.nrows());
            let kernel = model.kernel_of(latents.start).clone_box();
            processes.push(Process::new(latents, kernel, points, factor, vec![], mean));
        }
        let gaussian = Gaussian::new(&model, z.clone(), processes);
        Ok(Self { times: 1, likelihood: model.likelihood, gaussian })
    }
}

impl Sampled {
    /// Creates draws as [`Draws::new`] does, with a factor for every draw.
    ///
    /// # Errors
    /// As for it; [`Error::Shape`] for hyperparameters that are not the model's.
    pub(super) fn new(
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
            .map(|(z, own)| Known::new(model, x, z, own))
            .collect::<Result<Vec<_>>>()?;
        // the same u in the coordinates of the model's own hyperparameters
        let mut common = draws.clone();
        for l in 0..draws.first().map_or(0, Mat::ncols) {
            let (points, factor) = model.points_and_factor(x, l)?;
            let mut mean = Mat::zeros(points.nrows(), draws[0].ncols());
            model.mean.evaluate(points.as_ref(), mean.as_mut());
            for (own, at) in each.iter().zip(&mut common) {
                own.gaussian.check(points.as_ref())?;
                let u = own.gaussian.means(points.as_ref());
                let mut z = Mat::from_fn(points.nrows(), 1, |i, _| u[(i, l)] - mean[(i, l)]);
                solve_lower(factor.l.as_ref(), z.as_mut(), par_for(points.nrows()));
                at.as_mut().subcols_mut(l, 1).subrows_mut(0, z.nrows()).copy_from(&z);
            }
        }
        let common = Draws::new(model, x, common)?.into_gaussian();
        let count = each.len();
        Ok(Self { common, draws, each, count, hyperparameters, sites: Vec::new() })
    }

    /// Creates the mixture of inference at other hyperparameters, each of which is so many
    /// components; `common` is what is known at the model's. `sites` has the q of each where the
    /// method keeps sites of all rows, and nothing for exact inference.
    ///
    /// # Errors
    /// What conditioning gives; [`Error::Shape`] for hyperparameters that are not the model's.
    pub(super) fn integrated(
        model: &Model,
        common: Gaussian,
        hyperparameters: Vec<Vec<f64>>,
        times: &[usize],
        sites: Vec<Variational>,
        weighted: bool,
    ) -> Result<Self> {
        let rows = common.rows(weighted);
        let known = |(at, (own, times)): (usize, (&Vec<f64>, &usize))| {
            let mut model = model.clone();
            set_hyperparameters(&mut model, own)?;
            if let Some(own) = sites.get(at) {
                model.q = Some(own.clone());
            }
            // what is not known of a learnt mean function shows in how settings differ
            let found = model.posterior(&Cpu::default(), &rows)?;
            match found.alone() {
                Some(gaussian) => {
                    let gaussian = gaussian.clone();
                    Ok(Known { times: *times, likelihood: model.likelihood, gaussian })
                }
                None => Err(common.refusal("an average over hyperparameters")),
            }
        };
        let each = hyperparameters
            .par_iter()
            .zip(times)
            .enumerate()
            .map(known)
            .collect::<Result<Vec<_>>>()?;
        let count = times.iter().sum();
        let settled = [0, each.len()].contains(&sites.len());
        if each.len() != times.len() || count == 0 || !settled {
            return Err(Error::Shape {
                what: "counts of hyperparameters".into(),
                expected: format!("those of {} settings", hyperparameters.len()),
                found: times.len().to_string(),
            });
        }
        Ok(Self { common, draws: Vec::new(), each, count, hyperparameters, sites })
    }

    /// Returns which setting a component is of.
    fn of(&self, component: usize) -> usize {
        let mut before = 0;
        let ends = self.each.iter().position(|own| {
            before += own.times;
            component < before
        });
        ends.unwrap_or(self.each.len() - 1)
    }

    /// Returns the components of so many draws.
    fn picked(&self, samples: usize, rng: &mut dyn Rng) -> Vec<usize> {
        (0..samples).map(|_| self.of(rng::below(rng, self.count))).collect()
    }

    fn share(&self, of: &Known) -> f64 {
        of.times as f64 / self.count as f64
    }
}

impl Law for Sampled {
    fn gaussian(&self) -> Option<&Gaussian> {
        Some(&self.common)
    }

    fn alone(&self) -> Option<&Gaussian> {
        self.draws.is_empty().then_some(&self.common)
    }

    fn count(&self) -> usize {
        self.count
    }

    fn components<'a>(&'a self, x: MatRef<'_, f64>, work: Work<'_, 'a>) -> Result<()> {
        for own in &self.each {
            let known = own.gaussian.widened(x);
            (0..own.times).for_each(|_| work(Some(&*own.likelihood), &known));
        }
        Ok(())
    }

    fn means(&self, x: MatRef<f64>) -> Result<Mat<f64>> {
        let mut mean = Mat::zeros(x.nrows(), self.latents());
        // as moments are pooled, to the bit
        let mut count = 0.0;
        for own in &self.each {
            let means = own.gaussian.means(x);
            for _ in 0..own.times {
                count += 1.0;
                let share = 1.0 / count;
                for l in 0..mean.ncols() {
                    let to = mean.col_as_slice_mut(l).iter_mut().zip(means.col_as_slice(l));
                    to.for_each(|(mean, own)| *mean += share * (own - *mean));
                }
            }
        }
        Ok(mean)
    }

    /// Draws each one from a draw that is picked at random.
    fn sample<'a>(
        &'a self,
        x: MatRef<'_, f64>,
        samples: usize,
        rng: &mut dyn Rng,
    ) -> Result<Vec<Drawn<'a>>> {
        let of = self.picked(samples, rng);
        let mut drawn: Vec<Mat<f64>> = vec![Mat::new(); samples];
        for (at, own) in self.each.iter().enumerate() {
            let places: Vec<usize> = (0..samples).filter(|s| of[*s] == at).collect();
            if !places.is_empty() {
                let all = own.gaussian.draw(x, places.len(), rng)?;
                places.into_iter().zip(all).for_each(|(s, f)| drawn[s] = f);
            }
        }
        let one = |(of, f): (usize, _)| Drawn { likelihood: Some(&*self.each[of].likelihood), f };
        Ok(of.into_iter().zip(drawn).map(one).collect())
    }

    fn joint(&self, x: MatRef<f64>) -> Result<Joint> {
        self.check(x)?;
        let n = x.nrows();
        let mean = self.means(x)?;
        let mut own = vec![Mat::zeros(n, n); self.latents()];
        for known in &self.each {
            let share = self.share(known);
            let its = known.gaussian.full(x);
            let apart = &its.mean - &mean;
            for (l, (sum, within)) in own.iter_mut().zip(&its.each()).enumerate() {
                *sum += faer::Scale(share) * within;
                let d = apart.as_ref().subcols(l, 1);
                gemm(sum.as_mut(), Accum::Add, d, d.transpose(), share, Par::Seq);
            }
        }
        Ok(Joint { mean, own, mixing: None })
    }

    /// Averages the mean's slopes, and with v = E[v_s + m_s²] − m² those of the variance are E[∂v_s
    /// + 2m_s ∂m_s] − 2m ∂m.
    fn gradients(&self, x: MatRef<f64>) -> Result<InputGradients> {
        self.check(x)?;
        let empty = || vec![Mat::zeros(x.nrows(), x.ncols()); self.latents()];
        let mut all = InputGradients { mean: empty(), variance: empty() };
        let Marginals { mean, .. } = self.marginals(x)?;
        for one in &self.each {
            let share = self.share(one);
            let own = one.gaussian.marginals(x).mean;
            let slopes = one.gaussian.slopes(x);
            for l in 0..self.latents() {
                for q in 0..x.ncols() {
                    for i in 0..x.nrows() {
                        let (m, v) = (slopes.mean[l][(i, q)], slopes.variance[l][(i, q)]);
                        all.mean[l][(i, q)] += share * m;
                        // E[m_s ∂m_s] − m ∂m, about the mean
                        let apart = own[(i, l)] - mean[(i, l)];
                        all.variance[l][(i, q)] += share * (v + 2.0 * apart * m);
                    }
                }
            }
        }
        Ok(all)
    }

    fn closed_forms<'a>(&'a self, _: &'a dyn Likelihood) -> Result<Vec<ClosedForm<'a>>> {
        self.each.iter().map(|own| own.gaussian.closed_form(&*own.likelihood, own.times)).collect()
    }

    /// Averages those of every setting; functions that are sampled at the same hyperparameters have no terms.
    fn terms(&self, x: MatRef<f64>, names: &[String], centred: bool) -> Result<Vec<PredictedTerm>> {
        if !self.draws.is_empty() {
            return Err(self.refusal("a prediction of terms"));
        }
        let mut all = Vec::new();
        let mut before = 0;
        for one in &self.each {
            before += one.times;
            let own = one.gaussian.terms(x, names, centred)?;
            if all.is_empty() {
                all = own;
                continue;
            }
            let share = one.times as f64 / before as f64;
            for (to, of) in all.iter_mut().zip(own) {
                let to = to.mean.iter_mut().zip(&mut to.variance);
                to.zip(of.mean.into_iter().zip(of.variance))
                    .for_each(|(to, of)| pool(share, to, of));
            }
        }
        Ok(all)
    }

    /// Draws each one from a component that is picked at random.
    fn functions(&self, samples: usize, waves: usize, rng: &mut dyn Rng) -> Result<Vec<Bundle>> {
        let of = self.picked(samples, rng);
        let mut all = Vec::new();
        for (at, own) in self.each.iter().enumerate() {
            let places: Vec<usize> = (0..samples).filter(|s| of[*s] == at).collect();
            if !places.is_empty() {
                let mut bundle = own.gaussian.bundle(places, waves, &[], rng)?;
                bundle.likelihood = Some(own.likelihood.clone());
                all.push(bundle);
            }
        }
        Ok(all)
    }

    fn draws(&self) -> &[Mat<f64>] {
        &self.draws
    }

    fn hyperparameters(&self) -> &[Vec<f64>] {
        &self.hyperparameters
    }

    fn sites(&self) -> &[Variational] {
        &self.sites
    }

    fn times(&self) -> Vec<usize> {
        self.each.iter().map(|own| own.times).collect()
    }
}

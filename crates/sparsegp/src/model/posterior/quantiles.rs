//! Quantiles of observations and of latent functions.

use super::Posterior;
use super::law::Marginals;
use super::observations::Moments;
use crate::error::Result;
use crate::likelihoods::{Likelihood, Support, Target, default_extra, predict};
use crate::linalg::{Mat, MatRef};
use crate::metrics::standard_normal_quantile;
use crate::special::normal_cdf;
use rayon::prelude::*;

/// Most components that a quantile is made of.
const MOST: usize = 100;

/// Predictions at rows: B×P each of observations, B×L of latent functions.
#[derive(Clone, Debug)]
pub struct Predicted {
    /// Means.
    pub mean: Mat<f64>,
    /// Variances.
    pub variance: Mat<f64>,
    /// One matrix for every level.
    pub quantiles: Vec<Mat<f64>>,
}

/// What quantiles are made of: moments of the latent functions, and components where these are not
/// all.
struct Kept<'a> {
    moments: Marginals,
    mixture: Vec<(&'a dyn Likelihood, Marginals)>,
}

/// Returns the numbers at every row and column, found on all threads.
fn found(rows: usize, columns: usize, at: impl Fn(usize, usize) -> f64 + Sync) -> Mat<f64> {
    let mut all = Mat::zeros(rows, columns);
    for p in 0..columns {
        let own = all.col_as_slice_mut(p).par_iter_mut().enumerate();
        own.for_each(|(i, value)| *value = at(i, p));
    }
    all
}

impl Posterior {
    /// Returns the quantiles of observations, B×P for every one of the `levels`. `extra` as for
    /// [`Posterior::predict_y`]. Of a sampled posterior they are those of the mixture: P(Y ≤ y) is
    /// averaged over the draws, some ten times for every number. Of many draws so many at equal
    /// distances are taken (100), which is what makes a table of predictions affordable.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the number of columns differs.
    pub fn predict_quantiles(
        &self,
        x: MatRef<f64>,
        extra: &[f64],
        levels: &[f64],
    ) -> Result<Vec<Mat<f64>>> {
        default_extra(&*self.likelihood, extra, x.nrows())?;
        let kept = self.kept(x, |_, _| {})?;
        Ok(self.quantiles_of(&kept, extra, levels))
    }

    /// Returns means, variances and quantiles of observations by one pass over the components: what
    /// [`Posterior::predict_y`] and [`Posterior::predict_quantiles`] give.
    ///
    /// # Errors
    /// As for these.
    pub fn predict_y_with_quantiles(
        &self,
        x: MatRef<f64>,
        extra: &[f64],
        levels: &[f64],
    ) -> Result<Predicted> {
        default_extra(&*self.likelihood, extra, x.nrows())?;
        let mut moments = Moments::new(x.nrows(), self.outputs());
        let kept = self.kept(x, |likelihood, known| {
            moments.begin();
            self.each_target(likelihood, known, extra, |seen| moments.add(seen));
        })?;
        self.set_exact(x, extra, &mut moments)?;
        let quantiles = self.quantiles_of(&kept, extra, levels);
        Ok(Predicted { mean: moments.mean, variance: moments.variance, quantiles })
    }

    fn quantiles_of(&self, kept: &Kept<'_>, extra: &[f64], levels: &[f64]) -> Vec<Mat<f64>> {
        let Kept { moments, mixture } = kept;
        let k = self.likelihood.latents();
        let own = |known: &Marginals, i: usize, p: usize| {
            let of = |a: &Mat<f64>| (0..k).map(|l| a[(i, p * k + l)]).collect::<Vec<_>>();
            (of(&known.mean), of(&known.variance))
        };
        let one = |level: f64| {
            found(moments.mean.nrows(), self.outputs(), |i, p| {
                let (mean, variance) = own(moments, i, p);
                let extra = self.extra(extra, i);
                let normal = self.likelihood.quantile(extra, &mean, &variance, level);
                let Some((first, _)) = mixture.first() else { return normal };
                let each: Vec<_> =
                    mixture.iter().map(|(law, known)| (law, own(known, i, p))).collect();
                let cdf = |y: f64| {
                    let at = each.iter().map(|(law, (m, v))| law.cdf(Target { y, extra }, m, v));
                    at.sum::<f64>() / each.len() as f64
                };
                // that of a normal latent value is a guess
                predict::quantile(cdf, first.support(extra), Some(normal), level)
            })
        };
        levels.iter().map(|level| one(*level)).collect()
    }

    /// Returns the quantiles of the latent functions, B×L for every one of the `levels`; of a
    /// sampled posterior as for [`Posterior::predict_quantiles`].
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the number of columns differs.
    pub fn predict_f_quantiles(&self, x: MatRef<f64>, levels: &[f64]) -> Result<Vec<Mat<f64>>> {
        Ok(self.predict_f_with_quantiles(x, levels)?.quantiles)
    }

    /// Returns means, variances and quantiles of the latent functions by one pass over the
    /// components: what [`Posterior::predict_f`] and [`Posterior::predict_f_quantiles`] give.
    ///
    /// # Errors
    /// As for these.
    pub fn predict_f_with_quantiles(&self, x: MatRef<f64>, levels: &[f64]) -> Result<Predicted> {
        let Kept { moments: Marginals { mean, variance }, mixture } = self.kept(x, |_, _| {})?;
        let one = |level: f64| {
            found(x.nrows(), self.latents(), |i, l| {
                let width = standard_normal_quantile(level);
                let normal = mean[(i, l)] + width * variance[(i, l)].sqrt();
                if mixture.is_empty() {
                    return normal;
                }
                let cdf = |f: f64| {
                    let below = |(_, known): &(_, Marginals)| {
                        let apart = f - known.mean[(i, l)];
                        match known.variance[(i, l)].sqrt() {
                            // known exactly
                            0.0 => f64::from(u8::from(apart >= 0.0)),
                            deviation => normal_cdf(apart / deviation),
                        }
                    };
                    mixture.iter().map(below).sum::<f64>() / mixture.len() as f64
                };
                predict::quantile(cdf, Support::Real, Some(normal), level)
            })
        };
        let quantiles = levels.iter().map(|level| one(*level)).collect();
        Ok(Predicted { mean, variance, quantiles })
    }

    /// Calls `work` with every component, and keeps what quantiles are made of: at most [`MOST`]
    /// components, and none where a single Gaussian process is all: its moments say all.
    fn kept<'a>(
        &'a self,
        x: MatRef<f64>,
        mut work: impl FnMut(&'a dyn Likelihood, &Marginals),
    ) -> Result<Kept<'a>> {
        self.law.check(x)?;
        let (mut mixture, mut at) = (Vec::new(), 0);
        let every = self.components_count().div_ceil(MOST);
        let mixed = self.components_count() > 1;
        let moments = self.law.sweep(x, &mut |own, known| {
            let likelihood = own.unwrap_or(&*self.likelihood);
            if mixed && at % every == 0 {
                mixture.push((likelihood, known.clone()));
            }
            at += 1;
            work(likelihood, known);
        })?;
        Ok(Kept { moments, mixture })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihoods;
    use crate::model::Model;
    use crate::model::hyperparameters;
    use crate::rng;
    use crate::samplers::test_models::{model, rows};
    use rand_distr::{Distribution, StandardNormal};

    /// Draws that lie far apart: mixtures that are nothing like a normal.
    fn draws(model: &Model, n: usize, count: usize) -> Vec<Mat<f64>> {
        let mut rng = rng::stream(6, "draws");
        let far = |s: usize| if s.is_multiple_of(3) { 2.0 } else { -0.5 };
        let latents = model.likelihood.latents();
        (0..count)
            .map(|s| {
                Mat::from_fn(n, latents, |_, _| {
                    let x: f64 = StandardNormal.sample(&mut rng);
                    far(s) + 0.3 * x
                })
            })
            .collect()
    }

    /// Draws of y at one input: of one draw of the posterior, then of f, then of y.
    fn sampled(posterior: &Posterior, x: &Mat<f64>, extra: f64, count: usize) -> Vec<f64> {
        let mut rng = rng::stream(9, "observations");
        let mut all = Vec::new();
        let each = count / posterior.draws().len();
        posterior
            .components(x.as_ref(), |likelihood, Marginals { mean, variance }| {
                for _ in 0..each {
                    let f: Vec<f64> = (0..mean.ncols())
                        .map(|l| {
                            let normal: f64 = StandardNormal.sample(&mut rng);
                            mean[(0, l)] + variance[(0, l)].sqrt() * normal
                        })
                        .collect();
                    all.push(likelihood.sample(extra, &f, &mut rng));
                }
            })
            .unwrap();
        all
    }

    #[test]
    fn quantiles_of_draws_are_those_of_the_mixture() {
        for (spec, extra) in [
            ("gaussian(variance=0.02)", 0.0),
            ("student-t(df=4.6, scale=0.2)", 1.0),
            ("laplace(scale=0.2)", 1.0),
            ("negative-binomial(dispersion=0.2)", 2.3),
            ("binomial(link=logit)", 40.0),
            ("poisson-logistic(rate=30)", 1.3),
            ("heteroscedastic(scale=logistic, precision=26)", 1.0),
            ("logistic-softmax(classes=3, integration=laplace)", 1.0),
        ] {
            let model = model(likelihoods::parse(spec).unwrap(), None);
            let x = rows(&[0.0, 0.0, 0.0], extra).x;
            let new = Mat::from_fn(1, 1, |_, _| 0.35);
            let z = draws(&model, 3, 30);
            let same = Posterior::of_draws(&model, Some(&x), z.clone()).unwrap();
            // each with its own hyperparameters
            let own: Vec<Vec<f64>> = (0..z.len())
                .map(|s| {
                    let by = 1.0 + 0.01 * s as f64;
                    hyperparameters(&model).into_iter().map(|value| by * value).collect()
                })
                .collect();
            let varied = Posterior::of_sampled(&model, Some(&x), z, own).unwrap();
            for posterior in [same, varied] {
                let y = sampled(&posterior, &new, extra, 60_000);
                let cdf = |at: f64| {
                    let (mut sum, mut count) = (0.0, 0.0);
                    posterior
                        .components(new.as_ref(), |likelihood, Marginals { mean, variance }| {
                            let own = |a: &Mat<f64>| -> Vec<f64> {
                                (0..a.ncols()).map(|l| a[(0, l)]).collect()
                            };
                            let target = Target { y: at, extra };
                            sum += likelihood.cdf(target, &own(mean), &own(variance));
                            count += 1.0;
                        })
                        .unwrap();
                    sum / count
                };
                for level in [0.025, 0.3, 0.66, 0.9, 0.975] {
                    let q = posterior.predict_quantiles(new.as_ref(), &[extra], &[level]).unwrap()
                        [0][(0, 0)];
                    let whole = model.likelihood.support(extra).largest().is_some();
                    let p = cdf(q);
                    let at = Mat::from_fn(1, 1, |_, _| q);
                    let (below, up_to) =
                        posterior.predict_cdf(new.as_ref(), at.as_ref(), &[extra]).unwrap();
                    let less = if whole { cdf(q - 1.0) } else { p };
                    for (own, expected) in [(up_to, p), (below, less)] {
                        assert!((own[(0, 0)] - expected).abs() < 1e-14, "{spec} {level}: {q} {p}");
                    }
                    if whole {
                        assert!(p >= level && cdf(q - 1.0) < level, "{spec} {level}: {q} {p}");
                    } else {
                        assert!((p - level).abs() < 1e-12, "{spec} {level}: {q} {p}");
                    }
                    let share = y.iter().filter(|y| **y <= q).count() as f64 / y.len() as f64;
                    let deviation = (p * (1.0 - p) / y.len() as f64).sqrt();
                    assert!(
                        (share - p).abs() <= 4.5 * deviation + 1e-12,
                        "{spec} {level}: {share} {p}"
                    );
                }
            }
        }
    }

    /// One process or several, the same hyperparameters for all draws or others for each.
    fn mixtures(spec: &str) -> (Model, Vec<Posterior>) {
        let model = model(likelihoods::parse(spec).unwrap(), None);
        let x = rows(&[0.0, 0.0, 0.0], 1.0).x;
        let z = draws(&model, 3, 30);
        let of = |s: usize| 1.0 + 0.01 * s as f64;
        let own = |s: usize| hyperparameters(&model).into_iter().map(|v| of(s) * v).collect();
        let own: Vec<Vec<f64>> = (0..z.len()).map(own).collect();
        let same = Posterior::of_draws(&model, Some(&x), z.clone()).unwrap();
        let varied = Posterior::of_sampled(&model, Some(&x), z, own).unwrap();
        (model, vec![same, varied])
    }

    #[test]
    fn quantiles_of_functions_are_those_of_the_mixture() {
        for spec in ["gaussian(variance=0.02)", "heteroscedastic(scale=logistic, precision=26)"] {
            let (_, all) = mixtures(spec);
            // beside the points, and where a row is and nothing is left unexplained but jitter
            let new = Mat::from_fn(2, 1, |i, _| [0.35, 0.0][i]);
            for posterior in all {
                let levels = [0.025, 0.3, 0.66, 0.975];
                let quantiles = posterior.predict_f_quantiles(new.as_ref(), &levels).unwrap();
                for (level, q) in levels.iter().zip(quantiles) {
                    let mut sum = Mat::<f64>::zeros(2, posterior.latents());
                    posterior
                        .components(new.as_ref(), |_, Marginals { mean: m, variance: v }| {
                            for (i, l) in (0..2).flat_map(|i| (0..m.ncols()).map(move |l| (i, l))) {
                                let apart = (q[(i, l)] - m[(i, l)]) / v[(i, l)].sqrt();
                                sum[(i, l)] += normal_cdf(apart) / 30.0;
                            }
                        })
                        .unwrap();
                    for l in 0..posterior.latents() {
                        for i in 0..2 {
                            let p = sum[(i, l)];
                            assert!((p - level).abs() < 1e-9, "{spec} {i} {l}: {p} {level}");
                        }
                    }
                }
            }
        }
    }

    /// Draws of functions and of observations have the mixture's law, at one row by its quantiles
    /// and at two by their covariance; a normal of the same moments would miss the quantiles.
    #[test]
    fn samples_of_draws_are_of_the_mixture() {
        let count = 40_000;
        for spec in ["gaussian(variance=0.02)", "heteroscedastic(scale=logistic, precision=26)"] {
            let (_, all) = mixtures(spec);
            let new = Mat::from_fn(2, 1, |i, _| [0.35, 0.9][i]);
            for posterior in all {
                let mut rng = rng::stream(11, "samples");
                let f = posterior.sample_f(new.as_ref(), count, &mut rng).unwrap();
                let y = posterior.sample_y(new.as_ref(), &[], count, &mut rng).unwrap();
                let levels = [0.1, 0.4, 0.7, 0.9];
                let of_f = posterior.predict_f_quantiles(new.as_ref(), &levels).unwrap();
                let of_y = posterior.predict_quantiles(new.as_ref(), &[], &levels).unwrap();
                for (k, level) in levels.iter().enumerate() {
                    let deviation = (level * (1.0 - level) / count as f64).sqrt();
                    for (what, all, q) in [("f", &f, &of_f[k]), ("y", &y, &of_y[k])] {
                        for (i, l) in (0..2).flat_map(|i| (0..q.ncols()).map(move |l| (i, l))) {
                            let below = all.iter().filter(|f| f[(i, l)] <= q[(i, l)]).count();
                            let z = (below as f64 / count as f64 - level) / deviation;
                            assert!(z.abs() < 4.5, "{spec} {what} {i} {l} {level}: {z}");
                        }
                    }
                }
                let (mean, covariances) = posterior.predict_f_full(new.as_ref()).unwrap();
                for (l, covariance) in covariances.iter().enumerate() {
                    let apart = |f: &Mat<f64>, i: usize| f[(i, l)] - mean[(i, l)];
                    let products: Vec<f64> = f.iter().map(|f| apart(f, 0) * apart(f, 1)).collect();
                    let mean = products.iter().sum::<f64>() / count as f64;
                    let square: f64 = products.iter().map(|p| (p - mean) * (p - mean)).sum();
                    let z = (mean - covariance[(0, 1)]) * count as f64 / square.sqrt();
                    assert!(z.abs() < 4.5, "{spec} {l}: {z}");
                }
            }
        }
    }

    /// At many rows and far into both tails: integrals round to a little more than 1, what scores
    /// refuse.
    #[test]
    fn probabilities_are_from_zero_to_one_and_in_order() {
        let real = [-1e9, -2.0, 0.4, 9.0, 1e3, 1e9];
        let count = [0.0, 1.0, 4.0, 60.0, 1e3, 1e6];
        for (spec, extra, ys) in [
            ("gaussian(variance=0.02)", 0.0, real),
            ("student-t(df=4.6, scale=0.2)", 1.0, real),
            ("matern32(scale=0.7)", 1.0, real),
            ("logistic(scale=0.4)", 1.0, real),
            ("pseudo-huber(delta=0.9, scale=0.6)", 1.0, real),
            ("gamma(shape=2.7)", 1.0, [1e-9, 0.3, 4.0, 40.0, 1e3, 1e9]),
            ("beta(scale=5.3)", 1.0, [1e-12, 0.1, 0.5, 0.9, 0.999, 1.0 - 1e-12]),
            ("poisson-logistic(rate=3.1)", 2.3, count),
            ("negative-binomial(dispersion=0.2)", 2.3, count),
            ("binomial(link=logit)", 40.0, [0.0, 1.0, 4.0, 20.0, 39.0, 40.0]),
        ] {
            let model = model(likelihoods::parse(spec).unwrap(), None);
            let x = rows(&[0.0, 0.0, 0.0], extra).x;
            let posterior = Posterior::of_draws(&model, Some(&x), draws(&model, 3, 1)).unwrap();
            let n = 400;
            let new = Mat::from_fn(n, 1, |i, _| 0.01 * i as f64 - 2.0);
            for (k, y) in ys.into_iter().enumerate() {
                let at = Mat::from_fn(n, 1, |_, _| y);
                let (below, up_to) =
                    posterior.predict_cdf(new.as_ref(), at.as_ref(), &vec![extra; n]).unwrap();
                for i in 0..n {
                    let (below, up_to) = (below[(i, 0)], up_to[(i, 0)]);
                    let ordered = 0.0 <= below && below <= up_to && up_to <= 1.0;
                    assert!(ordered, "{spec} {i} {y}: {below:e} {up_to:e}");
                    assert!(k > 0 || below < 0.01, "{spec} {i}: {below}");
                    assert!(k < 5 || up_to > 0.99, "{spec} {i}: {up_to}");
                }
            }
            let missing = Mat::from_fn(1, 1, |_, _| f64::NAN);
            let (below, up_to) = posterior
                .predict_cdf(Mat::zeros(1, 1).as_ref(), missing.as_ref(), &[extra])
                .unwrap();
            assert!(below[(0, 0)].is_nan() && up_to[(0, 0)].is_nan());
        }
    }

    /// Two clusters of draws, and a level between them, where one normal is far off.
    #[test]
    fn a_mixture_of_clusters_is_not_normal() {
        let model = model(likelihoods::parse("gaussian(variance=0.02)").unwrap(), None);
        let x = rows(&[0.0, 0.0, 0.0], 1.0).x;
        let posterior = Posterior::of_draws(&model, Some(&x), draws(&model, 3, 30)).unwrap();
        let at = x.as_ref().subrows(0, 1);
        let q = |level: f64| posterior.predict_quantiles(at, &[0.0], &[level]).unwrap()[0][(0, 0)];
        let (mean, variance) = posterior.predict_y(at, &[0.0]).unwrap();
        let wide = 1.96 * variance[(0, 0)].sqrt();
        assert!(q(0.975) < mean[(0, 0)] + 0.9 * wide, "{} {}", q(0.975), mean[(0, 0)] + wide);
        assert!(q(0.6) < mean[(0, 0)] && mean[(0, 0)] < q(0.7));
    }

    /// Of many draws every second, third, … is taken: their quantile exactly, that of all nearly.
    #[test]
    fn of_many_draws_some_are_enough() {
        let model = model(likelihoods::parse("gaussian(variance=0.02)").unwrap(), None);
        let x = rows(&[0.0, 0.0, 0.0], 1.0).x;
        let all = draws(&model, 3, 180);
        let half: Vec<Mat<f64>> = all.iter().step_by(2).cloned().collect();
        assert!(all.len() > MOST && half.len() <= MOST);
        let posterior = |z: Vec<Mat<f64>>| Posterior::of_draws(&model, Some(&x), z).unwrap();
        let (all, half) = (posterior(all), posterior(half));
        let at = Mat::from_fn(1, 1, |_, _| 0.35);
        for level in [0.05, 0.3, 0.6, 0.9] {
            let q = |from: &Posterior| {
                from.predict_quantiles(at.as_ref(), &[0.0], &[level]).unwrap()[0][(0, 0)]
            };
            let (own, other) = (q(&all), q(&half));
            assert!((own - other).abs() < 1e-9, "{level}: {own} {other}");
            let mut share = 0.0;
            all.components(at.as_ref(), |likelihood, Marginals { mean: m, variance: v }| {
                let target = Target { y: own, extra: 0.0 };
                share += likelihood.cdf(target, &[m[(0, 0)]], &[v[(0, 0)]]) / 180.0;
            })
            .unwrap();
            assert!((share - level).abs() < 0.06 && share != level, "{level}: {share}");
        }
    }
}

//! Functions drawn from a posterior, by Matheron's rule with random Fourier features (Wilson et al.
//! 2020, "Efficiently sampling functions from Gaussian process posteriors", Eq. 8–13).
//!
//! A draw f₀ of the prior and a draw u of q(u) make a draw of the posterior,
//!
//! ```text
//! f(x) = m(x) + f₀(x) + k(x, Z) Kuu⁻¹ (u − f₀(Z) − ξ)                with inducing points, ξ ~ N(0, jitter)
//! f(x) = m(x) + f₀(x) + k(x, X) {G⁻¹(y − m) − G⁻¹(f₀(X) + ε)}        without, ε ~ N(0, G − K), its diagonal
//! f₀(x) = √(σ²/F) Σⱼ {aⱼ cos ωⱼᵀx + bⱼ sin ωⱼᵀx}                     a, b ~ N(0, 1), ω from the spectral density
//! ```
//!
//! Linear terms of a kernel, Σ_q v_q x_q x′_q, add the exact draw Σ_q w_q x_q with w_q ~ N(0, v_q) to f₀.
//!
//! Frequencies are drawn again for every function. Over many functions the covariance is then the
//! posterior's whatever the number F of waves; a single function is one of a Gaussian process whose
//! prior covariance is that of its waves, off by O(1/√F).

use super::Posterior;
use super::gaussian::Gaussian;
use super::process::Process;
use crate::error::{Error, Result};
use crate::kernels::{Form, slopes};
use crate::likelihoods::Likelihood;
use crate::linalg::{
    Accum, Cholesky, Mat, MatRef, Par, column, column_mut, exp::sin_cos_in_place, gemm, par_for,
    sized, solve_lower_transpose,
};
use faer::reborrow::ReborrowMut;
use rand_distr::{Distribution, StandardNormal};

/// Waves of a function unless another number is given.
pub const DEFAULT_WAVES: usize = 1024;

/// Rows whose waves are kept at once.
const ROWS: usize = 128;

/// Draws of the latent functions of a posterior, which are functions: evaluated anywhere, any
/// number of times, always the same.
#[derive(Clone, Debug)]
pub struct Functions {
    posterior: Posterior,
    bundles: Vec<Bundle>,
    samples: usize,
}

/// Functions of one Gaussian process.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    of: Gaussian,
    /// That of observations, where it is not the posterior's.
    pub(super) likelihood: Option<Box<dyn Likelihood>>,
    /// For every process.
    parts: Vec<Part>,
    /// Which of all functions they are.
    places: Vec<usize>,
}

/// Of the latent functions of one process.
#[derive(Clone, Debug)]
struct Part {
    /// One for each sample.
    waves: Vec<Waves>,
    /// What k(x, points) is multiplied with, M×(samples·l).
    weights: Mat<f64>,
    /// By what coefficients of the mean function differ, K×samples for each of l; none where they are certain.
    coefficients: Vec<Mat<f64>>,
}

/// Draws of the prior of l latent functions.
#[derive(Clone, Debug)]
struct Waves {
    /// ω, F×D.
    frequencies: Mat<f64>,
    /// a and b, with √(σ²/F), F×l each.
    cos: Mat<f64>,
    sin: Mat<f64>,
    /// Of linear terms, D×l; no rows where there are none.
    slopes: Mat<f64>,
}

fn normal(rows: usize, columns: usize, scale: f64, rng: &mut dyn rand::Rng) -> Mat<f64> {
    // in the order of columns
    let mut a = Mat::zeros(rows, columns);
    for j in 0..columns {
        for v in a.col_as_slice_mut(j) {
            let z: f64 = StandardNormal.sample(rng);
            *v = scale * z;
        }
    }
    a
}

impl Waves {
    fn draw(
        process: &Process,
        inputs: usize,
        count: usize,
        rng: &mut dyn rand::Rng,
    ) -> Result<Self> {
        let mut frequencies = Mat::zeros(count, inputs);
        let kernel = &*process.kernel;
        let variance = match kernel.form() {
            Some(Form::Linear { .. }) => 0.0,
            _ => kernel.spectral(frequencies.as_mut(), rng)?,
        };
        let (l, scale) = (process.latents.len(), (variance / count as f64).sqrt());
        let cos = normal(count, l, scale, rng);
        let sin = normal(count, l, scale, rng);
        let linear = slopes(kernel, inputs);
        let slopes = match linear.iter().any(|v| *v > 0.0) {
            true => {
                let mut slopes = normal(inputs, l, 1.0, rng);
                for at in 0..l {
                    let own = slopes.col_as_slice_mut(at).iter_mut().zip(&linear);
                    own.for_each(|(slope, v)| *slope *= v.sqrt());
                }
                slopes
            }
            false => Mat::zeros(0, l),
        };
        Ok(Self { frequencies, cos, sin, slopes })
    }

    /// Returns the values at `x` (B×D), B×l.
    fn evaluate(&self, x: MatRef<f64>) -> Mat<f64> {
        let (n, count, l) = (x.nrows(), self.frequencies.nrows(), self.cos.ncols());
        let (mut cos, mut sin) = (Mat::zeros(ROWS.min(n), count), Mat::zeros(ROWS.min(n), count));
        let mut values = Mat::zeros(n, l);
        for start in (0..n).step_by(ROWS) {
            let rows = ROWS.min(n - start);
            let (x, mut to) = (x.subrows(start, rows), values.as_mut().subrows_mut(start, rows));
            sized(&mut cos, rows, count);
            sized(&mut sin, rows, count);
            gemm(cos.as_mut(), Accum::Replace, x, self.frequencies.transpose(), 1.0, Par::Seq);
            for j in 0..count {
                sin_cos_in_place(cos.col_as_slice_mut(j), sin.col_as_slice_mut(j));
            }
            gemm(to.rb_mut(), Accum::Replace, cos.as_ref(), self.cos.as_ref(), 1.0, Par::Seq);
            gemm(to.rb_mut(), Accum::Add, sin.as_ref(), self.sin.as_ref(), 1.0, Par::Seq);
            if self.slopes.nrows() > 0 {
                gemm(to, Accum::Add, x, self.slopes.as_ref(), 1.0, Par::Seq);
            }
        }
        values
    }

    /// Adds the slopes in the inputs of the values of function `at` (of l) to `out`, B×D.
    fn add_slopes(&self, x: MatRef<f64>, at: usize, out: &mut Mat<f64>) {
        let mut cos = Mat::zeros(x.nrows(), self.frequencies.nrows());
        let mut sin = Mat::zeros(x.nrows(), self.frequencies.nrows());
        gemm(cos.as_mut(), Accum::Replace, x, self.frequencies.transpose(), 1.0, Par::Seq);
        for j in 0..cos.ncols() {
            sin_cos_in_place(cos.col_as_slice_mut(j), sin.col_as_slice_mut(j));
            let (a, b) = (self.cos[(j, at)], self.sin[(j, at)]);
            let sines = sin.col_as_slice(j).iter();
            cos.col_as_slice_mut(j).iter_mut().zip(sines).for_each(|(c, s)| *c = b * *c - a * s);
        }
        gemm(out.as_mut(), Accum::Add, cos.as_ref(), self.frequencies.as_ref(), 1.0, Par::Seq);
        for q in 0..self.slopes.nrows() {
            out.col_as_slice_mut(q).iter_mut().for_each(|v| *v += self.slopes[(q, at)]);
        }
    }
}

impl Process {
    /// Returns what k(x, points) is multiplied with: M×l, given a draw of the prior at the points.
    fn update(
        &self,
        prior: Mat<f64>,
        q_mu: MatRef<f64>,
        draws: &[Mat<f64>],
        noise: impl Fn(usize) -> Option<f64>,
        rng: &mut dyn rand::Rng,
    ) -> Mat<f64> {
        let (m, l) = (prior.nrows(), prior.ncols());
        let factor: &Cholesky = &self.factor;
        let mut apart = prior;
        if self.roots.is_empty() {
            // G − K on the diagonal: noise and jitter
            let mut own = vec![0.0; m];
            self.kernel.diag(self.points.as_ref(), &mut own);
            for (i, k) in own.iter().enumerate() {
                // where it is not known, what the factor has more than K: with as many digits as it is large beside K
                let variance = noise(i).map(|noise| noise + factor.jitter).unwrap_or_else(|| {
                    let g: f64 = (0..=i).map(|j| factor.l[(i, j)] * factor.l[(i, j)]).sum();
                    (g - k).max(0.0)
                });
                let noise = normal(1, l, variance.sqrt(), rng);
                (0..l).for_each(|at| apart[(i, at)] += noise[(0, at)]);
            }
            return &self.weights - factor.solve(apart.as_ref());
        }
        apart += normal(m, l, factor.jitter.sqrt(), rng);
        let mut white = normal(m, l, 1.0, rng);
        if draws.is_empty() {
            for at in 0..l {
                if let Some(root) = self.root(at) {
                    let image = root * white.as_ref().subcols(at, 1);
                    white.as_mut().subcols_mut(at, 1).copy_from(image);
                }
            }
            white += q_mu.subcols(self.latents.start, l);
        } else {
            let picked = crate::rng::below(rng, draws.len());
            let own = draws[picked].as_ref().subcols(self.latents.start, l).subrows(0, m);
            white.copy_from(own);
        }
        solve_lower_transpose(factor.l.as_ref(), white.as_mut(), par_for(m));
        white - factor.solve(apart.as_ref())
    }
}

impl Gaussian {
    /// Draws the functions of these places; each is of one of `draws` of the whitened variables, where there are some.
    ///
    /// # Errors
    /// As for [`Posterior::sample_functions`].
    pub(super) fn bundle(
        &self,
        places: Vec<usize>,
        waves: usize,
        draws: &[Mat<f64>],
        rng: &mut dyn rand::Rng,
    ) -> Result<Bundle> {
        let samples = places.len();
        if self.processes.iter().any(|p| p.products().is_some()) {
            return Err(Error::Invalid(
                "functions cannot be drawn by features from the posterior of `rsvgp`: draw them jointly at given \
                 inputs, or train `lsvgp` or `svgp`"
                    .into(),
            ));
        }
        let mut parts = Vec::with_capacity(self.processes.len());
        for p in &*self.processes {
            let l = p.latents.len();
            let mut part = Part {
                waves: Vec::with_capacity(samples),
                weights: Mat::zeros(p.points.nrows(), samples * l),
                coefficients: Vec::new(),
            };
            for s in 0..samples {
                let own = Waves::draw(p, self.inputs(), waves, rng)?;
                let prior = own.evaluate(p.points.as_ref());
                let noise = |i: usize| self.row_noise.get(i).copied().or(self.noise);
                let update = p.update(prior, self.q_mu.as_ref(), draws, noise, rng);
                part.weights.as_mut().subcols_mut(s * l, l).copy_from(&update);
                part.waves.push(own);
            }
            for (at, latent) in p.latents.clone().enumerate() {
                let Some(trend) = &self.trend else { break };
                let drawn = trend.drawn(latent, normal(trend.count(), samples, 1.0, rng).as_ref());
                let answer = trend.answer(latent, drawn.as_ref());
                for s in 0..samples {
                    let to = part.weights.col_as_slice_mut(s * l + at).iter_mut();
                    to.zip(column(answer.as_ref(), s)).for_each(|(w, more)| *w += more);
                }
                part.coefficients.push(drawn);
            }
            parts.push(part);
        }
        Ok(Bundle { of: self.clone(), likelihood: None, parts, places })
    }
}

impl Bundle {
    /// Writes the values of the functions at `x`, B×L each, to their places in `all`.
    fn evaluate(&self, x: MatRef<f64>, all: &mut [Mat<f64>]) {
        let (law, n) = (&self.of, x.nrows());
        let mut values = vec![law.start(x); self.places.len()];
        for (p, part) in law.processes.iter().zip(&self.parts) {
            let k = p.covariances(x);
            let mut updates = Mat::zeros(n, part.weights.ncols());
            let to = updates.as_mut();
            gemm(to, Accum::Replace, k.as_ref(), part.weights.as_ref(), 1.0, Par::Seq);
            let l = p.latents.len();
            for (own, latent) in part.coefficients.iter().zip(p.latents.clone()) {
                let Some(trend) = &law.trend else { break };
                let trends = trend.values(x, own.as_ref());
                for (s, values) in values.iter_mut().enumerate() {
                    let to = column_mut(values.as_mut(), latent).iter_mut();
                    to.zip(column(trends.as_ref(), s)).for_each(|(v, more)| *v += more);
                }
            }
            for (s, (values, waves)) in values.iter_mut().zip(&part.waves).enumerate() {
                let prior = waves.evaluate(x);
                for (at, latent) in p.latents.clone().enumerate() {
                    let to = column_mut(values.as_mut(), latent).iter_mut();
                    let both =
                        column(prior.as_ref(), at).iter().zip(updates.col_as_slice(s * l + at));
                    to.zip(both).for_each(|(v, (prior, update))| *v += prior + update);
                }
            }
        }
        for (place, g) in self.places.iter().zip(values) {
            all[*place] = law.mixed(x, g);
        }
    }

    /// Returns the slopes of function `s` of these in the inputs at `x`: B×D of every latent
    /// function.
    fn gradients(&self, x: MatRef<f64>, s: usize) -> Vec<Mat<f64>> {
        let mut slopes = Vec::new();
        for (p, part) in self.of.processes.iter().zip(&self.parts) {
            let l = p.latents.len();
            for at in 0..l {
                let mut own = Mat::zeros(x.nrows(), x.ncols());
                let weights = part.weights.col_as_slice(s * l + at);
                p.pull(x, false, &mut own, |k| {
                    Mat::from_fn(k.nrows(), k.ncols(), |_, j| weights[j])
                });
                part.waves[s].add_slopes(x, at, &mut own);
                slopes.push(own);
            }
        }
        slopes
    }
}

impl Posterior {
    /// Draws `samples` functions with `waves` waves each ([`DEFAULT_WAVES`] is a good number):
    /// O(waves + M) for every value that is asked for later, and no factorisation, where
    /// [`Posterior::sample_f`] takes O(B³). Where the posterior was sampled every function is of
    /// one of its draws; of an average over hyperparameters it is of one of their settings.
    ///
    /// # Errors
    /// [`Error::Invalid`] for kernels without a spectral density
    /// ([`crate::kernels::Kernel::spectral`]), for R-SVGP, whose variance no noise makes, for
    /// deep models and inputs with errors, and for no waves.
    pub fn sample_functions(
        &self,
        samples: usize,
        waves: usize,
        rng: &mut impl rand::Rng,
    ) -> Result<Functions> {
        if waves == 0 {
            return Err(Error::Invalid("functions need at least one wave".into()));
        }
        let bundles = self.law.functions(samples, waves, rng)?;
        Ok(Functions { posterior: self.clone(), bundles, samples })
    }
}

impl Functions {
    /// Returns the number of functions (of all latent functions at once).
    pub fn len(&self) -> usize {
        self.samples
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// Returns the posterior that they are of.
    pub fn posterior(&self) -> &Posterior {
        &self.posterior
    }

    /// Returns the likelihood of observations given a function: that of its hyperparameters, where these are averaged over or
    /// sampled too.
    pub fn likelihood(&self, sample: usize) -> &dyn Likelihood {
        let own = self.bundles.iter().find(|bundle| bundle.places.contains(&sample));
        let own = own.and_then(|bundle| bundle.likelihood.as_deref());
        own.unwrap_or(&*self.posterior.likelihood)
    }

    /// Returns the values of the latent functions at `x`, B×L for every sample.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn evaluate(&self, x: MatRef<f64>) -> Result<Vec<Mat<f64>>> {
        self.posterior.law.check(x)?;
        let own = x.to_owned();
        let mut all = vec![Mat::new(); self.samples];
        self.bundles.iter().for_each(|bundle| bundle.evaluate(own.as_ref(), &mut all));
        Ok(all)
    }

    /// Returns slopes of the values in the inputs at `x`: for every sample B×D of every latent function.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs; [`Error::Invalid`] where coefficients of the mean function are
    /// uncertain.
    pub fn gradients(&self, x: MatRef<f64>) -> Result<Vec<Vec<Mat<f64>>>> {
        if self.bundles.iter().any(|bundle| bundle.of.trend.is_some()) {
            return Err(self.posterior.law.refusal("a slope of a function drawn by its features"));
        }
        self.posterior.law.check(x)?;
        let own = x.to_owned();
        let mut all = vec![Vec::new(); self.samples];
        for bundle in &self.bundles {
            for (s, place) in bundle.places.iter().enumerate() {
                let slopes = bundle.gradients(own.as_ref(), s);
                let mut slopes = bundle.of.mixed_slopes(slopes, |w| w);
                for (l, slopes) in slopes.iter_mut().enumerate() {
                    bundle.of.mean.add_slopes(own.as_ref(), l, slopes.as_mut());
                }
                all[*place] = slopes;
            }
        }
        Ok(all)
    }
}

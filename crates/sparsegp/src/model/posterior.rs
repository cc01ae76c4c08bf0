//! What a model believes after seeing data.

mod gradients;
mod mixing;
mod pathwise;
mod quantiles;

pub use gradients::InputGradients;
pub use pathwise::{DEFAULT_WAVES, Functions};

use super::Model;
use crate::error::{Error, Result};
use crate::inverse_free::{LSpace, Root};
use crate::kernels::{Kernel, Tape};
use crate::likelihoods::functions::log_add_exp;
use crate::likelihoods::{Likelihood, Target};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatMut, MatRef, Par, add_row_dots, column, column_mut, gemm,
    invert_lower, mirror_lower, multiply_lower, par_for, product, sized, solve_lower,
    solve_lower_transpose, times_triangular, transpose_lower,
};
use crate::means::Mean;
use crate::methods::uncollapsed::{mixed_shape, pseudo};
use crate::train::set_hyperparameters;
use faer::reborrow::ReborrowMut;
use rayon::prelude::*;
use std::ops::Range;

/// Rows that are predicted for at once.
const PART: usize = 256;

/// Calls `predict` with parts of the rows of `x` (of any layout) and their first index, on all threads. The
/// parts are column-major, and of a
/// fixed size, so that nothing depends on the number of threads.
///
/// # Errors
/// Those of `predict`.
pub fn in_parts<T: Send>(
    x: MatRef<'_, f64>,
    predict: impl Fn(usize, MatRef<'_, f64>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let n = x.nrows();
    (0..n.div_ceil(PART))
        .into_par_iter()
        .map(|part| {
            let rows = x.subrows(part * PART, PART.min(n - part * PART));
            match rows.row_stride() {
                1 => predict(part * PART, rows),
                // kernels want the rows of a column side by side
                _ => predict(part * PART, rows.to_owned().as_ref()),
            }
        })
        .collect()
}

/// What [`in_parts`] gave for so many rows, one part under the other.
pub fn stacked(parts: &[Mat<f64>], rows: usize, columns: usize) -> Mat<f64> {
    let mut all = Mat::zeros(rows, columns);
    for (part, values) in parts.iter().enumerate() {
        all.as_mut().subrows_mut(part * PART, values.nrows()).copy_from(values);
    }
    all
}

/// A conditioned Gaussian process: for every latent function q(f(x)) = N(m(x) + φᵀm, k(x, x) − ‖φ‖² +
/// ‖Rᵀφ‖²) with φ = L⁻¹k(P, x). For sparse methods P are the inducing points, L the factor of Kuu and
/// q(v) = N(m, RRᵀ); for exact inference P are the training inputs, L the factor of K + σ²I, and
/// there is no R. For L-SVGP L is the factor of Kuu + Λ, without R either; for R-SVGP φ = Lᵀk(P, x) is a
/// product, and the variance k(x, x) − ‖φ‖² + φᵀEφ.
#[derive(Clone, Debug)]
pub struct Posterior {
    mean: Box<dyn Mean>,
    likelihood: Box<dyn Likelihood>,
    processes: Vec<Process>,
    /// Whitened means, M×L.
    q_mu: Mat<f64>,
    /// Variances of the noise of the rows of exact inference, where they differ; else empty.
    row_noise: Vec<f64>,
    /// Draws of the whitened variables, M×L each, where the posterior was sampled: it is the even mixture of
    /// what is known at each. Mean and roots are their moments then.
    draws: Vec<Mat<f64>>,
    /// What is known at every draw, where hyperparameters were sampled too.
    each: Vec<Self>,
    /// Those hyperparameters, in the order of [`crate::train::hyperparameters`].
    hyperparameters: Vec<Vec<f64>>,
}

/// Latent functions that share covariance function and points.
#[derive(Clone, Debug)]
struct Process {
    latents: Range<usize>,
    kernel: Box<dyn Kernel>,
    points: Mat<f64>,
    factor: Cholesky,
    /// None, one that all share, or one for each.
    roots: Vec<Mat<f64>>,
    /// L⁻ᵀm.
    weights: Mat<f64>,
    /// For every root: a lower-triangular G with GᵀG = L⁻ᵀ(I − RRᵀ)L⁻¹, so that k(x, x) − ‖Gk‖² is the
    /// variance and one triangular product finds it; kept as Gᵀ, by which rows are multiplied faster. None where RRᵀ is not below I.
    explained: Vec<Option<Mat<f64>>>,
    /// Of q kept as pseudo-observations.
    pseudo: Option<Pseudo>,
}

/// What is known of q where it is kept as pseudo-observations.
#[derive(Clone, Debug)]
struct Pseudo {
    /// L and E, for R-SVGP; the factor of its process is empty.
    products: Option<(Mat<f64>, Mat<f64>)>,
    /// Of Kuu.
    jitter: f64,
}

/// What is added to the diagonal of I − RRᵀ, times M: what rounding may have taken from it. Variances are
/// lower by so much of the prior's.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// Gᵀ, for G of [`Process`], from L⁻¹ and a root.
fn explained(inverse: &Mat<f64>, root: &Mat<f64>) -> Option<Mat<f64>> {
    let m = root.nrows();
    if root.ncols() != m {
        return None;
    }
    let par = par_for(m);
    // I − RRᵀ with rows and columns reversed: its factor, reversed back and transposed, is the lower U of
    // I − RRᵀ = UᵀU
    let square = product(root.as_ref(), root.transpose());
    let last = m.wrapping_sub(1);
    let reversed = Mat::from_fn(m, m, |i, j| {
        f64::from(u8::from(i == j)) * (1.0 + ROUNDING * m as f64) - square[(last - i, last - j)]
    });
    let factor = Cholesky::new(reversed.as_ref(), Jitter::Absolute(0.0), "I − S").ok()?;
    let u = Mat::from_fn(m, m, |i, j| if i >= j { factor.l[(last - j, last - i)] } else { 0.0 });
    let mut g = Mat::zeros(m, m);
    times_triangular(g.as_mut(), Accum::Replace, u.as_ref(), inverse.as_ref(), false, par);
    let mut by_rows = Mat::new();
    sized(&mut by_rows, m, m);
    transpose_lower(by_rows.as_mut(), g.as_ref());
    Some(by_rows)
}

/// The points of a latent function: training inputs where there are no inducing points.
fn points_of(model: &Model, x: Option<&Mat<f64>>, latent: usize) -> Result<Mat<f64>> {
    x.map_or_else(|| model.inducing_set(latent), |x| Ok(x.clone()))
}

/// The factor of their covariance.
fn factor_of(model: &Model, points: &Mat<f64>, latent: usize) -> Result<Cholesky> {
    let m = points.nrows();
    let mut k = Mat::zeros(m, m);
    let kernel = &model.kernels[if model.kernels.len() == 1 { 0 } else { latent }];
    kernel.evaluate(points.as_ref(), None, k.as_mut(), &mut Tape::off());
    Cholesky::new(k.as_ref(), model.jitter, "the covariance of the points")
}

/// Takes a component into mean and variance of an even mixture, of which its share is `share`: Welford's sums, which for
/// one component are its moments.
fn pool(share: f64, (mean, variance): (&mut f64, &mut f64), (own, within): (f64, f64)) {
    let apart = own - *mean;
    *mean += share * apart;
    let between = (1.0 - share) * apart * apart;
    *variance += share * (within + between - *variance);
}

impl Process {
    /// `mean` is the whitened mean of its latent functions.
    fn new(
        latents: Range<usize>,
        kernel: Box<dyn Kernel>,
        points: Mat<f64>,
        factor: Cholesky,
        roots: Vec<Mat<f64>>,
        mean: MatRef<f64>,
    ) -> Self {
        let mut weights = mean.to_owned();
        solve_lower_transpose(factor.l.as_ref(), weights.as_mut(), par_for(mean.nrows()));
        let m = factor.size();
        let mut inverse = Mat::new();
        if !roots.is_empty() {
            sized(&mut inverse, m, m);
            invert_lower(inverse.as_mut(), factor.l.as_ref(), par_for(m));
        }
        let explained = roots.iter().map(|root| explained(&inverse, root)).collect();
        Self { latents, kernel, points, factor, roots, weights, explained, pseudo: None }
    }

    /// Of L-SVGP or R-SVGP.
    fn of_pseudo(kernel: Box<dyn Kernel>, points: Mat<f64>, own: &LSpace, jitter: f64) -> Self {
        let latents = 0..own.mean().ncols();
        let mut factor = Cholesky::of_factor(Mat::new());
        let mut products = None;
        match (own.root(), own.residual()) {
            (Root::Product(l), Some(e)) => products = Some((l.clone(), e.to_owned())),
            (Root::Solve(basis), _) => factor = basis.factor().clone(),
            (Root::Product(_), None) => {}
        }
        factor.jitter = jitter;
        let (roots, explained) = (Vec::new(), Vec::new());
        let (weights, pseudo) = (own.weights(), Some(Pseudo { products, jitter }));
        Self { latents, kernel, points, factor, roots, weights, explained, pseudo }
    }

    /// L and E of R-SVGP.
    fn products(&self) -> Option<(MatRef<'_, f64>, MatRef<'_, f64>)> {
        let products = self.pseudo.as_ref().and_then(|pseudo| pseudo.products.as_ref());
        products.map(|(l, e)| (l.as_ref(), e.as_ref()))
    }

    /// Features φ (B×M) in the place of covariances k(x, P), sequentially.
    fn project(&self, mut k: MatMut<f64>) {
        match self.products() {
            Some((l, _)) => multiply_lower(k, l, false),
            None => solve_lower(self.factor.l.as_ref(), k.rb_mut().transpose_mut(), Par::Seq),
        }
    }

    fn root(&self, at: usize) -> Option<&Mat<f64>> {
        self.roots.get(if self.roots.len() == 1 { 0 } else { at })
    }

    fn covariances(&self, x: MatRef<f64>) -> Mat<f64> {
        let mut k = Mat::zeros(x.nrows(), self.points.nrows());
        let points = Some(self.points.as_ref());
        self.kernel.evaluate(x, points, k.as_mut(), &mut Tape::off());
        k
    }

    /// Moments of u = f(Z) − m(Z) where q is kept as pseudo-observations: Kuu a, and Kuu − Kuu K̃⁻¹ Kuu or
    /// what R-SVGP has for it.
    fn pseudo_q(&self, pseudo: &Pseudo) -> (Mat<f64>, Mat<f64>) {
        let m = self.points.nrows();
        let mut k = Mat::zeros(m, m);
        self.kernel.evaluate(self.points.as_ref(), None, k.as_mut(), &mut Tape::off());
        (0..m).for_each(|i| k[(i, i)] += pseudo.jitter);
        let mean = product(k.as_ref(), self.weights.as_ref());
        let covariance = self.conditional(k.clone(), k);
        (mean, covariance)
    }

    /// K − ΦΦᵀ, and ΦEΦᵀ more for R-SVGP, from covariances with the points (B×M) and K (B×B).
    fn conditional(&self, mut phi: Mat<f64>, mut prior: Mat<f64>) -> Mat<f64> {
        let par = par_for(prior.nrows());
        self.project(phi.as_mut());
        gemm(prior.as_mut(), Accum::Add, phi.as_ref(), phi.transpose(), -1.0, par);
        if let Some((_, e)) = self.products() {
            let image = product(phi.as_ref(), e);
            gemm(prior.as_mut(), Accum::Add, image.as_ref(), phi.transpose(), 1.0, par);
        }
        mirror_lower(prior.as_mut());
        prior
    }

    /// Variances k(x, x) − φᵀφ + φᵀEφ, where the first is in `out`.
    fn product_variances(&self, mut phi: Mat<f64>, e: MatRef<f64>, out: &mut [f64]) {
        self.project(phi.as_mut());
        let mut image = phi.clone();
        gemm(image.as_mut(), Accum::Add, phi.as_ref(), e, -1.0, Par::Seq);
        let mut explained = vec![0.0; phi.nrows()];
        add_row_dots(image.as_ref(), phi.as_ref(), &mut explained);
        out.iter_mut().zip(&explained).for_each(|(v, e)| *v -= e);
    }

    /// Adds the mean of its latent functions, given covariances with the points.
    fn add_mean(&self, k: MatRef<f64>, mean: MatMut<f64>) {
        gemm(mean, Accum::Add, k, self.weights.as_ref(), 1.0, Par::Seq);
    }
}

impl Posterior {
    /// Where all latent functions share everything, from its parts: points (M×D), factor of their
    /// covariance, whitened mean (M×L) and, but for exact inference, lower root of the whitened
    /// covariance (M×M).
    pub fn new(
        model: &Model,
        points: Mat<f64>,
        factor: Cholesky,
        q_mu: Mat<f64>,
        q_sqrt: Option<Mat<f64>>,
    ) -> Self {
        let kernel = model.kernels[0].clone();
        let roots = q_sqrt.into_iter().collect();
        let process = Process::new(0..q_mu.ncols(), kernel, points, factor, roots, q_mu.as_ref());
        Self::assemble(model, q_mu, vec![process])
    }

    /// From a model whose q(u) is a parameter.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it has none, [`Error::NotPositiveDefinite`].
    pub fn of_q(model: &Model) -> Result<Self> {
        let q = model.q.as_ref().ok_or_else(|| Error::Invalid("the model has no q".into()))?;
        let latents = q.latents();
        if q.pseudo().is_some() {
            let (points, own) = pseudo::prediction(model)?;
            let jitter = pseudo::jitter(model);
            let process = Process::of_pseudo(model.kernels[0].clone(), points, &own, jitter);
            return Ok(Self::assemble(model, own.mean().to_owned(), vec![process]));
        }
        let shared = model.kernels.len() == 1 && model.inducing.len() == 1;
        let mut q_mu = Mat::zeros(q.points(), latents);
        let mut processes = Vec::new();
        let count = if shared { 1 } else { latents };
        for l in 0..count {
            let points = model.inducing_set(l)?;
            let kernel = if model.kernels.len() == 1 { 0 } else { l };
            let mut k = Mat::zeros(points.nrows(), points.nrows());
            model.kernels[kernel].evaluate(points.as_ref(), None, k.as_mut(), &mut Tape::off());
            let factor = Cholesky::new(k.as_ref(), model.jitter, "Kuu")?;
            let own = if shared { 0..latents } else { l..l + 1 };
            let parts = q.whitened(own.clone(), &factor)?;
            q_mu.as_mut().subcols_mut(own.start, own.len()).copy_from(&parts.mean);
            let kernel = model.kernels[kernel].clone();
            let mean = parts.mean.as_ref();
            processes.push(Process::new(own, kernel, points, factor, parts.roots, mean));
        }
        Ok(Self::assemble(model, q_mu, processes))
    }

    /// Without inducing points: at the inputs of all rows, from a factor L and a mean m for every latent
    /// function, q(f(x)) = N(m(x) + φᵀm, k(x, x) − ‖φ‖²) with φ = L⁻¹k(X, x).
    pub(crate) fn of_rows(model: &Model, x: &Mat<f64>, factors: Vec<(Cholesky, Mat<f64>)>) -> Self {
        let mut q_mu = Mat::zeros(x.nrows(), factors.len());
        let mut processes = Vec::with_capacity(factors.len());
        for (l, (factor, mean)) in factors.into_iter().enumerate() {
            q_mu.as_mut().subcols_mut(l, 1).copy_from(&mean);
            let kernel = model.kernels[if model.kernels.len() == 1 { 0 } else { l }].clone();
            let own = l..l + 1;
            processes.push(Process::new(own, kernel, x.clone(), factor, vec![], mean.as_ref()));
        }
        Self::assemble(model, q_mu, processes)
    }

    fn assemble(model: &Model, q_mu: Mat<f64>, processes: Vec<Process>) -> Self {
        let (mean, likelihood) = (model.mean.clone(), model.likelihood.clone());
        Self {
            mean,
            likelihood,
            processes,
            q_mu,
            row_noise: Vec::new(),
            draws: Vec::new(),
            each: Vec::new(),
            hyperparameters: Vec::new(),
        }
    }

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
    /// unexplained (B×L each); once with the moments of a posterior that was not sampled.
    fn components(
        &self,
        x: MatRef<f64>,
        mut work: impl FnMut(&dyn Likelihood, MatRef<f64>, MatRef<f64>),
    ) -> Result<()> {
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
            left.iter_mut().zip(&explained).for_each(|(r, e)| *r = (*r - e).max(0.0));
        }
        for mean in &means {
            work(&*self.likelihood, mean.as_ref(), unexplained.as_ref());
        }
        Ok(())
    }

    /// Of exact inference on rows whose noise differs: its variances, to be kept with the inputs.
    #[must_use]
    pub fn with_row_noise(mut self, row_noise: Vec<f64>) -> Self {
        self.row_noise = row_noise;
        self
    }

    /// Variances of the noise of the rows of exact inference, where they differ; else empty.
    pub fn row_noise(&self) -> &[f64] {
        &self.row_noise
    }

    /// Number of latent functions L, mixed ones where [`Likelihood::mixing`] says so.
    pub fn latents(&self) -> usize {
        self.likelihood.mixing().map_or(self.q_mu.ncols(), |w| mixed_shape(w).0)
    }

    /// Number of target columns P.
    pub fn outputs(&self) -> usize {
        self.latents() / self.likelihood.latents()
    }

    /// Number of input columns D.
    pub fn inputs(&self) -> usize {
        self.processes[0].points.ncols()
    }

    /// The observation model.
    pub fn likelihood(&self) -> &dyn Likelihood {
        &*self.likelihood
    }

    /// Inducing points, or training inputs for exact inference; the first set of several.
    pub fn points(&self) -> MatRef<'_, f64> {
        self.processes[0].points.as_ref()
    }

    /// Whitened mean of q, M×L; for L-SVGP and R-SVGP in the coordinates of their features.
    pub fn q_mu(&self) -> MatRef<'_, f64> {
        self.q_mu.as_ref()
    }

    /// Lower roots of the whitened covariances of q, M×M each: one that all latent functions share or
    /// one for each; none for exact inference, L-SVGP and R-SVGP.
    pub fn q_sqrt(&self) -> Vec<MatRef<'_, f64>> {
        self.processes.iter().flat_map(|p| p.roots.iter().map(|r| r.as_ref())).collect()
    }

    /// The factor of Kuu (of K + σ²I for exact inference, of Kuu + Λ for L-SVGP); the first of several. That of
    /// R-SVGP, which has none, is empty.
    pub fn factor(&self) -> &Cholesky {
        &self.processes[0].factor
    }

    /// q(u) = N(L m, L R Rᵀ Lᵀ) of the inducing variables u = f(Z) − m(Z): means M×L and the
    /// covariance of every latent function, M×M. None for exact inference.
    pub fn q_u(&self) -> Option<(Mat<f64>, Vec<Mat<f64>>)> {
        let mut mean = Mat::zeros(self.q_mu.nrows(), self.unmixed());
        let mut covariances = Vec::new();
        for process in &self.processes {
            if let Some(pseudo) = &process.pseudo {
                let (own, covariance) = process.pseudo_q(pseudo);
                mean.copy_from(&own);
                covariances.extend(std::iter::repeat_n(covariance, self.unmixed()));
                continue;
            }
            let l = process.factor.l.as_ref();
            let own = self.q_mu.as_ref().subcols(process.latents.start, process.latents.len());
            let target = mean.as_mut().subcols_mut(process.latents.start, process.latents.len());
            gemm(target, Accum::Replace, l, own, 1.0, par_for(l.nrows()));
            for at in 0..process.latents.len() {
                let root = product(l, process.root(at)?.as_ref());
                covariances.push(product(root.as_ref(), root.transpose()));
            }
        }
        Some((mean, covariances))
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        if x.ncols() == self.inputs() {
            return self.processes.iter().try_for_each(|p| p.kernel.check(x));
        }
        Err(Error::Shape {
            what: "inputs to predict at".into(),
            expected: format!("{} columns", self.inputs()),
            found: format!("{} columns", x.ncols()),
        })
    }

    /// Means of the latent functions alone, B×L. 2M multiply-adds per row and function.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict_mean(&self, x: MatRef<f64>) -> Result<Mat<f64>> {
        self.check(x)?;
        if !self.each.is_empty() {
            let mut mean = Mat::zeros(x.nrows(), self.latents());
            let share = faer::Scale(1.0 / self.each.len() as f64);
            for own in &self.each {
                mean += share * own.predict_mean(x)?;
            }
            return Ok(mean);
        }
        let mut mean = self.start(x);
        for p in &self.processes {
            let own = mean.as_mut().subcols_mut(p.latents.start, p.latents.len());
            p.add_mean(p.covariances(x).as_ref(), own);
        }
        Ok(self.mixed(x, mean))
    }

    /// Means and variances of the latent functions, B×L each. Variances below 0 by rounding are
    /// returned as 0.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict_f(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        self.check(x)?;
        let n = x.nrows();
        if !self.each.is_empty() {
            let mut mean = Mat::zeros(n, self.latents());
            let mut variance = Mat::zeros(n, self.latents());
            let mut count = 0.0;
            self.components(x, |_, own, within| {
                count += 1.0;
                for l in 0..own.ncols() {
                    let (own, within) = (column(own, l), column(within, l));
                    let mean = column_mut(mean.as_mut(), l).iter_mut();
                    let all =
                        mean.zip(column_mut(variance.as_mut(), l)).zip(own.iter().zip(within));
                    all.for_each(|((m, v), (own, within))| {
                        pool(1.0 / count, (m, v), (*own, *within));
                    });
                }
            })?;
            return Ok((mean, variance));
        }
        let mut mean = self.start(x);
        let mut variance = Mat::zeros(n, self.unmixed());
        for p in &self.processes {
            let k = p.covariances(x);
            let own = mean.as_mut().subcols_mut(p.latents.start, p.latents.len());
            p.add_mean(k.as_ref(), own);
            let mut prior = vec![0.0; n];
            p.kernel.diag(x, &mut prior);
            // L⁻¹k, where some root needs it
            let mut phi: Option<Mat<f64>> = None;
            let mut features = Mat::zeros(n, k.ncols());
            let mut last: Option<usize> = None;
            for (at, l) in p.latents.clone().enumerate() {
                if let (Some(from), true) = (last, p.roots.len() < 2) {
                    let copy = column(variance.as_ref(), from).to_vec();
                    column_mut(variance.as_mut(), l).copy_from_slice(&copy);
                    continue;
                }
                let out = column_mut(variance.as_mut(), l);
                if let Some((_, e)) = p.products() {
                    out.copy_from_slice(&prior);
                    p.product_variances(k.clone(), e, out);
                    out.iter_mut().for_each(|v| *v = if *v < 0.0 { 0.0 } else { *v });
                    last = Some(l);
                    continue;
                }
                let own = if p.explained.len() == 1 { 0 } else { at };
                match (p.explained.get(own), p.root(at)) {
                    (Some(Some(g)), _) => {
                        let (out, k) = (features.as_mut(), k.as_ref());
                        times_triangular(out, Accum::Replace, k, g.transpose(), true, Par::Seq);
                        add_row_dots(
                            features.as_ref(),
                            features.as_ref(),
                            column_mut(variance.as_mut(), l),
                        );
                        let out = column_mut(variance.as_mut(), l);
                        out.iter_mut().zip(&prior).for_each(|(v, prior)| *v = prior - *v);
                    }
                    (_, root) => {
                        let phi = phi.get_or_insert_with(|| {
                            let mut phi = k.clone();
                            let phi_t = phi.as_mut().transpose_mut();
                            solve_lower(p.factor.l.as_ref(), phi_t, Par::Seq);
                            phi
                        });
                        let mut explained = vec![0.0; n];
                        add_row_dots(phi.as_ref(), phi.as_ref(), &mut explained);
                        out.iter_mut()
                            .zip(prior.iter().zip(&explained))
                            .for_each(|(v, (p, e))| *v = p - e);
                        if let Some(root) = root {
                            let mut s = Mat::zeros(n, root.ncols());
                            let (phi, root) = (phi.as_ref(), root.as_ref());
                            times_triangular(
                                s.as_mut(),
                                Accum::Replace,
                                phi,
                                root,
                                false,
                                Par::Seq,
                            );
                            add_row_dots(s.as_ref(), s.as_ref(), out);
                        }
                    }
                }
                let out = column_mut(variance.as_mut(), l);
                out.iter_mut().for_each(|v| *v = if *v < 0.0 { 0.0 } else { *v });
                last = Some(l);
            }
        }
        Ok((self.mixed(x, mean), self.mixed_variances(variance)))
    }

    /// Means (B×L) and both parts of the variances, s and r (B×L each): what comes from q, and what the
    /// inducing points leave unexplained, which is 0 without inducing points.
    pub(super) fn split(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>, Mat<f64>)> {
        let (mean, mut s) = self.predict_f(x)?;
        let mut r = Mat::zeros(x.nrows(), self.latents());
        for p in self.processes.iter().filter(|p| !p.roots.is_empty()) {
            let mut phi = p.covariances(x);
            p.project(phi.as_mut());
            for (at, l) in p.latents.clone().enumerate() {
                let left = column_mut(r.as_mut(), l);
                let mut explained = vec![0.0; x.nrows()];
                add_row_dots(phi.as_ref(), phi.as_ref(), &mut explained);
                p.kernel.diag(x, left);
                left.iter_mut().zip(&explained).for_each(|(r, e)| *r -= e);
                if let Some(root) = p.root(at) {
                    let image = product(phi.as_ref(), root.as_ref());
                    let own = column_mut(s.as_mut(), l);
                    own.fill(0.0);
                    add_row_dots(image.as_ref(), image.as_ref(), own);
                }
            }
        }
        Ok((mean, s, r))
    }

    /// Without inducing points: diag G⁻¹ and G⁻¹(f − m) at the points, N×L each, where G is the matrix whose
    /// factor is kept.
    pub(super) fn at_points(&self) -> (Mat<f64>, Mat<f64>) {
        let n = self.q_mu.nrows();
        let (mut diagonal, mut alpha) =
            (Mat::zeros(n, self.latents()), Mat::zeros(n, self.latents()));
        for p in &self.processes {
            let mut inverse = Mat::zeros(n, n);
            invert_lower(inverse.as_mut(), p.factor.l.as_ref(), par_for(n));
            let first = p.latents.start;
            alpha.as_mut().subcols_mut(first, p.latents.len()).copy_from(&p.weights);
            for l in p.latents.clone() {
                let own = column_mut(diagonal.as_mut(), l);
                for (i, d) in own.iter_mut().enumerate() {
                    *d = inverse.col_as_slice(i)[i..].iter().map(|v| v * v).sum();
                }
            }
        }
        (diagonal, alpha)
    }

    /// Means (B×L) and the full covariance (B×B) of every latent function.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict_f_full(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
        let (mean, covariances) = self.unmixed_full(x)?;
        Ok((self.mixed(x, mean), self.mixed_matrices(covariances, |w| w * w)))
    }

    /// The same of the latent functions before they are mixed.
    fn unmixed_full(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
        self.check(x)?;
        let n = x.nrows();
        let par = par_for(n);
        if !self.each.is_empty() {
            return self.mixed_f_full(x);
        }
        let mut mean = self.start(x);
        let mut covariances = Vec::with_capacity(self.unmixed());
        for p in &self.processes {
            let mut phi = p.covariances(x);
            let own = mean.as_mut().subcols_mut(p.latents.start, p.latents.len());
            p.add_mean(phi.as_ref(), own);
            let mut prior = Mat::zeros(n, n);
            p.kernel.evaluate(x, None, prior.as_mut(), &mut Tape::off());
            if p.pseudo.is_some() {
                let shared = p.conditional(phi, prior);
                covariances.extend(std::iter::repeat_n(shared, p.latents.len()));
                continue;
            }
            solve_lower(p.factor.l.as_ref(), phi.as_mut().transpose_mut(), par);
            gemm(prior.as_mut(), Accum::Add, phi.as_ref(), phi.transpose(), -1.0, par);
            for at in 0..p.latents.len() {
                let mut covariance = prior.clone();
                if let Some(root) = p.root(at) {
                    let s = product(phi.as_ref(), root.as_ref());
                    gemm(covariance.as_mut(), Accum::Add, s.as_ref(), s.transpose(), 1.0, par);
                }
                mirror_lower(covariance.as_mut());
                covariances.push(covariance);
            }
        }
        Ok((mean, covariances))
    }

    /// Moments of the mixture over draws with hyperparameters of their own.
    fn mixed_f_full(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
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

    /// The further number of row i.
    fn extra(&self, extra: &[f64], i: usize) -> f64 {
        let default = self.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        extra.get(i).copied().unwrap_or(default)
    }

    /// Calls `f` with every row, target column and the latent means and variances there.
    fn observations(
        &self,
        mean: MatRef<f64>,
        variance: MatRef<f64>,
        mut f: impl FnMut(usize, usize, &[f64], &[f64]),
    ) {
        let k = self.likelihood.latents();
        let (mut own_mean, mut own_variance) = (vec![0.0; k], vec![0.0; k]);
        for p in 0..self.outputs() {
            for i in 0..mean.nrows() {
                for l in 0..k {
                    own_mean[l] = mean[(i, p * k + l)];
                    own_variance[l] = variance[(i, p * k + l)];
                }
                f(i, p, &own_mean, &own_variance);
            }
        }
    }

    /// Means and variances of observations, B×P each. `extra` holds the further number of every row
    /// (exposure, trials, known noise variance); empty for its default.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict_y(&self, x: MatRef<f64>, extra: &[f64]) -> Result<(Mat<f64>, Mat<f64>)> {
        let mut y_mean = Mat::zeros(x.nrows(), self.outputs());
        let mut y_variance = Mat::zeros(x.nrows(), self.outputs());
        let mut count = 0.0;
        self.components(x, |likelihood, mean, variance| {
            count += 1.0;
            self.observations(mean, variance, |i, p, mean, variance| {
                let own = likelihood.predict(self.extra(extra, i), mean, variance);
                pool(1.0 / count, (&mut y_mean[(i, p)], &mut y_variance[(i, p)]), own);
            });
        })?;
        Ok((y_mean, y_variance))
    }

    /// Probabilities of the classes, B×C, for one target column of classes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if targets are no classes, [`Error::Shape`] if the number of columns
    /// differs.
    pub fn predict_proba(&self, x: MatRef<f64>) -> Result<Mat<f64>> {
        let (Some(classes), 1) = (self.likelihood.classes(), self.outputs()) else {
            return Err(Error::Invalid(format!(
                "the likelihood `{}` has no class probabilities",
                self.likelihood.name()
            )));
        };
        let share = 1.0 / self.draws.len().max(1) as f64;
        let mut all = Mat::zeros(x.nrows(), classes);
        let mut own = vec![0.0; classes];
        self.components(x, |likelihood, mean, variance| {
            self.observations(mean, variance, |i, _, mean, variance| {
                likelihood.probabilities(mean, variance, &mut own);
                own.iter().enumerate().for_each(|(c, p)| all[(i, c)] += share * p);
            });
        })?;
        Ok(all)
    }

    /// log p(yᵢ | data) of every row, summed over the target columns that are not missing (which are
    /// independent). `extra` as for [`Posterior::predict_y`].
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not fit.
    pub fn predict_log_density(
        &self,
        x: MatRef<f64>,
        y: MatRef<f64>,
        extra: &[f64],
    ) -> Result<Vec<f64>> {
        self.check_targets(x, y)?;
        let mut density = Mat::zeros(x.nrows(), self.outputs());
        let mut first = true;
        self.components(x, |likelihood, mean, variance| {
            self.observations(mean, variance, |i, p, mean, variance| {
                let target = Target { y: y[(i, p)], extra: self.extra(extra, i) };
                if !target.y.is_nan() {
                    let own = likelihood.predict_log_density(target, mean, variance);
                    let sum = &mut density[(i, p)];
                    *sum = if first { own } else { log_add_exp(*sum, own) };
                }
            });
            first = false;
        })?;
        let count = (self.draws.len().max(1) as f64).ln();
        let observed = |i: usize, p: usize| !y[(i, p)].is_nan();
        let each = |i: usize| -> f64 {
            (0..self.outputs()).filter(|p| observed(i, *p)).map(|p| density[(i, p)] - count).sum()
        };
        Ok((0..x.nrows()).map(each).collect())
    }

    fn check_targets(&self, x: MatRef<f64>, y: MatRef<f64>) -> Result<()> {
        if y.nrows() == x.nrows() && y.ncols() == self.outputs() {
            return Ok(());
        }
        Err(Error::Shape {
            what: "targets to score".into(),
            expected: format!("{}×{}", x.nrows(), self.outputs()),
            found: format!("{}×{}", y.nrows(), y.ncols()),
        })
    }

    /// Joint samples of the latent functions: one B×L matrix per sample.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs, [`Error::NotPositiveDefinite`] if the
    /// covariance cannot be factorised.
    pub fn sample_f(
        &self,
        x: MatRef<f64>,
        samples: usize,
        rng: &mut impl rand::Rng,
    ) -> Result<Vec<Mat<f64>>> {
        let (mean, covariances) = self.unmixed_full(x)?;
        let factors: Vec<Cholesky> = covariances
            .iter()
            .map(|c| Cholesky::new(c.as_ref(), Jitter::Relative(1e-10), "the posterior covariance"))
            .collect::<Result<_>>()?;
        let normal = rand_distr::StandardNormal;
        Ok((0..samples)
            .map(|_| {
                let mut draw = mean.clone();
                for (l, factor) in factors.iter().enumerate() {
                    let mut noise = Mat::zeros(x.nrows(), 1);
                    for v in column_mut(noise.as_mut(), 0) {
                        *v = rand_distr::Distribution::<f64>::sample(&normal, rng);
                    }
                    let own = draw.as_mut().subcols_mut(l, 1);
                    gemm(own, Accum::Add, factor.l.as_ref(), noise.as_ref(), 1.0, Par::Seq);
                }
                self.mixed(x, draw)
            })
            .collect())
    }

    /// Draws of observations, B×P each: the latent functions jointly over the rows
    /// ([`Posterior::sample_f`]), then y given them. `extra` as for [`Posterior::predict_y`].
    ///
    /// # Errors
    /// As for [`Posterior::sample_f`].
    pub fn sample_y(
        &self,
        x: MatRef<f64>,
        extra: &[f64],
        samples: usize,
        rng: &mut impl rand::Rng,
    ) -> Result<Vec<Mat<f64>>> {
        let latent = self.sample_f(x, samples, rng)?;
        Ok(self.observed(&latent, extra, rng))
    }

    /// Draws of observations given draws of latent functions, B×P each. `extra` as for
    /// [`Posterior::predict_y`].
    pub fn observed(
        &self,
        latent: &[Mat<f64>],
        extra: &[f64],
        rng: &mut impl rand::Rng,
    ) -> Vec<Mat<f64>> {
        let k = self.likelihood.latents();
        let one = |f: &Mat<f64>| {
            Mat::from_fn(f.nrows(), self.outputs(), |i, p| {
                let own: Vec<f64> = (0..k).map(|l| f[(i, p * k + l)]).collect();
                self.likelihood.sample(self.extra(extra, i), &own, rng)
            })
        };
        latent.iter().map(one).collect()
    }
}

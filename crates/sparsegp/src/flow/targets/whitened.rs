//! Posteriors of Gaussian processes, of whitened variables.

use crate::error::{Error, Result};
use crate::flow::blocks::Blocks;
use crate::flow::particles::Particles;
use crate::flow::subsample::Subsample;
use crate::flow::target::{Target, check_dim};
use crate::kernels::{self, Kernel, of_latent, points_fit};
use crate::likelihoods::{self, Likelihood, Slopes, together::at_once};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatMut, MatRef, Par, add_row_dots, by_columns, column,
    column_mut, gemm, not_below_0, product, sum_of_products,
};

/// Rows of data for [`Whitened`].
#[derive(Clone, Copy, Debug)]
pub struct WhitenedRows<'a> {
    /// Inputs, N×D.
    pub x: MatRef<'a, f64>,
    /// Targets, N×P; NaN where missing.
    pub y: MatRef<'a, f64>,
    /// The further number of every row, N; empty where there is none.
    pub extra: &'a [f64],
    /// Weights of the rows, N; empty where all are 1.
    pub weights: &'a [f64],
    /// Prior means of the latent functions at the rows, N×L; none for 0.
    pub mean: Option<MatRef<'a, f64>>,
}

/// One kernel's points, factor L of their covariance and features of the rows.
#[derive(Clone, Debug)]
pub(super) struct Features {
    pub(super) kernel: Box<dyn Kernel>,
    pub(super) points: Mat<f64>,
    pub(super) factor: Cholesky,
    /// Aᵀ, N×M: column i of A is L⁻¹k(Z, xᵢ).
    pub(super) a: Mat<f64>,
    /// kᵢᵢ − ‖Aᵢ‖², at least 0.
    pub(super) r: Vec<f64>,
}

/// v of u = Lv, KZZ = LLᵀ, for every latent function one after the other: φ(v) = ½‖v‖² − Σᵢ E[log p(yᵢ | f)] with f ~
/// N(mᵢ + Aᵢᵀv, rᵢ), A = L⁻¹KZX (Hensman, Matthews & Ghahramani 2015). Without inducing points the points are the
/// rows themselves, f = m + Lv and r = 0.
///
/// The constant (M/2) log 2π of the prior is left out: of a Gaussian q the bound is −F + M/2.
#[derive(Debug)]
pub struct Whitened {
    /// The rows in sight.
    pub(in crate::flow) subsample: Subsample,
    pub(super) likelihood: Box<dyn Likelihood>,
    /// One for each kernel.
    pub(super) features: Vec<Features>,
    /// Inputs, N×D; none where the points are the rows.
    pub(super) x: Option<Mat<f64>>,
    pub(super) y: Mat<f64>,
    extra: Vec<f64>,
    pub(super) weights: Vec<f64>,
    /// N×L.
    mean: Mat<f64>,
}

impl Whitened {
    /// Takes one kernel that all latent functions share or one for each, a likelihood, inducing points (M×D; none for
    /// the rows themselves), and rows.
    ///
    /// # Errors
    /// [`Error::Shape`] if the sizes differ, [`Error::Invalid`] for targets that the likelihood does not know or latent
    /// functions that target columns share, [`Error::NotPositiveDefinite`] for points too close.
    pub fn new(
        kernels: &[Box<dyn Kernel>],
        likelihood: &dyn Likelihood,
        points: Option<MatRef<'_, f64>>,
        jitter: Jitter,
        rows: WhitenedRows<'_>,
    ) -> Result<Self> {
        let (n, latents) = (rows.x.nrows(), likelihood.latents() * rows.y.ncols());
        if likelihood.mixing().is_some() {
            return Err(Error::Invalid(format!(
                "`{}` has latent functions that target columns share, of which there is no whitened target",
                likelihood.name()
            )));
        }
        let count = |what: &str, found: usize, expected: usize| {
            if found == expected {
                return Ok(());
            }
            let (expected, found) = (format!("{expected}"), format!("{found}"));
            Err(Error::Shape { what: what.into(), expected, found })
        };
        count("rows of targets", rows.y.nrows(), n)?;
        count(
            "further numbers of rows",
            rows.extra.len(),
            if rows.extra.is_empty() { 0 } else { n },
        )?;
        count("weights of rows", rows.weights.len(), if rows.weights.is_empty() { 0 } else { n })?;
        count("kernels", kernels.len(), if kernels.len() == 1 { 1 } else { latents })?;
        if n == 0 || latents == 0 {
            return Err(Error::Shape {
                what: "rows and target columns".into(),
                expected: "one of each, at least".into(),
                found: format!("{n} and {}", rows.y.ncols()),
            });
        }
        let mean = rows.mean.map_or_else(|| Mat::zeros(n, latents), |mean| mean.to_owned());
        count("rows of prior means", mean.nrows(), n)?;
        count("columns of prior means", mean.ncols(), latents)?;
        if let Some(points) = points
            && !kernels.iter().all(|k| points_fit(&**k, points.ncols(), rows.x.ncols()))
        {
            check_dim("columns of inducing points", points.ncols(), rows.x.ncols())?;
        }
        let own = kernels.iter().map(|kernel| features(&**kernel, points, rows.x, jitter));
        let features = own.collect::<Result<_>>()?;
        let own = Self {
            subsample: Subsample::all(n),
            likelihood: likelihood.clone_box(),
            features,
            x: points.map(|_| rows.x.to_owned()),
            y: rows.y.to_owned(),
            extra: rows.extra.to_vec(),
            weights: rows.weights.to_vec(),
            mean,
        };
        for p in 0..own.y.ncols() {
            for i in 0..n {
                let Some(target) = own.observed(i, p) else { continue };
                own.likelihood.check(target).map_err(|text| {
                    Error::Invalid(format!("row {i}, target {p}: {} {text}", target.y))
                })?;
            }
        }
        Ok(own)
    }

    /// Returns which rows are in sight.
    pub fn subsample(&self) -> &Subsample {
        &self.subsample
    }

    /// Sees these rows from now on.
    ///
    /// # Errors
    /// As for [`Subsample::choose`].
    pub fn choose_rows(&mut self, rows: Vec<usize>) -> Result<()> {
        self.subsample.choose(rows)
    }

    /// Sees at most B rows in a step.
    ///
    /// # Errors
    /// As for [`Subsample::batches`].
    pub fn in_batches(mut self, size: usize, seed: u64) -> Result<Self> {
        self.subsample = Subsample::batches(self.y.nrows(), size, seed)?;
        Ok(self)
    }

    /// Returns L, the number of latent functions.
    pub fn latents(&self) -> usize {
        self.mean.ncols()
    }

    /// Returns the whitened variables of every latent function as blocks.
    pub fn blocks(&self) -> Blocks {
        let sizes: Vec<usize> = (0..self.latents()).map(|l| self.of(l).a.ncols()).collect();
        Blocks::consecutive(&sizes)
    }

    /// Returns Aᵀ (N×M) and the rᵢ (N numbers) of a latent function.
    pub fn features(&self, latent: usize) -> (MatRef<'_, f64>, &[f64]) {
        let own = self.of(latent);
        (own.a.as_ref(), &own.r)
    }

    /// Returns means and variances of the latent functions at new rows, B×L each and without the prior mean, under the
    /// Gaussian of particles: a⋆ᵀm and k⋆⋆ − ‖a⋆‖² + ‖Zᵀa⋆‖²/N with a⋆ = L⁻¹k(Z, x⋆).
    ///
    /// # Errors
    /// [`Error::Shape`] for particles or rows of another dimension.
    pub fn predict(
        &self,
        particles: &Particles,
        x: MatRef<'_, f64>,
    ) -> Result<(Mat<f64>, Mat<f64>)> {
        check_dim("particles", particles.dim(), self.dim())?;
        check_dim("columns of new rows", x.ncols(), self.of(0).points.ncols())?;
        let (mean, z) = (particles.mean(), particles.deviations());
        let (mut means, mut variances) =
            (Mat::zeros(x.nrows(), self.latents()), Mat::zeros(x.nrows(), self.latents()));
        let mut from = 0;
        for l in 0..self.latents() {
            let own = self.of(l);
            let m = own.points.nrows();
            let (a, r) = cross(&*own.kernel, own.points.as_ref(), &own.factor, x);
            let mut squares = vec![0.0; x.nrows()];
            let parts = product(a.as_ref(), z.as_ref().subrows(from, m));
            add_row_dots(parts.as_ref(), parts.as_ref(), &mut squares);
            let v = MatRef::from_column_major_slice(&mean[from..from + m], m, 1);
            let f = product(a.as_ref(), v);
            for i in 0..x.nrows() {
                means[(i, l)] = f[(i, 0)];
                variances[(i, l)] = r[i] + squares[i] / particles.count() as f64;
            }
            from += m;
        }
        Ok((means, variances))
    }

    pub(super) fn of(&self, latent: usize) -> &Features {
        of_latent(&self.features, latent)
    }

    /// Returns what is observed of row i and target column p, unless that is missing.
    pub(super) fn observed(&self, i: usize, p: usize) -> Option<likelihoods::Target> {
        let y = self.y[(i, p)];
        let default = self.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        let extra = self.extra.get(i).copied().unwrap_or(default);
        (!y.is_nan()).then_some(likelihoods::Target { y, extra })
    }

    /// Returns rows in sight of Aᵀ, B×M.
    fn in_sight(&self, latent: usize) -> Mat<f64> {
        let (a, sight) = (&self.of(latent).a, &self.subsample);
        Mat::from_fn(sight.count(), a.ncols(), |i, j| a[(sight.row(i), j)])
    }

    /// Turns the latent values of the rows in sight into slopes of Σ w E[log p] by them (B numbers
    /// of every latent function, one after the other); twice the slopes by variances go into
    /// `curves`, if asked for. Returns the sum.
    fn expect(&self, f: &mut [f64], mut curves: Option<&mut [f64]>) -> f64 {
        let values = f.to_vec();
        at_once(&*self.likelihood, |likelihood| {
            f.copy_from_slice(&values);
            self.expect_by(likelihood, f, curves.as_deref_mut())
        })
    }

    fn expect_by(
        &self,
        likelihood: &dyn Likelihood,
        f: &mut [f64],
        mut curves: Option<&mut [f64]>,
    ) -> f64 {
        let (each, count) = (self.likelihood.latents(), self.subsample.count());
        let (mut means, mut variances) = (vec![0.0; each], vec![0.0; each]);
        let (mut by_mean, mut by_variance) = (vec![0.0; each], vec![0.0; each]);
        let mut params = vec![0.0; self.likelihood.num_params()];
        let mut sum = 0.0;
        for p in 0..self.y.ncols() {
            for at in 0..count {
                let row = self.subsample.row(at);
                let place = |k: usize| (p * each + k) * count + at;
                let Some(target) = self.observed(row, p) else {
                    (0..each).for_each(|k| f[place(k)] = 0.0);
                    if let Some(curves) = curves.as_deref_mut() {
                        (0..each).for_each(|k| curves[place(k)] = 0.0);
                    }
                    continue;
                };
                for k in 0..each {
                    means[k] = f[place(k)];
                    variances[k] = self.of(p * each + k).r[row];
                }
                let weight = self.weights.get(row).copied().unwrap_or(1.0);
                let known = curves.is_none() && variances.iter().all(|v| *v == 0.0);
                let value = if known {
                    likelihood.log_prob_slope(target, &means, &mut by_mean)
                } else {
                    let out = Slopes {
                        mean: &mut by_mean,
                        variance: &mut by_variance,
                        params: &mut params,
                    };
                    likelihood.expect(target, &means, &variances, out)
                };
                sum += weight * value;
                for k in 0..each {
                    f[place(k)] = weight * by_mean[k];
                    if let Some(curves) = curves.as_deref_mut() {
                        curves[place(k)] = 2.0 * weight * by_variance[k];
                    }
                }
            }
        }
        sum
    }

    /// Returns latent values of the rows in sight at positions (D×P): B numbers of every latent function, one after the other,
    /// for each.
    pub(crate) fn latent_values_of(&self, x: MatRef<'_, f64>) -> Mat<f64> {
        self.latent_values(x).0
    }

    /// Returns the latent values of the rows in sight, BL×P for P positions, with the features that
    /// were used.
    pub(super) fn latent_values(&self, x: MatRef<'_, f64>) -> (Mat<f64>, Vec<Mat<f64>>) {
        let (count, latents) = (self.subsample.count(), self.latents());
        let shared = self.features.len() == 1;
        let own = (0..if shared { 1 } else { latents }).map(|l| self.in_sight(l));
        let (features, mut from): (Vec<_>, _) = (own.collect(), 0);
        let mut f = Mat::zeros(count * latents, x.ncols());
        for l in 0..latents {
            let a = &features[if shared { 0 } else { l }];
            let mut own = f.as_mut().subrows_mut(l * count, count);
            let v = x.subrows(from, a.ncols());
            gemm(own.as_mut(), Accum::Replace, a.as_ref(), v, 1.0, Par::Seq);
            for n in 0..x.ncols() {
                for at in 0..count {
                    own[(at, n)] += self.mean[(self.subsample.row(at), l)];
                }
            }
            from += a.ncols();
        }
        (f, features)
    }

    /// Computes `out` = v − weight A s, for what the rows contribute as [`Whitened::expect`] leaves
    /// it.
    fn pull(
        &self,
        v: MatRef<'_, f64>,
        s: &Mat<f64>,
        features: &[Mat<f64>],
        mut out: MatMut<'_, f64>,
    ) {
        let (count, mut from) = (self.subsample.count(), 0);
        for n in 0..v.ncols() {
            column_mut(out.as_mut(), n).copy_from_slice(column(v, n));
        }
        for l in 0..self.latents() {
            let a = of_latent(features, l);
            let own = s.as_ref().subrows(l * count, count);
            let to = out.as_mut().subrows_mut(from, a.ncols());
            gemm(to, Accum::Add, a.transpose(), own, -self.subsample.weight(), Par::Seq);
            from += a.ncols();
        }
    }
}

/// Returns the features of rows for a kernel and points: Aᵀ (N×M) and rᵢ.
fn cross(
    kernel: &dyn Kernel,
    points: MatRef<'_, f64>,
    factor: &Cholesky,
    x: MatRef<'_, f64>,
) -> (Mat<f64>, Vec<f64>) {
    let n = x.nrows();
    let a = kernels::features(kernel, points, factor, x);
    let (mut r, mut explained) = (vec![0.0; n], vec![0.0; n]);
    kernel.diag(x, &mut r);
    add_row_dots(a.as_ref(), a.as_ref(), &mut explained);
    r.iter_mut().zip(explained).for_each(|(r, e)| *r = not_below_0(*r - e));
    (a, r)
}

fn features(
    kernel: &dyn Kernel,
    points: Option<MatRef<'_, f64>>,
    x: MatRef<'_, f64>,
    jitter: Jitter,
) -> Result<Features> {
    let z = points.unwrap_or(x);
    let name = if points.is_some() { "Kuu" } else { "K" };
    let factor = kernels::factor(kernel, z, jitter, name)?;
    let (a, r) = match points {
        Some(points) => cross(kernel, points, &factor, x),
        None => (factor.l.clone(), vec![0.0; x.nrows()]),
    };
    Ok(Features { kernel: kernel.clone_box(), points: z.to_owned(), factor, a, r })
}

impl Target for Whitened {
    fn dim(&self) -> usize {
        (0..self.latents()).map(|l| self.of(l).a.ncols()).sum()
    }

    fn evaluate(
        &mut self,
        x: MatRef<'_, f64>,
        phi: &mut [f64],
        gradient: MatMut<'_, f64>,
    ) -> Result<()> {
        let (mut f, features) = self.latent_values(x);
        let weight = self.subsample.weight();
        by_columns(f.as_mut(), phi, &|n, f: &mut [f64], phi: &mut f64| {
            let v = column(x, n);
            *phi = 0.5 * sum_of_products(v, v) - weight * self.expect(f, None);
        });
        self.pull(x, &f, &features, gradient);
        Ok(())
    }

    fn has_hessian(&self) -> bool {
        self.likelihood.latents() == 1
    }

    /// Multiplies by I − A diag(E[∂² log p]) Aᵀ, with the curvature as twice the slope by the
    /// variance (Opper & Archambeau 2009).
    fn hessian_times(&mut self, x: &[f64], v: MatRef<'_, f64>, out: MatMut<'_, f64>) -> Result<()> {
        if !self.has_hessian() {
            return Err(Error::Invalid(format!(
                "second derivatives of `{}`, which has several latent functions for a target, are not known: take a \
                 method that needs only gradients, such as the reparameterised form of `Iblr`",
                self.likelihood.name()
            )));
        }
        let (mut f, features) = self.latent_values(MatRef::from_column_major_slice(x, x.len(), 1));
        let mut curves = vec![0.0; f.nrows()];
        self.expect(column_mut(f.as_mut(), 0), Some(&mut curves));
        let count = self.subsample.count();
        let mut along = Mat::zeros(f.nrows(), v.ncols());
        let mut from = 0;
        for l in 0..self.latents() {
            let a = of_latent(&features, l);
            let own = along.as_mut().subrows_mut(l * count, count);
            let v = v.subrows(from, a.ncols());
            gemm(own, Accum::Replace, a.as_ref(), v, 1.0, Par::Seq);
            from += a.ncols();
        }
        for k in 0..v.ncols() {
            let own = column_mut(along.as_mut(), k).iter_mut();
            own.zip(&curves).for_each(|(a, c)| *a *= c);
        }
        self.pull(v, &along, &features, out);
        Ok(())
    }

    fn renew(&mut self, step: usize) {
        self.subsample.renew(step);
    }

    fn is_noisy(&self) -> bool {
        self.subsample.is_noisy()
    }
}

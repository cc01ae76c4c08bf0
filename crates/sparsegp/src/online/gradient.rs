//! Slopes of the bound by kernels, likelihood and new inducing points, at a fixed q(b) = N(m, S) of the values: at the best
//! q they are those of the bound that q has been maximised out of. Old sites are constants.

use super::moments::Moments;
use super::prior::{Old, Prior};
use super::site::{times, weigh_columns};
use super::update::Update;
use crate::error::Result;
use crate::kernels::{Cotangents, Kernel, Tape, place_of};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, Par, gemm, product, solve_lower_transpose, symmetrise,
};

/// Cotangents of the covariances of one latent function, and of q.
#[derive(Clone, Debug)]
pub struct Adjoints {
    /// Of K_bb with its jitter, M×M, symmetric.
    pub kbb: Mat<f64>,
    /// Of K_bf, M×B.
    pub kbf: Mat<f64>,
    /// Of the variances of the rows, B.
    pub kff: Vec<f64>,
    /// Of K_ab, Mₐ×M, and of K_aa, Mₐ×Mₐ; none without an old site, or where its points are the new ones.
    pub old: Option<(Mat<f64>, Mat<f64>)>,
    /// Of m.
    pub mean: Vec<f64>,
    /// Of S, symmetric.
    pub covariance: Mat<f64>,
}

/// Slopes of the bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradient {
    /// By the constrained hyperparameters of every kernel.
    pub kernels: Vec<Vec<f64>>,
    /// By the constrained parameters of the likelihood.
    pub likelihood: Vec<f64>,
    /// By the new inducing points, M×D.
    pub z: Mat<f64>,
}

fn outer(a: &[f64], b: &[f64]) -> Mat<f64> {
    Mat::from_fn(a.len(), b.len(), |i, j| a[i] * b[j])
}

fn add(to: &mut Mat<f64>, a: MatRef<f64>, b: MatRef<f64>, factor: f64) {
    gemm(to.as_mut(), Accum::Add, a, b, factor, Par::Seq);
}

/// Returns L⁻ᵀa.
fn back(prior: &Prior, a: MatRef<f64>) -> Mat<f64> {
    let mut out = a.to_owned();
    solve_lower_transpose(prior.factor.l.as_ref(), out.as_mut(), Par::Seq);
    out
}

/// Computes the adjoints of one latent function, given ∂E/∂μ and ∂E/∂v of the rows with W =
/// L⁻¹K_bf.
fn adjoints(
    prior: &Prior,
    q: &Moments,
    w: MatRef<f64>,
    alpha: &[f64],
    gamma: &[f64],
) -> Result<Adjoints> {
    let (m, s) = q.of_values(&prior.factor);
    let p = prior.factor.inverse();
    let a = back(prior, w);
    let pm = times(p.as_ref(), &m);
    let sp = product(s.as_ref(), p.as_ref());
    // AΓ, and AΓAᵀ
    let ag = weigh_columns(a.as_ref(), gamma);
    let aga = product(ag.as_ref(), a.transpose());
    let aa = times(a.as_ref(), alpha);

    // P(mαᵀ + 2SAΓ) − 2AΓ
    let mut kbf = outer(&pm, alpha);
    add(&mut kbf, sp.transpose(), ag.as_ref(), 2.0);
    kbf -= &ag * faer::Scale(2.0);

    // −[Aα mᵀP − AΓAᵀ + 2AΓAᵀSP] − ½(P − PM₂P), the symmetric part
    let mut second = s.clone();
    second += outer(&m, &m);
    let m2p = product(second.as_ref(), p.as_ref());
    let mut kbb = outer(&aa, &pm) * faer::Scale(-1.0);
    kbb += &aga;
    add(&mut kbb, aga.as_ref(), sp.as_ref(), -2.0);
    kbb -= &p * faer::Scale(0.5);
    add(&mut kbb, p.as_ref(), m2p.as_ref(), 0.5);

    let mut mean: Vec<f64> = aa.iter().zip(&pm).map(|(a, p)| a - p).collect();
    let mut covariance = aga;
    covariance -= &p * faer::Scale(0.5);
    // S⁻¹ = L⁻ᵀ S̃⁻¹ L⁻¹
    let inverse = Cholesky::new(q.covariance.as_ref(), Jitter::Absolute(0.0), "S")?.inverse();
    let inverse = back(prior, back(prior, inverse.as_ref()).transpose());
    covariance += &inverse * faer::Scale(0.5);

    let old = prior.old.as_ref().and_then(|old| {
        let Pulled { kab, kaa, kbb: more, mean: h, covariance: c } = of_old(prior, old, &m, &m2p);
        mean.iter_mut().zip(&h).for_each(|(sum, own)| *sum += own);
        covariance += &c;
        // where a is b, the old values depend on no kernel
        (!old.same).then(|| {
            kbb += &more;
            (kab, kaa)
        })
    });
    symmetrise(kbb.as_mut());
    symmetrise(covariance.as_mut());
    Ok(Adjoints { kbb, kbf, kff: gamma.to_vec(), old, mean, covariance })
}

/// The part of the old site.
struct Pulled {
    kab: Mat<f64>,
    kaa: Mat<f64>,
    kbb: Mat<f64>,
    mean: Vec<f64>,
    covariance: Mat<f64>,
}

fn of_old(prior: &Prior, old: &Old, m: &[f64], m2p: &Mat<f64>) -> Pulled {
    // A_aᵀ, M×Mₐ
    let at = back(prior, old.w.as_ref());
    let lambda_a = product(old.precision.as_ref(), at.transpose());
    let ala = product(at.as_ref(), lambda_a.as_ref());
    let ah = times(at.as_ref(), &old.linear);
    let pm = times(prior.factor.inverse().as_ref(), m);
    // −[A_aᵀh mᵀP + ½A_aᵀΛA_a − A_aᵀΛA_a M₂P]
    let mut kbb = outer(&ah, &pm) * faer::Scale(-1.0);
    kbb -= &ala * faer::Scale(0.5);
    add(&mut kbb, ala.as_ref(), m2p.as_ref(), 1.0);
    // (h mᵀ − ΛA_aM₂)P + ΛA_a
    let mut kab = outer(&old.linear, &pm);
    add(&mut kab, lambda_a.as_ref(), m2p.as_ref(), -1.0);
    kab += &lambda_a;
    let mut kaa = &old.precision * faer::Scale(-0.5);
    if let Some(root) = &old.root {
        solve_lower_transpose(root.as_ref(), kab.as_mut(), Par::Seq);
        solve_lower_transpose(root.as_ref(), kaa.as_mut(), Par::Seq);
        solve_lower_transpose(root.as_ref(), kaa.as_mut().transpose_mut(), Par::Seq);
    }
    let away = times(ala.as_ref(), m);
    let mean = ah.iter().zip(&away).map(|(h, a)| h - a).collect();
    let covariance = &ala * faer::Scale(-0.5);
    Pulled { kab, kaa, kbb, mean, covariance }
}

/// Pulls a cotangent of K(a, b) back; `z` receives the part of a.
fn pull(
    kernel: &dyn Kernel,
    (a, b): (MatRef<f64>, Option<MatRef<f64>>),
    mut bar: Mat<f64>,
    params: &mut [f64],
    z: Option<&mut Mat<f64>>,
) {
    let mut tape = Tape::recording();
    let mut k = Mat::zeros(a.nrows(), b.map_or(a.nrows(), |b| b.nrows()));
    kernel.evaluate(a, b, k.as_mut(), &mut tape);
    let mut sinks = Cotangents { params, x: z.map(|z| z.as_mut()), z: None };
    kernel.vjp(a, b, k.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
}

impl Update<'_> {
    /// Returns the cotangents of the covariances and of q at any whitened q, of every latent
    /// function.
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`] if a covariance of q is singular.
    pub fn adjoints_at(&self, q: &[Moments]) -> Result<Vec<Adjoints>> {
        let expected = self.expect(q);
        let of = |l: usize| {
            let (alpha, gamma) = (&expected.mean[l], &expected.variance[l]);
            adjoints(&self.priors[l], &q[l], self.rows[l].0.as_ref(), alpha, gamma)
        };
        (0..q.len()).map(of).collect()
    }

    /// Returns the slopes of the bound at any whitened q, with N(m, S) of the values held. At the q
    /// of converged sites they are those of the maximised bound.
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`] if a covariance of q is singular.
    pub fn gradient_at(&self, q: &[Moments]) -> Result<Gradient> {
        let mut z = Mat::zeros(self.z.nrows(), self.z.ncols());
        let mut kernels: Vec<Vec<f64>> =
            self.kernels.iter().map(|kernel| vec![0.0; kernel.num_params()]).collect();
        for (l, mut own) in self.adjoints_at(q)?.into_iter().enumerate() {
            let kernel = self.kernel(l);
            let params = &mut kernels[place_of(self.kernels.len(), l)];
            self.priors[l].factor.pull_jitter(&mut own.kbb);
            pull(kernel, (self.z, None), own.kbb, params, Some(&mut z));
            pull(kernel, (self.z, Some(self.batch.x)), own.kbf, params, Some(&mut z));
            let mut sinks = Cotangents { params, x: None, z: None };
            kernel.diag_vjp(self.batch.x, &own.kff, &mut sinks);
            if let (Some((kab, kaa)), Some(old)) = (own.old, &self.priors[l].old) {
                let at = old.z.as_ref();
                pull(kernel, (self.z, Some(at)), kab.transpose().to_owned(), params, Some(&mut z));
                pull(kernel, (at, None), kaa, params, None);
            }
        }
        Ok(Gradient { kernels, likelihood: self.expect(q).params, z })
    }
}

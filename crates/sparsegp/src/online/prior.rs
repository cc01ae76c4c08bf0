//! The prior at new inducing points together with what old rows said.

use super::moments::Moments;
use super::site::{Site, threads, times, weigh_columns};
use crate::error::{Error, Result};
use crate::kernels::{self, Kernel, covariances};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, Par, dot, gemm, product, solve_lower,
    solve_lower_transpose, sum_of_products, symmetrise,
};

/// p(b) of one latent function at new points, times the site of old ones.
#[derive(Clone, Debug)]
pub struct Prior {
    /// L of K_bb with its jitter.
    pub factor: Cholesky,
    /// What old rows said, if there were any.
    pub(super) old: Option<Old>,
}

/// A site, seen from the new points. t is what the site is of ([`Site`]).
#[derive(Clone, Debug)]
pub(super) struct Old {
    /// W = L⁻¹ cov(b, t), M×Mₐ.
    pub(super) w: Mat<f64>,
    /// Λ.
    pub(super) precision: Mat<f64>,
    /// h.
    pub(super) linear: Vec<f64>,
    /// The site's points and root.
    pub(super) z: Mat<f64>,
    pub(super) root: Option<Mat<f64>>,
    constant: f64,
    /// WΛWᵀ, M×M.
    gram: Mat<f64>,
    /// Wh.
    shift: Vec<f64>,
    /// tr Λ(K_tt − WᵀW) ≥ 0: what the new points cannot say of the old ones costs half of it.
    unexplained: f64,
    /// Whether the points are the old ones: then a = b whatever the kernel.
    pub(super) same: bool,
}

/// q(b) and what it gains.
#[derive(Clone, Debug)]
pub struct Posterior {
    /// q of the whitened values.
    pub q: Moments,
    /// G = ½cᵀD⁻¹c − ½log|D|: the log of the mean of all sites under the prior, but for their constants.
    pub gain: f64,
}

impl Old {
    fn new(kernel: &dyn Kernel, z: MatRef<f64>, factor: &Cholesky, site: &Site) -> Self {
        let l = factor.l.as_ref();
        let same = site.z.as_ref() == z;
        // points that stay are the values themselves, with the jitter that these have
        let mut w = match same {
            true => l.transpose().to_owned(),
            false => {
                let mut w = covariances(kernel, z, Some(site.z.as_ref()));
                solve_lower(l, w.as_mut(), Par::Seq);
                w
            }
        };
        if let Some(root) = &site.root {
            solve_lower(root.as_ref(), w.as_mut().transpose_mut(), Par::Seq);
        }
        let lambda_w = product(site.precision.as_ref(), w.transpose());
        let mut gram = product(w.as_ref(), lambda_w.as_ref());
        symmetrise(gram.as_mut());
        let unexplained = match same {
            true => 0.0,
            false => {
                let mut rest = covariances(kernel, site.z.as_ref(), None);
                if let Some(root) = &site.root {
                    solve_lower(root.as_ref(), rest.as_mut(), Par::Seq);
                    solve_lower(root.as_ref(), rest.as_mut().transpose_mut(), Par::Seq);
                }
                gemm(rest.as_mut(), Accum::Add, w.transpose(), w.as_ref(), -1.0, Par::Seq);
                dot(site.precision.as_ref(), rest.as_ref())
            }
        };
        Self {
            shift: times(w.as_ref(), &site.linear),
            w,
            precision: site.precision.clone(),
            linear: site.linear.clone(),
            z: site.z.clone(),
            root: site.root.clone(),
            constant: site.constant,
            gram,
            unexplained,
            same,
        }
    }
}

impl Prior {
    /// Meets the prior of `kernel` at new points `z` (M×D) with an old site. Where the points are those of the site, to the bit, the
    /// old values are the new ones whatever the kernel became; otherwise only K_bb has jitter.
    ///
    /// # Errors
    /// [`Error::Shape`] if the site is of other inputs; [`Error::NotPositiveDefinite`] for points too close.
    pub fn new(
        kernel: &dyn Kernel,
        z: MatRef<f64>,
        jitter: Jitter,
        site: Option<&Site>,
    ) -> Result<Self> {
        if let Some(site) = site.filter(|site| site.z.ncols() != z.ncols()) {
            return Err(Error::Shape {
                what: "inducing points of what old rows said".into(),
                expected: format!("{} columns", z.ncols()),
                found: format!("{}", site.z.ncols()),
            });
        }
        let factor = kernels::factor(kernel, z, jitter, "Kuu")?;
        let old = site.map(|site| Old::new(kernel, z, &factor, site));
        Ok(Self { factor, old })
    }

    /// Returns W = L⁻¹K_bf (M×B) and the prior variances (B numbers) of rows `x` (B×D).
    pub fn rows(
        &self,
        kernel: &dyn Kernel,
        z: MatRef<f64>,
        x: MatRef<f64>,
    ) -> (Mat<f64>, Vec<f64>) {
        let mut w = covariances(kernel, z, Some(x));
        let par = threads(w.nrows(), w.ncols());
        solve_lower(self.factor.l.as_ref(), w.as_mut(), par);
        let mut diag = vec![0.0; x.nrows()];
        kernel.diag(x, &mut diag);
        (w, diag)
    }

    /// Returns q(b) given the sites λ, β of rows with W (M×B).
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if negative precisions leave no Gaussian.
    pub fn posterior(&self, w: MatRef<f64>, first: &[f64], second: &[f64]) -> Result<Posterior> {
        let m = self.factor.size();
        let mut d = Mat::identity(m, m);
        let mut c = times(w, first);
        if let Some(old) = &self.old {
            d += &old.gram;
            c.iter_mut().zip(&old.shift).for_each(|(c, shift)| *c += shift);
        }
        if second.iter().any(|beta| *beta != 0.0) {
            let scaled = weigh_columns(w, second);
            let par = threads(w.nrows(), w.ncols());
            gemm(d.as_mut(), Accum::Add, w, scaled.transpose(), 1.0, par);
            symmetrise(d.as_mut());
        }
        let factor = Cholesky::new(d.as_ref(), Jitter::Absolute(0.0), "I + WβWᵀ")?;
        let covariance = factor.inverse();
        let mean = times(covariance.as_ref(), &c);
        let log_det = factor.log_det();
        let gain = 0.5 * sum_of_products(&c, &mean) - 0.5 * log_det;
        Ok(Posterior { q: Moments { mean, covariance, log_det: -log_det }, gain })
    }

    /// Expects the log of the old site under q, `c + hᵀE[t] − ½ tr Λ E[ttᵀ]`; 0 without one.
    pub fn old_term(&self, q: &Moments) -> f64 {
        self.old.as_ref().map_or(0.0, |old| {
            old.constant + sum_of_products(&old.shift, &q.mean)
                - 0.5 * (old.unexplained + q.second(old.gram.as_ref()))
        })
    }

    /// Returns what old rows said, on the scale of L⁻¹b: WΛWᵀ (M×M) and Wh (M numbers). None before
    /// the first batch.
    pub fn said(&self) -> Option<(MatRef<'_, f64>, &[f64])> {
        self.old.as_ref().map(|old| (old.gram.as_ref(), old.shift.as_slice()))
    }

    /// Returns what removing or moving points costs of what old rows said: ½ tr Λ(K_aa − Q_aa).
    pub fn lost(&self) -> f64 {
        self.old.as_ref().map_or(0.0, |old| 0.5 * old.unexplained)
    }

    /// Returns the site of old and new rows together, at the new points `z`.
    pub fn site(
        &self,
        z: MatRef<f64>,
        w: MatRef<f64>,
        (first, second): (&[f64], &[f64]),
        gain: f64,
    ) -> Site {
        let m = self.factor.size();
        let mut precision = Mat::zeros(m, m);
        let mut linear = vec![0.0; m];
        // A diag(β) Aᵀ and A_aᵀΛA_a are sums: nothing is subtracted
        let mut add = |a: &Mat<f64>, left: &Mat<f64>, h: &[f64]| {
            let par = threads(a.nrows(), a.ncols());
            gemm(precision.as_mut(), Accum::Add, left.as_ref(), a.transpose(), 1.0, par);
            linear.iter_mut().zip(times(a.as_ref(), h)).for_each(|(sum, own)| *sum += own);
        };
        let back = |w: MatRef<f64>| {
            let mut a = w.to_owned();
            let par = threads(a.nrows(), a.ncols());
            solve_lower_transpose(self.factor.l.as_ref(), a.as_mut(), par);
            a
        };
        if w.ncols() > 0 {
            let a = back(w);
            add(&a, &weigh_columns(a.as_ref(), second), first);
        }
        match &self.old {
            // A_a is the identity: points that stay add up
            Some(old) if old.same && old.root.is_none() => {
                precision += &old.precision;
                linear.iter_mut().zip(&old.linear).for_each(|(sum, own)| *sum += own);
            }
            Some(old) => {
                let a = back(old.w.as_ref());
                add(&a, &product(a.as_ref(), old.precision.as_ref()), &old.linear);
            }
            None => {}
        }
        symmetrise(precision.as_mut());
        Site { z: z.to_owned(), precision, linear, constant: -gain, root: None }
    }
}

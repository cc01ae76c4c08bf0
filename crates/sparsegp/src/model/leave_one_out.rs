//! Leave-one-out predictions without training or conditioning again.
//!
//! A posterior of latent values is the prior times a Gaussian site exp(λ₁f − ½λ₂f²) of every row. Without the
//! row's own site (the cavity) the marginal N(μ, s + r) of fᵢ becomes N(μ₋, s₋ + r) with
//!
//! ```text
//! s₋ = s/(1 − λ₂s)      μ₋ = μ − s₋α      α = λ₁ − λ₂(μ − m) = ∂ℓ/∂μ
//! ```
//!
//! and p(yᵢ | other rows) = ∫ p(yᵢ | f) N(f; μ₋, s₋ + r) df. For Gaussian noise that is what a model conditioned
//! on the other rows predicts at the same hyperparameters and inducing points; without inducing points
//! 1 − λ₂s = [G⁻¹]ᵢᵢ/λ₂, G = K + diag(1/λ₂), which gives Rasmussen & Williams 2006, Eq. 5.10–5.12. For another
//! likelihood it is the approximation of Opper & Winther 2000 by cavities, with the sites of variational
//! inference, λ₂ = −2 ∂ℓ/∂s.

mod kept;

use super::posterior::{Gaussian, Split};
use super::{Model, Posterior, RowSite};
use crate::bounds::{Row, RowSlopes};
use crate::data::{Rows, Source};
use crate::error::{Error, Result};
use crate::likelihoods::{Likelihood, Target};
use crate::linalg::in_parts;
use crate::linalg::{Mat, MatRef};
use crate::variational::sites::least_raised;

/// Every row as the others predict it.
#[derive(Clone, Debug)]
pub struct LeaveOneOut {
    /// Means of the latent functions, N×L.
    pub f_mean: Mat<f64>,
    /// Their variances, N×L.
    pub f_variance: Mat<f64>,
    /// Means of the observations, N×P.
    pub mean: Mat<f64>,
    /// Their variances, N×P.
    pub variance: Mat<f64>,
    /// log p(yᵢ | other rows), N×P; NaN where the target is missing.
    pub log_density: Mat<f64>,
}

/// What is known where the rows are the points of a posterior without inducing points.
struct Direct {
    /// diag G⁻¹ and G⁻¹(f − m), N×L.
    precision: Mat<f64>,
    alpha: Mat<f64>,
    /// λ₂, N×L.
    second: Mat<f64>,
}

impl Direct {
    /// Creates it if the rows are the posterior's points in the same order.
    fn of(
        posterior: &Posterior,
        gaussian: &Gaussian,
        model: &Model,
        data: &dyn Source,
    ) -> Result<Option<Self>> {
        let (n, latents) = (data.rows(), posterior.latents());
        if model.method.is_sparse() || posterior.points().nrows() != n {
            return Ok(None);
        }
        let (mut same, points) = (true, posterior.points());
        data.for_each_chunk(1 << 14, &mut |rows| {
            same &= rows.x == points.subrows(rows.start, rows.x.nrows());
            Ok(())
        })?;
        if !same {
            return Ok(None);
        }
        let second = match &model.q {
            Some(q) => {
                // as the posterior has them
                let own = |l: usize| &q.second.value()[l * n..(l + 1) * n];
                let raised: Vec<Vec<f64>> = (0..latents).map(|l| least_raised(own(l))).collect();
                Mat::from_fn(n, latents, |i, l| raised[l][i])
            }
            None => {
                let (noise, own) = (model.noise(), posterior.row_noise());
                Mat::from_fn(n, latents, |i, _| 1.0 / own.get(i).copied().unwrap_or(noise))
            }
        };
        let (precision, alpha) = gaussian.at_points();
        Ok(Some(Self { precision, alpha, second }))
    }

    /// Returns α and s₋ of a row whose variance is s.
    fn cavity(&self, at: (usize, usize), s: f64) -> (f64, f64) {
        let second = self.second[at];
        let rest = self.precision[at] / second;
        // s is K less what the rows explain: for little noise 1/λ₂ − [G⁻¹]ᵢᵢ/λ₂² has more digits
        let s = if rest < 0.5 { (1.0 - rest) / second } else { s };
        (self.alpha[at], s / rest)
    }
}

impl Posterior {
    /// Refuses a model whose rows cannot be left out; gives the posterior that they are left out of.
    ///
    /// # Errors
    /// [`Error::Invalid`] for mixed latent functions, hidden layers, and methods whose posterior is not made of sites of rows.
    fn check_leave_one_out(&self, model: &Model) -> Result<&Gaussian> {
        if self.likelihood().mixing().is_some() {
            return Err(Error::Invalid(
                "rows of mixed latent functions cannot be left out: their targets share the functions; use a \
                 likelihood with functions of each target's own, or train without the rows"
                    .into(),
            ));
        }
        model.check_shallow("leaving one row out")?;
        let none = matches!(model.method.row_site(), RowSite::None);
        self.alone().filter(|_| !none).ok_or_else(|| {
            Error::Invalid(format!(
                "the posterior of method `{}` is not made of sites of rows, which leaving one out takes away; \
                 use `exact`, `tsvgp` or `svgp`",
                model.method.name()
            ))
        })
    }

    /// Tells whether rows can be left out ([`Posterior::leave_one_out`]).
    pub fn leaves_one_out(&self, model: &Model) -> bool {
        self.conditioned().is_some() || self.check_leave_one_out(model).is_ok()
    }

    /// Returns every row of the training data (in any order, of the model's scale) as the others
    /// predict it, at the same hyperparameters. O(N³) without inducing points, else O(NM²).
    ///
    /// # Errors
    /// [`Error::Invalid`] for methods whose posterior is not made of sites of rows (`lsvgp`, `rsvgp`, and those
    /// that sample), and where a row has more precision than the posterior, which happens where the rows are
    /// not those that it was conditioned on, or q is far from its optimum; [`Error::Shape`].
    pub fn leave_one_out(&self, model: &Model, data: &dyn Source) -> Result<LeaveOneOut> {
        let (n, outputs, latents) = (data.rows(), self.outputs(), self.latents());
        if data.outputs() != outputs {
            return Err(Error::Shape {
                what: "targets of the rows to leave out".into(),
                expected: format!("{outputs} columns"),
                found: format!("{}", data.outputs()),
            });
        }
        if let Some(own) = self.conditioned() {
            return kept::leave_one_out(own, model, data);
        }
        let gaussian = self.check_leave_one_out(model)?;
        let site = model.method.row_site();
        let direct = Direct::of(self, gaussian, model, data)?;
        let zeros = |columns| Mat::zeros(n, columns);
        let mut all = LeaveOneOut {
            f_mean: zeros(latents),
            f_variance: zeros(latents),
            mean: zeros(outputs),
            variance: zeros(outputs),
            log_density: zeros(outputs),
        };
        let likelihood = self.likelihood();
        let context = Context { gaussian, likelihood, model, direct: direct.as_ref(), site };
        data.for_each_chunk(1 << 14, &mut |rows| {
            let parts = in_parts(rows.x, |start, x| context.rows(x, rows.part(start, x.nrows())))?;
            let mut start = rows.start;
            for part in parts {
                let put = |to: &mut Mat<f64>, from: &Mat<f64>| {
                    to.as_mut().subrows_mut(start, from.nrows()).copy_from(from);
                };
                put(&mut all.f_mean, &part.f_mean);
                put(&mut all.f_variance, &part.f_variance);
                put(&mut all.mean, &part.mean);
                put(&mut all.variance, &part.variance);
                put(&mut all.log_density, &part.log_density);
                start += part.mean.nrows();
            }
            Ok(())
        })?;
        Ok(all)
    }
}

struct Context<'a> {
    gaussian: &'a Gaussian,
    likelihood: &'a dyn Likelihood,
    model: &'a Model,
    direct: Option<&'a Direct>,
    site: RowSite,
}

impl Context<'_> {
    fn rows(&self, x: MatRef<'_, f64>, rows: Rows<'_>) -> Result<LeaveOneOut> {
        let likelihood = self.likelihood;
        let Split { mean: mut mu, s: mut v, mut r } = self.gaussian.split(x)?;
        let (n, k, outputs) = (x.nrows(), likelihood.latents(), rows.y.ncols());
        let zeros = || Mat::zeros(n, outputs);
        let (mut mean, mut variance, mut log_density) = (zeros(), zeros(), zeros());
        let default = likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        let mut slopes = Slopes::new(k, likelihood.num_params());
        for p in 0..outputs {
            for i in 0..n {
                let extra = rows.extra.get(i).copied().unwrap_or(default);
                let weight = rows.weights.get(i).copied().unwrap_or(1.0);
                let target = Target { y: rows.y[(i, p)], extra };
                let part =
                    |a: &Mat<f64>| -> Vec<f64> { (0..k).map(|l| a[(i, p * k + l)]).collect() };
                let own = [part(&mu), part(&v), part(&r)];
                if !target.y.is_nan() && weight != 0.0 {
                    if self.direct.is_none() {
                        self.slopes(target, weight, &own, p * k, &mut slopes);
                    }
                    for (l, s) in own[1].iter().enumerate() {
                        let at = (i, p * k + l);
                        let (alpha, cavity) = match self.direct {
                            Some(direct) => direct.cavity((rows.start + i, p * k + l), *s),
                            None => (slopes.a[l], s / (1.0 + 2.0 * slopes.b[l] * s)),
                        };
                        if !(cavity >= 0.0 && cavity.is_finite()) {
                            return Err(Error::Invalid(format!(
                                "row {} cannot be left out: it has more precision than the posterior. The rows \
                                 must be those of the training, and q at its optimum: train further",
                                rows.start + i + 1
                            )));
                        }
                        v[at] = cavity;
                        mu[at] -= cavity * alpha;
                    }
                }
                for l in p * k..(p + 1) * k {
                    r[(i, l)] = (r[(i, l)] + v[(i, l)]).max(0.0);
                }
                let (f, spread) = (part(&mu), part(&r));
                (mean[(i, p)], variance[(i, p)]) = likelihood.predict(extra, &f, &spread);
                log_density[(i, p)] = match target.y.is_nan() {
                    true => f64::NAN,
                    false => likelihood.predict_log_density(target, &f, &spread),
                };
            }
        }
        Ok(LeaveOneOut { f_mean: mu, f_variance: r, mean, variance, log_density })
    }

    /// Computes slopes ∂ℓ/∂μ and ∂ℓ/∂s of a row at its marginals [μ, s, r].
    fn slopes(
        &self,
        target: Target,
        weight: f64,
        own: &[Vec<f64>; 3],
        first: usize,
        out: &mut Slopes,
    ) {
        let [mu, s, r] = own;
        match self.site {
            RowSite::None => {}
            RowSite::Noise { alpha } => {
                let known = self.model.likelihood.extra().map_or(0.0, |_| target.extra);
                let noise = self.model.noise() + known + alpha * r[0];
                out.a[0] = weight * (target.y - mu[0]) / noise;
                out.b[0] = -0.5 * weight / noise;
            }
            RowSite::Bound(bound) => {
                let factors = self.model.q.as_ref().and_then(|q| q.v.as_ref());
                let v: Vec<f64> =
                    (0..mu.len()).map(|l| factors.map_or(1.0, |v| v.value()[first + l])).collect();
                let row = Row { target, weight, mu, s, r, v: &v };
                let Slopes { a, b, c, by_v, params, variance } = out;
                let slopes = RowSlopes { a, b, c, v: by_v, params };
                bound.row(&*self.model.likelihood, &row, slopes, variance);
            }
        }
    }
}

/// Memory for the slopes of one row.
struct Slopes {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    by_v: Vec<f64>,
    params: Vec<f64>,
    variance: Vec<f64>,
}

impl Slopes {
    fn new(k: usize, params: usize) -> Self {
        let zeros = || vec![0.0; k];
        let params = vec![0.0; params];
        Self { a: zeros(), b: zeros(), c: zeros(), by_v: zeros(), params, variance: zeros() }
    }
}

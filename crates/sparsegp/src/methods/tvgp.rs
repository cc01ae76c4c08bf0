//! Variational inference without inducing points, by sites of all rows: t-VGP (Adam, Chang, Khan & Solin
//! 2021, §3, Eq. 9–12; Opper & Archambeau 2009 for the form of q). K̄ is derived from these, by the adjoint of
//! m = Kd and S = K − KTK.
//!
//! With K = K(X), w = √λ₂ and B = I + diag(w) K diag(w), for every latent function
//!
//! ```text
//! T = diag(w) B⁻¹ diag(w)    d = λ₁ − TKλ₁    m = Kd    v = diag K − diag KTK
//! KL = ½{tr B⁻¹ − N + dᵀm + log|B|}
//! K̄ = J diag(∂ℓ/∂v + ½λ₂) Jᵀ − ½T + ½ddᵀ + sym[J(α − d) dᵀ]     J = I − TK, α = ∂ℓ/∂m
//! ```
//!
//! K̄ is that at fixed sites, wherever they are; at their fixed point α = d and λ₂ = −2 ∂ℓ/∂v leave
//! ½(ddᵀ − T), the gradient of the sites' log-normaliser. For Gaussian noise a step of size 1 gives the
//! exact posterior, and the bound is the log evidence at any hyperparameters of the kernel.

mod best;
mod promise;
mod sited;

use super::exact::MOST_ROWS;
use super::uncollapsed::Bound;
use super::uncollapsed::rows::{LikelihoodRows, sum};
use super::{Diagnostics, Evaluation, Keeps, Method, RowSite, Sampler, WithQ, finite};
use crate::data::{InMemory, Source};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::kernels::{Cotangents, Tape, of_latent};
use crate::linalg::{Cholesky, Jitter, Mat, column, product};
use crate::model::{Model, Posterior};
use crate::variational::sites::least_raised;
use crate::variational::{Tying, Variational};
use sited::{Sited, weighted};

/// Sites of all rows, without inducing points.
#[derive(Clone, Copy)]
pub struct Tvgp {
    /// Its name.
    pub name: &'static str,
    /// What a row contributes.
    pub bound: &'static dyn Bound,
    /// What samples the posterior in the end.
    pub sampler: Option<Sampler>,
}

impl std::fmt::Debug for Tvgp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tvgp({})", self.name)
    }
}

/// What a pass over the rows gives at the present sites.
struct Pass {
    rows: InMemory,
    /// K of each kernel, with the jitter, and what it recorded.
    covariances: Vec<(Mat<f64>, Mat<f64>, Tape)>,
    latents: Vec<Sited>,
    value: f64,
    /// ∂ℓ/∂m and ∂ℓ/∂v, N×L.
    a: Mat<f64>,
    b: Mat<f64>,
    params: Vec<f64>,
    /// What the likelihood's parameters become in closed form.
    updated: Vec<Option<f64>>,
}

/// What a step of the sites is made of ([`Tvgp::look`]).
#[derive(Debug)]
pub struct Look {
    /// The bound.
    pub value: f64,
    /// ∂ℓ/∂m and ∂ℓ/∂v, cut at the smallest precision, N×L.
    a: Mat<f64>,
    b: Mat<f64>,
    /// d and m of every latent function, N×L.
    d: Mat<f64>,
    m: Mat<f64>,
}

impl Look {
    /// Returns the slopes of the bound with respect to m, ∂ℓ/∂m − K⁻¹m = ∂ℓ/∂m − d, N numbers of
    /// every latent function in turn.
    pub fn mean_slopes(&self) -> Vec<f64> {
        let slopes = &self.a - &self.d;
        (0..slopes.ncols()).flat_map(|l| column(slopes.as_ref(), l).to_vec()).collect()
    }
}

/// Returns all rows with what they bring.
fn rows_of(name: &str, data: &dyn Source) -> Result<InMemory> {
    if data.rows() > MOST_ROWS {
        return Err(Error::Invalid(format!(
            "method `{name}` with {} rows needs {:.0} GiB for one matrix; choose a sparse method such as \
             tsvgp",
            data.rows(),
            (data.rows() as f64).powi(2) * 8.0 / (1u64 << 30) as f64
        )));
    }
    super::collect(data)
}

/// Takes the averages of the `each` latent functions of a target off d and m (N×L), and calls `shift` with every row, latent
/// function and the averages d̄ and m̄ that it lost: see [`Tvgp::centre`]. Returns by how much the bound rises.
pub(super) fn centred(
    each: usize,
    d: &mut Mat<f64>,
    m: &mut Mat<f64>,
    mut shift: impl FnMut(usize, usize, f64, f64),
) -> f64 {
    let mut rise = 0.0;
    for start in (0..m.ncols()).step_by(each) {
        let group = start..start + each;
        for i in 0..m.nrows() {
            let mean = |of: &Mat<f64>| group.clone().map(|l| of[(i, l)]).sum::<f64>() / each as f64;
            let (by_d, by_m) = (mean(d), mean(m));
            rise += 0.5 * each as f64 * by_d * by_m;
            for l in group.clone() {
                shift(i, l, by_d, by_m);
                d[(i, l)] -= by_d;
                m[(i, l)] -= by_m;
            }
        }
    }
    rise
}

/// Returns the sites of a model.
fn sites(model: &Model) -> Result<&Variational> {
    let found = model.q.as_ref().filter(|q| q.tying() == Some(Tying::Untied));
    found.ok_or_else(|| {
        Error::Invalid(format!("method `{}` needs sites of all rows", model.method.name()))
    })
}

/// Returns K of every kernel at the inputs, with an absolute jitter if the model has one (B needs
/// none).
fn covariances(model: &Model, x: &Mat<f64>, record: bool) -> Vec<(Mat<f64>, Mat<f64>, Tape)> {
    let n = x.nrows();
    let one = |kernel: &dyn crate::kernels::Kernel| {
        let mut tape = if record { Tape::recording() } else { Tape::off() };
        let mut plain = Mat::zeros(n, n);
        kernel.evaluate(x.as_ref(), None, plain.as_mut(), &mut tape);
        let mut k = plain.clone();
        if let Jitter::Absolute(jitter) = model.jitter {
            (0..n).for_each(|i| k[(i, i)] += jitter);
        }
        (plain, k, tape)
    };
    model.kernels.iter().map(|kernel| one(&**kernel)).collect()
}

impl Tvgp {
    /// Returns a method as one that keeps sites of all rows.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another method.
    pub fn of(method: &dyn Method) -> Result<Self> {
        match method.with_q().filter(|q| !q.is_of_points()) {
            Some(WithQ { bound, .. }) => {
                Ok(Self { name: method.name(), bound, sampler: method.sampler() })
            }
            None => Err(Error::Invalid(format!(
                "method `{}` keeps no sites of all rows; `tvgp` does",
                method.name()
            ))),
        }
    }

    /// Refuses mixing: sites of rows are of latent functions that are not mixed.
    fn check_mixing(&self, model: &Model) -> Result<()> {
        match model.likelihood.mixing() {
            None => Ok(()),
            Some(_) => Err(Error::Invalid(format!(
                "latent functions are mixed by `svgp` and `tsvgp` with tied sites; the method is `{}`",
                self.name
            ))),
        }
    }

    /// Makes a pass; `most` cuts ∂ℓ/∂v.
    fn pass(&self, model: &Model, data: &dyn Source, record: bool, most: f64) -> Result<Pass> {
        self.bound.check(&*model.likelihood)?;
        self.check_mixing(model)?;
        let q = sites(model)?;
        let rows = rows_of(self.name, data)?;
        let (n, p) = (rows.x.nrows(), rows.y.ncols());
        let each = model.likelihood.latents();
        let latents = each * p;
        if q.points() != n || q.latents() != latents {
            return Err(Error::Shape {
                what: "q.lambda1".into(),
                expected: format!("{n}×{latents}, rows by latent functions"),
                found: format!("{}×{}", q.points(), q.latents()),
            });
        }
        let covariances = covariances(model, &rows.x, record);
        let mut all = Vec::with_capacity(latents);
        for l in 0..latents {
            let (_, k, _) = of_latent(&covariances, l);
            let own = |values: &[f64]| values[l * n..(l + 1) * n].to_vec();
            all.push(Sited::new(k, &own(q.first.value()), &own(q.second.value()))?);
        }
        let mut mu = Mat::zeros(n, latents);
        model.mean.evaluate(rows.x.as_ref(), mu.as_mut());
        for (l, own) in all.iter().enumerate() {
            (0..n).for_each(|i| mu[(i, l)] += own.m[(i, 0)]);
        }
        let s = Mat::from_fn(n, latents, |i, l| all[l].v[i].max(0.0));
        let ones = vec![1.0; latents];
        let size = model.likelihood.num_params();
        let local = LikelihoodRows {
            likelihood: &*model.likelihood,
            bound: self.bound,
            v: &ones,
            params: size,
            rounding: 0.0,
            most,
            chosen: None,
            ratios: self.bound.closed_form(&*model.likelihood),
        };
        let (sums, a, b) = local.at(rows.all(), mu.as_ref(), s.as_ref());
        let mut value = sums[sum::VALUE];
        let params = sums[sum::PARAMS..][..size].to_vec();
        let updated = local.updated(&sums);
        for (l, own) in all.iter().enumerate() {
            value -= own.kl(&of_latent(&covariances, l).1);
        }
        let value = finite(value, "the bound")?;
        Ok(Pass { rows, covariances, latents: all, value, a, b, params, updated })
    }

    /// Moves the sites by a step of size `rate`: λ ← (1 − ρ)λ + ρ(α + βm, β), β = −2 ∂ℓ/∂v cut at the
    /// smallest precision; in turns, where the bound has more than one. Returns the bound before it.
    ///
    /// # Errors
    /// As for [`Method::evaluate`]; the model is unchanged then.
    pub fn step(&self, model: &mut Model, data: &dyn Source, rate: f64) -> Result<f64> {
        let look = self.look(model, data)?;
        self.move_from(&look, model, data, rate)?;
        Ok(look.value)
    }

    /// Returns what a step of the sites is made of.
    ///
    /// # Errors
    /// As for [`Method::evaluate`].
    pub fn look(&self, model: &Model, data: &dyn Source) -> Result<Look> {
        let most = -0.5 * sites(model)?.floor;
        let Pass { latents, value, a, b, .. } = self.pass(model, data, false, most)?;
        let of = |part: fn(&Sited) -> &Mat<f64>| {
            Mat::from_fn(a.nrows(), a.ncols(), |i, l| part(&latents[l])[(i, 0)])
        };
        let (d, m) = (of(|own| &own.d), of(|own| &own.m));
        Ok(Look { value, a, b, d, m })
    }

    /// Does [`Tvgp::step`] after a look at the present sites.
    ///
    /// # Errors
    /// As for [`Method::evaluate`]; what moved in the turns before has moved.
    pub fn move_from(
        &self,
        look: &Look,
        model: &mut Model,
        data: &dyn Source,
        rate: f64,
    ) -> Result<()> {
        self.turn(look, model, rate, 0)?;
        for turn in 1..self.bound.turns(&*model.likelihood) {
            self.turn(&self.look(model, data)?, model, rate, turn)?;
        }
        Ok(())
    }

    fn turn(&self, look: &Look, model: &mut Model, rate: f64, turn: usize) -> Result<()> {
        let each = model.likelihood.latents();
        let Some(q) = &mut model.q else { return sites(model).map(|_| ()) };
        let n = q.points();
        let pairs = q.first.value_mut().iter_mut().zip(q.second.value_mut());
        for (at, (first, second)) in pairs.enumerate() {
            let (l, i) = (at / n, at % n);
            if self.bound.turn(&*model.likelihood, l % each) != turn {
                continue;
            }
            let beta = -2.0 * look.b[(i, l)];
            let target = look.a[(i, l)] + beta * look.m[(i, l)];
            *first += rate * (target - *first);
            *second += rate * (beta - *second);
        }
        Ok(())
    }

    /// Moves sites so that the latent functions of a target have an average of 0, where only their differences matter
    /// and they share their kernel, as [`crate::methods::uncollapsed::Step::centre`] does: S⁻¹m = λ₁ with
    /// S⁻¹ = K⁻¹ + diag λ₂ and K⁻¹m = d, so that λ₁ −= d̄ + λ₂m̄ takes m̄ off, and KL(q‖p) falls by ½ d̄ᵀm̄ of each.
    pub fn centre(&self, look: &mut Look, model: &mut Model) {
        let each = model.likelihood.latents();
        let (Some(q), true, 1) =
            (&mut model.q, model.likelihood.shift_invariant(), model.kernels.len())
        else {
            return;
        };
        let n = q.points();
        let (first, second) = (q.first.value_mut(), q.second.value());
        look.value += centred(each, &mut look.d, &mut look.m, |i, l, d, m| {
            first[l * n + i] -= d + second[l * n + i] * m;
        });
    }

    /// Returns what the numbers among the likelihood's parameters become in closed form at the
    /// present sites, where they have an update ([`Bound::closed_form`]); empty if none has.
    ///
    /// # Errors
    /// As for [`Method::evaluate`].
    pub fn closed_form(&self, model: &Model, data: &dyn Source) -> Result<Vec<Option<f64>>> {
        if self.bound.closed_form(&*model.likelihood).is_none() {
            return Ok(Vec::new());
        }
        self.pass(model, data, false, f64::INFINITY).map(|pass| pass.updated)
    }

    /// Returns the bound.
    ///
    /// # Errors
    /// As for [`Method::evaluate`].
    pub fn value(&self, model: &Model, data: &dyn Source) -> Result<f64> {
        self.pass(model, data, false, f64::INFINITY).map(|pass| pass.value)
    }

    /// Returns the posterior of a model's sites at the inputs that they are of.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are other than as many inputs as sites.
    pub fn posterior_at(&self, model: &Model, x: &Mat<f64>) -> Result<Posterior> {
        let q = sites(model)?;
        let (n, latents) = (x.nrows(), q.latents());
        if q.points() != n {
            return Err(Error::Shape {
                what: "q.lambda1".into(),
                expected: format!("{n} rows"),
                found: format!("{}", q.points()),
            });
        }
        let covariances = covariances(model, x, false);
        let mut factors = Vec::with_capacity(latents);
        for l in 0..latents {
            let (_, k, _) = of_latent(&covariances, l);
            let first = &q.first.value()[l * n..(l + 1) * n];
            let raised = least_raised(&q.second.value()[l * n..(l + 1) * n]);
            let own = Sited::new(k, first, &raised)?;
            let inverse: Vec<f64> = own.w.iter().map(|w| 1.0 / w).collect();
            let factor = Cholesky::of_factor(weighted(&own.factor.l, &inverse));
            let mean = product(factor.l.transpose(), own.d.as_ref());
            factors.push((factor, mean));
        }
        Ok(Posterior::of_rows(model, x, factors))
    }
}

impl Method for Tvgp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_sparse(&self) -> bool {
        false
    }

    fn with_q(&self) -> Option<WithQ> {
        Some(WithQ { bound: self.bound, keeps: Keeps::RowSites })
    }

    fn sampler(&self) -> Option<Sampler> {
        self.sampler
    }

    fn row_site(&self) -> RowSite {
        RowSite::Bound(self.bound)
    }

    fn check(&self, model: &Model) -> Result<()> {
        self.check_mixing(model)?;
        self.bound.check(&*model.likelihood)
    }

    fn evaluate(&self, model: &Model, _: &dyn Engine, data: &dyn Source) -> Result<Evaluation> {
        let Pass { rows, mut covariances, latents, value, a, b, params, .. } =
            self.pass(model, data, true, f64::INFINITY)?;
        let x = rows.x.as_ref();
        let mut gradient = vec![0.0; model.num_params()];
        let parts = model.parts_of(&mut gradient);
        model.mean.vjp(x, a.as_ref(), parts.mean);
        parts.likelihood.copy_from_slice(&params);
        let (count, mut start) = (covariances.len(), 0);
        for (index, (plain, k, tape)) in covariances.iter_mut().enumerate() {
            let mut bar = Mat::zeros(k.nrows(), k.ncols());
            for (l, own) in latents.iter().enumerate().filter(|(l, _)| count == 1 || *l == index) {
                bar += own.adjoint(k, column(a.as_ref(), l), column(b.as_ref(), l));
            }
            let kernel = &model.kernels[index];
            let end = start + kernel.num_params();
            let mut sinks = Cotangents { params: &mut parts.kernel[start..end], x: None, z: None };
            kernel.vjp(x, None, plain.as_ref(), bar.as_mut(), tape, &mut sinks);
            start = end;
        }
        Ok(Evaluation { value, gradient, diagnostics: Diagnostics::default() })
    }

    fn posterior(&self, model: &Model, _: &dyn Engine, data: &dyn Source) -> Result<Posterior> {
        self.posterior_at(model, &super::collect(data)?.x)
    }
}

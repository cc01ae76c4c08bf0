//! Uncollapsed bounds: q(u) is a parameter, any likelihood, any part of the rows.
//!
//! F = Σᵢ ℓ(yᵢ; μᵢ, sᵢ, rᵢ) − Σ_l KL(q(u_l)‖p(u_l)), with ℓ of a [`Bound`]. One pass over the rows gives
//! value and all gradients: with G_l = Φ diag(b_l) Φᵀ and S_l = R_l R_lᵀ,
//!
//! ```text
//! m̄ = Φa − m        R̄ = tril(2 G R − R) + diag(1/Rⱼⱼ)
//! Ψ = Σ_l {m (Φa)ᵀ + 2 R (G R)ᵀ} − 2 Φ diag(Σc) Φᵀ       K̄uu = −½ L⁻ᵀ mirror(Ψ) L⁻¹
//! ```
//!
//! (Hensman et al. 2013, 2015; the adjoint of the Cholesky factor as in [`CholeskyBasis::kuu_bar`]). A
//! minibatch multiplies the sums over rows by N/B ([`Source::population`]), which leaves value and
//! gradient unbiased; the penalty of the factors v counts rows, and so has that factor too.

pub mod bounds;
mod rows;

pub use bounds::{Bound, Hensman, Spherical, Titsias2025};

use super::{Diagnostics, Evaluation, Method};
use crate::data::Source;
use crate::engine::{CholeskyBasis, Engine, Passed, Process, Want};
use crate::error::{Error, Result};
use crate::kernels::{Cotangents, Tape};
use crate::linalg::{Accum, Mat, column, gemm, par_for};
use crate::model::{Gradient, Model, Posterior};
use crate::variational::{self, Parts, Statistics, Variational};
use rows::{LikelihoodRows, sum};
use std::ops::Range;

/// A method that trains q(u).
pub struct Uncollapsed {
    /// What tells it from the others.
    pub bound: &'static dyn Bound,
}

impl std::fmt::Debug for Uncollapsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Uncollapsed({})", self.bound.name())
    }
}

/// Latent functions that share covariance function and inducing points, with all M×M work that comes
/// before the rows.
struct Prepared {
    latents: Range<usize>,
    kernel: usize,
    set: usize,
    z: Mat<f64>,
    kuu: Mat<f64>,
    tape: Tape,
    basis: CholeskyBasis,
    parts: Parts,
}

/// A pass over rows at a model's q, with what it takes to make steps of it.
pub struct Step {
    /// Value of the bound.
    pub value: f64,
    /// What the numerics had to do.
    pub diagnostics: Diagnostics,
    processes: Vec<Prepared>,
    passed: Passed,
}

/// The q of a model.
fn variational(model: &Model) -> Result<&Variational> {
    model.q.as_ref().ok_or_else(|| {
        Error::Invalid(format!("method `{}` needs a q to start from", model.method.name()))
    })
}

/// The processes of a model: one where all is shared, else one for each latent function.
fn prepare(model: &Model, record: bool) -> Result<Vec<Prepared>> {
    let q = variational(model)?;
    let latents = q.latents();
    let shared = model.kernels.len() == 1 && model.inducing.len() == 1;
    let fits = |count: usize| count == 1 || count == latents;
    if !fits(model.kernels.len()) || !fits(model.inducing.len()) {
        return Err(Error::Invalid(format!(
            "{latents} latent functions need one kernel and one set of inducing points, or one for \
             each; there are {} kernels and {} sets",
            model.kernels.len(),
            model.inducing.len()
        )));
    }
    let groups: Vec<Range<usize>> = if shared {
        std::iter::once(0..latents).collect()
    } else {
        (0..latents).map(|l| l..l + 1).collect()
    };
    groups
        .into_iter()
        .map(|latents| {
            let of = |count: usize| if count == 1 { 0 } else { latents.start };
            let (kernel, set) = (of(model.kernels.len()), of(model.inducing.len()));
            let z = model.inducing_set(set)?;
            let mut tape = if record { Tape::recording() } else { Tape::off() };
            let mut kuu = Mat::zeros(z.nrows(), z.nrows());
            model.kernels[kernel].evaluate(z.as_ref(), None, kuu.as_mut(), &mut tape);
            let basis = CholeskyBasis::new(kuu.as_ref(), model.jitter)?;
            if q.points() != z.nrows() {
                return Err(Error::Shape {
                    what: "q.mu".into(),
                    expected: format!("{} rows, one per inducing point", z.nrows()),
                    found: format!("{}", q.points()),
                });
            }
            let parts = q.whitened(latents.clone(), &basis.factor);
            Ok(Prepared { latents, kernel, set, z, kuu, tape, basis, parts })
        })
        .collect()
}

impl Uncollapsed {
    /// One pass over `data` at the model's parameters.
    ///
    /// # Errors
    /// As for [`Method::evaluate`].
    pub fn step(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
        want: Want,
    ) -> Result<Step> {
        self.bound.check(&*model.likelihood)?;
        let q = variational(model)?;
        let latents = model.latents(data.outputs());
        if q.latents() != latents {
            return Err(Error::Shape {
                what: "q.mu".into(),
                expected: format!("{latents} columns, one per latent function"),
                found: format!("{}", q.latents()),
            });
        }
        let processes = prepare(model, want == Want::Gradients)?;
        let v: Vec<f64> = (0..latents)
            .map(|l| if self.bound.has_factors() { q.factor_of(l) } else { 1.0 })
            .collect();
        let trace = |k: &Mat<f64>| (0..k.nrows()).map(|i| k[(i, i)]).sum::<f64>();
        let smallest = processes
            .iter()
            .map(|p| trace(&p.kuu) / p.kuu.nrows().max(1) as f64)
            .fold(f64::INFINITY, f64::min);
        let rows = LikelihoodRows {
            likelihood: &*model.likelihood,
            bound: self.bound,
            v: &v,
            params: model.likelihood.params().iter().map(|(_, p)| p.len()).sum(),
            rounding: 1e-8 * smallest,
        };
        let handed: Vec<Process<'_>> = processes
            .iter()
            .map(|p| Process {
                kernel: &*model.kernels[p.kernel],
                z: p.z.as_ref(),
                basis: &p.basis,
                mean: p.parts.mean.as_ref(),
                roots: &p.parts.roots,
            })
            .collect();
        let scale = data.population() as f64 / data.rows().max(1) as f64;
        let passed = engine.pass(&handed, &*model.mean, &rows, data, scale, want)?;
        let mut value = passed.sums[sum::VALUE];
        for p in &processes {
            for (at, root) in p.parts.roots.iter().enumerate() {
                value -= variational::kl(column(p.parts.mean.as_ref(), at), root.as_ref());
            }
        }
        for (l, v) in v.iter().enumerate() {
            value -= 0.5 * passed.sums[rows.counts() + l] * (v - v.ln() - 1.0);
        }
        let value = super::finite(value, "the bound")?;
        let diagnostics = Diagnostics {
            jitter: processes.iter().map(|p| p.basis.factor.jitter).fold(0.0, f64::max),
            unexplained: passed.sums[sum::UNEXPLAINED],
            prior_variance: None,
            negative: passed.sums[sum::NEGATIVE] as usize,
        };
        Ok(Step { value, diagnostics, processes, passed })
    }
}

impl Step {
    /// Gradient with respect to every constrained parameter, in the order of [`Model::params`]; the
    /// step must have been made with [`Want::Gradients`]. To be asked once.
    pub fn gradient(&mut self, model: &Model) -> Vec<f64> {
        let Self { processes, passed, .. } = self;
        let mut gradient: Gradient = model.gradient_slots();
        let Some(q) = &model.q else { return gradient.concat() };
        gradient.mean.copy_from_slice(&passed.mean);
        let likelihood = gradient.likelihood.len();
        gradient.likelihood.copy_from_slice(&passed.sums[sum::PARAMS..][..likelihood]);
        let kernel_starts = starts(model.kernels.iter().map(|k| k.num_params()));
        let set_starts = starts(model.inducing.iter().map(|z| z.len()));
        for (own, sums) in processes.iter_mut().zip(&mut passed.processes) {
            let m = own.z.nrows();
            let par = par_for(m);
            let mut psi = sums.gram_c.take().unwrap_or_else(|| {
                let mut total = sums.grams[0].clone();
                for gram in &sums.grams[1..] {
                    total += gram;
                }
                total
            });
            (0..m).for_each(|j| psi.col_as_slice_mut(j).iter_mut().for_each(|v| *v *= -2.0));
            let (mean, phi_a) = (own.parts.mean.as_ref(), sums.phi_a.as_ref());
            gemm(psi.as_mut(), Accum::Add, mean, phi_a.transpose(), 1.0, par);
            let mut roots = Vec::with_capacity(own.parts.roots.len());
            for (root, gram) in own.parts.roots.iter().zip(&sums.grams) {
                let mut bar = variational::times_lower(gram.as_ref(), root.as_ref(), par);
                // 2 R (GR)ᵀ, of which (2GR)Rᵀ is the transpose
                gemm(psi.as_mut(), Accum::Add, root.as_ref(), bar.transpose(), 2.0, par);
                for j in 0..m {
                    let entries = bar.col_as_slice_mut(j).iter_mut().zip(root.col_as_slice(j));
                    entries.for_each(|(b, r)| *b = 2.0 * *b - r);
                    bar[(j, j)] += 1.0 / root[(j, j)];
                }
                roots.push(bar);
            }
            let bars = Parts { mean: &sums.phi_a - &own.parts.mean, roots };
            let factor = &own.basis.factor;
            q.pull(own.latents.clone(), factor, &own.parts, bars, &mut psi, &mut gradient.q);
            let mut kuu_bar = own.basis.kuu_bar(psi);
            let mut kernel = std::mem::take(&mut sums.kernel);
            let mut z_bar = std::mem::replace(&mut sums.z, Mat::new());
            let mut sinks = Cotangents { params: &mut kernel, x: Some(z_bar.as_mut()), z: None };
            model.kernels[own.kernel].vjp(
                own.z.as_ref(),
                None,
                own.kuu.as_ref(),
                kuu_bar.as_mut(),
                &mut own.tape,
                &mut sinks,
            );
            let target = &mut gradient.kernel[kernel_starts[own.kernel]..];
            target.iter_mut().zip(&kernel).for_each(|(t, v)| *t += v);
            for j in 0..z_bar.ncols() {
                let target = &mut gradient.inducing[set_starts[own.set] + j * m..];
                target.iter_mut().zip(column(z_bar.as_ref(), j)).for_each(|(t, v)| *t += v);
            }
        }
        if let Some(v) = &q.v {
            let latents = v.len();
            let (slopes, counts) = passed.sums[sum::PARAMS + likelihood..].split_at(latents);
            let start = gradient.q.len() - latents;
            for (l, g) in gradient.q[start..].iter_mut().enumerate() {
                *g = slopes[l] - 0.5 * counts[l] * (1.0 - 1.0 / v.value()[l]);
            }
        }
        gradient.concat()
    }

    /// Moves the model's q by a natural-gradient step of size `rate` from what this pass saw.
    ///
    /// # Errors
    /// As for [`variational::natural_step`]; [`Error::Invalid`] for diagonal covariances. The model
    /// is unchanged then.
    pub fn natural(&self, model: &mut Model, rate: f64) -> Result<()> {
        let mut moved = variational(model)?.clone();
        for (own, sums) in self.processes.iter().zip(&self.passed.processes) {
            let rows = Statistics { phi_a: sums.phi_a.clone(), grams: sums.grams.clone() };
            let parts = variational::natural_step(&own.parts, &rows, rate)?;
            moved.set_whitened(own.latents.clone(), &own.basis.factor, &parts)?;
        }
        model.q = Some(moved);
        Ok(())
    }
}

/// Where each of consecutive parts of these lengths starts.
fn starts(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    lengths
        .scan(0, |next, length| {
            let start = *next;
            *next += length;
            Some(start)
        })
        .collect()
}

impl Method for Uncollapsed {
    fn name(&self) -> &'static str {
        self.bound.name()
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn uncollapsed(&self) -> Option<&Uncollapsed> {
        Some(self)
    }

    fn check(&self, model: &Model) -> Result<()> {
        self.bound.check(&*model.likelihood)
    }

    fn evaluate(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Evaluation> {
        let mut step = self.step(model, engine, data, Want::Gradients)?;
        let (value, diagnostics) = (step.value, step.diagnostics);
        Ok(Evaluation { value, gradient: step.gradient(model), diagnostics })
    }

    fn posterior(&self, model: &Model, _: &dyn Engine, _: &dyn Source) -> Result<Posterior> {
        Posterior::of_q(model)
    }
}

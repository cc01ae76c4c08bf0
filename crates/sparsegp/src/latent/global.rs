//! q(u) as parameters, and the bound before it is maximised out: for some of the rows (Hensman, Fusi & Lawrence 2013; the terms
//! are those of Titsias & Lawrence 2010, §3.2).
//!
//! With v = L⁻¹u and q(v_p) = N(m_p, S), S of all columns p that are missing in the same rows, rows with weight w give
//!
//! ```text
//! w Σᵢ {Σ_p [−½ log 2πσ² − (y² − 2y ψ₁b + tr (bbᵀ + L⁻ᵀSL⁻¹)ψ₂)/2σ² − ρ(d)] − KL(q(xᵢ) ‖ N(0, I))} − Σ_p KL(q(v_p) ‖ N(0, I))
//! ```
//!
//! with b = L⁻ᵀm. A natural-gradient step of length ϱ is S⁻¹ ← (1 − ϱ)S⁻¹ + ϱ(I + wL⁻¹Ψ₂L⁻ᵀ/σ²) and S⁻¹m ← (1 − ϱ)S⁻¹m +
//! ϱwL⁻¹Ψ₁ᵀY/σ²: with all rows and ϱ = 1 the best q(u), and then the bound is [`Bound`]'s. At fixed m and S
//!
//! ```text
//! K̄ = L⁻ᵀ[wL⁻¹(Σ sᵢψ₂ᵢ)L⁻ᵀ − ½ mirror(W)]L⁻¹     W = m(wL⁻¹Ψ₁ᵀY/σ²)ᵀ − (mmᵀ + PS) wL⁻¹Ψ₂L⁻ᵀ/σ²     sᵢ = −Σ_p ∂ρ/∂dᵢ
//! ```

use super::bound::{Bound, whitened};
use super::model::Gplvm;
use super::predict::Posterior;
use super::targets::Targets;
use crate::error::{Error, Result};
use crate::kernels::{self, Cotangents, Tape};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, Par, dot, gemm, mirror_lower, product, sandwich_inverse,
    solve_lower, solve_lower_transpose,
};
use crate::psi::{Bars, Uncertain};
use faer::Scale;
use std::f64::consts::TAU;

/// q(v) of all columns.
#[derive(Clone, Debug)]
pub(super) struct Global {
    /// m, M×P.
    pub(super) mean: Mat<f64>,
    /// Columns that share an S, and the factor of S⁻¹.
    pub(super) groups: Vec<(Vec<usize>, Cholesky)>,
}

/// Returns the columns of a matrix that a group has.
fn of_columns(a: MatRef<f64>, columns: &[usize]) -> Mat<f64> {
    Mat::from_fn(a.nrows(), columns.len(), |i, j| a[(i, columns[j])])
}

/// Returns L⁻¹A.
fn solved(l: MatRef<f64>, a: MatRef<f64>) -> Mat<f64> {
    let mut out = a.to_owned();
    solve_lower(l, out.as_mut(), Par::Seq);
    out
}

impl Global {
    /// Creates the best one for a bound of all rows.
    pub(super) fn best(bound: &Bound<'_>) -> Self {
        let both = bound.targets().groups().iter().zip(&bound.shared);
        Self {
            mean: product(bound.factor.l.transpose(), bound.b.as_ref()),
            groups: both.map(|(g, own)| (g.columns.clone(), own.factor.clone())).collect(),
        }
    }

    /// Returns q(u) at the kernel and the points of a model.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] for points too close.
    pub(super) fn posterior(&self, model: &Gplvm) -> Result<Posterior> {
        let factor = kernels::factor(&*model.kernel, model.points(), model.jitter, "Kuu")?;
        let mut b = self.mean.clone();
        solve_lower_transpose(factor.l.as_ref(), b.as_mut(), Par::Seq);
        Posterior::of_factors(model, factor, b, self.groups.iter().cloned())
    }

    /// Makes a natural-gradient step of this length by rows with this weight, at the q(u) of `posterior`, which is this one.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], which only rounding can cause, with q as it was; [`Error::Shape`] for rows that are
    /// not those of the targets.
    pub(super) fn step(
        &mut self,
        posterior: &Posterior,
        (x, targets): (Uncertain<'_>, &Targets),
        (weight, length): (f64, f64),
    ) -> Result<()> {
        let (noise, l) = (posterior.noise, posterior.factor.l.as_ref());
        let folded = posterior.psi.fold(x, targets.y.as_ref(), targets.has.as_ref(), &[])?;
        let right = solved(l, folded.psi1_y.as_ref());
        // what fails leaves q as it was
        let mut next = self.clone();
        for ((columns, factor), psi2) in next.groups.iter_mut().zip(&folded.psi2) {
            let gram = whitened(l, psi2.as_ref());
            let m = gram.nrows();
            let old = product(factor.l.as_ref(), factor.l.transpose());
            let old_linear =
                product(old.as_ref(), of_columns(self.mean.as_ref(), columns).as_ref());
            let part = length * weight / noise;
            let precision = Mat::from_fn(m, m, |i, j| {
                let one = if i == j { length } else { 0.0 };
                (1.0 - length) * old[(i, j)] + one + part * gram[(i, j)]
            });
            *factor = Cholesky::new(precision.as_ref(), Jitter::Absolute(0.0), "S⁻¹")?;
            let linear = Mat::from_fn(m, columns.len(), |i, j| {
                (1.0 - length) * old_linear[(i, j)] + part * right[(i, columns[j])]
            });
            let mean = factor.solve(linear.as_ref());
            for (j, column) in columns.iter().enumerate() {
                next.mean.col_as_slice_mut(*column).copy_from_slice(mean.col_as_slice(j));
            }
        }
        *self = next;
        Ok(())
    }

    /// Returns Σ_p KL(q(v_p) ‖ N(0, I)).
    fn divergence(&self) -> f64 {
        let m = self.mean.nrows();
        let of = |(columns, factor): &(Vec<usize>, Cholesky)| {
            let trace: f64 = {
                let s = factor.inverse();
                (0..m).map(|i| s[(i, i)]).sum()
            };
            columns.len() as f64 * (trace - m as f64 + factor.log_det())
        };
        let spread: f64 = self.groups.iter().map(of).sum();
        0.5 * (spread + dot(self.mean.as_ref(), self.mean.as_ref()))
    }

    /// Returns the bound by rows with this weight, and its slopes by the constrained numbers of
    /// kernel, noise and points.
    ///
    /// # Errors
    /// As for [`Global::posterior`]; [`Error::NonFinite`] where the bound is not a number.
    pub(super) fn evaluate(
        &self,
        model: &Gplvm,
        (x, targets): (Uncertain<'_>, &Targets),
        weight: f64,
    ) -> Result<(f64, Vec<f64>)> {
        let posterior = self.posterior(model)?;
        let (noise, l, psi) = (posterior.noise, posterior.factor.l.as_ref(), &posterior.psi);
        let (n, count, y) = (targets.rows(), self.groups.len(), targets.y.as_ref());
        let grams = posterior.grams();
        let inverse = std::slice::from_ref(&posterior.inverse);
        let folded = psi.fold(x, y, targets.has.as_ref(), inverse)?;
        let psi0 = psi.psi0(x)?;

        let mut fit = dot(y, y) - 2.0 * dot(folded.psi1_y.as_ref(), posterior.b.as_ref());
        fit +=
            grams.iter().zip(&folded.psi2).map(|(g, p)| dot(g.as_ref(), p.as_ref())).sum::<f64>();
        let (mut penalties, mut by_noise, mut cells) = (0.0, 0.0, 0.0);
        let mut slopes = vec![0.0; n];
        let mut weights = Mat::zeros(n, count + 1);
        for i in 0..n {
            let (own, projected) = (targets.cells[i], folded.traces[(i, 0)]);
            let penalty = model.term.penalty(psi0[i] - projected, 1.0, noise);
            penalties += own * penalty.value;
            by_noise -= own * penalty.by_noise;
            slopes[i] = -weight * own * penalty.by_r;
            fit += own * projected;
            cells += own;
            (0..count).for_each(|c| weights[(i, c)] = -0.5 * weight * targets.has[(i, c)] / noise);
            weights[(i, count)] = -slopes[i] - 0.5 * weight * own / noise;
        }
        let rows =
            -0.5 * (cells * (TAU * noise).ln() + fit / noise) - penalties - super::divergence(x);
        let value = weight * rows - self.divergence();
        if !value.is_finite() {
            return Err(Error::NonFinite { what: "the bound".into(), value });
        }
        by_noise += 0.5 * (fit / noise - cells) / noise;

        let left = y.to_owned() * Scale(weight / noise);
        let all = [&grams[..], inverse].concat();
        let bars = Bars {
            psi0: &slopes,
            psi1: (left.as_ref(), posterior.b.as_ref()),
            weights: weights.as_ref(),
            psi2: &all,
            kept: Some(count),
        };
        let pulled = psi.pull(x, &bars)?;
        // W, and Σ sᵢψ₂ᵢ of what was kept: −Σ (sᵢ + wnᵢ/2σ²)ψ₂ᵢ
        let m = self.mean.nrows();
        let right = solved(l, folded.psi1_y.as_ref());
        let mut through = product(self.mean.as_ref(), right.transpose()) * Scale(weight / noise);
        let mut rest = pulled.kept.unwrap_or_else(|| Mat::zeros(m, m)) * Scale(-1.0);
        for ((columns, factor), psi2) in self.groups.iter().zip(&folded.psi2) {
            let share = columns.len() as f64;
            rest -= psi2 * Scale(0.5 * weight * share / noise);
            let mean = of_columns(self.mean.as_ref(), columns);
            let mut second = factor.inverse() * Scale(share);
            gemm(second.as_mut(), Accum::Add, mean.as_ref(), mean.transpose(), 1.0, Par::Seq);
            let gram = whitened(l, psi2.as_ref());
            let factor = -weight / noise;
            gemm(through.as_mut(), Accum::Add, second.as_ref(), gram.as_ref(), factor, Par::Seq);
        }
        mirror_lower(through.as_mut());
        let inner = whitened(l, rest.as_ref()) - &through * Scale(0.5);
        let mut kuu_bar = sandwich_inverse(l, inner, Par::Seq);
        posterior.factor.pull_jitter(&mut kuu_bar);
        let (mut all, mut points) = (pulled.kernel, pulled.points);
        let (mut tape, mut kuu) = (Tape::recording(), Mat::zeros(m, m));
        let z = model.points();
        model.kernel.evaluate(z, None, kuu.as_mut(), &mut tape);
        let mut sinks = Cotangents { params: &mut all, x: Some(points.as_mut()), z: None };
        model.kernel.vjp(z, None, kuu.as_ref(), kuu_bar.as_mut(), &mut tape, &mut sinks);
        all.push(weight * by_noise);
        (0..points.ncols()).for_each(|q| all.extend_from_slice(points.col_as_slice(q)));
        Ok((value, all))
    }
}

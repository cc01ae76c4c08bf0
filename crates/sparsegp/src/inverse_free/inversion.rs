//! Inversion by products: a lower-triangular L with LLᵀ ≈ K̃⁻¹.
//!
//! ℓ(L) = KL[N(0, LLᵀ) ‖ N(0, K̃⁻¹)] = ½ (tr H − log|K̃| − M) − Σ log Lⱼⱼ with H = LᵀK̃L is strictly convex in
//! L, and its natural gradient needs only products (Cortinovis et al., Proposition 1):
//!
//! ```text
//! E = H − I      W = Φ(E), the lower triangle of E with halved diagonal      L ← L − γ L W
//! ```
//!
//! A step keeps L lower triangular, and its diagonal positive where γ(Hⱼⱼ − 1) < 2. At γ = 1, E₊ = −E² + WWᵀ +
//! WᵀEW, so that ‖E₊‖ ≤ (3/2)‖E‖² + ‖E‖³/√2 in Frobenius' norm: quadratic convergence from ‖E‖ < 0.53 on.

use super::descent::Descent;
use super::schedule::SolverOptions;
use crate::error::Result;
use crate::linalg::{
    Accum, Mat, MatRef, Precision, Real, by_columns, column, dot, gemm, par_for, sized, sum,
};
use serde::{Deserialize, Serialize};

/// Why steps ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// The residual is small enough.
    Tolerance,
    /// The caller's own criterion holds.
    Enough,
    /// Rounding allows no smaller residual.
    Stall,
    /// The most steps allowed were made.
    Most,
}

/// How an inversion went.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Solved {
    /// Steps made.
    pub steps: usize,
    /// r = ‖E‖_F/√M at the end.
    pub residual: f64,
    /// Why it ended.
    pub stopped: Stopped,
    /// Whether L was restarted from the scaled identity.
    pub restarted: bool,
    /// How often a step was halved.
    pub halvings: usize,
}

/// A criterion of the caller's, asked before every step: it sees L and K̃L.
pub type Enough<'a> = &'a mut dyn FnMut(MatRef<'_, f64>, MatRef<'_, f64>) -> Result<bool>;

/// Natural-gradient steps of L, with the memory they take.
#[derive(Clone, Debug, Default)]
pub struct Inversion {
    pub(super) double: Descent<f64>,
    single: Option<Box<Single>>,
}

/// What steps in single precision take.
#[derive(Clone, Debug)]
struct Single {
    descent: Descent<f32>,
    k: Mat<f32>,
    l: Mat<f32>,
}

impl Default for Single {
    fn default() -> Self {
        Self { descent: Descent::default(), k: Mat::new(), l: Mat::new() }
    }
}

/// Returns the largest sum of absolute values of a row, ‖K‖_∞ ≥ ‖K‖₂.
pub fn infinity_norm<T: Real>(k: MatRef<T>) -> f64 {
    // of a symmetric matrix columns are as good as rows, and contiguous
    (0..k.ncols())
        .map(|j| sum(column(k, j), |v| v.abs()))
        .fold(0.0, |m, v| if v.is_nan() { v } else { f64::max(m, v) })
}

/// Sets L = I/√‖K̃‖_∞, with 0 < H ≤ I: from there unit steps converge.
pub fn scaled_identity<T: Real>(k: MatRef<T>, l: &mut Mat<T>) {
    let m = k.nrows();
    sized(l, m, m);
    l.fill(T::of(0.0));
    let scale = T::of(1.0 / infinity_norm(k).sqrt());
    (0..m).for_each(|j| l[(j, j)] = scale);
}

impl Inversion {
    /// Looks at some L. Returns the normalised residual ‖E‖_F/√M (Cortinovis et al., Eq. 8).
    pub fn look(&mut self, k: MatRef<f64>, l: MatRef<f64>) -> f64 {
        self.double.look(k, l)
    }

    /// Returns E = LᵀK̃L − I of the L last looked at, both triangles.
    pub fn residual(&self) -> MatRef<'_, f64> {
        self.double.residual()
    }

    /// Returns K̃L of the L last looked at.
    pub fn product(&self) -> MatRef<'_, f64> {
        self.double.product()
    }

    /// Returns ℓ of the L last looked at, given log|K̃|.
    pub fn divergence(&self, l: MatRef<f64>, log_det: f64) -> f64 {
        self.double.objective(l) - 0.5 * log_det
    }

    /// Returns L Φ(E) at the L last looked at: the natural gradient (Cortinovis et al., Eq. 6).
    pub fn natural_gradient(&mut self, l: MatRef<f64>) -> Mat<f64> {
        self.double.natural_gradient(l)
    }

    /// Returns λmax(H) by power iterations from where the last ones ended; it is a little too
    /// small.
    pub fn largest_eigenvalue(&mut self) -> f64 {
        self.double.largest_eigenvalue()
    }

    /// Moves L towards the root of K̃⁻¹ until a criterion holds. It is tested before every step, so that
    /// [`Inversion::residual`] and [`Inversion::product`] are those of the L that is left.
    ///
    /// # Errors
    /// [`crate::Error::NonFinite`] if K̃ is not finite or not positive definite to working precision; errors of
    /// `enough`. L is of no use then.
    pub fn solve(
        &mut self,
        k: MatRef<f64>,
        l: &mut Mat<f64>,
        options: &SolverOptions,
        enough: Option<Enough<'_>>,
    ) -> Result<Solved> {
        if options.products == Precision::Double {
            return self.double.solve(k, l, options, enough);
        }
        let single = &mut **self.single.get_or_insert_default();
        convert(k, &mut single.k);
        convert(l.as_ref(), &mut single.l);
        let Single { descent, k: small, l: root } = single;
        let solved = descent.solve(small.as_ref(), root, options, enough)?;
        convert(root.as_ref(), l);
        Ok(Solved { residual: self.look(k, l.as_ref()), ..solved })
    }

    /// Returns ‖E‖_F of the L last looked at, which is no less than ‖E‖₂.
    pub fn frobenius(&self) -> f64 {
        dot(self.residual(), self.residual()).sqrt()
    }

    /// Computes E·x for a matrix of few columns, into `out` (added).
    pub(super) fn add_times(&self, x: MatRef<f64>, out: &mut Mat<f64>, factor: f64) {
        let par = par_for(x.nrows());
        gemm(out.as_mut(), Accum::Add, self.residual(), x, factor, par);
    }
}

/// Converts a matrix into another precision.
pub(super) fn convert<S: Real, T: Real>(source: MatRef<S>, target: &mut Mat<T>) {
    sized(target, source.nrows(), source.ncols());
    by_columns(target.as_mut(), &mut vec![(); source.ncols()], &|j, own, ()| {
        own.iter_mut().zip(column(source, j)).for_each(|(t, v)| *t = T::of((*v).into()));
    });
}

#[cfg(test)]
#[path = "inversion_tests.rs"]
mod tests;

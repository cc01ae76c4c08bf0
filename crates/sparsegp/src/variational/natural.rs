//! Natural-gradient steps on q(u) in closed form.
//!
//! In whitened coordinates, with what a pass over the rows gives, Φa and G = Φ diag(b) Φᵀ (a = ∂ℓ/∂μ,
//! b = ∂ℓ/∂s, both with the scale of a minibatch), the natural gradient of the bound is the difference
//! of natural parameters (Khan & Lin 2017; Adam, Chang, Khan & Solin 2021, Eq. 21–23):
//!
//! ```text
//! S′⁻¹ = (1 − ρ) S⁻¹ + ρ (I − 2G)        m′ = m + ρ S′ (Φa − m)
//! ```
//!
//! Natural gradients do not depend on the coordinates, so that the step in u is the same one.

use super::Parts;
use crate::error::Result;
use crate::linalg::{
    Accum, InverseRoot, Jitter, Mat, MatRef, gemm, inner_gram, invert_lower, par_for, sized,
};

/// What the rows say about q of some latent functions.
#[derive(Clone, Copy, Debug)]
pub struct Statistics<'a> {
    /// Φa, M×l.
    pub phi_a: MatRef<'a, f64>,
    /// Φ diag(b) Φᵀ of each; lower triangles are read.
    pub grams: &'a [Mat<f64>],
}

/// Makes natural-gradient steps, with the memory they take.
#[derive(Clone, Debug)]
pub struct NaturalStep {
    inverse: Mat<f64>,
    precision: Mat<f64>,
    root: InverseRoot,
    /// M×1.
    pull: Mat<f64>,
    rotated: Mat<f64>,
}

impl Default for NaturalStep {
    fn default() -> Self {
        Self {
            inverse: Mat::new(),
            precision: Mat::new(),
            root: InverseRoot::default(),
            pull: Mat::new(),
            rotated: Mat::new(),
        }
    }
}

impl NaturalStep {
    /// Computes the whitened q after a step of its size for every latent function (0 ≤ ρ ≤ 1), into
    /// `out`; with ρ = 0 one stays what it is, to the bit.
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`] if the new precision is none: the rows' curvature is
    /// negative (likelihoods that are not log-concave) and the step too long.
    pub fn make(
        &mut self,
        q: &Parts,
        rows: Statistics<'_>,
        rate: impl Fn(usize) -> f64,
        out: &mut Parts,
    ) -> Result<()> {
        let (m, latents) = (q.mean.nrows(), q.mean.ncols());
        out.sized(m, latents);
        sized(&mut self.pull, m, 1);
        sized(&mut self.rotated, m, 1);
        for l in 0..latents {
            let rate = rate(l);
            if rate == 0.0 {
                out.roots[l].copy_from(&q.roots[l]);
                for i in 0..m {
                    out.mean[(i, l)] = q.mean[(i, l)];
                }
                continue;
            }
            self.new_precision(q.roots[l].as_ref(), rows.grams[l].as_ref(), rate);
            let what = "the precision of q after a natural-gradient step";
            let jitter = Jitter::Absolute(0.0);
            self.root.of(self.precision.as_ref(), jitter, what, &mut out.roots[l])?;
            for i in 0..m {
                self.pull[(i, 0)] = rate * (rows.phi_a[(i, l)] - q.mean[(i, l)]);
                out.mean[(i, l)] = q.mean[(i, l)];
            }
            let (root, par) = (out.roots[l].as_ref(), par_for(m));
            let (pull, rotated) = (self.pull.as_ref(), self.rotated.as_mut());
            gemm(rotated, Accum::Replace, root.transpose(), pull, 1.0, par);
            let mean = out.mean.as_mut().subcols_mut(l, 1);
            gemm(mean, Accum::Add, root, self.rotated.as_ref(), 1.0, par);
        }
        Ok(())
    }

    /// Returns the natural gradient of one latent function: where a step of size 1 leads less where
    /// q is, in the natural parameters η₁ = S⁻¹m (M numbers) and η₂ = −½S⁻¹ (M² numbers, both
    /// triangles).
    pub fn gradient(&mut self, q: &Parts, rows: Statistics<'_>, l: usize) -> Vec<f64> {
        let (m, root) = (q.mean.nrows(), q.roots[l].as_ref());
        sized(&mut self.inverse, m, m);
        sized(&mut self.precision, m, m);
        invert_lower(self.inverse.as_mut(), root, par_for(m));
        inner_gram(self.precision.as_mut(), self.inverse.as_ref(), par_for(m));
        let gram = rows.grams[l].as_ref();
        // S⁻¹ − (I − 2G), of which −½ is the target's excess in η₂ with the opposite sign
        let at = |i: usize, j: usize| {
            let (i, j) = (i.max(j), i.min(j));
            self.precision[(i, j)] - f64::from(u8::from(i == j)) + 2.0 * gram[(i, j)]
        };
        let mut all = Vec::with_capacity(m + m * m);
        for i in 0..m {
            // η̂₁ − η₁ = {(I − 2G)m + Φa − m} − S⁻¹m
            let moved: f64 = (0..m).map(|j| at(i, j) * q.mean[(j, l)]).sum();
            all.push(rows.phi_a[(i, l)] - q.mean[(i, l)] - moved);
        }
        for j in 0..m {
            all.extend((0..m).map(|i| 0.5 * at(i, j)));
        }
        all
    }

    /// Computes the lower triangle of (1 − ρ) (RRᵀ)⁻¹ + ρ (I − 2G).
    fn new_precision(&mut self, root: MatRef<f64>, gram: MatRef<f64>, rate: f64) {
        let m = root.nrows();
        sized(&mut self.precision, m, m);
        if rate < 1.0 {
            sized(&mut self.inverse, m, m);
            invert_lower(self.inverse.as_mut(), root, par_for(m));
            inner_gram(self.precision.as_mut(), self.inverse.as_ref(), par_for(m));
        } else {
            self.precision.fill(0.0);
        }
        for j in 0..m {
            for (i, p) in self.precision.col_as_slice_mut(j).iter_mut().enumerate().skip(j) {
                *p *= 1.0 - rate;
                *p += rate * (f64::from(u8::from(i == j)) - 2.0 * gram[(i, j)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Cholesky;
    use crate::rng;

    /// A step of size ρ moves η₁ = S⁻¹m and η₂ = −½S⁻¹ by ρ times the gradient.
    #[test]
    fn steps_go_along_the_natural_gradient() {
        let (m, rate) = (4, 0.3);
        let mut stream = rng::stream(8, "natural");
        let mut draw = || 2.0 * rng::uniform(&mut stream) - 1.0;
        let root = Mat::from_fn(m, m, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 0.6 + 0.1 * i as f64,
            std::cmp::Ordering::Greater => 0.3 * draw(),
        });
        let half = Mat::from_fn(m, m, |_, _| draw());
        let gram = &half * half.transpose() * faer::Scale(-0.4);
        let phi_a = Mat::from_fn(m, 1, |_, _| draw());
        let q = Parts { mean: Mat::from_fn(m, 1, |_, _| draw()), roots: vec![root] };
        let grams = [gram];
        let rows = || Statistics { phi_a: phi_a.as_ref(), grams: &grams };
        let natural = |q: &Parts| {
            let s = &q.roots[0] * q.roots[0].transpose();
            let p = Cholesky::new(s.as_ref(), Jitter::Absolute(0.0), "S").unwrap().inverse();
            let first = &p * &q.mean;
            let mut all: Vec<f64> = (0..m).map(|i| first[(i, 0)]).collect();
            all.extend((0..m * m).map(|at| -0.5 * p[(at % m, at / m)]));
            all
        };
        let mut work = NaturalStep::default();
        let gradient = work.gradient(&q, rows(), 0);
        let mut moved = Parts::default();
        work.make(&q, rows(), |_| rate, &mut moved).unwrap();
        let (before, after) = (natural(&q), natural(&moved));
        for (at, g) in gradient.iter().enumerate() {
            let expected = before[at] + rate * g;
            assert!((after[at] - expected).abs() < 1e-10, "{at}: {} for {expected}", after[at]);
        }
    }
}

//! What past rows said of one latent function.

use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::linalg::{
    Cholesky, Jitter, Mat, MatRef, Par, left_singular, product, solve_lower_transpose,
};

/// A Gaussian factor exp(c + hᵀt − ½tᵀΛt) of the values of a latent function less its prior mean at old inducing
/// points: of t = a = f(Zₐ), or of t = L'⁻¹a where it has a root L' (M×M).
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Old inducing points Zₐ, M×D.
    pub z: Mat<f64>,
    /// Λ, M×M, positive semi-definite.
    pub precision: Mat<f64>,
    /// h, M numbers.
    pub linear: Vec<f64>,
    /// c: minus the log of the mean of the rest under the prior of its time.
    pub constant: f64,
    /// L', lower triangular; none where the site is of the values themselves.
    pub root: Option<Mat<f64>>,
}

impl Site {
    /// Makes the site of a posterior q(a) = N(L'm, L'RRᵀL'ᵀ) over the prior N(0, L'L'ᵀ) that it was made with: `mean`
    /// is m (M numbers), `root` is R (M×M), both of the whitened values L'⁻¹a, and `factor` is L'.
    ///
    /// With R = U diag(ς) Vᵀ, Λ = U diag(ς⁻² − 1) Uᵀ and h = U diag(ς⁻²) Uᵀ m: no difference of inverses. Directions of
    /// which q knows less than the prior (ς > 1, by rounding) have precision 0.
    ///
    /// # Errors
    /// [`Error::Invalid`] if q is singular; [`Error::Shape`] if the sizes differ.
    pub fn of_posterior(
        z: MatRef<f64>,
        factor: &Cholesky,
        mean: &[f64],
        root: MatRef<f64>,
    ) -> Result<Self> {
        let m = factor.size();
        if z.nrows() != m || mean.len() != m || root.nrows() != m || root.ncols() != m {
            return Err(Error::Shape {
                what: "mean and root of an old posterior".into(),
                expected: format!("those of {m} inducing points"),
                found: format!(
                    "{}, {} and {}×{}",
                    z.nrows(),
                    mean.len(),
                    root.nrows(),
                    root.ncols()
                ),
            });
        }
        let (singular, u) = left_singular(root)?;
        if singular.iter().any(|s| s.is_nan() || *s <= 0.0) {
            return Err(Error::Invalid(
                "the old posterior has a direction without variance: rows cannot be added to it"
                    .into(),
            ));
        }
        let inverse: Vec<f64> = singular.iter().map(|s| s.powi(-2)).collect();
        let scaled = |weights: &dyn Fn(f64) -> f64| {
            let left = Mat::from_fn(m, m, |i, j| u[(i, j)] * weights(inverse[j]));
            product(left.as_ref(), u.transpose())
        };
        let precision = scaled(&|inverse| (inverse - 1.0).max(0.0));
        let linear = times(scaled(&|inverse| inverse).as_ref(), mean);
        // log|K'| − log|S| = −Σ log ς², and mᵀS⁻¹m = hᵀm
        let log_det: f64 = inverse.iter().map(|inverse| inverse.ln()).sum();
        let quadratic: f64 = linear.iter().zip(mean).map(|(h, m)| h * m).sum();
        let constant = 0.5 * (log_det - quadratic);
        Ok(Self { z: z.to_owned(), precision, linear, constant, root: Some(factor.l.clone()) })
    }

    /// Forgets: Λ and h times `factor`, 0 < `factor` ≤ 1, and the constant that goes with them under the prior of
    /// this kernel, which is that of the time when the site was made.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if `factor` is out of range; [`Error::NotPositiveDefinite`] for points too close.
    pub fn forget(&mut self, factor: f64, kernel: &dyn Kernel, jitter: Jitter) -> Result<()> {
        if !(factor > 0.0 && factor <= 1.0) {
            return Err(Error::InvalidParameter {
                path: "forgetting factor".into(),
                reason: format!("{factor} is not above 0 and at most 1"),
            });
        }
        self.precision *= faer::Scale(factor);
        self.linear.iter_mut().for_each(|h| *h *= factor);
        let prior = super::Prior::new(kernel, self.z.as_ref(), jitter, Some(self))?;
        let none = Mat::zeros(self.z.nrows(), 0);
        // with the constant itself left out, what remains is the mean under the prior
        self.constant = -prior.posterior(none.as_ref(), &[], &[])?.gain;
        Ok(())
    }

    /// Returns the same site of values that are counted from another prior mean, `shift` above the
    /// one that they are counted from (M numbers, of the values themselves).
    #[must_use]
    pub fn recentred(&self, shift: &[f64]) -> Self {
        let shift = match &self.root {
            None => shift.to_vec(),
            Some(root) => {
                let mut white = Mat::from_fn(shift.len(), 1, |i, _| shift[i]);
                crate::linalg::solve_lower(root.as_ref(), white.as_mut(), Par::Seq);
                (0..shift.len()).map(|i| white[(i, 0)]).collect()
            }
        };
        let moved = times(self.precision.as_ref(), &shift);
        let dot = |a: &[f64]| a.iter().zip(&shift).map(|(a, b)| a * b).sum::<f64>();
        let constant = self.constant + dot(&self.linear) - 0.5 * dot(&moved);
        let linear = self.linear.iter().zip(&moved).map(|(h, moved)| h - moved).collect();
        Self { linear, constant, ..self.clone() }
    }

    /// Returns the site of the values themselves, without a root: for readers. Of close points this
    /// loses digits.
    #[must_use]
    pub fn of_values(&self) -> Self {
        let Some(root) = &self.root else { return self.clone() };
        let precision =
            crate::linalg::sandwich_inverse(root.as_ref(), self.precision.clone(), Par::Seq);
        let mut linear = Mat::from_fn(self.linear.len(), 1, |i, _| self.linear[i]);
        solve_lower_transpose(root.as_ref(), linear.as_mut(), Par::Seq);
        let linear = (0..self.linear.len()).map(|i| linear[(i, 0)]).collect();
        Self { precision, linear, root: None, ..self.clone() }
    }
}

/// Returns how many threads M×B work is worth.
pub(super) fn threads(rows: usize, columns: usize) -> Par {
    if rows * columns >= 1 << 16 { Par::rayon(0) } else { Par::Seq }
}

/// Returns a matrix times a vector.
pub(super) fn times(a: MatRef<f64>, v: &[f64]) -> Vec<f64> {
    let column = Mat::from_fn(v.len(), 1, |i, _| v[i]);
    let out = product(a, column.as_ref());
    (0..a.nrows()).map(|i| out[(i, 0)]).collect()
}

/// Returns a diag(weights).
pub(super) fn weigh_columns(a: MatRef<f64>, weights: &[f64]) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] * weights[j])
}

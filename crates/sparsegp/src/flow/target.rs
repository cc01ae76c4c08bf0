//! Densities that are known by φ = −log p and its gradient, for many positions at once.

use crate::error::{Error, Result};
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut};

/// A density p(x) ∝ e^{−φ(x)} on ℝᴰ. Positions are the columns of D×N matrices, column-major.
///
/// Where φ is a sum over rows of data and a step sees some of them, all particles see the same ones: with a minibatch
/// for each, Ψ would have noise that is in no gradient.
pub trait Target {
    /// Returns D.
    fn dim(&self) -> usize;

    /// Writes φ at N positions (D×N) into `phi` (N numbers) and ∇φ into `gradient` (D×N); both are overwritten. Numbers
    /// that are not finite are left for [`Evaluation`] to find.
    ///
    /// # Errors
    /// Of the target's own.
    fn evaluate(
        &mut self,
        x: MatRef<'_, f64>,
        phi: &mut [f64],
        gradient: MatMut<'_, f64>,
    ) -> Result<()>;

    /// Tells whether [`Target::hessian_times`] is known.
    fn has_hessian(&self) -> bool {
        false
    }

    /// Writes ∇²φ(x) V into `out` (D×K) for a position of D numbers and V of D×K.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the target knows no second derivatives.
    fn hessian_times(&mut self, x: &[f64], v: MatRef<'_, f64>, out: MatMut<'_, f64>) -> Result<()> {
        let _ = (x, v, out);
        Err(Error::Invalid(
            "this target knows no second derivatives: take a method that needs only gradients, \
             such as the reparameterised form of `Iblr`"
                .into(),
        ))
    }

    /// Takes the rows of step `step` = 0, 1, …, where the target sees a part of its data at a time.
    fn renew(&mut self, step: usize) {
        let _ = step;
    }

    /// Tells whether values differ from step to step at the same position.
    fn is_noisy(&self) -> bool {
        false
    }
}

/// Finite values and gradients of a [`Target`] at N positions.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// φ, N numbers.
    pub phi: Vec<f64>,
    /// ∇φ, D×N.
    pub gradient: Mat<f64>,
}

impl Evaluation {
    /// Evaluates a target at the columns of a D×N matrix.
    ///
    /// # Errors
    /// [`Error::Shape`] for positions of another dimension, [`Error::NonFinite`] with the particle where a value or a
    /// gradient is none, and the target's own.
    pub fn of(target: &mut dyn Target, x: MatRef<'_, f64>) -> Result<Self> {
        let mut own =
            Self { phi: vec![0.0; x.ncols()], gradient: Mat::zeros(x.nrows(), x.ncols()) };
        check_dim("positions", x.nrows(), target.dim())?;
        check_some("positions", x.ncols())?;
        target.evaluate(x, &mut own.phi, own.gradient.as_mut())?;
        let slopes = own.gradient.as_ref();
        for (n, phi) in own.phi.iter().enumerate() {
            if !phi.is_finite() {
                return Err(Error::NonFinite { what: format!("φ of particle {n}"), value: *phi });
            }
            if let Some(value) = column(slopes, n).iter().find(|g| !g.is_finite()) {
                let what = format!("a slope of φ at particle {n}");
                return Err(Error::NonFinite { what, value: *value });
            }
        }
        Ok(own)
    }

    /// Returns the mean of φ.
    pub fn mean_phi(&self) -> f64 {
        self.phi.iter().sum::<f64>() / self.phi.len() as f64
    }

    /// Returns ḡ, the mean gradient (D numbers).
    pub fn mean_gradient(&self) -> Vec<f64> {
        row_means(self.gradient.as_ref())
    }
}

/// Returns the means of the rows of a D×N matrix.
pub(super) fn row_means(a: MatRef<'_, f64>) -> Vec<f64> {
    let mut sums = vec![0.0; a.nrows()];
    for n in 0..a.ncols() {
        sums.iter_mut().zip(column(a, n)).for_each(|(s, v)| *s += v);
    }
    let count = a.ncols() as f64;
    sums.iter_mut().for_each(|s| *s /= count);
    sums
}

/// Subtracts a vector from every column.
pub(super) fn centred(a: MatRef<'_, f64>, mean: &[f64]) -> Mat<f64> {
    let mut out = a.to_owned();
    for n in 0..a.ncols() {
        column_mut(out.as_mut(), n).iter_mut().zip(mean).for_each(|(v, m)| *v -= m);
    }
    out
}

/// Refuses a dimension that is another than D.
pub(super) fn check_dim(what: &str, found: usize, dim: usize) -> Result<()> {
    if found == dim {
        return Ok(());
    }
    Err(Error::Shape {
        what: what.into(),
        expected: format!("{dim} dimensions"),
        found: format!("{found}"),
    })
}

/// Refuses gradients, or whatever there is one of for every particle, of another number than N.
pub(super) fn check_count(what: &str, found: usize, count: usize) -> Result<()> {
    if found == count {
        return Ok(());
    }
    Err(Error::Shape {
        what: what.into(),
        expected: format!("one for each of {count} particles"),
        found: format!("{found}"),
    })
}

/// Refuses none where a mean is taken.
pub(super) fn check_some(what: &str, count: usize) -> Result<()> {
    match count {
        0 => Err(Error::Invalid(format!("there is no mean over no {what}: give one or more"))),
        _ => Ok(()),
    }
}

/// Refuses numbers that are not finite.
pub(super) fn check_finite<'a>(
    what: &str,
    numbers: impl IntoIterator<Item = &'a f64>,
) -> Result<()> {
    match numbers.into_iter().find(|v| !v.is_finite()) {
        None => Ok(()),
        Some(value) => Err(Error::NonFinite { what: what.into(), value: *value }),
    }
}

/// Refuses a matrix with numbers that are not finite.
pub(super) fn check_finite_matrix(what: &str, a: MatRef<'_, f64>) -> Result<()> {
    (0..a.ncols())
        .try_for_each(|j| (0..a.nrows()).try_for_each(|i| check_finite(what, [&a[(i, j)]])))
}

/// Refuses a square matrix that is not finite or not symmetric to rounding.
pub(super) fn check_symmetric(what: &str, a: MatRef<'_, f64>) -> Result<()> {
    check_finite_matrix(what, a)?;
    let skew = (a - a.transpose()).norm_max();
    if skew > 1e-8 * a.norm_max() {
        return Err(Error::Shape {
            what: what.into(),
            expected: "a symmetric matrix".into(),
            found: format!("entries that differ by {skew:e} from those across the diagonal"),
        });
    }
    Ok(())
}

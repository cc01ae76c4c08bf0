//! Predictions at known and at uncertain inputs.

use super::bound::Bound;
use super::model::Gplvm;
use crate::error::{Error, Result};
use crate::kernels::{self, Kernel};
use crate::linalg::{
    Accum, Cholesky, Mat, MatRef, Par, gemm, not_below_0, par_for, product, sandwich_inverse,
    solve_lower,
};
use crate::psi::{Psi, Uncertain};
use crate::terms::Term;
use faer::Scale;

/// What columns that were missing in the same rows share.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub columns: Vec<usize>,
    /// L_B.
    pub factor: Cholesky,
    /// K⁻¹ − R⁻¹ with R = K + Ψ₂/σ²: how the rows reduce variances.
    pub reduction: Mat<f64>,
}

/// The best q(u) of a bound, on its own: for predictions, and for new rows ([`Posterior::embed`]).
#[derive(Clone)]
pub struct Posterior {
    kernel: Box<dyn Kernel>,
    pub(super) psi: Psi,
    pub(super) factor: Cholesky,
    /// K⁻¹.
    pub(super) inverse: Mat<f64>,
    pub(super) known: Vec<Known>,
    /// b, M×P: means are k(x, Z)b.
    pub(super) b: Mat<f64>,
    pub(super) noise: f64,
    pub(super) term: &'static dyn Term,
}

impl std::fmt::Debug for Posterior {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Posterior({:?}, {} columns)", self.kernel, self.b.ncols())
    }
}

/// Columns that share their rows, and L_B.
#[cfg(feature = "files")]
pub(crate) type KeptGroup<'a> = (&'a [usize], MatRef<'a, f64>);

/// Columns whose matrices are at hand at the same time.
const COLUMNS: usize = 32;

impl Bound<'_> {
    /// Returns the best q(u), which outlives the rows.
    pub fn posterior(&self) -> Posterior {
        let both = self.shared.iter().zip(self.targets().groups());
        let known = both.map(|(shared, group)| Known {
            columns: group.columns.clone(),
            factor: shared.factor.clone(),
            reduction: shared.reduction.clone(),
        });
        Posterior {
            kernel: self.setting().kernel.clone_box(),
            psi: self.psi().clone(),
            factor: self.factor.clone(),
            inverse: self.inverse.clone(),
            known: known.collect(),
            b: self.b.clone(),
            noise: self.setting().noise,
            term: self.setting().term,
        }
    }
}

/// What a file keeps.
#[cfg(feature = "files")]
impl Posterior {
    /// Returns what it takes to make it again: b (M×P), and for columns that share their rows L_B
    /// (M×M).
    pub(crate) fn kept(&self) -> (MatRef<'_, f64>, Vec<KeptGroup<'_>>) {
        let known = self.known.iter().map(|k| (k.columns.as_slice(), k.factor.l.as_ref()));
        (self.b.as_ref(), known.collect())
    }

    /// Returns the absolute jitter in the factor of Kuu.
    pub(crate) fn jitter(&self) -> f64 {
        self.factor.jitter
    }

    /// Makes it of a model, the jitter that was used, and what was [kept](Self::kept).
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] and the like for parts that do not fit the model.
    pub(crate) fn of_parts(
        model: &Gplvm,
        jitter: f64,
        b: Mat<f64>,
        known: Vec<(Vec<usize>, Mat<f64>)>,
    ) -> Result<Self> {
        let z = model.points();
        let factor =
            kernels::factor(&*model.kernel, z, crate::linalg::Jitter::Absolute(jitter), "Kuu")?;
        let known = known.into_iter().map(|(columns, l)| (columns, Cholesky::of_factor(l)));
        Self::of_factors(model, factor, b, known)
    }
}

impl Posterior {
    /// Makes it of a model, the factor of Kuu, b (M×P), and for every group of columns the factor of the precision of L⁻¹u.
    pub(super) fn of_factors(
        model: &Gplvm,
        factor: Cholesky,
        b: Mat<f64>,
        known: impl Iterator<Item = (Vec<usize>, Cholesky)>,
    ) -> Result<Self> {
        let m = factor.size();
        let group = |(columns, own): (Vec<usize>, Cholesky)| {
            let mut shrinkage = own.inverse() * Scale(-1.0);
            (0..m).for_each(|i| shrinkage[(i, i)] += 1.0);
            let reduction = sandwich_inverse(factor.l.as_ref(), shrinkage, par_for(m));
            Known { columns, factor: own, reduction }
        };
        Ok(Self {
            kernel: model.kernel.clone_box(),
            psi: Psi::new(&*model.kernel, model.points())?,
            inverse: factor.inverse(),
            known: known.map(group).collect(),
            b,
            noise: model.noise.scalar(),
            term: model.term,
            factor,
        })
    }

    /// Returns Σ (bbᵀ + R⁻¹ − K⁻¹) over the columns of every group, M×M each.
    pub(super) fn grams(&self) -> Vec<Mat<f64>> {
        let of = |known: &Known| {
            let mut gram = &known.reduction * Scale(-(known.columns.len() as f64));
            let columns = &known.columns;
            let b = Mat::from_fn(self.b.nrows(), columns.len(), |i, j| self.b[(i, columns[j])]);
            gemm(gram.as_mut(), Accum::Add, b.as_ref(), b.transpose(), 1.0, par_for(b.nrows()));
            gram
        };
        self.known.iter().map(of).collect()
    }

    /// Returns the noise variance σ²: what observations have beyond the latent functions.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// Returns the number of latent dimensions.
    pub fn dimensions(&self) -> usize {
        self.psi.points().ncols()
    }

    /// Returns the number of columns of the targets.
    pub fn columns(&self) -> usize {
        self.b.ncols()
    }

    /// Returns what was learnt of the inputs' relevance: see [`Psi::slope_variances`].
    pub fn slope_variances(&self) -> Vec<f64> {
        self.psi.slope_variances()
    }

    /// Returns the means and variances of the latent functions at inputs N(μ, S) (N×Q), N×P each;
    /// S = 0 for inputs that are known. Under uncertain inputs these are the moments of a
    /// distribution that is not Gaussian (Titsias & Lawrence 2010):
    ///
    /// ```text
    /// ⟨f⟩ = ψ₁b      var f = ψ₀ − tr (K⁻¹ − R⁻¹)ψ₂ + bᵀψ₂b − ⟨f⟩²
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the inputs have other dimensions than the points.
    pub fn predict_f(&self, x: Uncertain<'_>) -> Result<(Mat<f64>, Mat<f64>)> {
        let (n, q) = (x.mean.nrows(), x.mean.ncols());
        if q != self.dimensions() {
            return Err(Error::Shape {
                what: "inputs of predictions".into(),
                expected: format!("{} latent dimensions", self.dimensions()),
                found: format!("{q}"),
            });
        }
        if (0..q).all(|j| (0..n).all(|i| x.variance[(i, j)] == 0.0)) {
            return Ok(self.predict_known(x.mean));
        }
        let mean = product(self.psi.psi1(x)?.as_ref(), self.b.as_ref());
        let psi0 = self.psi.psi0(x)?;
        let none = Mat::zeros(n, 0);
        let mut variance = Mat::zeros(n, self.columns());
        let reduction = |p: usize| {
            let own = self.known.iter().find(|known| known.columns.contains(&p));
            own.map(|known| &known.reduction)
        };
        for from in (0..self.columns()).step_by(COLUMNS) {
            let columns = from..self.columns().min(from + COLUMNS);
            let matrix = |p: usize| {
                let (reduction, b) = (reduction(p), self.b.col_as_slice(p));
                Mat::from_fn(b.len(), b.len(), |i, j| {
                    b[i] * b[j] - reduction.map_or(0.0, |reduction| reduction[(i, j)])
                })
            };
            let against: Vec<Mat<f64>> = columns.clone().map(matrix).collect();
            let traces = self.psi.fold(x, none.as_ref(), none.as_ref(), &against)?.traces;
            for (at, p) in columns.enumerate() {
                for i in 0..n {
                    let own = psi0[i] + traces[(i, at)] - mean[(i, p)].powi(2);
                    variance[(i, p)] = not_below_0(own);
                }
            }
        }
        Ok((mean, variance))
    }

    /// Predicts at inputs that are known: k(x, x) − ‖L⁻¹k‖² + ‖L_B⁻¹L⁻¹k‖².
    fn predict_known(&self, x: MatRef<f64>) -> (Mat<f64>, Mat<f64>) {
        let (n, z) = (x.nrows(), self.psi.points());
        let x = x.to_owned();
        let k = kernels::covariances(&*self.kernel, x.as_ref(), Some(z));
        let mut mean = Mat::zeros(n, self.columns());
        gemm(
            mean.as_mut(),
            crate::linalg::Accum::Replace,
            k.as_ref(),
            self.b.as_ref(),
            1.0,
            Par::Seq,
        );
        let mut prior = vec![0.0; n];
        self.kernel.diag(x.as_ref(), &mut prior);
        let squares =
            |a: &Mat<f64>, i: usize| -> f64 { a.col_as_slice(i).iter().map(|v| v * v).sum() };
        let mut white = k.transpose().to_owned();
        solve_lower(self.factor.l.as_ref(), white.as_mut(), Par::Seq);
        (0..n).for_each(|i| prior[i] -= squares(&white, i));
        let mut variance = Mat::zeros(n, self.columns());
        for known in &self.known {
            let mut own = white.clone();
            solve_lower(known.factor.l.as_ref(), own.as_mut(), Par::Seq);
            for i in 0..n {
                let value = not_below_0(prior[i] + squares(&own, i));
                known.columns.iter().for_each(|p| variance[(i, *p)] = value);
            }
        }
        (mean, variance)
    }
}

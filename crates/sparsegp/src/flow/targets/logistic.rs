//! Bayesian logistic regression.

use crate::error::{Error, Result};
use crate::flow::subsample::Subsample;
use crate::flow::target::{Target, check_dim, check_finite_matrix, check_some};
use crate::linalg::{Accum, Mat, MatMut, MatRef, Par, column, column_mut, gemm, product};
use crate::special::{sigmoid, softplus};

/// Labels yᵢ of −1 and 1 with p(yᵢ | w) = σ(yᵢ aᵢᵀw) and w ~ N(0, s²I): φ(w) = Σ log(1 + e^{−yᵢaᵢᵀw}) + ‖w‖²/2s²
/// (Galy-Fajou, Perrone & Opper 2021, §4.5), without the constant of the prior.
#[derive(Clone, Debug)]
pub struct Logistic {
    /// The rows in sight.
    pub(in crate::flow) subsample: Subsample,
    /// A, N×D.
    design: Mat<f64>,
    labels: Vec<f64>,
    variance: f64,
}

impl Logistic {
    /// Takes a design A (N×D, with a column of ones where there is an intercept), N labels and the prior variance s².
    ///
    /// # Errors
    /// [`Error::Shape`] if the sizes differ, [`Error::Invalid`] for labels other than −1 and 1 or a variance that is
    /// not above 0, [`Error::NonFinite`].
    pub fn new(design: Mat<f64>, labels: Vec<f64>, variance: f64) -> Result<Self> {
        if labels.len() != design.nrows() || labels.is_empty() || design.ncols() == 0 {
            return Err(Error::Shape {
                what: "labels and design".into(),
                expected: "as many labels as rows, one or more, and a column or more".into(),
                found: format!("{} and {}×{}", labels.len(), design.nrows(), design.ncols()),
            });
        }
        check_finite_matrix("an entry of the design", design.as_ref())?;
        if let Some(label) = labels.iter().find(|y| y.abs() != 1.0) {
            return Err(Error::Invalid(format!(
                "the label {label} is neither −1 nor 1: classes 0 and 1 become labels by 2y − 1"
            )));
        }
        if !(variance > 0.0 && variance.is_finite()) {
            let text = format!("a prior has a variance above 0, not {variance}");
            return Err(Error::Invalid(text));
        }
        Ok(Self { subsample: Subsample::all(labels.len()), design, labels, variance })
    }

    /// Returns which rows are in sight.
    pub fn subsample(&self) -> &Subsample {
        &self.subsample
    }

    /// Sees these rows from now on.
    ///
    /// # Errors
    /// As for [`Subsample::choose`].
    pub fn choose_rows(&mut self, rows: Vec<usize>) -> Result<()> {
        self.subsample.choose(rows)
    }

    /// Sees at most B rows in a step.
    ///
    /// # Errors
    /// As for [`Subsample::batches`].
    pub fn in_batches(mut self, size: usize, seed: u64) -> Result<Self> {
        self.subsample = Subsample::batches(self.labels.len(), size, seed)?;
        Ok(self)
    }

    /// Returns the mean over weights w (the columns of a D×S matrix) of the probability of label 1 at new rows (R×D).
    ///
    /// # Errors
    /// [`Error::Shape`] for another dimension, [`Error::Invalid`] for no weights.
    pub fn probabilities(&self, w: MatRef<'_, f64>, rows: MatRef<'_, f64>) -> Result<Vec<f64>> {
        check_dim("weights", w.nrows(), self.dim())?;
        check_dim("columns of new rows", rows.ncols(), self.dim())?;
        check_some("weights", w.ncols())?;
        let scores = product(rows, w);
        let mean = |i: usize| (0..w.ncols()).map(|s| sigmoid(scores[(i, s)])).sum::<f64>();
        Ok((0..rows.nrows()).map(|i| mean(i) / w.ncols() as f64).collect())
    }

    /// Returns the rows in sight times their labels, B×D.
    fn signed(&self) -> Mat<f64> {
        let (sight, design) = (&self.subsample, &self.design);
        let entry = |at: usize, d: usize| {
            let row = sight.row(at);
            self.labels[row] * design[(row, d)]
        };
        Mat::from_fn(sight.count(), design.ncols(), entry)
    }
}

impl Target for Logistic {
    fn dim(&self) -> usize {
        self.design.ncols()
    }

    fn evaluate(
        &mut self,
        x: MatRef<'_, f64>,
        phi: &mut [f64],
        mut gradient: MatMut<'_, f64>,
    ) -> Result<()> {
        let (rows, weight) = (self.signed(), self.subsample.weight());
        // margins yᵢaᵢᵀw, then −σ(−margin)
        let mut margins = product(rows.as_ref(), x);
        for (n, phi) in phi.iter_mut().enumerate() {
            let mut sum = 0.0;
            for margin in column_mut(margins.as_mut(), n) {
                sum += softplus(-*margin);
                *margin = -sigmoid(-*margin);
            }
            let w = column(x, n);
            let square: f64 = w.iter().map(|w| w * w).sum();
            *phi = weight * sum + 0.5 * square / self.variance;
            let prior = column_mut(gradient.as_mut(), n).iter_mut();
            prior.zip(w).for_each(|(g, w)| *g = w / self.variance);
        }
        let slopes = margins.as_ref();
        gemm(gradient, Accum::Add, rows.transpose(), slopes, weight, Par::Seq);
        Ok(())
    }

    fn has_hessian(&self) -> bool {
        true
    }

    fn hessian_times(
        &mut self,
        x: &[f64],
        v: MatRef<'_, f64>,
        mut out: MatMut<'_, f64>,
    ) -> Result<()> {
        let (rows, weight) = (self.signed(), self.subsample.weight());
        let margins = product(rows.as_ref(), MatRef::from_column_major_slice(x, x.len(), 1));
        let mut along = product(rows.as_ref(), v);
        for k in 0..v.ncols() {
            let own = column_mut(along.as_mut(), k).iter_mut();
            own.zip(column(margins.as_ref(), 0)).for_each(|(a, m)| *a *= sigmoid(*m) * sigmoid(-m));
            let prior = column_mut(out.as_mut(), k).iter_mut();
            prior.zip(column(v, k)).for_each(|(o, v)| *o = v / self.variance);
        }
        gemm(out, Accum::Add, rows.transpose(), along.as_ref(), weight, Par::Seq);
        Ok(())
    }

    fn renew(&mut self, step: usize) {
        self.subsample.renew(step);
    }

    fn is_noisy(&self) -> bool {
        self.subsample.is_noisy()
    }
}

//! Predictions of many rows in mixed precision.
//!
//! Nearly all of the time of a sparse prediction goes into ‖Gk‖², which inducing points explain of a prior variance: a product of a
//! block of rows with an M×M matrix. In single precision it takes half as long. Kernels, means (M numbers a row) and sums of
//! squares stay in double precision.
//!
//! A variance is the difference of two numbers: what 24 bits leave of it depends on the model and on the rows. Hence some rows
//! are predicted in both precisions before, and a posterior whose deviations change stays in double precision.

use super::Posterior;
use super::gaussian::Gaussian;
use super::law::Marginals;
use super::operands::Rounded;
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, column};
use std::sync::Arc;

/// The share of a standard deviation that single precision may change.
const SHARE: f64 = 0.01;

/// Rows of a panel. All products are of whole panels, so that the bits of a row do not depend on how many come with it.
const PANEL: usize = 256;

/// What the processes of a Gaussian have in single precision, one for each.
pub(super) type Single = Arc<Vec<Rounded>>;

/// Calls `of` with whole panels of rows, of which the last one repeats its last row.
fn in_panels(
    x: MatRef<'_, f64>,
    latents: usize,
    of: impl Fn(MatRef<'_, f64>) -> Marginals,
) -> Marginals {
    let n = x.nrows();
    let mut all = Marginals::zeros(n, latents);
    for start in (0..n).step_by(PANEL) {
        let rows = Mat::from_fn(PANEL, x.ncols(), |i, q| x[((start + i).min(n - 1), q)]);
        let (own, count) = (of(rows.as_ref()), PANEL.min(n - start));
        for (to, from) in [(&mut all.mean, &own.mean), (&mut all.variance, &own.variance)] {
            to.as_mut().subrows_mut(start, count).copy_from(from.as_ref().subrows(0, count));
        }
    }
    all
}

impl Gaussian {
    /// Returns whether its variances are products with M×M matrices of inducing points.
    fn has_products(&self) -> bool {
        !self.is_exact()
    }

    /// Returns the means and variances of the latent functions in the precision of its products,
    /// with what is not known of the mean function.
    pub(super) fn known(&self, x: MatRef<f64>) -> Marginals {
        match &self.single {
            None => self.widened(x),
            Some(_) => in_panels(x, self.latents(), |rows| self.widened(rows)),
        }
    }
}

/// Returns the largest change of a standard deviation, as a share of it.
fn apart(double: &Marginals, single: &Marginals) -> f64 {
    let mut most = 0.0_f64;
    for l in 0..double.variance.ncols() {
        let pairs = column(double.variance.as_ref(), l).iter();
        for (a, b) in pairs.zip(column(single.variance.as_ref(), l)) {
            let change = ((b / a).sqrt() - 1.0).abs();
            // of a kernel that grows beyond all numbers, or of one that is 0
            let same = a.to_bits() == b.to_bits();
            most = most.max(match change {
                _ if same => 0.0,
                change if change.is_nan() => f64::INFINITY,
                change => change,
            });
        }
    }
    most
}

impl Posterior {
    /// Refuses a posterior that has no predictions in mixed precision, whatever the rows.
    ///
    /// # Errors
    /// As for [`Posterior::in_mixed_precision`].
    pub fn check_mixed_precision(&self) -> Result<()> {
        self.with_products().map(|_| ())
    }

    fn with_products(&self) -> Result<&Gaussian> {
        self.law.alone().filter(|own| own.has_products()).ok_or_else(|| {
            Error::Invalid(
                "predictions in mixed precision are of inducing points in one layer, without draws and without errors of \
                 inputs: predict in double precision"
                    .into(),
            )
        })
    }

    /// Returns the posterior that predicts in mixed precision, if rounding changes no standard deviation of a latent function at
    /// `rows` (B×D, some hundred of those to come) by more than 1 %; else itself, in double precision, with a sentence that says why.
    /// Means and variances of the latent functions at single rows, and what is made of them (moments of observations, quantiles,
    /// densities, probabilities of classes), are of products with M×M matrices in single precision then. Means have no such
    /// products. Covariances of rows, draws, slopes and terms stay in double precision.
    ///
    /// The bits of a row's prediction depend neither on the rows beside it nor on the number of threads.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other posteriors than those of inducing points in one layer, without draws and errors of inputs;
    /// [`Error::Shape`] if the number of columns differs.
    pub fn in_mixed_precision(self, rows: MatRef<f64>) -> Result<(Self, Option<String>)> {
        let own = self.with_products()?;
        self.law.check(rows)?;
        let single: Vec<Rounded> = own.processes.iter().map(|p| Rounded::of(p, rows)).collect();
        let beyond = single.iter().find_map(Rounded::beyond);
        let with = Gaussian { single: Some(Arc::new(single)), ..own.clone() };
        let without = Gaussian { single: None, ..own.clone() };
        let change = apart(&without.widened(rows), &with.known(rows));
        if rows.nrows() > 0 && beyond.is_none() && change <= SHARE {
            return Ok((Self { law: Arc::new(with), ..self }, None));
        }
        let reason = match (rows.nrows(), beyond) {
            (0, _) => "there are no rows to compare them at".into(),
            (_, Some(usual)) => {
                format!("prior variances of {usual:.1e} are beyond the numbers of 24 bits")
            }
            (n, None) => format!(
                "at {n} of the rows it changes a standard deviation of the latent function by up to {:.1} %, where {:.0} % is \
                 allowed; what the noise or near inducing points leave of a variance is too little for 24 bits",
                100.0 * change.min(1e3),
                100.0 * SHARE
            ),
        };
        let reason =
            format!("predictions are in double precision, not in mixed precision: {reason}");
        Ok((Self { law: Arc::new(without), ..self }, Some(reason)))
    }
}

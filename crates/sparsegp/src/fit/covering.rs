//! How near rows are to inducing points, by prior correlation.

use super::FitOptions;
use crate::inducing::select::Selection;
use crate::inducing::select::oips::normalised;
use crate::kernels::{Kernel, covariances};
use crate::linalg::{MatRef, column};
use crate::model::Model;

/// Rows that are looked at after training.
const LOOKED_AT: usize = 2000;
/// Part of the rows that may lie apart from all points before that is said.
const APART: f64 = 0.05;

/// Returns what to say where points were chosen by correlation and training has left more than a few rows apart from all of
/// them: the kernel that is there now would have taken more.
pub(super) fn apart(model: &Model, x: MatRef<f64>, options: &FitOptions) -> Option<String> {
    let Selection::Oips(rho) = options.selection else { return None };
    // an exact method has none
    let all = model.inducing_points().ok()?;
    let z = all.as_ref();
    let x = x.subrows(0, x.nrows().min(LOOKED_AT));
    let nearest = model.kernels.iter().map(|kernel| {
        let kernel = &**kernel;
        Variances::new(kernel, z, x).nearest(kernel, x, z)
    });
    let nearest: Vec<Vec<f64>> = nearest.collect();
    let count = (0..x.nrows()).filter(|&i| nearest.iter().any(|own| own[i] < rho)).count();
    let part = count as f64 / x.nrows() as f64;
    (part > APART).then(|| {
        format!(
            "lengthscales have shrunk in training: {:.0} % of the rows now have correlations below {rho} with all {} inducing \
             points, and predictions there are more uncertain than the rows allow; a number of them by `kmeans` or a larger \
             correlation for `oips` gives more",
            100.0 * part,
            z.nrows()
        )
    })
}

/// Prior variances of points and rows, of what other rows can say something about: without white noise.
pub(super) struct Variances {
    points: Vec<f64>,
    rows: Vec<f64>,
}

impl Variances {
    pub(super) fn new(kernel: &dyn Kernel, z: MatRef<f64>, x: MatRef<f64>) -> Self {
        let variance = |row: MatRef<f64>| covariances(kernel, row, Some(row))[(0, 0)];
        let of = |a: MatRef<f64>| (0..a.nrows()).map(|i| variance(a.subrows(i, 1))).collect();
        Self { points: of(z), rows: of(x) }
    }

    /// Returns the largest correlation of every row with a point.
    pub(super) fn nearest(&self, kernel: &dyn Kernel, x: MatRef<f64>, z: MatRef<f64>) -> Vec<f64> {
        let k = covariances(kernel, x, Some(z));
        let mut most = vec![-1.0; x.nrows()];
        for (j, own) in self.points.iter().enumerate() {
            let c = normalised(column(k.as_ref(), j), &self.rows, *own);
            most.iter_mut().zip(c).for_each(|(most, c)| *most = f64::max(*most, c));
        }
        most
    }

    /// Returns the correlations of all rows with row `i`.
    pub(super) fn with_row(&self, kernel: &dyn Kernel, x: MatRef<f64>, i: usize) -> Vec<f64> {
        let k = covariances(kernel, x, Some(x.subrows(i, 1)));
        let mut c = normalised(column(k.as_ref(), 0), &self.rows, self.rows[i]);
        c[i] = 1.0;
        c
    }
}

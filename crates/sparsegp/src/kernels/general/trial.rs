//! What is looked at before a fit: whether the values are covariances, and slopes their slopes.

use super::General;
use crate::error::{Error, Result};
use crate::kernels::Cotangents;
use crate::linalg::{Mat, MatRef, dot};

/// Rows that are looked at.
const ROWS: usize = 5;
/// Values agree to this, relative to the largest variance: distances by products of inputs lose half of the digits.
const VALUES: f64 = 1e-6;
/// Slopes agree with differences to this.
const SLOPES: f64 = 1e-4;

impl General {
    fn wrong(&self, what: &str) -> Error {
        Error::Invalid(format!(
            "the kernel `{}` {what}; `sparsegp::testing` (in Python `sparsegp.testing.check_kernel`) checks it in full",
            self.covariance.name()
        ))
    }

    /// Refuses values at a few of these rows that are not those of a covariance function, and slopes that are not theirs.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the kernel and the rows.
    pub(super) fn tried(&self, x: MatRef<f64>) -> Result<()> {
        let count = ROWS.min(x.nrows());
        if count == 0 {
            return Ok(());
        }
        let places: Vec<usize> = (0..count).map(|i| i * x.nrows() / count).collect();
        let rows = Mat::from_fn(count, x.ncols(), |i, q| x[(places[i], q)]);
        let rows = rows.as_ref();
        let (numbers, mut variances) = (self.numbers(), vec![f64::NAN; count]);
        let mut k = Mat::full(count, count, f64::NAN);
        self.covariance.values(&numbers, rows, rows, k.as_mut());
        self.covariance.variances(&numbers, rows, &mut variances);
        let largest = variances.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        let at = |i: usize, j: usize| format!("for rows {} and {}", places[i], places[j]);
        for i in 0..count {
            for j in 0..count {
                let (own, mirror) = (k[(i, j)], k[(j, i)]);
                if !own.is_finite() {
                    return Err(self.wrong(&format!("is {own} {}", at(i, j))));
                }
                if (own - mirror).abs() > VALUES * largest {
                    let text = format!("is not symmetric: {own} against {mirror} {}", at(i, j));
                    return Err(self.wrong(&text));
                }
            }
            let variance = variances[i];
            if variance.is_nan()
                || variance < 0.0
                || (k[(i, i)] - variance).abs() > VALUES * largest
            {
                return Err(self.wrong(&format!(
                    "has the variance {variance} at row {}, and its value there is {}",
                    places[i],
                    k[(i, i)]
                )));
            }
        }
        let eigenvalues = k.self_adjoint_eigenvalues(faer::Side::Lower);
        let least = eigenvalues.ok().and_then(|all| all.first().copied());
        if let Some(least) = least.filter(|v| *v < -VALUES * count as f64 * largest) {
            return Err(self.wrong(&format!(
                "is not positive semi-definite: an eigenvalue of K at {count} rows is {least}"
            )));
        }
        if self.covariance.has_pull_back() { self.tried_slopes(rows) } else { Ok(()) }
    }

    /// Compares the slopes of a weighted sum, in all parameters and rows, with differences.
    fn tried_slopes(&self, x: MatRef<f64>) -> Result<()> {
        let count = x.nrows();
        // other rows between these: a kernel may have a kink where two are equal
        let z =
            Mat::from_fn(count, x.ncols(), |i, q| 0.7 * x[(i, q)] + 0.3 * x[((i + 1) % count, q)]);
        let weights =
            Mat::from_fn(count, count, |i, j| 1.0 + (1.7 * i as f64 + 5.1 * j as f64).sin());
        let all: usize = self.params.iter().map(crate::params::Param::len).sum();
        let mut own = vec![0.0; all];
        let [x_bar, z_bar] = self.pulled([x, z.as_ref()], weights.as_ref(), &mut own);
        let mut other = vec![0.0; all];
        let columns = self.dims.iter().max().map_or(0, |last| last + 1);
        let [mut dx, mut dz] = [Mat::zeros(count, columns), Mat::zeros(count, columns)];
        let mut sinks =
            Cotangents { params: &mut other, x: Some(dx.as_mut()), z: Some(dz.as_mut()) };
        self.by_differences([x, z.as_ref()], weights.as_ref(), &mut sinks);
        let scale = dot(weights.as_ref(), weights.as_ref()).sqrt();
        let differs = |a: f64, b: f64| {
            let apart = (a - b).abs();
            apart.is_nan() || apart > SLOPES * (scale + b.abs())
        };
        let named = self.names.iter().zip(&self.params);
        let names: Vec<&str> =
            named.flat_map(|(name, param)| vec![name.as_str(); param.len()]).collect();
        for (at, (a, b)) in own.iter().zip(&other).enumerate() {
            if differs(*a, *b) {
                return Err(self.wrong(&format!(
                    "has the slope {a} in `{}`, where differences of its values give {b}",
                    names[at]
                )));
            }
        }
        for (which, own, other) in [("first", &x_bar, &dx), ("second", &z_bar, &dz)] {
            for (q, &d) in self.dims.iter().enumerate() {
                let pairs = own.col_as_slice(q).iter().zip(other.col_as_slice(d));
                if let Some((a, b)) = pairs.into_iter().find(|(a, b)| differs(**a, **b)) {
                    return Err(self.wrong(&format!(
                        "has the slope {a} in column {d} of its {which} inputs, where differences give {b}"
                    )));
                }
            }
        }
        Ok(())
    }
}

//! Three classes by the Heaviside likelihood (Villacampa-Calvo & Hernández-Lobato 2017).

use super::dense::Dense;
use super::normal::largest;
use super::sites::{Found, Sites};
use super::{Evidence, train};
use sparsegp::error::Error;
use sparsegp::kernels::{Cotangents, Kernel, Tape, covariances};
use sparsegp::linalg::{Mat, MatRef};

/// Variance of the noise of every latent variable. The rule looks at signs only, so that the
/// variance of the kernel has a meaning beside it alone; with noise the likelihood of f is the
/// multinomial probit (Girolami & Rogers 2006), and a label on the wrong side is possible.
pub const NOISE: f64 = 1.0;

/// A difference f_y − f_c of a row that its label says is positive.
#[derive(Clone, Copy, Debug)]
struct Difference {
    row: usize,
    own: usize,
    other: usize,
}

impl Difference {
    /// Returns the weight of a class in it.
    fn of(self, class: usize) -> f64 {
        f64::from(u8::from(class == self.own)) - f64::from(u8::from(class == self.other))
    }

    /// Returns the product of the weights of two.
    fn times(self, with: Self) -> f64 {
        with.of(self.own) - with.of(self.other)
    }
}

/// Rows, their differences and sites.
pub struct Rows {
    x: Mat<f64>,
    differences: Vec<Difference>,
    sites: Sites,
}

impl Rows {
    /// Takes inputs and labels 0, 1, 2.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another label.
    pub fn new(x: Mat<f64>, labels: &[f64]) -> sparsegp::Result<Self> {
        let mut differences = Vec::with_capacity(2 * labels.len());
        for (row, label) in labels.iter().enumerate() {
            let Some(own) = (0..3).find(|c| *c as f64 == *label) else {
                return Err(Error::Invalid(format!("a label is 0, 1 or 2, not {label}")));
            };
            let others = (0..3).filter(|c| *c != own);
            differences.extend(others.map(|other| Difference { row, own, other }));
        }
        let sites = Sites::new(differences.len());
        Ok(Self { x, differences, sites })
    }

    /// Returns the prior covariance of the differences, from K(X) of one latent function.
    pub fn prior(&self, k: &Mat<f64>) -> Mat<f64> {
        let all = &self.differences;
        let mut prior = Mat::zeros(all.len(), all.len());
        for (j, b) in all.iter().enumerate() {
            let of_row = k.col_as_slice(b.row);
            for (out, a) in prior.col_as_slice_mut(j).iter_mut().zip(all) {
                let noise = if a.row == b.row { NOISE } else { 0.0 };
                *out = a.times(*b) * (of_row[a.row] + noise);
            }
        }
        prior
    }

    fn settle(&mut self, k: &Mat<f64>) -> sparsegp::Result<Found<Dense>> {
        let prior = self.prior(k);
        let noise = vec![0.0; self.differences.len()];
        self.sites.settle(&noise, |sites| Dense::new(&prior, sites))
    }
}

impl Evidence for Rows {
    fn evaluate(&mut self, kernel: &dyn Kernel) -> sparsegp::Result<(f64, Vec<f64>)> {
        let (n, mut tape) = (self.x.nrows(), Tape::recording());
        let mut k = Mat::zeros(n, n);
        kernel.evaluate(self.x.as_ref(), None, k.as_mut(), &mut tape);
        let found = self.settle(&k)?;
        let bar = found.posterior.cotangent();
        let mut k_bar = Mat::zeros(n, n);
        for (j, b) in self.differences.iter().enumerate() {
            let column = k_bar.col_as_slice_mut(b.row);
            for (a, bar) in self.differences.iter().zip(bar.col_as_slice(j)) {
                column[a.row] += a.times(*b) * bar;
            }
        }
        let mut params = vec![0.0; kernel.num_params()];
        let mut sinks = Cotangents { params: &mut params, x: None, z: None };
        let x = self.x.as_ref();
        kernel.vjp(x, None, k.as_ref(), k_bar.as_mut(), &mut tape, &mut sinks);
        Ok((found.log_z, params))
    }

    fn rows(&self) -> usize {
        self.x.nrows()
    }
}

/// A classifier of three classes with the likelihood Π Θ(f_y − f_c), whose latent functions share a
/// kernel, without inducing points.
///
/// The published method has a Gaussian factor of f_y and one of f_c for every step. This one has a
/// Gaussian factor of their difference, which couples the classes in the posterior (as in
/// Riihimäki, Jylänki & Vehtari 2013): EP of twice as many differences as rows under their joint
/// prior, exact but for the steps' shapes. No minibatches either: all rows at once, to the fixed
/// point.
pub struct Heaviside {
    kernel: Box<dyn Kernel>,
    rows: Rows,
    posterior: Dense,
}

impl Heaviside {
    /// Trains the hyperparameters by at most `iterations` of L-BFGS on inputs (N×D) and labels 0,
    /// 1, 2.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another label; what EP gives at the first hyperparameters.
    pub fn train(
        mut kernel: Box<dyn Kernel>,
        x: Mat<f64>,
        labels: &[f64],
        iterations: usize,
    ) -> sparsegp::Result<Self> {
        let mut rows = Rows::new(x, labels)?;
        train(&mut *kernel, &mut rows, iterations)?;
        let found = rows.settle(&covariances(&*kernel, rows.x.as_ref(), None))?;
        Ok(Self { kernel, rows, posterior: found.posterior })
    }

    /// Returns the probability of every class at new inputs, N×3: that of its latent variable,
    /// noise included, to be the largest of three jointly normal ones.
    pub fn predict_proba(&self, x: MatRef<'_, f64>) -> Mat<f64> {
        let b = x.nrows();
        let k = covariances(&*self.kernel, self.rows.x.as_ref(), Some(x));
        let mut prior = vec![0.0; b];
        self.kernel.diag(x, &mut prior);
        let all = &self.rows.differences;
        let (mut means, mut explained) = (Vec::new(), Vec::new());
        for class in 0..3 {
            let own = Mat::from_fn(all.len(), b, |i, j| all[i].of(class) * k[(all[i].row, j)]);
            means.push(self.posterior.means(&own));
            explained.push(self.posterior.explained(&own));
        }
        let mut p = Mat::zeros(b, 3);
        for i in 0..b {
            let covariance = [0, 1, 2].map(|c| {
                [0, 1, 2].map(|d| {
                    let own = if c == d { prior[i] + NOISE } else { 0.0 };
                    let (u, v) = (explained[c].col_as_slice(i), explained[d].col_as_slice(i));
                    own - u.iter().zip(v).map(|(u, v)| u * v).sum::<f64>()
                })
            });
            let each = largest([means[0][i], means[1][i], means[2][i]], covariance);
            each.into_iter().enumerate().for_each(|(c, value)| p[(i, c)] = value);
        }
        p
    }
}

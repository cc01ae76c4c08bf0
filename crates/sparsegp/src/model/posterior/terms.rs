//! Means and variances of the terms of latent functions.
//!
//! Of f = m + Σ_t f_t with independent f_t, the covariance of f_t(x) with the values at the points is that of the
//! term by itself, k_t(x, P): so all formulas of f hold with k_t in the place of k, whatever the points are and
//! however q was found. Means add up to that of f; variances do not, since terms are known less well than their sum.
//!
//! Rows cannot tell a constant of one term from that of another. Centred terms f_t(x) − Σ_j f_t(p_j)/M leave it to the
//! mean function: they are linear in f_t, so that k_t(x, P) less its mean over the points takes the place of k_t(x, P).

use super::Posterior;
use super::gaussian::Gaussian;
use super::process::Process;
use crate::error::{Error, Result};
#[cfg(doc)]
use crate::kernels::Term;
use crate::kernels::covariances;
use crate::kernels::terms::terms;
use crate::linalg::{Mat, MatRef, column};
use std::ops::Range;

/// Moments of one term of one latent function at rows.
#[derive(Clone, Debug)]
pub struct PredictedTerm {
    /// What it is ([`crate::kernels::Term`]), or [`PredictedTerm::MEAN_FUNCTION`].
    pub name: String,
    /// The latent function that it is a term of.
    pub latent: usize,
    /// The inputs that a term of the kernel is a function of ([`Term::inputs`]); empty for the mean function.
    pub inputs: Vec<usize>,
    /// Means at the rows.
    pub mean: Vec<f64>,
    /// Variances at the rows.
    pub variance: Vec<f64>,
}

impl PredictedTerm {
    /// Name of the mean function; with the means of all terms where these are centred.
    pub const MEAN_FUNCTION: &'static str = "mean function";
}

/// Moments of a term of all latent functions before they are mixed, B×L each; NaN of functions that have no such term.
struct Unmixed {
    name: String,
    inputs: Vec<usize>,
    mean: Mat<f64>,
    variance: Mat<f64>,
    /// The functions that have it.
    latents: Range<usize>,
}

/// Covariances of a term with the points (B×M), and its variances before any row was seen.
struct Prior {
    k: Mat<f64>,
    variances: Vec<f64>,
}

impl Prior {
    /// Takes the mean over the points off the term, and adds it to another.
    fn centre(&mut self, among: &Mat<f64>, level: &mut Prior) {
        let m = among.nrows() as f64;
        let means: Vec<f64> =
            (0..among.ncols()).map(|j| among.col_as_slice(j).iter().sum::<f64>() / m).collect();
        let of_mean = means.iter().sum::<f64>() / m;
        for (i, variance) in self.variances.iter_mut().enumerate() {
            let with_mean = self.k.row(i).iter().sum::<f64>() / m;
            *variance = (*variance - 2.0 * with_mean + of_mean).max(0.0);
            level.variances[i] += of_mean;
        }
        for (j, mean) in means.iter().enumerate() {
            self.k.col_as_slice_mut(j).iter_mut().for_each(|k| *k -= mean);
            level.k.col_as_slice_mut(j).iter_mut().for_each(|k| *k += mean);
        }
    }
}

impl Gaussian {
    /// Returns the moments of all terms, those of a latent function together, the mean function
    /// first.
    ///
    /// # Errors
    /// [`Error::Invalid`] where functions that are mixed have kernels of other terms.
    pub(super) fn parts_by_term(
        &self,
        x: MatRef<f64>,
        names: &[String],
        centred: bool,
    ) -> Result<Vec<PredictedTerm>> {
        let unmixed = self.processes.iter().flat_map(|p| self.terms_of(p, x, names, centred));
        let mut means = Mat::zeros(x.nrows(), self.latents());
        self.mean.evaluate(x, means.as_mut());
        let mut all = Vec::new();
        for own in self.mixed_terms(unmixed.collect())? {
            for latent in own.latents {
                let mut mean = column(own.mean.as_ref(), latent).to_vec();
                if own.name == PredictedTerm::MEAN_FUNCTION {
                    let more = column(means.as_ref(), latent);
                    mean.iter_mut().zip(more).for_each(|(m, more)| *m += more);
                }
                let variance = column(own.variance.as_ref(), latent).to_vec();
                let (name, inputs) = (own.name.clone(), own.inputs.clone());
                all.push(PredictedTerm { name, latent, inputs, mean, variance });
            }
        }
        all.sort_by_key(|term| term.latent);
        Ok(all)
    }

    /// Returns the terms of a process, first that of the mean function but for its values.
    fn terms_of(
        &self,
        p: &Process,
        x: MatRef<f64>,
        names: &[String],
        centred: bool,
    ) -> Vec<Unmixed> {
        let (rows, points) = (x.nrows(), p.points.as_ref());
        let mut level = Prior { k: Mat::zeros(rows, points.nrows()), variances: vec![0.0; rows] };
        let mut all = Vec::new();
        for term in terms(&*p.kernel, names) {
            let k = covariances(&*term.kernel, x, Some(points));
            let mut own = Prior { k, variances: vec![0.0; rows] };
            term.kernel.diag(x, &mut own.variances);
            if centred {
                own.centre(&covariances(&*term.kernel, points, Some(points)), &mut level);
            }
            let inputs = term.inputs(x.ncols());
            all.push(Unmixed { name: term.name, inputs, ..self.moments(p, None, &own) });
        }
        all.insert(0, self.moments(p, Some(x), &level));
        all
    }

    /// Returns the moments of a term by the name of the mean function, and of that itself at `x` if
    /// that is given.
    fn moments(&self, p: &Process, x: Option<MatRef<f64>>, own: &Prior) -> Unmixed {
        let (rows, latents) = (own.k.nrows(), p.latents.clone());
        let mut mean = Mat::full(rows, self.unmixed(), f64::NAN);
        let mut variance = mean.clone();
        let mut to = mean.as_mut().subcols_mut(latents.start, latents.len());
        to.fill(0.0);
        p.add_mean(own.k.as_ref(), to);
        let to = variance.as_mut().subcols_mut(latents.start, latents.len());
        p.variances(&own.variances, &own.k, to);
        for l in latents.clone() {
            if let Some(trend) = &self.trend {
                trend.widen_term(l, x, own.k.as_ref(), variance.col_as_slice_mut(l));
            }
        }
        let (name, inputs) = (PredictedTerm::MEAN_FUNCTION.into(), Vec::new());
        Unmixed { name, inputs, mean, variance, latents }
    }

    /// Joins the same term of all functions that are mixed into one.
    fn mixed_terms(&self, all: Vec<Unmixed>) -> Result<Vec<Unmixed>> {
        let Some(w) = &self.mixing else { return Ok(all) };
        let count = all.len() / self.processes.len();
        let mut shared: Vec<Unmixed> = Vec::with_capacity(count);
        for (t, term) in all.into_iter().enumerate() {
            if t < count {
                shared.push(term);
                continue;
            }
            let own = &mut shared[t % count];
            if own.name != term.name {
                return Err(Error::Invalid(format!(
                    "a prediction of terms is for mixed functions whose kernels have the same terms, and `{}` and `{}` are in \
                     the same place: give every function the same sum",
                    own.name, term.name
                )));
            }
            for l in term.latents {
                own.mean.col_as_slice_mut(l).copy_from_slice(term.mean.col_as_slice(l));
                own.variance.col_as_slice_mut(l).copy_from_slice(term.variance.col_as_slice(l));
            }
        }
        let mixed = |own: Unmixed| Unmixed {
            name: own.name,
            inputs: own.inputs,
            mean: own.mean * w.transpose(),
            variance: self.mixed_variances(own.variance),
            latents: 0..self.latents(),
        };
        Ok(shared.into_iter().map(mixed).collect())
    }
}

impl Posterior {
    /// Returns moments of the terms of the latent functions at rows (B×D): of the mean function, and of every summand of the
    /// kernel ([`crate::kernels::Kernel::terms`]), those of a latent function together. Means add up to that of the latent
    /// function, variances do not. `names` are those of the inputs. `centred` terms have the mean 0 over the points of the
    /// posterior (the training inputs of exact inference, else the inducing points), and the mean function has these means:
    /// without the constant that rows cannot put down to one of them, they are known much better.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs; [`Error::Invalid`] for deep models, draws, inputs with errors, and
    /// mixed latent functions whose kernels have other terms.
    pub fn predict_terms(
        &self,
        x: MatRef<f64>,
        names: &[String],
        centred: bool,
    ) -> Result<Vec<PredictedTerm>> {
        self.law.terms(x, names, centred)
    }
}

//! Posteriors that keep their rows: of methods that predict from neighbours or along a series, and have no factor of the covariance of
//! all rows.

use super::law::{Drawn, Joint, Law, Marginals, Work, check_columns};
use super::rounding::{around, roots_of};
use super::{InputGradients, PredictedTerm};
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, of_latent};
use crate::linalg::{Mat, MatRef, column};
use crate::markov::Past;
use crate::means::Mean;
use crate::model::{Model, RowNoise, weighty};
use rand::Rng;
use std::sync::Arc;

/// Rows with normal noise, from which a method predicts functions of mean 0.
#[derive(Clone, Debug)]
pub struct ConditioningRows {
    /// N×D.
    pub x: Mat<f64>,
    /// Targets less the mean function, N×P.
    pub y: Mat<f64>,
    /// Variances of the noise.
    pub noise: Vec<f64>,
}

impl ConditioningRows {
    /// Returns the rows of a model with Gaussian noise that count, and the noise of each.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another likelihood, and for missing targets.
    pub(crate) fn of(model: &Model, rows: InMemory) -> Result<(Self, RowNoise)> {
        let rows = weighty(rows);
        let own = RowNoise::new(model.gaussian()?.variance.scalar(), &rows);
        let (n, columns) = (rows.x.nrows(), rows.y.ncols());
        if !rows.y.is_all_finite() {
            return Err(Error::Invalid(format!(
                "method `{}` has all targets of a row: leave rows with missing ones out",
                model.method.name()
            )));
        }
        let noise = (0..n).map(|i| own.of(i)).collect();
        let mut mean = Mat::zeros(n, columns);
        model.mean.evaluate(rows.x.as_ref(), mean.as_mut());
        Ok((Self { y: rows.y - mean, x: rows.x, noise }, own))
    }
}

/// Means and variances of latent functions of mean 0, B×L each.
pub type Moments = (Mat<f64>, Mat<f64>);

/// What predicts latent functions of mean 0 from rows.
pub trait Conditional: std::fmt::Debug + Send + Sync {
    /// Returns the means and variances at places (B×D).
    ///
    /// # Errors
    /// What the method gives.
    fn moments(&self, x: MatRef<f64>) -> Result<Moments>;

    /// Returns means (B×L) and the covariance (B×B) of every latent function; one where all have
    /// the same.
    ///
    /// # Errors
    /// What the method gives.
    fn joint(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<Mat<f64>>)>;

    /// Returns the means and variances at every kept row, as the other rows predict it.
    ///
    /// # Errors
    /// What the method gives.
    fn left_out(&self) -> Result<Moments>;

    /// Returns the objective that these rows have.
    fn objective(&self) -> f64;

    /// Returns joint draws of the functions, B×L each; none where they are to come from
    /// [`Conditional::joint`].
    ///
    /// # Errors
    /// What the method gives.
    fn draws(
        &self,
        x: MatRef<f64>,
        samples: usize,
        rng: &mut dyn Rng,
    ) -> Result<Option<Vec<Mat<f64>>>> {
        let _ = (x, samples, rng);
        Ok(None)
    }

    /// Returns the means and variances of the terms of a kernel that is a sum, in the order of
    /// [`Kernel::terms`]; none where they are not known.
    ///
    /// # Errors
    /// What the method gives.
    fn terms(&self, x: MatRef<f64>) -> Result<Option<Vec<Moments>>> {
        let _ = x;
        Ok(None)
    }

    /// Refuses places (B×D) where nothing is known.
    ///
    /// # Errors
    /// [`Error::Invalid`] for places before rows that have left.
    fn check(&self, x: MatRef<f64>) -> Result<()> {
        let _ = x;
        Ok(())
    }

    /// Returns what rows say that have left; none where all are kept, and for methods that keep
    /// all.
    fn past(&self) -> Option<&Past> {
        None
    }

    /// Returns what is known of these rows, of which the first are those that are kept, if that
    /// costs less than conditioning again.
    ///
    /// # Errors
    /// What conditioning gives.
    fn extended(&self, model: &Model, rows: &InMemory) -> Result<Option<Arc<dyn Conditional>>> {
        let _ = (model, rows);
        Ok(None)
    }

    /// Lets the first of the rows go, at most so many, and keeps what they say. Returns how many went; none where rows do not leave.
    ///
    /// # Errors
    /// What conditioning gives.
    fn without_first(&self, model: &Model, rows: &InMemory, most: usize) -> Result<Option<Left>> {
        let _ = (model, rows, most);
        Ok(None)
    }
}

/// How many rows have left, and what is known after that.
pub type Left = (usize, Arc<dyn Conditional>);

/// Rows and what predicts from them.
#[derive(Clone, Debug)]
pub(in crate::model) struct Conditioned {
    mean: Box<dyn Mean>,
    kernels: Vec<Box<dyn Kernel>>,
    latents: usize,
    pub(in crate::model) rows: Arc<InMemory>,
    pub(in crate::model) known: Arc<dyn Conditional>,
}

impl Conditioned {
    pub(super) fn new(model: &Model, rows: InMemory, known: Arc<dyn Conditional>) -> Self {
        Self {
            mean: model.mean.clone(),
            kernels: model.kernels.clone(),
            latents: model.latents(rows.y.ncols()),
            rows: Arc::new(rows),
            known,
        }
    }

    /// Adds the mean function.
    fn raised(&self, x: MatRef<f64>, mean: Mat<f64>) -> Mat<f64> {
        self.mean_at(x) + mean
    }

    /// Returns the mean function, B×L.
    pub(in crate::model) fn mean_at(&self, x: MatRef<f64>) -> Mat<f64> {
        let mut all = Mat::zeros(x.nrows(), self.latents());
        self.mean.evaluate(x, all.as_mut());
        all
    }
}

impl Law for Conditioned {
    fn conditioned(&self) -> Option<&Conditioned> {
        Some(self)
    }

    fn inputs(&self) -> usize {
        self.rows.x.ncols()
    }

    fn latents(&self) -> usize {
        self.latents
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        check_columns(x, self.inputs())?;
        self.kernels.iter().try_for_each(|kernel| kernel.check(x))?;
        self.known.check(x)
    }

    fn components<'a>(&'a self, x: MatRef<'_, f64>, work: Work<'_, 'a>) -> Result<()> {
        self.sweep(x, work)?;
        Ok(())
    }

    fn sweep<'a>(&'a self, x: MatRef<'_, f64>, work: Work<'_, 'a>) -> Result<Marginals> {
        let own = self.marginals(x)?;
        work(None, &own);
        Ok(own)
    }

    fn marginals(&self, x: MatRef<f64>) -> Result<Marginals> {
        let (mean, variance) = self.known.moments(x)?;
        Ok(Marginals { mean: self.raised(x, mean), variance })
    }

    fn sample<'a>(
        &'a self,
        x: MatRef<'_, f64>,
        samples: usize,
        rng: &mut dyn Rng,
    ) -> Result<Vec<Drawn<'a>>> {
        if let Some(draws) = self.known.draws(x, samples, rng)? {
            let one = |f| Drawn { likelihood: None, f: self.raised(x, f) };
            return Ok(draws.into_iter().map(one).collect());
        }
        let (mean, own) = self.known.joint(x)?;
        let mean = self.raised(x, mean);
        let largest: Vec<f64> = (0..own.len())
            .map(|l| {
                let mut prior = vec![0.0; x.nrows()];
                of_latent(&self.kernels, l).diag(x, &mut prior);
                prior.iter().fold(0.0_f64, |a, b| a.max(*b))
            })
            .collect();
        let mut roots = roots_of(&own, &largest)?;
        // one root for functions that have the same covariance
        if roots.len() == 1 {
            roots = vec![roots.swap_remove(0); self.latents()];
        }
        let one = |_| Drawn { likelihood: None, f: around(mean.clone(), &roots, rng) };
        Ok((0..samples).map(one).collect())
    }

    fn joint(&self, x: MatRef<f64>) -> Result<Joint> {
        self.check(x)?;
        let (mean, mut own) = self.known.joint(x)?;
        if own.len() == 1 {
            own = vec![own.swap_remove(0); self.latents()];
        }
        Ok(Joint { mean: self.raised(x, mean), own, mixing: None })
    }

    fn refusal(&self, what: &str) -> Error {
        Error::Invalid(format!(
            "{what} is not known where a posterior keeps its rows (`markov`, `vecchia`, `full-scale`): there are means, variances, covariances, quantiles, \
             densities and draws; for the rest use `exact` or `titsias2025`, or `svgp` for other likelihoods than Gaussian noise"
        ))
    }

    fn gradients(&self, _: MatRef<f64>) -> Result<InputGradients> {
        Err(self.refusal("a slope of predictions"))
    }

    fn terms(&self, x: MatRef<f64>, names: &[String], centred: bool) -> Result<Vec<PredictedTerm>> {
        self.check(x)?;
        let known = if centred { None } else { self.known.terms(x)? };
        let Some(known) = known else {
            return Err(self.refusal(if centred {
                "a centred term"
            } else {
                "a prediction of terms"
            }));
        };
        let function = self.mean_at(x);
        let mut all = Vec::new();
        for latent in 0..self.latents() {
            let named = crate::kernels::terms::terms(&**of_latent(&self.kernels, latent), names);
            all.push(PredictedTerm {
                name: PredictedTerm::MEAN_FUNCTION.into(),
                latent,
                inputs: Vec::new(),
                mean: column(function.as_ref(), latent).to_vec(),
                variance: vec![0.0; x.nrows()],
            });
            for (term, (mean, variance)) in named.iter().zip(&known) {
                all.push(PredictedTerm {
                    name: term.name.clone(),
                    latent,
                    inputs: term.inputs(x.ncols()),
                    mean: column(mean.as_ref(), latent).to_vec(),
                    variance: column(variance.as_ref(), latent).to_vec(),
                });
            }
        }
        Ok(all)
    }
}

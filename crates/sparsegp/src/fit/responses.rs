//! What is expected of observations where the values of the latent functions are known.

use super::{Fitted, Of};
use crate::error::Result;
use crate::likelihoods::Likelihood;
use crate::linalg::{Mat, MatRef};
use crate::model::Functions;

impl Fitted {
    /// Returns names of the columns of expected observations: targets, or classes as `p_LABEL`. Of two classes it is the second.
    pub fn response_names(&self) -> Vec<String> {
        let label = |c: usize| match self.classes.as_ref().and_then(|all| all.labels().get(c)) {
            Some(label) => format!("p_{label}"),
            None => format!("p_{c}"),
        };
        match self.model.likelihood.classes() {
            Some(2) => vec![label(1)],
            Some(classes) => (0..classes).map(label).collect(),
            None => self.target_names.clone(),
        }
    }

    /// Draws E[y | f] jointly at inputs B×D in the data's own units: a matrix B×Q for each sample, with the columns of
    /// [`Fitted::response_names`]. Of classes these are probabilities. Exposures are 1, shares those of one trial, and known
    /// variances of noise 0. O(B³).
    ///
    /// # Errors
    /// As for [`Posterior::sample_f`](crate::model::Posterior::sample_f).
    pub fn sample_responses(
        &self,
        x: MatRef<'_, f64>,
        samples: usize,
        rng: &mut impl rand::Rng,
    ) -> Result<Vec<Mat<f64>>> {
        let rows = self.scaled_rows(x)?;
        let drawn = self.posterior.sample_with(rows.as_ref(), samples, rng)?;
        drawn.iter().map(|(f, likelihood)| self.responses(f.as_ref(), *likelihood)).collect()
    }

    /// Returns E[y | f] of drawn functions at inputs, as [`Fitted::sample_responses`] does; O(waves + M) a value.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the number of columns differs.
    pub fn evaluate_responses(
        &self,
        functions: &Functions,
        x: MatRef<'_, f64>,
    ) -> Result<Vec<Mat<f64>>> {
        let drawn = self.scaled_functions(functions, x)?;
        let own = |(s, f): (usize, &Mat<f64>)| self.responses(f.as_ref(), functions.likelihood(s));
        drawn.iter().enumerate().map(own).collect()
    }

    /// Returns E[y | f], B×Q, where `latent` (B×L) are values of the latent functions on the
    /// model's scale.
    fn responses(&self, latent: MatRef<'_, f64>, likelihood: &dyn Likelihood) -> Result<Mat<f64>> {
        let k = likelihood.latents();
        let certain = vec![0.0; k];
        let values =
            |i: usize, p: usize| -> Vec<f64> { (0..k).map(|l| latent[(i, p * k + l)]).collect() };
        let (rows, targets) = (latent.nrows(), self.target_names.len());
        if let Some(classes) = likelihood.classes() {
            let mut all = Mat::zeros(rows, classes);
            let mut own = vec![0.0; classes];
            for i in 0..rows {
                likelihood.probabilities(&values(i, 0), &certain, &mut own);
                own.iter().enumerate().for_each(|(c, p)| all[(i, c)] = *p);
            }
            return Ok(if classes == 2 { all.subcols(1, 1).to_owned() } else { all });
        }
        if likelihood.standardises() && !self.scaler.is_transformed() {
            let mut mean = Mat::from_fn(rows, targets, |i, p| latent[(i, p * k)]);
            self.scaler.unscale_mean(mean.as_mut())?;
            return Ok(mean);
        }
        let extra = self.plain_extra();
        let (mut mean, mut variance) = (Mat::zeros(rows, targets), Mat::zeros(rows, targets));
        for p in 0..targets {
            for i in 0..rows {
                (mean[(i, p)], variance[(i, p)]) =
                    likelihood.predict(extra, &values(i, p), &certain);
            }
        }
        self.unscale_moments(&mut mean, &mut variance)?;
        Ok(mean)
    }

    /// Returns the means of E[y | f] under the posterior, B×Q, at inputs B×D in the data's own units.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the number of columns differs.
    pub fn predict_responses(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>> {
        match self.model.likelihood.classes() {
            Some(2) => Ok(self.predict_proba(x)?.subcols(1, 1).to_owned()),
            Some(_) => self.predict_proba(x),
            None => {
                let extra = match self.model.likelihood.extra() {
                    Some(_) => vec![self.scaler_extra(); x.nrows()],
                    None => Vec::new(),
                };
                Ok(self.predict_with(x, &extra, Of::Observations)?.0)
            }
        }
    }

    /// Returns what a row is taken to have for a further number, in the data's units.
    fn scaler_extra(&self) -> f64 {
        let extra = self.model.likelihood.extra();
        extra.map_or(1.0, |extra| extra.default.unwrap_or(1.0))
    }

    /// Returns the same on the model's scale.
    fn plain_extra(&self) -> f64 {
        let mut own = [self.scaler_extra()];
        self.scaler.scale_extra(&mut own);
        own[0]
    }
}

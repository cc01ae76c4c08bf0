//! Predictions of the terms of a sum, in the data's units.

use super::fitted::{Fitted, Of};
use crate::data::holidays::inputs_of_holidays;
use crate::error::Result;
use crate::linalg::MatRef;
#[cfg(doc)]
use crate::model::Posterior;
use crate::model::PredictedTerm;

impl Fitted {
    /// Returns moments of the terms of the latent functions at inputs B×D ([`Posterior::predict_terms`]), in the data's
    /// units, those of the functions of targets that are transformed; where a target column has several latent functions, on the
    /// model's scale. The mean of the targets is part of
    /// the mean function. The effects of all holidays are the term `holidays`. On all threads.
    ///
    /// # Errors
    /// As for it.
    pub fn predict_terms(&self, x: MatRef<'_, f64>, centred: bool) -> Result<Vec<PredictedTerm>> {
        let names = self.measured_names();
        let parts =
            self.in_parts(x, &[], |_, x, _| self.posterior.predict_terms(x, names, centred))?;
        let mut parts = parts.into_iter();
        // without rows there is one part, which has the names
        let Some(mut all) = parts.next() else { return Ok(Vec::new()) };
        for part in parts {
            for (own, more) in all.iter_mut().zip(part) {
                own.mean.extend(more.mean);
                own.variance.extend(more.variance);
            }
        }
        let holidays = inputs_of_holidays(&self.columns);
        for term in all.iter_mut().filter(|term| !holidays.is_empty() && term.inputs == holidays) {
            term.name = "holidays".into();
        }
        if self.own_units(Of::Latent) {
            for term in &mut all {
                let scale = self.scaler.y_scale[term.latent];
                let origin = match term.name.as_str() {
                    PredictedTerm::MEAN_FUNCTION => self.scaler.y_mean[term.latent],
                    _ => 0.0,
                };
                term.mean.iter_mut().for_each(|v| *v = *v * scale + origin);
                // twice, because scale² may over- or underflow where the product does not
                term.variance.iter_mut().for_each(|v| *v = *v * scale * scale);
            }
        }
        Ok(all)
    }
}

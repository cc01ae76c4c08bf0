//! Where the latest rows of a series are kept and others have left: from which time on it predicts, in the data's units.

use super::Fitted;
use crate::error::{Error, Result};
use crate::linalg::MatRef;
use crate::markov::Past;

impl Fitted {
    /// Returns what rows say that have left the model, and the input that is the time; none where all are kept.
    fn past(&self) -> Option<(&Past, usize)> {
        let past = self.posterior.past()?;
        Some((past, self.model.time(self.scaler.x_mean.len()).ok()?))
    }

    /// Returns the place of the last row that has left the model, in the data's units: predictions are known from there on. None
    /// where all rows are kept, and for methods whose rows do not leave.
    pub fn kept_from(&self) -> Option<String> {
        let (past, time) = self.past()?;
        let place = self.scaler.unscaled_input(time, past.t());
        let known = |text: &String| {
            // of dates the last digits are cut
            text.parse().is_ok_and(|value: f64| self.scaler.scaled_input(time, value) >= past.t())
        };
        // what is written and read again may lie before it by rounding
        let next = |k: i32| place + f64::from(k) * f64::EPSILON * place.abs();
        let texts = || (0..4).map(|k| self.place_text(time, next(k)));
        texts().find(known).or_else(|| texts().next())
    }

    /// Returns a value of an input, as its table has it.
    fn place_text(&self, input: usize, value: f64) -> String {
        let mut first = 0;
        let date = self.columns.iter().any(|own| {
            first += own.input_names().len();
            first == input + 1 && own.encoding.is_date()
        });
        #[cfg(feature = "tables")]
        if date {
            return crate::data::date_text(value);
        }
        let _ = date;
        // a number that was scaled and back again has noise in its last digits
        let short = format!("{value:.11e}").parse::<f64>().unwrap_or(value);
        if (short - value).abs() <= 1e-14 * value.abs() {
            short.to_string()
        } else {
            value.to_string()
        }
    }

    /// Returns which rows (B×D, in the data's units) lie before those that have left the model, so that it neither predicts nor
    /// learns there; none where all rows are kept.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of columns.
    pub fn lie_before_kept(&self, x: MatRef<'_, f64>) -> Result<Vec<bool>> {
        let Some((past, time)) = self.past() else { return Ok(vec![false; x.nrows()]) };
        let mut scaled = x.to_owned();
        self.scaler.scale_x(scaled.as_mut())?;
        Ok((0..x.nrows()).map(|i| scaled[(i, time)] < past.t()).collect())
    }

    /// Refuses rows of the model's scale that lie before those that it predicts at.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the value of the first of them.
    pub(super) fn check_kept(&self, x: MatRef<'_, f64>) -> Result<()> {
        let Some((past, time)) = self.past() else { return Ok(()) };
        let Some(i) = (0..x.nrows()).find(|i| x[(*i, time)] < past.t()) else { return Ok(()) };
        Err(Error::Invalid(format!(
            "`{}` is {} in one row, and {} rows up to {} have left the model, which knows what they say of later places only: leave \
             such rows out, or fit a new model and let it keep more (`keep_rows`, 0 for all)",
            self.input_names.get(time).map_or("", String::as_str),
            self.place_text(time, self.scaler.unscaled_input(time, x[(i, time)])),
            past.rows,
            self.kept_from().unwrap_or_default()
        )))
    }
}

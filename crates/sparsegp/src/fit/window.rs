//! Where the latest rows of a series are kept and others have left: from which place on it predicts, in the data's units.

use super::Fitted;
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};

impl Fitted {
    /// Returns the place of the last row that has left the model, in the data's units: predictions are known from there on. None
    /// where all rows are kept, and for methods whose rows do not leave.
    pub fn kept_from(&self) -> Option<String> {
        let past = self.posterior.past()?;
        let mut x = Mat::from_fn(1, 1, |_, _| past.t());
        self.scaler.unscale_x(x.as_mut()).ok()?;
        let place = x[(0, 0)];
        let known = |text: &String| {
            // of dates the last digits are cut
            text.parse().is_ok_and(|value: f64| {
                let mut x = Mat::from_fn(1, 1, |_, _| value);
                self.scaler.scale_x(x.as_mut()).is_ok() && x[(0, 0)] >= past.t()
            })
        };
        // what is written and read again may lie before it by rounding
        let next = |k: i32| place + f64::from(k) * f64::EPSILON * place.abs();
        let texts = || (0..4).map(|k| self.place_text(next(k)));
        texts().find(known).or_else(|| texts().next())
    }

    /// Returns a value of the only input, as its table has it.
    fn place_text(&self, value: f64) -> String {
        let date = matches!(&self.columns[..], [own] if own.encoding.is_date());
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
        let Some(past) = self.posterior.past() else { return Ok(vec![false; x.nrows()]) };
        let mut scaled = x.to_owned();
        self.scaler.scale_x(scaled.as_mut())?;
        Ok((0..x.nrows()).map(|i| scaled[(i, 0)] < past.t()).collect())
    }

    /// Refuses rows of the model's scale that lie before those that it predicts at.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the value of the first of them.
    pub(super) fn check_kept(&self, x: MatRef<'_, f64>) -> Result<()> {
        let Some(past) = self.posterior.past() else { return Ok(()) };
        let Some(i) = (0..x.nrows()).find(|i| x[(*i, 0)] < past.t()) else { return Ok(()) };
        let mut at = Mat::from_fn(1, 1, |_, _| x[(i, 0)]);
        self.scaler.unscale_x(at.as_mut())?;
        Err(Error::Invalid(format!(
            "`{}` is {} in one row, and {} rows up to {} have left the model, which knows what they say of later places only: leave \
             such rows out, or fit a new model and let it keep more (`keep_rows`, 0 for all)",
            self.input_names.first().map_or("", String::as_str),
            self.place_text(at[(0, 0)]),
            past.rows,
            self.kept_from().unwrap_or_default()
        )))
    }
}

//! What the hidden layers of a deep model give.

use super::Fitted;
use crate::error::Result;
use crate::linalg::{Mat, MatRef};

impl Fitted {
    /// Returns means and variances of what every hidden layer gives at inputs (N×D, in the data's units): N×P each, P the functions of
    /// the layer, on the model's scale, which is the layer's own. After the first layer they are moments over paths. None for a model
    /// of one layer.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for another number of columns.
    pub fn hidden_layers(&self, x: MatRef<'_, f64>) -> Result<Vec<(Mat<f64>, Mat<f64>)>> {
        self.posterior.hidden_layers(self.scaled_rows(x)?.as_ref())
    }
}

//! What the hidden layers of a deep model give.

use super::Fitted;
use crate::error::Result;
use crate::linalg::{Mat, MatRef, in_parts, stacked};

impl Fitted {
    /// Returns means and variances of what every hidden layer gives at inputs (N×D, in the data's units): N×P each, P the functions of
    /// the layer, on the model's scale, which is the layer's own. After the first layer they are moments over paths. None for a model
    /// of one layer.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for another number of columns.
    pub fn hidden_layers(&self, x: MatRef<'_, f64>) -> Result<Vec<(Mat<f64>, Mat<f64>)>> {
        let x = self.scaled_rows(x)?;
        let parts = in_parts(x.as_ref(), |_, x| self.posterior.hidden_layers(x))?;
        let layers = parts.first().map_or(0, Vec::len);
        let of = |l: usize| {
            let (means, variances): (Vec<_>, Vec<_>) =
                parts.iter().map(|part| (part[l].0.clone(), part[l].1.clone())).unzip();
            let columns = means[0].ncols();
            (stacked(&means, x.nrows(), columns), stacked(&variances, x.nrows(), columns))
        };
        Ok((0..layers).map(of).collect())
    }
}

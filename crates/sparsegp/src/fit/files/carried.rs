//! What a model that was updated carries of its rows.

use super::foreign;
use super::read::Reader;
use crate::error::Result;
use crate::fit::Fitted;
use crate::linalg::Mat;
use crate::model::Model;
use crate::online::Site;

const PRECISION: &str = "carried.precision";
const LINEAR: &str = "carried.linear";
const CONSTANT: &str = "carried.constant";

/// The sites' numbers as matrices with names: precisions one below the other (LM×M), linear parts (L×M) and constants (L×1).
/// Their points are the model's.
pub(super) fn matrices(fitted: &Fitted) -> Vec<(&'static str, Mat<f64>)> {
    // one of whitened values has a root, which the posterior can give again
    let sites: Vec<Site> = fitted.carried.iter().map(Site::of_values).collect();
    let Some(m) = sites.first().map(|site| site.linear.len()) else { return Vec::new() };
    let precision =
        Mat::from_fn(sites.len() * m, m, |row, j| sites[row / m].precision[(row % m, j)]);
    let linear = Mat::from_fn(sites.len(), m, |l, i| sites[l].linear[i]);
    let constant = Mat::from_fn(sites.len(), 1, |l, _| sites[l].constant);
    vec![(PRECISION, precision), (LINEAR, linear), (CONSTANT, constant)]
}

/// The sites of a file, of which the model is read; none where it holds none.
pub(super) fn read(tensors: &Reader<'_>, model: &Model, latents: usize) -> Result<Vec<Site>> {
    if !tensors.has(PRECISION) {
        return Ok(Vec::new());
    }
    let (z, all) = (model.inducing_points()?, tensors.matrix(PRECISION)?);
    let (linear, constant) = (tensors.matrix(LINEAR)?, tensors.matrix(CONSTANT)?);
    let m = z.nrows();
    let fits =
        |a: &Mat<f64>, rows: usize, columns: usize| a.nrows() == rows && a.ncols() == columns;
    if !(fits(&all, latents * m, m) && fits(&linear, latents, m) && fits(&constant, latents, 1)) {
        return Err(foreign(
            "tensors of what it carries of its rows do not fit its inducing points",
        ));
    }
    let site = |l: usize| Site {
        z: z.clone(),
        precision: all.as_ref().subrows(l * m, m).to_owned(),
        linear: (0..m).map(|i| linear[(l, i)]).collect(),
        constant: constant[(l, 0)],
        root: None,
    };
    Ok((0..latents).map(site).collect())
}

//! What a model that was updated carries of its rows.

use super::foreign;
use super::read::Reader;
use crate::data::InMemory;
use crate::error::Result;
use crate::fit::{Fitted, KeptRows};
use crate::linalg::Mat;
use crate::model::Model;
use crate::online::Site;

const PRECISION: &str = "carried.precision";
const LINEAR: &str = "carried.linear";
const CONSTANT: &str = "carried.constant";
const ROWS: &str = "kept.rows";
const SITES: &str = "kept.sites";

/// Returns the sites' numbers as matrices with names: precisions one below the other (LM×M), linear
/// parts (L×M) and constants (L×1). Their points are the model's.
pub(super) fn matrices(fitted: &Fitted) -> Vec<(&'static str, Mat<f64>)> {
    // one of whitened values has a root, which the posterior can give again
    let sites: Vec<Site> = fitted.carried.iter().map(Site::of_values).collect();
    let Some(m) = sites.first().map(|site| site.linear.len()) else { return Vec::new() };
    let precision =
        Mat::from_fn(sites.len() * m, m, |row, j| sites[row / m].precision[(row % m, j)]);
    let linear = Mat::from_fn(sites.len(), m, |l, i| sites[l].linear[i]);
    let constant = Mat::from_fn(sites.len(), 1, |l, _| sites[l].constant);
    let mut all = vec![(PRECISION, precision), (LINEAR, linear), (CONSTANT, constant)];
    let kept = &fitted.kept_rows;
    if kept.count() > 0 {
        let InMemory { x, y, weights, extra } = &kept.rows;
        let (d, p, l) = (x.ncols(), y.ncols(), kept.first.len());
        let entry = |i: usize, j: usize| match j {
            j if j < d => x[(i, j)],
            j if j < d + p => y[(i, j - d)],
            j if j == d + p => weights.get(i).copied().unwrap_or(1.0),
            j if j == d + p + 1 => extra.get(i).copied().unwrap_or(f64::NAN),
            _ => kept.ranks[i],
        };
        all.push((ROWS, Mat::from_fn(kept.count(), d + p + 3, entry)));
        let sites = |i: usize, j: usize| match j.checked_sub(l) {
            None => kept.first[j][i],
            Some(j) => kept.second[j][i],
        };
        all.push((SITES, Mat::from_fn(kept.count(), 2 * l, sites)));
    }
    all
}

/// Reads the rows of a file that are kept, of D inputs, for so many sites; none where it holds
/// none.
pub(super) fn read_rows(tensors: &Reader<'_>, d: usize, latents: usize) -> Result<KeptRows> {
    if !tensors.has(ROWS) {
        return Ok(KeptRows::default());
    }
    let (shape, all) = tensors.raw(ROWS)?;
    let (sites, l) = (tensors.matrix(SITES)?, latents);
    let fits = matches!(shape[..], [k, columns] if k == sites.nrows() && k > 0 && columns > d + 3);
    if !fits || sites.ncols() != 2 * l {
        return Err(foreign("tensors of the rows that it keeps do not fit the model"));
    }
    let (k, columns) = (shape[0], shape[1]);
    let p = columns - d - 3;
    let at = |i: usize, j: usize| all[i * columns + j];
    let column = |j: usize| -> Vec<f64> { (0..k).map(|i| at(i, j)).collect() };
    let (weights, extra, ranks) = (column(d + p), column(d + p + 1), column(d + p + 2));
    let finite = |i: usize, j: usize| at(i, j).is_finite();
    let whole = (0..k).all(|i| (0..d).chain([d + p, d + p + 2]).all(|j| finite(i, j)));
    if !whole {
        return Err(foreign("the rows that it keeps have numbers that are not finite"));
    }
    let plain = |own: Vec<f64>, skip: fn(f64) -> bool| match own.iter().all(|v| skip(*v)) {
        true => Vec::new(),
        false => own,
    };
    let rows = InMemory {
        x: Mat::from_fn(k, d, at),
        y: Mat::from_fn(k, p, |i, j| at(i, d + j)),
        weights: plain(weights, |w| w == 1.0),
        extra: plain(extra, f64::is_nan),
    };
    let sites_of = |from: usize| -> Vec<Vec<f64>> {
        (from..from + l).map(|j| (0..k).map(|i| sites[(i, j)]).collect()).collect()
    };
    Ok(KeptRows { rows, first: sites_of(0), second: sites_of(l), ranks })
}

/// Reads the sites of a file, of which the model is read; none where it holds none.
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

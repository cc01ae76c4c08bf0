//! Other hyperparameters that predictions average over, and what they are conditioned by.

use super::foreign;
use super::read::Reader;
use crate::error::Result;
use crate::linalg::{Mat, column};
use crate::model::{Model, Posterior};
use crate::variational::Variational;

const HYPERPARAMETERS: &str = "posterior.hyperparameters";
const TIMES: &str = "posterior.times";
const SITES: &str = "posterior.sites";

/// Most components of an average.
const MOST: f64 = 1e5;

/// Returns the tensors of a posterior.
pub(super) fn matrices(posterior: &Posterior) -> Vec<(&'static str, Mat<f64>)> {
    let all = posterior.hyperparameters();
    let Some(first) = all.first() else { return Vec::new() };
    let mut found = vec![(HYPERPARAMETERS, Mat::from_fn(all.len(), first.len(), |s, i| all[s][i]))];
    if !posterior.draws().is_empty() {
        return found;
    }
    let times = posterior.times();
    found.push((TIMES, Mat::from_fn(times.len(), 1, |s, _| times[s] as f64)));
    let sites = posterior.sites();
    if let Some(q) = sites.first() {
        let (n, latents) = (q.points(), q.latents());
        let value = |r: usize, i: usize| {
            let (own, l) = (&sites[r / (2 * latents)], r % latents);
            let param = if (r / latents).is_multiple_of(2) { &own.first } else { &own.second };
            param.value()[l * n + i]
        };
        found.push((SITES, Mat::from_fn(sites.len() * 2 * latents, n, value)));
    }
    found
}

/// Reads the posterior, averaged over the hyperparameters of the file.
pub(super) fn read(
    posterior: Posterior,
    tensors: &Reader<'_>,
    model: &Model,
    weighted: bool,
) -> Result<Posterior> {
    let (all, times) = (tensors.matrix(HYPERPARAMETERS)?, tensors.matrix(TIMES)?);
    let counts = |v: f64| (1.0..=MOST).contains(&v) && v.fract() == 0.0;
    let fits = times.ncols() == 1
        && times.nrows() == all.nrows()
        && column(times.as_ref(), 0).iter().all(|v| counts(*v));
    if !fits {
        return Err(foreign("tensor `posterior.times` does not fit the hyperparameters"));
    }
    let own = |s: usize| (0..all.ncols()).map(|i| all[(s, i)]).collect();
    let own = (0..all.nrows()).map(own).collect();
    let times: Vec<usize> = column(times.as_ref(), 0).iter().map(|v| *v as usize).collect();
    let sites = match &model.q {
        Some(q) => sites(q, &tensors.matrix(SITES)?, times.len())?,
        None => Vec::new(),
    };
    let found = posterior.integrated(model, own, &times, sites, weighted);
    found.map_err(|error| foreign(format!("{HYPERPARAMETERS}: {error}")))
}

/// Returns the sites of so many settings, in the form of the model's.
fn sites(q: &Variational, all: &Mat<f64>, settings: usize) -> Result<Vec<Variational>> {
    let (n, latents) = (q.points(), q.latents());
    let sites_of_rows = q.first.len() == q.second.len();
    if !sites_of_rows || all.ncols() != n || all.nrows() != settings * 2 * latents {
        return Err(foreign("tensor `posterior.sites` does not fit the model's sites"));
    }
    let one = |s: usize| {
        let mut own = q.clone();
        for (which, param) in [&mut own.first, &mut own.second].into_iter().enumerate() {
            for (l, values) in param.value_mut().chunks_mut(n).enumerate() {
                let row = (2 * s + which) * latents + l;
                values.iter_mut().enumerate().for_each(|(i, to)| *to = all[(row, i)]);
            }
        }
        own
    };
    Ok((0..settings).map(one).collect())
}

//! Where the latent inputs start.

use crate::error::{Error, Result, nearest};
use crate::linalg::{Mat, MatRef, product, symmetric_eigen};
use crate::rng::stream;
use rand_distr::{Distribution, StandardNormal};
use std::fmt;
use std::str::FromStr;

/// Where means of q(X) start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatentStart {
    /// Principal components of the targets, with missing cells at their column's mean, each of unit variance.
    #[default]
    Pca,
    /// Draws from the prior N(0, I).
    Random,
}

const NAMED: [(&str, LatentStart); 2] =
    [("pca", LatentStart::Pca), ("random", LatentStart::Random)];

impl FromStr for LatentStart {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self> {
        let known = NAMED.iter().find(|(known, _)| *known == name);
        known.map(|(_, start)| *start).ok_or_else(|| {
            let names = NAMED.iter().map(|(name, _)| *name);
            Error::Invalid(format!(
                "unknown start of latent inputs `{name}`; did you mean `{}`? Possible are `pca` and `random`",
                nearest(name, names).swap_remove(0)
            ))
        })
    }
}

impl fmt::Display for LatentStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = NAMED.iter().find(|(_, start)| start == self);
        f.pad(known.map_or("", |(name, _)| name))
    }
}

/// Starting means, and which part of the variance of the targets they explain, if that is known.
pub(super) struct Started {
    pub mean: Mat<f64>,
    pub explained: Option<f64>,
}

/// Draws from the prior, N×Q.
pub(super) fn random(n: usize, q: usize, seed: u64, restart: usize) -> Mat<f64> {
    let mut rng = stream(seed, &format!("latent/{restart}"));
    let mut out = Mat::zeros(n, q);
    for j in 0..q {
        (0..n).for_each(|i| out[(i, j)] = StandardNormal.sample(&mut rng));
    }
    out
}

/// Below this part of the largest, a component has no direction.
const LEAST: f64 = 1e-10;

/// Returns the first Q principal components of centred targets (N×P, 0 where missing), each of unit
/// variance; components that the targets do not have are draws of the prior. O(min(N, P)³ + NP
/// min(N, P)).
pub(super) fn principal(y: MatRef<f64>, q: usize, seed: u64) -> Result<Started> {
    let (n, p) = (y.nrows(), y.ncols());
    let by_columns = p <= n;
    let gram = if by_columns { product(y.transpose(), y) } else { product(y, y.transpose()) };
    let (values, vectors) = symmetric_eigen(gram.as_ref())?;
    let size = values.len();
    let largest = values.last().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
    let mut mean = random(n, q, seed, 0);
    let mut explained = 0.0;
    for j in 0..q.min(size) {
        let at = size - 1 - j;
        if values[at] <= LEAST * largest {
            break;
        }
        explained += values[at];
        let direction = vectors.as_ref().subcols(at, 1);
        let scores = if by_columns { product(y, direction) } else { direction.to_owned() };
        let scores = scores.col_as_slice(0);
        let square = scores.iter().map(|s| s * s).sum::<f64>() / n as f64;
        // the sign of an eigenvector is arbitrary: the largest score is positive
        let extreme = scores.iter().fold(0.0_f64, |m, s| if s.abs() > m.abs() { *s } else { m });
        let factor = extreme.signum() / square.sqrt();
        for (target, score) in mean.col_as_slice_mut(j).iter_mut().zip(scores) {
            *target = factor * score;
        }
    }
    let total: f64 = values.iter().map(|v| v.max(0.0)).sum();
    Ok(Started { mean, explained: Some((explained / total.max(f64::MIN_POSITIVE)).min(1.0)) })
}

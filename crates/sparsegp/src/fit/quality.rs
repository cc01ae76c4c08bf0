//! How well inducing points stand for the rows.
//!
//! With Q = Kfu Kuu⁻¹ Kuf, what they leave unexplained of row i is rᵢ = kᵢᵢ − qᵢᵢ, the prior variance of f(xᵢ) once
//! the function is known at the inducing points. Three things follow from it:
//!
//! - the **trace residual** tr(Kff − Q)/tr Kff, and how the shares rᵢ/kᵢᵢ are distributed over the rows: a few rows
//!   far from all inducing points look different from too few points everywhere;
//! - the **gap**: the log evidence lies between the bound and [`upper_bound`], so their difference is the most that
//!   more or better inducing points can gain, and the most that KL(q‖posterior) can be (Burt, Rasmussen & van der Wilk
//!   2020, §3);
//! - a **suggested number of points**: each nat that the bound of 2009 loses by its trace term is Σr/2σ², so the
//!   points are enough once the mean of r is a small fraction of the noise variance. How many rows that takes where
//!   each is chosen greedily ([`greedy_traces`]) can be estimated without training.

use super::sample_rows;
use crate::data::Source;
use crate::engine::{Basis, CholeskyBasis, Engine};
use crate::error::{Error, Result};
use crate::inducing::columns;
use crate::inducing::select::greedy_traces;
use crate::kernels::{Kernel, covariances};
use crate::linalg::{column, in_parts};
use crate::methods::{self, upper_bound};
use crate::model::Model;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QualityOptions {
    /// The points are enough where the mean of rᵢ is at most this fraction of the noise variance; for another
    /// likelihood than Gaussian noise, of the mean prior variance.
    pub fraction: f64,
    /// Random rows that the suggestion is made from, at most.
    pub rows: usize,
    /// Most points that are suggested.
    pub most: usize,
    /// Seed of those rows.
    pub seed: u64,
}

impl Default for QualityOptions {
    /// Sets a hundredth of the noise: the bound of 2009 then loses 0.005 nats per row.
    fn default() -> Self {
        Self { fraction: 0.01, rows: 10_000, most: 1000, seed: 0 }
    }
}

/// How well a model's inducing points stand for some rows.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Quality {
    /// Of every kernel with its points: one where all latent functions share them.
    pub processes: Vec<Explained>,
    /// The log evidence lies within it; for Gaussian noise that is the same in all rows.
    pub gap: Option<Gap>,
}

impl Quality {
    /// Returns it for machines, with [`Explained::trace_residual`] and [`Gap::width`].
    pub fn to_json(&self) -> serde_json::Value {
        let mut json = serde_json::json!(self);
        for (l, own) in self.processes.iter().enumerate() {
            json["processes"][l]["trace_residual"] = own.trace_residual().into();
        }
        if let Some(gap) = &self.gap {
            json["gap"]["width"] = gap.width().into();
        }
        json
    }
}

/// What a set of inducing points leaves unexplained under a kernel, on the model's scale.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Explained {
    /// Number of inducing points M.
    pub points: usize,
    /// Rows N.
    pub rows: usize,
    /// tr Kff = Σ kᵢᵢ.
    pub prior_variance: f64,
    /// tr(Kff − Q) = Σ rᵢ.
    pub unexplained: f64,
    /// The largest rᵢ/kᵢᵢ.
    pub largest: f64,
    /// How rᵢ/kᵢᵢ is distributed.
    pub shares: Histogram,
    /// How many points would be enough.
    pub suggestion: Suggestion,
}

impl Explained {
    /// Returns tr(Kff − Q)/tr Kff, between 0 (all is explained) and 1.
    pub fn trace_residual(&self) -> f64 {
        if self.prior_variance > 0.0 { self.unexplained / self.prior_variance } else { 0.0 }
    }
}

/// Counts of shares between powers of ten.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Histogram {
    /// Edges of the bins in rising order, one more than there are bins: 0, then 10⁻⁸ to 1 in quarters of a power
    /// of ten. A bin holds its upper edge.
    pub edges: Vec<f64>,
    /// Rows in every bin; the first has those that are explained to rounding too.
    pub counts: Vec<u64>,
}

/// Bins of a power of ten.
const PER_DECADE: i32 = 4;
/// Powers of ten below 1.
const DECADES: i32 = 8;

impl Histogram {
    fn new() -> Self {
        let edge = |k: i32| match (k % PER_DECADE, k / PER_DECADE) {
            // exact where it can be
            (0, decade) => format!("1e{decade}").parse().unwrap_or(f64::NAN),
            _ => 10_f64.powf(f64::from(k) / f64::from(PER_DECADE)),
        };
        let mut edges = vec![0.0];
        edges.extend((-PER_DECADE * DECADES..=0).map(edge));
        let counts = vec![0; edges.len() - 1];
        Self { edges, counts }
    }

    fn add(&mut self, share: f64) {
        // the first edge that is no less; rounding may bring a share above 1
        let bin = self.edges[1..].partition_point(|edge| *edge < share);
        let last = self.counts.len() - 1;
        self.counts[bin.min(last)] += 1;
    }

    /// Returns rows whose share is above an edge (a power of ten), as a fraction of all; 0 where
    /// there are none.
    pub fn above(&self, edge: f64) -> f64 {
        let from = self.edges.partition_point(|e| *e <= edge * (1.0 + 1e-9)).saturating_sub(1);
        let total: u64 = self.counts.iter().sum();
        let above: u64 = self.counts[from.min(self.counts.len())..].iter().sum();
        if total > 0 { above as f64 / total as f64 } else { 0.0 }
    }
}

/// How many inducing points would be enough.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Suggestion {
    /// The smallest number of rows, chosen greedily by conditional variance, that leave at most `enough` unexplained
    /// of the mean row; the most that were tried if that is not `reached`.
    pub points: usize,
    /// Whether they do.
    pub reached: bool,
    /// The variance that may be left unexplained of the mean row.
    pub enough: f64,
    /// Whether that is a fraction of the noise variance; else it is one of the mean prior variance.
    pub of_noise: bool,
    /// Rows that it was made from.
    pub rows: usize,
}

/// The log evidence from below and above, without log priors.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Gap {
    /// The bound of the model's method where that is a collapsed one, else that of 2009: q at its best.
    pub lower: f64,
    /// [`upper_bound`].
    pub upper: f64,
}

impl Gap {
    /// Returns the most nats that other inducing points can gain at these hyperparameters.
    pub fn width(&self) -> f64 {
        self.upper - self.lower
    }
}

/// Returns how well the model's inducing points stand for these rows (on the model's scale), at its
/// hyperparameters. O(NM²), and for the suggestion O(N′M′²) with at most [`QualityOptions::rows`]
/// and [`QualityOptions::most`].
///
/// # Errors
/// [`Error::Invalid`] for a model without inducing points, or for options that are not possible; [`Error::Shape`]
/// for rows with other columns; what factorising Kuu and reading the rows give.
pub fn quality(
    model: &Model,
    engine: &dyn Engine,
    data: &dyn Source,
    options: &QualityOptions,
) -> Result<Quality> {
    model.check_shallow("judging inducing points")?;
    let sets = model.kernels.len().max(model.inducing.len());
    let d = model.inducing_points()?.ncols();
    if !crate::kernels::points_fit(model.kernel_of(0), d, data.inputs()) {
        return Err(Error::Shape {
            what: "inputs of the rows".into(),
            expected: format!("{d} columns, as many as the inducing points have"),
            found: format!("{}", data.inputs()),
        });
    }
    if !(options.fraction > 0.0 && options.fraction.is_finite()) {
        return Err(Error::Invalid(format!(
            "the fraction that inducing points may leave unexplained must be a positive number, found {}",
            options.fraction
        )));
    }
    if options.rows == 0 || options.most == 0 {
        return Err(Error::Invalid(
            "a number of inducing points can be suggested from one row and one point up, found 0"
                .into(),
        ));
    }
    let processes =
        (0..sets).map(|l| explained(model, l, data, options)).collect::<Result<Vec<_>>>()?;
    Ok(Quality { processes, gap: gap(model, engine, data)? })
}

fn explained(
    model: &Model,
    latent: usize,
    data: &dyn Source,
    options: &QualityOptions,
) -> Result<Explained> {
    let (kernel, z) = (model.kernel_of(latent), model.inducing_set(latent)?);
    let m = z.nrows();
    let kuu = covariances(kernel, z.as_ref(), None);
    let basis = CholeskyBasis::new(kuu.as_ref(), model.jitter)?;
    let mut all = Explained {
        points: m,
        rows: data.rows(),
        prior_variance: 0.0,
        unexplained: 0.0,
        largest: 0.0,
        shares: Histogram::new(),
        suggestion: suggestion(model, kernel, data, options)?,
    };
    data.for_each_chunk(1 << 14, &mut |rows| {
        let parts = in_parts(rows.x, |_, x| {
            let mut diag = vec![0.0; x.nrows()];
            kernel.diag(x, &mut diag);
            let mut phi = covariances(kernel, x, Some(z.as_ref()));
            basis.project(phi.as_mut());
            let mut left = diag.clone();
            for j in 0..m {
                let own = left.iter_mut().zip(column(phi.as_ref(), j));
                own.for_each(|(left, phi)| *left -= phi * phi);
            }
            Ok((diag, left))
        })?;
        for (k, r) in parts.into_iter().flat_map(|(diag, left)| diag.into_iter().zip(left)) {
            // a row without variance has none left
            let share = if k > 0.0 { r / k } else { 0.0 };
            all.prior_variance += k;
            all.unexplained += r;
            all.largest = all.largest.max(share);
            all.shares.add(share);
        }
        Ok(())
    })?;
    Ok(all)
}

fn suggestion(
    model: &Model,
    kernel: &dyn Kernel,
    data: &dyn Source,
    options: &QualityOptions,
) -> Result<Suggestion> {
    let x = sample_rows(data, options.rows, options.seed)?.x;
    let n = x.nrows();
    let mut diag = vec![0.0; n];
    kernel.diag(x.as_ref(), &mut diag);
    let of_noise = model.likelihood.as_gaussian().is_some();
    let scale = if of_noise { model.noise() } else { diag.iter().sum::<f64>() / n.max(1) as f64 };
    let enough = options.fraction * scale;
    let mut column = |i: usize| Ok(columns(kernel, x.as_ref(), &[i])?.col_as_slice(0).to_vec());
    let traces = greedy_traces(options.most, &diag, &mut column, enough * n as f64)?;
    let last = traces.last().copied().unwrap_or(0.0);
    Ok(Suggestion {
        points: (traces.len() - 1).max(1),
        // where nothing is left but rounding no further point helps
        reached: last <= enough * n as f64 || traces.len() <= options.most.min(n),
        enough,
        of_noise,
        rows: n,
    })
}

fn gap(model: &Model, engine: &dyn Engine, data: &dyn Source) -> Result<Option<Gap>> {
    let mut missing = false;
    if model.likelihood.as_gaussian().is_none() || !data.is_plain() || !model.shares_points() {
        return Ok(None);
    }
    data.for_each_chunk(1 << 14, &mut |rows| {
        missing |= (0..rows.y.ncols()).any(|p| column(rows.y, p).iter().any(|y| y.is_nan()));
        Ok(())
    })?;
    if missing || data.outputs() == 0 {
        return Ok(None);
    }
    let own = crate::terms::REGISTRY.iter().any(|term| term.name() == model.method.name());
    let method = if own { model.method } else { methods::find("titsias2009")?.method };
    let trial = Model { method, q: None, ..model.clone() };
    let lower = trial.evaluate(engine, data)?.value;
    let upper = upper_bound(&trial, engine, data)?.value;
    Ok(Some(Gap { lower, upper }))
}

#[cfg(test)]
#[path = "quality_tests.rs"]
mod tests;

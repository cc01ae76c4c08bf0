//! How many inducing points a default fit needs where q is trained, by what the trials of its start have found.
//!
//! With site precisions λᵢ the bound of M points misses at most ½ Σ λᵢ(kᵢᵢ − qᵢᵢ) nats of that without any (Titsias 2009, Eq. 9, with a
//! noise variance of 1/λᵢ for every row). The trial has no points, knows λ on its rows, and has nearly the lengthscales
//! that the fit will end with; rows are chosen greedily by conditional variance.
//!
//! Where more points are needed than by default, rows of two or three inputs are given their nearest neighbours instead, if that is
//! estimated to cost less; up to [`DEARER`] times as much where points can never be enough.

use super::choice::{Choice, Known, choose};
use super::trial::Trial;
use super::{FitOptions, choice};
use crate::data::InMemory;
use crate::error::Result;
use crate::inducing::select::greedy_traces;
use crate::kernels::{Kernel, covariances};
use crate::linalg::{MatRef, column};
use crate::methods;
use crate::vecchia::{MOST_WORK, Metric, work_of_factor};

/// Nats that points may miss.
const MISSED: f64 = 0.5;
/// The part of the rows beyond which as many points cost more than none.
const PART: usize = 2;
/// Rows times latent functions up to which inference without points is affordable.
const AFFORDABLE: usize = 1000;

/// Rows up to which no neighbours are taken: there is little to gain.
const FEW: usize = 500;
/// How many times as much as points neighbours may cost where points are too few in any case.
const DEARER: f64 = 4.0;
/// Evaluations until a training by neighbours ends, about, and passes over the rows in each: steps of the sites, with a
/// factor and its inverse.
const PASSES: f64 = 25.0 * 8.0 * 3.0;
/// The same of a row where draws take the place of a factor, in multiplications of dense matrices that take as long: ten
/// seconds of one processor for a thousand rows.
const BY_DRAWS: f64 = 1.5e8;

/// Returns the multiplications of a training by neighbours under another likelihood than Gaussian noise.
fn of_neighbours(rows: usize, inputs: usize, latents: usize) -> f64 {
    let factor = work_of_factor(rows, inputs);
    let own = if factor > MOST_WORK { BY_DRAWS * rows as f64 } else { PASSES * factor };
    latents as f64 * own
}

/// Returns whether neighbours are another choice, given how many points are needed, and the most that there may be.
fn by_neighbours(
    trial: &Trial,
    options: &FitOptions,
    known: Known<'_>,
    needed: usize,
    most: usize,
) -> bool {
    let Some(inputs) = known.near else { return false };
    let seen = |kernel: &dyn Kernel| Metric::of(kernel, inputs).dims() == inputs;
    if !trial.model.kernels.iter().all(|kernel| seen(&**kernel)) {
        return false;
    }
    let own = of_neighbours(known.rows, inputs, trial.latents());
    let points = needed.min(most);
    let others = match (&options.batches, known.whole) {
        (Some(batches), false) => choice::of_batches(known.rows, points, batches.size),
        _ => choice::of_sites(known.rows, points),
    };
    own < others * if needed > most { DEARER } else { 1.0 }
}

/// Returns another choice where the points of a first one, by the number of rows, are too few, and a warning where even that is
/// not enough. None where they are, or a number was asked for.
pub(super) fn finer(
    trial: &Trial,
    sample: &InMemory,
    options: &FitOptions,
    known: Known<'_>,
    first: &Choice,
) -> Result<Option<(Choice, Option<String>)>> {
    let by_default = options.method == "auto" && choice::asked(options).is_none();
    let whole = first.entry.name == "tsvgp";
    let other = whole || first.entry.name == "svgp" && known.near.is_some();
    if !by_default || !other || trial.model.likelihood.mixing().is_some() {
        return Ok(None);
    }
    let (n, latents) = (known.rows, trial.latents());
    let most = (n / PART).min(super::DEFAULT_INDUCING);
    let Some(needed) = needed(trial, sample.x.as_ref(), most)? else { return Ok(None) };
    if needed <= first.inducing {
        return Ok(None);
    }
    let near = methods::find("vecchia")?;
    if n > FEW
        && near.method.check(&trial.model).is_ok()
        && by_neighbours(trial, options, known, needed, most)
    {
        let reason = format!(
            "{}; nearest neighbours, as {} inducing points would be needed",
            known.why,
            if needed > most { format!("more than {most}") } else { needed.to_string() }
        );
        return Ok(Some((Choice { entry: near, inducing: 0, reason }, None)));
    }
    if !whole {
        return Ok(None);
    }
    let tvgp = methods::find("tvgp")?;
    if needed > n / PART && n * latents <= AFFORDABLE && tvgp.method.check(&trial.model).is_ok() {
        let reason = format!(
            "{}; no inducing points, as more than half of the {n} rows would have to be some",
            known.why
        );
        return Ok(Some((Choice { entry: tvgp, inducing: 0, reason }, None)));
    }
    let warning = (needed > most).then(|| {
        format!(
            "{most} inducing points are too few for what these rows know: the model may be a poor one; try `tvgp`, which has \
             none and takes longer, or more of them (`--inducing`, `n_inducing`)"
        )
    });
    let own = FitOptions { inducing: Some(needed.min(most)), ..options.clone() };
    Ok(Some((choose(&own, known)?, warning)))
}

/// Returns the number of points that is enough for all latent functions; more than `most` where so
/// many are not. None where the trial has no sites.
fn needed(trial: &Trial, x: MatRef<f64>, most: usize) -> Result<Option<usize>> {
    let Some(precisions) = trial.precisions() else { return Ok(None) };
    let rows = x.nrows();
    let mut needed = 0;
    for (l, kernel) in trial.model.kernels.iter().enumerate() {
        let of_kernel = if trial.model.kernels.len() == 1 { 0..precisions.len() } else { l..l + 1 };
        let most_sure = precisions[of_kernel].iter().copied().fold(0.0, f64::max);
        if most_sure <= 0.0 {
            continue;
        }
        let mut diag = vec![0.0; rows];
        kernel.diag(x, &mut diag);
        let kernel: &dyn Kernel = &**kernel;
        let mut of_row = |i: usize| -> Result<Vec<f64>> {
            let k = covariances(kernel, x, Some(x.subrows(i, 1)));
            Ok(column(k.as_ref(), 0).to_vec())
        };
        let enough = 2.0 * MISSED / most_sure;
        let traces = greedy_traces(most, &diag, &mut of_row, enough)?;
        let reached = traces.last().is_some_and(|left| *left <= enough) || traces.len() <= most;
        needed = needed.max(if reached { traces.len() - 1 } else { most + 1 });
    }
    Ok(Some(needed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Inputs, parse};
    use crate::linalg::Mat;
    use crate::methods::DEFAULT_LATENT_NEIGHBOURS;
    use crate::rng::{stream, uniform};
    use crate::vecchia::{Coupled, Plan, Solver};
    use std::sync::Arc;

    /// The estimate is of the factors that there are.
    #[test]
    fn factors_of_neighbours_cost_what_is_estimated() {
        let mut ratios = Vec::new();
        for (inputs, rows) in [(2, 500), (2, 4000), (2, 20_000), (3, 500), (3, 3000), (3, 6000)] {
            let mut rng = stream(7, "rows");
            let x = Mat::from_fn(rows, inputs, |_, _| uniform(&mut rng));
            let kernel = parse("matern32", Inputs::unnamed(inputs)).expect("a kernel");
            let metric = Metric::of(&*kernel, inputs);
            let plan = Plan::new(x.as_ref(), metric, DEFAULT_LATENT_NEIGHBOURS);
            let work = Coupled::new(Arc::new(plan), 1, Solver::Cholesky)
                .expect("a pattern")
                .work()
                .expect("a factor");
            let ratio = work / work_of_factor(rows, inputs);
            ratios.push((inputs, rows, work, ratio));
        }
        assert!(ratios.iter().all(|own| (0.5..2.0).contains(&own.3)), "{ratios:?}");
    }
}

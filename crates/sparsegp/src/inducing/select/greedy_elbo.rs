//! Titsias's greedy selection.

use super::kdpp::check_columns;
use super::pivoted::{Pivoted, check_variances};
use super::{Columns, Selected, check, gather, key};
use crate::error::{Error, Result};
use crate::linalg::{
    Accum, Mat, MatRef, Par, column, column_mut, gemm, solve_lower, sum, sum_of_products,
};
use crate::rng;
use rand::Rng;
use std::collections::HashSet;

/// Rows that are tried for every point by default.
pub const DEFAULT_CANDIDATES: usize = 32;

/// What the rows are to learn from.
#[derive(Clone, Copy, Debug)]
pub struct Targets<'a> {
    /// y − m(x), N×P.
    pub residuals: MatRef<'a, f64>,
    /// Noise variance σ².
    pub noise: f64,
}

/// Selects up to `m` rows of `x` (N×D), each of which raises the collapsed bound most among
/// `candidates` random rows that are not chosen yet (Titsias 2009, §3.1, at given hyperparameters),
/// with that bound for 0, 1, 2, … points.
///
/// `diag` has the N prior variances, `columns` gives columns of K(X). With φ the column that a row would add to Φᵀ,
/// d² = 1 + φᵀ(ΦᵀΦ + σ²I)⁻¹φ and y its targets, the bound
///
/// F = −½{PN log 2πσ² + P log|B| + ‖Y‖²/σ² − ‖L_B⁻¹ΦY/σ²‖²} − P Σr/2σ²,  B = I + ΦΦᵀ/σ² = L_B L_Bᵀ,
///
/// rises by ½{‖c‖² − P log d²} + P‖φ‖²/2σ² (derived here: L_B grows by the row (lᵀ, d) with l = L_B⁻¹Φφ/σ² and d² = 1 +
/// ‖φ‖²/σ² − ‖l‖², and c = (φᵀY/σ² − lᵀL_B⁻¹ΦY/σ²)/d), which is never negative. So a row that is tried costs
/// O(N·points), and all of it O(N M² · candidates), on the current rayon pool; the result does not depend on its
/// size. Ends early, with a note, where no row has a conditional variance left.
///
/// # Errors
/// [`Error::Invalid`] without rows, columns, points or candidates, for a noise variance that is not positive, for
/// a negative prior variance, or if all are zero; [`Error::Shape`] and [`Error::NonFinite`] for variances,
/// covariances and targets that are wrong in number or not finite; errors of `columns`.
pub fn greedy_elbo(
    x: MatRef<'_, f64>,
    m: usize,
    diag: &[f64],
    columns: Columns<'_>,
    targets: Targets<'_>,
    candidates: usize,
    generator: &mut impl Rng,
) -> Result<(Selected, Vec<f64>)> {
    check(x, m, "inputs")?;
    let n = x.nrows();
    let largest = check_variances(diag, n, "greedy-elbo")?;
    check_targets(targets, n)?;
    if candidates == 0 {
        return Err(Error::Invalid(
            "greedy-elbo: at least one candidate is needed, found 0".into(),
        ));
    }
    let threshold = largest * super::DEFAULT_TOLERANCE;
    let mut state = State::new(diag, m.min(n), targets);
    let mut bounds = vec![state.bound];
    let (mut indices, mut seen) = (Vec::new(), HashSet::new());
    while indices.len() < m {
        let left = &state.chosen.left;
        let open: Vec<usize> =
            (0..n).filter(|&i| left[i] > threshold && !seen.contains(&key(x, i))).collect();
        let tried: Vec<usize> = rng::permutation(generator, open.len(), candidates)
            .into_iter()
            .map(|i| open[i])
            .collect();
        if tried.is_empty() {
            break;
        }
        let covariances = columns(&tried)?;
        check_columns(&covariances, n, tried.len())?;
        let row = state.extend(&tried, covariances);
        seen.insert(key(x, row));
        indices.push(row);
        bounds.push(state.bound);
    }
    let note = (indices.len() < m).then(|| {
        format!(
            "{m} inducing points were asked for, but {} explain the prior variance of all {n} rows",
            indices.len()
        )
    });
    let trace_left = Some(state.chosen.trace());
    Ok((Selected { points: gather(x, &indices), requested: m, note, trace_left }, bounds))
}

fn check_targets(Targets { residuals, noise }: Targets<'_>, n: usize) -> Result<()> {
    if !(noise > 0.0 && noise.is_finite()) {
        return Err(Error::Invalid(format!(
            "greedy-elbo: the noise variance must be a positive number, found {noise}"
        )));
    }
    if residuals.ncols() == 0 {
        return Err(Error::Invalid("greedy-elbo: there are no targets".into()));
    }
    (0..residuals.ncols()).try_for_each(|p| {
        super::pivoted::check_length(column(residuals, p), n, "targets of the selection")
    })
}

/// The bound, and what it takes to tell by how much a row would raise it.
struct State<'a> {
    chosen: Pivoted,
    targets: Targets<'a>,
    /// L_B, as large as it can become.
    l: Mat<f64>,
    /// L_B⁻¹ΦY/σ², the same.
    c: Mat<f64>,
    bound: f64,
}

/// What a row would add.
struct Gain {
    value: f64,
    d: f64,
    c: Vec<f64>,
}

impl<'a> State<'a> {
    fn new(diag: &[f64], most: usize, targets: Targets<'a>) -> Self {
        let Targets { residuals, noise } = targets;
        let (n, p) = (residuals.nrows() as f64, residuals.ncols() as f64);
        let squares: f64 =
            (0..residuals.ncols()).map(|j| sum(column(residuals, j), |v| v * v)).sum();
        let variance: f64 = diag.iter().sum();
        let log = (2.0 * std::f64::consts::PI * noise).ln();
        Self {
            chosen: Pivoted::new(diag, most),
            targets,
            l: Mat::zeros(most, most),
            c: Mat::zeros(most, residuals.ncols()),
            bound: -0.5 * (p * n * log + squares / noise) - 0.5 * p * variance / noise,
        }
    }

    /// Chooses the best of some rows, of which the covariances with all rows are N×T; the first of equals.
    fn extend(&mut self, tried: &[usize], mut phi: Mat<f64>) -> usize {
        let m = self.chosen.features().ncols();
        let noise = self.targets.noise;
        let features = self.chosen.features();
        // φ = (k − Φᵀφ(x))/√left
        let own = Mat::from_fn(m, tried.len(), |j, t| features[(tried[t], j)]);
        gemm(phi.as_mut(), Accum::Add, features, own.as_ref(), -1.0, Par::rayon(0));
        for (t, &row) in tried.iter().enumerate() {
            let root = self.chosen.left[row].sqrt();
            phi.col_as_slice_mut(t).iter_mut().for_each(|v| *v /= root);
        }
        let mut l = Mat::zeros(m, tried.len());
        let into = l.as_mut();
        gemm(into, Accum::Replace, features.transpose(), phi.as_ref(), 1.0 / noise, Par::rayon(0));
        solve_lower(self.l.as_ref().submatrix(0, 0, m, m), l.as_mut(), Par::Seq);
        let gains: Vec<Gain> = (0..tried.len())
            .map(|t| self.gain(column(phi.as_ref(), t), column(l.as_ref(), t)))
            .collect();
        let best = (1..gains.len())
            .fold(0, |best, t| if gains[t].value > gains[best].value { t } else { best });
        let Gain { value, d, c } = &gains[best];
        for (j, v) in column(l.as_ref(), best).iter().enumerate() {
            self.l[(m, j)] = *v;
        }
        self.l[(m, m)] = *d;
        c.iter().enumerate().for_each(|(p, c)| self.c[(m, p)] = *c);
        self.bound += value;
        self.chosen.choose_features(tried[best], column_mut(phi.as_mut(), best));
        tried[best]
    }

    fn gain(&self, phi: &[f64], l: &[f64]) -> Gain {
        let Targets { residuals, noise } = self.targets;
        let outputs = residuals.ncols();
        let squares = sum(phi, |v| v * v);
        // at least 1, but for rounding
        let d2 = (1.0 + squares / noise - sum(l, |v| v * v)).max(1.0);
        let d = d2.sqrt();
        let c: Vec<f64> = (0..outputs)
            .map(|p| {
                let before = sum_of_products(l, &column(self.c.as_ref(), p)[..l.len()]);
                (sum_of_products(phi, column(residuals, p)) / noise - before) / d
            })
            .collect();
        let p = outputs as f64;
        let explained: f64 = c.iter().map(|c| c * c).sum();
        let value = 0.5 * (explained - p * d2.ln()) + 0.5 * p * squares / noise;
        Gain { value, d, c }
    }
}

#[cfg(test)]
#[path = "greedy_elbo_tests.rs"]
mod tests;

//! Points chosen in one pass over the rows: online inducing-points selection (Galy-Fajou & Opper 2020), by correlation.

use super::{Columns, Selected, check, gather, kdpp};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, column};

/// Largest correlation with the points so far at which a row still becomes one, unless somebody says so.
pub const DEFAULT_RHO: f64 = 0.8;
/// What [`cap`] multiplies correlations by.
const SHRINK: f64 = 0.95;
/// Points that [`cap`] leaves at least.
const LEAST: usize = 10;

/// Takes every row, in their order, of which the correlation with all points so far is below `rho`: `nearest[k][i]` is the
/// largest one of row i under kernel k (−1 without points; several kernels: a row counts by that under which it is the
/// farthest), and is kept true; `correlations` gives those of a row with all rows, under every kernel. At most `room` rows
/// are taken. Returns them, and how many more would have been.
///
/// Rows one by one and by blocks of any size give the same points.
///
/// # Errors
/// Those of `correlations`.
pub fn accept(
    nearest: &mut [Vec<f64>],
    rho: f64,
    room: usize,
    correlations: &mut dyn FnMut(usize) -> Result<Vec<Vec<f64>>>,
) -> Result<(Vec<usize>, usize)> {
    let (mut taken, mut beyond) = (Vec::new(), 0);
    for i in 0..nearest.first().map_or(0, Vec::len) {
        // strict, as the order of rows decides between equals
        if !nearest.iter().any(|own| own[i] < rho) {
            continue;
        }
        if taken.len() == room {
            beyond += 1;
            continue;
        }
        for (own, new) in nearest.iter_mut().zip(correlations(i)?) {
            own.iter_mut().zip(new).for_each(|(most, c)| *most = most.max(c));
        }
        taken.push(i);
    }
    Ok((taken, beyond))
}

/// Returns |k| / √(k(x, x) k(z, z)) of a column of covariances with z, of which `own` is k(z, z); 1
/// where a row has no prior variance, of which there is nothing to learn, and 0 where z has none
/// and says nothing about others.
pub fn normalised(covariances: &[f64], diag: &[f64], own: f64) -> Vec<f64> {
    let of = |(k, &variance): (&f64, &f64)| match (variance > 0.0, own > 0.0) {
        (false, _) => 1.0,
        (true, false) => 0.0,
        (true, true) => (k.abs() / (variance.sqrt() * own.sqrt())).min(1.0),
    };
    covariances.iter().zip(diag).map(of).collect()
}

/// Chooses at most `m` of the rows of `x` (N×D) in their order, none with a prior correlation of `rho` or more with an earlier one;
/// where these are too many, they are thinned by [`cap`] and the rows gone through again with the smaller threshold, until there are
/// enough; the note says so. `diag` are k(xᵢ, xᵢ). O(NM) memory.
///
/// # Errors
/// [`Error::InvalidParameter`] if `rho` is not between 0 and 1; as for [`Selection::choose`](super::Selection::choose).
pub fn oips(
    x: MatRef<'_, f64>,
    m: usize,
    rho: f64,
    diag: &[f64],
    columns: Columns<'_>,
) -> Result<Selected> {
    check(x, m, "the rows")?;
    check_rho(rho)?;
    let n = x.nrows();
    // rows of which there is something to learn
    let fresh: Vec<f64> = diag.iter().map(|v| if *v > 0.0 { -1.0 } else { 1.0 }).collect();
    // the rows that were taken, with the correlations of all rows with them
    let mut taken: Vec<(usize, Vec<f64>)> = Vec::new();
    let mut threshold = rho;
    let mut largest = None;
    loop {
        let mut nearest = fresh.clone();
        for (_, own) in &taken {
            nearest.iter_mut().zip(own).for_each(|(most, c)| *most = most.max(*c));
        }
        let mut new = Vec::new();
        let mut correlations = |i: usize| {
            let k = columns(&[i])?;
            kdpp::check_columns(&k, n, 1)?;
            let mut c = normalised(column(k.as_ref(), 0), diag, diag[i]);
            c[i] = 1.0;
            new.push((i, c.clone()));
            Ok(vec![c])
        };
        // at most twice as many as are wanted are kept at any time
        let room = 2 * m - taken.len();
        let (_, beyond) = accept(&mut [nearest], threshold, room, &mut correlations)?;
        taken.append(&mut new);
        if taken.len() <= m && beyond == 0 {
            break;
        }
        let among = Mat::from_fn(taken.len(), taken.len(), |i, j| taken[j].1[taken[i].0]);
        let capped = cap(among.as_ref(), threshold, m, LEAST.min(m));
        let mut at = 0..taken.len();
        taken.retain(|_| at.next().is_some_and(|at| capped.keep.binary_search(&at).is_ok()));
        largest = Some(capped.remove);
        if capped.rho >= threshold {
            // nothing is alike any more
            break;
        }
        threshold = capped.rho;
    }
    let mut rows: Vec<usize> = taken.into_iter().map(|(i, _)| i).collect();
    if rows.is_empty() {
        rows.push(0);
    }
    let count = rows.len();
    let note = match largest {
        Some(largest) => Some(format!(
            "correlations below {rho} would take more than {m} inducing points, the most there may be: {count} were kept, \
             which are below {largest:.3}"
        )),
        None if count < m => Some(format!(
            "{count} inducing points are enough for correlations of {rho} with all rows that were looked at, of each of which \
             they explain at least {:.0} % of the prior variance (at most {m} were allowed)",
            100.0 * rho * rho
        )),
        None => None,
    };
    Ok(Selected { points: gather(x, &rows), requested: m, note, trace_left: None })
}

/// Refuses a threshold that takes no row or all.
pub fn check_rho(rho: f64) -> Result<()> {
    if rho > 0.0 && rho < 1.0 {
        return Ok(());
    }
    Err(Error::InvalidParameter {
        path: "oips".into(),
        reason: format!(
            "the correlation {rho} is not between 0 and 1, such as oips({DEFAULT_RHO})"
        ),
    })
}

/// Removes points, given their correlations (M×M), until none has a neighbour with a correlation above `remove` or `least` are
/// left: that with most neighbours first, of equals the one that came last. Returns those that stay.
pub fn prune(correlations: MatRef<'_, f64>, remove: f64, least: usize) -> Vec<usize> {
    let near = |i: usize, j: usize| i != j && correlations[(i, j)] > remove;
    let mut keep: Vec<usize> = (0..correlations.nrows()).collect();
    let mut neighbours: Vec<usize> =
        keep.iter().map(|&i| keep.iter().filter(|&&j| near(i, j)).count()).collect();
    while keep.len() > least {
        // the last of the largest
        match keep.iter().enumerate().max_by_key(|(_, i)| neighbours[**i]) {
            Some((at, &i)) if neighbours[i] > 0 => {
                keep.remove(at);
                keep.iter().filter(|&&j| near(i, j)).for_each(|&j| neighbours[j] -= 1);
            }
            _ => break,
        }
    }
    keep
}

/// What [`cap`] leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Capped {
    /// Points that stay.
    pub keep: Vec<usize>,
    /// The threshold for further rows, which shrinks with the points.
    pub rho: f64,
    /// The largest correlation that was let stand, at last.
    pub remove: f64,
}

/// Prunes until at most `most` points are left, by ever smaller correlations; at least `least`, which is not above `most`.
pub fn cap(correlations: MatRef<'_, f64>, rho: f64, most: usize, least: usize) -> Capped {
    let mut all = Capped { keep: (0..correlations.nrows()).collect(), rho, remove: 1.0 };
    while all.keep.len() > most.max(1) {
        let among = |i: usize, j: usize| correlations[(all.keep[i], all.keep[j])];
        let count = all.keep.len();
        let pairs = (0..count).flat_map(|i| (0..i).map(move |j| (i, j)));
        let largest = pairs.map(|(i, j)| among(i, j)).fold(0.0, f64::max);
        all.remove = SHRINK * largest;
        let own = Mat::from_fn(count, count, among);
        let stay = prune(own.as_ref(), all.remove, least.min(most));
        if all.remove < all.rho {
            all.rho = SHRINK * all.remove;
        }
        if stay.len() == count {
            // none is correlated with another: those that came first
            all.keep.truncate(most.max(1));
            break;
        }
        all.keep = stay.iter().map(|&at| all.keep[at]).collect();
    }
    all
}

/// Returns the volume of the unit ball in `d` dimensions.
fn ball(d: usize) -> f64 {
    match d {
        0 => 1.0,
        1 => 2.0,
        _ => ball(d - 2) * std::f64::consts::TAU / d as f64,
    }
}

/// Bounds the expected number of points that `n` rows uniform in a cube of side `side` give, where rows within `radius` of a point are
/// refused, `radius` ≤ `side`: (1 − (1 − α)ⁿ)/α with α = V_D (r/4a)ᴰ. The balls of half the radius about points are disjoint and
/// each has at least 2⁻ᴰ of its volume inside. (Theorem 1 of Galy-Fajou & Opper 2020 has another α, with which it is not a
/// bound for more than a few inputs.)
pub fn expected_points(n: usize, d: usize, radius: f64, side: f64) -> f64 {
    let alpha = ball(d) * (radius / (4.0 * side)).powi(d as i32);
    // 1 − (1 − α)ⁿ
    -(n as f64 * (-alpha).ln_1p()).exp_m1() / alpha
}

/// Bounds the number of points in such a cube, whatever the rows: (a + r)ᴰ / (V_D (r/2)ᴰ).
pub fn most_in_cube(d: usize, radius: f64, side: f64) -> f64 {
    ((side + radius) / (0.5 * radius)).powi(d as i32) / ball(d)
}

/// Bounds tr(K − Q) of `n` rows of which `m` are points and the others have a correlation of at least `rho` with one, under a kernel of
/// variance `variance`: v(N − M)(1 − ρ²), for a point explains ρ² of a row by itself.
pub fn trace_bound(variance: f64, n: usize, m: usize, rho: f64) -> f64 {
    variance * n.saturating_sub(m) as f64 * (1.0 - rho * rho)
}

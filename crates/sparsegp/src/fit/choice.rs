//! Which method, how many inducing points, and whether by minibatches, unless somebody says so.
//!
//! `auto` counts multiplications. With N rows, M points and minibatches of B rows,
//!
//! | training | multiplications |
//! | --- | --- |
//! | exact inference | [`FINISH`] evaluations of ½N³, from where a pilot ended |
//! | collapsed bound on all rows | [`CLIMB`] evaluations of 6NM² |
//! | sites on all rows | [`CLIMB`] evaluations with [`STEPS`] steps of q for each, of 6NM² |
//! | minibatches | T steps of 4M²B + 4⅓M³, T by [`iterations`] |

use super::{AUTO_EXACT, AUTO_WHOLE, BatchOptions, DEFAULT_INDUCING, Dataset, FitOptions};
use crate::error::Result;
use crate::inducing::select::Selection;
use crate::methods::{self, Method};
use crate::model::Model;
use crate::train::LEAST_ITERATIONS;

/// Evaluations until L-BFGS ends, about; where inducing points move, `auto` ends it after so many iterations.
const CLIMB: f64 = 120.0;
/// The same from hyperparameters that half of the rows, or a thousand, have found.
const FINISH: f64 = 20.0;
/// Inputs up to which neighbours are near enough: `auto` tries no more, `vecchia` can be asked for.
pub(super) const NEARBY: usize = 4;
/// Steps of q at every point of L-BFGS, about.
const STEPS: f64 = 4.0;
/// Rows up to which methods that train q have a quarter of them as points; from there on their square root counts.
const QUARTER: f64 = 800.0;
/// Points that they have at least.
const LEAST: usize = 50;

/// Returns what `auto` takes, in sentences: the limits are computed from the estimates above.
///
/// ```
/// assert!(sparsegp::fit::auto_rule().contains("exact"));
/// ```
pub fn auto_rule() -> String {
    let size = BatchOptions::default().size;
    let first = |cheaper: &dyn Fn(usize) -> bool| {
        let rows = (AUTO_EXACT..=10_000_000).step_by(100).find(|n| cheaper(*n)).unwrap_or(0);
        // the estimate has no more digits than these
        (rows as f64 / 500.0).round() as usize * 500
    };
    let m = DEFAULT_INDUCING;
    let plain = first(&|n| of_batches(n, m, size) < CLIMB * of_evaluation(n, m));
    let other = first(&|n| {
        let m = points(n);
        of_batches(n, m, size) < of_sites(n, m)
    });
    let (least, most) = (2, NEARBY);
    format!(
        "Gaussian noise, at most {AUTO_EXACT} rows, no number of inducing points given: `exact`.\n\
         Gaussian noise, more rows, one input, a kernel that is a Markov process (`matern52` and its kin), no number of inducing \
         points given: `markov`.\n\
         Gaussian noise, more rows, {least} to {most} inputs with a lengthscale each, no number of inducing points given: \
         `vecchia` where the density of its start is above the bound of {m} inducing points.\n\
         Gaussian noise otherwise: `titsias2025` on all rows while that is estimated to cost less than \
         minibatches (up to about {plain} rows with {m} inducing points), beyond it `svgp2025` by minibatches, with \
         `titsias2025` at the end.\n\
         Any other likelihood; and where `exact` is out of reach, rows with weights, known noise variances or missing \
         targets: `tsvgp` on all rows up to {AUTO_WHOLE} rows, and beyond while that is estimated to cost less than \
         minibatches (up to about {other} rows with the default number of points), else `svgp` by minibatches. Where a trial \
         on few rows shows that these points are too few for what the rows know, and where averages over \
         hyperparameters are asked for: `tvgp`, which has none, for few rows; \
         `vecchia` for two or three inputs with a lengthscale each, where that is estimated to cost less; or more points."
    )
}

/// What `auto`, or somebody, has chosen.
#[derive(Clone)]
pub(super) struct Choice {
    pub(super) entry: &'static methods::Entry,
    /// Inducing points that are wanted.
    pub(super) inducing: usize,
    /// Why, in a sentence.
    pub(super) reason: String,
}

/// Returns the number of inducing points for the methods that train q.
fn points(n: usize) -> usize {
    let rows = n as f64;
    let quarter =
        if rows <= QUARTER { rows / 4.0 } else { QUARTER / 4.0 * (rows / QUARTER).sqrt() };
    (quarter as usize).clamp(LEAST, DEFAULT_INDUCING)
}

/// Returns the same as a sentence.
pub(super) fn points_rule() -> String {
    let most = QUARTER / 4.0;
    format!(
        "a quarter of the rows up to {most}, then about {:.0} times their square root, from {LEAST} to {DEFAULT_INDUCING}",
        most / QUARTER.sqrt()
    )
}

/// Returns the number of steps of minibatches for so many rows where no number of epochs is given:
/// thousands, and from 10⁵ rows on the more the more there are to tell something new.
pub(super) fn iterations(n: usize) -> f64 {
    LEAST_ITERATIONS as f64 * (n as f64 / 1e5).max(1.0).powf(0.6)
}

/// Returns the multiplications of an evaluation of the exact evidence: a factor and an inverse.
fn of_exact(n: usize) -> f64 {
    0.5 * (n as f64).powi(3)
}

/// Returns the number of rows whose exact evidence so many multiplications evaluate.
pub(super) fn rows_of_exact(operations: f64) -> usize {
    (2.0 * operations).cbrt() as usize
}

/// Returns the operations of an evaluation on all rows.
pub(super) fn of_evaluation(n: usize, m: usize) -> f64 {
    6.0 * n as f64 * (m as f64).powi(2)
}

/// Returns the operations of a training by sites on all rows.
pub(super) fn of_sites(n: usize, m: usize) -> f64 {
    CLIMB * STEPS * of_evaluation(n, m)
}

/// Returns the operations of a training by minibatches.
pub(super) fn of_batches(n: usize, m: usize, size: usize) -> f64 {
    let m = m as f64;
    iterations(n) * (4.0 * m * m * size.min(n) as f64 + 13.0 / 3.0 * m.powi(3))
}

/// Returns the operations of the training that follows, about: what the method costs that these
/// options take.
pub(super) fn of_training(dataset: &Dataset, options: &FitOptions) -> f64 {
    let n = dataset.source.rows();
    let latents =
        dataset.classes.as_ref().map_or(dataset.target_names.len(), |c| match c.count() {
            2 => 1,
            several => several,
        });
    let method = methods::find(&options.method).ok().map(|entry| entry.method);
    let points = asked(options).unwrap_or(DEFAULT_INDUCING).min(n);
    let exact = method.map_or(n <= AUTO_EXACT && asked(options).is_none(), |own| !own.is_sparse());
    let size = options.batches.as_ref().map_or(n, |batches| batches.size);
    let all = if exact { FINISH * of_exact(n) } else { CLIMB * of_evaluation(n, points) };
    let some = of_batches(n, points, size);
    let batches = method.map_or(!exact, |own| own.in_minibatches()) && options.batches.is_some();
    latents as f64 * if batches { all.min(some) } else { all }
}

/// Returns the number of points that was asked for.
pub(super) fn asked(options: &FitOptions) -> Option<usize> {
    match &options.selection {
        Selection::Given(points) => Some(points.nrows()),
        _ => options.inducing,
    }
}

/// What `auto` goes by.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// Rows.
    pub(super) rows: usize,
    /// Whether the noise is Gaussian and no target is missing.
    pub(super) gaussian: bool,
    /// Whether rows moreover have neither weights nor noise variances.
    pub(super) plain: bool,
    /// What other rows have.
    pub(super) why: &'a str,
    /// Whether all rows are seen at once where a q is trained.
    pub(super) whole: bool,
    /// Whether rows are in other processes.
    pub(super) sharded: bool,
    /// Whether there is one input, of which the kernel makes a Markov process.
    pub(super) series: bool,
    /// Whether there are few inputs, so that neighbours may say more than inducing points.
    pub(super) nearby: bool,
    /// The inputs, where there are few enough for neighbours under any likelihood.
    pub(super) near: Option<usize>,
    /// Whether averages over hyperparameters were asked for.
    pub(super) averaged: bool,
}

/// Picks the method and the number of inducing points, and says why.
pub(super) fn choose(options: &FitOptions, known: Known<'_>) -> Result<Choice> {
    let Known { rows: n, gaussian, plain, why, whole, sharded, series, .. } = known;
    let asked = asked(options);
    let wanted = asked.unwrap_or(DEFAULT_INDUCING);
    // many passes over few rows: q of M = N would cost far more than it gives
    let trained = asked.unwrap_or(points(n));
    let of = |name: &str, inducing: usize, reason: String| -> Result<Choice> {
        Ok(Choice { entry: methods::find(name)?, inducing, reason })
    };
    if options.method != "auto" {
        let entry = methods::find(&options.method)?;
        let usual = entry.method.usual_points().filter(|_| asked.is_none());
        let of_q = entry.method.with_q().is_some_and(|q| q.is_of_points());
        let inducing = usual.unwrap_or(if of_q { trained } else { wanted });
        return of(entry.name, inducing, format!("`{}` was asked for", entry.name));
    }
    let few = n <= AUTO_EXACT && asked.is_none() && !sharded;
    if gaussian && few && (plain || whole) {
        let reason = format!("exact inference is affordable with {n} rows (up to {AUTO_EXACT})");
        return of("exact", 0, reason);
    }
    if series && asked.is_none() && (gaussian || n > AUTO_WHOLE) {
        let reason = match gaussian {
            true => {
                format!("exact inference of a series, {n} rows of one input, by Kalman filters")
            }
            false => format!("{why}; a series, {n} rows of one input, by Kalman filters"),
        };
        return of("markov", 0, reason);
    }
    if !plain && whole && asked.is_none() && known.averaged {
        let reason = "no inducing points, as averages over hyperparameters were asked for";
        return of("tvgp", 0, format!("{why}; {reason}"));
    }
    if !plain {
        let points = trained.min(n);
        let how = match (whole, n <= AUTO_WHOLE) {
            (true, true) => format!("all rows at once, as {n} rows are at most {AUTO_WHOLE}"),
            (true, false) => format!("all {n} rows at once, which costs less than minibatches"),
            (false, _) => "minibatches".into(),
        };
        let name = if whole { "tsvgp" } else { "svgp" };
        return of(name, trained, format!("{why}; {points} inducing points; {how}"));
    }
    if n <= AUTO_WHOLE {
        let reason = match sharded {
            true => "the tightest sparse bound, as the rows are in other processes".into(),
            false => {
                format!("the tightest sparse bound, as {wanted} inducing points were asked for")
            }
        };
        return of("titsias2025", wanted, reason);
    }
    let many = match asked {
        Some(asked) if n <= AUTO_EXACT => {
            format!("{asked} inducing points were asked for, for {n} rows")
        }
        None if n <= AUTO_EXACT => format!("the {n} rows are in other processes"),
        _ => format!("{n} rows are too many for exact inference (up to {AUTO_EXACT})"),
    };
    let size = options.batches.as_ref().map_or(n, |batches| batches.size);
    let (all, some) = (CLIMB * of_evaluation(n, wanted), of_batches(n, wanted, size));
    if options.batches.is_some() && some < all {
        let reason = format!(
            "{many}, and minibatches take an estimated {:.1} Tflop where all rows at once take {:.1}: \
             `svgp2025` with {wanted} inducing points, and the collapsed bound at the end",
            some / 1e12,
            all / 1e12
        );
        return of("svgp2025", wanted, reason);
    }
    of(
        "titsias2025",
        wanted,
        format!("{many}: the tightest sparse bound with {wanted} inducing points"),
    )
}

/// Returns whether `auto` sees all rows at once where a q is trained: nobody wants what only
/// minibatches have, and it costs less. (`bench --bin default_method` is the evidence.)
pub(super) fn whole(dataset: &Dataset, options: &FitOptions) -> bool {
    if options.method != "auto" || options.diagonal || dataset.held_out.is_some() {
        return false;
    }
    let n = dataset.source.rows();
    let m = asked(options).unwrap_or(points(n)).min(n);
    let size = options.batches.as_ref().map_or(n, |batches| batches.size);
    n <= AUTO_WHOLE || of_sites(n, m) <= of_batches(n, m, size)
}

/// Returns the minibatches that so many rows are trained by; none where the options have none. Where `auto` chose them and no number
/// of epochs was given, they are as many as make 2000 steps, and more from 10⁵ rows on.
pub fn planned_batches(options: &FitOptions, n: usize) -> Option<BatchOptions> {
    let mut batches = options.batches.clone()?;
    if options.method == "auto" && batches.training.epochs.is_none() {
        let per_epoch = n.div_ceil(batches.size.clamp(1, n.max(1)));
        let epochs = (iterations(n) / per_epoch as f64).ceil();
        batches.training.epochs = Some((epochs as usize).max(1));
    }
    Some(batches)
}

/// Returns the number of iterations that `auto` takes where inducing points move on all rows at
/// once, unless another number than the usual one was asked for: beyond them points creep for
/// hundreds, and predictions hardly change.
pub(super) fn most_iterations(options: &FitOptions, model: &Model) -> Option<usize> {
    let usual = options.train.max_iterations == FitOptions::default().train.max_iterations;
    let moves = model.inducing.iter().any(|points| !points.frozen) && !model.method.has_q();
    (options.method == "auto" && usual && moves).then_some(CLIMB as usize)
}

/// Share of the operations of the minibatches that the end may take.
const END: f64 = 0.25;
/// Most iterations of the end.
const MOST: usize = 10;

/// Returns, where `auto` trains Gaussian noise by minibatches, the collapsed bound, whose q is the
/// best one in closed form, and iterations of it on all rows that cost little beside the
/// minibatches.
pub(super) fn end(
    options: &FitOptions,
    model: &Model,
    n: usize,
) -> Option<(&'static dyn Method, usize)> {
    if options.method != "auto" || model.method.name() != "svgp2025" {
        return None;
    }
    let m = model.inducing_points().map_or(0, |z| z.nrows());
    let size = options.batches.as_ref().map_or(n, |batches| batches.size);
    let iterations = END * of_batches(n, m, size) / (1.3 * of_evaluation(n, m).max(1.0));
    let collapsed = methods::find("titsias2025").ok()?.method;
    Some((collapsed, (iterations as usize).clamp(1, MOST)))
}

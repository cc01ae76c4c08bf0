//! Defaults and starting values from the data.

use super::{AUTO_EXACT, DEFAULT_INDUCING, Dataset, FitOptions};
use crate::data::{InMemory, Scaler, Source};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::inducing::select::{self, Selection};
use crate::kernels::{self, Inputs};
use crate::likelihoods::Gaussian;
use crate::linalg::{Mat, MatRef, column};
use crate::means;
use crate::methods;
use crate::model::{Model, inducing_param};
use crate::params::{Param, Shape, Transform};
use crate::rng;
use crate::train::{Event, Observer, TrainOptions, train};

/// Rows that inducing points and starting values are chosen from.
const SAMPLE: usize = 20_000;

/// Picks the method and the number of inducing points, and says why.
fn choose(options: &FitOptions, n: usize) -> Result<(&'static methods::Entry, usize, String)> {
    let given = match &options.selection {
        Selection::Given(points) => Some(points.nrows()),
        _ => None,
    };
    let asked = given.or(options.inducing);
    let wanted = asked.unwrap_or(DEFAULT_INDUCING);
    if options.method != "auto" {
        let entry = methods::find(&options.method)?;
        return Ok((entry, wanted, format!("`{}` was asked for", entry.name)));
    }
    if n <= AUTO_EXACT && asked.is_none() {
        let reason = format!("exact inference is affordable with {n} rows (up to {AUTO_EXACT})");
        return Ok((methods::find("exact")?, 0, reason));
    }
    let entry = methods::find("titsias2025")?;
    let reason = if n <= AUTO_EXACT {
        format!("the tightest sparse bound, as {wanted} inducing points were asked for")
    } else {
        format!(
            "{n} rows are too many for exact inference (up to {AUTO_EXACT}): the tightest sparse \
             bound with {wanted} inducing points"
        )
    };
    Ok((entry, wanted, reason))
}

/// A random subset of at most `count` rows, in the order of the data, N×D and N×P.
///
/// # Errors
/// What reading the data gives.
pub fn sample_rows(data: &dyn Source, count: usize, seed: u64) -> Result<(Mat<f64>, Mat<f64>)> {
    let n = data.rows();
    if n <= count {
        return methods::collect(data);
    }
    let mut picked = rng::permutation(&mut rng::stream(seed, "sample of rows"), n, count);
    picked.sort_unstable();
    let mut x = Mat::zeros(count, data.inputs());
    let mut y = Mat::zeros(count, data.outputs());
    let mut next = 0;
    data.for_each_chunk(1 << 14, &mut |rows| {
        let end = rows.start + rows.x.nrows();
        while next < count && picked[next] < end {
            let i = picked[next] - rows.start;
            for q in 0..x.ncols() {
                x[(next, q)] = rows.x[(i, q)];
            }
            for p in 0..y.ncols() {
                y[(next, p)] = rows.y[(i, p)];
            }
            next += 1;
        }
        Ok(())
    })?;
    Ok((x, y))
}

/// Standard deviation of every column; 1 for a constant one.
fn spreads(x: MatRef<f64>) -> Vec<f64> {
    let n = x.nrows() as f64;
    (0..x.ncols())
        .map(|q| {
            let values = column(x, q);
            let mean = values.iter().sum::<f64>() / n;
            let sd = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
            if sd > 0.0 && sd.is_finite() { sd } else { 1.0 }
        })
        .collect()
}

/// A model ready to be trained.
#[derive(Clone, Debug)]
pub struct Start {
    /// The model.
    pub model: Model,
    /// Why its method, in a sentence.
    pub reason: String,
    /// What was odd and handled.
    pub warnings: Vec<String>,
}

/// Builds a model with starting values from the data: lengthscales √D standard deviations (then two
/// random rows have a correlation near e⁻¹ whatever D is), the kernel's variance that of the targets,
/// noise a tenth of it; inducing points as asked for; then the values that were given.
///
/// # Errors
/// [`Error::Spec`], [`Error::Invalid`] or a parameter error for options that do not fit.
pub fn prepare(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
) -> Result<Start> {
    let data = &*dataset.source;
    let (n, d, p) = (data.rows(), data.inputs(), data.outputs());
    if d == 0 {
        return Err(Error::Invalid("there is no input column to learn from".into()));
    }
    let mut warnings = dataset.warnings.clone();
    let (entry, wanted, reason) = choose(options, n)?;
    let (x, y) = sample_rows(data, SAMPLE, options.seed)?;
    let standardised = dataset.scaler != Scaler::identity(d, p);
    let mean_name =
        options.mean.as_deref().unwrap_or(if standardised { "zero" } else { "constant" });
    let mut mean = if mean_name.trim_start().starts_with('{') {
        let json = serde_json::from_str(mean_name)
            .map_err(|e| Error::Invalid(format!("mean {mean_name}: not valid JSON: {e}")))?;
        means::from_json(&json, d, p)?
    } else {
        means::by_name(mean_name, d, p)?
    };
    let target_means: Vec<f64> =
        (0..p).map(|j| column(y.as_ref(), j).iter().sum::<f64>() / y.nrows() as f64).collect();
    for (path, param) in mean.params_mut() {
        if path == "constant" && !param.given {
            param.set("mean.constant", &target_means)?;
        }
    }
    let variance = (0..p)
        .map(|j| {
            let values = column(y.as_ref(), j).iter();
            values.map(|v| (v - target_means[j]).powi(2)).sum::<f64>() / y.nrows() as f64
        })
        .sum::<f64>()
        / p as f64;
    let variance = if variance > 0.0 && variance.is_finite() { variance } else { 1.0 };
    let names = &dataset.input_names;
    let inputs = if names.len() == d { Inputs::named(names) } else { Inputs::unnamed(d) };
    let mut kernel = kernels::parse(&options.kernel, inputs)?;
    kernel.initialise(&spreads(x.as_ref()), variance);
    let mut model = Model {
        kernels: vec![kernel],
        mean,
        likelihood: Box::new(Gaussian::new(0.1 * variance)),
        inducing: Vec::new(),
        q: None,
        method: entry.method,
        jitter: options.jitter,
    };
    let of_points = |path: &str| path.starts_with("inducing");
    apply(&mut model, options, |path| !of_points(path))?;
    if entry.method.is_sparse() {
        if wanted == 0 {
            return Err(Error::Invalid("at least one inducing point is needed".into()));
        }
        let by_number = !matches!(options.selection, Selection::Given(_));
        if by_number && options.inducing.is_some_and(|asked| n < asked) {
            warnings.push(format!(
                "{n} training rows are fewer than the {wanted} inducing points asked for: every \
                 distinct row becomes one"
            ));
        }
        let flown = options.pilot > 0 && n > options.pilot;
        if flown {
            tell(observer, Event::Pilot { rows: options.pilot })?;
            warnings.extend(pilot(&mut model, x.as_ref(), y.as_ref(), options, engine, observer)?);
        }
        tell(observer, Event::Inducing { count: wanted.min(n) })?;
        let selected = select_inducing(&model, x.as_ref(), wanted.min(n), options)?;
        warnings.extend(selected.note.clone());
        model.inducing = vec![inducing_param(selected.points.as_ref())];
        if flown && free_noise(&model) {
            widen_noise(&mut model, x, y, engine)?;
        }
    }
    apply(&mut model, options, of_points)?;
    Ok(Start { model, reason, warnings })
}

/// Tells the observer, who may end the preparation; there is nothing to keep yet.
fn tell(observer: &mut dyn Observer, event: Event<'_>) -> Result<()> {
    if observer.event(event).is_break() { Err(Error::Interrupted) } else { Ok(()) }
}

/// Sets and freezes what the options say about the paths that `concerns` holds for.
fn apply(model: &mut Model, options: &FitOptions, concerns: impl Fn(&str) -> bool) -> Result<()> {
    for (path, value) in options.set.iter().filter(|(path, _)| concerns(path)) {
        model.set(path, value)?;
        model.for_group(path, |param| param.given = true)?;
    }
    for pattern in options.freeze.iter().filter(|pattern| concerns(pattern)) {
        model.freeze(pattern, true)?;
    }
    Ok(())
}

/// Iterations of the pilot: enough for lengthscales that deserve inducing points.
const PILOT_ITERATIONS: usize = 60;

/// Least noise variance in the pilot, as a part of the starting one (a tenth of the variance).
const PILOT_NOISE: f64 = 1e-2;

/// Trains the hyperparameters that nobody gave by exact inference on a few rows. A pilot that fails
/// leaves the starting values as they are and a warning: it is a help, not a condition.
fn pilot(
    model: &mut Model,
    x: MatRef<f64>,
    y: MatRef<f64>,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
) -> Result<Option<String>> {
    let mut generator = rng::stream(options.seed, "rows of the pilot");
    let rows = rng::permutation(&mut generator, x.nrows(), options.pilot.min(x.nrows()));
    let pick = |a: MatRef<f64>| Mat::from_fn(rows.len(), a.ncols(), |i, j| a[(rows[i], j)]);
    let data = InMemory::new(pick(x), pick(y))?;
    let mut trial = Model { method: &methods::Exact, ..model.clone() };
    for (_, param) in trial.params_mut() {
        param.frozen |= param.given;
    }
    // a thousand rows without noise would make K + σ²I singular and tell nothing about lengthscales
    if let Some(gaussian) = trial.likelihood.as_gaussian_mut()
        && !gaussian.variance.frozen
    {
        let start = gaussian.variance.scalar();
        let lower = PILOT_NOISE * start;
        gaussian.variance = Param::with(vec![start], Shape::Scalar, Transform::Softplus { lower });
    }
    let train_options =
        TrainOptions { max_iterations: PILOT_ITERATIONS, ..TrainOptions::default() };
    // iterations of the pilot are nobody's business, an interruption is
    struct Quiet<'a>(&'a mut dyn Observer);
    impl Observer for Quiet<'_> {
        fn interrupted(&self) -> bool {
            self.0.interrupted()
        }
    }
    match train(&mut trial, engine, &data, &train_options, &mut Quiet(observer)) {
        Ok(_) => {}
        Err(error) if error.is_recoverable() => {
            return Ok(Some(format!(
                "the pilot on {} rows failed ({error}); training starts from the plain values",
                rows.len()
            )));
        }
        Err(error) => return Err(error),
    }
    for ((path, param), (_, found)) in model.params_mut().into_iter().zip(trial.params()) {
        param.set(&path, found.value())?;
    }
    Ok(None)
}

/// Whether the noise is Gaussian and neither given nor frozen.
fn free_noise(model: &Model) -> bool {
    model.likelihood.as_gaussian().is_some_and(|g| !g.variance.given && !g.variance.frozen)
}

/// Adds to the noise variance what the inducing points leave unexplained in the mean of the rows:
/// the pilot knew nothing of them, and a bound that starts with noise far below falls off a cliff.
fn widen_noise(model: &mut Model, x: Mat<f64>, y: Mat<f64>, engine: &dyn Engine) -> Result<()> {
    let rows = x.nrows() as f64;
    let unexplained = match model.evaluate(engine, &InMemory::new(x, y)?) {
        Ok(evaluation) => evaluation.diagnostics.unexplained / rows,
        Err(error) if error.is_recoverable() => 0.0,
        Err(error) => return Err(error),
    };
    let noise = model.noise() + unexplained.max(0.0);
    model.set("likelihood.variance", &[noise])
}

/// Inducing points as the options say, chosen from the rows `x`.
fn select_inducing(
    model: &Model,
    x: MatRef<f64>,
    count: usize,
    options: &FitOptions,
) -> Result<select::Selected> {
    if options.selection == Selection::KMeans {
        // distances as the kernel sees them: an input that hardly matters should not spread points
        let mut relevance = vec![0.0; x.ncols()];
        model.kernel().relevance(&mut relevance);
        if relevance.iter().any(|r| *r > 0.0) {
            let seen = Mat::from_fn(x.nrows(), x.ncols(), |i, q| x[(i, q)] * relevance[q]);
            let mut selected =
                options.selection.choose(seen.as_ref(), count, options.seed, None)?;
            let centres = &mut selected.points;
            let means: Vec<f64> = (0..x.ncols())
                .map(|q| column(x, q).iter().sum::<f64>() / x.nrows() as f64)
                .collect();
            for q in 0..x.ncols() {
                for v in centres.col_as_slice_mut(q) {
                    *v = if relevance[q] > 0.0 { *v / relevance[q] } else { means[q] };
                }
            }
            return Ok(selected);
        }
    }
    if options.selection != Selection::GreedyVariance {
        return options.selection.choose(x, count, options.seed, None);
    }
    let mut diag = vec![0.0; x.nrows()];
    model.kernel().diag(x, &mut diag);
    let mut column = |index: usize| {
        let mut column = Mat::zeros(x.nrows(), 1);
        let row = Mat::from_fn(1, x.ncols(), |_, q| x[(index, q)]);
        let mut tape = kernels::Tape::off();
        model.kernel().evaluate(x, Some(row.as_ref()), column.as_mut(), &mut tape);
        Ok(column.col_as_slice(0).to_vec())
    };
    let prior = select::Prior { diag: &diag, column: &mut column };
    options.selection.choose(x, count, options.seed, Some(prior))
}

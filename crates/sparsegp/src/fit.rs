//! From data to a model that can be used: defaults, starting values, training, conditioning.

use crate::data::{InMemory, Loaded, Scaler, Source, TableSource, duplicate_rows};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::inducing::select::{self, Selection};
use crate::kernels::{self, Inputs};
use crate::likelihoods::Gaussian;
use crate::linalg::{Jitter, Mat, MatRef, column};
use crate::means;
use crate::methods;
use crate::model::{Model, Posterior, inducing_param};
use crate::rng;
use crate::train::{TracePoint, TrainOptions, TrainReport, train};
use std::ops::ControlFlow;

/// Rows to learn from, with the names and scales of their columns.
pub struct Dataset {
    /// The rows, standardised by `scaler`.
    pub source: Box<dyn Source>,
    /// From the data's units to the model's.
    pub scaler: Scaler,
    /// Names of the input columns.
    pub input_names: Vec<String>,
    /// Names of the target columns.
    pub target_names: Vec<String>,
    /// Means of the targets in their own units.
    pub target_mean: Vec<f64>,
    /// Variances of the targets in their own units.
    pub target_variance: Vec<f64>,
    /// What was odd about the data and handled.
    pub warnings: Vec<String>,
}

impl Dataset {
    /// From a table in memory.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two rows or no target.
    pub fn from_loaded(loaded: Loaded, standardise: bool) -> Result<Self> {
        let statistics = loaded.statistics();
        let duplicates = duplicate_rows(loaded.x.as_ref());
        let scaler = if standardise {
            statistics.scaler()
        } else {
            Scaler::identity(loaded.x.ncols(), loaded.y.ncols())
        };
        let (input_names, target_names) = (loaded.input_names.clone(), loaded.target_names.clone());
        let mut data = loaded.into_source();
        scaler.scale_x(data.x.as_mut())?;
        scaler.scale_y(data.y.as_mut())?;
        let mut dataset =
            Self::new(Box::new(data), scaler, input_names, target_names, &statistics)?;
        if duplicates > 0 {
            dataset.warnings.push(format!(
                "{duplicates} rows have the same inputs as an earlier row; they count as repeated \
                 observations"
            ));
        }
        Ok(dataset)
    }

    /// From a file that is streamed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two rows or no target.
    pub fn from_table(table: TableSource, standardise: bool) -> Result<Self> {
        let table = if standardise { table.standardised() } else { table };
        let scaler = table.scaler().clone();
        let statistics = table.statistics().clone();
        let input_names = table.selected().input_names();
        let target_names = table.selected().target_names();
        Self::new(Box::new(table), scaler, input_names, target_names, &statistics)
    }

    fn new(
        source: Box<dyn Source>,
        scaler: Scaler,
        input_names: Vec<String>,
        target_names: Vec<String>,
        statistics: &crate::data::Statistics,
    ) -> Result<Self> {
        if target_names.is_empty() {
            return Err(Error::Invalid("there is no target column to learn".into()));
        }
        if source.rows() < 2 {
            return Err(Error::Invalid(format!(
                "{} training row(s): at least two are needed to learn anything",
                source.rows()
            )));
        }
        let mut warnings = Vec::new();
        for index in statistics.constant_inputs() {
            warnings.push(format!(
                "input column `{}` is constant: it cannot help and is kept without effect",
                input_names[index]
            ));
        }
        for index in statistics.constant_targets() {
            warnings.push(format!("target column `{}` is constant", target_names[index]));
        }
        let (target_mean, target_variance) = statistics.target_mean_and_variance();
        Ok(Self {
            source,
            scaler,
            input_names,
            target_names,
            target_mean,
            target_variance,
            warnings,
        })
    }
}

/// What to fit and how. [`FitOptions::default`] is a sensible start for any table.
#[derive(Clone, Debug)]
pub struct FitOptions {
    /// Kernel specification, such as `rbf` or `matern52 + linear`.
    pub kernel: String,
    /// Mean function; by default `zero` for standardised targets, else `constant`.
    pub mean: Option<String>,
    /// Method by name, or `auto`.
    pub method: String,
    /// Number of inducing points; by default 512, or fewer where there are fewer rows.
    pub inducing: Option<usize>,
    /// How inducing points are chosen. Given points are on the model's (standardised) scale, and
    /// their number is what counts.
    pub selection: Selection,
    /// Seed of everything random.
    pub seed: u64,
    /// Jitter of Kuu.
    pub jitter: Jitter,
    /// Values to set before training, by path; they count as starting values unless frozen too.
    pub set: Vec<(String, Vec<f64>)>,
    /// Paths or groups to keep as they are.
    pub freeze: Vec<String>,
    /// Rows of the pilot: before a sparse method starts, the hyperparameters are trained by exact
    /// inference on so many random rows, and inducing points are chosen on the lengthscales found.
    /// 0 for no pilot.
    pub pilot: usize,
    /// Optimiser and budget.
    pub train: TrainOptions,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            kernel: "rbf".into(),
            mean: None,
            method: "auto".into(),
            inducing: None,
            selection: Selection::KMeans,
            seed: 0,
            jitter: Jitter::default(),
            set: Vec::new(),
            freeze: Vec::new(),
            pilot: 1000,
            train: TrainOptions::default(),
        }
    }
}

/// Rows up to which `auto` means exact inference.
pub const AUTO_EXACT: usize = 2000;
/// Inducing points unless a number is given.
pub const DEFAULT_INDUCING: usize = 512;
/// Rows that inducing points and starting values are chosen from.
const SAMPLE: usize = 20_000;

/// A trained and conditioned model with all that is needed to use it.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The model, on the standardised scale.
    pub model: Model,
    /// Its posterior.
    pub posterior: Posterior,
    /// From the data's units to the model's.
    pub scaler: Scaler,
    /// Names of the input columns, in the model's order.
    pub input_names: Vec<String>,
    /// Names of the target columns.
    pub target_names: Vec<String>,
    /// Means of the training targets in their own units (for MSLL).
    pub target_mean: Vec<f64>,
    /// Variances of the training targets in their own units.
    pub target_variance: Vec<f64>,
    /// Training rows.
    pub rows: usize,
    /// The seed.
    pub seed: u64,
    /// Why this method, in a sentence.
    pub reason: String,
    /// How training went; none for a model that was only conditioned.
    pub report: Option<TrainReport>,
    /// What was odd and handled.
    pub warnings: Vec<String>,
}

impl Fitted {
    /// Log evidence or bound of the training data in their own units: the model's objective plus the
    /// Jacobian of standardisation.
    pub fn objective(&self) -> Option<f64> {
        let report = self.report.as_ref()?;
        Some(report.objective + self.rows as f64 * self.scaler.log_jacobian())
    }
}

/// One line of the table of parameters.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ParameterRow {
    /// Path.
    pub path: String,
    /// Shape in words.
    pub shape: String,
    /// Values on the model's (standardised) scale; a matrix column by column.
    pub value: Vec<f64>,
    /// The same in the data's own units; NaN-free, `None` where a number has no unit of its own
    /// (one lengthscale for several columns, or several targets with different scales).
    pub data_units: Option<Vec<f64>>,
    /// Transform in words.
    pub transform: String,
    /// Prior, if any.
    pub prior: Option<crate::params::Prior>,
    /// Whether it was kept as it was.
    pub frozen: bool,
}

impl Fitted {
    /// Predictive mean and variance of observations (noise included), both B×P, in the data's units,
    /// from inputs on the model's scale ([`Scaler::scale_x`]).
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict_y(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        let (mean, variance) = self.posterior.predict_y(x)?;
        self.in_data_units(mean, &variance)
    }

    /// Mean and variance of the latent function, both B×P, in the data's units; see
    /// [`Fitted::predict_y`].
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict_f(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        let (mean, variance) = self.posterior.predict_f(x)?;
        self.in_data_units(mean, &variance)
    }

    fn in_data_units(&self, mut mean: Mat<f64>, variance: &[f64]) -> Result<(Mat<f64>, Mat<f64>)> {
        let mut spread = Mat::from_fn(mean.nrows(), mean.ncols(), |i, _| variance[i]);
        self.scaler.unscale_mean(mean.as_mut())?;
        self.scaler.unscale_variance(spread.as_mut())?;
        Ok((mean, spread))
    }

    /// Inducing points in the data's units, M×D; none for exact inference.
    ///
    /// # Errors
    /// None that a fitted model can cause.
    pub fn inducing_points(&self) -> Result<Option<Mat<f64>>> {
        if self.model.inducing.is_none() {
            return Ok(None);
        }
        let mut z = self.model.inducing_points()?;
        self.scaler.unscale_x(z.as_mut())?;
        Ok(Some(z))
    }

    /// Every parameter with its value on the model's scale and in the data's units.
    pub fn parameters(&self) -> Vec<ParameterRow> {
        let y_scale = self.scaler.y_scale[0];
        let one_scale = self.scaler.y_scale.iter().all(|s| *s == y_scale);
        let mut kernel_units = self.model.kernel.units().into_iter();
        let (m, d) = match self.model.inducing.as_ref().map(|z| z.shape()) {
            Some(crate::params::Shape::Matrix(m, d)) => (m, d),
            _ => (0, 0),
        };
        let mut rows = Vec::new();
        for (path, param) in self.model.params() {
            let value = param.value().to_vec();
            let data_units = if path.starts_with("kernel.") {
                let units: Option<Vec<_>> =
                    (0..value.len()).map(|_| kernel_units.next().flatten()).collect();
                units.and_then(|units| {
                    units
                        .iter()
                        .zip(&value)
                        .map(|(unit, v)| {
                            let x = unit.input.map_or(1.0, |(q, p)| self.scaler.x_scale[q].powi(p));
                            let usable = unit.output == 0 || one_scale;
                            usable.then(|| v * x * y_scale.powi(unit.output))
                        })
                        .collect()
                })
            } else if path == "likelihood.variance" {
                one_scale.then(|| value.iter().map(|v| v * y_scale * y_scale).collect())
            } else if path == "inducing.points" {
                let unscaled = (0..d).flat_map(|q| (0..m).map(move |i| (q, i)));
                let s = &self.scaler;
                Some(unscaled.map(|(q, i)| value[q * m + i] * s.x_scale[q] + s.x_mean[q]).collect())
            } else if path == "mean.constant" && self.model.mean.name() == "constant" {
                let s = &self.scaler;
                Some(
                    value.iter().enumerate().map(|(p, v)| v * s.y_scale[p] + s.y_mean[p]).collect(),
                )
            } else {
                None
            };
            rows.push(ParameterRow {
                path,
                shape: param.shape().to_string(),
                value,
                data_units,
                transform: param.transform().to_string(),
                prior: param.prior,
                frozen: param.frozen,
            });
        }
        rows
    }
}

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
    interrupted: &dyn Fn() -> bool,
) -> Result<(Model, String, Vec<String>)> {
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
    let mut mean = means::by_name(mean_name, d, p)?;
    let target_means: Vec<f64> =
        (0..p).map(|j| column(y.as_ref(), j).iter().sum::<f64>() / y.nrows() as f64).collect();
    for (path, param) in mean.params_mut() {
        if path == "constant" {
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
    let factor = (d as f64).sqrt();
    let lengthscales: Vec<f64> = spreads(x.as_ref()).iter().map(|s| s * factor).collect();
    kernel.initialise(&lengthscales, variance);
    let mut model = Model {
        kernel,
        mean,
        likelihood: Gaussian::new(0.1 * variance),
        inducing: None,
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
        if options.pilot > 0 && n > options.pilot {
            pilot(&mut model, x.as_ref(), y.as_ref(), options, engine, interrupted)?;
        }
        let selected = select_inducing(&model, x.as_ref(), wanted.min(n), options)?;
        warnings.extend(selected.note.clone());
        model.inducing = Some(inducing_param(selected.points.as_ref()));
    }
    apply(&mut model, options, of_points)?;
    Ok((model, reason, warnings))
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

/// Trains the hyperparameters that nobody gave by exact inference on a few rows. A pilot that fails
/// leaves the starting values as they are: it is a help, not a condition.
fn pilot(
    model: &mut Model,
    x: MatRef<f64>,
    y: MatRef<f64>,
    options: &FitOptions,
    engine: &dyn Engine,
    interrupted: &dyn Fn() -> bool,
) -> Result<()> {
    let mut generator = rng::stream(options.seed, "rows of the pilot");
    let rows = rng::permutation(&mut generator, x.nrows(), options.pilot.min(x.nrows()));
    let pick = |a: MatRef<f64>| Mat::from_fn(rows.len(), a.ncols(), |i, j| a[(rows[i], j)]);
    let data = InMemory::new(pick(x), pick(y))?;
    let mut trial = Model { method: &methods::Exact, ..model.clone() };
    for (_, param) in trial.params_mut() {
        param.frozen |= param.given;
    }
    let train_options =
        TrainOptions { max_iterations: PILOT_ITERATIONS, ..TrainOptions::default() };
    let go_on = &mut |_: &TracePoint| ControlFlow::Continue(());
    match train(&mut trial, engine, &data, &train_options, interrupted, go_on) {
        Ok(_) => {}
        Err(error) if error.is_recoverable() => return Ok(()),
        Err(error) => return Err(error),
    }
    for ((path, param), (_, found)) in model.params_mut().into_iter().zip(trial.params()) {
        param.set(&path, found.value())?;
    }
    Ok(())
}

fn select_inducing(
    model: &Model,
    x: MatRef<f64>,
    count: usize,
    options: &FitOptions,
) -> Result<select::Selected> {
    if options.selection == Selection::KMeans {
        // distances as the kernel sees them: an input that hardly matters should not spread points
        let mut relevance = vec![0.0; x.ncols()];
        model.kernel.relevance(&mut relevance);
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
    model.kernel.diag(x, &mut diag);
    let mut column = |index: usize| {
        let mut column = Mat::zeros(x.nrows(), 1);
        let row = Mat::from_fn(1, x.ncols(), |_, q| x[(index, q)]);
        let mut tape = kernels::Tape::off();
        model.kernel.evaluate(x, Some(row.as_ref()), column.as_mut(), &mut tape);
        Ok(column.col_as_slice(0).to_vec())
    };
    let prior = select::Prior { diag: &diag, column: &mut column };
    options.selection.choose(x, count, options.seed, Some(prior))
}

/// Prepares, trains and conditions a model. `interrupted` and `watch` as for [`train()`].
///
/// # Errors
/// As for [`prepare`] and [`train()`].
pub fn fit(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    interrupted: &dyn Fn() -> bool,
    watch: &mut dyn FnMut(&Model, &TracePoint) -> ControlFlow<()>,
) -> Result<Fitted> {
    let (mut model, reason, mut warnings) = prepare(dataset, options, engine, interrupted)?;
    let data = &*dataset.source;
    let shown = model.clone();
    let report = train(&mut model, engine, data, &options.train, interrupted, &mut |point| {
        watch(&shown, point)
    })?;
    if report.failures > 0 {
        warnings.push(format!(
            "{} of {} evaluations met a matrix that was not positive definite; the optimiser \
             stepped back",
            report.failures, report.evaluations
        ));
    }
    let posterior = model.posterior(engine, data)?;
    if let Jitter::Relative(fraction) = model.jitter {
        let used = posterior.factor().relative;
        if model.method.is_sparse() && used > fraction * 1.5 {
            warnings.push(format!(
                "the jitter of Kuu was raised from {fraction:e} to {used:e} of its mean diagonal: \
                 inducing points lie very close together, or lengthscales are very long"
            ));
        }
    }
    Ok(Fitted {
        model,
        posterior,
        scaler: dataset.scaler.clone(),
        input_names: dataset.input_names.clone(),
        target_names: dataset.target_names.clone(),
        target_mean: dataset.target_mean.clone(),
        target_variance: dataset.target_variance.clone(),
        rows: data.rows(),
        seed: options.seed,
        reason,
        report: Some(report),
        warnings,
    })
}

/// Rows in memory without names, for programs.
///
/// # Errors
/// As for [`Dataset::from_loaded`].
pub fn dataset_from_arrays(x: Mat<f64>, y: Mat<f64>, standardise: bool) -> Result<Dataset> {
    let data = InMemory::new(x, y)?;
    let n = data.x.nrows();
    let names = |prefix: &str, count| (0..count).map(|i| format!("{prefix}{i}")).collect();
    Dataset::from_loaded(
        Loaded {
            input_names: names("x", data.x.ncols()),
            target_names: names("y", data.y.ncols()),
            id_names: Vec::new(),
            ids: Vec::new(),
            rows: (0..n).collect(),
            dropped: 0,
            x: data.x,
            y: data.y,
        },
        standardise,
    )
}

//! Defaults and starting values from the data.

use super::pilot::{free_noise, pilot, scale_lengths, widen_noise};
use super::select::select_inducing;
use super::{AUTO_EXACT, DEFAULT_INDUCING, Dataset, FitOptions, restarts};
use crate::data::{Classes, InMemory, Scaler, Source};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::inducing::select::Selection;
use crate::inverse_free::Preconditioner;
use crate::kernels::{self, Inputs, Kernel};
use crate::likelihoods::{self, Extra, Gaussian, Likelihood, Target};
use crate::linalg::{Mat, MatRef, column};
use crate::means::{self, Mean};
use crate::methods::uncollapsed::mixed_shape;
use crate::methods::{self, Keeps};
use crate::model::{Model, inducing_param};
use crate::rng;
use crate::train::{Event, Observer};
use crate::variational::{Tying, Variational};

/// Rows that inducing points and starting values are chosen from.
const SAMPLE: usize = 20_000;

/// Picks the method and the number of inducing points, and says why. `gaussian` data have Gaussian noise and
/// all targets; `plain` ones moreover rows without weights and noise variances.
fn choose(
    options: &FitOptions,
    n: usize,
    plain: bool,
    gaussian: bool,
    whole: bool,
) -> Result<(&'static methods::Entry, usize, String)> {
    let given = match &options.selection {
        Selection::Given(points) => Some(points.nrows()),
        _ => None,
    };
    let asked = given.or(options.inducing);
    let wanted = asked.unwrap_or(DEFAULT_INDUCING);
    // many passes over few rows: q of M = N would cost far more than it gives
    let trained = asked.unwrap_or((n / 4).clamp(50, DEFAULT_INDUCING));
    if options.method != "auto" {
        let entry = methods::find(&options.method)?;
        let wanted = if entry.method.uncollapsed().is_some() { trained } else { wanted };
        return Ok((entry, wanted, format!("`{}` was asked for", entry.name)));
    }
    let few = n <= AUTO_EXACT && asked.is_none();
    if gaussian && few && (plain || whole) {
        let reason = format!("exact inference is affordable with {n} rows (up to {AUTO_EXACT})");
        return Ok((methods::find("exact")?, 0, reason));
    }
    if !plain && whole {
        let reason = format!(
            "the likelihood, weights or missing targets call for it, with {} inducing points; {n} rows are \
             seen all at once (up to {AUTO_EXACT})",
            trained.min(n)
        );
        return Ok((methods::find("tsvgp")?, trained, reason));
    }
    if !plain {
        let reason = format!(
            "the likelihood, weights or missing targets call for it, with {} inducing points",
            trained.min(n)
        );
        return Ok((methods::find("svgp")?, trained, reason));
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

/// Whether `auto` sees so few rows all at once, where a q is trained: nobody wants what only minibatches
/// have. (`bench --bin dual -- default` is the evidence.)
pub(super) fn whole(dataset: &Dataset, options: &FitOptions) -> bool {
    let batches = options.diagonal || dataset.held_out.is_some();
    options.method == "auto" && dataset.source.rows() <= AUTO_EXACT && !batches
}

/// A random subset of at most `count` rows, in the order of the data.
///
/// # Errors
/// What reading the data gives.
pub fn sample_rows(data: &dyn Source, count: usize, seed: u64) -> Result<InMemory> {
    let n = data.rows();
    let count = count.min(n);
    let mut picked: Vec<usize> = match n > count {
        true => rng::permutation(&mut rng::stream(seed, "sample of rows"), n, count),
        false => (0..n).collect(),
    };
    picked.sort_unstable();
    let mut x = Mat::zeros(count, data.inputs());
    let mut y = Mat::zeros(count, data.outputs());
    let (mut weights, mut extra) = (Vec::new(), Vec::new());
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
            weights.extend(rows.weights.get(i));
            extra.extend(rows.extra.get(i));
            next += 1;
        }
        Ok(())
    })?;
    Ok(InMemory { x, y, weights, extra })
}

/// Mean variance of the columns, leaving out what is missing; 1 where there is none.
fn spread(y: MatRef<f64>) -> f64 {
    let variance = (0..y.ncols())
        .map(|j| {
            let known: Vec<f64> = column(y, j).iter().copied().filter(|v| !v.is_nan()).collect();
            let n = known.len().max(1) as f64;
            let mean = known.iter().sum::<f64>() / n;
            known.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n
        })
        .sum::<f64>()
        / y.ncols() as f64;
    if variance > 0.0 && variance.is_finite() { variance } else { 1.0 }
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

/// The likelihood of a specification, or without one what fits the targets: `bernoulli` for two
/// classes, `softmax` for more, else `gaussian`. A likelihood of classes need not be told how many
/// there are.
///
/// # Errors
/// As for [`likelihoods::parse`].
pub fn likelihood(spec: Option<&str>, classes: Option<usize>) -> Result<Box<dyn Likelihood>> {
    match (spec, classes) {
        (Some(spec), Some(classes)) => likelihoods::parse(spec)
            .or_else(|error| likelihoods::parse(&with_classes(spec, classes)).map_err(|_| error)),
        (Some(spec), None) => likelihoods::parse(spec),
        (None, None) => likelihoods::parse("gaussian"),
        (None, Some(2)) => likelihoods::parse("bernoulli"),
        (None, Some(classes)) => likelihoods::parse(&with_classes("softmax", classes)),
    }
}

/// The same for a method by its name: one that needs local variables has `bernoulli(link=logit)` for two
/// classes by default, and `logistic-softmax` for more.
///
/// # Errors
/// As for [`likelihoods::parse`] and [`methods::find`].
pub fn likelihood_for(
    method: &str,
    spec: Option<&str>,
    classes: Option<usize>,
) -> Result<Box<dyn Likelihood>> {
    let augments = method != "auto" && methods::find(method)?.method.augments();
    match (spec, classes) {
        (None, Some(2)) if augments => likelihood(Some("bernoulli(link=logit)"), None),
        (None, Some(_)) if augments => likelihood(Some("logistic-softmax"), classes),
        _ => likelihood(spec, classes),
    }
}

/// A specification with the number of classes added.
fn with_classes(spec: &str, classes: usize) -> String {
    match spec.trim_end().strip_suffix(')') {
        Some(open) => format!("{open}, classes={classes})"),
        None => format!("{}(classes={classes})", spec.trim_end()),
    }
}

/// Refuses a target that the likelihood does not know, and rows without the further number that it
/// needs. Returns how many targets are missing.
fn check_targets(dataset: &Dataset, likelihood: &dyn Likelihood) -> Result<usize> {
    let extra = likelihood.extra();
    let mut missing = 0;
    dataset.source.for_each_chunk(1 << 14, &mut |rows| {
        let default = match extra {
            Some(Extra { default: None, name }) if rows.extra.is_empty() => {
                let name =
                    format!("the likelihood `{}` needs a column of {name}", likelihood.name());
                return Err(Error::Invalid(name));
            }
            other => other.and_then(|e| e.default).unwrap_or(1.0),
        };
        for p in 0..rows.y.ncols() {
            for (i, y) in column(rows.y, p).iter().enumerate() {
                if y.is_nan() {
                    missing += 1;
                    continue;
                }
                let target = Target { y: *y, extra: rows.extra.get(i).copied().unwrap_or(default) };
                likelihood.check(target).map_err(|reason| {
                    let own = dataset.scaler.y_mean[p] + dataset.scaler.y_scale[p] * y;
                    Error::Invalid(format!(
                        "row {} of those to learn from: `{}` = {own} {reason} (likelihood `{}`)",
                        rows.start + i + 1,
                        dataset.target_names[p],
                        likelihood.name()
                    ))
                })?;
            }
        }
        Ok(())
    })?;
    Ok(missing)
}

/// Refuses rows that bring more or less than the method can do with.
fn check_rows(
    dataset: &Dataset,
    entry: &methods::Entry,
    missing: usize,
    sample: &InMemory,
) -> Result<()> {
    if missing > 0 && !entry.method.has_q() {
        return Err(Error::Invalid(format!(
            "{missing} targets are missing, and method `{}` needs them all; leave such rows out, or use \
             `svgp`",
            entry.name
        )));
    }
    let scales = &dataset.scaler.y_scale;
    if !sample.extra.is_empty() && scales.iter().any(|s| s != &scales[0]) {
        return Err(Error::Invalid(
            "one known noise variance per row cannot serve several targets of different scales: fit \
             them one by one, or leave the targets as they are"
                .into(),
        ));
    }
    Ok(())
}

/// Refuses labels that are scaled, and inputs that a kernel knows nothing of.
fn check_labels(dataset: &Dataset, kernels: &[Box<dyn Kernel>]) -> Result<()> {
    let labels: Vec<usize> = kernels.iter().flat_map(|kernel| kernel.labels()).collect();
    let scaler = &dataset.scaler;
    let scaled = |q: &&usize| scaler.x_mean[**q] != 0.0 || scaler.x_scale[**q] != 1.0;
    if let Some(&q) = labels.iter().find(scaled) {
        return Err(Error::Invalid(format!(
            "the kernel reads input column `{}` as labels, and it is standardised; make the data set with \
             `Standardise::for_kernel`",
            dataset.input_names[q]
        )));
    }
    if labels.is_empty() {
        return Ok(());
    }
    dataset.source.for_each_chunk(1 << 14, &mut |rows| {
        kernels.iter().try_for_each(|kernel| kernel.check(rows.x))
    })
}

/// The mean function that was asked for, with its constants at the latent functions' starts. Without
/// a wish it is zero for standardised targets, else constant.
fn mean(
    dataset: &Dataset,
    options: &FitOptions,
    plain: bool,
    starts: &[f64],
) -> Result<Box<dyn Mean>> {
    let d = dataset.source.inputs();
    let name = options.mean.as_deref().unwrap_or(if plain { "zero" } else { "constant" });
    let mut mean = if name.trim_start().starts_with('{') {
        let json = serde_json::from_str(name)
            .map_err(|e| Error::Invalid(format!("mean {name}: not valid JSON: {e}")))?;
        means::from_json(&json, d, starts.len())?
    } else {
        means::by_name(name, d, starts.len())?
    };
    for (path, param) in mean.params_mut() {
        if path == "constant" && !param.given {
            param.start(starts);
        }
    }
    Ok(mean)
}

/// Kernels of a specification: one for all latent functions, or one for each, separated by `;`.
fn kernels(
    spec: &str,
    inputs: Inputs<'_>,
    likelihood: &dyn Likelihood,
    latents: usize,
) -> Result<Vec<Box<dyn Kernel>>> {
    let mut all = spec
        .split(';')
        .map(|part| kernels::parse(part.trim(), inputs))
        .collect::<Result<Vec<_>>>()?;
    if all.len() == 1 && likelihood.separate_kernels() {
        all = vec![all[0].clone(); latents];
    }
    if all.len() != 1 && all.len() != latents {
        return Err(Error::Invalid(format!(
            "{} kernels were given; {latents} latent functions need one for all or one for each",
            all.len()
        )));
    }
    Ok(all)
}

/// Builds a model with starting values from the data: lengthscales √D standard deviations (then two random rows
/// have a correlation near e⁻¹ whatever D is) or a fraction of that, whichever explains at most 200 rows best; the
/// kernel's variance that of Gaussian targets (else 1); what the likelihood makes of the targets; inducing points as
/// asked for; q at the prior; then the values that were given.
///
/// # Errors
/// [`Error::Spec`], [`Error::Invalid`] or a parameter error for options that do not fit.
pub fn prepare(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
) -> Result<Start> {
    prepare_start(dataset, options, engine, observer, 0)
}

/// The same for a further start, from 1, whose hyperparameters are drawn ([`restarts`](super::restarts)).
pub(super) fn prepare_start(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
    restart: usize,
) -> Result<Start> {
    let data = &*dataset.source;
    let (n, d, p) = (data.rows(), data.inputs(), data.outputs());
    if d == 0 {
        return Err(Error::Invalid("there is no input column to learn from".into()));
    }
    let mut warnings = dataset.warnings.clone();
    let classes = dataset.classes.as_ref().map(Classes::count);
    let mut likelihood = likelihood_for(&options.method, options.likelihood.as_deref(), classes)?;
    if !likelihood.standardises() && dataset.scaler != dataset.scaler.clone().without_targets() {
        return Err(Error::Invalid(format!(
            "the likelihood `{}` needs its targets as they stand, and they are standardised; make \
             the data set with `Standardise::all_that(&*likelihood)`",
            likelihood.name()
        )));
    }
    let missing = check_targets(dataset, &*likelihood)?;
    let gaussian = likelihood.as_gaussian().is_some() && missing == 0;
    let plain = gaussian && data.is_plain();
    let (entry, wanted, reason) = choose(options, n, plain, gaussian, whole(dataset, options))?;
    let sample = sample_rows(data, SAMPLE, options.seed)?;
    check_rows(dataset, entry, missing, &sample)?;
    let default = likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
    let targets: Vec<Vec<Target>> = (0..p)
        .map(|j| {
            let values = column(sample.y.as_ref(), j).iter().enumerate();
            let extra = |i: usize| sample.extra.get(i).copied().unwrap_or(default);
            values.map(|(i, y)| Target { y: *y, extra: extra(i) }).collect()
        })
        .collect();
    let starts: Vec<f64> =
        targets.iter().flat_map(|own| likelihood.clone().initialise(own)).collect();
    likelihood.initialise(&targets.concat());
    let latents = match likelihood.mixing().map(mixed_shape) {
        None => starts.len(),
        Some((rows, latents)) if rows == p => latents,
        Some((rows, _)) => {
            return Err(Error::Shape {
                what: "targets of the likelihood `coregionalised`".into(),
                expected: format!("outputs={p}, as many as there are target columns"),
                found: format!("{rows}"),
            });
        }
    };
    let standardised = dataset.scaler != Scaler::identity(d, p);
    let zero = standardised && likelihood.standardises() && likelihood.latents() == 1;
    let mean = mean(dataset, options, zero, &starts)?;
    let names = &dataset.input_names;
    let inputs = if names.len() == d { Inputs::named(names) } else { Inputs::unnamed(d) };
    let mut kernels = kernels(&options.kernel, inputs, &*likelihood, latents)?;
    let variance = if likelihood.standardises() { spread(sample.y.as_ref()) } else { 1.0 };
    let spreads = spreads(sample.x.as_ref());
    check_labels(dataset, &kernels)?;
    for kernel in &mut kernels {
        kernel.initialise(&spreads, variance);
        kernel.initialise_from_rows(sample.x.as_ref(), sample.y.as_ref());
    }
    if let Some(gaussian) = likelihood.as_gaussian_mut()
        && !gaussian.variance.given
    {
        gaussian.variance.start(Gaussian::new(0.1 * variance).variance.value());
    }
    let mut model = Model {
        kernels,
        mean,
        likelihood,
        inducing: Vec::new(),
        q: None,
        method: entry.method,
        jitter: options.jitter,
    };
    entry.method.check(&model)?;
    let of_points = |path: &str| path.starts_with("inducing") || path.starts_with("q");
    apply(&mut model, options, |path| !of_points(path))?;
    if dataset.scaler.x_scale.iter().any(|scale| *scale != 1.0) {
        warnings.extend(long_periods(&model.kernels, sample.x.as_ref()));
    }
    if options.pilot > 0 {
        scale_lengths(&mut model, &sample, options)?;
    }
    if restart > 0 {
        restarts::draw(&mut model, options.seed, restart)?;
    }
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
        let trains_q = entry.method.uncollapsed().is_some();
        let flown = options.pilot > 0 && (n > options.pilot || trains_q);
        if flown {
            tell(observer, Event::Pilot { rows: options.pilot.min(n) })?;
            warnings.extend(pilot(&mut model, &sample, options, engine, observer)?);
        }
        tell(observer, Event::Inducing { count: wanted.min(n) })?;
        let x = sample.x.as_ref();
        let selected = select_inducing(&model, &sample, wanted.min(n), options)?;
        warnings.extend(selected.note.clone());
        let points = selected.points.nrows();
        model.inducing = vec![inducing_param(selected.points.as_ref())];
        if flown && free_noise(&model) {
            widen_noise(&mut model, x, engine)?;
        }
        if let Some(method) = entry.method.uncollapsed() {
            let q = match method.keeps {
                Keeps::Sites => {
                    let size = if options.tying == Tying::Untied { n } else { points };
                    Variational::sites(size, latents, options.tying)
                }
                Keeps::Moments => Variational::prior(points, latents, options.diagonal),
                keeps => {
                    let relaxed = keeps == Keeps::Relaxed;
                    let preconditioner = Preconditioner::Inverse;
                    Variational::pseudo_observations(points, latents, preconditioner, relaxed)
                }
            };
            model.q = Some(if method.bound.has_factors() { q.with_factors() } else { q });
        }
    }
    if entry.method.full_sites().is_some() {
        model.q = Some(Variational::sites(n, latents, Tying::Untied));
    }
    apply(&mut model, options, of_points)?;
    Ok(Start { model, reason, warnings })
}

/// Warns of periods that are longer than what the rows span: they were meant in the units of the data.
fn long_periods(kernels: &[Box<dyn Kernel>], x: MatRef<f64>) -> Vec<String> {
    let span = |j: usize| {
        let (least, most) = column(x, j)
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
        most - least
    };
    let span = (0..x.ncols()).map(span).fold(0.0, f64::max);
    let mut found = Vec::new();
    for kernel in kernels {
        for (path, param) in kernel.params() {
            let path = path.to_string();
            let longest = param.value().iter().fold(0.0_f64, |a, b| a.max(*b));
            if path.ends_with("period") && param.given && longest > span {
                let text = format!(
                    "kernel: the {path} {longest} is more than the rows span, {span:.3}: values in a kernel are on \
                     the scale of the standardised inputs; give it on that scale, or do not standardise \
                     (`--no-standardise`, `standardise=False`)"
                );
                // latent functions may have the same kernel
                if !found.contains(&text) {
                    found.push(text);
                }
            }
        }
    }
    found
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

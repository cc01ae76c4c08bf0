//! Defaults and starting values from the data.

use super::checks::{
    check_labels, check_levels, check_rows, check_targets, long_periods, many_classes, over_decades,
};
use super::choice::{Choice, Known, choose, whole};
use super::judge::{self, Flown};
use super::moments::{moments, spread};
use super::pilot::{free_noise, take, widen_noise};
use super::select::{select_inducing, takes_interdomain};
use super::spreads;
use super::{
    Dataset, FitOptions, assumed, certain, enough, kernel_choice, restarts, screen, sizes, units,
};
use crate::data::{Classes, InMemory, Scaler, Source};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::inducing::select::Selection;
use crate::kernels::{self, Inputs, Kernel};
use crate::likelihoods::{self, Likelihood, Target};
use crate::linalg::{Mat, column};
use crate::means::{self, Mean};
use crate::methods;
use crate::model::{Model, inducing_param};
use crate::params::Param;
use crate::rng;
use crate::train::{Event, Judged, Observer, check_batches};

/// Rows that inducing points and starting values are chosen from.
const SAMPLE: usize = 20_000;

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
    if let Some(rows) = data.sharded() {
        return rows.rows_at(&picked);
    }
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

/// A model ready to be trained.
#[derive(Clone, Debug)]
pub struct Start {
    /// The model.
    pub model: Model,
    /// Why its method, in a sentence.
    pub reason: String,
    /// What was odd and handled.
    pub warnings: Vec<String>,
    /// The starts that were judged, that of the model first; empty where none were.
    pub judged: Vec<Judged>,
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
    // JSON, as Python writes it
    if let Ok(serde_json::Value::Object(mut all)) = serde_json::from_str(spec) {
        all.insert("classes".into(), classes.into());
        return serde_json::Value::Object(all).to_string();
    }
    match spec.trim_end().strip_suffix(')') {
        Some(open) => format!("{open}, classes={classes})"),
        None => format!("{}(classes={classes})", spec.trim_end()),
    }
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
    let (options, _) = kernel_choice::resolved(dataset, options, engine, observer)?;
    prepare_start(dataset, &options, engine, observer, 0)
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
    let (n, d) = (data.rows(), data.inputs());
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
    check_levels(dataset, &*likelihood)?;
    let missing = check_targets(dataset, &*likelihood)?;
    let gaussian = likelihood.as_gaussian().is_some() && missing == 0;
    let plain = gaussian && data.is_plain();
    let why = match likelihood.as_gaussian() {
        None => format!("the likelihood is not Gaussian ({})", likelihood.name()),
        Some(_) if missing > 0 => "some targets are missing".into(),
        Some(_) => "rows have weights or known noise variances".into(),
    };
    let known = Known {
        rows: n,
        gaussian,
        plain,
        why: &why,
        whole: whole(dataset, options),
        sharded: data.sharded().is_some(),
    };
    let choice = choose(options, known)?;
    let Choice { mut entry, inducing: mut wanted, mut reason } = choice.clone();
    if entry.method.architecture().is_some() {
        return Err(Error::Invalid(
            "a deep model is started by its layers (`sparsegp::deep::Deep::start`), and fitted by `sparsegp::fit::fit`"
                .into(),
        ));
    }
    let counted = |reason: String| match dataset.rows > n {
        true => format!("{reason}; equal rows counted, there are {}", dataset.rows),
        false => reason,
    };
    reason = counted(reason);
    warnings.extend(dataset.isolated_remarks(&*likelihood));
    let data = &dataset.trained_by(entry.method);
    let p = data.outputs();
    let sample = sample_rows(data, SAMPLE, options.seed)?;
    check_rows(dataset, entry, missing, &sample)?;
    sizes::check(&*likelihood, dataset, &sample)?;
    let default = likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
    let targets: Vec<Vec<Target>> = (0..p)
        .map(|j| {
            let values = column(sample.y.as_ref(), j).iter().enumerate();
            let extra = |i: usize| sample.extra.get(i).copied().unwrap_or(default);
            let known = values.filter(|(_, y)| !y.is_nan());
            let mut own: Vec<Target> =
                known.map(|(i, y)| Target { y: *y, extra: extra(i) }).collect();
            if own.is_empty() {
                own.push(Target { y: 0.0, extra: default });
            }
            own
        })
        .collect();
    likelihood.adopt_unit(&targets.concat());
    let mut starts: Vec<f64> =
        targets.iter().flat_map(|own| likelihood.clone().initialise(own)).collect();
    let known_noise = likelihood.as_gaussian().is_some() && !sample.extra.is_empty();
    if known_noise {
        // rows of much noise would move the others' mean
        let own = moments(&sample, true).into_iter().map(|(centre, _)| centre);
        starts.iter_mut().zip(own).for_each(|(start, centre)| *start = centre);
    }
    likelihood.initialise(&targets.concat());
    let latents = match likelihood.mixing().map(likelihoods::mixing_shape) {
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
    // a scaler knows nothing of the noise of rows
    let alone = likelihood.latents() == 1 && !known_noise;
    let zero = standardised && likelihood.standardises() && alone;
    let mean = mean(dataset, options, zero, &starts)?;
    // nothing but a mean function, and what mixes latent functions, knows how many columns there are
    let varying = dataset.varying();
    let narrow = mean.num_params() == 0 && likelihood.mixing().is_none();
    let judged_by: &dyn Source = if narrow { &varying } else { data };
    let sample = if narrow { sample_rows(judged_by, SAMPLE, options.seed)? } else { sample };
    let seen = dataset.drawn_in(&sample, &*likelihood);
    let names = &dataset.input_names;
    let inputs = if names.len() == d { Inputs::named(names) } else { Inputs::unnamed(d) };
    let mut kernels = kernels(&options.kernel, inputs, &*likelihood, latents)?;
    if options.kernel_in_data_units {
        units::from_data(&mut kernels, &dataset.scaler, likelihood.latents())?;
    }
    let variance = match likelihood.standardises() {
        true => spread(&moments(&seen, known_noise)),
        false => likelihood.latent_variance(&targets.concat()),
    };
    let spreads = spreads(seen.x.as_ref());
    check_labels(dataset, &kernels)?;
    for (l, kernel) in kernels.iter_mut().enumerate() {
        // of latent functions that differ in kind the first has the unit of the targets
        let first = !likelihood.separate_kernels() || l % likelihood.latents() == 0;
        kernel.initialise(&spreads, if first { variance } else { 1.0 });
        kernel.initialise_from_rows(seen.x.as_ref(), seen.y.as_ref());
    }
    if options.lengthscale_prior {
        warnings.extend(assumed::assume(&mut kernels, seen.x.as_ref()));
    }
    if let Some(gaussian) = likelihood.as_gaussian_mut()
        && !gaussian.variance.given
    {
        gaussian.start(variance);
        if options.lengthscale_prior && !known_noise {
            assumed::assume_noise(gaussian);
        }
    }
    let mut model = Model {
        kernels,
        mean,
        likelihood,
        inducing: Vec::new(),
        q: None,
        method: entry.method,
        jitter: options.jitter,
        hidden: Vec::new(),
    };
    entry.method.check(&model)?;
    // a path, or the group of it
    let within = |path: &str, group: &str| {
        path.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let of_points = |path: &str| within(path, "inducing") || within(path, "q");
    apply(&mut model, options, |path| !of_points(path))?;
    assumed::leave_frozen(&mut model);
    model.check_noise()?;
    warnings.extend(many_classes(dataset));
    warnings.extend(over_decades(dataset, sample.x.as_ref()));
    if dataset.scaler.x_scale.iter().any(|scale| *scale != 1.0) {
        warnings.extend(long_periods(&model.kernels, sample.x.as_ref(), options));
    }
    let in_minibatches = entry.method.in_minibatches();
    let by_batches =
        options.batches.as_ref().filter(|_| in_minibatches && !whole(dataset, options));
    by_batches.map_or(Ok(()), |batches| check_batches(&model, &batches.training))?;
    // covariances of whole inputs are far dearer than those with such variables: nothing is judged by them
    let other_domain = entry.method.is_sparse() && takes_interdomain(&model, options);
    let learns = |param: &Param| !param.role().is_bulky() && !param.frozen && !param.given;
    let any = model.params().iter().any(|(_, param)| learns(param));
    // where every value is known, trials tell `auto` alone something: what the bound misses
    let pilots = options.pilot > 0 && !other_domain && (any || options.method == "auto");
    let judges = pilots && restart == 0;
    // the same method for every start
    let (mut first_start, plain_start) = (model.clone(), model.clone());
    let screened = match pilots {
        true => screen::screen(&mut first_start, &sample, options, engine, observer)?,
        false => None,
    };
    if let Some((trial, _)) = &screened
        && let Some((finer, warning)) = enough::finer(trial, &sample, options, known, &choice)?
    {
        warnings.extend(warning);
        Choice { entry, inducing: wanted, reason } = finer;
        reason = counted(reason);
    }
    model = if judges { first_start } else { plain_start };
    model.method = entry.method;
    let screened = screened.filter(|_| judges);
    if restart > 0 {
        restarts::draw(&mut model, options.seed, restart)?;
    }
    let (first, mut judged) = screened.map_or((None, Vec::new()), |(t, v)| (Some(t), v));
    if entry.method.is_sparse() {
        if wanted == 0 {
            return Err(Error::Invalid("at least one inducing point is needed".into()));
        }
        let by_number = !matches!(options.selection, Selection::Given(_));
        let most = if other_domain { usize::MAX } else { n };
        if by_number && options.inducing.is_some_and(|asked| most < asked) {
            warnings.push(format!(
                "{n} training rows are fewer than the {wanted} inducing points asked for: every \
                 distinct row becomes one"
            ));
        }
        // where all rows are seen at once, an iteration on a part of few rows costs no less than one on all
        let all_at_once = whole(dataset, options) || in_minibatches && options.batches.is_none();
        let trains_q = entry.method.with_q().is_some() && !all_at_once;
        let mut candidates = Vec::new();
        // how many points there are depends on lengthscales: they should be as good as a pilot can make them
        let by_kernel = matches!(options.selection, Selection::Oips(_));
        if pilots && (n > options.pilot || trains_q || by_kernel) {
            tell(observer, Event::Pilot { rows: options.pilot.min(n) })?;
            let (start, rows) = (first.as_ref(), &sample);
            match judge::pilot(&model, start, rows, options, engine, observer)? {
                Flown::Found(found) => candidates.push(("pilot".to_owned(), *found, true)),
                Flown::Nothing => {}
                Flown::Failed => warnings.push(
                    "the pilot failed (a matrix was not positive definite); training starts from the plain values"
                        .into(),
                ),
            }
        }
        let plain = judged.first().map_or("spreads of the inputs", |j| &j.start).to_owned();
        if judges {
            candidates.extend(screen::shorter(&model));
        }
        candidates.push((plain, model, false));
        tell(observer, Event::Inducing { count: wanted.min(most) })?;
        let with_points = |mut own: Model, flown: bool| -> Result<(Model, Option<String>)> {
            let selected = select_inducing(&own, &sample, wanted.min(most), options)?;
            let points = selected.points.nrows();
            own.inducing = vec![inducing_param(selected.points.as_ref())];
            if flown && free_noise(&own) {
                widen_noise(&mut own, sample.x.as_ref(), engine)?;
            }
            let size = [n, points, latents];
            let with_q = entry.method.with_q();
            own.q = with_q.map(|q| q.start(size, options.tying, options.diagonal));
            apply(&mut own, options, of_points)?;
            Ok((own, selected.note))
        };
        let (mut ready, mut notes) = (Vec::new(), Vec::new());
        for (name, own, flown) in candidates {
            let (own, note) = with_points(own, flown)?;
            ready.push((name, own));
            notes.push(note);
        }
        let mut best = 0;
        // points are placed by lengthscales, so that those of several inputs should be known first
        let places = d > 1 && options.selection.is_placed_by_lengthscales();
        if judges && (ready.len() > 1 || places) {
            let compared = judge::compare(&ready, judged_by, &sample, options, engine, observer)?;
            best = compared.best;
            if ready.len() > 1 {
                judged = compared.verdict;
            }
            // where its iterations ended is nearer to the optimum, above all for minibatches
            if let Some(values) = compared.values {
                let mut own = ready[best].1.clone();
                take(&mut own, &values, sample.x.as_ref());
                (ready[best].1, notes[best]) = with_points(own, false)?;
            }
        }
        // of the points that are taken
        warnings.extend(notes.swap_remove(best));
        model = ready.swap_remove(best).1;
    }
    if let Some(q) = entry.method.with_q().filter(|q| !q.is_of_points()) {
        model.q = Some(q.start([n, 0, latents], options.tying, options.diagonal));
    }
    warnings.extend(certain::hold(&mut model, dataset, &targets));
    if !entry.method.is_sparse() {
        apply(&mut model, options, of_points)?;
    }
    Ok(Start { model, reason, warnings, judged })
}

/// Tells the observer, who may end the preparation; there is nothing to keep yet.
fn tell(observer: &mut dyn Observer, event: Event<'_>) -> Result<()> {
    if observer.event(event).is_break() { Err(Error::Interrupted) } else { Ok(()) }
}

/// Sets and freezes what the options say about the paths that `concerns` holds for.
pub(super) fn apply(
    model: &mut Model,
    options: &FitOptions,
    concerns: impl Fn(&str) -> bool,
) -> Result<()> {
    for (path, value) in options.set.iter().filter(|(path, _)| concerns(path)) {
        sizes::make_room(model, path, value);
        model.set(path, value)?;
        model.for_group(path, |param| param.given = true)?;
    }
    for pattern in options.freeze.iter().filter(|pattern| concerns(pattern)) {
        model.freeze(pattern, true)?;
    }
    Ok(())
}

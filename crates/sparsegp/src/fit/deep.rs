//! Deep models for tables: a start from some rows, Adam by minibatches, and the trained layers as a model like any other
//! ([`crate::deep`]; Salimbeni & Deisenroth 2017).

use super::checkpoint::{self, Held};
use super::fitted::{Fitted, Origin};
use super::guards::Checked;
use super::keeping::{Failures, Telling};
use super::mixed::{self, Apart, InEither};
use super::sample::sample_rows;
use super::start::apply;
use super::{BatchOptions, Dataset, FitOptions};
use crate::data::{InMemory, Source};
use crate::deep::{Architecture, Deep, Kind, LastBound, Start, StepOptions};
use crate::error::{Error, Result};
use crate::inducing::select::Selection;
use crate::inverse_free::SolverOptions;
use crate::likelihoods::Likelihood;
use crate::linalg::{Jitter, Precision};
use crate::methods::{Entry, finite};
use crate::model::{Model, Posterior};
use crate::train::{
    Event, Observer, StochasticOptions, Surroundings, TrainReport, TrainingState, train_layers,
};

/// Rows that the start is found on.
const ROWS: usize = 10_000;
/// Inducing points of every layer, unless a number is given.
pub const POINTS: usize = 100;
/// Steps, about, unless a number of epochs is given.
pub const STEPS: usize = 5000;

impl BatchOptions {
    /// Returns what a deep model is trained with unless somebody says so.
    pub(super) fn of_deep() -> Self {
        let mut own = Self::default();
        own.training.least = (1, STEPS);
        own.training.adam.learning_rate = StepOptions::default().learning_rate;
        own.training.natural = None;
        own
    }
}

/// Refuses options that a deep model has nothing of.
fn refuse(options: &FitOptions) -> Result<()> {
    let training = options.batches.as_ref().map(|batches| &batches.training);
    let usual = StochasticOptions::default();
    let wrong = [
        ("a number of restarts", options.restarts > 0),
        ("a mean function", options.mean.is_some()),
        ("a jitter", options.jitter != Jitter::default()),
        (
            "E- and M-steps, or another rate for inducing points",
            training.is_some_and(|t| t.em.is_some() || t.inducing_rate != usual.inducing_rate),
        ),
        ("q with only diagonals", options.diagonal),
        ("training on all rows at once", options.batches.is_none()),
        (
            "inducing points that are chosen otherwise than by k-means",
            options.selection != Selection::KMeans,
        ),
        ("a kernel for each latent function", options.kernel.contains(';')),
        (
            "a kernel with values in the data's units",
            options.kernel_in_data_units && options.kernel.contains(['=', '{']),
        ),
    ];
    match wrong.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((what, _)) => Err(Error::Invalid(format!(
            "the method `deep` does not take {what}: leave it out, or choose another method"
        ))),
    }
}

/// Returns the layers of a method.
fn architecture(entry: &'static Entry) -> Result<&'static Architecture> {
    let none = || Error::Invalid(format!("the method `{}` has no hidden layers", entry.name));
    entry.method.architecture().ok_or_else(none)
}

/// Prepares and trains a deep model.
///
/// # Errors
/// As for [`super::fit`].
pub(super) fn fit(
    dataset: &Dataset,
    options: &FitOptions,
    entry: &'static Entry,
    observer: &mut dyn Observer,
) -> Result<Fitted> {
    architecture(entry)?;
    refuse(options)?;
    let mut checked = Checked::new(dataset, options)?;
    let sample = sample_rows(&*dataset.source, ROWS, options.seed)?;
    checked.look(dataset, options, entry, &sample)?;
    let Checked { likelihood, warnings, .. } = checked;
    let points = options.inducing.unwrap_or(POINTS);
    if observer.event(Event::Inducing { count: points.min(dataset.source.rows()) }).is_break() {
        return Err(Error::Interrupted);
    }
    let (model, bound) = begun(dataset, options, entry, likelihood, &sample)?;
    let count = model.hidden.len() + 1;
    let reason =
        format!("`{}` was asked for: {count} layers, {points} inducing points each", entry.name);
    let origin = Origin::new(dataset, options.seed, reason, warnings);
    let (layers, origin, report) =
        trained(dataset, options, entry, (model, bound), origin, observer)?;
    ended(layers, origin, report, entry)
}

/// Returns the layers before the training, as a model, and their bound.
fn begun(
    dataset: &Dataset,
    options: &FitOptions,
    entry: &'static Entry,
    likelihood: Box<dyn Likelihood>,
    sample: &InMemory,
) -> Result<(Model, LastBound)> {
    let deep = architecture(entry)?;
    let start = Start {
        hidden: deep.hidden(dataset.source.inputs()),
        kind: deep.kind,
        kernel: options.kernel.clone(),
        names: dataset.input_names.clone(),
        points: options.inducing.unwrap_or(POINTS),
        sampling: deep.sampling(),
        skip: deep.skip,
        own_kernels: deep.own_kernels,
        seed: options.seed,
        ..Start::default()
    };
    // values far away decide no starting value
    let seen = dataset.for_starts(sample, &*likelihood);
    let begun = Deep::start(seen.x.as_ref(), seen.y.as_ref(), &seen.extra, likelihood, &start)?;
    let bound = begun.bound;
    let mut model = Model::of_deep(begun, entry.method)?;
    entry.method.check(&model)?;
    let inner = model.hidden.iter().flat_map(|layer| &layer.groups);
    let inner = inner.filter_map(|group| group.inducing.as_points()).map(|points| &points.kernel);
    if model.kernels.iter().chain(inner).any(|kernel| !kernel.labels().is_empty()) {
        return Err(Error::Invalid(format!(
            "the kernel `{}` reads a column as labels, and what a hidden layer gives has none: choose another kernel for \
             the method `deep`",
            options.kernel
        )));
    }
    apply(&mut model, options, |_| true)?;
    Ok((model, bound))
}

/// Layers in training.
struct Layers<'a> {
    dataset: &'a Dataset,
    options: &'a FitOptions,
    entry: &'static Entry,
    batches: BatchOptions,
    layers: Deep,
    /// Of the numbers of the start, also where a training is resumed.
    units: Vec<f64>,
    origin: Origin,
    /// The state that is resumed.
    resume: Option<TrainingState>,
    /// Some rows that are held out.
    aside: Option<InMemory>,
}

impl Layers<'_> {
    /// Trains from where they are, with a checkpoint if it is to be written.
    fn in_batches(
        &mut self,
        options: &FitOptions,
        observer: &mut dyn Observer,
    ) -> Result<TrainReport> {
        let (deep, source) = (architecture(self.entry)?, &*self.dataset.source);
        let training = &self.batches.training;
        let size = self.batches.size.clamp(1, source.rows().max(1));
        let mut rows = source.batches(size, options.seed)?;
        let remark = rows.remark().filter(|own| !self.origin.warnings.contains(own));
        self.origin.warnings.extend(remark);
        let steps = StepOptions {
            samples: deep.samples,
            learning_rate: training.adam.learning_rate,
            natural: training.natural.filter(|_| matches!(deep.kind, Kind::W | Kind::M)),
            units: Some(self.units.clone()),
            precision: options.precision,
            seed: options.seed,
            ..StepOptions::default()
        };
        let (failures, then) = (Failures::default(), self.origin.clone());
        let mut write = checkpoint::writer(options, &then, &failures);
        let surroundings = Surroundings {
            settings: checkpoint::settings(options, self.dataset)?,
            judged: Vec::new(),
            held_out: self.aside.as_ref().map(|rows| rows as &dyn Source),
            bound: None,
            resume: self.resume.take(),
            checkpoint: options.checkpoint.is_some().then_some(&mut write),
        };
        let observer = &mut Telling { observer, failures: &failures };
        let (layers, method) = (&mut self.layers, self.entry.method);
        let how = (&steps, training);
        let report = train_layers(layers, method, &mut *rows, how, surroundings, observer)?;
        self.origin.warnings.extend(failures.warning());
        Ok(report)
    }
}

impl InEither for Layers<'_> {
    fn apart(&mut self, ended: bool) -> Result<Apart> {
        let seed = self.options.seed.wrapping_add(u64::from(ended));
        let rows = sample_rows(&*self.dataset.source, mixed::ROWS, seed)?;
        Apart::of_layers(&self.layers, architecture(self.entry)?.samples, &rows)
    }

    fn train(
        &mut self,
        precision: Precision,
        before: Option<usize>,
        observer: &mut dyn Observer,
    ) -> Result<TrainReport> {
        let mut options = FitOptions { precision, ..self.options.clone() };
        if before.is_some() {
            options.checkpoint = None;
        }
        self.in_batches(&options, observer)
    }

    fn warn(&mut self, text: String) {
        self.origin.warnings.push(text);
    }

    /// Returns an estimate by minibatches, of whose noise rounding is a small part.
    fn objective(&mut self, _: Apart, report: &TrainReport) -> Result<f64> {
        Ok(report.objective)
    }
}

/// Trains layers, or resumes where a checkpoint was written.
fn trained(
    dataset: &Dataset,
    options: &FitOptions,
    entry: &'static Entry,
    (model, bound): (Model, LastBound),
    origin: Origin,
    observer: &mut dyn Observer,
) -> Result<(Deep, Origin, TrainReport)> {
    let mut layers = model.to_deep(bound)?;
    layers.settle(&SolverOptions::default())?;
    let units = layers.units();
    let batches = options.batches.clone().unwrap_or_else(BatchOptions::of_deep);
    let (resume, aside) = (None, None);
    let mut own = Layers { dataset, options, entry, batches, layers, units, origin, resume, aside };
    if let Some(path) = options.checkpoint.as_deref().filter(|path| path.exists()) {
        let (fitted, held) = checkpoint::load(path, dataset, options)?;
        let Held::Training(state) = held else {
            return Err(checkpoint::of_another(options, "other ways"));
        };
        let (then, old) = fitted.into_parts();
        own.layers = then.to_deep(bound)?;
        own.origin = old;
        own.resume = Some(*state);
    }
    if observer.event(Event::Training).is_break() {
        return Err(Error::Interrupted);
    }
    let aside = dataset.held_out.as_deref();
    own.aside = aside.map(|rows| sample_rows(rows, LOOKED_AT, options.seed)).transpose()?;
    let resumed = own.resume.is_some();
    let report = match options.precision {
        Precision::Double => own.in_batches(options, observer),
        Precision::Single => mixed::guarded(&mut own, resumed, observer),
    }?;
    Ok((own.layers, own.origin, report))
}

/// Returns a deep model after its training.
fn ended(
    layers: Deep,
    origin: Origin,
    mut report: TrainReport,
    entry: &'static Entry,
) -> Result<Fitted> {
    report.stopped += "; the objective is an estimate by minibatches";
    let model = Model::of_deep(layers, entry.method)?;
    let posterior = Posterior::of_q(&model)?;
    if report.iterations > 0 {
        finite(report.objective, "the bound at the end of the training")?;
    }
    Ok(origin.fitted(model, posterior, Some(report)))
}

/// Rows whose density decides when the training stops: a mixture over paths costs much, so that some have to do.
const LOOKED_AT: usize = 500;

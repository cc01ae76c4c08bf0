//! What every way of fitting looks at before its first iteration and at its end: here, so that none forgets it.

mod columns;
mod worse;

use super::checks::{
    check_fits, check_rows, check_targets, decades, few_decide, many_classes, two_values,
};
use super::distinct::many_copies;
use super::fitted::Fitted;
use super::likelihood::likelihood_for;
use super::sample::sample_rows;
use super::{Dataset, FitOptions, KEPT_NUMBERS, collapse, series, sizes};
use crate::data::{Classes, InMemory};
use crate::error::{Error, Result};
use crate::likelihoods::Likelihood;
use crate::linalg::Jitter;
use crate::methods::{self, Entry, precision};
use crate::model::{Model, Posterior};
use crate::params::{self, Role};
use crate::samplers;
use crate::train::TrainReport;

/// Refuses options that a training would only fail for at its end.
pub(super) fn options(dataset: &Dataset, options: &FitOptions) -> Result<()> {
    if options.relative_weights {
        dataset.check_relative()?;
    }
    let Ok(entry) = methods::find(&options.method) else { return Ok(()) };
    let method = entry.method;
    let sampler = method.sampler();
    if sampler.is_some() || !method.is_sparse() || method.keeps_rows() {
        methods::check_here(&*dataset.source)?;
    }
    sampler.map_or(Ok(()), |own| samplers::check(own, method.is_sparse(), &options.gibbs))
}

/// What is known of the rows before a model is begun.
pub(super) struct Checked {
    pub(super) likelihood: Box<dyn Likelihood>,
    /// Targets that are missing.
    pub(super) missing: usize,
    /// What a person should know.
    pub(super) warnings: Vec<String>,
}

impl Checked {
    /// Refuses tables that no method learns from.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the reason.
    pub(super) fn new(dataset: &Dataset, options: &FitOptions) -> Result<Self> {
        if dataset.source.inputs() == 0 {
            return Err(Error::Invalid("there is no input column to learn from".into()));
        }
        let classes = dataset.classes.as_ref().map(Classes::count);
        let likelihood = likelihood_for(&options.method, options.likelihood.as_deref(), classes)?;
        check_fits(dataset, &*likelihood)?;
        let missing = check_targets(dataset, &*likelihood)?;
        let mut warnings = dataset.warnings.clone();
        warnings.extend(dataset.isolated_remarks(&*likelihood));
        warnings.extend(many_classes(dataset));
        Ok(Self { likelihood, missing, warnings })
    }

    /// Refuses what a method does not take, and notes what rows show.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the reason.
    pub(super) fn look(
        &mut self,
        dataset: &Dataset,
        options: &FitOptions,
        entry: &Entry,
        sample: &InMemory,
    ) -> Result<()> {
        check_rows(dataset, entry, self.missing, sample)?;
        sizes::check(&*self.likelihood, dataset, sample)?;
        self.warnings.extend(decades(dataset, options, sample.x.as_ref()));
        self.warnings.extend(few_decide(dataset, sample, &*self.likelihood));
        self.warnings.extend(two_values(dataset, options, sample, &*self.likelihood));
        self.warnings.extend(many_copies(sample, dataset.weight_name.is_some(), &*self.likelihood));
        self.warnings.extend(columns::remarks(dataset, options, sample)?);
        Ok(())
    }
}

/// Rows by which it is judged whether a model is a constant.
const ROWS: usize = 2000;

/// Adds what a person should know of a model to its warnings; `seen` says that somebody has looked whether it is a constant.
///
/// # Errors
/// What reading and predicting rows give.
pub(super) fn at_the_end(
    mut fitted: Fitted,
    dataset: &Dataset,
    options: &FitOptions,
    seen: bool,
) -> Result<Fitted> {
    let Some(report) = &fitted.report else { return Ok(fitted) };
    let mut said = remarks(&fitted.model, &fitted.posterior, report);
    // every row of a chain is predicted by each of its draws
    let chain = fitted.model.method.sampler().is_some();
    if report.iterations > 0 && dataset.source.sharded().is_none() && !(seen && chain) {
        let exact = fitted.posterior.clone().without_input_deviations();
        let (model, likelihood) = (&fitted.model, &*fitted.model.likelihood);
        let count = if seen { worse::ROWS } else { ROWS };
        let rows = sample_rows(&*dataset.source, count, options.seed)?;
        // a value far away hides every trend
        let rows = dataset.drawn_in(&rows, likelihood);
        if !seen {
            let mean = collapse::means(&exact, &rows)?;
            if collapse::misses_a_trend(model, &mean, &rows) {
                said.push(collapse::constant(model).into());
            }
        }
        if !chain {
            said.extend(worse::than_a_constant(&exact, likelihood, &rows)?.map(worse::text));
        }
    }
    fitted.warnings.extend(said);
    Ok(fitted)
}

/// Nats by which a bound on the log evidence of classes may miss 0 before they count as certain.
const CERTAIN: f64 = 1e-2;

/// Says that a training ended before its bound did.
fn still_rising(report: &TrainReport) -> Option<String> {
    report.rising.map(|rise| {
        format!(
            "the bound still rose when the training ended, by {rise:.3} nats a row in the last quarter of the epochs: more \
             of them (`epochs`), or a larger learning rate, may give a better model"
        )
    })
}

/// Returns what a person should know about the numerics of a training.
fn remarks(model: &Model, posterior: &Posterior, report: &TrainReport) -> Vec<String> {
    let mut remarks = params::remarks(&model.params());
    // nothing but a mean that grows without bound gives all classes of training for certain
    if model.likelihood.classes().is_some() && report.objective > -CERTAIN {
        let weights = model.params().into_iter().find(|(_, param)| param.role() == Role::Slopes);
        if let Some((_, weights)) = weights.filter(|(_, weights)| !weights.frozen) {
            let largest = weights.value().iter().fold(0.0, |m: f64, w| m.max(w.abs()));
            remarks.push(format!(
                "the linear mean separates the classes, and its weights grow without bound (one is {largest:.3}): \
                 probabilities of new rows are too sure; the kernel `linear` instead, as in `rbf + linear`, has a \
                 prior for such weights"
            ));
        }
    }
    remarks.extend(still_rising(report));
    remarks.extend(series::remarks(model));
    let worst = report.mixing.as_ref().map_or(0.0, |mixing| {
        mixing.hyperparameters.iter().fold(mixing.split_rhat, |m, h| m.max(h.split_rhat))
    });
    let (kept, drawn) = (
        posterior.draws().len(),
        report.mixing.as_ref().map_or(0, |mixing| mixing.chains * mixing.draws),
    );
    if kept < drawn {
        remarks.push(format!(
            "predictions average over {kept} of {drawn} draws, evenly spread: more of them would take more than {} MiB",
            KEPT_NUMBERS >> 17
        ));
    }
    if worst > 1.05 {
        remarks.push(format!(
            "the chains have not mixed well (split R̂ up to {worst:.3}): more draws, or a longer burn-in"
        ));
    }
    if let Some(rounding) = posterior.rounding().filter(|rounding| *rounding > precision::NEAR) {
        remarks.push(format!(
            "the search for hyperparameters was held back where double precision ends (rounding changes the log \
             evidence by some {rounding:.0e} nats): the evidence still rises with the kernel's variance beside that of \
             the noise, and could not be computed there. A kernel that has the trend of the targets, such as \
             `linear + …`, needs less variance"
        ));
    }
    if report.failures > 0 {
        remarks.push(format!(
            "{} of {} evaluations had no value (a matrix that was not positive definite, or numbers that were not finite); \
             the steps there were made smaller",
            report.failures, report.evaluations
        ));
    }
    if report.diagnostics.negative > 0 {
        remarks.push(format!(
            "at {} rows the inducing points explain more variance than there is, by rounding: raise \
             the jitter",
            report.diagnostics.negative
        ));
    }
    if let Jitter::Relative(fraction) = model.jitter {
        let used = posterior.factor().relative;
        if model.method.is_sparse() && used > fraction * 1.5 {
            remarks.push(format!(
                "the jitter of Kuu was raised from {fraction:e} to {used:e} of its mean diagonal: \
                 inducing points lie very close together, or lengthscales are very long"
            ));
        }
    }
    remarks
}

//! Regression on inputs that were measured with errors: training, and predictions at such inputs.

use super::fitted::Fitted;
use super::{Dataset, FitOptions, best_start};
use crate::data::{Encoding, InputColumn, Loaded};
use crate::engine::Engine;
use crate::error::{Error, Result, nearest};
use crate::kernels::{self, Inputs};
use crate::latent::{NoisyInputs, Targets, Trainable, train};
use crate::likelihoods;
use crate::linalg::{Mat, MatRef};
use crate::methods::{self, Diagnostics, collect};
use crate::model::hyperparameters;
use crate::model::{Model, Posterior};
use crate::optim::{Lbfgs, LbfgsOptions, Optimiser, Status, Step};
use crate::params::listed;
use crate::psi::Psi;
use crate::terms::{self, Term};
use crate::train::{Event, Observer, OptimiserKind, TracePoint, TrainReport};
use std::time::Instant;

/// Standard deviations of the errors of some inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct InputDeviations {
    /// The inputs that have errors, in the order of `values`.
    pub of: Vec<usize>,
    /// Names of the columns that hold the standard deviations.
    pub names: Vec<String>,
    /// Standard deviations on the model's scale, N×U.
    pub values: Mat<f64>,
}

impl InputDeviations {
    /// Returns the same for every input, N×D, 0 where there are none.
    fn of_all(&self, inputs: usize) -> Mat<f64> {
        let mut all: Mat<f64> = Mat::zeros(self.values.nrows(), inputs);
        for (at, q) in self.of.iter().enumerate() {
            for i in 0..self.values.nrows() {
                all[(i, *q)] = all[(i, *q)].hypot(self.values[(i, at)]);
            }
        }
        all
    }
}

/// Takes the standard deviations of inputs out of a table.
pub(super) fn take_deviations(loaded: &mut Loaded) -> Result<Option<InputDeviations>> {
    let pairs = std::mem::take(&mut loaded.deviations);
    if pairs.is_empty() {
        return Ok(None);
    }
    let inputs = loaded.x.ncols() - pairs.len();
    let values = loaded.x.as_ref().subcols(inputs, pairs.len()).to_owned();
    loaded.x = loaded.x.as_ref().subcols(0, inputs).to_owned();
    let names = loaded.input_names.split_off(inputs);
    if loaded.columns.is_empty() {
        loaded.columns = loaded.input_names.iter().map(InputColumn::number).collect();
    } else {
        // each deviation is one column of numbers
        loaded.columns.truncate(loaded.columns.len() - pairs.len());
    }
    check_deviations(values.as_ref(), &names)?;
    let of = positions(&loaded.input_names, &loaded.columns, &pairs)?;
    Ok(Some(InputDeviations { of, names, values }))
}

/// Refuses a deviation that is none, in the data's own units. Rows are counted from 1, as a person would.
fn check_deviations(values: MatRef<f64>, names: &[String]) -> Result<()> {
    for (at, name) in names.iter().enumerate() {
        // rows of callers may lie in any way
        let wrong = |i: &usize| !(values[(*i, at)] >= 0.0 && values[(*i, at)].is_finite());
        if let Some(i) = (0..values.nrows()).find(wrong) {
            return Err(Error::Invalid(format!(
                "column `{name}` holds standard deviations of an input, and row {} has {}: they \
                 are numbers of at least 0, 0 for a value that is known exactly",
                i + 1,
                values[(i, at)]
            )));
        }
    }
    Ok(())
}

/// Inducing points unless a number is given: ψ₂ is an M×M matrix of every row.
const POINTS: usize = 100;

/// Returns the bound by its name.
fn term(options: &FitOptions) -> Result<&'static dyn Term> {
    let name = match options.method.as_str() {
        "auto" => "titsias2025",
        given => methods::find(given)?.name,
    };
    terms::find(name).map_err(|_| {
        let all: Vec<&str> = terms::REGISTRY.iter().map(|term| term.name()).collect();
        Error::Invalid(format!(
            "inputs with standard deviations are learnt from by the bounds {}, and the method is `{}`: choose one of these, or \
             leave the deviations out and give them only to predictions",
            all.join(", "),
            options.method
        ))
    })
}

/// Refuses what is not made for noisy inputs.
fn refuse(dataset: &Dataset, options: &FitOptions) -> Result<()> {
    if let Some(classes) = &dataset.classes {
        return Err(Error::Invalid(format!(
            "inputs with standard deviations are for regression with Gaussian noise, and the target has {} classes: leave the \
             deviations out of the fit, and give them to its predictions",
            classes.count()
        )));
    }
    if let Some(likelihood) = &options.likelihood {
        let built = likelihoods::parse(likelihood)?;
        if built.as_gaussian().is_none() {
            return Err(Error::Invalid(format!(
                "inputs with standard deviations are for Gaussian noise, and the likelihood is `{}`: leave the deviations out of \
                 the fit, and give them to its predictions",
                built.name()
            )));
        }
    }
    let wrong = [
        ("weights of rows", dataset.weight_name.is_some()),
        ("a known noise variance of every row", dataset.extra_name.is_some()),
        ("a mean function", options.mean.as_deref().is_some_and(|mean| mean != "zero")),
        ("a kernel for each target", options.kernel.contains(';')),
        ("a checkpoint", options.checkpoint.is_some()),
        ("rows in other processes", dataset.source.sharded().is_some()),
    ];
    match wrong.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((what, _)) => Err(Error::Invalid(format!(
            "a fit to inputs with standard deviations does not take {what}: leave it out"
        ))),
    }
}

/// Trains a model on a data set whose inputs have standard deviations: as if they had none at first, then with q(X).
///
/// # Errors
/// As for [`super::fit`].
pub(super) fn fit(
    dataset: &Dataset,
    deviations: &InputDeviations,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
) -> Result<Fitted> {
    refuse(dataset, options)?;
    let term = term(options)?;
    let d = dataset.input_names.len();
    // a kernel that cannot be used is reported before anything is trained
    let kernel = kernels::parse(&options.kernel, Inputs::named(&dataset.input_names))?;
    Psi::new(&*kernel, Mat::zeros(1, d).as_ref())?;
    let rows = collect(&*dataset.source)?;
    let n = rows.x.nrows();
    let plain = FitOptions {
        method: term.name().into(),
        inducing: Some(options.inducing.unwrap_or(POINTS).min(n)),
        mean: Some("zero".into()),
        batches: None,
        ..options.clone()
    };
    let exactly = best_start(dataset, &plain, engine, observer)?;
    let targets = Targets::new(rows.y.as_ref())?;
    if targets.groups().len() > 1 {
        return Err(Error::Invalid(
            "targets with missing cells are not for inputs with standard deviations: leave such rows out (`--missing drop`), or \
             fit a model for every target"
                .into(),
        ));
    }
    let model = &exactly.model;
    let noise = model.gaussian()?.variance.clone();
    let mut points = model.inducing[0].clone();
    points.prior = None;
    let noisy = NoisyInputs::new(
        model.kernels[0].clone_box(),
        (noise, points),
        rows.x.as_ref(),
        deviations.of_all(d).as_ref(),
        term,
        model.jitter,
    )?;
    if observer.event(Event::Training).is_break() {
        return Err(Error::Interrupted);
    }
    let run = run(noisy, &targets, exactly, options, observer)?;
    run.with_input_deviations(&deviations.of, &deviations.names)
}

/// Returns the posterior of a model whose inputs have been found, and what its numerics had to do.
fn conditioned(
    own: &NoisyInputs,
    targets: &Targets,
    model: &Model,
) -> Result<(Posterior, Diagnostics)> {
    let (posterior, negative) = own.with_bound(targets, |bound| {
        // the moments of the whitened variable L⁻¹u
        let parts = bound.whitened()?;
        Ok((
            Posterior::new(
                model,
                own.points.matrix().to_owned(),
                parts.factor,
                parts.mean,
                Some(parts.root),
            ),
            bound.negative(),
        ))
    })?;
    let diagnostics =
        Diagnostics { jitter: posterior.factor().jitter, negative, ..Default::default() };
    Ok((posterior, diagnostics))
}

/// Trains everything, and makes a model of it that predicts at inputs that are known.
fn run(
    start: NoisyInputs,
    targets: &Targets,
    mut fitted: Fitted,
    options: &FitOptions,
    observer: &mut dyn Observer,
) -> Result<Fitted> {
    let lbfgs = match &options.train.optimiser {
        OptimiserKind::Lbfgs(given) => given.clone(),
        OptimiserKind::Adam(_) => LbfgsOptions::fitting(),
    };
    let how = (&lbfgs, options.train.max_iterations);
    let (before, begun) = (fitted.report.take(), Instant::now());
    let earlier = before.as_ref().map_or(0.0, |report| report.seconds);
    let mut trace: Vec<TracePoint> = Vec::new();
    let mut seen = fitted.model.clone();
    let mut evaluations = 0;
    let mut stopped = false;
    let mut watch = |now: &NoisyInputs, iteration: usize, step: &Step| {
        evaluations += step.evaluations;
        copy(now, &mut seen);
        trace.push(TracePoint {
            iteration,
            evaluations,
            // without the priors that nobody asked for, as all reports are
            objective: -step.value - seen.assumed_log_prior(),
            gradient_norm: step.gradient_norm,
            seconds: earlier + begun.elapsed().as_secs_f64(),
            parameters: hyperparameters(&seen),
            held_out: None,
        });
        let answer = trace.last().map(|point| observer.event(Event::Iteration(point)));
        stopped = answer.is_some_and(|flow| flow.is_break()) || observer.interrupted();
        !stopped
    };
    let (own, value, optimiser): (NoisyInputs, f64, Lbfgs) =
        train(start, targets, how, &mut watch)?;
    let mut model = fitted.model.clone();
    copy(&own, &mut model);
    let (posterior, diagnostics) = conditioned(&own, targets, &model)?;
    let asked = model.log_prior() - model.assumed_log_prior();
    fitted.reason = format!(
        "inputs have standard deviations ({} cells): what they were is found with the rest",
        own.uncertain()
    );
    fitted.report = Some(TrainReport {
        stopped: if stopped { "it was stopped".into() } else { optimiser.status().to_string() },
        converged: matches!(optimiser.status(), Status::Converged(_)),
        iterations: trace.len(),
        evaluations,
        failures: 0,
        objective: value + asked,
        seconds: earlier + begun.elapsed().as_secs_f64(),
        diagnostics,
        trace,
        starts: before.as_ref().map(|report| report.starts.clone()).unwrap_or_default(),
        judged: before.map(|report| report.judged).unwrap_or_default(),
        ..TrainReport::default()
    });
    (fitted.model, fitted.posterior) = (model, posterior);
    Ok(fitted)
}

/// Gives a model the parameters that it shares with a training on noisy inputs.
fn copy(from: &NoisyInputs, to: &mut Model) {
    let all = listed(|v| from.visit(v));
    for (path, param) in to.params_mut() {
        if let Some((_, own)) = all.iter().find(|(name, _)| *name == path) {
            param.value_mut().copy_from_slice(own.value());
        }
    }
}

impl Fitted {
    /// Returns the names of the inputs, without the columns of their standard deviations.
    pub fn measured_names(&self) -> &[String] {
        &self.input_names[..self.measured()]
    }

    fn measured(&self) -> usize {
        self.input_names.len() - self.input_deviations.len()
    }

    /// Returns rows as the model sees them.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of columns, [`Error::Invalid`] for a standard deviation that is none.
    pub(super) fn scaled_rows(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>> {
        self.check_rows(x)?;
        let mut rows = x.to_owned();
        self.scaler.scale_x(rows.as_mut())?;
        Ok(rows)
    }

    /// Refuses rows with a standard deviation that is none, and those before a series; those of another shape are refused elsewhere.
    pub(super) fn check_rows(&self, x: MatRef<'_, f64>) -> Result<()> {
        if self.posterior.past().is_some() && x.ncols() == self.scaler.x_mean.len() {
            let mut scaled = x.to_owned();
            self.scaler.scale_x(scaled.as_mut())?;
            self.check_kept(scaled.as_ref())?;
        }
        match (self.measured(), self.input_deviations.len()) {
            (known, some) if x.ncols() == known + some => {
                check_deviations(x.subcols(known, some), &self.input_names[known..])
            }
            _ => Ok(()),
        }
    }

    /// Returns the model for tables that have, in these columns, the standard deviations of these inputs: all its predictions are
    /// then averages over inputs N(value, deviation²) ([`Posterior::with_input_deviations`]). Rows have the deviations after
    /// the inputs. What the model had before is forgotten.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an input that the model does not have, or that does not come from a column of numbers or dates, for a
    /// name that is given twice, and as for [`Posterior::with_input_deviations`].
    pub fn with_input_deviations_of(self, pairs: &[(String, String)]) -> Result<Self> {
        let plain = self.without_input_deviations();
        let of = positions(&plain.input_names, &plain.columns, pairs)?;
        let names: Vec<String> = pairs.iter().map(|(_, name)| name.clone()).collect();
        plain.with_input_deviations(&of, &names)
    }

    pub(super) fn with_input_deviations(mut self, of: &[usize], names: &[String]) -> Result<Self> {
        self.posterior = self.posterior.with_input_deviations(of.to_vec())?;
        self.scaler = self.scaler.with_deviations(of);
        self.input_names.extend(names.iter().cloned());
        self.columns.extend(names.iter().map(InputColumn::number));
        self.input_deviations = of.to_vec();
        Ok(self)
    }

    /// Returns the model for inputs that are known exactly.
    #[must_use]
    pub fn without_input_deviations(mut self) -> Self {
        if self.input_deviations.is_empty() {
            return self;
        }
        let measured = self.measured();
        self.input_names.truncate(measured);
        // each deviation is one column of numbers
        self.columns.truncate(self.columns.len() - self.input_deviations.len());
        self.scaler = self.scaler.first_inputs(measured);
        self.posterior = self.posterior.without_input_deviations();
        self.input_deviations.clear();
        self
    }

    /// Returns inputs with the columns of their standard deviations.
    pub fn deviation_columns(&self) -> Vec<(String, String)> {
        let names = self.input_names[self.measured()..].iter();
        let both = self.input_deviations.iter().zip(names);
        both.map(|(q, name)| (self.input_names[*q].clone(), name.clone())).collect()
    }

    /// Refuses what is for inputs that are known exactly.
    pub(super) fn check_certain(&self, what: &str) -> Result<()> {
        if self.input_deviations.is_empty() {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "{what} is for models whose inputs are known exactly, and this one has standard deviations of inputs (`{}`): refit it \
             to all rows",
            self.input_names[self.measured()..].join("`, `")
        )))
    }
}

/// Returns the places of inputs, by the names of columns of numbers or dates.
fn positions(
    inputs: &[String],
    columns: &[InputColumn],
    pairs: &[(String, String)],
) -> Result<Vec<usize>> {
    let mut of = Vec::with_capacity(pairs.len());
    for (at, (input, name)) in pairs.iter().enumerate() {
        let found = inputs.iter().position(|own| own == input);
        let one =
            |encoding: &Encoding| *encoding == Encoding::Number || *encoding == Encoding::Date;
        let number = columns.iter().any(|c| c.name == *input && one(&c.encoding));
        let wrong = match found {
            None => {
                let near = nearest(input, inputs.iter().map(String::as_str)).join("`, `");
                format!("is not an input of the model; nearest: `{near}`")
            }
            Some(_) if !number => "is not a column of numbers or dates".into(),
            Some(_) if pairs[..at].iter().any(|(other, _)| other == input) => {
                "is given two columns of standard deviations".into()
            }
            Some(_) if inputs.contains(name) => {
                format!("cannot have its standard deviation in `{name}`, which is an input itself")
            }
            Some(_) if pairs[..at].iter().any(|(_, other)| other == name) => {
                format!("cannot share the column `{name}` with another input")
            }
            Some(q) => {
                of.push(q);
                continue;
            }
        };
        return Err(Error::Invalid(format!(
            "`{input}` with the standard deviation `{name}`: it {wrong}"
        )));
    }
    Ok(of)
}

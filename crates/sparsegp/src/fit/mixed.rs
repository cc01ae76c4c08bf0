//! Training in mixed precision, with the guard that passes rows in both precisions before and after.
//!
//! Everything that stays is of double precision: the objective that is reported, and the posterior that predicts.

use super::learning::Learning;
use super::settings::{Trait, Way, traits_of};
use super::{Dataset, FitOptions, checkpoint, sample_rows};
use crate::data::{InMemory, Source};
use crate::deep::{Batch, Deep, Noise, Want, Work};
use crate::engine::{Engine, Mixed};
use crate::error::{Error, Result};
use crate::fit::checkpoint::Held;
use crate::fit::fitted::{Fitted, Origin};
use crate::linalg::{Mat, MatRef, Precision};
use crate::methods::{self, Keeps, Method, finite};
use crate::model::Model;
use crate::params::{Visitor, free_count, free_gradient, log_prior};
use crate::train::{Counting, Observer, TrainReport};
use std::borrow::Cow;

/// Rows that are passed in both precisions before a training.
pub(super) const ROWS: usize = 2048;
/// Nats a row by which a bound may differ from that of double precision: a twentieth of what a comparison of models shows.
const BOUND: f64 = 1e-3;
/// The same for its slopes by the free numbers of hyperparameters, near an optimum.
const SLOPE: f64 = 3e-3;
/// The share of the steepest slope that they may differ by far from it.
const SHARE: f64 = 1e-3;

/// The names of the precisions, with what they mean.
pub(super) const NAMES: [(&str, &str); 2] = [
    ("double", "All of it with 53 bits"),
    (
        "mixed",
        "Products of rows with 24 bits, up to twice as fast; in double precision where that is too few",
    ),
];

/// Returns the name of a precision.
pub(super) fn name(precision: Precision) -> &'static str {
    NAMES[usize::from(precision == Precision::Single)].0
}

/// Returns whether q is kept with an inverse by products, whose steps have their own guard.
fn relaxed(method: &dyn Method) -> bool {
    method.with_q().is_some_and(|q| q.keeps == Keeps::Relaxed)
}

/// Returns the precision of the products of a q that is kept with an inverse by products.
fn of_products(options: &FitOptions) -> Precision {
    options.batches.as_ref().map_or(Precision::Double, |own| own.training.following.solver.products)
}

/// Returns whether a method has sums over rows that mixed precision speeds up.
fn takes(method: &dyn Method, options: &FitOptions) -> bool {
    let way = Way { full_batch: options.batches.is_none(), ..Way::default() };
    traits_of(method, way).has(Trait::RowProducts)
}

/// Returns the options with what mixed precision means for the method, or for the checkpoint that
/// is resumed.
///
/// # Errors
/// [`Error::Invalid`] for a method, or rows, without such sums.
pub(super) fn resolved<'a>(
    dataset: &Dataset,
    options: &'a FitOptions,
) -> Result<Cow<'a, FitOptions>> {
    if options.precision == Precision::Double {
        return Ok(Cow::Borrowed(options));
    }
    if dataset.deviations.is_some() {
        return Err(Error::Invalid(
            "inputs with standard deviations are fitted in double precision: do not ask for mixed precision".into(),
        ));
    }
    let mut own = options.clone();
    if options.method != "auto" {
        let method = methods::find(&options.method)?.method;
        if !takes(method, options) {
            return Err(Error::Invalid(format!(
                "method `{}` has no mixed precision, which is of {}: take `titsias2025` or `svgp`, or leave out \
                 `--precision mixed`",
                method.name(),
                Trait::RowProducts.words()
            )));
        }
        if let (true, Some(batches)) = (relaxed(method), &mut own.batches) {
            batches.training.following.solver.products = Precision::Single;
        }
    }
    // a guard has decided before it was written
    if checkpoint::setting(options, "precision").as_deref() == Some(name(Precision::Double)) {
        own.precision = Precision::Double;
    }
    Ok(Cow::Owned(own))
}

/// Returns which free numbers are hyperparameters.
fn which<'a>(visit: impl FnOnce(Visitor<'a, '_>)) -> Vec<bool> {
    let mut counts = Vec::new();
    visit(&mut |_, own| {
        let own =
            std::iter::repeat_n(!own.role().is_bulky(), own.free_len()).filter(|_| !own.frozen);
        counts.extend(own);
    });
    counts
}

/// What mixed precision changes, per row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Apart {
    rows: usize,
    /// The objective in double precision, with the log priors, and its change per row.
    objective: f64,
    bound: f64,
    /// The largest change of a slope by a hyperparameter, and the largest of these slopes. (Those by inducing points move a
    /// bound little, and those by q are found again with every step.)
    slope: f64,
    steepest: f64,
}

impl Apart {
    /// Compares the objectives of some rows by their values and slopes in a precision; `counts` says of every slope whether it
    /// is by a hyperparameter. What cannot be computed is as far apart as can be.
    fn of(
        count: usize,
        counts: &[bool],
        mut of: impl FnMut(Precision) -> Result<(f64, Vec<f64>)>,
    ) -> Result<Self> {
        let mut of = |precision| match of(precision) {
            Err(error) if error.is_recoverable() => Ok(None),
            outcome => outcome.map(Some),
        };
        let far =
            Self { rows: count, bound: f64::INFINITY, objective: 0.0, slope: 0.0, steepest: 0.0 };
        let (double, single) = (of(Precision::Double)?, of(Precision::Single)?);
        let (Some((double, slopes)), Some((single, others))) = (double, single) else {
            return Ok(far);
        };
        let n = count.max(1) as f64;
        debug_assert_eq!(counts.len(), slopes.len());
        let pairs = slopes.iter().zip(&others).zip(counts).filter(|(_, counts)| **counts);
        let (mut slope, mut steepest) = (0.0_f64, 0.0_f64);
        for ((a, b), _) in pairs {
            slope = slope.max((a - b).abs() / n);
            steepest = steepest.max(a.abs() / n);
        }
        Ok(Self {
            rows: count,
            bound: (double - single).abs() / n,
            objective: double,
            slope,
            steepest,
        })
    }

    /// Creates the same of a model whose bound is a sum over these rows.
    fn of_model(model: &Model, engine: &dyn Engine, rows: &dyn Source) -> Result<Self> {
        Self::of(rows.rows(), &which(|v| model.visit(v)), |precision| {
            let mixed = Mixed(engine);
            let engine = if precision == Precision::Single { &mixed } else { engine };
            let (found, slopes) = model.evaluate_free(engine, rows)?;
            Ok((found.value, slopes))
        })
    }

    /// Creates the same of layers, along the same samples of hidden ones.
    pub(super) fn of_layers(layers: &Deep, samples: usize, rows: &InMemory) -> Result<Self> {
        let count = rows.rows();
        let batch = Batch { rows: rows.all(), population: count as f64, samples };
        let noise = Noise::Streams { seed: 0, step: u64::MAX };
        let want = Want { gradient: true, ..Want::default() };
        Self::of(count, &which(|v| layers.visit(v)), |precision| {
            let mut work = Work::in_precision(precision);
            let mut found = layers.evaluate(&batch, &noise, want, &mut work)?;
            let value = found.value + log_prior(|v| layers.visit(v), &mut found.gradient);
            let mut slopes = vec![0.0; free_count(|v| layers.visit(v))];
            free_gradient(|v| layers.visit(v), &found.gradient, &mut slopes);
            slopes.iter().try_for_each(|g| finite(*g, "the gradient").map(|_| ()))?;
            Ok((finite(value, "the bound")?, slopes))
        })
    }

    /// Returns why that is too much, if it is.
    fn too_much(self) -> Option<String> {
        let Self { rows, bound, slope, steepest, .. } = self;
        // not fine where one is NaN
        let fine = bound <= BOUND && slope <= SLOPE.max(SHARE * steepest);
        (!fine).then(|| {
            format!(
                "on {rows} rows it changes the bound by {bound:.1e} nats a row and its slopes by {slope:.1e}, where \
                 {BOUND:.0e} and {SLOPE:.0e} are allowed; less noise than a thousandth of the kernel's variance, or \
                 lengthscales beyond the range of the inputs, need more digits"
            )
        })
    }
}

/// Most rows at which predictions are compared in both precisions.
const COMPARED: usize = 400;

/// Returns so many rows at equal distances, or all if they are fewer.
fn spread(x: MatRef<'_, f64>, count: usize) -> Mat<f64> {
    let (n, d) = (x.nrows(), x.ncols());
    let count = count.min(n);
    Mat::from_fn(count, d, |i, q| x[(i * n / count, q)])
}

impl Fitted {
    /// Returns the model that predicts in mixed precision, if that changes no standard deviation of a latent function by more than
    /// 1 % at 400 of these inputs (B×D in the data's own units, at equal distances; all of fewer); else itself, in double
    /// precision, with a sentence that says why. Give the rows to be predicted, or some of all parts of them. What is in
    /// single precision then, and what never is, says [`Posterior::in_mixed_precision`](crate::model::Posterior::in_mixed_precision).
    /// The precision that a model was trained in ([`TrainReport::precision`]) has no part in this, and files do not keep it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a method whose predictions are not products of rows with inducing points (exact inference, series,
    /// neighbours, layers, draws), and for inputs with standard deviations; [`Error::Shape`] if the number of columns differs.
    pub fn in_mixed_precision(mut self, x: MatRef<'_, f64>) -> Result<(Self, Option<String>)> {
        self.check_mixed_precision()?;
        self.check_rows(x)?;
        let mut rows = spread(x, COMPARED);
        self.scaler.scale_x(rows.as_mut())?;
        let (posterior, reason) = self.posterior.in_mixed_precision(rows.as_ref())?;
        self.posterior = posterior;
        Ok((self, reason))
    }

    /// Refuses a model that has no predictions in mixed precision, whatever the rows.
    ///
    /// # Errors
    /// As for [`Fitted::in_mixed_precision`].
    pub fn check_mixed_precision(&self) -> Result<()> {
        if !self.input_deviations.is_empty() {
            return Err(Error::Invalid(
                "inputs with standard deviations are predicted in double precision: do not ask for mixed precision".into(),
            ));
        }
        let method = self.model.method;
        let layered = method.architecture().is_some();
        if layered || !traits_of(method, Way::default()).has(Trait::RowProducts) {
            return Err(Error::Invalid(format!(
                "method `{}` has no mixed precision for predictions, which takes {} and with one layer: predict in double \
                 precision",
                method.name(),
                Trait::RowProducts.words()
            )));
        }
        self.posterior.check_mixed_precision()
    }
}

/// A training that goes in either precision.
pub(super) trait InEither {
    /// Returns what mixed precision changes of some rows, or of others where the training has
    /// `ended`.
    fn apart(&mut self, ended: bool) -> Result<Apart>;
    /// Trains in a precision, from where it is. `before` are the iterations of a part before, which a checkpoint that is there
    /// is of: its end is found again from it.
    fn train(
        &mut self,
        precision: Precision,
        before: Option<usize>,
        observer: &mut dyn Observer,
    ) -> Result<TrainReport>;
    /// Says something.
    fn warn(&mut self, text: String);
    /// Returns the objective at the end, in double precision, where it is known or can be.
    fn objective(&mut self, apart: Apart, report: &TrainReport) -> Result<f64>;
}

/// Trains in mixed precision as far as it goes, with a look at some rows in both precisions before, unless a training is
/// `resumed` that has passed there, and at its end.
pub(super) fn guarded(
    training: &mut dyn InEither,
    resumed: bool,
    observer: &mut dyn Observer,
) -> Result<TrainReport> {
    if !resumed && let Some(reason) = training.apart(false)?.too_much() {
        training.warn(format!("the fit is in double precision, not in mixed precision: {reason}"));
        return training.train(Precision::Double, None, observer);
    }
    let mut report = training.train(Precision::Single, None, observer)?;
    report.precision = Precision::Single;
    if observer.interrupted() {
        return Ok(report);
    }
    let apart = training.apart(true)?;
    let Some(reason) = apart.too_much() else {
        report.objective = training.objective(apart, &report)?;
        return Ok(report);
    };
    training.warn(format!(
        "the fit was continued in double precision where mixed precision had ended: {reason}"
    ));
    let mut later = Counting::after(&report, observer);
    let mut then = training.train(Precision::Double, Some(report.iterations), &mut later)?;
    if then.iterations == 0 && !then.converged {
        // no iteration was left
        then.precision = Precision::Single;
    }
    Ok(later.joined(report, then))
}

/// A model of one layer in training.
struct OneLayer<'a> {
    learning: &'a Learning<'a>,
    model: &'a mut Model,
    origin: &'a mut Origin,
    held: Option<Held>,
}

impl OneLayer<'_> {
    /// Returns whether what is in memory is compared as a whole, as for collapsed bounds.
    fn whole(&self) -> bool {
        self.learning.dataset.source.sharded().is_none() && !self.model.method.has_q()
    }
}

impl InEither for OneLayer<'_> {
    fn apart(&mut self, ended: bool) -> Result<Apart> {
        let Learning { dataset, options, engine, .. } = *self.learning;
        let learnt = dataset.trained_by(self.model.method);
        if ended && self.whole() {
            return Apart::of_model(self.model, engine, &learnt);
        }
        let seed = options.seed.wrapping_add(u64::from(ended));
        Apart::of_model(self.model, engine, &sample_rows(&learnt, ROWS, seed)?)
    }

    fn train(
        &mut self,
        precision: Precision,
        before: Option<usize>,
        observer: &mut dyn Observer,
    ) -> Result<TrainReport> {
        let mut options = FitOptions { precision, ..self.learning.options.clone() };
        if let Some(iterations) = before {
            options.checkpoint = None;
            options.train.max_iterations = options.train.max_iterations.saturating_sub(iterations);
        }
        let mixed = Mixed(self.learning.engine);
        let single = precision == Precision::Single;
        let engine = if single { &mixed } else { self.learning.engine };
        let own = Learning { options: &options, engine, ..*self.learning };
        own.trained(self.model, self.origin, self.held.take(), observer)
    }

    fn warn(&mut self, text: String) {
        self.origin.warnings.push(text);
    }

    fn objective(&mut self, apart: Apart, _: &TrainReport) -> Result<f64> {
        match self.whole() {
            true => Ok(apart.objective),
            false => self.learning.on_all(self.model.clone()),
        }
    }
}

impl Learning<'_> {
    /// Trains in the precision that is asked for, as far as it goes.
    pub(super) fn in_precision(
        &self,
        model: &mut Model,
        origin: &mut Origin,
        held: Option<Held>,
        observer: &mut dyn Observer,
    ) -> Result<TrainReport> {
        let plain = FitOptions { precision: Precision::Double, ..self.options.clone() };
        let double = Learning { options: &plain, ..*self };
        if self.options.precision == Precision::Double || relaxed(model.method) {
            let mut report = self.trained(model, origin, held, observer)?;
            if relaxed(model.method) {
                report.precision = of_products(self.options);
            }
            return Ok(report);
        }
        let method = model.method;
        if !takes(method, self.options) {
            origin.warnings.push(format!(
                "method `{}` has no mixed precision: the fit is in double precision",
                method.name()
            ));
            return double.trained(model, origin, held, observer);
        }
        // a training that is resumed has passed the first look
        let resumed = held.is_some();
        guarded(&mut OneLayer { learning: self, model, origin, held }, resumed, observer)
    }
}

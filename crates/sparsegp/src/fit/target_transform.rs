//! Functions of the targets that are learnt in their place, and what predictions are then.
//!
//! The model sees g(y) = T(y), standardised, with Gaussian noise. T is rising, so that quantiles, intervals and draws are T⁻¹ of
//! those of g, and the density of y is that of g times T′(y). A power's exponent is the one with the largest evidence of y:
//! that of g by exact inference on a sample of the rows, plus Σ log T′(yᵢ).

use super::quiet::Quiet;
use super::start::prepare_start;
use super::trial::Trial;
use super::{Dataset, FitOptions, Fitted, Of, Start, is_automatic, sample_rows};
use crate::data::{Scaler, TargetTransform};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::likelihoods::quadrature::Nodes;
use crate::linalg::{Mat, MatRef, column, stacked};
use crate::methods;
use crate::train::{Event, Observer};

/// Which function of the targets is learnt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransformTargets {
    /// The targets as they are.
    #[default]
    None,
    /// The logarithm.
    Log,
    /// A power by Yeo and Johnson.
    YeoJohnson,
    /// The best of these.
    Auto,
}

impl TransformTargets {
    /// All of them.
    const ALL: [Self; 4] = [Self::None, Self::Log, Self::YeoJohnson, Self::Auto];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Log => "log",
            Self::YeoJohnson => "yeo-johnson",
            Self::Auto => "auto",
        }
    }

    /// Returns the one of this name, `none` for any other.
    pub fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|own| own.name() == name).unwrap_or_default()
    }
}

/// Rows of the sample, and iterations on it.
const ROWS: usize = 200;
const TRAINED: usize = 20;
/// Steps between exponents, the coarse ones first.
const STEPS: [f64; 3] = [0.5, 0.25, 0.125];
/// Nats that an exponent costs, and by which a function must be better than the targets as they are.
const PRICE: f64 = 1.5;
const LEAST_GAIN: f64 = 2.0;

/// Returns the sum of the logarithms of the slopes at targets in their own units, without those of the scales.
pub(super) fn log_slope(scaler: &Scaler, y: MatRef<'_, f64>, weights: &[f64]) -> f64 {
    let mut sum = 0.0;
    for p in 0..y.ncols() {
        let Some(transform) = scaler.transform(p) else { continue };
        for (i, y) in column(y, p).iter().enumerate().filter(|(_, y)| !y.is_nan()) {
            sum += weights.get(i).copied().unwrap_or(1.0) * transform.log_slope(*y);
        }
    }
    sum
}

/// Returns the data set with the functions of the targets that the options ask for; none where these stay as they are.
///
/// # Errors
/// [`Error::Invalid`] where they cannot be had; what reading and judging the rows gives.
pub(super) fn resolved(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
) -> Result<Option<Dataset>> {
    if options.target_transform == TransformTargets::None {
        return Ok(None);
    }
    check(dataset, options)?;
    let mut chosen = vec![None; dataset.target_names.len()];
    let varying: Vec<usize> =
        (0..chosen.len()).filter(|p| !dataset.scaler.is_constant(*p)).collect();
    for p in varying {
        let search = Search { dataset, options, engine, observer: &*observer, target: p };
        chosen[p] = search.chosen()?;
    }
    if chosen.iter().all(Option::is_none) {
        return Ok(None);
    }
    let own = dataset.transformed(chosen)?;
    match observer.event(Event::Targets { log_jacobian: own.log_jacobian() }).is_break() {
        true => Err(Error::Interrupted),
        false => Ok(Some(own)),
    }
}

/// Refuses data and models whose targets are not transformed.
fn check(dataset: &Dataset, options: &FitOptions) -> Result<()> {
    let given = options.likelihood.as_deref().map(crate::likelihoods::parse).transpose()?;
    let other = given.filter(|own| own.as_gaussian().is_none());
    let deep =
        methods::find(&options.method).is_ok_and(|entry| entry.method.architecture().is_some());
    let reason = match () {
        () if dataset.classes.is_some() => "they are classes".to_owned(),
        () if other.is_some() => {
            let name = other.map_or("", |own| own.name());
            format!(
                "the likelihood is `{name}`, which says itself how targets are distributed; take `gaussian`"
            )
        }
        () if dataset.scaler.is_transformed() => "they are transformed already".into(),
        () if deep => "a deep model makes up for it".into(),
        () if dataset.extra_name.is_some() => {
            "known variances of the noise are those of the targets as they are".into()
        }
        () if dataset.deviations.is_some() => "inputs have standard deviations".into(),
        () if dataset.held_out.is_some() => "early stopping holds rows out".into(),
        () if dataset.source.sharded().is_some() => "rows are in other processes".into(),
        () => return Ok(()),
    };
    Err(Error::Invalid(format!(
        "the targets are not transformed: {reason}; leave out {}",
        TransformTargets::OPTION
    )))
}

impl TransformTargets {
    /// What the command line and Python call it.
    const OPTION: &str = "`--target-transform` (`target_transform` in Python)";
}

/// The choice for one target.
struct Search<'a> {
    dataset: &'a Dataset,
    options: &'a FitOptions,
    engine: &'a dyn Engine,
    observer: &'a dyn Observer,
    target: usize,
}

impl Search<'_> {
    fn chosen(&self) -> Result<Option<TargetTransform>> {
        let (mut least, mut at) = (f64::INFINITY, 0);
        let p = self.target;
        self.dataset.source.for_each_chunk(1 << 14, &mut |rows| {
            for (i, y) in column(rows.y, p).iter().enumerate() {
                let own = self.dataset.scaler.unscaled(p, *y);
                if own < least {
                    (least, at) = (own, rows.start + i);
                }
            }
            Ok(())
        })?;
        // scaling and back may leave a rest of a zero
        let zero = 1e-12 * self.dataset.target_mean[p].abs();
        match self.options.target_transform {
            TransformTargets::Log if least <= zero => Err(Error::Invalid(format!(
                "row {} of those to learn from: `{}` = {least:e} has no logarithm; take the transform `yeo-johnson`, or leave \
                 it out",
                at + 1,
                self.dataset.target_names[p]
            ))),
            TransformTargets::Log => Ok(Some(TargetTransform::Log)),
            TransformTargets::YeoJohnson => {
                self.power(self.evidence(None)?).map(|best| Some(best.0))
            }
            _ => {
                let usual = self.evidence(None)?;
                let (power, score) = self.power(usual)?;
                let mut best = (None, usual + LEAST_GAIN);
                if score - PRICE > best.1 {
                    best = (Some(power), score - PRICE);
                }
                if least > zero && self.evidence(Some(TargetTransform::Log))? > best.1 {
                    best.0 = Some(TargetTransform::Log);
                }
                Ok(best.0)
            }
        }
    }

    /// Returns the best power, from 1 (of that evidence) in steps that become smaller.
    fn power(&self, usual: f64) -> Result<(TargetTransform, f64)> {
        let p = self.target;
        let (centre, scale) = (self.dataset.target_mean[p], self.dataset.target_variance[p].sqrt());
        let of = |lambda: f64| TargetTransform::YeoJohnson { lambda, centre, scale };
        let (mut best, mut score) = (1.0_f64, usual);
        for step in STEPS {
            let before = best;
            for sign in [-1.0, 1.0] {
                let mut next = before + sign * step;
                while (0.0..=2.0).contains(&next) {
                    let own = self.evidence(Some(of(next)))?;
                    if own <= score {
                        break;
                    }
                    (best, score) = (next, own);
                    next += sign * step;
                }
                if best != before {
                    break;
                }
            }
        }
        Ok((of(best), score))
    }

    /// Returns the evidence of a sample of the targets if a function of them is learnt; less than
    /// any other where it is not to be had.
    fn evidence(&self, transform: Option<TargetTransform>) -> Result<f64> {
        let mut all = vec![None; self.dataset.target_names.len()];
        all[self.target] = transform;
        let sample = self.dataset.sampled(ROWS, self.options.seed)?.transformed(all)?;
        sampled_evidence(&sample, self.options, self.engine, self.observer)
    }
}

/// Returns the evidence of a few rows in the units of the data, or the bound of other likelihoods; less than any other where it is
/// not to be had.
pub(super) fn sampled_evidence(
    sample: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &dyn Observer,
) -> Result<f64> {
    let kernel = &options.kernel;
    let own = FitOptions {
        kernel: if is_automatic(kernel) { "rbf".into() } else { kernel.clone() },
        target_transform: TransformTargets::None,
        checkpoint: None,
        restarts: 0,
        ..options.clone()
    };
    let quiet = &mut Quiet(observer);
    let Start { model, .. } = prepare_start(sample, &own, engine, quiet, 0)?;
    let rows = sample_rows(&*sample.source, ROWS, options.seed)?;
    let gaussian = model.likelihood.as_gaussian().is_some();
    let rows = sample.distinct(&rows).filter(|_| gaussian).unwrap_or(rows);
    let trial = Trial::new(&model, &rows, ROWS, &own)?;
    let Some(mut trial) = trial else { return Ok(f64::NEG_INFINITY) };
    let objective = trial.climb(TRAINED, engine, observer)?;
    let Some(objective) = objective else { return Ok(f64::NEG_INFINITY) };
    let count = trial.rows().y.nrows() as f64;
    let jacobian = sample.scaler.log_jacobian_of(count, &[]) + sample.log_slope;
    Ok(objective - trial.model.assumed_log_prior() + jacobian)
}

/// Points of the rule by which moments of targets are those of their functions.
const POINTS: usize = 40;

impl Fitted {
    /// Refuses what transformed targets do not have.
    pub(super) fn check_untransformed(&self, what: &str) -> Result<()> {
        match self.scaler.is_transformed() {
            false => Ok(()),
            true => Err(Error::Invalid(format!(
                "the targets of the model are transformed, and {what} is for targets as they are: fit it without \
                 {}",
                TransformTargets::OPTION
            ))),
        }
    }

    /// Tells whether targets are transformed and predictions a mixture, so that moments are not those of one Gaussian.
    pub(super) fn is_mixed(&self) -> bool {
        self.scaler.is_transformed() && self.posterior.components_count() > 1
    }

    /// Returns the moments of a target whose function is Gaussian with these moments on the model's
    /// scale.
    fn target_moments(&self, nodes: &Nodes, p: usize, (m, v): (f64, f64)) -> (f64, f64) {
        let (centre, unit) = (self.scaler.y_mean[p], self.scaler.y_scale[p]);
        // twice, because unit² may over- or underflow where the product does not
        let (m, v) = (m * unit + centre, v * unit * unit);
        match self.scaler.transform(p) {
            None => (m, v),
            // where no rule of few points suffices
            Some(TargetTransform::Log) => {
                let own = (m + 0.5 * v).exp();
                (own, own * own * v.exp_m1())
            }
            Some(transform) => {
                moments(nodes, nodes.x.iter().map(|z| transform.inverse(m + v.sqrt() * z)))
            }
        }
    }

    /// Turns moments of Gaussian predictions on the model's scale into those of the targets, in
    /// place.
    pub(super) fn unscale_moments(
        &self,
        mean: &mut Mat<f64>,
        variance: &mut Mat<f64>,
    ) -> Result<()> {
        if !self.scaler.is_transformed() {
            self.scaler.unscale_mean(mean.as_mut())?;
            return self.scaler.unscale_variance(variance.as_mut());
        }
        let nodes = Nodes::gauss_hermite(POINTS);
        for p in 0..mean.ncols() {
            for i in 0..mean.nrows() {
                let at = (i, p);
                (mean[at], variance[at]) = self.target_moments(&nodes, p, (mean[at], variance[at]));
            }
        }
        Ok(())
    }

    /// Returns the moments of targets, or of the latent functions in their units, where predictions
    /// of their functions are mixtures.
    pub(super) fn moments_of_mixture(
        &self,
        x: MatRef<'_, f64>,
        extra: &[f64],
        of: Of,
    ) -> Result<(Mat<f64>, Mat<f64>)> {
        let nodes = Nodes::gauss_hermite(POINTS);
        let own = |p: usize, m: f64, v: f64| self.target_moments(&nodes, p, (m, v));
        let latent = of == Of::Latent;
        let parts = self.in_parts(x, extra, |_, x, extra| {
            self.posterior.predict_moments_of(x, extra, latent, &own)
        })?;
        let (means, variances): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let all = |parts: &[Mat<f64>]| stacked(parts, x.nrows(), self.target_names.len());
        Ok((all(&means), all(&variances)))
    }
}

/// Returns the mean and variance of values at the points of a rule.
fn moments(nodes: &Nodes, values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    let average = |f: &dyn Fn(f64) -> f64| {
        values.iter().zip(&nodes.w).map(|(value, weight)| weight * f(*value)).sum::<f64>()
    };
    let mean = average(&|value| value);
    (mean, average(&|value| (value - mean).powi(2)))
}

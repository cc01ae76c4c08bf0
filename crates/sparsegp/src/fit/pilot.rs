//! The pilot: hyperparameters to start from, by exact inference on a few rows.

use super::FitOptions;
use crate::data::InMemory;
use crate::engine::Engine;
use crate::error::Result;
use crate::kernels::{Kernel, Tape, Unit};
use crate::likelihoods::{Gaussian, Target};
use crate::linalg::{Cholesky, Jitter, Mat, MatRef, column, dot};
use crate::means;
use crate::methods;
use crate::model::Model;
use crate::optim::LbfgsOptions;
use crate::params::{Bounds, Param, Shape, Transform};
use crate::rng;
use crate::train::{Observer, OptimiserKind, TrainOptions, train};

/// Iterations of the pilot: enough for lengthscales that deserve inducing points.
const PILOT_ITERATIONS: usize = 60;

/// Least noise variance in the pilot, as a part of the starting one (a tenth of the variance).
const PILOT_NOISE: f64 = 1e-2;

/// What the lengthscales that the spreads of the inputs suggest are multiplied by, to see which explains the targets
/// best. From a start far too long, gradients lead to a model in which all is noise.
const LENGTHS: [f64; 6] = [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125];

/// Rows that this is judged by, thirty times over.
const JUDGED: usize = 200;

/// Exact inference on a few rows. With another likelihood than Gaussian noise it regresses on guesses of the latent
/// function, row by row what makes the target likely ([`crate::likelihoods::Likelihood::initialise`]), of several
/// classes on their indicators, outliers drawn in. None if fewer than two rows have all targets.
fn trial(
    model: &Model,
    sample: &InMemory,
    rows: usize,
    seed: u64,
) -> Result<Option<(Model, InMemory)>> {
    let known: Vec<usize> = (0..sample.x.nrows())
        .filter(|i| (0..sample.y.ncols()).all(|p| !sample.y[(*i, p)].is_nan()))
        .collect();
    let mut generator = rng::stream(seed, "rows of the pilot");
    let rows = rng::permutation(&mut generator, known.len(), rows.min(known.len()));
    let rows: Vec<usize> = rows.into_iter().map(|i| known[i]).collect();
    if rows.len() < 2 {
        return Ok(None);
    }
    let gaussian = model.likelihood.as_gaussian().is_some();
    let mut trial = if gaussian { model.clone() } else { surrogate(model, &sample.x)? };
    trial.method = &methods::Exact;
    trial.q = None;
    trial.kernels.truncate(1);
    let x = Mat::from_fn(rows.len(), sample.x.ncols(), |i, j| sample.x[(rows[i], j)]);
    let y = match gaussian {
        true => Mat::from_fn(rows.len(), sample.y.ncols(), |i, j| sample.y[(rows[i], j)]),
        false => guesses(model, sample, &rows),
    };
    for (_, param) in trial.params_mut() {
        param.frozen |= param.given;
    }
    Ok(Some((trial, InMemory::new(x, y)?)))
}

/// Noise variances that go with every try, as parts of the kernel's: with too little of it noise looks like a function
/// of very short lengthscales.
const NOISES: [f64; 5] = [1e-3, 0.05, 0.3, 1.0, 5.0];

/// Nats by which shorter lengthscales must explain the targets better.
const LEAST_GAIN: f64 = 2.0;

/// Starts the lengthscales that nobody gave where, all multiplied by one number, they explain a few rows best: by the
/// log evidence, the largest over some noise variances and over the scale of the targets.
pub(super) fn scale_lengths(
    model: &mut Model,
    sample: &InMemory,
    options: &FitOptions,
) -> Result<()> {
    let rows = options.pilot.min(JUDGED);
    let Some((trial, mut data)) = trial(model, sample, rows, options.seed)? else { return Ok(()) };
    for j in 0..data.y.ncols() {
        let values = data.y.col_as_slice_mut(j);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter_mut().for_each(|v| *v -= mean);
    }
    let mut best: Option<(f64, Model)> = None;
    for by in LENGTHS {
        let (mut scaled, mut any) = (trial.clone(), false);
        for (path, param) in scaled.kernels[0].params_mut() {
            if path.ends_with("lengthscales") && !param.frozen {
                let values: Vec<f64> = param.value().iter().map(|v| v * by).collect();
                param.start(&values);
                any = true;
            }
        }
        if !any {
            return Ok(());
        }
        let value = evidence(scaled.kernel(), &data);
        if best.as_ref().is_none_or(|(most, _)| value > *most + LEAST_GAIN) {
            best = Some((value, scaled));
        }
    }
    match best {
        Some((value, found)) if value.is_finite() => take_lengthscales(model, &found),
        _ => Ok(()),
    }
}

/// The largest log evidence (Rasmussen & Williams 2006, eq. 2.30) of targets of mean 0 under s(K + νI), but for a
/// constant: over ν among some, and over s. Its slope in s is 0 at s = tr Yᵀ(K + νI)⁻¹Y / (NP), which leaves
/// −½P log|K + νI| − ½NP log tr Yᵀ(K + νI)⁻¹Y. −∞ where nothing can be factorised.
fn evidence(kernel: &dyn Kernel, data: &InMemory) -> f64 {
    let (n, p) = (data.x.nrows(), data.y.ncols() as f64);
    let mut k = Mat::zeros(n, n);
    kernel.evaluate(data.x.as_ref(), None, k.as_mut(), &mut Tape::off());
    let scale = (0..n).map(|i| k[(i, i)]).sum::<f64>() / n as f64;
    let of = |share: f64| -> Option<f64> {
        let factor = Cholesky::new(k.as_ref(), Jitter::Absolute(share * scale), "K + σ²I").ok()?;
        let quadratic = dot(data.y.as_ref(), factor.solve(data.y.as_ref()).as_ref());
        Some(-0.5 * p * (factor.log_det() + n as f64 * quadratic.ln()))
    };
    NOISES.into_iter().filter_map(of).filter(|v| !v.is_nan()).fold(f64::NEG_INFINITY, f64::max)
}

/// Trains the hyperparameters that nobody gave by exact inference on a few rows. A pilot that fails
/// leaves the starting values as they are and a warning: it is a help, not a condition. Of one on guesses of the
/// latent function only lengthscales are taken.
pub(super) fn pilot(
    model: &mut Model,
    sample: &InMemory,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
) -> Result<Option<String>> {
    let gaussian = model.likelihood.as_gaussian().is_some();
    let Some((mut trial, data)) = trial(model, sample, options.pilot, options.seed)? else {
        return Ok(None);
    };
    // a thousand rows without noise would make K + σ²I singular and tell nothing about lengthscales
    if let Some(gaussian) = trial.likelihood.as_gaussian_mut()
        && !gaussian.variance.frozen
    {
        let start = gaussian.variance.scalar();
        let lower = PILOT_NOISE * start;
        let given = gaussian.variance.bounds();
        match given.any() {
            false => {
                let range = Transform::Softplus { lower };
                gaussian.variance = Param::with(vec![start], Shape::Scalar, range);
            }
            true => {
                let min = Some(given.min.map_or(lower, |min| min.max(lower)));
                gaussian.variance.bound("likelihood.variance", Bounds { min, ..given })?;
            }
        }
    }
    let optimiser = OptimiserKind::Lbfgs(LbfgsOptions::fitting());
    let train_options =
        TrainOptions { optimiser, max_iterations: PILOT_ITERATIONS, ..TrainOptions::default() };
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
                data.x.nrows()
            )));
        }
        Err(error) => return Err(error),
    }
    if gaussian && model.kernels.len() == 1 {
        for ((_, param), (_, found)) in model.params_mut().into_iter().zip(trial.params()) {
            param.start(found.value());
        }
        return Ok(None);
    }
    take_lengthscales(model, &trial)?;
    Ok(None)
}

/// A Gaussian model of guesses of the latent function, of about unit variance.
fn surrogate(model: &Model, x: &Mat<f64>) -> Result<Model> {
    Ok(Model {
        mean: means::by_name("zero", x.ncols(), 1)?,
        likelihood: Box::new(Gaussian::new(0.1)),
        inducing: Vec::new(),
        ..model.clone()
    })
}

/// Guesses of the latent functions, standardised: one column per target column, or one per class,
/// 1 where the row is of the class.
fn guesses(model: &Model, sample: &InMemory, rows: &[usize]) -> Mat<f64> {
    let k = if model.likelihood.classes().is_some() { model.likelihood.latents() } else { 1 };
    let default = model.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
    let outputs = sample.y.ncols();
    let mut all = Mat::zeros(rows.len(), outputs * k);
    for (at, i) in rows.iter().enumerate() {
        let extra = sample.extra.get(*i).copied().unwrap_or(default);
        for p in 0..outputs {
            let y = sample.y[(*i, p)];
            if k > 1 {
                (0..k).for_each(|l| all[(at, p * k + l)] = f64::from(u8::from(y == l as f64)));
            } else {
                all[(at, p)] = model.likelihood.clone().initialise(&[Target { y, extra }])[0];
            }
        }
    }
    for j in 0..all.ncols() {
        without_outliers(all.col_as_slice_mut(j));
        let values = column(all.as_ref(), j);
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let sd = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        let sd = if sd > 0.0 && sd.is_finite() { sd } else { 1.0 };
        all.col_as_slice_mut(j).iter_mut().for_each(|v| *v = (*v - mean) / sd);
    }
    all
}

/// Widths beyond which a guess is taken for an outlier, which the pilot's Gaussian noise cannot bear.
const WIDTHS: f64 = 4.0;

/// Moves what lies more than so many widths (1.4826 median deviations, the standard deviation of a normal)
/// from the median there. Where more than half of the values are one there is no width.
fn without_outliers(values: &mut [f64]) {
    let median = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let centre = median(values.to_vec());
    let width = WIDTHS * 1.4826 * median(values.iter().map(|v| (v - centre).abs()).collect());
    if width > 0.0 && width.is_finite() {
        values.iter_mut().for_each(|v| *v = v.clamp(centre - width, centre + width));
    }
}

/// Copies what is no variance from the trial's kernel to every kernel of the same structure.
fn take_lengthscales(model: &mut Model, trial: &Model) -> Result<()> {
    let is_variance = |unit: &Option<Unit>| unit.is_some_and(|u| u.output != 0);
    let from = trial.kernel();
    let units = from.units();
    for kernel in &mut model.kernels {
        let paths = |k: &dyn crate::kernels::Kernel| -> Vec<(String, usize)> {
            k.params().into_iter().map(|(path, p)| (path, p.len())).collect()
        };
        if paths(&**kernel) != paths(from) {
            continue;
        }
        let mut units = units.iter();
        for ((_, param), (_, found)) in kernel.params_mut().into_iter().zip(from.params()) {
            let own: Vec<_> = units.by_ref().take(param.len()).collect();
            if !own.into_iter().any(is_variance) && !param.given {
                param.start(found.value());
            }
        }
    }
    Ok(())
}

/// Whether the noise is Gaussian and neither given nor frozen.
pub(super) fn free_noise(model: &Model) -> bool {
    model.likelihood.as_gaussian().is_some_and(|g| !g.variance.given && !g.variance.frozen)
}

/// Adds to the noise variance what the inducing points leave unexplained in the mean of the rows:
/// the pilot knew nothing of them, and a bound that starts with noise far below falls off a cliff.
pub(super) fn widen_noise(model: &mut Model, x: MatRef<f64>, engine: &dyn Engine) -> Result<()> {
    let rows = x.nrows() as f64;
    let collapsed = methods::find("titsias2009")?.method;
    let trial = Model {
        method: collapsed,
        q: None,
        kernels: model.kernels[..1].to_vec(),
        inducing: model.inducing[..1].to_vec(),
        mean: means::by_name("zero", x.ncols(), 1)?,
        ..model.clone()
    };
    // it does not depend on the targets
    let rest = InMemory::new(x.to_owned(), Mat::zeros(x.nrows(), 1))?;
    let unexplained = match trial.evaluate(engine, &rest) {
        Ok(evaluation) => evaluation.diagnostics.unexplained / rows,
        Err(error) if error.is_recoverable() => 0.0,
        Err(error) => return Err(error),
    };
    let noise = model.noise() + unexplained.max(0.0);
    if let Some(gaussian) = model.likelihood.as_gaussian_mut() {
        gaussian.variance.start(&[noise]);
    }
    Ok(())
}

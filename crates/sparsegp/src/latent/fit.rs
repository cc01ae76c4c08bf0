//! Training the Bayesian GP-LVM on a matrix, and what it is good for then.

use super::batches::{self, GplvmBatches, rows_of};
use super::embed::{EmbedOptions, Embedding};
use super::fewer::grown;
use super::model::{Gplvm, Trainable, Training, owned};
use super::predict::Posterior;
use super::start::{LatentStart, Started, principal, random};
use super::targets::Targets;
use crate::error::{Error, Result, nearest};
use crate::inducing::Selection;
use crate::kernels::{Inputs, parse};
use crate::linalg::{Jitter, Mat, MatRef};
use crate::optim::{Lbfgs, LbfgsOptions, Optimiser, Status, Step};
use crate::params::{Param, Shape, Transform, free_values, set_free_values};
use crate::psi::Uncertain;
use crate::terms;
use std::collections::BTreeMap;

/// How a GP-LVM is trained.
#[derive(Clone, Debug)]
pub struct GplvmOptions {
    /// Latent dimensions Q.
    pub dimensions: usize,
    /// Inducing points M; no more than there are rows.
    pub inducing: usize,
    /// The kernel: `rbf`, `linear`, `constant` and `white`, their sums, and products with `constant`. Values that it gives are starting
    /// values.
    pub kernel: String,
    /// The bound: `titsias2025`, `titsias2009` or `spherical`.
    pub method: String,
    /// Where means of q(X) start.
    pub start: LatentStart,
    /// Where variances of q(X) start.
    pub variance: f64,
    /// How inducing points are chosen from the starting means.
    pub selection: Selection,
    /// Trainings, of which the best is kept: the first from `start`, the others from means that are half of it and half random. At least 1.
    pub restarts: usize,
    /// Most iterations of each.
    pub iterations: usize,
    /// The optimiser's.
    pub lbfgs: LbfgsOptions,
    /// Minibatches, for many rows; none to train all at once, as where there are no more rows than in a batch.
    pub batches: Option<GplvmBatches>,
    /// Whether every column is divided by its own standard deviation; else all by one number, so that columns that vary more
    /// count more.
    pub standardise: bool,
    /// Jitter of Kuu.
    pub jitter: Jitter,
    /// Seed of whatever is random.
    pub seed: u64,
}

impl Default for GplvmOptions {
    fn default() -> Self {
        Self {
            dimensions: 2,
            inducing: 30,
            kernel: "rbf".into(),
            method: "titsias2025".into(),
            start: LatentStart::Pca,
            variance: 0.1,
            selection: Selection::KMeans,
            restarts: 1,
            iterations: 1000,
            lbfgs: LbfgsOptions::fitting(),
            batches: None,
            standardise: true,
            jitter: Jitter::default(),
            seed: 0,
        }
    }
}

impl GplvmOptions {
    /// Refuses what is not possible; finds the bound by its name.
    fn check(&self) -> Result<&'static dyn terms::Term> {
        let term = terms::REGISTRY.iter().find(|term| term.name() == self.method);
        let term = *term.ok_or_else(|| {
            let names = terms::REGISTRY.iter().map(|term| term.name());
            Error::Invalid(format!(
                "the bound `{}` is none of the GP-LVM's; nearest: {}",
                self.method,
                nearest(&self.method, names).join(", ")
            ))
        })?;
        for (what, value) in [
            ("latent dimensions", self.dimensions),
            ("inducing points", self.inducing),
            ("trainings", self.restarts),
        ] {
            if value == 0 {
                return Err(Error::Invalid(format!(
                    "a GP-LVM needs at least 1 of its {what}, not 0"
                )));
            }
        }
        if !(self.variance > 0.0 && self.variance.is_finite()) {
            return Err(Error::Invalid(format!(
                "variances of latent inputs start at a positive number, not at {}",
                self.variance
            )));
        }
        Ok(term)
    }
}

/// Where a training stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GplvmProgress {
    /// Which training, from 0.
    pub restart: usize,
    /// Iterations of it that are done.
    pub iteration: usize,
    /// Its bound, in the targets' units.
    pub bound: f64,
    /// Largest component of its gradient by free numbers.
    pub gradient: f64,
    /// Of a training by minibatches the epoch, from 1; `bound` is the mean of what its batches said so far, and `iteration` counts batches.
    /// None while rows are trained at once.
    pub epoch: Option<usize>,
}

/// A trained GP-LVM. The model is of the targets less their columns' means and divided by their scales; what is returned is in the targets'
/// units.
#[derive(Debug)]
pub struct FittedGplvm {
    /// The parameters.
    pub model: Gplvm,
    /// q(u) on the model's scale.
    pub posterior: Posterior,
    /// The bound of log p(Y), in the targets' units.
    pub bound: f64,
    /// How the training ended.
    pub status: Status,
    /// The bounds of the trainings that were made, in order; minus infinity for one that failed. Where there are several, of two
    /// dimensions or more, the last began from the best map of fewer. Before minibatches these are of the first
    /// rows.
    pub restarts: Vec<f64>,
    /// Rows whose unexplained variance is below 0 by more than rounding: a larger jitter helps.
    pub negative: usize,
    /// Means of the columns, P numbers.
    pub centre: Vec<f64>,
    /// What the columns are divided by, P numbers.
    pub scale: Vec<f64>,
    /// Names of the columns; `y0`, `y1`, … until whoever read them says others.
    pub names: Vec<String>,
    /// Texts that other programs keep with the model, by name.
    pub annotations: BTreeMap<String, String>,
}

/// Nats a row below which a dimension says nothing.
const LEAST_INFORMATION: f64 = 0.01;

/// Least and largest part of the targets' variance that noise starts with.
const NOISE: [f64; 2] = [0.01, 0.5];

/// Returns the columns' means, and the roots of the mean squares around them: of each, or of all
/// together. A column of one value has the scale of all, and is 0.
fn units(y: MatRef<f64>, each: bool) -> Result<(Vec<f64>, Vec<f64>)> {
    let (mut squares, mut count) = (0.0, 0.0);
    let (mut centre, mut own) = (Vec::new(), Vec::new());
    for j in 0..y.ncols() {
        let values = || (0..y.nrows()).map(|i| y[(i, j)]).filter(|v| !v.is_nan());
        let known = values().count() as f64;
        let mean = values().sum::<f64>() / known;
        let square: f64 = values().map(|v| (v - mean).powi(2)).sum();
        squares += square;
        count += known;
        centre.push(mean);
        // variation only by rounding counts as none
        let size = values().fold(0.0_f64, |most, v| most.max(v.abs()));
        let deviation = (square / known).sqrt();
        own.push(if deviation > 1e-13 * size { deviation } else { 0.0 });
    }
    let scale = (squares / count).sqrt();
    if !(scale > 0.0 && scale.is_finite()) || own.iter().all(|own| *own == 0.0) {
        return Err(Error::Invalid(format!(
            "the targets do not vary, or by more than there are numbers for (standard deviation {scale}): there is nothing to learn"
        )));
    }
    let of = |own: f64| if each && own > 0.0 { own } else { scale };
    Ok((centre, own.into_iter().map(of).collect()))
}

/// Trains a Bayesian GP-LVM as [`fit_gplvm_watched`] does, to its end.
///
/// # Errors
/// As for [`fit_gplvm_watched`].
pub fn fit_gplvm(y: MatRef<f64>, options: &GplvmOptions) -> Result<FittedGplvm> {
    fit_gplvm_watched(y, options, &mut |_| true)
}

/// Trains a Bayesian GP-LVM (Titsias & Lawrence 2010; `titsias2025`: Titsias 2025, §B.5) on targets (N×P, NaN where
/// missing): q(X), kernel, noise and inducing points all at once, by L-BFGS. `watch` sees every iteration and ends the
/// training, at the best that was found, by false.
///
/// # Errors
/// [`Error::Invalid`] for options that are not possible and targets without values; [`Error::Spec`] for a kernel that cannot be read; an
/// error of the last training if all have failed.
pub fn fit_gplvm_watched(
    y: MatRef<f64>,
    options: &GplvmOptions,
    watch: &mut dyn FnMut(GplvmProgress) -> bool,
) -> Result<FittedGplvm> {
    let term = options.check()?;
    // before units, since it refuses what has none
    Targets::new(y)?;
    let (centre, scale) = units(y, options.standardise)?;
    let scaled = Mat::from_fn(y.nrows(), y.ncols(), |i, j| (y[(i, j)] - centre[j]) / scale[j]);
    let targets = Targets::new(scaled.as_ref())?;
    // what the units of the cells add to minus a bound
    let unit = |targets: &Targets| -> f64 {
        let known = targets.groups().iter().flat_map(|g| g.columns.iter().map(|j| (g.rows, *j)));
        known.map(|(rows, j)| rows as f64 * scale[j].ln()).sum()
    };
    let all = unit(&targets);
    let in_batches = options.batches.as_ref().filter(|batches| batches.rows < y.nrows());
    let (model, value, status, restarts, of_restarts) = match in_batches {
        None => {
            let mut watched =
                |at: GplvmProgress| watch(GplvmProgress { bound: at.bound - all, ..at });
            let (model, value, status, restarts) =
                trainings(&targets, options, term, &mut watched)?;
            (model, value, status, restarts, all)
        }
        Some(batches) => {
            batches.check(options, term.pooling())?;
            let rows = batches.first_rows(scaled.as_ref(), options.seed);
            let some = Targets::new(rows_of(scaled.as_ref(), &rows).as_ref())?;
            let (of_some, mut continues) = (unit(&some), true);
            let (first, _, _, restarts) = trainings(&some, options, term, &mut |at| {
                continues = watch(GplvmProgress { bound: at.bound - of_some, ..at });
                continues
            })?;
            let epochs = if continues { batches.epochs } else { 0 };
            let how = GplvmBatches { epochs, ..batches.clone() };
            let rows = (scaled.as_ref(), &targets);
            let mut watched =
                |at: GplvmProgress| watch(GplvmProgress { bound: at.bound - all, ..at });
            let (model, value) = batches::train(&first, &some, rows, options, &how, &mut watched)?;
            (model, value, Status::Running, restarts, of_some)
        }
    };
    let restarts = restarts.into_iter().map(|bound| bound - of_restarts).collect();
    let bound = model.bound(&targets)?;
    let (posterior, negative) = (bound.posterior(), bound.negative());
    let bound = value - all;
    let names = (0..y.ncols()).map(|j| format!("y{j}")).collect();
    let annotations = BTreeMap::new();
    Ok(FittedGplvm {
        model,
        posterior,
        bound,
        status,
        restarts,
        negative,
        centre,
        scale,
        names,
        annotations,
    })
}

/// Makes trainings of these rows, of which the best is kept: the model, its bound, how it ended,
/// and the bounds of all.
fn trainings(
    targets: &Targets,
    options: &GplvmOptions,
    term: &'static dyn terms::Term,
    watch: &mut dyn FnMut(GplvmProgress) -> bool,
) -> Result<(Gplvm, f64, Status, Vec<f64>)> {
    let mut best: Option<(Gplvm, f64, Status)> = None;
    let (mut restarts, mut failure) = (Vec::new(), None);
    let mut continues = true;
    for restart in 0..options.restarts {
        if !continues {
            break;
        }
        let model = started(targets, options, term, restart)?;
        let mut watched = |_: &Gplvm, iteration, step: &Step| {
            let (bound, gradient) = (-step.value, step.gradient_norm);
            let at = GplvmProgress { restart, iteration, bound, gradient, epoch: None };
            continues = watch(at);
            continues
        };
        let how = (&options.lbfgs, options.iterations);
        match train(model, targets, how, &mut watched) {
            Ok((model, value, lbfgs)) => {
                let status = lbfgs.status().clone();
                restarts.push(value);
                if best.as_ref().is_none_or(|(_, least, _)| value > *least) {
                    best = Some((model, value, status));
                }
            }
            Err(error) if error.is_recoverable() => {
                restarts.push(f64::NEG_INFINITY);
                failure = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    // several trainings were asked for: one more has the best of fewer dimensions for its start
    let several = options.restarts > 1 && options.dimensions > 1;
    if continues && several && options.start == LatentStart::Pca {
        let mut watched = |_: &Gplvm, iteration, step: &Step| {
            let (bound, gradient) = (-step.value, step.gradient_norm);
            let restart = options.restarts;
            watch(GplvmProgress { restart, iteration, bound, gradient, epoch: None })
        };
        if let Some((model, value, lbfgs)) = grown(targets, options, term, &mut watched)? {
            restarts.push(value);
            if best.as_ref().is_none_or(|(_, least, _)| value > *least) {
                best = Some((model, value, lbfgs.status().clone()));
            }
        }
    }
    match best {
        Some((model, value, status)) => Ok((model, value, status, restarts)),
        None => Err(failure.unwrap_or_else(|| Error::Invalid("no training was made".into()))),
    }
}

/// Returns the model that a training starts from.
pub(super) fn started(
    targets: &Targets,
    options: &GplvmOptions,
    term: &'static dyn terms::Term,
    restart: usize,
) -> Result<Gplvm> {
    let (n, q) = (targets.rows(), options.dimensions);
    let Started { mut mean, explained } = match options.start {
        LatentStart::Pca => principal(targets.y.as_ref(), q, options.seed)?,
        LatentStart::Random => {
            Started { mean: random(n, q, options.seed, restart), explained: None }
        }
    };
    if restart > 0 && options.start == LatentStart::Pca {
        let noise = random(n, q, options.seed, restart);
        let half = std::f64::consts::FRAC_1_SQRT_2;
        mean = Mat::from_fn(n, q, |i, j| half * (mean[(i, j)] + noise[(i, j)]));
    }
    let seed = options.seed.wrapping_add(restart as u64);
    let points = options.selection.choose(mean.as_ref(), options.inducing.min(n), seed, None)?;
    let mut kernel = parse(&options.kernel, Inputs::unnamed(q))?;
    kernel.initialise(&vec![1.0; q], 1.0);
    let noise = (1.0 - explained.unwrap_or(0.9)).clamp(NOISE[0], NOISE[1]);
    let variance = Mat::from_fn(n, q, |_, _| options.variance);
    Ok(Gplvm {
        kernel,
        noise: Param::with(vec![noise], Shape::Scalar, Transform::Softplus { lower: LEAST_NOISE }),
        points: Param::of_matrix(points.points.as_ref(), Transform::Identity),
        mean: Param::of_matrix(mean.as_ref(), Transform::Identity),
        variance: Param::of_matrix(variance.as_ref(), Transform::Exp { lower: 0.0 }),
        term,
        jitter: options.jitter,
        block: None,
    })
}

/// The least noise variance, as a part of the targets' variance: below, the bounds divide by rounding errors.
const LEAST_NOISE: f64 = 1e-8;

/// Trains by L-BFGS, at most so many iterations: the best that was found, its bound, and the optimiser. `watch` sees the
/// model after every iteration, and ends the training by false.
pub(crate) fn train<T: Trainable>(
    model: T,
    targets: &Targets,
    (options, iterations): (&LbfgsOptions, usize),
    watch: &mut dyn FnMut(&T, usize, &Step) -> bool,
) -> Result<(T, f64, Lbfgs)> {
    let start = free_values(|v| model.visit(v));
    let mut training = Training { model, targets };
    let mut lbfgs = Lbfgs::new(start, options.clone());
    for iteration in 1..=iterations.max(1) {
        let step = lbfgs.step(&mut training)?;
        if !watch(&training.model, iteration, &step) || step.status.is_final() {
            break;
        }
    }
    let best = lbfgs.best().map_or_else(|| lbfgs.x().to_vec(), |(x, _)| x.to_vec());
    let mut model = training.model;
    set_free_values(|v| model.visit_mut(v), &best);
    let value = model.value(targets)?;
    Ok((model, value, lbfgs))
}

impl FittedGplvm {
    /// Returns q(X) of the training rows: means and variances, N×Q each.
    ///
    /// # Errors
    /// As for [`Uncertain::new`], if somebody has changed the model.
    pub fn latent(&self) -> Result<(Mat<f64>, Mat<f64>)> {
        let x = self.model.latent()?;
        Ok((owned(x.mean), owned(x.variance)))
    }

    /// Returns how much functions vary along every latent dimension, Q numbers of which the largest
    /// is 1: the prior variance of their slope (Σ σ²/ℓ² of squared exponentials, a of linear
    /// kernels). Dimensions with next to nothing are not used; it is 0 for those in which all
    /// places are those of the prior, 0 ± 1.
    pub fn relevance(&self) -> Vec<f64> {
        let mut all = self.posterior.slope_variances();
        all.iter_mut()
            .zip(self.information())
            .filter(|(_, information)| *information < LEAST_INFORMATION)
            .for_each(|(v, _)| *v = 0.0);
        let largest = all.iter().fold(f64::MIN_POSITIVE, |m, v| m.max(*v));
        all.iter().map(|v| v / largest).collect()
    }

    /// Returns nats that the places of a row say in the mean, KL(q(x) ‖ p(x)) of every dimension.
    fn information(&self) -> Vec<f64> {
        let (mean, variance) = (&self.model.mean, &self.model.variance);
        let q = self.posterior.slope_variances().len();
        let n = mean.len() / q.max(1);
        let one = |at: usize| {
            let (m, v) = (mean.value()[at], variance.value()[at]);
            0.5 * (v + m * m - 1.0 - v.ln())
        };
        (0..q).map(|j| (j * n..(j + 1) * n).map(one).sum::<f64>() / n as f64).collect()
    }

    /// Returns what a person should know of a map without any dimension: the columns have nothing
    /// in common that it could show.
    pub fn emptiness(&self) -> Option<String> {
        self.relevance().iter().all(|r| *r == 0.0).then(|| {
            "the map is empty: no dimension says anything of the rows, whose columns are noise to it (relevance 0); look whether \
             they have something in common, or try more rows, another kernel or `random` starts"
                .into()
        })
    }

    /// Returns the noise variances of the columns in the targets' units, P numbers.
    pub fn noise(&self) -> Vec<f64> {
        self.scale.iter().map(|scale| self.posterior.noise() * scale * scale).collect()
    }

    /// Returns the means and variances of the latent functions at inputs N(μ, S) (N×Q; S = 0 for
    /// known ones), N×P each, in the targets' units. Observations have [`FittedGplvm::noise`] more.
    ///
    /// # Errors
    /// As for [`Posterior::predict_f`].
    pub fn predict_f(&self, x: Uncertain<'_>) -> Result<(Mat<f64>, Mat<f64>)> {
        let (mut mean, mut variance) = self.posterior.predict_f(x)?;
        for (p, centre) in self.centre.iter().enumerate() {
            mean.col_as_slice_mut(p).iter_mut().for_each(|m| *m = centre + self.scale[p] * *m);
            variance
                .col_as_slice_mut(p)
                .iter_mut()
                .for_each(|v| *v *= self.scale[p] * self.scale[p]);
        }
        Ok((mean, variance))
    }

    /// Finds q(x) of new rows (N×P, NaN where missing) without training ([`Posterior::embed`]); bounds are of densities in the targets'
    /// units.
    ///
    /// # Errors
    /// As for [`Posterior::embed`].
    pub fn embed(&self, y: MatRef<f64>, options: &EmbedOptions) -> Result<Embedding> {
        let scaled = self.scaled(y);
        let mut own = self.posterior.embed(scaled.as_ref(), self.model.latent()?, options)?;
        for (i, bound) in own.bounds.iter_mut().enumerate() {
            let known = (0..y.ncols()).filter(|j| !y[(i, *j)].is_nan());
            *bound -= known.map(|j| self.scale[j].ln()).sum::<f64>();
        }
        Ok(own)
    }

    /// Fills in the missing cells of new rows (N×P, NaN where missing): values, with those that are known as they are, and variances of
    /// observations, 0 for those that are known; N×P each. They are averaged over all places where a row may lie.
    ///
    /// # Errors
    /// As for [`Posterior::embed`].
    pub fn impute(&self, y: MatRef<f64>, options: &EmbedOptions) -> Result<(Mat<f64>, Mat<f64>)> {
        let (mean, variance) =
            self.posterior.impute(self.scaled(y).as_ref(), self.model.latent()?, options)?;
        let known = |i: usize, j: usize| !y[(i, j)].is_nan();
        let (n, p) = (y.nrows(), y.ncols());
        let value = |i: usize, j: usize| self.centre[j] + self.scale[j] * mean[(i, j)];
        let spread = |i: usize, j: usize| self.scale[j] * self.scale[j] * variance[(i, j)];
        Ok((
            Mat::from_fn(n, p, |i, j| if known(i, j) { y[(i, j)] } else { value(i, j) }),
            Mat::from_fn(n, p, |i, j| if known(i, j) { 0.0 } else { spread(i, j) }),
        ))
    }

    /// Returns rows in the unit of the posterior. What has other columns stays, and the posterior
    /// says what is wrong.
    fn scaled(&self, y: MatRef<f64>) -> Mat<f64> {
        match y.ncols() == self.centre.len() {
            true => Mat::from_fn(y.nrows(), y.ncols(), |i, j| {
                (y[(i, j)] - self.centre[j]) / self.scale[j]
            }),
            false => y.to_owned(),
        }
    }
}

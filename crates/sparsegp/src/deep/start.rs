//! Where deep models start: mean functions and inducing points through the layers, hidden layers nearly deterministic
//! (Salimbeni & Deisenroth 2017, in their experiments).

use super::group::Group;
use super::layer::{Layer, Sampling};
use super::means::{Identity, Projection, projected};
use super::model::{Deep, LastBound};
use super::targets::check_targets;
use super::units::unit_of;
use crate::data::moments::spreads;
use crate::error::{Error, Result};
use crate::inducing::select::{distinct_rows, gather, kmeans};
use crate::inverse_free::Preconditioner;
use crate::kernels::{self, Inputs, Kernel, parse};
use crate::likelihoods::{Likelihood, Target, default_extra};
use crate::linalg::{Jitter, Mat, MatRef, column, product};
use crate::means::{self, Mean};
use crate::rng;
use crate::variational::Variational;

/// The kinds of layers, by the form of their q.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Moments of whitened inducing variables.
    W,
    /// Moments of the inducing variables themselves.
    M,
    /// Pseudo-observations: the variances of all outputs are one, and a layer of many outputs costs what one of them does.
    #[default]
    L,
    /// The same without factorisations.
    R,
}

/// What a model is started from.
#[derive(Clone, Debug)]
pub struct Start {
    /// Numbers of outputs of the hidden layers; none for a shallow model.
    pub hidden: Vec<usize>,
    /// The kind of all layers.
    pub kind: Kind,
    /// Kernel of every layer, as [`parse`] reads it.
    pub kernel: String,
    /// Names of the inputs, for the kernels of the first layer; none where they have none.
    pub names: Vec<String>,
    /// Most inducing points of every layer.
    pub points: usize,
    /// Variance of hidden kernels where what they give has a variance of about 1. The smaller, the nearer hidden layers are to their
    /// mean functions, and the longer training takes to leave them.
    pub hidden_variance: f64,
    /// How hidden layers are sampled.
    pub sampling: Sampling,
    /// Whether layers after the first see the inputs beside what the layer before gives (Duvenaud et al. 2014, §6).
    pub skip: bool,
    /// Whether every function of a hidden layer has its own kernel and inducing points; else they
    /// share them.
    pub own_kernels: bool,
    /// Whether with Gaussian noise the last layer has the tighter bound, where its kind allows.
    pub tighter: bool,
    /// Seed of the choice of points.
    pub seed: u64,
}

impl Start {
    /// Returns what kernels of a layer know of its inputs: only those of the first have names.
    fn inputs(&self, layer: usize, count: usize) -> Inputs<'_> {
        match layer == 0 && self.names.len() == count {
            true => Inputs::named(&self.names),
            false => Inputs::unnamed(count),
        }
    }
}

impl Default for Start {
    fn default() -> Self {
        Self {
            hidden: vec![1],
            kind: Kind::L,
            kernel: "rbf".into(),
            names: Vec::new(),
            points: 100,
            hidden_variance: 1e-2,
            sampling: Sampling::Rows,
            skip: false,
            own_kernels: false,
            tighter: true,
            seed: 0,
        }
    }
}

/// q of hidden layers starts with this multiple of the prior's root (Salimbeni & Deisenroth 2017, in their code).
const HIDDEN_ROOT: f64 = 1e-5;
/// Gaussian noise starts at this part of the targets' variance, unless it was given (Cortinovis et al., released
/// configuration).
const NOISE: f64 = 0.1;
/// λ starts at this part of the kernel's variance, which needs no scale of the layer.
const LAMBDA: f64 = 1e-2;

/// Mean functions and inducing points through layers.
#[derive(Clone, Debug)]
pub struct Chain {
    /// W of the mean function of every layer but the last, D×P.
    pub weights: Vec<Mat<f64>>,
    /// Z of every layer, M×D.
    pub points: Vec<Mat<f64>>,
}

/// Sends inputs (N×D) and inducing points (M×D) through the fixed mean functions of layers of these widths, and returns both
/// of every layer. With `skip` layers after the first see the inputs, too, behind what the layer before gives: their mean functions do not.
///
/// # Errors
/// As for [`projected`].
pub fn through(x: MatRef<f64>, z: MatRef<f64>, hidden: &[usize], skip: bool) -> Result<Chain> {
    let (mut running, mut points) = (x.to_owned(), vec![z.to_owned()]);
    let mut weights = Vec::new();
    for (l, width) in hidden.iter().enumerate() {
        let beside = if skip && l > 0 { x.ncols() } else { 0 };
        let own = running.ncols() - beside;
        let seen = projected(running.as_ref().subcols(0, own), *width)?;
        let w = Mat::from_fn(own + beside, *width, |i, j| if i < own { seen[(i, j)] } else { 0.0 });
        let next = |rows: MatRef<f64>, first: MatRef<f64>| {
            let given = product(rows, w.as_ref());
            if skip { side_by_side(given.as_ref(), first) } else { given }
        };
        let z = next(points[l].as_ref(), z);
        running = next(running.as_ref(), x);
        points.push(z);
        weights.push(w);
    }
    Ok(Chain { weights, points })
}

/// Returns [a, b].
fn side_by_side(a: MatRef<f64>, b: MatRef<f64>) -> Mat<f64> {
    let first = a.ncols();
    Mat::from_fn(a.nrows(), first + b.ncols(), |i, j| {
        if j < first { a[(i, j)] } else { b[(i, j - first)] }
    })
}

/// Returns the variance of targets; 1 where there is none.
fn variance(all: &[Target]) -> f64 {
    let n = all.len().max(1) as f64;
    let mean = all.iter().map(|t| t.y).sum::<f64>() / n;
    let variance = all.iter().map(|t| (t.y - mean) * (t.y - mean)).sum::<f64>() / n;
    if variance > 0.0 && variance.is_finite() { variance } else { 1.0 }
}

/// Returns the rows of a matrix that differ from all before them: two inducing points at one place
/// make Kuu singular.
fn distinct(z: MatRef<f64>) -> Mat<f64> {
    gather(z, &distinct_rows(z, z.nrows()))
}

impl Kind {
    /// Returns q of a layer before training.
    fn q(
        self,
        kernel: &dyn Kernel,
        z: MatRef<f64>,
        outputs: usize,
        share: f64,
    ) -> Result<Variational> {
        let m = z.nrows();
        let zero = Mat::zeros(m, outputs);
        match self {
            Kind::W => {
                let root = Mat::<f64>::identity(m, m) * faer::Scale(share);
                Variational::new(zero.as_ref(), &vec![root; outputs], false, true)
            }
            Kind::M => {
                let factor = kernels::factor(kernel, z, Jitter::Relative(1e-6), "Kuu")?;
                let root = factor.l * faer::Scale(share);
                Variational::new(zero.as_ref(), &vec![root; outputs], false, false)
            }
            Kind::L | Kind::R => {
                let mut variance = vec![0.0; m];
                kernel.diag(z, &mut variance);
                let mean = variance.iter().sum::<f64>() / m.max(1) as f64;
                let (inverse, relaxed) = (Preconditioner::Inverse, self == Kind::R);
                let mut q = Variational::pseudo_observations(m, outputs, inverse, relaxed);
                q.second.set("q.lambda", &[LAMBDA * mean])?;
                Ok(q)
            }
        }
    }
}

impl Start {
    /// Refuses other numbers of inputs than of targets, and a variance that is not positive.
    fn check(&self, x: MatRef<f64>, y: MatRef<f64>) -> Result<()> {
        if x.nrows() != y.nrows() {
            let expected = format!("{} rows, as the inputs", x.nrows());
            return Err(Error::shape("targets", expected, y.nrows()));
        }
        if !(self.hidden_variance > 0.0 && self.hidden_variance.is_finite()) {
            return Err(Error::Invalid(format!(
                "the variance of hidden kernels must be positive, found {}",
                self.hidden_variance
            )));
        }
        Ok(())
    }
}

impl Deep {
    /// Starts a model for rows (inputs N×D, standardised, and targets N×P, NaN where missing; `extra` has the further number of
    /// every row, such as trials or exposure, or is empty): points by k-means of the inputs, mean functions and points through the layers, hidden kernels of small variance with lengthscales of √D
    /// deviations, q of hidden layers nearly its mean. R layers have their T solved for.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::Invalid`] for rows, widths or a kernel that are not possible, and for no further numbers
    /// where the likelihood has no default.
    pub fn start(
        x: MatRef<f64>,
        y: MatRef<f64>,
        extra: &[f64],
        mut likelihood: Box<dyn Likelihood>,
        start: &Start,
    ) -> Result<Self> {
        start.check(x, y)?;
        let default = default_extra(&*likelihood, extra, y.nrows())?;
        check_targets(&*likelihood, y, extra)?;
        let extra = |i: usize| extra.get(i).copied().unwrap_or(default);
        let own =
            |p| column(y, p).iter().enumerate().map(|(i, y)| Target { y: *y, extra: extra(i) });
        let all = (0..y.ncols()).flat_map(own);
        let all: Vec<Target> = all.filter(|target| !target.y.is_nan()).collect();
        likelihood.adopt_unit(&all);
        let constants = likelihood.initialise(&all);
        // all that varies may be noise to a shallow model; a deep one starts where there is something to learn
        let mut scale = likelihood.latent_variance(&all);
        if let Some(gaussian) = likelihood.as_gaussian_mut() {
            scale = variance(&all);
            if !gaussian.variance.given {
                gaussian.variance.start(&[NOISE * scale]);
            }
        }
        let chosen = kmeans(x, start.points, &mut rng::stream(start.seed, "deep/inducing"))?;
        let Chain { weights, points } =
            through(x, chosen.points.as_ref(), &start.hidden, start.skip)?;
        let outputs = likelihood.latents() * y.ncols();
        let mut running = x.to_owned();
        let mut layers = Vec::new();
        for (l, z) in points.iter().enumerate() {
            let (z, d) = (distinct(z.as_ref()), z.ncols());
            let mut kernel = parse(&start.kernel, start.inputs(l, d))?;
            let hidden = weights.get(l);
            let variance = match hidden {
                // as what the mean function makes of the rows
                Some(w) => {
                    let given = product(running.as_ref(), w.as_ref());
                    start.hidden_variance * unit_of(given.as_ref()).powi(2)
                }
                None => scale,
            };
            kernel.initialise(&spreads(running.as_ref()), variance);
            let (width, share) = hidden.map_or((outputs, 1.0), |w| (w.ncols(), HIDDEN_ROOT));
            let own = start.own_kernels && hidden.is_some();
            let (count, each) = if own { (width, 1) } else { (1, width) };
            let group = |_| {
                let q = start.kind.q(&*kernel, z.as_ref(), each, share)?;
                Group::new(kernel.clone(), z.as_ref(), q)
            };
            let groups = (0..count).map(group).collect::<Result<Vec<_>>>()?;
            let skips = start.skip && l > 0;
            let mean: Box<dyn Mean> = match hidden {
                Some(w) if w.nrows() == w.ncols() && !skips => Box::new(Identity),
                Some(w) => Box::new(Projection::new(w.as_ref())),
                None => last_mean(d, outputs, &constants)?,
            };
            let mut layer = Layer::new(groups, mean);
            layer.skip = skips;
            if hidden.is_some() {
                layer.sampling = start.sampling;
            }
            layers.push(layer);
            if let Some(w) = hidden {
                running = product(running.as_ref(), w.as_ref());
                if start.skip {
                    running = side_by_side(running.as_ref(), x);
                }
            }
        }
        let gaussian = likelihood.as_gaussian().is_some();
        let mut model = Deep::new(layers, likelihood)?;
        if start.tighter && gaussian && matches!(start.kind, Kind::W | Kind::M) {
            model.bound = LastBound::Tighter;
        }
        model.settle(&Default::default())?;
        Ok(model)
    }
}

/// Returns a constant for every function, where targets are not surprising.
fn last_mean(inputs: usize, outputs: usize, constants: &[f64]) -> Result<Box<dyn Mean>> {
    let mut mean = means::by_name("constant", inputs, outputs)?;
    let values: Vec<f64> = (0..outputs).map(|l| constants[l % constants.len()]).collect();
    for (path, param) in mean.params_mut() {
        param.set(&path, &values)?;
    }
    Ok(mean)
}

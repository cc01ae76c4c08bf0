//! Simulated problems: rows drawn from a model whose values are known.
//!
//! Functions are draws from a Gaussian process with the kernel `rbf`, by random waves (Rahimi & Recht
//! 2007, §3.1): O(N) per function, so that thousands of rows cost no factorisation.

mod functions;

use rand::Rng;
use sparsegp::data::InMemory;
use sparsegp::fit::{Dataset, Standardise};
use sparsegp::likelihoods::{self, Likelihood};
use sparsegp::linalg::Mat;
use sparsegp::metrics::standard_normal_quantile;
use sparsegp::params::Shape;
use sparsegp::rng;
use std::f64::consts::TAU;

/// Waves of a drawn function: its values are normal to three digits.
const WAVES: usize = 1000;
/// Fewest rows of a problem.
const FEWEST_ROWS: f64 = 100.0;
/// Most rows of all but [`LARGE`] of the problems.
const MODERATE_ROWS: f64 = 500.0;
/// The share of problems that have more.
const LARGE: f64 = 0.15;
/// The true lengthscale of an input that does not matter, in its standard deviations.
const IRRELEVANT: f64 = 100.0;
/// Draws of a problem before one with constant targets is accepted.
const ATTEMPTS: usize = 100;

/// A source of random numbers.
struct Dice(Box<dyn Rng>);

impl Dice {
    fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * rng::uniform(&mut *self.0)
    }

    fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        self.uniform(low.ln(), high.ln()).exp()
    }

    /// A whole number from `low` to `high`, both included.
    fn whole(&mut self, low: usize, high: usize) -> usize {
        low + self.uniform(0.0, (high - low + 1) as f64) as usize
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.uniform(0.0, 1.0) < probability
    }

    fn normal(&mut self) -> f64 {
        standard_normal_quantile(self.uniform(1e-16, 1.0))
    }
}

/// What a likelihood needs to draw targets.
struct Family {
    /// How a fit names it.
    spec: String,
    /// True values of its parameters, by path.
    values: Vec<(&'static str, Vec<f64>)>,
    /// Range of the constants that latent functions vary about.
    constants: (f64, f64),
    /// Whether a second latent function is the logarithm of a noise scale.
    noise_function: bool,
}

impl Family {
    fn new(spec: impl Into<String>, constants: (f64, f64)) -> Self {
        Self { spec: spec.into(), values: Vec::new(), constants, noise_function: false }
    }

    fn with(mut self, path: &'static str, values: Vec<f64>) -> Self {
        self.values.push((path, values));
        self
    }

    /// Draws the parameters of a registered likelihood; none if nobody has said here how.
    fn draw(name: &'static str, sd: f64, dice: &mut Dice) -> Option<Self> {
        let noise = dice.log_uniform(0.1, 1.0);
        let classes = dice.whole(3, 4);
        let around_zero = (-1.0, 1.0);
        let counts = (-1.0, 3.0);
        let decades = (-7.0, 7.0);
        Some(match name {
            "gaussian" => Self::new(name, around_zero).with("variance", vec![noise * noise]),
            "log-normal" => Self::new(name, decades).with("variance", vec![noise * noise]),
            "laplace" | "matern32" | "logistic" => {
                Self::new(name, around_zero).with("scale", vec![noise])
            }
            "student-t" => Self::new(name, around_zero)
                .with("df", vec![dice.log_uniform(2.5, 10.0)])
                .with("scale", vec![noise]),
            "pseudo-huber" => Self::new(name, around_zero)
                .with("delta", vec![dice.log_uniform(0.3, 3.0) * noise])
                .with("scale", vec![noise]),
            "heteroscedastic" => Self { noise_function: true, ..Self::new(name, around_zero) },
            "heteroscedastic-student-t" => {
                let family = Self { noise_function: true, ..Self::new(name, around_zero) };
                family.with("df", vec![dice.log_uniform(2.5, 10.0)])
            }
            "bernoulli" | "svm" | "binomial" => Self::new(name, around_zero),
            "poisson" => Self::new(name, counts),
            "poisson-logistic" => {
                Self::new(name, (-2.0, 1.0)).with("rate", vec![dice.log_uniform(1.0, 30.0)])
            }
            "negative-binomial" => {
                Self::new(name, counts).with("dispersion", vec![dice.log_uniform(0.05, 3.0)])
            }
            "zero-inflated-poisson" => {
                Self::new(name, counts).with("zero", vec![dice.uniform(0.05, 0.7)])
            }
            "exponential" => Self::new(name, decades),
            "gamma" => Self::new(name, decades).with("shape", vec![dice.log_uniform(0.3, 20.0)]),
            "beta" => {
                Self::new(name, around_zero).with("scale", vec![dice.log_uniform(2.0, 200.0)])
            }
            "ordinal" => {
                let classes = dice.whole(3, 5);
                let sigma = dice.log_uniform(0.1, 1.0);
                // shares of the classes that are uneven, and never tiny
                let shares: Vec<f64> = (0..classes).map(|_| dice.log_uniform(0.2, 1.0)).collect();
                let total: f64 = shares.iter().sum();
                let deviation = (sd * sd + sigma * sigma).sqrt();
                let edge = |k: usize| {
                    let below = shares[..=k].iter().sum::<f64>() / total;
                    deviation * standard_normal_quantile(below)
                };
                let edges: Vec<f64> = (0..classes - 1).map(edge).collect();
                Self::new(format!("{name}(classes={classes})"), (0.0, 0.0))
                    .with("first_edge", vec![edges[0]])
                    .with("widths", edges.windows(2).map(|e| e[1] - e[0]).collect())
                    .with("sigma", vec![sigma])
            }
            "softmax" | "logistic-softmax" => {
                Self::new(format!("{name}(classes={classes})"), around_zero)
            }
            "robust-max" => Self::new(format!("{name}(classes={classes})"), (0.0, 0.0))
                .with("epsilon", vec![dice.log_uniform(1e-3, 0.1)]),
            "coregionalised" => {
                let (outputs, latents) = (dice.whole(2, 3), dice.whole(1, 2));
                let mixing = (0..outputs * latents).map(|_| dice.normal()).collect();
                Self::new(format!("{name}(outputs={outputs}, latents={latents})"), (0.0, 0.0))
                    .with("variance", vec![noise * noise])
                    .with("mixing", mixing)
            }
            _ => return None,
        })
    }
}

/// One kernel and its function values.
struct Function {
    sd: f64,
    /// In the units of the inputs; infinite for those that do not matter.
    lengthscales: Vec<f64>,
}

impl Function {
    /// Draws lengthscales for inputs that span these ranges, of which the first `relevant` matter. Those of more
    /// than two inputs grow with the root of their number: two random rows are as far apart then.
    fn draw(sd: f64, ranges: &[f64], relevant: usize, dice: &mut Dice) -> Self {
        let least = if ranges.len() <= 2 { 0.05 } else { 0.3 };
        let common = dice.log_uniform(least, 2.0);
        let widen = (relevant as f64 / 2.0).sqrt().max(1.0);
        let lengthscale = |(q, range): (usize, &f64)| {
            let own = (common * dice.log_uniform(0.5, 2.0)).clamp(least, 2.0);
            if q < relevant { own * widen * range } else { f64::INFINITY }
        };
        Self { sd, lengthscales: ranges.iter().enumerate().map(lengthscale).collect() }
    }

    /// Values of a draw at the rows of `x`.
    fn values(&self, x: &Mat<f64>, dice: &mut Dice) -> Vec<f64> {
        let mut values = vec![0.0; x.nrows()];
        let height = self.sd * (2.0 / WAVES as f64).sqrt();
        for _ in 0..WAVES {
            let wave: Vec<f64> = self.lengthscales.iter().map(|l| dice.normal() / l).collect();
            let phase = dice.uniform(0.0, TAU);
            for (i, value) in values.iter_mut().enumerate() {
                let angle: f64 = wave.iter().enumerate().map(|(q, w)| w * x[(i, q)]).sum();
                *value += height * (angle + phase).cos();
            }
        }
        values
    }
}

/// A simulated problem.
pub struct Problem {
    /// Its number among those of the same seed.
    pub index: usize,
    /// The registered name of its likelihood.
    pub likelihood: &'static str,
    /// The specification of its likelihood for a fit, which says nothing of parameters.
    pub spec: String,
    /// Its rows in their own units.
    pub data: InMemory,
    /// What kind of problem it is, in words, for tables.
    pub kinds: Vec<&'static str>,
    drawn: Box<dyn Likelihood>,
    functions: Vec<Function>,
    constants: Vec<f64>,
}

/// Registered likelihoods that problems are drawn from.
pub fn drawable() -> Vec<&'static str> {
    let known = |name| {
        let mut dice = Dice(Box::new(rng::stream(0, "drawable")));
        Family::draw(name, 1.0, &mut dice).is_some()
    };
    likelihoods::REGISTRY.iter().map(|e| e.name).filter(|name| known(name)).collect()
}

/// Registered likelihoods from which this module cannot draw.
pub fn missing() -> Vec<&'static str> {
    let known = drawable();
    likelihoods::REGISTRY.iter().map(|e| e.name).filter(|name| !known.contains(name)).collect()
}

impl Problem {
    /// Draws problem `index` of a seed, with at most `most_rows` rows. Likelihoods take turns.
    ///
    /// # Panics
    /// If the library refuses what was drawn, which would be a fault of this module.
    pub fn draw(seed: u64, index: usize, most_rows: usize) -> Self {
        let names = drawable();
        let name = names[index % names.len()];
        let attempt = |attempt| {
            let stream = rng::stream(seed, &format!("starts/{index}/{attempt}"));
            Self::attempt(index, name, most_rows, &mut Dice(Box::new(stream)))
        };
        let varied = |problem: &Problem| {
            let y = &problem.data.y;
            (0..y.ncols()).all(|p| (1..y.nrows()).any(|i| y[(i, p)] != y[(0, p)]))
        };
        (0..ATTEMPTS).map(attempt).find(varied).expect("targets that are not constant")
    }

    fn attempt(index: usize, likelihood: &'static str, most_rows: usize, dice: &mut Dice) -> Self {
        // few large ones: they take nearly all of the time
        let large = dice.chance(LARGE) && most_rows as f64 > MODERATE_ROWS;
        let (least, most) = if large {
            (MODERATE_ROWS, most_rows as f64)
        } else {
            (FEWEST_ROWS, MODERATE_ROWS.min(most_rows as f64))
        };
        let rows = dice.log_uniform(least, most).round() as usize;
        let inputs = dice.log_uniform(1.0, 11.0) as usize;
        let relevant = dice.whole(1, inputs);
        let (x, ranges) = inputs_of(rows, inputs, dice);

        let sd = dice.log_uniform(0.3, 3.0);
        let family = Family::draw(likelihood, sd, dice).expect("a likelihood from `drawable`");
        let mut drawn = likelihoods::parse(&family.spec).expect("a registered likelihood");
        for (path, value) in &family.values {
            let mut params = drawn.params_mut();
            let param = params.iter_mut().find(|(p, _)| p == *path).expect("a parameter");
            param.1.set(path, value).expect("a value in range");
        }
        let (outputs, latents) = match drawn.mixing().map(|w| w.shape()) {
            Some(Shape::Matrix(outputs, latents)) => (outputs, latents),
            _ => (1, drawn.latents()),
        };
        let kernels = if drawn.separate_kernels() { latents } else { 1 };
        let mut functions = Vec::new();
        for l in 0..kernels {
            let sd = if family.noise_function && l == 1 { dice.log_uniform(0.3, 1.0) } else { sd };
            functions.push(Function::draw(sd, &ranges, relevant, dice));
        }
        let mut constants: Vec<f64> =
            (0..latents).map(|_| dice.uniform(family.constants.0, family.constants.1)).collect();
        if family.noise_function {
            constants[1] = dice.uniform(0.1_f64.ln(), 0.0);
        }
        let (extra, decades) = extra_of(&*drawn, rows, dice);
        let weights = weights_of(rows, dice);

        let f: Vec<Vec<f64>> = (0..latents)
            .map(|l| {
                let values = functions[l.min(kernels - 1)].values(&x, dice);
                values.into_iter().map(|v| v + constants[l]).collect()
            })
            .collect();
        let mut y = Mat::zeros(rows, outputs);
        for i in 0..rows {
            let own: Vec<f64> = f.iter().map(|values| values[i]).collect();
            for p in 0..outputs {
                let mixed = drawn.mixing().map(|w| {
                    vec![own.iter().enumerate().map(|(q, g)| w.value()[p + q * outputs] * g).sum()]
                });
                let f = mixed.as_ref().unwrap_or(&own);
                let e = extra.get(i).copied().unwrap_or(1.0);
                y[(i, p)] = as_written(drawn.sample(e, f, &mut *dice.0), likelihood);
            }
        }

        let shortest = functions
            .iter()
            .flat_map(|f| f.lengthscales.iter().zip(&ranges).map(|(l, range)| l / range))
            .fold(f64::INFINITY, f64::min);
        let pick = |value: f64, edges: [f64; 2], words: [&'static str; 3]| {
            words[edges.iter().filter(|edge| value > **edge).count()]
        };
        let mut kinds = vec![
            pick(rows as f64, [150.0, 500.0], ["rows: 100–150", "rows: 151–500", "rows: 501–"]),
            pick(inputs as f64, [2.0, 5.0], ["inputs: 1–2", "inputs: 3–5", "inputs: 6–10"]),
            pick(
                shortest,
                [0.2, 0.7],
                [
                    "lengthscale: 0–0.2 ranges",
                    "lengthscale: 0.2–0.7 ranges",
                    "lengthscale: 0.7– ranges",
                ],
            ),
            pick(sd, [0.7, 1.5], ["latent sd: 0–0.7", "latent sd: 0.7–1.5", "latent sd: 1.5–"]),
            if relevant < inputs { "inputs: some irrelevant" } else { "inputs: all relevant" },
        ];
        if !weights.is_empty() {
            kinds.push("weights");
        }
        if decades >= 3.0 {
            kinds.push("exposure or trials over decades");
        }
        let mut data = InMemory::new(x, y).expect("as many targets as rows");
        (data.weights, data.extra) = (weights, extra);
        Self { index, likelihood, spec: family.spec, data, kinds, drawn, functions, constants }
    }

    /// Its rows as a fit wants them.
    ///
    /// # Panics
    /// If the library refuses them.
    pub fn dataset(&self) -> Dataset {
        let scaling = Standardise::all_that(&*self.drawn);
        Dataset::from_rows(self.data.clone(), scaling).expect("usable rows")
    }

    /// A hash of all its numbers, by which another run knows it again.
    pub fn key(&self) -> u64 {
        let matrix = |m: &Mat<f64>| -> Vec<f64> {
            (0..m.ncols()).flat_map(|j| m.col_as_slice(j).to_vec()).collect()
        };
        let mut numbers = vec![matrix(&self.data.x), matrix(&self.data.y)];
        numbers.extend([self.data.weights.clone(), self.data.extra.clone()]);
        let bytes = numbers.iter().flatten().flat_map(|v| v.to_bits().to_le_bytes());
        // FNV-1a, 64 bits
        self.spec.bytes().chain(bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    /// Paths of the lengthscales of its kernels.
    pub fn lengthscales(&self) -> Vec<String> {
        (0..self.functions.len()).map(|l| format!("{}.lengthscales", self.kernel(l))).collect()
    }

    /// Whether its latent functions are mixed, which few methods can do.
    pub fn mixed(&self) -> bool {
        self.drawn.mixing().is_some()
    }

    fn kernel(&self, l: usize) -> String {
        if self.functions.len() == 1 { "kernel".into() } else { format!("kernels[{l}]") }
    }

    /// The values that made it, on the scale of the model. Where several targets have their own
    /// scales, parameters that these have in common are on the geometric mean of the scales.
    pub fn truth(&self, dataset: &Dataset) -> Vec<(String, Vec<f64>)> {
        let scaler = &dataset.scaler;
        let scale = (-scaler.log_jacobian() / scaler.y_scale.len() as f64).exp();
        let mixed = self.mixed();
        let mut set = Vec::new();
        for (l, function) in self.functions.iter().enumerate() {
            let lengthscales = function
                .lengthscales
                .iter()
                .zip(&scaler.x_scale)
                .map(|(l, s)| (l / s).min(IRRELEVANT));
            set.push((format!("{}.lengthscales", self.kernel(l)), lengthscales.collect()));
            // a mixed function has no unit, and neither has the logarithm of a noise scale
            let unit = if mixed || l > 0 { 1.0 } else { scale };
            set.push((format!("{}.variance", self.kernel(l)), vec![(function.sd / unit).powi(2)]));
        }
        let units = self.drawn.units();
        let mut at = 0;
        for (path, param) in self.drawn.params() {
            let values = param.value().iter().zip(&units[at..]);
            set.push((
                format!("likelihood.{path}"),
                values.map(|(v, unit)| v / scale.powi(*unit)).collect(),
            ));
            at += param.len();
        }
        if !self.drawn.standardises() {
            set.push(("mean.constant".into(), self.constants.clone()));
        } else if let [mean, log_noise] = self.constants[..]
            && !mixed
        {
            let constants = vec![(mean - scaler.y_mean[0]) / scale, log_noise - scale.ln()];
            set.push(("mean.constant".into(), constants));
        }
        set
    }
}

/// Inputs, uniform or normal, each in its own units, with the range of each.
fn inputs_of(rows: usize, inputs: usize, dice: &mut Dice) -> (Mat<f64>, Vec<f64>) {
    let mut x = Mat::zeros(rows, inputs);
    let uniform = dice.chance(0.6);
    let mut ranges = Vec::new();
    for q in 0..inputs {
        let (unit, offset) = (dice.log_uniform(1e-2, 1e2), dice.uniform(-1.0, 1.0));
        for i in 0..rows {
            // four standard deviations of a normal count as its range
            let value = if uniform { dice.uniform(0.0, 1.0) } else { 0.25 * dice.normal() };
            x[(i, q)] = unit * (offset + value);
        }
        ranges.push(unit);
    }
    (x, ranges)
}

/// Exposures or trials, with the number of decades that they span; none where the likelihood knows nothing of them.
fn extra_of(likelihood: &dyn Likelihood, rows: usize, dice: &mut Dice) -> (Vec<f64>, f64) {
    let decades = [0.0, 1.0, 3.0, 7.0][dice.whole(0, 3)];
    let mut spread = |low: f64| -> Vec<f64> {
        (0..rows).map(|_| 10_f64.powf(dice.uniform(low, low + decades))).collect()
    };
    match likelihood.extra().map(|extra| extra.name) {
        Some("exposure") if decades > 0.0 => (spread(-0.5 * decades), decades),
        Some("trials") => (spread(0.0).iter().map(|trials| trials.ceil()).collect(), decades),
        _ => (Vec::new(), 0.0),
    }
}

/// Weights in a quarter of the problems: over two decades up to 1, and a tenth of the rows with next to none. Above 1 they
/// would make a model surer than the rows are that were drawn, and the best fit would be one that follows their noise.
fn weights_of(rows: usize, dice: &mut Dice) -> Vec<f64> {
    if !dice.chance(0.25) {
        return Vec::new();
    }
    let mut weight = || if dice.chance(0.1) { 1e-8 } else { dice.log_uniform(0.01, 1.0) };
    (0..rows).map(|_| weight()).collect()
}

/// A target as a table would hold it: shares that are not 0 or 1 because digits are missing, positive numbers above 0.
fn as_written(y: f64, likelihood: &str) -> f64 {
    match likelihood {
        "beta" => y.clamp(1e-9, 1.0 - 1e-9),
        "gamma" | "exponential" => y.max(1e-100),
        _ => y,
    }
}

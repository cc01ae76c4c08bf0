//! Random problems.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods::Gaussian;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::means::{by_name, names};
use sparsegp::methods::{Evaluation, find, upper_bound};
use sparsegp::model::{Model, inducing_param};

/// Kernels of all kinds, single and combined.
pub const KERNELS: &[&str] = &[
    "rbf",
    "rbf(ard=false)",
    "matern12",
    "matern32",
    "matern52(active_dims=[0])",
    "rbf + linear",
    "matern32 + white + constant",
    "matern52 * linear",
    "(rbf + constant) * matern12",
    "linear * linear + matern32(ard=false)",
    "linear(ard=true) + constant",
    "exponential",
    "gamma_exponential",
    "rational_quadratic",
    "periodic",
    "periodic(base=matern52) * rbf",
    "additive(base=matern52)",
    "rbf + additive(ard=false)",
    "cosine * rbf + constant",
    "polynomial(degree=2)",
    "arccosine",
    "arccosine(order=1) + white",
    "changepoints(kernels=[rbf, linear + constant], active_dims=[0])",
];

/// Kernels whose K(X) at distinct points is far from singular without any jitter, and which do not
/// distinguish K(X) from K(X, X).
pub const ROUGH: &[&str] =
    &["matern12", "matern12(ard=false)", "matern12 + linear", "matern12 * constant + constant"];

/// What a problem is drawn from.
#[derive(Clone, Debug)]
pub struct Draw {
    /// Rows.
    pub n: usize,
    /// Inducing points.
    pub m: usize,
    /// Input columns.
    pub d: usize,
    /// Target columns.
    pub p: usize,
    /// The kernel's specification.
    pub kernel: &'static str,
    /// The mean function's name.
    pub mean: &'static str,
    /// Seed of everything else.
    pub seed: u64,
}

/// Random draws with one of `kernels`.
pub fn draws(kernels: &'static [&'static str]) -> impl Strategy<Value = Draw> {
    (
        5usize..=60,
        1usize..=12,
        1usize..=4,
        1usize..=3,
        proptest::sample::select(kernels),
        proptest::sample::select(names()),
        any::<u64>(),
    )
        .prop_map(|(n, m, d, p, kernel, mean, seed)| Draw { n, m, d, p, kernel, mean, seed })
}

/// Side of the cells that points are drawn from.
const CELL: f64 = 0.35;

/// Points with every coordinate in the part `[from, from + 0.3]` of its cell. Inputs (from 0.1) and
/// inducing points (from 0.6) thus differ by at least 0.2 cells in every coordinate, and the first
/// coordinates of the first 60 points lie in different cells, 0.7 cells apart: no two points come near
/// the kinks of Matérn kernels.
pub fn points(n: usize, d: usize, from: f64, rng: &mut ChaCha8Rng) -> Mat<f64> {
    let mut cells: Vec<usize> = (0..60).collect();
    for i in 0..cells.len() {
        let j = rng.random_range(i..cells.len());
        cells.swap(i, j);
    }
    Mat::from_fn(n, d, |i, q| {
        let cell = if q == 0 { cells[i % 60] } else { rng.random_range(0..12) };
        let width = if q == 0 { 0.2 * CELL } else { CELL };
        (cell as f64 + from + 0.3 * rng.random::<f64>()) * width - 2.1
    })
}

/// A model with its data.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Uses the method `titsias2009`; see [`Problem::with`].
    pub model: Model,
    /// Smooth functions of the inputs plus noise.
    pub data: InMemory,
    /// For whatever else is random.
    pub rng: ChaCha8Rng,
}

/// The problem of a draw. Kernel parameters lie in 0.3…3, the noise in 0.01…1.
pub fn problem(draw: &Draw) -> Problem {
    let mut rng = ChaCha8Rng::seed_from_u64(draw.seed);
    let x = points(draw.n, draw.d, 0.1, &mut rng);
    let z = points(draw.m, draw.d, 0.6, &mut rng);
    let phase = rng.random_range(0.0..6.0);
    let noise = (rng.random_range(0.01_f64.ln()..0.0)).exp();
    let y = Mat::from_fn(draw.n, draw.p, |i, p| {
        let t: f64 = (0..draw.d).map(|q| x[(i, q)] * (1.0 + 0.3 * q as f64)).sum();
        (1.3 * t + phase + p as f64).sin() + 0.7 + 2.0 * noise.sqrt() * rng.random_range(-1.0..1.0)
    });
    let mut model = Model {
        kernels: vec![parse(draw.kernel, Inputs::unnamed(draw.d)).expect("a kernel of the list")],
        mean: by_name(draw.mean, draw.d, draw.p).expect("a mean of the list"),
        likelihood: Box::new(Gaussian::new(noise)),
        inducing: vec![inducing_param(z.as_ref())],
        q: None,
        method: find("titsias2009").expect("registered").method,
        // relative, from the default to the largest of the ladder
        jitter: Jitter::Relative(10_f64.powf(rng.random_range(-6.0..-2.0))),
        hidden: Vec::new(),
    };
    for (path, param) in model.params_mut() {
        let values: Vec<f64> = match path.as_str() {
            "likelihood.variance" | "inducing.points" => continue,
            path if path.starts_with("mean") => {
                param.value().iter().map(|_| rng.random_range(-0.8..0.8)).collect()
            }
            _ => {
                let inside = |v: f64| if param.transform().contains(v) { v } else { 0.5 * v };
                let values = param.value().iter();
                values.map(|_| inside(rng.random_range(-1.2_f64..1.1).exp())).collect()
            }
        };
        param.set(&path, &values).expect("values in range");
    }
    let data = InMemory::new(x, y).expect("as many targets as inputs");
    Problem { model, data, rng }
}

impl Problem {
    /// The model with another method.
    pub fn with(&self, method: &str) -> Model {
        let method = find(method).expect("registered").method;
        let mut model = self.model.clone();
        model.method = method;
        if !method.is_sparse() {
            model.inducing = Vec::new();
        }
        model
    }

    /// Value and gradient by a method's name, `upper` included.
    pub fn evaluate(&self, name: &str) -> Evaluation {
        objective(name, &self.with(if name == "upper" { "titsias2009" } else { name }), &self.data)
    }
}

/// Value and gradient of the objective `name` at a model.
pub fn objective(name: &str, model: &Model, data: &dyn sparsegp::data::Source) -> Evaluation {
    let engine = Cpu::default();
    match name {
        "upper" => upper_bound(model, &engine, data),
        _ => model.evaluate(&engine, data),
    }
    .expect("a problem that is well posed")
}

/// What rounding of Kuf may do to a gradient, in absolute terms.
///
/// Along directions that Kuu lacks (linear kernels have only D) the slope of a bound in Kuf changes by
/// A/jitter per change of Kuf, A = 2bS − 2cI: rounding of Kuf itself, ε‖Kuf‖, becomes
/// ε‖A‖‖Kuf‖²/jitter in a gradient. With ‖Kuf‖² ≤ tr Kuu Σ k(xᵢ, xᵢ) and a jitter of at least
/// 10⁻⁶ tr Kuu/M that is ε‖A‖ M Σ k(xᵢ, xᵢ)/10⁻⁶. The lower bounds have ‖A‖ ≤ 2P/σ² (and much less
/// where they are tight: 2b and 2c cancel). The upper bound has c = g + P(N − M + tr B⁻¹)/2σ² with its
/// gradient g in the noise, hence ‖A‖ ≤ 2|g| + P(N + 1)/σ². For FITC and its like c = αδ − … with
/// |δ| ≤ ½‖γ‖² + P/σ², and ‖γ‖² ≤ Σ γ²s̃/σ² ≤ Σ ‖y − m‖²/σ⁴.
pub fn rounding(name: &str, problem: &Problem, evaluation: &Evaluation) -> f64 {
    let noise = problem.model.noise();
    let (n, p) = (problem.data.x.nrows() as f64, problem.data.y.ncols() as f64);
    let m = problem.model.inducing_points().map_or(0, |z| z.nrows()) as f64;
    let weight = match name {
        "exact" => 0.0,
        "upper" => {
            let size = evaluation.gradient.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
            2.0 * size + p * (n + 1.0) / noise
        }
        name if name == "fitc" || name.starts_with("pep") => {
            let mut m =
                sparsegp::linalg::Mat::zeros(problem.data.x.nrows(), problem.data.y.ncols());
            problem.model.mean.evaluate(problem.data.x.as_ref(), m.as_mut());
            let residual = (&problem.data.y - &m).norm_l2();
            residual * residual / (noise * noise) + 4.0 * p / noise
        }
        _ => 2.0 * p / noise,
    };
    f64::EPSILON * weight * m * evaluation.diagnostics.prior_variance.unwrap_or(0.0) / 1e-6
}

//! Gaussian targets, which Figures 2 to 4 share.

use super::methods::Start;
use sparsegp::flow::Rule;
use sparsegp::flow::targets::Gaussian;
use sparsegp::linalg::Mat;
use sparsegp::rng;
use sparsegp_bench::page::normal;

/// A target N(μ, Σ) with these eigenvalues in a random basis.
pub struct Problem {
    /// μ.
    pub mean: Vec<f64>,
    /// Σ.
    pub covariance: Mat<f64>,
    /// The density.
    pub target: Gaussian,
}

/// A random orthogonal matrix.
fn basis(dim: usize, seed: u64) -> Mat<f64> {
    let mut rng = rng::stream(seed, "flows/basis");
    Mat::from_fn(dim, dim, |_, _| normal(&mut rng)).qr().compute_thin_Q()
}

/// Returns a target with these eigenvalues.
pub fn problem(eigenvalues: &[f64], seed: u64) -> sparsegp::Result<Problem> {
    let dim = eigenvalues.len();
    let q = basis(dim, seed);
    let mut rng = rng::stream(seed, "flows/mean");
    let mean: Vec<f64> = (0..dim).map(|_| normal(&mut rng)).collect();
    let of = |power: f64| {
        let scaled = Mat::from_fn(dim, dim, |i, k| q[(i, k)] * eigenvalues[k].powf(power));
        let full = &scaled * q.transpose();
        // symmetric to the bit
        Mat::from_fn(dim, dim, |i, j| 0.5 * (full[(i, j)] + full[(j, i)]))
    };
    let target = Gaussian::new(mean.clone(), of(-1.0))?;
    Ok(Problem { mean, covariance: of(1.0), target })
}

/// Returns eigenvalues: log₁₀ λ rises from −1 to log₁₀ κ − 1.
pub fn eigenvalues(dim: usize, condition: f64) -> Vec<f64> {
    let at = |i: usize| condition.log10() * i as f64 / (dim - 1) as f64 - 1.0;
    (0..dim).map(|i| 10.0_f64.powf(at(i))).collect()
}

/// Returns a start about 0.
pub fn start(problem: &Problem, particles: usize, rate: f64, seed: u64) -> Start {
    let mut rng = rng::stream(seed, "flows/start");
    Start {
        mean: problem.mean.iter().map(|_| normal(&mut rng)).collect(),
        deviation: 1.0,
        particles,
        rate,
        of_particles: Rule::Plain,
        of_parameters: Rule::rms_prop(),
        seed,
    }
}

//! Rows drawn from a model along a line, and fits to them, which Figures 7.2, 7.4 and 7.5 share.

use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Standardise, fit};
use sparsegp::linalg::{Cholesky, Jitter, Mat};
use sparsegp::rng;
use sparsegp::samplers::gibbs::GibbsOptions;
use sparsegp_bench::page::normal;
use sparsegp_bench::streams::{covariances, rbf};

/// Places of the grid that functions are compared at.
pub const GRID: usize = 121;
/// Rows.
pub const ROWS: usize = 200;

/// The kernel of all functions, in words; [`functions`] draws from it.
pub const KERNEL: &str = "rbf(variance=2.0, lengthscales=1.0)";

/// Returns the grid.
pub fn grid() -> Mat<f64> {
    Mat::from_fn(GRID, 1, |i, _| -5.0 + 10.0 * i as f64 / (GRID - 1) as f64)
}

/// Functions at the grid and then at rows uniform along it.
pub struct Drawn {
    /// Where the rows are.
    pub x: Mat<f64>,
    /// Their values: a column for every function, the grid first.
    pub f: Mat<f64>,
}

/// Draws functions from the prior.
pub fn functions(count: usize, seed: u64) -> sparsegp::Result<Drawn> {
    let mut rng = rng::stream(seed, "functions");
    let x = Mat::from_fn(ROWS, 1, |_, _| -5.0 + 10.0 * rng::uniform(&mut rng));
    let all =
        Mat::from_fn(
            GRID + ROWS,
            1,
            |i, _| {
                if i < GRID { grid()[(i, 0)] } else { x[(i - GRID, 0)] }
            },
        );
    let k = covariances(&*rbf(2.0, 1.0, 1), all.as_ref(), all.as_ref());
    let factor = Cholesky::new(k.as_ref(), Jitter::Relative(1e-8), "K")?;
    let z = Mat::from_fn(GRID + ROWS, count, |_, _| normal(&mut rng));
    Ok(Drawn { x, f: &factor.l * &z })
}

/// Fits the rows by a method with the kernel that they were drawn from.
pub fn fitted(
    x: &Mat<f64>,
    y: &Mat<f64>,
    likelihood: &str,
    method: &str,
    draws: usize,
) -> sparsegp::Result<Fitted> {
    let scaling = Standardise { inputs: false, targets: false, robust: false, constants: true };
    let dataset = Dataset::from_arrays(x.clone(), y.clone(), scaling)?;
    let options = FitOptions {
        kernel: KERNEL.into(),
        likelihood: Some(likelihood.into()),
        mean: Some("zero".into()),
        method: method.into(),
        freeze: vec!["kernel".into()],
        pilot: 0,
        gibbs: GibbsOptions { chains: 2, draws, burn_in: 100, ..GibbsOptions::default() },
        ..FitOptions::default()
    };
    fit(&dataset, &options, &Cpu::default(), &mut ())
}

//! Rows that become points, which Figures 3 to 5 share.

use sparsegp::inducing::select::oips::oips;
use sparsegp::kernels::Kernel;
use sparsegp::linalg::{Mat, MatRef};
use sparsegp::rng;
use sparsegp_bench::streams::covariances;

/// Returns rows uniform in the unit cube.
pub fn uniform(n: usize, d: usize, seed: u64) -> Mat<f64> {
    let mut generator = rng::stream(seed, "rows");
    Mat::from_fn(n, d, |_, _| rng::uniform(&mut generator))
}

/// Returns the rows that OIPS takes, all it wants.
pub fn chosen(kernel: &dyn Kernel, x: MatRef<f64>, rho: f64) -> sparsegp::Result<Mat<f64>> {
    let mut diag = vec![0.0; x.nrows()];
    kernel.diag(x, &mut diag);
    let mut columns = |rows: &[usize]| {
        let z = Mat::from_fn(rows.len(), x.ncols(), |i, q| x[(rows[i], q)]);
        Ok(covariances(kernel, x, z.as_ref()))
    };
    oips(x, x.nrows(), rho, &diag, &mut columns).map(|found| found.points)
}

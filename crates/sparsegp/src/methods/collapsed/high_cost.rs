//! Predictions by the approximate posterior that the bounds of 2021 and 2025 have in mind: given u, the rows'
//! f has the covariance K̃^{½}VK̃^{½} with K̃ = K − ΦᵀΦ and V = diag(v), vᵢ ≤ 1, instead of K̃ (Titsias 2025,
//! §3 and Appendix C). O(N³) once, O(N²) for a prediction.

use crate::data::Source;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::kernels::Tape;
use crate::linalg::{
    Accum, Mat, MatRef, Par, column, column_mut, gemm, inverse_square_root, mirror_lower, par_for,
    product, solve_lower,
};
use crate::methods::collect;
use crate::model::{Model, Posterior};

/// Rows above which [`HighCost`] is refused: minutes of work, and 128 MiB for one matrix of several.
pub const MOST_ROWS: usize = 4096;

/// Eigenvalues of K̃ below this part of the largest count as 0.
const LEAST: f64 = 1e-12;

/// The posterior of a collapsed bound with its variances by the bound's own q(f | u), which takes the
/// training rows: s\*² − Σᵢ (1 − vᵢ) ξᵢ² with ξ = K̃^{−½}(k(X, x\*) − Φᵀφ\*), where s\*² is what
/// [`Posterior::predict_f`] gives. The root is the symmetric one. Variances are never larger than
/// [`Posterior::predict_f`]'s; means are the same, and for `titsias2009`, where v = 1, so is everything.
#[derive(Clone, Debug)]
pub struct HighCost {
    model: Model,
    posterior: Posterior,
    x: Mat<f64>,
    /// Φ of the rows, N×M.
    phi: Mat<f64>,
    /// K̃^{−½}.
    root: Mat<f64>,
    /// v.
    factors: Vec<f64>,
}

impl HighCost {
    /// Computes it at the model's parameters, on these rows.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a method that is not a collapsed bound, and for more rows than
    /// [`MOST_ROWS`]; as for [`Model::posterior`].
    pub fn new(model: &Model, engine: &dyn Engine, data: &dyn Source) -> Result<Self> {
        let n = data.rows();
        if n > MOST_ROWS {
            return Err(Error::Invalid(format!(
                "{n} rows are too many for predictions by q(f | u), which take O(N³): at most {MOST_ROWS}; the \
                 predictions of the posterior itself take O(M²)"
            )));
        }
        let refused = || {
            Error::Invalid(format!(
                "method `{}` has no q(f | u): predictions by it are for titsias2025 and spherical",
                model.method.name()
            ))
        };
        // before the work
        model.method.factors(model, &[]).ok_or_else(refused)?;
        let posterior = model.posterior(engine, data)?;
        let x = collect(data)?.x;
        let (phi, _) = features(model, &posterior, x.as_ref());
        let mut rest = Mat::zeros(n, n);
        model.kernel().evaluate(x.as_ref(), None, rest.as_mut(), &mut Tape::off());
        gemm(rest.as_mut(), Accum::Add, phi.as_ref(), phi.transpose(), -1.0, par_for(n));
        mirror_lower(rest.as_mut());
        let unexplained: Vec<f64> = (0..n).map(|i| rest[(i, i)]).collect();
        let factors = model.method.factors(model, &unexplained).ok_or_else(refused)?;
        let root = inverse_square_root(rest.as_ref(), LEAST)?;
        Ok(Self { model: model.clone(), posterior, x, phi, root, factors })
    }

    /// Returns vᵢ of every row, between 0 and 1: 1 where the inducing points explain all.
    pub fn factors(&self) -> &[f64] {
        &self.factors
    }

    /// Returns the posterior without the rows, whose means are the same.
    pub fn posterior(&self) -> &Posterior {
        &self.posterior
    }

    /// Returns the means and variances of the latent functions, B×L each.
    ///
    /// # Errors
    /// As for [`Posterior::predict_f`].
    pub fn predict_f(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        let (mean, mut variance) = self.posterior.predict_f(x)?;
        let (phi, x) = features(&self.model, &self.posterior, x);
        // (k(x*, X) − Φ*Φᵀ) K̃^{−½}, a row for each prediction
        let mut apart = Mat::zeros(x.nrows(), self.x.nrows());
        let rows = Some(self.x.as_ref());
        self.model.kernel().evaluate(x.as_ref(), rows, apart.as_mut(), &mut Tape::off());
        let par = par_for(self.x.nrows());
        gemm(apart.as_mut(), Accum::Add, phi.as_ref(), self.phi.transpose(), -1.0, par);
        let xi = product(apart.as_ref(), self.root.as_ref());
        let mut less = vec![0.0; x.nrows()];
        for (i, v) in self.factors.iter().enumerate() {
            let own = column(xi.as_ref(), i);
            less.iter_mut().zip(own).for_each(|(sum, xi)| *sum += (1.0 - v) * xi * xi);
        }
        for l in 0..variance.ncols() {
            let own = column_mut(variance.as_mut(), l);
            own.iter_mut().zip(&less).for_each(|(s, less)| *s = (*s - less).max(0.0));
        }
        Ok((mean, variance))
    }
}

/// Returns Φ at `x` (B×M), and `x` column-major.
fn features(model: &Model, posterior: &Posterior, x: MatRef<f64>) -> (Mat<f64>, Mat<f64>) {
    let x = x.to_owned();
    let mut phi = Mat::zeros(x.nrows(), posterior.points().nrows());
    let points = Some(posterior.points());
    model.kernel().evaluate(x.as_ref(), points, phi.as_mut(), &mut Tape::off());
    solve_lower(posterior.factor().l.as_ref(), phi.as_mut().transpose_mut(), Par::Seq);
    (phi, x)
}

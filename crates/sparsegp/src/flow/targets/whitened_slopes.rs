//! Slopes of the free energy of whitened particles by hyperparameters.
//!
//! With the particles held, log|C| depends on no hyperparameter, and ∂F̃ = (1/N) Σ ∂φ(v_n). Of a row with features a
//! = L⁻¹k(Z, x), slopes s_n of Σ E[log p] by the mean at particle n and c by r (a mean over particles),
//!
//! ```text
//! ā = −(1/N) Σ s_n v_n + 2c a      k̄(x, x) = −c      K̄uf = L⁻ᵀĀ      L̄ = −tril(K̄uf Aᵀ)
//! ```
//! and without inducing points the row of L̄ is −(1/N) Σ s_n v_nᵀ.

use super::whitened::Whitened;
use crate::error::Result;
use crate::flow::target::{Target, check_dim, check_some};
use crate::kernels::{Cotangents, Kernel, Tape, place_of};
use crate::likelihoods::Slopes;
use crate::linalg::{Mat, MatRef, Par, column_mut, product, solve_lower_transpose};

/// Slopes of the mean of φ over particles, by constrained values: to be subtracted by who descends.
#[derive(Clone, Debug, PartialEq)]
pub struct WhitenedSlopes {
    /// By the hyperparameters of every kernel, in the order of [`Kernel::params`].
    pub kernels: Vec<Vec<f64>>,
    /// By the parameters of the likelihood.
    pub likelihood: Vec<f64>,
    /// By the prior means of the latent functions at the rows, N×L.
    pub mean: Mat<f64>,
    /// By the inducing points, M×D; none without.
    pub points: Option<Mat<f64>>,
}

/// Sums over particles of what the rows in sight contribute.
struct Sums {
    /// (1/N) Σ s_n v_nᵀ, B×M of every latent function.
    slopes: Vec<Mat<f64>>,
    /// c, B of every latent function.
    curves: Vec<Vec<f64>>,
}

impl Whitened {
    /// Computes slopes at particles (D×N), with the rows in sight.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for particles of another dimension,
    /// [`Error::Invalid`](crate::Error::Invalid) for none.
    pub fn slopes(&self, x: MatRef<'_, f64>) -> Result<WhitenedSlopes> {
        check_dim("particles", x.nrows(), self.dim())?;
        check_some("particles", x.ncols())?;
        let shape = |l: usize| self.of(l).kernel.num_params();
        let kernels = (0..self.features.len()).map(|l| vec![0.0; shape(l)]).collect();
        let mut out = WhitenedSlopes {
            kernels,
            likelihood: vec![0.0; self.likelihood.num_params()],
            mean: Mat::zeros(self.y.nrows(), self.latents()),
            points: self.x.as_ref().map(|x| Mat::zeros(self.of(0).points.nrows(), x.ncols())),
        };
        let sums = self.sums(x, &mut out);
        for l in 0..self.latents() {
            self.pull_covariances(l, &sums.slopes[l], &sums.curves[l], &mut out);
        }
        Ok(out)
    }

    fn sums(&self, x: MatRef<'_, f64>, out: &mut WhitenedSlopes) -> Sums {
        let (count, each, latents) =
            (self.subsample.count(), self.likelihood.latents(), self.latents());
        let scale = -self.subsample.weight() / x.ncols() as f64;
        let (mut f, _) = self.latent_values(x);
        let mut curves = vec![vec![0.0; count]; latents];
        let (mut means, mut variances) = (vec![0.0; each], vec![0.0; each]);
        let (mut by_mean, mut by_variance) = (vec![0.0; each], vec![0.0; each]);
        let mut params = vec![0.0; self.likelihood.num_params()];
        for n in 0..x.ncols() {
            let f = column_mut(f.as_mut(), n);
            for (p, at) in (0..self.y.ncols()).flat_map(|p| (0..count).map(move |at| (p, at))) {
                let row = self.subsample.row(at);
                let place = |k: usize| (p * each + k) * count + at;
                let Some(target) = self.observed(row, p) else {
                    (0..each).for_each(|k| f[place(k)] = 0.0);
                    continue;
                };
                for k in 0..each {
                    means[k] = f[place(k)];
                    variances[k] = self.of(p * each + k).r[row];
                }
                let slopes =
                    Slopes { mean: &mut by_mean, variance: &mut by_variance, params: &mut params };
                self.likelihood.expect(target, &means, &variances, slopes);
                let weight = scale * self.weights.get(row).copied().unwrap_or(1.0);
                out.likelihood.iter_mut().zip(&params).for_each(|(o, p)| *o += weight * p);
                for k in 0..each {
                    f[place(k)] = weight * by_mean[k];
                    out.mean[(row, p * each + k)] += weight * by_mean[k];
                    curves[p * each + k][at] += weight * by_variance[k];
                }
            }
        }
        let mut from = 0;
        let slopes = (0..latents).map(|l| {
            let m = self.of(l).points.nrows();
            let v = x.subrows(from, m);
            from += m;
            product(f.as_ref().subrows(l * count, count), v.transpose())
        });
        Sums { slopes: slopes.collect(), curves }
    }

    /// Pulls what the rows contribute through the features of one latent function.
    fn pull_covariances(
        &self,
        l: usize,
        slopes: &Mat<f64>,
        curves: &[f64],
        out: &mut WhitenedSlopes,
    ) {
        let (own, sight) = (self.of(l), &self.subsample);
        let params = &mut out.kernels[place_of(self.features.len(), l)];
        let (count, m) = (sight.count(), own.points.nrows());
        let (kernel, z) = (&*own.kernel, own.points.as_ref());
        let (Some(x), Some(points)) = (&self.x, &mut out.points) else {
            let mut l_bar = Mat::zeros(m, m);
            for j in 0..m {
                (0..count).for_each(|at| l_bar[(sight.row(at), j)] = slopes[(at, j)]);
            }
            let mut k_bar = own.factor.adjoint(l_bar.as_ref());
            own.factor.pull_jitter(&mut k_bar);
            return pull(kernel, (z, None), k_bar, params, None);
        };
        let rows = Mat::from_fn(count, x.ncols(), |at, j| x[(sight.row(at), j)]);
        let a = Mat::from_fn(count, m, |at, j| own.a[(sight.row(at), j)]);
        // where r was cut at 0 it has no slope
        let inside = |at: usize| if own.r[sight.row(at)] > 0.0 { curves[at] } else { 0.0 };
        let by_variance: Vec<f64> = (0..count).map(inside).collect();
        let mut bar =
            Mat::from_fn(count, m, |at, j| slopes[(at, j)] - 2.0 * by_variance[at] * a[(at, j)]);
        solve_lower_transpose(own.factor.l.as_ref(), bar.as_mut().transpose_mut(), Par::Seq);
        let mut l_bar = product(bar.transpose(), a.as_ref());
        for j in 0..m {
            column_mut(l_bar.as_mut(), j).iter_mut().for_each(|v| *v = -*v);
        }
        let mut k_bar = own.factor.adjoint(l_bar.as_ref());
        own.factor.pull_jitter(&mut k_bar);
        pull(kernel, (z, None), k_bar, params, Some((&mut *points, true)));
        pull(kernel, (rows.as_ref(), Some(z)), bar, params, Some((points, false)));
        let mut sinks = Cotangents { params, x: None, z: None };
        kernel.diag_vjp(rows.as_ref(), &by_variance, &mut sinks);
    }
}

/// Pulls a cotangent of K(a, b) back; the points, where there are some, are its first or its second inputs.
fn pull(
    kernel: &dyn Kernel,
    (a, b): (MatRef<'_, f64>, Option<MatRef<'_, f64>>),
    mut bar: Mat<f64>,
    params: &mut [f64],
    points: Option<(&mut Mat<f64>, bool)>,
) {
    let mut tape = Tape::recording();
    let mut k = Mat::zeros(a.nrows(), b.map_or(a.nrows(), |b| b.nrows()));
    kernel.evaluate(a, b, k.as_mut(), &mut tape);
    let (mut first, mut second) = (None, None);
    if let Some((points, is_first)) = points {
        *(if is_first { &mut first } else { &mut second }) = Some(points.as_mut());
    }
    let mut sinks = Cotangents { params, x: first, z: second };
    kernel.vjp(a, b, k.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::target::Evaluation;
    use crate::flow::targets::WhitenedRows;
    use crate::kernels::{Inputs, parse};
    use crate::likelihoods;
    use crate::linalg::Jitter;
    use crate::rng::stream;

    const Y: [f64; 6] = [0.3, -0.8, f64::NAN, 1.9, 0.4, -1.1];

    /// Kernel's and likelihood's numbers, prior mean, points.
    type At = ([f64; 2], f64, f64, Option<Mat<f64>>);

    fn target(at: &At, spec: &str, jitter: Jitter) -> Whitened {
        let ([variance, length], parameter, mean, points) = at;
        let kernel = format!("rbf(variance={variance:?}, lengthscales={length:?})");
        let kernels = [parse(&kernel, Inputs::unnamed(1)).unwrap()];
        let likelihood = likelihoods::parse(&spec.replace('?', &format!("{parameter:?}"))).unwrap();
        let x = Mat::from_fn(6, 1, |i, _| [0.2, 1.1, -0.7, 2.0, 1.5, -1.3][i]);
        let y = Mat::from_fn(6, 1, |i, _| Y[i]);
        let mean = Mat::from_fn(6, 1, |i, _| if i == 3 { *mean } else { 0.1 * i as f64 });
        let rows = WhitenedRows {
            x: x.as_ref(),
            y: y.as_ref(),
            extra: &[],
            weights: &[1.0, 0.5, 2.0, 1.0, 1.3, 0.8],
            mean: Some(mean.as_ref()),
        };
        let points = points.as_ref().map(Mat::as_ref);
        Whitened::new(&kernels, &*likelihood, points, jitter, rows).unwrap()
    }

    /// By differences of the mean of φ, with all rows and with some.
    #[test]
    fn slopes_are_those_of_the_mean() {
        let points = Mat::from_fn(3, 1, |i, _| [-1.0, 0.3, 1.4][i]);
        for (spec, parameter) in [("gaussian(variance=?)", 0.3), ("student_t(scale=?, df=4)", 0.6)]
        {
            for (points, jitter, batch) in [
                (Some(points.clone()), Jitter::Relative(1e-3), 6),
                (Some(points.clone()), Jitter::Absolute(1e-6), 4),
                (None, Jitter::Relative(1e-3), 6),
                (None, Jitter::Absolute(1e-4), 4),
            ] {
                let at: At = ([1.4, 0.8], parameter, 0.5, points);
                let of = |at: &At| target(at, spec, jitter).in_batches(batch, 3).unwrap();
                let dim = of(&at).dim();
                let x = crate::flow::particles::normals(dim, 4, &mut stream(1, "test"));
                let own = of(&at).slopes(x.as_ref()).unwrap();
                let difference = |change: &dyn Fn(&mut At, f64)| {
                    let value = |by: f64| {
                        let mut moved = at.clone();
                        change(&mut moved, by);
                        Evaluation::of(&mut of(&moved), x.as_ref()).unwrap().mean_phi()
                    };
                    (value(1e-5) - value(-1e-5)) / 2e-5
                };
                let close = |own: f64, expected: f64| {
                    assert!(
                        (own - expected).abs() < 2e-6 * (1.0 + expected.abs()),
                        "{spec}: {own} {expected}"
                    );
                };
                for i in 0..2 {
                    close(own.kernels[0][i], difference(&|at, by| at.0[i] += by));
                }
                // degrees of freedom come before the scale
                let last = own.likelihood.len() - 1;
                close(own.likelihood[last], difference(&|at, by| at.1 += by));
                close(own.mean[(3, 0)], difference(&|at, by| at.2 += by));
                if let Some(by_points) = &own.points {
                    for i in 0..3 {
                        let change = |at: &mut At, by: f64| {
                            if let Some(points) = &mut at.3 {
                                points[(i, 0)] += by;
                            }
                        };
                        close(by_points[(i, 0)], difference(&change));
                    }
                }
            }
        }
        let at: At = ([1.4, 0.8], 0.3, 0.5, None);
        let whole = target(&at, "gaussian(variance=?)", Jitter::default());
        assert!(whole.slopes(Mat::zeros(2, 1).as_ref()).is_err());
    }
}

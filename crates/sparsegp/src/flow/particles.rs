//! Particles: a Gaussian as N points, of which it has mean and covariance.

use super::blocks::Blocks;
use super::energy::check_independent;
use super::target::{centred, check_dim, check_finite, check_finite_matrix, row_means};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, column, column_mut, product};
use crate::rng::stream;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// N particles in ℝᴰ, which stand for N(m, C) with m = X1/N and C = ZZᵀ/N, Z = X − m1ᵀ (Galy-Fajou, Perrone & Opper
/// 2021). The rank of C is at most N − 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Particles {
    x: Mat<f64>,
}

impl Particles {
    /// Takes particles as the columns of a D×N matrix.
    ///
    /// # Errors
    /// [`Error::Shape`] for fewer than two particles or none of a dimension, [`Error::NonFinite`] for a coordinate that
    /// is NaN or infinite.
    pub fn new(x: Mat<f64>) -> Result<Self> {
        if x.ncols() < 2 || x.nrows() == 0 {
            return Err(Error::Shape {
                what: "particles".into(),
                expected: "at least two, of at least one dimension: one has no covariance".into(),
                found: format!("{} of {} dimensions", x.ncols(), x.nrows()),
            });
        }
        check_finite_matrix("a coordinate of a particle", x.as_ref())?;
        Ok(Self { x })
    }

    /// Draws N particles of N(m, TTᵀ), from a mean (D numbers) and a root T (D×K). C is smaller than TTᵀ by (N − 1)/N
    /// in the mean over seeds; see [`Particles::matched`].
    ///
    /// # Errors
    /// As for [`Particles::new`]; [`Error::Shape`] if mean and root differ in dimension.
    pub fn random(mean: &[f64], root: MatRef<'_, f64>, count: usize, seed: u64) -> Result<Self> {
        check_dim("the root of a covariance", root.nrows(), mean.len())?;
        let mut rng = stream(seed, "flow/particles");
        let x = product(root, normals(root.ncols(), count, &mut rng).as_ref());
        Self::new(shifted(x, mean))
    }

    /// Draws N particles of N(m, diag(s²)), from a mean and standard deviations (D numbers each): for D too large for
    /// a root of D×D. C is smaller than that as for [`Particles::random`].
    ///
    /// # Errors
    /// As for [`Particles::random`].
    pub fn around(mean: &[f64], deviations: &[f64], count: usize, seed: u64) -> Result<Self> {
        check_dim("standard deviations", deviations.len(), mean.len())?;
        let mut x = normals(mean.len(), count, &mut stream(seed, "flow/particles"));
        for n in 0..count {
            let own = column_mut(x.as_mut(), n).iter_mut();
            own.zip(mean.iter().zip(deviations)).for_each(|(x, (m, s))| *x = m + s * *x);
        }
        Self::new(x)
    }

    /// Draws N particles whose mean is m (D numbers) and whose covariance is TTᵀ, to rounding, for a root T (D×K, N >
    /// K): Z = √N T Qᵀ, with orthonormal columns Q that are orthogonal to 1. Blocks that TTᵀ has as independent are
    /// exactly uncorrelated.
    ///
    /// # Errors
    /// [`Error::Shape`] for N ≤ K and if mean and root differ in dimension; [`Error::NonFinite`].
    pub fn matched(mean: &[f64], root: MatRef<'_, f64>, count: usize, seed: u64) -> Result<Self> {
        check_dim("the root of a covariance", root.nrows(), mean.len())?;
        let q = matched_normals(root.ncols(), count, &mut stream(seed, "flow/particles"))?;
        Self::new(shifted(product(root, q.as_ref()), mean))
    }

    /// Returns the particles, D×N.
    pub fn x(&self) -> MatRef<'_, f64> {
        self.x.as_ref()
    }

    pub(super) fn x_mut(&mut self) -> &mut Mat<f64> {
        &mut self.x
    }

    /// Returns D.
    pub fn dim(&self) -> usize {
        self.x.nrows()
    }

    /// Returns N.
    pub fn count(&self) -> usize {
        self.x.ncols()
    }

    /// Returns m, D numbers.
    pub fn mean(&self) -> Vec<f64> {
        row_means(self.x.as_ref())
    }

    /// Returns Z = X − m1ᵀ, D×N.
    pub fn deviations(&self) -> Mat<f64> {
        centred(self.x.as_ref(), &self.mean())
    }

    /// Returns C = ZZᵀ/N, D×D: for small D only.
    pub fn covariance(&self) -> Mat<f64> {
        let z = self.deviations();
        product(z.as_ref(), z.transpose()) * faer::Scale(1.0 / self.count() as f64)
    }

    /// Returns the diagonal of C without C, D numbers.
    pub fn variances(&self) -> Vec<f64> {
        let z = self.deviations();
        let mut sums = vec![0.0; self.dim()];
        for n in 0..self.count() {
            sums.iter_mut().zip(column(z.as_ref(), n)).for_each(|(s, z)| *s += z * z);
        }
        sums.iter().map(|s| s / self.count() as f64).collect()
    }

    /// Returns the variances aᵀCa of linear functions without C, for directions as the columns of a D×K matrix (K
    /// numbers).
    ///
    /// # Errors
    /// [`Error::Shape`] for another dimension.
    pub fn variances_along(&self, a: MatRef<'_, f64>) -> Result<Vec<f64>> {
        check_dim("directions", a.nrows(), self.dim())?;
        let z = self.deviations();
        let parts = product(z.transpose(), a);
        let square = |k: usize| column(parts.as_ref(), k).iter().map(|p| p * p).sum::<f64>();
        Ok((0..a.ncols()).map(|k| square(k) / self.count() as f64).collect())
    }

    /// Returns m + ZΞ/√N (D×S) for Ξ of N×S: one scalar for every particle and draw, which all dimensions share
    /// (Galy-Fajou, Perrone & Opper 2021, eq. 16, where a vector in place of the scalar would leave
    /// only diag C).
    ///
    /// # Errors
    /// [`Error::Shape`] if Ξ has not N rows.
    pub fn combined(&self, xi: MatRef<'_, f64>) -> Result<Mat<f64>> {
        check_dim("the scalars of draws", xi.nrows(), self.count())?;
        let scale = (self.count() as f64).sqrt().recip();
        let draws = product(self.deviations().as_ref(), xi) * faer::Scale(scale);
        Ok(shifted(draws, &self.mean()))
    }

    /// Draws S positions of N(m, C), D×S.
    pub fn draw(&self, count: usize, rng: &mut impl Rng) -> Mat<f64> {
        let xi = normals(self.count(), count, rng);
        let scale = (self.count() as f64).sqrt().recip();
        let draws = product(self.deviations().as_ref(), xi.as_ref()) * faer::Scale(scale);
        shifted(draws, &self.mean())
    }

    /// Checks that the particles are affinely independent in every block, as far as their number allows: what depends
    /// on others at the start depends on them forever.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if they are not, [`Error::Invalid`] for blocks that do not fit.
    pub fn check_independent(&self, blocks: &Blocks) -> Result<()> {
        blocks.check(self.dim())?;
        check_independent(self.deviations().as_ref(), blocks)
    }

    /// Returns the largest deviation of `later` from the best affine map of these particles, relative to its largest
    /// coordinate. A flow Γᵗ(x − m⁰) + mᵗ leaves 0, which says something for N > D + 1.
    ///
    /// # Errors
    /// [`Error::Shape`] if the sizes differ.
    pub fn affine_residual(&self, later: &Particles) -> Result<f64> {
        check_dim("later particles", later.dim(), self.dim())?;
        check_dim("the number of later particles", later.count(), self.count())?;
        // an orthonormal basis of the row space of [1; Z]
        let (n, z) = (self.count(), self.deviations());
        let rows = Mat::from_fn(n, self.dim() + 1, |i, k| if k == 0 { 1.0 } else { z[(k - 1, i)] });
        let basis = orthonormal(rows.as_ref(), true);
        let inside = product(later.x(), product(basis.as_ref(), basis.transpose()).as_ref());
        let (mut worst, mut size) = (0.0_f64, f64::MIN_POSITIVE);
        for j in 0..n {
            for (x, y) in column(later.x(), j).iter().zip(column(inside.as_ref(), j)) {
                worst = worst.max((x - y).abs());
                size = size.max(x.abs());
            }
        }
        Ok(worst / size)
    }

    /// Tells whether all coordinates are finite.
    pub fn is_finite(&self) -> bool {
        check_finite("", (0..self.count()).flat_map(|n| column(self.x(), n))).is_ok()
    }
}

/// Adds a vector to every column.
pub(super) fn shifted(mut a: Mat<f64>, by: &[f64]) -> Mat<f64> {
    for n in 0..a.ncols() {
        column_mut(a.as_mut(), n).iter_mut().zip(by).for_each(|(v, m)| *v += m);
    }
    a
}

/// Draws standard normal numbers, K×S, column by column.
pub(super) fn normals(rows: usize, columns: usize, rng: &mut impl Rng) -> Mat<f64> {
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut *rng))
}

/// Returns K×S numbers E with E1 = 0 and EEᵀ = S I, to rounding: √S times orthonormal rows that are
/// orthogonal to 1.
pub(super) fn matched_normals(rows: usize, count: usize, rng: &mut impl Rng) -> Result<Mat<f64>> {
    if count <= rows {
        return Err(Error::Shape {
            what: "draws with the moments of a normal distribution".into(),
            expected: format!("more than {rows}, the rank of the covariance"),
            found: format!("{count}"),
        });
    }
    let e = normals(count, rows, rng);
    let whole = Mat::from_fn(count, rows + 1, |i, k| if k == 0 { 1.0 } else { e[(i, k - 1)] });
    let q = orthonormal(whole.as_ref(), false);
    let scale = (count as f64).sqrt();
    Ok(Mat::from_fn(rows, count, |k, i| scale * q[(i, k + 1)]))
}

/// Returns an orthonormal basis of the columns by Gram–Schmidt, every column twice (Golub & Van
/// Loan 2013, §5.2.8); columns that depend on those before become 0 where `drop` says so.
fn orthonormal(a: MatRef<'_, f64>, drop: bool) -> Mat<f64> {
    let (n, k) = (a.nrows(), a.ncols());
    let mut q = Mat::<f64>::zeros(n, k);
    for j in 0..k {
        let mut own = column(a, j).to_vec();
        let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let before = norm(&own);
        for _ in 0..2 {
            for other in 0..j {
                let other = column(q.as_ref(), other);
                let part: f64 = own.iter().zip(other).map(|(a, b)| a * b).sum();
                own.iter_mut().zip(other).for_each(|(a, b)| *a -= part * b);
            }
        }
        let after = norm(&own);
        let depends = drop && after <= 1e-13 * before;
        let scale = if depends { 0.0 } else { after.recip() };
        own.iter_mut().for_each(|v| *v *= scale);
        column_mut(q.as_mut(), j).copy_from_slice(&own);
    }
    q
}

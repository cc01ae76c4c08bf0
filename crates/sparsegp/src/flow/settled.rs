//! How far a Gaussian is from the nearest to a density, by draws that did not move it.
//!
//! At N(m, C), x = m + Tε with C = TTᵀ, the gradient is at an optimum where r = Tᵀ∇φ(x) − ε has E r = 0 and
//! E rεᵀ = 0 (Stein's lemma): the mean is Newton's step to the optimum in standard deviations, and a variance that is u
//! times what it should be shows as u − 1. For a Gaussian density r is 0 at every draw at the optimum. Particles
//! themselves say less: they are few, and the flow has made them agree with it.

use super::particles::Particles;
use super::target::{Evaluation, Target};
use crate::error::Result;
use crate::linalg::{Mat, column, product};
use crate::rng::stream;

/// What is off, without units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settled {
    /// ‖E r‖: standard deviations by which the mean is off.
    pub mean: f64,
    /// ‖E rεᵀ‖_F: the part by which variances are off.
    pub spread: f64,
    /// What chance may add to each.
    pub chance: [f64; 2],
}

/// Off by less than this counts as settled.
const ENOUGH: f64 = 0.1;
/// How many standard deviations of chance are allowed for.
const ALLOWED: f64 = 4.0;

impl Settled {
    /// Looks at so many draws, two or more. Without chance ‖·‖² is estimated by products of different draws.
    ///
    /// # Errors
    /// As for [`Evaluation::of`].
    pub fn look(
        particles: &Particles,
        target: &mut dyn Target,
        draws: usize,
        seed: u64,
    ) -> Result<Self> {
        let mut rng = stream(seed, "flow/settled");
        let (z, n) = (particles.deviations(), particles.count());
        // where there are more particles than dimensions, an ε for every dimension would need a root: Z/√N is one
        let xi = super::particles::normals(n, draws, &mut rng);
        let x = particles.combined(xi.as_ref())?;
        let slopes = Evaluation::of(target, x.as_ref())?.gradient;
        let root = z * faer::Scale((n as f64).sqrt().recip());
        // r and ε in the row space of Z
        let basis = row_space(&root)?;
        let white = product(root.transpose(), slopes.as_ref());
        let own = |a: &Mat<f64>| product(basis.transpose(), a.as_ref());
        let (white, epsilon) = (own(&white), own(&xi));
        let r = &white - &epsilon;
        let square = |a: &[f64]| a.iter().map(|v| v * v).sum::<f64>();
        let count = draws as f64;
        let pairs = count * (count - 1.0);
        let (mut first, mut second) = (vec![0.0; r.nrows()], 0.0);
        let (mut of_r, mut of_both) = (0.0, 0.0);
        for s in 0..draws {
            let (r, e) = (column(r.as_ref(), s), column(epsilon.as_ref(), s));
            first.iter_mut().zip(r).for_each(|(sum, r)| *sum += r);
            of_r += square(r);
            of_both += square(r) * square(e);
        }
        let sum = product(r.as_ref(), epsilon.transpose());
        for j in 0..sum.ncols() {
            second += square(column(sum.as_ref(), j));
        }
        let root_of = |v: f64| (v / pairs).max(0.0).sqrt();
        let chance = |own: f64| (ALLOWED * own / pairs).sqrt();
        Ok(Self {
            mean: root_of(square(&first) - of_r),
            spread: root_of(second - of_both),
            chance: [chance(of_r), chance(of_both)],
        })
    }

    /// Returns whether mean and variances are where they should be, as far as the draws can tell.
    pub fn is_near(&self) -> bool {
        let near = |off: f64, chance: f64| off <= ENOUGH.hypot(chance);
        near(self.mean, self.chance[0]) && near(self.spread, self.chance[1])
    }
}

/// Returns an orthonormal basis of the row space of a D×N matrix, N×K.
fn row_space(root: &Mat<f64>) -> Result<Mat<f64>> {
    let (values, vectors) =
        crate::linalg::symmetric_eigen(product(root.transpose(), root.as_ref()).as_ref())?;
    let largest = values.iter().copied().fold(0.0, f64::max);
    let from = values.len().saturating_sub(root.nrows());
    let kept: Vec<usize> = (from..values.len()).filter(|k| values[*k] > 1e-14 * largest).collect();
    Ok(Mat::from_fn(values.len(), kept.len(), |i, k| vectors[(i, kept[k])]))
}

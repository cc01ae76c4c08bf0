//! Matérn kernels of order 1/2, 3/2 and 5/2 (Hartikainen & Särkkä 2010, §3.2).
//!
//! In the units f, f′/λ, f″/λ² with λ = rate/ℓ the state depends only on u = λΔ: A = e^{−u}(I +
//! uN + u²N²/2), where N is the companion matrix plus I, and P does not depend on ℓ.

use super::StateSpace;
use crate::linalg::RowRef;

/// Numbers of the largest state.
const MOST: usize = 3;

/// A Matérn kernel of order n − 1/2, its parameters being σ² and ℓ.
#[derive(Clone, Copy, Debug)]
pub struct Matern {
    /// The input that is the time.
    pub input: usize,
    /// n, from 1 to 3.
    pub size: usize,
    /// λℓ.
    pub rate: f64,
    /// σ².
    pub variance: f64,
    /// ℓ.
    pub lengthscale: f64,
}

/// Returns P for σ² = 1, and N.
fn unit(n: usize) -> (&'static [f64], &'static [f64]) {
    const THIRD: f64 = 1.0 / 3.0;
    match n {
        1 => (&[1.0], &[0.0]),
        2 => (&[1.0, 0.0, 0.0, 1.0], &[1.0, 1.0, -1.0, -1.0]),
        _ => (
            &[1.0, 0.0, -THIRD, 0.0, THIRD, 0.0, -THIRD, 0.0, 1.0],
            &[1.0, 1.0, 0.0, 0.0, 1.0, 1.0, -1.0, -3.0, -2.0],
        ),
    }
}

/// Returns ∫₀ᵘ sᵐe^{−2s} ds for m = 0 … 4, all digits of each: from the last, a series of positive
/// terms, down by integration by parts.
fn moments(u: f64) -> [f64; 5] {
    let decay = (-2.0 * u).exp();
    let (mut term, mut sum, mut k) = (1.0 / 5.0, 1.0 / 5.0, 5.0);
    while term > f64::EPSILON * sum {
        k += 1.0;
        term *= 2.0 * u / k;
        sum += term;
    }
    let mut all = [0.0; 5];
    all[4] = u.powi(5) * decay * sum;
    for m in (1..5).rev() {
        all[m - 1] = (u.powi(m as i32) * decay + 2.0 * all[m]) / m as f64;
    }
    all
}

impl Matern {
    fn scaled(&self, step: f64) -> f64 {
        self.rate * step / self.lengthscale
    }

    /// Computes A at u.
    fn at(&self, u: f64, out: &mut [f64]) {
        let decay = (-u).exp();
        match self.size {
            1 => out[0] = decay,
            2 => {
                let all = [1.0 + u, u, -u, 1.0 - u];
                out.iter_mut().zip(all).for_each(|(o, v)| *o = decay * v);
            }
            _ => {
                let h = 0.5 * u * u;
                let all = [
                    [1.0 + u + h, u + 2.0 * h, h],
                    [-h, 1.0 + u - 2.0 * h, u - h],
                    [h - u, 2.0 * h - 3.0 * u, 1.0 - 2.0 * u + h],
                ];
                let all = all.as_flattened();
                out.iter_mut().zip(all).for_each(|(o, v)| *o = decay * v);
            }
        }
        if decay == 0.0 {
            // a step so long that polynomials overflow
            out.fill(0.0);
        }
    }
}

impl StateSpace for Matern {
    fn size(&self) -> usize {
        self.size
    }

    fn stationary(&self, out: &mut [f64]) {
        let (unit, _) = unit(self.size);
        out.iter_mut().zip(unit).for_each(|(o, p)| *o = self.variance * p);
    }

    fn transition(&self, step: f64, out: &mut [f64]) {
        self.at(self.scaled(step), out);
    }

    /// Computes it by Q = q∫₀ᵘ gg′ᵀ ds with g = e^{−s}(I + sN + s²N²/2)·(0, …, 1) for short steps,
    /// else by the difference, which has all digits there.
    fn noise(&self, step: f64, out: &mut [f64]) {
        let (n, u, v) = (self.size, self.scaled(step), self.variance);
        if n == 1 {
            out[0] = -v * (-2.0 * u).exp_m1();
            return;
        }
        if u > 1.0 {
            let (mut a, mut image) = ([0.0; MOST * MOST], [0.0; MOST * MOST]);
            self.at(u, &mut a);
            let (unit, _) = unit(n);
            for i in 0..n {
                for j in 0..n {
                    image[i * n + j] = (0..n).map(|k| a[i * n + k] * unit[k * n + j]).sum();
                }
            }
            for i in 0..n {
                for j in 0..n {
                    let left: f64 = (0..n).map(|k| image[i * n + k] * a[j * n + k]).sum();
                    out[i * n + j] = v * (unit[i * n + j] - left);
                }
            }
            return;
        }
        let [m0, m1, m2, m3, m4] = moments(u);
        if n == 2 {
            let (off, q) = (m1 - m2, 4.0 * v);
            let all = [m2, off, off, m0 - 2.0 * m1 + m2];
            out.iter_mut().zip(all).for_each(|(o, m)| *o = q * m);
            return;
        }
        let q = 16.0 / 3.0 * v;
        let (a, b) = (0.5 * m3 - 0.25 * m4, 0.5 * m2 - m3 + 0.25 * m4);
        let c = m1 - 2.5 * m2 + 1.5 * m3 - 0.25 * m4;
        let all = [
            [0.25 * m4, a, b],
            [a, m2 - m3 + 0.25 * m4, c],
            [b, c, m0 - 4.0 * m1 + 5.0 * m2 - 2.0 * m3 + 0.25 * m4],
        ];
        out.iter_mut().zip(all.as_flattened()).for_each(|(o, m)| *o = q * m);
    }

    fn times(&self, all: &mut Vec<usize>) {
        all.push(self.input);
    }

    fn output(&self, _: RowRef<'_, f64>, out: &mut [f64]) {
        out.fill(0.0);
        out[0] = 1.0;
    }

    fn pull_stationary(&self, bar: &[f64], params: &mut [f64]) {
        let (unit, _) = unit(self.size);
        params[0] += bar.iter().zip(unit).map(|(b, p)| b * p).sum::<f64>();
    }

    /// Uses ∂A/∂ℓ = (N − I)A·(−u/ℓ).
    fn pull_transition(&self, step: f64, a: &[f64], bar: &[f64], params: &mut [f64]) {
        let n = self.size;
        let (_, companion) = unit(n);
        let mut along = 0.0;
        for i in 0..n {
            for j in 0..n {
                let image: f64 = (0..n).map(|k| companion[i * n + k] * a[k * n + j]).sum();
                along += bar[i * n + j] * (image - a[i * n + j]);
            }
        }
        params[1] -= self.scaled(step) / self.lengthscale * along;
    }
}

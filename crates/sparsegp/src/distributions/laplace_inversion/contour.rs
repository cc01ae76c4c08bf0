//! Density and distribution function to full relative accuracy, by the trapezoidal rule along a parabola
//! through the saddle point.
//!
//! With s(t) = r₀ + iτt − qt², s′(t)/i = τ + 2iqt,
//!
//! log π_φ(x ∣ c) = log φ(r₀) − log φ(c²) + (r₀ − c²)x + log (h/π) Σ′ Re wₖ,
//! wₖ = exp(log φ(s) − log φ(r₀) + (s − r₀)x)(τ + 2iqt) at t = kh, k = 0, 1, …, the first one halved
//!
//! (the inversion integral of the Laplace transform; saddle point as in Daniels 1954, trapezoidal rule as in
//! Trefethen & Weideman 2014). Divided by s − c² the same sum gives P(ω ≤ x) where the parabola
//! passes to the right of the pole at c², and −P(ω > x) where it passes to its left.
//!
//! The parabola must keep its distance from r_min, where φ may be singular, and from the pole, in units
//! of τ: e^{−2πd/τh} is the error. Far in the tail of φ with a branch point at r_min, r₀ − r_min = 1/x does
//! that, as e^{sx} varies on the scale 1/x.

use super::{Complex64, Tilted};
use std::f64::consts::PI;

/// The first step h.
const STEP: f64 = 0.1;
/// How often h may be halved.
const HALVINGS: u32 = 7;
/// Where two steps agree to this, the finer one is taken.
const AGREEMENT: f64 = 1e-13;
/// How often a bracket of factor 4 about the saddle point is halved: to 10⁻⁴.
const BRACKET: u32 = 14;
/// The parabola bends by qt² = pt²/x.
const BEND: f64 = 0.1;

struct Parabola {
    r0: f64,
    tau: f64,
    q: f64,
}

/// (h/π) Σ′ Re wₖ and the same of wₖ(sₖ − c²).
type Sums = [f64; 2];

impl Tilted<'_> {
    /// Returns log π_φ(x ∣ c), to full relative accuracy of the density in both tails as long as
    /// log φ is analytic in the plane cut at r_min; −∞ for x ≤ 0.
    pub fn log_density(&self, x: f64) -> f64 {
        if x > 0.0 { self.density(x).0 } else { f64::NEG_INFINITY }
    }

    /// Returns ∂/∂x log π_φ(x ∣ c), x > 0.
    pub fn log_density_slope(&self, x: f64) -> f64 {
        self.density(x).1
    }

    /// Returns log π_φ(x ∣ c) and its slope, x > 0, for the work of one of them.
    pub fn log_density_with_slope(&self, x: f64) -> [f64; 2] {
        self.density(x).into()
    }

    fn density(&self, x: f64) -> (f64, f64) {
        let parabola = self.parabola(x, self.saddle(x), f64::INFINITY);
        let [sum, slope] = self.integrate(x, &parabola, false);
        (self.log_scale(x, parabola.r0) + sum.ln(), slope / sum)
    }

    /// Returns P(ω ≤ x), to full relative accuracy for x below the mean.
    pub fn cdf(&self, x: f64) -> f64 {
        if x > 0.0 { self.tails(x)[0] } else { 0.0 }
    }

    /// Returns P(ω > x), to full relative accuracy for x above the mean, unless the tail is so
    /// heavy (c² − r_min < 2/x) that it is not small.
    pub fn survival(&self, x: f64) -> f64 {
        if x > 0.0 { self.tails(x)[1] } else { 1.0 }
    }

    fn tails(&self, x: f64) -> [f64; 2] {
        let (saddle, r_min) = (self.saddle(x), self.mixing.r_min());
        let near = self.parabola(x, saddle, f64::INFINITY).tau;
        let room = self.square - r_min;
        let upper = saddle < self.square && room * x >= 2.0;
        let r0 = if upper {
            saddle.min(self.square - near.min(0.5 * room))
        } else {
            saddle.max(self.square + if room * x < 2.0 { near.max(1.0 / x) } else { near })
        };
        let parabola = self.parabola(x, r0, (r0 - self.square).abs());
        let [sum, _] = self.integrate(x, &parabola, true);
        let tail = self.log_scale(x, r0).exp() * sum.abs();
        if upper { [1.0 - tail, tail] } else { [tail, 1.0 - tail] }
    }

    fn log_scale(&self, x: f64, r0: f64) -> f64 {
        self.mixing.log_phi(r0) - self.log_phi + (r0 - self.square) * x
    }

    /// Returns the r₀ with ω̄(r₀) = x, to a few digits, or r_min + 1/x where it is nearer to r_min
    /// than that.
    fn saddle(&self, x: f64) -> f64 {
        let r_min = self.mixing.r_min();
        // the mean falls as the distance from r_min grows
        let mean = |distance: f64| self.mixing.mean(r_min + distance);
        let mut low = 1.0 / x;
        if mean(low) <= x {
            return r_min + low;
        }
        let mut high = 4.0 * low;
        while mean(high) > x && high < 1e300 {
            (low, high) = (high, 4.0 * high);
        }
        for _ in 0..BRACKET {
            // the root of the product, which may overflow
            let middle = low.sqrt() * high.sqrt();
            if mean(middle) > x { low = middle } else { high = middle }
        }
        r_min + low.sqrt() * high.sqrt()
    }

    /// Returns the parabola through r₀, with `pole` the distance to the pole if there is one.
    fn parabola(&self, x: f64, r0: f64, pole: f64) -> Parabola {
        let distance = r0 - self.mixing.r_min();
        let width = 1.0 / self.mixing.variance(r0).sqrt();
        // not wider than the distances, and NaN from no variance is none
        let tau = if width < distance { width } else { distance }.min(2.0 * pole);
        // the parabola must not curl around r_min: 4q·distance ≤ τ²
        let q = (BEND / x).min(tau * tau / (4.0 * distance));
        Parabola { r0, tau, q }
    }

    fn integrate(&self, x: f64, parabola: &Parabola, pole: bool) -> Sums {
        let start = self.mixing.log_phi(parabola.r0);
        let term = |t: f64| {
            let &Parabola { r0, tau, q } = parabola;
            let step = Complex64::new(-q * t * t, tau * t);
            let s = r0 + step;
            let log = self.mixing.log_phi_complex(s) - start + step * x;
            let w = log.exp() * Complex64::new(tau, 2.0 * q * t);
            let from = s - self.square;
            if pole { [w / from, w] } else { [w, w * from] }
        };
        let mut h = STEP;
        let mut sums = sum(&term, 0.0, h);
        for _ in 0..HALVINGS {
            let between = sum(&term, 0.5 * h, h);
            let finer = [0.5 * (sums[0] + between[0]), 0.5 * (sums[1] + between[1])];
            h *= 0.5;
            let agree = (finer[0] - sums[0]).abs() <= AGREEMENT * finer[0].abs();
            sums = finer;
            if agree {
                break;
            }
        }
        sums
    }
}

/// Returns (h/π) Σ Re w(t₀ + kh), the term at t = 0 halved, until terms vanish.
fn sum(term: &impl Fn(f64) -> [Complex64; 2], t0: f64, h: f64) -> Sums {
    let (mut sums, mut largest) = ([0.0; 2], 0.0_f64);
    for k in 0..20_000 {
        let t = t0 + f64::from(k) * h;
        let weight = if t == 0.0 { 0.5 } else { 1.0 };
        let w = term(t);
        sums[0] += weight * w[0].re;
        sums[1] += weight * w[1].re;
        let size = w[0].norm();
        largest = largest.max(size);
        if size.is_nan() || size <= 1e-18 * largest {
            break;
        }
    }
    sums.map(|sum| h / PI * sum)
}

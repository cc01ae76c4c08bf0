//! π_φ(ω ∣ c) of any φ, by numerical inversion of its Laplace transform.

mod contour;

use super::mixing::{Complex64, Mixing};
use crate::error::{Error, Result};
use crate::rng::uniform;
use rand::Rng;
use rand_distr::Distribution;
use std::f64::consts::PI;

/// π_φ(ω ∣ c) = e^{−c²ω} π_φ(ω ∣ 0) / φ(c²), whose Laplace transform is φ(s + c²)/φ(c²).
///
/// Draws ([`Distribution`]) use [`Mixing::sample`] where there is one; [`Tilted::sample_by_inversion`]
/// never does.
#[derive(Clone, Copy)]
pub struct Tilted<'a> {
    mixing: &'a dyn Mixing,
    c: f64,
    /// c².
    square: f64,
    /// log φ(c²).
    log_phi: f64,
}

/// Settings of the Euler algorithm (Abate, Choudhury & Whitt 2000; their A, l, n, m).
///
/// The error of a distribution function is at most e^{−A}/(1 − e^{−A}) by aliasing, about
/// e^{A/2l}·10⁻¹⁶ by rounding, and [`Inverted::truncation`]. A value takes l(n + m + 2) transforms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Euler {
    /// A, above 0: the aliasing error.
    pub aliasing: f64,
    /// l, at least 1: how much rounding is damped.
    pub damping: u32,
    /// n: terms before averaging.
    pub terms: u32,
    /// m: how many partial sums are averaged, with binomial weights.
    pub averaged: u32,
}

impl Euler {
    /// Good to 6·10⁻⁹: for draws.
    pub const SAMPLING: Self = Self { aliasing: 19.0, damping: 1, terms: 28, averaged: 11 };
    /// Good to 10⁻¹².
    pub const REFERENCE: Self = Self { aliasing: 30.0, damping: 3, terms: 38, averaged: 14 };
}

/// What an inversion found at one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inverted {
    /// F(x) = P(ω ≤ x).
    pub cdf: f64,
    /// P(ω > x), not as 1 − F.
    pub survival: f64,
    /// The density.
    pub density: f64,
    /// By how much `cdf` differs from what one term more gives.
    pub truncation: f64,
}

/// Draws are quantiles of uniform numbers no nearer to 0 and 1 than this, where errors of the inversion
/// would decide.
const EDGE: f64 = 1e-8;
/// Draws stop at |F − u| below this.
const DRAW: f64 = 1e-7;

impl<'a> Tilted<'a> {
    /// Creates π_φ(ω ∣ c).
    ///
    /// # Errors
    /// [`Error::Invalid`] unless c and log φ(c²) are finite numbers, c ≥ 0.
    pub fn new(mixing: &'a dyn Mixing, c: f64) -> Result<Self> {
        let tilted = Self::of_valid(mixing, c);
        if c >= 0.0 && c.is_finite() && tilted.log_phi.is_finite() {
            Ok(tilted)
        } else {
            Err(Error::Invalid(format!(
                "π_φ(ω | c) needs a finite c of at least 0 with a finite log φ(c²), not c = {c} with {}",
                tilted.log_phi
            )))
        }
    }

    pub(super) fn of_valid(mixing: &'a dyn Mixing, c: f64) -> Self {
        let square = c * c;
        Self { mixing, c, square, log_phi: mixing.log_phi(square) }
    }

    /// Returns ω̄(c²), possibly ∞ at c = 0.
    pub fn mean(&self) -> f64 {
        self.mixing.mean(self.square)
    }

    /// Returns κ₂(c²), possibly ∞ at c = 0.
    pub fn variance(&self) -> f64 {
        self.mixing.variance(self.square)
    }

    /// Returns KL(π_φ(· ∣ c) ‖ π_φ(· ∣ 0)) = −c²ω̄ − log φ(c²).
    pub fn kl_to_untilted(&self) -> f64 {
        if self.square == 0.0 { 0.0 } else { -self.square * self.mean() - self.log_phi }
    }

    /// Returns the distribution function and density at x by the Euler algorithm: absolute errors
    /// as the settings say. At x ≤ 0 the distribution function is 0.
    ///
    /// F(x) ≈ Σₖ C(m, k)2⁻ᵐ S_{n+k}, S_j = e^{A/2l}/(2lx) Σ_{k ≤ j} (−1)ᵏbₖ and
    /// bₖ = 2 Σ_{j ≤ l} Re[F̂(A/2lx + iπ(j/l + k)/x) e^{ijπ/l}], b₀ with F̂(A/2lx) besides
    /// (Abate, Choudhury & Whitt 2000); one set of φ's serves F and the density.
    pub fn euler(&self, x: f64, settings: &Euler) -> Inverted {
        if x <= 0.0 {
            return Inverted { cdf: 0.0, survival: 1.0, density: 0.0, truncation: 0.0 };
        }
        let l = settings.damping.max(1);
        let damp = settings.aliasing / (2.0 * f64::from(l));
        let real = damp / x;
        // Re of the transforms of F, 1 − F and the density times a phase
        let transforms = |imaginary: f64, phase: Complex64| {
            let s = Complex64::new(real, imaginary);
            let phi = (self.mixing.log_phi_complex(s + self.square) - self.log_phi).exp();
            [(phi / s * phase).re, ((1.0 - phi) / s * phase).re, (phi * phase).re]
        };
        let last = settings.terms + settings.averaged + 1;
        let mut sums = transforms(0.0, Complex64::new(1.0, 0.0));
        let (mut averages, mut later) = ([0.0; 3], 0.0);
        // C(m, i)2⁻ᵐ, of the partial sum before and of this one
        let mut weights = [0.0, 0.5_f64.powi(settings.averaged as i32)];
        for k in 0..=last {
            for j in 1..=l {
                let angle = PI * f64::from(j) / f64::from(l);
                let phase = if j == l {
                    Complex64::new(-1.0, 0.0)
                } else {
                    Complex64::new(angle.cos(), angle.sin())
                };
                let sign = if k % 2 == 0 { 2.0 } else { -2.0 };
                let values = transforms((angle + PI * f64::from(k)) / x, phase);
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += sign * value);
            }
            if k >= settings.terms {
                averages.iter_mut().zip(sums).for_each(|(mean, sum)| *mean += weights[1] * sum);
                later += weights[0] * sums[0];
                let i = f64::from(k - settings.terms);
                let next = weights[1] * (f64::from(settings.averaged) - i) / (i + 1.0);
                weights = [weights[1], next];
            }
        }
        let scale = damp.exp() / (2.0 * f64::from(l) * x);
        let [cdf, survival, density] = averages.map(|mean| scale * mean);
        Inverted { cdf, survival, density, truncation: (scale * later - cdf).abs() }
    }

    /// Returns the x with F(x) = u, to about 12 digits, by Newton's method in a bracket on
    /// [`Tilted::cdf`] (u ≤ ½) or [`Tilted::survival`].
    ///
    /// # Errors
    /// [`Error::Invalid`] unless 0 < u < 1, or where no bracket is found.
    pub fn quantile(&self, u: f64) -> Result<f64> {
        if !(u > 0.0 && u < 1.0) {
            return Err(Error::Invalid(format!("a quantile needs 0 < u < 1, not {u}")));
        }
        let gap = |x: f64| {
            let gap = if u <= 0.5 { self.cdf(x) - u } else { (1.0 - u) - self.survival(x) };
            (gap, self.log_density(x).exp())
        };
        self.solve(gap, 1e-15 * u.min(1.0 - u)).ok_or_else(|| {
            Error::Invalid(format!(
                "no quantile of π_φ(ω | c) found at u = {u}, c = {}; the mixing::check tells whether φ is valid",
                self.c
            ))
        })
    }

    /// Solves by Ridout 2009: Newton's method x ← x − (F(x) − u)/f(x) in a bracket, halved where a
    /// step would leave it. `gap` gives F − u and f. Nothing where 200 doublings do not reach u.
    fn solve(&self, gap: impl Fn(f64) -> (f64, f64), tolerance: f64) -> Option<f64> {
        let start = self.mean();
        // an infinite mean gives no scale: any point serves
        let start = if start.is_finite() && start > 0.0 { start } else { self.mixing.mean(1.0) };
        let (mut low, mut high) = (0.0, start);
        let mut at = gap(high);
        let mut doublings = 0;
        while at.0 < 0.0 {
            if doublings == 200 {
                return None;
            }
            (low, high, doublings) = (high, 2.0 * high, doublings + 1);
            at = gap(high);
        }
        if at.0.is_nan() {
            return None;
        }
        let mut x = high;
        for _ in 0..400 {
            let (difference, density) = at;
            if difference.abs() < tolerance || high - low < 1e-14 * x {
                break;
            }
            if difference < 0.0 {
                low = x
            } else {
                high = x
            }
            let newton = x - difference / density;
            x = if density > 0.0 && newton > low && newton < high {
                newton
            } else if low == 0.0 {
                0.25 * high
            } else {
                0.5 * (low + high)
            };
            at = gap(x);
        }
        Some(x)
    }

    /// Makes a draw by inversion only: the quantile of a uniform number in (10⁻⁸, 1 − 10⁻⁸) to
    /// 10⁻⁷, with [`Euler::SAMPLING`]. NaN where φ is not a Laplace transform (see
    /// [`check`](super::mixing::check)).
    pub fn sample_by_inversion<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        let u = EDGE + (1.0 - 2.0 * EDGE) * uniform(rng);
        let gap = |x: f64| {
            let at = self.euler(x, &Euler::SAMPLING);
            // the smaller of the two tails, which lacks the rounding of the larger
            (if u <= 0.5 { at.cdf - u } else { (1.0 - u) - at.survival }, at.density)
        };
        self.solve(gap, DRAW).unwrap_or(f64::NAN)
    }
}

impl Distribution<f64> for Tilted<'_> {
    fn sample<R: Rng + ?Sized>(&self, mut rng: &mut R) -> f64 {
        match self.mixing.sample(self.c, &mut rng) {
            Some(draw) => draw,
            None => self.sample_by_inversion(rng),
        }
    }
}

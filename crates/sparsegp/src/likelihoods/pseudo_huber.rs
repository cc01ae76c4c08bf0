//! Pseudo-Huber noise: normal near 0, exponential tails (the symmetric hyperbolic distribution of
//! Barndorff-Nielsen 1977):
//!
//! ```text
//! log p(y | f) = −log 2δeᴬK₁(A) − A (w − 1),   w = √(1 + (y − f)²/δ²),  A = δ²/s²
//! ```
//! with the modified Bessel functions K. Near 0 it is normal with variance s², and δ is where the tails
//! begin. With y − f = δ sinh t, integrals over y become ones of e^{−A cosh t} times powers of cosh t.

use super::augmented::{Augmented, Form, SuperGaussian};
use super::predict;
use super::quadrature::Rule;
use super::registry::{Args, Entry};
use super::single::{OPTIONS, Scalar, Single, finite, robust_spread, start};
use super::student_t::SCALE;
use super::{Likelihood, Support, Target};
use crate::distributions::GeneralisedInverseGaussian;
use crate::distributions::mixing::{Mixing, PseudoHuber as Phi};
use crate::error::Result;
use crate::params::{Param, Visitor, VisitorMut};
use crate::special::normal_cdf;
use rand_distr::{Distribution, StandardNormal};
use serde_json::Value;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "pseudo-huber",
    aliases: &["huber", "hyperbolic"],
    about: "noise that is normal near 0, with exponential tails from `delta` on",
    targets: "numbers",
    latents: "1",
    augmented: true,
    build,
};

/// Pseudo-Huber noise.
#[derive(Clone, Debug)]
pub struct PseudoHuber {
    /// Where the tails begin, δ above 10⁻⁶.
    pub delta: Param,
    /// Standard deviation s near 0, above 10⁻⁶.
    pub scale: Param,
}

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&["delta", "scale"], &OPTIONS)?;
    let (delta, scale) = (args.scalar("delta", 1.0, SCALE)?, args.scalar("scale", 1.0, SCALE)?);
    Single::boxed(PseudoHuber { delta, scale }, &args)
}

/// Returns eᴬK₀(A) and eᴬK₁(A) for A > 0 from K_ν(A) = ∫₀^∞ e^{−A cosh t} cosh νt dt, by the
/// trapezoidal rule, which converges faster than any power on it.
fn bessel(a: f64) -> [f64; 2] {
    // where the integrand has fallen below e⁻⁴⁵
    let end = (1.0 + 45.0 / a).acosh();
    let n = 64;
    let step = end / f64::from(n);
    let mut sums = [0.5, 0.5];
    for j in 1..=n {
        let t = step * f64::from(j);
        // cosh t − 1 without cancellation
        let weight = (-2.0 * a * (0.5 * t).sinh().powi(2)).exp();
        sums[0] += weight;
        sums[1] += weight * t.cosh();
    }
    sums.map(|sum| sum * step)
}

/// Below this many scales a deviation of f is too small for [`Scalar::closed_cdf`].
const LEAST_SHARE: f64 = 0.02;

impl PseudoHuber {
    /// Returns δ, s and A.
    fn parts(&self) -> (f64, f64, f64) {
        let (delta, scale) = (self.delta.scalar(), self.scale.scalar());
        (delta, scale, (delta / scale).powi(2))
    }

    /// Returns w at a squared residual.
    fn width(&self, square: f64) -> f64 {
        (1.0 + square / self.delta.scalar().powi(2)).sqrt()
    }

    /// Returns w − 1 without cancellation.
    fn excess(&self, square: f64) -> f64 {
        let q = square / self.delta.scalar().powi(2);
        q / ((1.0 + q).sqrt() + 1.0)
    }

    /// Returns the slopes of −A(w − 1) by δ and s at a squared residual.
    fn by_params(&self, square: f64) -> [f64; 2] {
        let (delta, scale, a) = self.parts();
        let (excess, w) = (self.excess(square), self.width(square));
        let q = square / (delta * delta);
        [a / delta * (q / w - 2.0 * excess), 2.0 * a / scale * excess]
    }
}

impl Scalar for PseudoHuber {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn standardises(&self) -> bool {
        true
    }

    fn bears_outliers(&self) -> bool {
        true
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"delta", &self.delta);
        visitor(&"scale", &self.scale);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"delta", &mut self.delta);
        visitor(&"scale", &mut self.scale);
    }

    fn units(&self) -> Vec<i32> {
        vec![1, 1]
    }

    fn initialise(&mut self, targets: &[Target]) -> f64 {
        let (median, distance) = robust_spread(targets);
        // a tenth of the variance, as for Gaussian noise; tails from one and a half deviations on
        let deviation = 0.1_f64.sqrt() * 1.4826 * distance;
        start(&mut self.scale, deviation);
        start(&mut self.delta, 1.5 * self.scale.scalar());
        median
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        finite(target)
    }

    fn write(&self, json: &mut Value) {
        json["delta"] = self.delta.to_json(SCALE);
        json["scale"] = self.scale.to_json(SCALE);
    }

    fn constant(&self, _: Target) -> f64 {
        let (delta, _, a) = self.parts();
        -(2.0 * delta * bessel(a)[1]).ln()
    }

    fn at(&self, target: Target, f: f64) -> [f64; 3] {
        let (delta, _, a) = self.parts();
        let d = target.y - f;
        let (w, unit) = (self.width(d * d), a / (delta * delta));
        [-a * self.excess(d * d), unit * d / w, -unit / (w * w * w)]
    }

    fn constant_slopes(&self, _: Target, out: &mut [f64]) {
        let (delta, scale, a) = self.parts();
        let [k0, k1] = bessel(a);
        // of log eᴬK₁(A), with K₁′ = −K₀ − K₁/A
        let slope = 1.0 - k0 / k1 - 1.0 / a;
        (out[0], out[1]) = (-1.0 / delta - 2.0 * a / delta * slope, 2.0 * a / scale * slope);
    }

    fn add_slopes(&self, target: Target, f: f64, weight: f64, out: &mut [f64]) {
        let slopes = self.by_params((target.y - f).powi(2));
        out.iter_mut().zip(slopes).for_each(|(o, s)| *o += weight * s);
    }

    fn rule(&self) -> Rule {
        Rule::Trapezoid
    }

    fn pole(&self) -> f64 {
        self.delta.scalar()
    }

    fn moments(&self, _: f64, f: f64) -> (f64, f64) {
        let (delta, _, a) = self.parts();
        let [k0, k1] = bessel(a);
        // δ² K₂/(A K₁), K₂ = K₀ + 2K₁/A
        (f, delta * delta * (k0 / k1 + 2.0 / a) / a)
    }

    fn closed_moments(&self, extra: f64, mean: f64, variance: f64) -> Option<(f64, f64)> {
        Some((mean, variance + self.moments(extra, mean).1))
    }

    fn cdf(&self, _: f64, y: f64, f: f64) -> f64 {
        let (delta, _, a) = self.parts();
        let from = ((y - f).abs() / delta).asinh();
        let end = (1.0 + 60.0 / a).acosh();
        let mut tail = 0.0;
        if from < end {
            let width = (0.5 / a.sqrt()).min(0.5);
            predict::graded(from, end, &[None, None], width, |t, step| {
                tail += step * (-2.0 * a * (0.5 * t).sinh().powi(2)).exp() * t.cosh();
            });
        }
        let tail = 0.5 * tail / bessel(a)[1];
        if y < f { tail } else { 1.0 - tail }
    }

    /// Returns ∫ Φ((y − m − e)/√v) p(e) de: one integral, in place of one for every f.
    fn closed_cdf(&self, _: f64, y: f64, mean: f64, variance: f64) -> Option<f64> {
        let (delta, scale, a) = self.parts();
        let (deviation, d) = (variance.sqrt(), y - mean);
        // a step, in the end: then p(y | f) is smooth where f lies
        if deviation < LEAST_SHARE * scale {
            return None;
        }
        let at = (d / delta).asinh();
        let end = (1.0 + 60.0 / a).acosh();
        let width = (deviation / (delta * at.cosh())).min(0.5 / a.sqrt()).min(0.5);
        let mut p = 0.0;
        predict::graded(-end, end, &[Some(at.min(0.0)), Some(at.max(0.0))], width, |t, step| {
            let weight = (-2.0 * a * (0.5 * t).sinh().powi(2)).exp() * t.cosh();
            p += step * weight * normal_cdf((d - delta * t.sinh()) / deviation);
        });
        Some((0.5 * p / bessel(a)[1]).clamp(0.0, 1.0))
    }

    fn support(&self, _: f64) -> Support {
        Support::Real
    }

    fn augmented(&self) -> Option<&dyn Augmented> {
        Some(self)
    }

    /// Draws from the normal of the variance s²x with an x of GIG(1, A, A).
    fn sample(&self, _: f64, f: f64, rng: &mut dyn rand::Rng) -> f64 {
        let (_, scale, a) = self.parts();
        // beyond, the law is its limit: normal, and Laplace's
        let a = a.clamp(1e-300, 1e300);
        let law = GeneralisedInverseGaussian::new(1.0, a, a).expect("numbers above 0");
        let normal: f64 = StandardNormal.sample(rng);
        f + scale * law.sample(rng).sqrt() * normal
    }
}

impl SuperGaussian for PseudoHuber {
    fn with(&self, target: Target, work: &mut dyn FnMut(&Form, &dyn Mixing)) {
        let (delta, scale, _) = self.parts();
        let phi = Phi::new(delta, scale).expect("above 0 by their transforms");
        work(&Form::of_residual(self.constant(target), target.y), &phi);
    }

    fn slopes(&self, target: Target, _: f64, square: f64, _: f64, out: &mut [f64]) {
        self.constant_slopes(target, out);
        out.iter_mut().zip(self.by_params(square)).for_each(|(o, s)| *o += s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Shape;

    /// One integral over the noise is that over f of the distribution functions at f.
    #[test]
    fn the_order_of_integration_does_not_matter() {
        let param = |value: f64| Param::with(vec![value], Shape::Scalar, SCALE);
        for (delta, scale) in [(0.7, 0.4), (0.05, 0.6), (9.0, 1.3)] {
            let own = PseudoHuber { delta: param(delta), scale: param(scale) };
            for deviation in [0.03, 0.3, 2.1] {
                let deviation = deviation * scale;
                for d in [-7.0, -0.6, 0.0, 0.04, 2.3] {
                    let (mean, y) = (0.9, 0.9 + d * scale);
                    let variance = deviation * deviation;
                    let found = own.closed_cdf(1.0, y, mean, variance).unwrap();
                    // a dense trapezoid over f, which nothing is shared with
                    let (n, reach) = (4000, 9.0);
                    let step = 2.0 * reach / f64::from(n);
                    let expected: f64 = (0..=n)
                        .map(|j| {
                            let z = step * f64::from(j) - reach;
                            let normal = (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
                            step * normal * own.cdf(1.0, y, mean + deviation * z)
                        })
                        .sum();
                    assert!(
                        (found - expected).abs() < 1e-10,
                        "{delta} {scale} {deviation} {d}: {found} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn bessel_functions_are_those_of_the_tables() {
        // e^x K₀ and e^x K₁ by an independent program
        for (x, k0, k1) in [
            (0.1, 2.682_326_102_262_894_4, 10.890_182_683_049_698),
            (1.0, 1.144_463_079_806_895, 1.636_153_486_263_258),
            (5.0, 0.547_807_564_313_519, 0.600_273_858_788_312_5),
            (20.0, 0.278_544_876_657_182_2, 0.285_425_496_940_726_44),
        ] {
            let found = bessel(x);
            for (found, expected) in found.iter().zip([k0, k1]) {
                assert!((found / expected - 1.0_f64).abs() < 1e-13, "{x}: {found} {expected}");
            }
        }
        // e^A K₁(A) ~ √(π/2A) (1 + 3/8A) for large A
        let a = 1e8;
        let expected = (std::f64::consts::FRAC_PI_2 / a).sqrt() * (1.0 + 0.375 / a);
        assert!((bessel(a)[1] / expected - 1.0).abs() < 1e-12);
    }
}

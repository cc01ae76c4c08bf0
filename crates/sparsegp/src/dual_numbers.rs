//! Numbers that carry derivatives along, for likelihoods that are given only by their density.
//!
//! A [`Dual`] holds a value h with ∂h/∂xᵢ and ∂²h/∂xᵢ² for N variables xᵢ; mixed second derivatives
//! are not kept, for nothing asks for them and the pure ones do not depend on them:
//! (gh)″ = g″h + 2g′h′ + gh″ and (φ∘h)″ = φ″h′² + φ′h″ along every xᵢ by itself.

use crate::special::{self, trigamma};
use statrs::function::{erf, gamma};
use std::f64::consts::PI;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Numbers that a density may be written in: `f64`, or with derivatives. A plain number on the left of
/// an operator must become one by [`Real::constant`]; on the right it may stay as it is.
pub trait Real:
    Copy
    + std::fmt::Debug
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
    + Div<f64, Output = Self>
{
    /// Creates a number that depends on nothing.
    fn constant(value: f64) -> Self;

    /// Returns the value, for comparisons.
    fn value(self) -> f64;

    /// Returns φ of this number, from φ, φ′ and φ″ at its value: for functions that are not here.
    fn chain(self, value: f64, first: f64, second: f64) -> Self;

    /// Returns eˣ.
    fn exp(self) -> Self {
        let e = self.value().exp();
        self.chain(e, e, e)
    }

    /// Returns eˣ − 1.
    fn exp_m1(self) -> Self {
        let e = self.value().exp();
        self.chain(self.value().exp_m1(), e, e)
    }

    /// Returns log x.
    fn ln(self) -> Self {
        let r = 1.0 / self.value();
        self.chain(self.value().ln(), r, -r * r)
    }

    /// Returns log(1 + x).
    fn ln_1p(self) -> Self {
        let r = 1.0 / (1.0 + self.value());
        self.chain(self.value().ln_1p(), r, -r * r)
    }

    /// Returns √x.
    fn sqrt(self) -> Self {
        let s = self.value().sqrt();
        self.chain(s, 0.5 / s, -0.25 / (s * self.value()))
    }

    /// Returns xᵖ.
    fn powf(self, p: f64) -> Self {
        let x = self.value();
        self.chain(x.powf(p), p * x.powf(p - 1.0), p * (p - 1.0) * x.powf(p - 2.0))
    }

    /// Returns xⁿ.
    fn powi(self, n: i32) -> Self {
        let (x, p) = (self.value(), f64::from(n));
        let first = if n == 0 { 0.0 } else { p * x.powi(n - 1) };
        let second = if n == 0 || n == 1 { 0.0 } else { p * (p - 1.0) * x.powi(n - 2) };
        self.chain(x.powi(n), first, second)
    }

    /// Returns 1/x.
    fn recip(self) -> Self {
        let r = 1.0 / self.value();
        self.chain(r, -r * r, 2.0 * r * r * r)
    }

    /// Returns |x|, with slope 0 at 0.
    fn abs(self) -> Self {
        let x = self.value();
        self.chain(x.abs(), if x == 0.0 { 0.0 } else { x.signum() }, 0.0)
    }

    /// Returns sin x.
    fn sin(self) -> Self {
        let (s, c) = self.value().sin_cos();
        self.chain(s, c, -s)
    }

    /// Returns cos x.
    fn cos(self) -> Self {
        let (s, c) = self.value().sin_cos();
        self.chain(c, -s, -c)
    }

    /// Returns tanh x.
    fn tanh(self) -> Self {
        let t = self.value().tanh();
        let slope = 1.0 - t * t;
        self.chain(t, slope, -2.0 * t * slope)
    }

    /// Returns arctan x.
    fn atan(self) -> Self {
        let x = self.value();
        let slope = 1.0 / (1.0 + x * x);
        self.chain(x.atan(), slope, -2.0 * x * slope * slope)
    }

    /// Returns the error function.
    fn erf(self) -> Self {
        let x = self.value();
        let slope = 2.0 / PI.sqrt() * (-x * x).exp();
        self.chain(erf::erf(x), slope, -2.0 * x * slope)
    }

    /// Returns log Φ(x), Φ the distribution function of a standard normal.
    fn ln_cdf(self) -> Self {
        let (x, h) = (self.value(), special::hazard(self.value()));
        self.chain(special::log_normal_cdf(x), h, -h * (h + x))
    }

    /// Returns log Γ(x), x > 0.
    fn ln_gamma(self) -> Self {
        let x = self.value();
        self.chain(gamma::ln_gamma(x), gamma::digamma(x), trigamma(x))
    }

    /// Returns log(1 + eˣ).
    fn softplus(self) -> Self {
        let x = self.value();
        let (up, down) = (special::sigmoid(x), special::sigmoid(-x));
        self.chain(special::softplus(x), up, up * down)
    }

    /// Returns 1/(1 + e⁻ˣ).
    fn sigmoid(self) -> Self {
        let (up, down) = (special::sigmoid(self.value()), special::sigmoid(-self.value()));
        self.chain(up, up * down, up * down * (down - up))
    }
}

impl Real for f64 {
    fn constant(value: f64) -> Self {
        value
    }

    fn value(self) -> f64 {
        self
    }

    fn chain(self, value: f64, _: f64, _: f64) -> Self {
        value
    }
}

/// A number with first and pure second derivatives by N variables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dual<const N: usize> {
    /// h.
    pub value: f64,
    /// ∂h/∂xᵢ.
    pub first: [f64; N],
    /// ∂²h/∂xᵢ².
    pub second: [f64; N],
}

impl<const N: usize> Dual<N> {
    /// Creates the variable xᵢ at a value; a constant if there is no such i.
    pub fn variable(value: f64, i: usize) -> Self {
        let mut own = Self::constant(value);
        if let Some(slope) = own.first.get_mut(i) {
            *slope = 1.0;
        }
        own
    }

    fn combine(self, other: Self, value: f64, by: impl Fn([f64; 4]) -> (f64, f64)) -> Self {
        let mut out = Self::constant(value);
        for i in 0..N {
            (out.first[i], out.second[i]) =
                by([self.first[i], self.second[i], other.first[i], other.second[i]]);
        }
        out
    }
}

impl<const N: usize> Real for Dual<N> {
    fn constant(value: f64) -> Self {
        Self { value, first: [0.0; N], second: [0.0; N] }
    }

    fn value(self) -> f64 {
        self.value
    }

    fn chain(self, value: f64, first: f64, second: f64) -> Self {
        self.combine(self, value, |[d, dd, ..]| {
            // 0·∞ where a constant meets a singular function is not a slope
            let zero = d == 0.0 && dd == 0.0;
            if zero { (0.0, 0.0) } else { (first * d, second * d * d + first * dd) }
        })
    }
}

impl<const N: usize> Neg for Dual<N> {
    type Output = Self;
    fn neg(self) -> Self {
        self * -1.0
    }
}

impl<const N: usize> Add for Dual<N> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.combine(other, self.value + other.value, |[a, aa, b, bb]| (a + b, aa + bb))
    }
}

impl<const N: usize> Sub for Dual<N> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.combine(other, self.value - other.value, |[a, aa, b, bb]| (a - b, aa - bb))
    }
}

impl<const N: usize> Mul for Dual<N> {
    type Output = Self;
    // sums: the product rule
    #[allow(clippy::suspicious_arithmetic_impl)]
    fn mul(self, other: Self) -> Self {
        let (x, y) = (self.value, other.value);
        self.combine(other, x * y, |[a, aa, b, bb]| (a * y + x * b, aa * y + 2.0 * a * b + x * bb))
    }
}

impl<const N: usize> Div for Dual<N> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let (y, r) = (self.value / other.value, 1.0 / other.value);
        // from x = q y: x′ = q′y + qy′, x″ = q″y + 2q′y′ + qy″
        self.combine(other, y, |[a, aa, b, bb]| {
            let first = (a - y * b) * r;
            (first, (aa - 2.0 * first * b - y * bb) * r)
        })
    }
}

impl<const N: usize> Add<f64> for Dual<N> {
    type Output = Self;
    fn add(self, other: f64) -> Self {
        Self { value: self.value + other, ..self }
    }
}

impl<const N: usize> Sub<f64> for Dual<N> {
    type Output = Self;
    fn sub(self, other: f64) -> Self {
        Self { value: self.value - other, ..self }
    }
}

impl<const N: usize> Mul<f64> for Dual<N> {
    type Output = Self;
    fn mul(self, other: f64) -> Self {
        self.combine(self, self.value * other, |[a, aa, ..]| (a * other, aa * other))
    }
}

impl<const N: usize> Div<f64> for Dual<N> {
    type Output = Self;
    fn div(self, other: f64) -> Self {
        self.combine(self, self.value / other, |[a, aa, ..]| (a / other, aa / other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case = (&'static str, fn(Dual<2>) -> Dual<2>, fn(f64) -> f64, &'static [f64]);

    /// Five-point differences of a function and of its slope.
    fn difference(f: impl Fn(f64) -> f64, x: f64) -> f64 {
        let h = 1e-3 * x.abs().max(0.1);
        (8.0 * (f(x + h) - f(x - h)) - f(x + 2.0 * h) + f(x - 2.0 * h)) / (12.0 * h)
    }

    #[test]
    fn functions_match_differences() {
        macro_rules! case {
            ($name:ident $(, $arg:expr)*; $points:expr) => {
                (stringify!($name), |x| Real::$name(x $(, $arg)*), |x| Real::$name(x $(, $arg)*), $points)
            };
        }
        let any: &[f64] = &[-7.3, -0.4, 0.3, 1.7, 5.2];
        let positive: &[f64] = &[0.07, 0.6, 1.3, 8.1, 30.5];
        let cases: Vec<Case> = vec![
            case!(exp; any),
            case!(exp_m1; any),
            case!(ln; positive),
            case!(ln_1p; positive),
            case!(sqrt; positive),
            case!(powf, 2.7; positive),
            case!(powf, -0.6; positive),
            case!(powi, 3; any),
            case!(powi, 1; any),
            case!(powi, -2; any),
            case!(recip; any),
            case!(abs; any),
            case!(sin; any),
            case!(cos; any),
            case!(tanh; any),
            case!(atan; any),
            case!(erf; any),
            case!(ln_cdf; &[-38.0, -7.3, -5.01, -4.99, -0.4, 0.3, 5.2]),
            case!(ln_gamma; positive),
            case!(softplus; any),
            case!(sigmoid; any),
        ];
        for (name, dual, plain, points) in cases {
            for &x in points {
                let found = dual(Dual::variable(x, 1));
                assert_eq!(found.value, plain(x), "{name}({x})");
                let first = difference(plain, x);
                let second = difference(|x| dual(Dual::variable(x, 1)).first[1], x);
                let size = found.value.abs().max(found.first[1].abs()).max(1e-3);
                assert!(
                    (found.first[1] - first).abs() < 1e-8 * size,
                    "{name}′({x}): {found:?} {first}"
                );
                let size = size.max(found.second[1].abs());
                assert!(
                    (found.second[1] - second).abs() < 1e-8 * size,
                    "{name}″({x}): {found:?} {second}"
                );
                assert_eq!((found.first[0], found.second[0]), (0.0, 0.0));
            }
        }
    }

    #[test]
    fn arithmetic_obeys_its_rules() {
        // h = (x² y − 3/y) / (x + 2y) at (1.3, −0.7), by hand
        let h = |x: Dual<2>, y: Dual<2>| (x * x * y - Dual::constant(3.0) / y) / (x + y * 2.0);
        let plain = |x: f64, y: f64| h(Dual::constant(x), Dual::constant(y)).value;
        let (x, y) = (1.3, -0.7);
        let found = h(Dual::variable(x, 0), Dual::variable(y, 1));
        for (i, first) in
            [difference(|x| plain(x, y), x), difference(|y| plain(x, y), y)].into_iter().enumerate()
        {
            assert!((found.first[i] / first - 1.0).abs() < 1e-6, "{i}: {found:?} {first}");
        }
        let second = [
            difference(|x| h(Dual::variable(x, 0), Dual::constant(y)).first[0], x),
            difference(|y| h(Dual::constant(x), Dual::variable(y, 1)).first[1], y),
        ];
        for i in 0..2 {
            assert!((found.second[i] / second[i] - 1.0).abs() < 1e-6, "{i}: {found:?} {second:?}");
        }
    }
}

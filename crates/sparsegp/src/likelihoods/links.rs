//! From a latent value to a probability or to a positive number.

use super::single::{Formula, Many};
use crate::linalg::exp;
use crate::special::{
    TAIL, inverse_softplus, log_normal_cdf, log_normal_cdf_slopes, normal_cdf, sigmoid, softplus,
};
use serde_json::{Value, json};
use std::f64::consts::{PI, TAU};

/// A probability p of a latent value, with 1 − p(f) = p(−f).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Probability {
    /// p = 1/(1 + e⁻ᶠ).
    Logit,
    /// p = (1 − 2·floor) Φ(f) + floor.
    Probit {
        /// What stays for either outcome however large |f|; 0 for the probit itself.
        floor: f64,
    },
}

impl Probability {
    /// Returns the name in specifications.
    pub fn name(self) -> &'static str {
        match self {
            Self::Logit => "logit",
            Self::Probit { .. } => "probit",
        }
    }

    /// Returns log p with its first and second derivative.
    pub fn log(self, f: f64) -> [f64; 3] {
        match self {
            Self::Logit => {
                let other = sigmoid(-f);
                [-softplus(-f), other, -other * sigmoid(f)]
            }
            Self::Probit { floor: 0.0 } => log_normal_cdf_slopes(f),
            Self::Probit { floor } => {
                let p = self.value(f);
                let q = (1.0 - 2.0 * floor) * crate::special::normal_density(f) / p;
                // without 0·∞ for infinite f
                let fq = if q == 0.0 { 0.0 } else { f * q };
                [p.ln(), q, -fq - q * q]
            }
        }
    }

    /// Adds `weight` log p(sign·f) with its derivatives by f, for sign = ±1, at as many f as there are.
    pub fn add_logs(self, sign: f64, weight: f64, f: &[f64], out: &mut Many) {
        let mut one_by_one = |which: fn(f64) -> bool| {
            for (j, f) in f.iter().enumerate().filter(|(_, f)| which(sign * **f)) {
                let [value, first, second] = self.log(sign * f);
                out.value[j] += weight * value;
                out.first[j] += weight * sign * first;
                out.second[j] += weight * second;
            }
        };
        match self {
            Self::Logit => out.add(LogLogit { sign, weight }, f),
            Self::Probit { floor: 0.0 } => {
                one_by_one(|z| z <= -TAIL);
                out.add(LogProbit { sign, weight }, f);
            }
            Self::Probit { .. } => one_by_one(|_| true),
        }
    }

    /// Returns p.
    pub fn value(self, f: f64) -> f64 {
        match self {
            Self::Logit => sigmoid(f),
            Self::Probit { floor } => (1.0 - 2.0 * floor) * normal_cdf(f) + floor,
        }
    }

    /// Returns E[p] for f ~ N(mean, variance) if there is a closed form: for the probit the link of
    /// mean/√(1 + variance) (Rasmussen & Williams 2006, Eq. 3.82), in logarithms.
    pub fn log_expected(self, mean: f64, variance: f64) -> Option<f64> {
        match self {
            Self::Logit => None,
            Self::Probit { floor } => {
                let z = mean / (1.0 + variance).sqrt();
                Some(if floor == 0.0 { log_normal_cdf(z) } else { self.value(z).ln() })
            }
        }
    }

    /// Returns f of a probability; near the exact value where there is a floor.
    pub fn inverse(self, p: f64) -> f64 {
        match self {
            Self::Logit => (p / (1.0 - p)).ln(),
            Self::Probit { .. } => crate::metrics::standard_normal_quantile(p),
        }
    }

    /// Returns the distance from the real line of the nearest singularity of log p: of the zeros of
    /// 1 + e⁻ᶠ, of Φ, or of the sum with a floor.
    pub fn pole(self) -> f64 {
        match self {
            Self::Logit => PI,
            Self::Probit { floor: 0.0 } => 2.8,
            Self::Probit { .. } => 0.8,
        }
    }
}

/// `weight` log p(sign·f) of the logit.
struct LogLogit {
    sign: f64,
    weight: f64,
}

impl Formula for LogLogit {
    #[inline(always)]
    fn at<const FMA: bool>(&self, f: f64) -> [f64; 3] {
        let Self { sign, weight } = *self;
        let f = sign * f;
        let e = exp::exp::<FMA>(-f.abs());
        let large = 1.0 / (1.0 + e);
        let small = e * large;
        let loss = exp::ln_1p::<FMA>(e) - if f < 0.0 { f } else { 0.0 };
        [
            -weight * loss,
            weight * sign * if f < 0.0 { large } else { small },
            -weight * (small * large),
        ]
    }
}

/// `weight` log Φ(sign·f); zero where sign·f ≤ −[`TAIL`]: there ρ + z loses its digits.
struct LogProbit {
    sign: f64,
    weight: f64,
}

impl Formula for LogProbit {
    #[inline(always)]
    fn at<const FMA: bool>(&self, f: f64) -> [f64; 3] {
        let z = self.sign * f;
        let weight = if z <= -TAIL { 0.0 } else { self.weight };
        // beyond there is nothing left of the upper tail
        let z = if z < -40.0 { -40.0 } else { z };
        let z = if z > 40.0 { 40.0 } else { z };
        // the smaller of z's tails, q = 1 − Φ(|z|)
        let ratio = exp::mills::<FMA>(z.abs());
        let density = exp::exp::<FMA>(-0.5 * z * z) / TAU.sqrt();
        let q = ratio * density;
        let lower = z < 0.0;
        let p = if lower { q } else { 1.0 - q };
        // log Φ is log q, or −log(1 + q/(1 − q)) without the loss of digits of 1 − q
        let odds = q / (1.0 - q);
        let one_more = 1.0 + odds;
        let rest = (odds - (one_more - 1.0)) / one_more;
        let log = exp::ln_with_rest::<FMA>(
            if lower { q } else { one_more },
            if lower { 0.0 } else { rest },
        );
        let rho = density / p;
        [
            weight * if lower { log } else { -log },
            weight * self.sign * rho,
            -weight * (rho * (rho + z)),
        ]
    }
}

/// A positive number r of a latent value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Positive {
    /// eᶠ.
    #[default]
    Exp,
    /// u log(1 + eᶠ), where the unit u is that of the numbers: then f does not depend on what they are measured in. In a unit
    /// far smaller than the numbers r is f itself, and a Gaussian q would have to keep off the values below 0.
    Softplus {
        /// u; 1 where it is neither given nor found in targets.
        unit: Option<f64>,
    },
}

impl Positive {
    /// Returns the name in specifications.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exp => "exp",
            Self::Softplus { .. } => "softplus",
        }
    }

    /// Takes the unit from a typical number, unless it is known.
    pub fn adopt_unit(&mut self, typical: f64) {
        if let Self::Softplus { unit: unit @ None } = self
            && typical > 0.0
            && typical.is_finite()
        {
            *unit = Some(typical);
        }
    }

    /// Writes the entries of a specification, but for the default.
    pub fn write(self, json: &mut Value) {
        if let Self::Softplus { unit } = self {
            json["link"] = json!(self.name());
            if let Some(unit) = unit {
                json["unit"] = json!(unit);
            }
        }
    }

    fn unit(self) -> f64 {
        match self {
            Self::Exp => 1.0,
            Self::Softplus { unit } => unit.unwrap_or(1.0),
        }
    }

    /// Returns the number r with its first and second derivative.
    pub fn value(self, f: f64) -> [f64; 3] {
        match self {
            Self::Exp => [f.exp(); 3],
            Self::Softplus { .. } => {
                let slope = sigmoid(f);
                [softplus(f), slope, slope * sigmoid(-f)].map(|v| self.unit() * v)
            }
        }
    }

    /// Returns log r with its first and second derivative.
    pub fn log(self, f: f64) -> [f64; 3] {
        let unit = match self {
            Self::Exp => return [f, 1.0, 0.0],
            Self::Softplus { .. } => self.unit().ln(),
        };
        // log(1 + eᶠ) = eᶠ(1 − eᶠ/2 + …)
        if f < -18.0 {
            let e = f.exp();
            return [unit + f - 0.5 * e, 1.0 - 0.5 * e, -0.5 * e];
        }
        let r = softplus(f);
        let slope = sigmoid(f) / r;
        [unit + r.ln(), slope, slope * (sigmoid(-f) - slope)]
    }

    /// Returns f of a positive number.
    pub fn inverse(self, r: f64) -> f64 {
        match self {
            Self::Exp => r.ln(),
            Self::Softplus { .. } => {
                let r = r / self.unit();
                r + (-(-r).exp_m1()).ln()
            }
        }
    }

    /// Returns the variance of f that kernels start with, for r of this mean and variance: 1 where f is a logarithm. Where r is
    /// much more than its unit, so that f is r in that unit, a value below 0 is as good as impossible then.
    pub fn latent_variance(self, mean: f64, variance: f64) -> f64 {
        let (mean, variance) = (mean / self.unit(), variance / self.unit().powi(2));
        match self {
            Self::Softplus { .. } if mean > 1.0 => variance.min((mean / 8.0).powi(2)).max(1.0),
            _ => 1.0,
        }
    }

    /// Returns the mean and variance of r for f ~ N(mean, variance) if there is a closed form.
    pub fn moments(self, mean: f64, variance: f64) -> Option<(f64, f64)> {
        match self {
            Self::Exp => {
                let expected = (mean + 0.5 * variance).exp();
                // in logarithms: nothing times infinity
                Some((expected, (2.0 * mean + variance + inverse_softplus(variance)).exp()))
            }
            Self::Softplus { .. } => None,
        }
    }

    /// Returns the distance from the real line of the nearest singularity.
    pub fn pole(self) -> f64 {
        match self {
            Self::Exp => f64::INFINITY,
            Self::Softplus { .. } => PI,
        }
    }
}

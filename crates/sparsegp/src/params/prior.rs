//! Priors: densities of constrained values. No Jacobian of the transform is added, so that the mode
//! does not depend on how a value is parameterised.

use super::{Bounds, Param, Visitor};
use crate::error::Error;
use crate::special::scaled_exponential_integral;
use rand::Rng;
use rand_distr::{Distribution, Gamma, StandardNormal};
use serde::{Deserialize, Serialize};
use statrs::function::gamma::ln_gamma;

/// A univariate density; a vector parameter has independent entries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Prior {
    /// Gamma with shape `concentration` and inverse scale `rate`.
    #[serde(alias = "Gamma")]
    Gamma {
        /// Shape.
        concentration: f64,
        /// Inverse scale.
        rate: f64,
    },
    /// The logarithm is normal with mean `loc` and standard deviation `scale`.
    #[serde(alias = "LogNormal")]
    LogNormal {
        /// Mean of the logarithm.
        loc: f64,
        /// Standard deviation of the logarithm.
        scale: f64,
    },
    /// Normal.
    #[serde(alias = "Normal")]
    Normal {
        /// Mean.
        loc: f64,
        /// Standard deviation.
        scale: f64,
    },
    /// Normal with mean 0, folded to the positive numbers.
    #[serde(alias = "HalfNormal")]
    HalfNormal {
        /// Standard deviation of the normal before folding.
        scale: f64,
    },
    /// Inverse gamma with shape `concentration` and `scale`.
    #[serde(alias = "InverseGamma")]
    InverseGamma {
        /// Shape.
        concentration: f64,
        /// Scale.
        scale: f64,
    },
    /// Cauchy about 0, folded to the positive numbers (Gelman 2006).
    #[serde(alias = "HalfCauchy")]
    HalfCauchy {
        /// The median.
        scale: f64,
    },
    /// Uniform between two numbers, which are bounds of the parameter too.
    #[serde(alias = "Uniform")]
    Uniform {
        /// The least value.
        low: f64,
        /// The largest value.
        high: f64,
    },
    /// Normal with mean 0 and a standard deviation that is half-Cauchy (the horseshoe of Carvalho, Polson & Scott 2010): most
    /// of the mass near 0, where the density is infinite, and heavy tails.
    #[serde(alias = "Horseshoe")]
    Horseshoe {
        /// The median of the standard deviation.
        scale: f64,
    },
}

/// Standard deviation of the logarithms of a group about their common place.
const ALIKE: f64 = 0.3;

/// Numbers of a parameter, by their places, whose logarithms a log-normal prior takes for alike, such as the lengthscales of the
/// levels of one column: log vₖ = log c + m + eₖ with the mode c of the prior, m ~ N(0, scale²) for all of them and
/// eₖ ~ N(0, 0.3²).
pub type Group = Vec<usize>;

/// Returns the log density of the logarithms of a group about `centre` but for a constant; adds its slopes by the values.
fn of_group(
    group: &Group,
    (centre, scale): (f64, f64),
    values: &[f64],
    slopes: Option<&mut [f64]>,
) -> f64 {
    let count = group.len() as f64;
    let away: Vec<f64> = group.iter().map(|&at| (values[at] / centre).ln()).collect();
    let mean = away.iter().sum::<f64>() / count;
    let (own, common) = (ALIKE * ALIKE, ALIKE * ALIKE + count * scale * scale);
    if let Some(slopes) = slopes {
        for (&at, away) in group.iter().zip(&away) {
            slopes[at] -= ((away - mean) / own + mean / common) / values[at];
        }
    }
    let squares: f64 = away.iter().map(|a| (a - mean).powi(2)).sum();
    -0.5 * (squares / own + count * mean * mean / common)
}

impl Param {
    /// Gives the parameter a prior, or takes it away. A uniform one bounds the values too, and its bounds go with it.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a prior that is not a density, or a uniform one outside of the parameter's range.
    pub fn set_prior(&mut self, path: &str, prior: Option<Prior>) -> crate::error::Result<()> {
        let invalid = |reason| Error::InvalidParameter { path: path.to_owned(), reason };
        if let Some(prior) = &prior {
            prior.check().map_err(|e| invalid(format!("prior: {e}")))?;
        }
        let own = |prior: &Option<Prior>| prior.and_then(|prior| prior.support());
        if let Some(bounds) = own(&self.prior).filter(|_| prior != self.prior) {
            // those that the other prior brought
            let left = |bound: Option<f64>, own| bound.filter(|bound| *bound != own);
            let kept = self.bounds;
            let kept = Bounds { min: left(kept.min, bounds[0]), max: left(kept.max, bounds[1]) };
            self.bound(path, kept)?;
        }
        if let Some([low, high]) = own(&prior) {
            let Bounds { min, max } = self.bounds;
            // that it is positive, say, bounds it already
            let inside = |bound: f64| self.natural.contains(bound).then_some(bound);
            let least = [min, inside(low)].into_iter().flatten().reduce(f64::max);
            let most = [max, inside(high)].into_iter().flatten().reduce(f64::min);
            self.bound(path, Bounds { min: least, max: most })?;
            if !self.transform.contains(0.5 * (low + high)) && !self.natural.contains(high) {
                return Err(invalid(format!(
                    "prior: uniform from {low} to {high} is outside {}",
                    self.natural.range()
                )));
            }
        }
        self.prior = prior;
        Ok(())
    }
}

/// Returns the log prior density of a parameter; adds its slopes by the values.
fn of_param(p: &Param, prior: &Prior, mut slopes: Option<&mut [f64]>) -> f64 {
    let mut total = 0.0;
    let (groups, about) = match prior {
        Prior::LogNormal { loc, scale } => (&p.groups[..], ((loc - scale * scale).exp(), *scale)),
        _ => (&[][..], (1.0, 1.0)),
    };
    for group in groups {
        total += of_group(group, about, &p.value, slopes.as_deref_mut());
    }
    let single = |i: &usize| p.is_first(*i) && groups.iter().all(|group| !group.contains(i));
    for i in (0..p.value.len()).filter(single) {
        total += prior.log_density(p.value[i]);
        if let Some(slopes) = &mut slopes {
            slopes[i] += prior.slope(p.value[i]);
        }
    }
    total
}

/// Returns the sum of the log prior densities; adds its gradient with respect to the constrained
/// values (frozen parameters included in the value: they are part of the posterior density).
pub fn log_prior<'a>(visit: impl FnOnce(Visitor<'a, '_>), gradient: &mut [f64]) -> f64 {
    let (mut total, mut offset) = (0.0, 0);
    visit(&mut |_, p| {
        if let Some(prior) = &p.prior {
            total += of_param(p, prior, Some(&mut gradient[offset..]));
        }
        offset += p.value.len();
    });
    total
}

/// Returns the part of [`log_prior`] that was not asked for.
pub fn assumed_log_prior<'a>(visit: impl FnOnce(Visitor<'a, '_>)) -> f64 {
    let mut total = 0.0;
    visit(&mut |_, p| {
        if let Some(prior) = p.prior.filter(|_| p.assumed) {
            total += of_param(p, &prior, None);
        }
    });
    total
}

const HALF_LOG_2PI: f64 = 0.918_938_533_204_672_8;
const LOG_PI: f64 = 1.144_729_885_849_400_2;
const LOG_2_OVER_PI: f64 = std::f64::consts::LN_2 - LOG_PI;

/// Returns an angle between 0 and π/2, never the latter.
fn quarter(generator: &mut impl Rng) -> f64 {
    std::f64::consts::FRAC_PI_2 * crate::rng::uniform(generator)
}

/// Returns x²/2τ², kept off 0 where the density is infinite.
fn horseshoe_argument(x: f64, scale: f64) -> f64 {
    let z = x / scale;
    (0.5 * z * z).max(1e-300)
}

impl Prior {
    /// Refuses parameters that make no density.
    ///
    /// # Errors
    /// A sentence that names the parameter.
    pub fn check(&self) -> Result<(), String> {
        let (location, positive) = match *self {
            Prior::Gamma { concentration, rate } => {
                (0.0, [("concentration", concentration), ("rate", rate)])
            }
            Prior::LogNormal { loc, scale } | Prior::Normal { loc, scale } => {
                (loc, [("scale", scale); 2])
            }
            Prior::HalfNormal { scale } => (0.0, [("scale", scale); 2]),
            Prior::HalfCauchy { scale } | Prior::Horseshoe { scale } => {
                (0.0, [("scale", scale); 2])
            }
            Prior::Uniform { low, high } => {
                if !(low < high && low.is_finite() && high.is_finite()) {
                    return Err(format!(
                        "`low` is {low} and `high` is {high}; they must be finite, `low` less than `high`"
                    ));
                }
                return Ok(());
            }
            Prior::InverseGamma { concentration, scale } => {
                (0.0, [("concentration", concentration), ("scale", scale)])
            }
        };
        if !location.is_finite() {
            return Err(format!("`loc` is {location}; it must be a finite number"));
        }
        match positive.iter().find(|(_, v)| !(*v > 0.0 && v.is_finite())) {
            Some((name, v)) => Err(format!("`{name}` is {v}; it must be a positive number")),
            None => Ok(()),
        }
    }

    /// Returns the ends of where the density is not 0, if it has ends.
    pub fn support(&self) -> Option<[f64; 2]> {
        match *self {
            Prior::Uniform { low, high } => Some([low, high]),
            _ => None,
        }
    }

    /// Draws a value.
    pub fn sample(&self, generator: &mut impl Rng) -> f64 {
        let mut normal = || -> f64 { StandardNormal.sample(generator) };
        match *self {
            Prior::LogNormal { loc, scale } => (loc + scale * normal()).exp(),
            Prior::Normal { loc, scale } => loc + scale * normal(),
            Prior::HalfNormal { scale } => (scale * normal()).abs(),
            Prior::Gamma { concentration, rate } => {
                // parameters were checked when they were read
                Gamma::new(concentration, 1.0 / rate).map_or(f64::NAN, |g| g.sample(generator))
            }
            Prior::HalfCauchy { scale } => scale * quarter(generator).tan(),
            Prior::Uniform { low, high } => low + (high - low) * crate::rng::uniform(generator),
            Prior::Horseshoe { scale } => {
                let deviation = scale * quarter(generator).tan();
                let z: f64 = StandardNormal.sample(generator);
                deviation * z
            }
            Prior::InverseGamma { concentration, scale } => {
                let inverse = Gamma::new(concentration, 1.0 / scale);
                inverse.map_or(f64::NAN, |g| 1.0 / g.sample(generator))
            }
        }
    }

    /// Returns the log density at `x`.
    pub fn log_density(&self, x: f64) -> f64 {
        match *self {
            Prior::Gamma { concentration: k, rate } => {
                k * rate.ln() - ln_gamma(k) + (k - 1.0) * x.ln() - rate * x
            }
            Prior::LogNormal { loc, scale } => {
                let z = (x.ln() - loc) / scale;
                -0.5 * z * z - scale.ln() - x.ln() - HALF_LOG_2PI
            }
            Prior::Normal { loc, scale } => {
                let z = (x - loc) / scale;
                -0.5 * z * z - scale.ln() - HALF_LOG_2PI
            }
            Prior::HalfNormal { scale } => {
                let z = x / scale;
                -0.5 * z * z - scale.ln() - HALF_LOG_2PI + std::f64::consts::LN_2
            }
            Prior::InverseGamma { concentration: k, scale } => {
                k * scale.ln() - ln_gamma(k) - (k + 1.0) * x.ln() - scale / x
            }
            Prior::HalfCauchy { scale } => {
                let z = x / scale;
                LOG_2_OVER_PI - scale.ln() - (z * z).ln_1p()
            }
            Prior::Uniform { low, high } if x >= low && x <= high => -(high - low).ln(),
            Prior::Uniform { .. } => f64::NEG_INFINITY,
            // p(x) = eᵗ E₁(t) / {τ √(2π³)} with t = x²/2τ²
            // eᵗE₁(t)/(τ√2π³), t = x²/2τ² (Carvalho, Polson & Scott 2010, proof of Theorem 1)
            Prior::Horseshoe { scale } => {
                let t = horseshoe_argument(x, scale);
                scaled_exponential_integral(t).ln() - scale.ln() - LOG_PI - HALF_LOG_2PI
            }
        }
    }

    /// Returns the derivative of the log density.
    pub fn slope(&self, x: f64) -> f64 {
        match *self {
            Prior::Gamma { concentration, rate } => (concentration - 1.0) / x - rate,
            Prior::LogNormal { loc, scale } => -((x.ln() - loc) / (scale * scale) + 1.0) / x,
            Prior::Normal { loc, scale } => -(x - loc) / (scale * scale),
            Prior::HalfNormal { scale } => -x / (scale * scale),
            Prior::InverseGamma { concentration, scale } => {
                -(concentration + 1.0) / x + scale / (x * x)
            }
            Prior::HalfCauchy { scale } => -2.0 * x / (scale * scale + x * x),
            Prior::Uniform { .. } => 0.0,
            // ∂ log{eᵗ E₁(t)}/∂t = 1 − 1/{t eᵗ E₁(t)}
            Prior::Horseshoe { scale } => {
                let t = horseshoe_argument(x, scale);
                (1.0 - 1.0 / (t * scaled_exponential_integral(t))) * x / (scale * scale)
            }
        }
    }
}

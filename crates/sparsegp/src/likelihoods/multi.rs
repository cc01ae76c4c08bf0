//! What likelihoods of several latent functions share: classes as targets, reading specifications,
//! working memory.

use super::Target;
use crate::error::{Error, Result, nearest};
use crate::params::Param;
use serde_json::Value;

/// Below this variance the slope of the rule, which divides by √v, is left for ½ E[g″]: there both
/// agree, and the division would magnify rounding.
pub(super) const SMALL_VARIANCE: f64 = 1e-10;

/// A sum of positive terms that are given by their logarithms.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogSum {
    largest: f64,
    sum: f64,
}

impl LogSum {
    pub(super) const EMPTY: LogSum = LogSum { largest: f64::NEG_INFINITY, sum: 0.0 };

    /// Adds w eˣ.
    pub(super) fn add(&mut self, x: f64, w: f64) {
        if x == f64::NEG_INFINITY {
            return;
        }
        if x <= self.largest {
            self.sum += w * (x - self.largest).exp();
        } else {
            self.sum = self.sum * (self.largest - x).exp() + w;
            self.largest = x;
        }
    }

    /// Returns the logarithm of the sum.
    pub(super) fn ln(self) -> f64 {
        self.largest + self.sum.ln()
    }
}

/// Lends `n` zeros: from the stack up to 256, so that an expectation does not allocate.
pub(super) fn scratch<R>(n: usize, work: impl FnOnce(&mut [f64]) -> R) -> R {
    if n <= 256 { work(&mut [0.0; 256][..n]) } else { work(&mut vec![0.0; n]) }
}

/// Returns what is wrong with a class as a target.
pub(super) fn check_class(target: Target, classes: usize) -> std::result::Result<(), String> {
    let y = target.y;
    if y >= 0.0 && y < classes as f64 && y.fract() == 0.0 {
        return Ok(());
    }
    Err(format!("is not a class: there are {classes} classes, 0, …, {}", classes - 1))
}

/// Refuses numbers of classes that make no choice.
pub(super) fn check_classes(name: &str, classes: usize) -> Result<()> {
    match classes {
        2..=10_000 => Ok(()),
        _ => Err(Error::Invalid(format!(
            "{name}: {classes} classes; give a number of classes between 2 and 10000"
        ))),
    }
}

/// Returns the mean and variance of the class index.
pub(super) fn index_moments(p: &[f64]) -> (f64, f64) {
    let mean: f64 = p.iter().enumerate().map(|(k, p)| k as f64 * p).sum();
    (mean, p.iter().enumerate().map(|(k, p)| (k as f64 - mean).powi(2) * p).sum())
}

/// Returns the first class at which the cumulative probability reaches `level`.
pub(super) fn index_quantile(p: &[f64], level: f64) -> f64 {
    let mut rest = level;
    for (k, p) in p.iter().enumerate() {
        rest -= p;
        if rest <= 0.0 {
            return k as f64;
        }
    }
    (p.len() - 1) as f64
}

/// Returns P(class ≤ y), for y from 0.
pub(super) fn index_cdf(p: &[f64], y: f64) -> f64 {
    p.iter().take(y as usize + 1).sum::<f64>().min(1.0)
}

/// Returns the frequencies of the classes among the targets, each with half an observation more.
pub(super) fn frequencies(targets: &[Target], classes: usize) -> Vec<f64> {
    let mut counts = vec![0.5; classes];
    for t in targets.iter().filter(|t| check_class(**t, classes).is_ok()) {
        counts[t.y as usize] += 1.0;
    }
    let total: f64 = counts.iter().sum();
    counts.iter().map(|c| c / total).collect()
}

/// Draws a number uniform on [0, 1).
pub(super) fn uniform(rng: &mut dyn rand::Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// Beyond, a quantile is infinite.
const LARGEST: f64 = 1e300;

/// Returns a number between two: in the middle, or of one sign and of different sizes at the middle
/// of their logarithms.
fn between(low: f64, high: f64) -> f64 {
    if low > 0.0 && high > 4.0 * low {
        low.sqrt() * high.sqrt()
    } else if high < 0.0 && low < 4.0 * high {
        -((-low).sqrt() * (-high).sqrt())
    } else {
        0.5 * (low + high)
    }
}

/// Returns the point where an increasing function reaches `level`: steps away from `start` that
/// grow by more and more, then regula falsi (Illinois), or halving where that is slow, down to
/// rounding (10⁻¹³ of the smaller tail).
pub(super) fn invert(start: f64, step: f64, level: f64, cdf: impl Fn(f64) -> f64) -> f64 {
    let rounding = 1e-13 * level.min(1.0 - level);
    let mut width = step.max(f64::MIN_POSITIVE);
    let first = cdf(start) - level;
    let (mut low, mut high) = ((start, first), (start, first));
    let mut factor = 1.0;
    let mut wider = |width: f64| {
        factor *= 2.0;
        (factor * width).min(LARGEST)
    };
    while low.1 > 0.0 && low.0 > -LARGEST {
        high = low;
        low = (low.0 - width, cdf(low.0 - width) - level);
        width = wider(width);
    }
    while high.1 < 0.0 && high.0 < LARGEST {
        low = high;
        high = (high.0 + width, cdf(high.0 + width) - level);
        width = wider(width);
    }
    // the values that regula falsi uses; those of an end that stays are halved
    let (mut at_low, mut at_high) = (low.1, high.1);
    let mut last = f64::INFINITY;
    for _ in 0..2000 {
        let gap = high.0 - low.0;
        if gap <= 1e-14 * step + 4.0 * f64::EPSILON * low.0.abs().max(high.0.abs()) {
            break;
        }
        let halve = gap > 0.5 * last || !(at_low < 0.0 && at_high > 0.0);
        last = if halve { f64::INFINITY } else { gap };
        let secant = (low.0 * at_high - high.0 * at_low) / (at_high - at_low);
        let point = if halve { between(low.0, high.0) } else { secant };
        if !(point > low.0 && point < high.0) {
            if halve {
                break;
            }
            last = 0.0;
            continue;
        }
        let value = cdf(point) - level;
        if value.abs() <= rounding {
            return point;
        } else if value < 0.0 {
            low = (point, value);
            (at_low, at_high) = (value, 0.5 * at_high);
        } else {
            high = (point, value);
            (at_low, at_high) = (0.5 * at_low, value);
        }
    }
    0.5 * (low.0 + high.0)
}

/// A specification of the form `{"type": …, option: …, …}` that knows its entries.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'a> {
    name: &'static str,
    object: &'a serde_json::Map<String, Value>,
}

impl<'a> Spec<'a> {
    /// Refuses entries other than `type` and `known`.
    pub(super) fn new(json: &'a Value, name: &'static str, known: &[&str]) -> Result<Self> {
        let Some(object) = json.as_object() else {
            return Err(Error::Invalid(format!("likelihood {name}: {json} is not an object")));
        };
        if let Some(key) = object.keys().find(|k| *k != "type" && !known.contains(&k.as_str())) {
            return Err(Error::Invalid(format!(
                "likelihood {name}: unknown entry `{key}`; nearest: {}",
                nearest(key, known.iter().copied()).join(", ")
            )));
        }
        Ok(Self { name, object })
    }

    /// Returns the name of what it is of.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns an entry as it stands.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key)
    }

    /// Returns an option that serde can read; none if it is absent.
    pub(super) fn option<T: serde::de::DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        self.object
            .get(key)
            .map(|entry| serde_json::from_value(entry.clone()))
            .transpose()
            .map_err(|e| Error::Invalid(format!("likelihood {}: {key}: {e}", self.name)))
    }

    /// Reads a parameter, if it is there.
    pub(super) fn param(&self, key: &str, param: &mut Param) -> Result<()> {
        let Some(entry) = self.object.get(key) else { return Ok(()) };
        let gives = !entry.is_object() || entry.get("value").is_some();
        param.read_json(&format!("likelihood.{key}"), entry)?;
        param.given |= gives;
        Ok(())
    }
}

/// Refuses sizes of Gauss–Hermite rules that cannot be built.
pub(super) fn check_points(name: &str, points: usize, most: usize) -> Result<()> {
    match points >= 1 && points <= most {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "likelihood {name}: Gauss–Hermite with {points} points; give between 1 and {most}"
        ))),
    }
}

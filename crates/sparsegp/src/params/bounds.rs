//! Bounds that somebody gave a parameter, within the range that it has by nature.

use super::{Named, Transform};
use serde_json::Value;

/// The least and the largest value that were given, on the model's scale; neither is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// The least value.
    pub min: Option<f64>,
    /// The largest value.
    pub max: Option<f64>,
}

/// How far from a bound a starting value is kept: this part of the interval's length, of logarithms
/// where the parameter is positive. Nearer to it gradients are small.
const MARGIN: f64 = 0.05;
/// That distance at most, and where there is no second bound.
const LARGEST_MARGIN: f64 = 0.1;

/// Within this part of the interval's length from a bound a value is at it.
const AT: f64 = 1e-3;
/// Where an optimiser's way begins that would begin at a bound.
const OFF: f64 = 0.5 * AT;

impl Bounds {
    /// Returns whether there are any.
    pub fn any(self) -> bool {
        self.min.is_some() || self.max.is_some()
    }

    /// Reads a bound: a number, or `null` for none.
    pub(super) fn read(json: &Value, name: &str) -> Result<Option<f64>, String> {
        match json {
            Value::Null => Ok(None),
            Value::Number(number) => Ok(number.as_f64()),
            other => Err(format!("`{name}` is a number, not {other}")),
        }
    }

    /// Returns the transform of the values within these bounds, where `natural` is that without
    /// them.
    ///
    /// # Errors
    /// A sentence for bounds in the wrong order or outside of the natural range.
    pub(super) fn within(self, natural: Transform) -> Result<Transform, String> {
        for (name, bound) in [("min", self.min), ("max", self.max)] {
            if let Some(bound) = bound.filter(|bound| !natural.contains(*bound)) {
                let range = natural.range();
                return Err(format!("`{name}` is {bound}; it must be one of {range}"));
            }
        }
        if let (Some(min), Some(max)) = (self.min, self.max)
            && min >= max
        {
            return Err(format!(
                "`min` is {min} and `max` is {max}; `min` must be less than `max`"
            ));
        }
        let (lower, upper) = natural.ends();
        Ok(match (self.min.or(lower), self.max.or(upper)) {
            _ if !self.any() => natural,
            (Some(lower), Some(upper)) => Transform::Interval { lower, upper },
            (Some(lower), None) => match natural {
                Transform::Exp { .. } => Transform::Exp { lower },
                _ => Transform::Softplus { lower },
            },
            (None, Some(upper)) => Transform::Below { upper },
            (None, None) => natural,
        })
    }

    /// Returns the way of measuring within these bounds.
    pub(crate) fn ruler(self, natural: Transform) -> Ruler {
        let base = natural.positive_above();
        let of = |bound: f64| base.map_or(bound, |base| (bound - base).ln());
        let (lower, upper) = match base {
            Some(_) => (self.min, self.max),
            None => {
                let (lower, upper) = natural.ends();
                (self.min.or(lower), self.max.or(upper))
            }
        };
        Ruler { base, low: lower.map(of), high: upper.map(of) }
    }
}

/// Measures values of a parameter with bounds: by the logarithm of what they are above its natural lower
/// bound where it has only that, else as they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ruler {
    /// The natural lower bound of what is measured by logarithms.
    base: Option<f64>,
    /// The bounds so measured; none where there is none, or it is infinitely far.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl Ruler {
    /// Returns a value as it is measured.
    pub fn measure(self, value: f64) -> f64 {
        self.base.map_or(value, |base| (value - base).ln())
    }

    /// Returns the value of a measure.
    pub fn value(self, measure: f64) -> f64 {
        self.base.map_or(measure, |base| base + measure.exp())
    }

    /// Returns ∂ value / ∂ measure, as a function of the measure.
    pub fn slope(self, measure: f64) -> f64 {
        if self.base.is_some() { measure.exp() } else { 1.0 }
    }

    /// Returns how much larger the value of a measure is than that of a measure which is less by
    /// `by`.
    pub fn rise(self, measure: f64, by: f64) -> f64 {
        self.slope(measure) * if self.base.is_some() { -(-by).exp_m1() } else { by }
    }

    /// Returns the middle of the interval; with one end the measure of this value, or one from it.
    pub fn middle(self, value: f64) -> f64 {
        let measure = self.measure(value);
        match (self.low, self.high) {
            (Some(low), Some(high)) => 0.5 * (low + high),
            (Some(low), None) => measure.max(low + 1.0),
            (None, Some(high)) => measure.min(high - 1.0),
            (None, None) => measure,
        }
    }

    /// Returns whether a measure is at a bound with the other measure.
    pub(super) fn is_at(self, measure: f64, bound: f64) -> bool {
        (measure - bound).abs() <= AT * self.length().unwrap_or(1.0)
    }

    /// Returns the length of the interval; none if it has one end.
    pub fn length(self) -> Option<f64> {
        Some(self.high? - self.low?)
    }

    /// Returns the measure moved to `share` of the interval inside; of an interval with one end to
    /// that distance.
    fn clip(self, measure: f64, share: f64, most: f64) -> f64 {
        let margin = self.length().map_or(most, |length| (share * length).min(most));
        let low = self.low.map_or(f64::NEG_INFINITY, |low| low + margin);
        let high = self.high.map_or(f64::INFINITY, |high| high - margin);
        measure.max(low).min(high)
    }

    /// Returns the measure nearest to this one that does not count as at a bound for an optimiser,
    /// whose gradient vanishes there.
    pub fn off_bounds(self, measure: f64) -> f64 {
        self.clip(measure, OFF, OFF)
    }

    /// Returns the value nearest to this one that is within the bounds and from which an optimiser
    /// can still move.
    pub fn nearest(self, value: f64) -> f64 {
        self.value(self.off_bounds(self.measure_or_lowest(value)))
    }

    /// Returns the value nearest to this one from which training starts.
    pub(super) fn start(self, value: f64) -> f64 {
        self.value(self.clip(self.measure_or_lowest(value), MARGIN, LARGEST_MARGIN))
    }

    /// Returns the measure of a value; values below the natural range are as low as can be.
    fn measure_or_lowest(self, value: f64) -> f64 {
        let measure = self.measure(value);
        if measure.is_nan() && !value.is_nan() { f64::NEG_INFINITY } else { measure }
    }
}

/// Says which parameters a training left at a bound that they were given: one sentence each.
pub fn remarks(params: &[Named<'_>]) -> Vec<String> {
    let of = |(path, param): &Named<'_>| -> Vec<String> {
        let one = param.len() == 1;
        let sentence = |(at, name, bound): (usize, &str, f64)| {
            let value = param.value()[at];
            let path = if one { path.clone() } else { format!("{path}[{at}]") };
            format!(
                "{path} ended at its bound: it is {value:.6} and `{name}` is {bound}, on the model's scale; the data ask \
                 for a value beyond"
            )
        };
        param.at_bounds().into_iter().map(sentence).collect()
    };
    params.iter().filter(|(_, param)| !param.frozen).flat_map(of).collect()
}

//! Maps between constrained values and free numbers.

use serde::{Deserialize, Serialize};

/// How a constrained value is written as a free real number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "type")]
pub enum Transform {
    /// Any real number.
    Identity,
    /// `lower + log(1 + eˣ)`: numbers above `lower`.
    Softplus {
        /// Lower bound, not reached.
        lower: f64,
    },
    /// `lower + eˣ`: numbers above `lower`.
    Exp {
        /// Lower bound, not reached.
        lower: f64,
    },
    /// `lower + (upper − lower) / (1 + e⁻ˣ)`: numbers strictly between.
    Interval {
        /// Lower bound, not reached.
        lower: f64,
        /// Upper bound, not reached.
        upper: f64,
    },
    /// `upper − log(1 + e⁻ˣ)`: numbers below `upper`.
    Below {
        /// Upper bound, not reached.
        upper: f64,
    },
}

impl Transform {
    /// Positive numbers, by softplus.
    pub const POSITIVE: Transform = Transform::Softplus { lower: 0.0 };

    /// Returns whether the transform can produce `value`.
    pub fn contains(self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Transform::Identity => true,
                Transform::Softplus { lower } | Transform::Exp { lower } => value > lower,
                Transform::Interval { lower, upper } => value > lower && value < upper,
                Transform::Below { upper } => value < upper,
            }
    }

    /// Returns the lower and the upper end of the range, where it has them.
    pub fn ends(self) -> (Option<f64>, Option<f64>) {
        match self {
            Transform::Identity => (None, None),
            Transform::Softplus { lower } | Transform::Exp { lower } => (Some(lower), None),
            Transform::Interval { lower, upper } => (Some(lower), Some(upper)),
            Transform::Below { upper } => (None, Some(upper)),
        }
    }

    /// Returns the lower bound of numbers that have only that.
    pub fn positive_above(self) -> Option<f64> {
        match self {
            Transform::Softplus { lower } | Transform::Exp { lower } => Some(lower),
            _ => None,
        }
    }

    /// Returns the logarithm of what a value is above the lower bound, for numbers that have only
    /// that bound.
    pub fn logarithm(self, value: f64) -> Option<f64> {
        self.positive_above().map(|lower| (value - lower).ln())
    }

    /// Returns the free number of such a logarithm, and its slope in the logarithm.
    pub fn free_of_logarithm(self, logarithm: f64) -> (f64, f64) {
        match self {
            Transform::Softplus { .. } => {
                let y = logarithm.clamp(-700.0, 700.0).exp();
                let slope = -(-y).exp_m1();
                (y + slope.ln(), y / slope)
            }
            _ => (logarithm, 1.0),
        }
    }

    /// Returns the range in words.
    pub fn range(self) -> String {
        match self {
            Transform::Identity => "the finite numbers".into(),
            Transform::Softplus { lower } | Transform::Exp { lower } if lower == 0.0 => {
                "the positive numbers".into()
            }
            Transform::Softplus { lower } | Transform::Exp { lower } => {
                format!("the numbers above {lower}")
            }
            Transform::Interval { lower, upper } => format!("the interval ({lower}, {upper})"),
            Transform::Below { upper } => format!("the numbers below {upper}"),
        }
    }

    /// Returns the free number of a constrained value.
    pub fn to_free(self, value: f64) -> f64 {
        match self {
            Transform::Identity => value,
            Transform::Softplus { lower } => {
                let y = value - lower;
                // log(eʸ − 1), without overflow for large y
                y + (-(-y).exp_m1()).ln()
            }
            Transform::Exp { lower } => (value - lower).ln(),
            Transform::Interval { lower, upper } => ((value - lower) / (upper - value)).ln(),
            Transform::Below { upper } => -Transform::POSITIVE.to_free(upper - value),
        }
    }

    /// Returns the constrained value of a free number. Strictly inside the range: where rounding
    /// would reach the bound, the nearest number inside is returned.
    pub fn to_constrained(self, free: f64) -> f64 {
        let above = |lower: f64, excess: f64| {
            let value = lower + excess.max(f64::MIN_POSITIVE);
            if value > lower || value.is_nan() { value } else { lower.next_up() }
        };
        match self {
            Transform::Identity => free,
            Transform::Softplus { lower } => {
                if free.is_nan() {
                    return free;
                }
                above(lower, free.max(0.0) + (-free.abs()).exp().ln_1p())
            }
            Transform::Exp { lower } => {
                if free.is_nan() {
                    return free;
                }
                above(lower, free.exp())
            }
            Transform::Interval { lower, upper } => {
                if free.is_nan() {
                    return free;
                }
                let fraction = if free >= 0.0 {
                    1.0 / (1.0 + (-free).exp())
                } else {
                    free.exp() / (1.0 + free.exp())
                };
                (lower + (upper - lower) * fraction).clamp(lower.next_up(), upper.next_down())
            }
            Transform::Below { upper } => {
                let value = upper - Transform::POSITIVE.to_constrained(-free);
                if value < upper || value.is_nan() { value } else { upper.next_down() }
            }
        }
    }

    /// Returns ∂ value / ∂ free, as a function of the constrained value.
    pub fn slope_at(self, value: f64) -> f64 {
        match self {
            Transform::Identity => 1.0,
            // sigmoid(free) = 1 − e^{−y} with y = softplus(free)
            Transform::Softplus { lower } => -(-(value - lower)).exp_m1(),
            Transform::Exp { lower } => value - lower,
            Transform::Interval { lower, upper } => {
                (value - lower) * (upper - value) / (upper - lower)
            }
            Transform::Below { upper } => Transform::POSITIVE.slope_at(upper - value),
        }
    }
}

impl std::fmt::Display for Transform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Transform::Identity => write!(f, "none"),
            Transform::Softplus { lower } if *lower == 0.0 => write!(f, "softplus"),
            Transform::Softplus { lower } => write!(f, "softplus above {lower:e}"),
            Transform::Exp { lower } if *lower == 0.0 => write!(f, "exp"),
            Transform::Exp { lower } => write!(f, "exp above {lower:e}"),
            Transform::Interval { lower, upper } => write!(f, "interval ({lower}, {upper})"),
            Transform::Below { upper } => write!(f, "softplus below {upper:e}"),
        }
    }
}

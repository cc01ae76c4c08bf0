//! What else must hold: bounds of further outcomes.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A further outcome of a trial, which must not be beyond a bound: `weight<=3` or `strength>=40`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Constraint {
    /// Name of the outcome.
    pub name: String,
    /// Its bound.
    pub bound: f64,
    /// Whether values above the bound are allowed, not those below.
    pub at_least: bool,
}

impl Constraint {
    /// Returns by how much a value is beyond the bound; at most 0 where the constraint holds.
    pub fn excess(&self, value: f64) -> f64 {
        if self.at_least { self.bound - value } else { value - self.bound }
    }
}

impl FromStr for Constraint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::Invalid(format!(
                "cannot read the constraint `{text}`: write an outcome with its bound, `weight<=3` or `strength>=40`"
            ))
        };
        let (at_least, (name, bound)) = match (text.split_once("<="), text.split_once(">=")) {
            (Some(parts), None) => (false, parts),
            (None, Some(parts)) => (true, parts),
            _ => return Err(wrong()),
        };
        let bound: f64 = bound.trim().parse().map_err(|_| wrong())?;
        let name = name.trim().to_owned();
        if name.is_empty() || !bound.is_finite() {
            return Err(wrong());
        }
        Ok(Self { name, bound, at_least })
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.name, if self.at_least { ">=" } else { "<=" }, self.bound)
    }
}

impl From<Constraint> for String {
    fn from(own: Constraint) -> Self {
        own.to_string()
    }
}

impl TryFrom<String> for Constraint {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_and_written() {
        let least: Constraint = "strength >= 40".parse().expect("a bound");
        assert_eq!(least.to_string(), "strength>=40");
        assert_eq!((least.excess(45.0), least.excess(30.0)), (-5.0, 10.0));
        let most: Constraint = "weight<=-2.5e-3".parse().expect("a bound");
        assert_eq!((most.name.as_str(), most.excess(0.0)), ("weight", 2.5e-3));
        for text in ["weight", "weight<3", "<=3", "weight<=x", "1<=weight<=3", "a>=inf"] {
            assert!(text.parse::<Constraint>().is_err(), "{text}");
        }
    }
}

//! What values settings take: one check, and one text of what is allowed, for every door.

use crate::error::{Error, Result};
use crate::linalg::Jitter;
use serde_json::{Value, json};

/// The numbers that a setting may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// Above 0.
    Positive,
    /// 0 or more.
    NotNegative,
    /// Above 0 and below 1.
    Fraction,
    /// Above 0 and at most 1.
    Share,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whether, or whether not.
    Flag,
    /// A whole number of at least so much.
    Whole(u64),
    /// A number.
    Number(Bounds),
    /// Seconds; as a text also with a unit.
    Time,
    /// A share of the mean diagonal, or `absolute:NUMBER`.
    Jitter,
    /// One of these words, each with what it means.
    Choice(&'static [(&'static str, &'static str)]),
    /// A text that others read.
    Text,
    /// Several of them.
    Texts,
    /// Pairs of a path and its values.
    Values,
}

impl Bounds {
    fn holds(self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Bounds::Positive => value > 0.0,
                Bounds::NotNegative => value >= 0.0,
                Bounds::Fraction => value > 0.0 && value < 1.0,
                Bounds::Share => value > 0.0 && value <= 1.0,
            }
    }
}

/// Longest time, in seconds: clocks of machines reach no further than some centuries.
const LONGEST: f64 = 1e9;

impl Kind {
    /// Returns what is allowed, to follow "must be".
    pub fn allowed(self) -> String {
        match self {
            Kind::Flag => "true or false".into(),
            Kind::Whole(0) => "a whole number, 0 or more".into(),
            Kind::Whole(least) => format!("a whole number, at least {least}"),
            Kind::Number(Bounds::Positive) => "a positive number".into(),
            Kind::Number(Bounds::NotNegative) => "a number, 0 or more".into(),
            Kind::Number(Bounds::Fraction) => "a number between 0 and 1, such as 0.1".into(),
            Kind::Number(Bounds::Share) => "a number above 0 and at most 1, such as 0.1".into(),
            Kind::Time => {
                "a positive number of seconds, or with a unit: 90s, 5min or 1.5h (1e9 s at most)"
                    .into()
            }
            Kind::Jitter => "a number, 0 or more, such as 1e-6, or absolute:1e-6".into(),
            Kind::Choice(words) => {
                let names: Vec<String> =
                    words.iter().map(|(name, _)| format!("`{name}`")).collect();
                format!("one of {}", names.join(", "))
            }
            Kind::Text => "a text".into(),
            Kind::Texts => "a list of texts".into(),
            Kind::Values => "paths with their values, PATH=VALUE".into(),
        }
    }

    /// Returns whether a value is allowed.
    pub fn holds(self, value: &Value) -> bool {
        match self {
            Kind::Flag => value.is_boolean(),
            Kind::Whole(least) => value.as_u64().is_some_and(|n| n >= least),
            Kind::Number(bounds) => value.as_f64().is_some_and(|v| bounds.holds(v)),
            Kind::Time => value.as_f64().is_some_and(|v| v > 0.0 && v <= LONGEST),
            Kind::Jitter => jitter(value).is_some(),
            Kind::Choice(words) => words.iter().any(|(name, _)| value == name),
            Kind::Text => value.is_string(),
            Kind::Texts => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
            Kind::Values => {
                serde_json::from_value::<Vec<(String, Vec<f64>)>>(value.clone()).is_ok()
            }
        }
    }

    /// Reads the value that a text at the command line says; of several, one of them.
    ///
    /// # Errors
    /// What it must be.
    pub fn read(self, text: &str) -> std::result::Result<Value, String> {
        let number = |text: &str| text.parse::<f64>().map_or(Value::Null, |v| json!(v));
        let value = match self {
            Kind::Flag => text.parse::<bool>().map_or(Value::Null, Value::from),
            Kind::Whole(_) => text.parse::<u64>().map_or(Value::Null, Value::from),
            Kind::Number(_) => number(text),
            Kind::Jitter if !text.contains(':') => number(text),
            Kind::Time => {
                let units = [("min", 60.0), ("h", 3600.0), ("s", 1.0)];
                let found = units.into_iter().find_map(|(u, s)| Some((text.strip_suffix(u)?, s)));
                let (text, unit) = found.unwrap_or((text, 1.0));
                text.trim().parse::<f64>().map_or(Value::Null, |v| json!(v * unit))
            }
            Kind::Texts => return Ok(text.into()),
            Kind::Values => return assignment(text),
            Kind::Jitter | Kind::Choice(_) | Kind::Text => text.into(),
        };
        match self.holds(&value) {
            true => Ok(value),
            false => Err(format!("must be {}", self.allowed())),
        }
    }

    /// Refuses a value that is not allowed, by the name that its setting has where it was given.
    ///
    /// # Errors
    /// [`Error::Invalid`] with name, value and what is allowed.
    pub fn check(self, name: &str, value: &Value) -> Result<()> {
        match self.holds(value) {
            true => Ok(()),
            false => {
                let value = value.as_str().map_or_else(|| value.to_string(), |v| format!("`{v}`"));
                Err(Error::Invalid(format!("{name} is {value}; it must be {}", self.allowed())))
            }
        }
    }
}

/// Reads `PATH=VALUE,…` as a pair.
fn assignment(text: &str) -> std::result::Result<Value, String> {
    let (path, values) = text
        .split_once('=')
        .filter(|(path, _)| !path.is_empty())
        .ok_or("must be PATH=VALUE, such as likelihood.variance=0.01")?;
    let value = |text: &str| {
        let parsed = text.trim().parse::<f64>().ok().filter(|v| v.is_finite());
        parsed.ok_or_else(|| format!("`{}` is not a number", text.trim()))
    };
    let values = values.split(',').map(value).collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(json!([path.trim(), values]))
}

/// Returns a jitter, relative unless said otherwise.
pub(super) fn jitter(value: &Value) -> Option<Jitter> {
    let allowed = |v: &f64| Bounds::NotNegative.holds(*v);
    if let Some(share) = value.as_f64() {
        return Some(share).filter(allowed).map(Jitter::Relative);
    }
    let (form, number) = value.as_str()?.split_once(':')?;
    let size = number.parse().ok().filter(allowed)?;
    match form {
        "absolute" => Some(Jitter::Absolute(size)),
        "relative" => Some(Jitter::Relative(size)),
        _ => None,
    }
}

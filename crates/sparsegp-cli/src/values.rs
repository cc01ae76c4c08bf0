//! Values of options: from text to what they mean, or a sentence about what is wrong.

use sparsegp::fit::settings::{Bounds, Kind};
use sparsegp::{Error, error, means, methods};

/// Reads `NAME=COLUMN`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, column)) if !name.is_empty() && !column.is_empty() => {
            Ok((name.into(), column.into()))
        }
        _ => Err(
            "must be an input and the column of its standard deviations, such as depth=depth_sd"
                .into(),
        ),
    }
}

/// Reads a latitude and its longitude: `lat,long`.
pub fn place(text: &str) -> Result<(String, String), String> {
    match text.split_once(',').map(|(one, other)| (one.trim(), other.trim())) {
        Some((one, other)) if !one.is_empty() && !other.is_empty() && !other.contains(',') => {
            Ok((one.into(), other.into()))
        }
        _ => Err("must be the columns of latitude and longitude, such as lat,long".into()),
    }
}

/// Reads a number of a kind.
fn number(kind: Kind, text: &str) -> Result<f64, String> {
    kind.read(text).map(|value| value.as_f64().unwrap_or(f64::NAN))
}

/// Reads a number strictly between 0 and 1.
pub fn fraction(text: &str) -> Result<f64, String> {
    number(Kind::Number(Bounds::Fraction), text)
}

/// Reads a positive number.
pub fn positive(text: &str) -> Result<f64, String> {
    number(Kind::Number(Bounds::Positive), text)
}

/// Reads a time in seconds, from `90`, `90s`, `5min` or `1.5h`.
pub fn time(text: &str) -> Result<f64, String> {
    number(Kind::Time, text)
}

/// Reads a whole number from 1.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    let value = Kind::Whole(1).read(text)?;
    Ok(value.as_u64().and_then(|n| n.try_into().ok()).unwrap_or(usize::MAX))
}

/// Reads a number of rows, or 0 for `all`.
pub fn rows_or_all(text: &str) -> Result<usize, String> {
    match text {
        "all" => Ok(0),
        own => at_least_one(own).map_err(|error| format!("{error}, or `all`")),
    }
}

/// Reads a whole number of at least 2.
pub fn at_least_two(text: &str) -> Result<usize, String> {
    let value = Kind::Whole(2).read(text)?;
    Ok(value.as_u64().and_then(|n| n.try_into().ok()).unwrap_or(usize::MAX))
}

/// Reads the name of a method, or `auto`.
pub fn method(text: &str) -> Result<String, String> {
    match text {
        "auto" => Ok(text.into()),
        name => methods::find(name).map(|e| e.name.to_owned()).map_err(|e| format!("{e}, auto")),
    }
}

/// Reads a power of power expectation propagation: above 0, at most 1.
pub fn power(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(f) if f > 0.0 && f <= 1.0 => Ok(f),
        _ => Err("must be a number above 0 (whose limit is titsias2009) and at most 1".into()),
    }
}

/// Reads the name of a mean function.
pub fn mean(text: &str) -> Result<String, String> {
    if text.trim_start().starts_with('{') {
        let json = serde_json::from_str(text).map_err(|e| format!("not valid JSON: {e}"))?;
        return match means::from_json(&json, 1, 1) {
            // there may be as many values as there are inputs or targets
            Ok(_) | Err(sparsegp::Error::InvalidParameter { .. }) => Ok(text.into()),
            Err(error) => Err(error.to_string()),
        };
    }
    let name = text.to_ascii_lowercase();
    match means::names().contains(&name.as_str()) {
        true => Ok(name),
        false => Err(format!(
            "nearest: {}; known: {}",
            error::nearest(&name, means::names()).join(", "),
            means::names().join(", ")
        )),
    }
}

/// Reads a specification of a likelihood; that of classes need not say how many there are.
pub fn likelihood(text: &str) -> Result<String, String> {
    match sparsegp::fit::likelihood(Some(text), None) {
        Ok(_) => Ok(text.into()),
        Err(error) => match sparsegp::fit::likelihood(Some(text), Some(2)) {
            Ok(_) => Ok(text.into()),
            Err(_) => Err(error.to_string()),
        },
    }
}

/// Returns whether an error after the arguments were read is still about them.
pub fn is_about_arguments(error: &Error) -> bool {
    matches!(
        error,
        Error::Spec { .. } | Error::UnknownParameter { .. } | Error::InvalidParameter { .. }
    )
}

//! Values of options: from text to what they mean, or a sentence about what is wrong.

use sparsegp::linalg::Jitter;
use sparsegp::{Error, error, means, methods};

/// A number strictly between 0 and 1.
pub fn fraction(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(f) if f > 0.0 && f < 1.0 => Ok(f),
        _ => Err("must be a number between 0 and 1, such as 0.1".into()),
    }
}

/// `NAME=COLUMN`.
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

/// A positive number.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(f) if f > 0.0 && f.is_finite() => Ok(f),
        _ => Err("must be a positive number".into()),
    }
}

/// A time in seconds, from `90`, `90s`, `5min` or `1.5h`.
pub fn time(text: &str) -> Result<f64, String> {
    let (number, unit) = [("min", 60.0), ("h", 3600.0), ("s", 1.0)]
        .into_iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))
        .unwrap_or((text, 1.0));
    let seconds = number.trim().parse::<f64>().map(|v| v * unit);
    // clocks of machines reach no further than some centuries
    seconds.ok().filter(|v| *v > 0.0 && *v <= 1e9).ok_or_else(|| {
        "must be a positive number of seconds, or with a unit: 90s, 5min or 1.5h (1e9 s at most)"
            .into()
    })
}

/// A number ≥ 0.
pub fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(f) if f >= 0.0 && f.is_finite() => Ok(f),
        _ => Err("must be a number, 0 or more".into()),
    }
}

/// A whole number from 0.
pub fn whole(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "must be a whole number, 0 or more".into())
}

/// A whole number from 1.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("must be a whole number, at least 1".into()),
    }
}

/// The name of a method, or `auto`.
pub fn method(text: &str) -> Result<String, String> {
    match text {
        "auto" => Ok(text.into()),
        name => methods::find(name).map(|e| e.name.to_owned()).map_err(|e| format!("{e}, auto")),
    }
}

/// A power of power expectation propagation: above 0, at most 1.
pub fn power(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(f) if f > 0.0 && f <= 1.0 => Ok(f),
        _ => Err("must be a number above 0 (whose limit is titsias2009) and at most 1".into()),
    }
}

/// The name of a mean function.
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
    match means::NAMES.contains(&name.as_str()) {
        true => Ok(name),
        false => Err(format!(
            "nearest: {}; known: {}",
            error::nearest(&name, means::NAMES).join(", "),
            means::NAMES.join(", ")
        )),
    }
}

/// A rate of natural-gradient steps: above 0, at most 1.
pub fn natural_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(f) if f > 0.0 && f <= 1.0 => Ok(f),
        _ => Err("must be a number above 0 and at most 1, such as 0.1".into()),
    }
}

/// A specification of a likelihood; that of classes need not say how many there are.
pub fn likelihood(text: &str) -> Result<String, String> {
    match sparsegp::fit::likelihood(Some(text), None) {
        Ok(_) => Ok(text.into()),
        Err(error) => match sparsegp::fit::likelihood(Some(text), Some(2)) {
            Ok(_) => Ok(text.into()),
            Err(_) => Err(error.to_string()),
        },
    }
}

/// `PATH=VALUE,…`.
pub fn assignment(text: &str) -> Result<(String, Vec<f64>), String> {
    let (path, values) = text
        .split_once('=')
        .filter(|(path, _)| !path.is_empty())
        .ok_or("must be PATH=VALUE, such as likelihood.variance=0.01")?;
    let value = |text: &str| {
        text.trim().parse::<f64>().map_err(|_| format!("`{}` is not a number", text.trim()))
    };
    Ok((path.trim().into(), values.split(',').map(value).collect::<Result<_, _>>()?))
}

/// A jitter, relative unless said otherwise.
pub fn jitter(text: &str) -> Result<Jitter, String> {
    let wrong = || "must be a number ≥ 0 such as 1e-6, or absolute:1e-6".to_owned();
    let parse = |text: &str| match text.parse::<f64>() {
        Ok(f) if f >= 0.0 && f.is_finite() => Ok(f),
        _ => Err(wrong()),
    };
    match text.split_once(':') {
        Some(("absolute", number)) => parse(number).map(Jitter::Absolute),
        Some(("relative", number)) => parse(number).map(Jitter::Relative),
        Some(_) => Err(wrong()),
        None => parse(text).map(Jitter::Relative),
    }
}

/// Whether an error after the arguments were read is still about them.
pub fn is_about_arguments(error: &Error) -> bool {
    matches!(
        error,
        Error::Spec { .. } | Error::UnknownParameter { .. } | Error::InvalidParameter { .. }
    )
}

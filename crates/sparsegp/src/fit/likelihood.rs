//! The likelihood that a specification means for a table.

#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::likelihoods::{self, Likelihood};
use crate::methods;

/// Returns the likelihood of a specification, or without one what fits the targets: `bernoulli` for
/// two classes, `softmax` for more, else `gaussian`. A likelihood of classes need not state how
/// many there are.
///
/// # Errors
/// As for [`likelihoods::parse`].
pub fn likelihood(spec: Option<&str>, classes: Option<usize>) -> Result<Box<dyn Likelihood>> {
    match (spec, classes) {
        (Some(spec), Some(classes)) => likelihoods::parse(spec)
            .or_else(|error| likelihoods::parse(&with_classes(spec, classes)).map_err(|_| error)),
        (Some(spec), None) => likelihoods::parse(spec),
        (None, None) => likelihoods::parse("gaussian"),
        (None, Some(2)) => likelihoods::parse("bernoulli"),
        (None, Some(classes)) => likelihoods::parse(&with_classes("softmax", classes)),
    }
}

/// Returns the same for a method by its name: one that needs local variables has
/// `bernoulli(link=logit)` for two classes by default, and `logistic-softmax` for more.
///
/// # Errors
/// As for [`likelihoods::parse`] and [`methods::find`].
pub fn likelihood_for(
    method: &str,
    spec: Option<&str>,
    classes: Option<usize>,
) -> Result<Box<dyn Likelihood>> {
    let augments = method != "auto" && methods::find(method)?.method.augments();
    match (spec, classes) {
        (None, Some(2)) if augments => likelihood(Some("bernoulli(link=logit)"), None),
        (None, Some(_)) if augments => likelihood(Some("logistic-softmax"), classes),
        _ => likelihood(spec, classes),
    }
}

/// Returns a specification with the number of classes added.
fn with_classes(spec: &str, classes: usize) -> String {
    // JSON, as Python writes it
    if let Ok(serde_json::Value::Object(mut all)) = serde_json::from_str(spec) {
        all.insert("classes".into(), classes.into());
        return serde_json::Value::Object(all).to_string();
    }
    match spec.trim_end().strip_suffix(')') {
        Some(open) => format!("{open}, classes={classes})"),
        None => format!("{}(classes={classes})", spec.trim_end()),
    }
}

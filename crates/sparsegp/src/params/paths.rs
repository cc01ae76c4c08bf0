//! Paths of parameters.

use super::Named;
use crate::error::{Error, nearest};

/// Returns the error for a path that does not exist, with the nearest that do.
pub fn unknown(path: &str, existing: &[Named<'_>]) -> Error {
    let names = || existing.iter().map(|(p, _)| p.as_str());
    // what others call it
    let noise = names().find(|own| *own == "likelihood.variance" && path.contains("noise"));
    let nearest = noise.map_or_else(|| nearest(path, names()), |own| vec![own.to_owned()]);
    Error::UnknownParameter { path: path.to_owned(), nearest }
}

/// Returns whether `path` is `pattern` itself or lies in the group that `pattern` names (`kernel`
/// names `kernel.variance` and `kernel.kernels[0].variance`).
pub fn in_group(path: &str, pattern: &str) -> bool {
    path.strip_prefix(pattern)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with('['))
}

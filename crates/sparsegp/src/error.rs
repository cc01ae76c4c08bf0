//! The one error type. Everything a user can cause is a variant that carries the values
//! (matrix, pivot, jitter; file, row, column, value; path and nearest names); a panic is a bug.

use std::path::PathBuf;

/// Result with [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong, with a sentence that says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A Cholesky factorisation failed at every jitter tried.
    #[error(
        "the {size}×{size} matrix {matrix} is not positive definite: pivot {pivot} failed with jitter {jitter:e}; {hint}"
    )]
    NotPositiveDefinite {
        /// Name of the matrix in the formulas, such as `Kuu`.
        matrix: &'static str,
        /// Number of rows.
        size: usize,
        /// Index of the failing pivot, from 0.
        pivot: usize,
        /// Largest absolute jitter that was added to the diagonal.
        jitter: f64,
        /// Likely cause and remedy.
        hint: &'static str,
    },
    /// A factor of which rounding leaves too little.
    #[error(
        "the factor of the {size}×{size} matrix {matrix} is lost in rounding, which changes the log evidence by some \
         {rounding:.1e} nats: the noise is too small beside the kernel's variance for double precision; a larger \
         noise variance or a smaller kernel variance helps, or a kernel that has the trend, such as `linear + …`"
    )]
    Imprecise {
        /// Name of the matrix in the formulas, such as `K + σ²I`.
        matrix: &'static str,
        /// Number of rows.
        size: usize,
        /// Estimate of what rounding changes in the log evidence ([`crate::methods::precision`]).
        rounding: f64,
    },
    /// A NaN or an infinity appeared where a finite number is required.
    #[error("{what} is not finite ({value})")]
    NonFinite {
        /// The quantity.
        what: String,
        /// Its value.
        value: f64,
    },
    /// Two shapes do not fit.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// The argument.
        what: String,
        /// Expected shape in words.
        expected: String,
        /// Found shape in words.
        found: String,
    },
    /// No parameter has this path.
    #[error("unknown parameter `{path}`; {}", nearest_phrase(nearest))]
    UnknownParameter {
        /// The path that was asked for.
        path: String,
        /// Existing paths, nearest first.
        nearest: Vec<String>,
    },
    /// A value that a parameter cannot take.
    #[error("parameter `{path}`: {reason}")]
    InvalidParameter {
        /// Path of the parameter.
        path: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A kernel (or other) specification that cannot be read.
    #[error("cannot read the specification `{spec}` at position {position}: {reason}")]
    Spec {
        /// The specification as given.
        spec: String,
        /// Byte offset of the problem.
        position: usize,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// An option or a combination of options that is not possible.
    #[error("{0}")]
    Invalid(String),
    /// A file that cannot be opened, read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What happened and what to do.
        reason: String,
    },
    /// A table of which no row is left.
    #[error(
        "{}: all {dropped} rows were left out because of missing values: {columns}; leave these columns out \
         (`--ignore`), or fill them",
        path.display()
    )]
    NoRows {
        /// The file.
        path: PathBuf,
        /// How many rows it has.
        dropped: usize,
        /// In which columns values are missing, and of how many rows.
        columns: String,
    },
    /// A cell of a table that cannot be used.
    #[error("{}: row {row}, column `{}`: {reason}", path.display(), escaped(column))]
    Cell {
        /// The file.
        path: PathBuf,
        /// Data row, from 1 (the header is not counted).
        row: usize,
        /// Column name.
        column: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A column that is absent, doubled or unusable.
    #[error("{}: column `{}` {reason}", path.display(), escaped(column))]
    Column {
        /// The file.
        path: PathBuf,
        /// Column name.
        column: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The user asked to stop before there was anything to keep.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Returns whether an optimiser may recover by trying a nearer point: the matrix stopped being
    /// positive definite, its factor meaningful or the objective finite at this one.
    pub fn is_recoverable(&self) -> bool {
        matches!(
            self,
            Error::NotPositiveDefinite { .. } | Error::Imprecise { .. } | Error::NonFinite { .. }
        )
    }

    /// Returns the same with another cause and remedy, where it is a matrix that is not positive
    /// definite: who made the matrix knows more of it than who factorised it.
    #[must_use]
    pub fn with_hint(self, hint: &'static str) -> Self {
        match self {
            Error::NotPositiveDefinite { matrix, size, pivot, jitter, .. } => {
                Error::NotPositiveDefinite { matrix, size, pivot, jitter, hint }
            }
            other => other,
        }
    }

    /// Creates an [`Error::Shape`]: what was expected of an argument, and what was found.
    pub(crate) fn shape(
        what: impl Into<String>,
        expected: impl Into<String>,
        found: impl ToString,
    ) -> Self {
        Error::Shape { what: what.into(), expected: expected.into(), found: found.to_string() }
    }

    /// Creates an [`Error::File`] from an input/output error.
    pub fn io(path: impl Into<PathBuf>, error: &std::io::Error) -> Self {
        Error::File { path: path.into(), reason: error.to_string() }
    }
}

/// Returns the existing names nearest to `name` (Damerau–Levenshtein), at most three, nearest
/// first.
pub fn nearest<'a>(name: &str, existing: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<(usize, &str)> = existing
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .collect();
    all.sort();
    all.dedup();
    all.into_iter().take(3).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// Returns a text with its control characters escaped, for a message or a page.
///
/// ```
/// assert_eq!(sparsegp::error::escaped("a\u{1b}b"), "a\\u{1b}b");
/// ```
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() {
            true => out.extend(character.escape_default()),
            false => out.push(character),
        }
    }
    out
}

/// Returns a word as a shell takes it for one: in quotes where a shell would divide or change it.
///
/// ```
/// assert_eq!(sparsegp::error::in_shell("width"), "width");
/// assert_eq!(sparsegp::error::in_shell("cell width"), "'cell width'");
/// ```
pub fn in_shell(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-.,:/=+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn nearest_phrase(nearest: &[String]) -> String {
    match nearest {
        [] => "there are no parameters".to_owned(),
        names => format!(
            "nearest: {}",
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        ),
    }
}

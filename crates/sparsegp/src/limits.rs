//! Limits of what is read at once, which environment variables move.

/// A limit in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// The environment variable that moves it.
    pub variable: &'static str,
    /// What it is otherwise.
    pub usual: u64,
}

/// Most bytes of a model, a checkpoint or a map.
#[cfg(feature = "files")]
pub(crate) const FILE: Limit = Limit { variable: "SPARSEGP_MAX_FILE_BYTES", usual: 4 << 30 };
/// Most bytes of a row of a table of text.
#[cfg(feature = "tables")]
pub(crate) const ROW: Limit = Limit { variable: "SPARSEGP_MAX_ROW_BYTES", usual: 64 << 20 };

impl Limit {
    /// Returns the limit as it is now.
    pub fn now(self) -> u64 {
        let text = std::env::var(self.variable).ok();
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(self.usual)
    }

    /// Says that something is longer.
    pub fn exceeded(self, what: &str) -> String {
        let (limit, variable) = (self.now(), self.variable);
        format!(
            "{what} longer than {limit} bytes; the environment variable {variable} sets another limit"
        )
    }
}

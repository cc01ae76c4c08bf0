//! How commands fail, and with which exit code.

use sparsegp::Error;
use std::io::Write;
use std::process::ExitCode;

/// Result of a command.
pub type Result<T, E = Fail> = std::result::Result<T, E>;

/// Why a command failed.
#[derive(Debug)]
pub enum Fail {
    /// Data, model or numerics.
    Work(String),
    /// A table of which missing values leave no row.
    Empty(String),
    /// Part of the work, after the rest has been printed, in which machines find it too.
    Part(String),
    /// The command line.
    Usage(String),
    /// Ctrl-C before there was anything to keep.
    Interrupted,
    /// Whoever read our output has had enough of it: no failure.
    Closed,
}

impl std::fmt::Display for Fail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Fail::Work(text) | Fail::Empty(text) | Fail::Part(text) | Fail::Usage(text) => text,
            Fail::Interrupted => "interrupted",
            Fail::Closed => "nobody reads the output",
        })
    }
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        match error {
            Error::Interrupted => Fail::Interrupted,
            Error::NoRows { .. } => Fail::Empty(error.to_string()),
            // the library's word for the option means nothing here
            other => Fail::Work(other.to_string().replace(" (`Missing::Drop`)", "")),
        }
    }
}

impl Fail {
    /// Creates a failure of the command line.
    pub fn usage(text: impl Into<String>) -> Self {
        Fail::Usage(text.into())
    }

    /// Creates a failure for an error about something that the command line gave.
    pub fn of_usage(error: Error) -> Self {
        Fail::Usage(error.to_string())
    }

    /// Creates a failure for an error while writing our results.
    pub fn output(what: &str, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Fail::Closed,
            _ => Fail::Work(format!("{what}: cannot be written: {error}")),
        }
    }

    /// Tells people (and machines, if they listen) and gives the exit code.
    pub fn report(self, json: bool) -> ExitCode {
        let json = json && !matches!(self, Fail::Part(_));
        let (code, text) = match self {
            Fail::Work(text) | Fail::Empty(text) | Fail::Part(text) => (1, text),
            Fail::Usage(text) => (2, format!("{text}\n(for more information, try --help)")),
            Fail::Interrupted => (130, "interrupted; nothing was written".into()),
            Fail::Closed => return ExitCode::SUCCESS,
        };
        // If not even stderr can be written, the exit code has to do.
        let _ = writeln!(std::io::stderr(), "error: {text}");
        if json {
            let first = text.lines().next().unwrap_or_default();
            let document = serde_json::json!({ "error": first, "exit_code": code });
            let _ = writeln!(std::io::stdout(), "{document}");
        }
        ExitCode::from(code)
    }
}

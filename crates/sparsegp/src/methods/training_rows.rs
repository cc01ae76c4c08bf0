//! How many rows a training sees, where a sample of them says as much of a few hyperparameters.

/// Rows that a training sees unless another number is asked for, where there are more than twice as many.
pub(super) const DEFAULT_TRAINING_ROWS: usize = 50_000;

/// Rows that a training sees, at least: fewer say too little.
const LEAST: usize = 1000;

/// What the option `training_rows` of a method says, if anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TrainingRows(Option<usize>);

impl TrainingRows {
    /// Nothing was asked for.
    pub(super) const USUAL: Self = Self(None);

    /// Reads `all` or a number.
    ///
    /// # Errors
    /// What the value must be.
    pub(super) fn parse(value: &str) -> Result<Self, String> {
        let asked = match value {
            "all" => Some(usize::MAX),
            number => number.parse().ok().filter(|rows| *rows >= LEAST),
        };
        match asked {
            Some(_) => Ok(Self(asked)),
            None => {
                Err(format!("training_rows={value}: must be `all`, or a whole number from {LEAST}"))
            }
        }
    }

    /// Returns how many of so many rows a training sees; `many` says that a sample is taken without being asked for.
    pub(super) fn of(self, rows: usize, many: bool) -> usize {
        let usual =
            if many && rows > 2 * DEFAULT_TRAINING_ROWS { DEFAULT_TRAINING_ROWS } else { rows };
        self.0.unwrap_or(usual).min(rows)
    }

    /// Returns whether somebody has asked for a number.
    pub(super) fn is_asked(self) -> bool {
        self.0.is_some()
    }

    /// Returns the option as it is written.
    pub(super) fn said(self) -> Option<String> {
        self.0.map(|rows| match rows {
            usize::MAX => "training_rows=all".into(),
            rows => format!("training_rows={rows}"),
        })
    }
}

//! What the values of a column of a Parquet file are, whether such files can be read or not.

/// What the values of a column are to us.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::data) enum Kind {
    Number {
        form: Form,
        /// INT32 and INT64 may hold unsigned numbers.
        unsigned: bool,
        /// 10^scale of a DECIMAL of integers, units in a day of a TIMESTAMP, else 1.
        divisor: f64,
        /// Whether these are days since 1970-01-01.
        date: bool,
    },
    /// Truth values.
    Bool,
    Text,
    /// Of no use; says what it is, and what to do.
    Other(String),
}

/// How a number is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::data) enum Form {
    /// As a number of the format.
    Native,
    /// As the bytes of a whole number, the first one highest, times 10^-scale.
    Decimal(i32),
    /// In half precision.
    Half,
    /// As INT96: a Julian day and nanoseconds.
    Moment,
}

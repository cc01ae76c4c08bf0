//! How the cells of a table are written: decimal separator, words for missing values, formats of dates.

use serde::{Deserialize, Serialize};

/// How cells of text are written. The default reads numbers with a decimal point and dates as `2024-12-31`.
///
/// ```
/// use sparsegp::data::ReadOptions;
/// let german = ReadOptions { decimal: ',', thousands: Some('.'), ..ReadOptions::default() };
/// assert_eq!(german.number("1.152,25"), Some(1152.25));
/// assert_eq!(german.number("6.25"), None, "neither thousands nor a decimal comma");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadOptions {
    /// Decimal separator: `.` or `,`.
    pub decimal: char,
    /// Separator between groups of three digits, if there is one: `,`, `.`, `'` or a blank.
    pub thousands: Option<char>,
    /// Words that mean "no value", beside the usual ones (`NA`, `N/A`, `null`, …).
    pub missing_words: Vec<String>,
    /// Words that are categories or classes, although they mean "no value" otherwise: `None` or `NA`; `*` for all such words.
    /// Among numbers they mean it still.
    pub kept_words: Vec<String>,
    /// Formats of dates, such as `%d/%m/%Y`, for all columns or as `COLUMN=%d/%m/%Y` for one.
    pub date_formats: Vec<String>,
    /// Encoding of a text file that is not UTF-8 and has no byte order mark: `latin1`, `windows-1252`, `utf-16le`, or another
    /// name of the WHATWG's.
    pub encoding: Option<String>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            decimal: '.',
            thousands: None,
            missing_words: Vec::new(),
            kept_words: Vec::new(),
            date_formats: Vec::new(),
            encoding: None,
        }
    }
}

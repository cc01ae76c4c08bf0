//! How the cells of a table are written: options of every command that reads one.

use crate::fail::{Fail, Result};
use clap::Args;
use sparsegp::Error;
use sparsegp::data::{ReadOptions, Table};
use std::path::Path;

/// Options of tables of text.
#[derive(Clone, Debug, Args)]
pub struct TableArgs {
    /// Decimal separator of the numbers: `.` or `,`
    #[arg(
        long,
        value_name = "CHARACTER",
        default_value_t = '.',
        hide_default_value = true,
        help_heading = "Reading the table"
    )]
    pub decimal: char,
    /// Separator between groups of three digits: `,`, `.`, `'` or a blank
    #[arg(long, value_name = "CHARACTER", help_heading = "Reading the table")]
    pub thousands: Option<char>,
    /// Words that mean a missing value, beside NA, N/A, null, None, ? and, among numbers, -, . or #DIV/0!
    #[arg(
        long,
        value_name = "WORD,…",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help_heading = "Reading the table"
    )]
    pub missing_words: Vec<String>,
    /// Format of dates other than 2024-12-31, such as %d/%m/%Y, or COLUMN=%d/%m/%Y for one column; repeatable
    #[arg(long, value_name = "[COLUMN=]FORMAT", help_heading = "Reading the table")]
    pub date_format: Vec<String>,
}

impl TableArgs {
    /// Opens a table whose cells are written so.
    ///
    /// # Errors
    /// As for [`Table::open_with`].
    pub fn open(&self, path: &Path) -> Result<Table> {
        let options = ReadOptions {
            decimal: self.decimal,
            thousands: self.thousands,
            missing_words: self.missing_words.clone(),
            date_formats: self.date_format.clone(),
        };
        Table::open_with(path, &options).map_err(|error| match error {
            Error::Invalid(_) => Fail::of_usage(error),
            other => other.into(),
        })
    }
}

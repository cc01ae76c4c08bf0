//! How the cells of a table are written: options of every command that reads one.

use crate::fail::{Fail, Result};
use clap::Args;
use sparsegp::Error;
use sparsegp::data::{ReadOptions, Table};
use sparsegp::fit::Fitted;
use std::path::Path;

/// Options of tables of text.
#[derive(Clone, Debug, Args)]
pub struct TableArgs {
    /// Decimal separator of the numbers: `.` or `,`
    #[arg(long, value_name = "CHARACTER", help_heading = "Reading the table")]
    pub decimal: Option<char>,
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
    /// Words that are categories or classes, although they mean a missing value otherwise, such as NA or None; `*` for all
    #[arg(
        long,
        value_name = "WORD,…",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help_heading = "Reading the table"
    )]
    pub kept_words: Vec<String>,
    /// Format of dates other than 2024-12-31, such as %d/%m/%Y, or COLUMN=%d/%m/%Y for one column; repeatable
    #[arg(long, value_name = "[COLUMN=]FORMAT", help_heading = "Reading the table")]
    pub date_format: Vec<String>,
    /// Encoding of a text file that is not UTF-8 and has no byte order mark, such as latin1 or utf-16le
    #[arg(long, value_name = "NAME", help_heading = "Reading the table")]
    pub encoding: Option<String>,
}

impl TableArgs {
    /// Opens a table whose cells are written so.
    ///
    /// # Errors
    /// As for [`Table::open_with`].
    pub fn open(&self, path: &Path) -> Result<Table> {
        self.open_as(path, ReadOptions::default())
    }

    /// Opens a table whose cells are written as those of the table of a model, or as the options say.
    ///
    /// # Errors
    /// As for [`Table::open_with`].
    pub fn open_for(&self, path: &Path, fitted: &Fitted) -> Result<Table> {
        self.open_as(path, fitted.read_options())
    }

    /// Opens a table whose cells are written as these options say, or as those of the command line.
    ///
    /// # Errors
    /// As for [`Table::open_with`].
    pub fn open_as(&self, path: &Path, mut options: ReadOptions) -> Result<Table> {
        if let Some(decimal) = self.decimal {
            (options.decimal, options.thousands) = (decimal, None);
        }
        options.thousands = self.thousands.or(options.thousands);
        if !self.missing_words.is_empty() {
            options.missing_words.clone_from(&self.missing_words);
        }
        if !self.kept_words.is_empty() {
            options.kept_words.clone_from(&self.kept_words);
        }
        if !self.date_format.is_empty() {
            options.date_formats.clone_from(&self.date_format);
        }
        if self.encoding.is_some() {
            options.encoding.clone_from(&self.encoding);
        }
        Table::open_with(path, &options).map_err(|error| match error {
            Error::Invalid(_) => Fail::of_usage(error),
            other => other.into(),
        })
    }
}

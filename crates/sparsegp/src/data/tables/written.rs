//! How numbers and dates are read from text as [`ReadOptions`] say.

use super::cells::is_space;
use super::charset;
use super::dates::{days, formatted};
use crate::data::options::ReadOptions;
use crate::error::{Error, Result};
use chrono::format::StrftimeItems;

impl ReadOptions {
    /// Refuses separators and formats that cannot be meant.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the option and what it may be.
    pub fn check(&self) -> Result<()> {
        let fail = |reason: String| Err(Error::Invalid(reason));
        if !matches!(self.decimal, '.' | ',') {
            return fail(format!(
                "the decimal separator is `{}`; it must be `.` or `,`",
                self.decimal
            ));
        }
        match self.thousands {
            Some(by) if by == self.decimal => {
                return fail(format!(
                    "`{by}` is both the decimal separator and that of thousands; choose two"
                ));
            }
            Some(by) if !matches!(by, '.' | ',' | '\'' | ' ') => {
                return fail(format!(
                    "the separator of thousands is `{by}`; it must be `,`, `.`, `'` or a blank"
                ));
            }
            _ => {}
        }
        if let Some(name) = self.encoding.as_ref().filter(|name| charset::named(name).is_none()) {
            return fail(format!(
                "`{name}` is not an encoding of texts; known are `latin1`, `windows-1252`, `utf-16le`, `utf-8` and others"
            ));
        }
        for format in &self.date_formats {
            let (_, own) = split_format(format);
            let bad = StrftimeItems::new(own).any(|item| item == chrono::format::Item::Error);
            let has_year = ["%Y", "%y", "%F", "%D", "%s", "%c", "%x", "%+", "%G"];
            if bad || !has_year.iter().any(|year| own.contains(year)) {
                return fail(format!(
                    "`{format}` is not a format of dates: it needs a year and may have `%Y` (2024), `%y` (24), `%m`, `%d`, \
                     `%b` (Mar), `%H`, `%M`, `%S`, `%I` with `%p` (AM), as in `%d/%m/%Y`"
                ));
            }
        }
        Ok(())
    }

    /// Returns the number that a text is, as these options read it.
    pub fn number(&self, text: &str) -> Option<f64> {
        if self.decimal == '.' && self.thousands.is_none() {
            return text.parse().ok().or_else(|| odd(text));
        }
        self.local(&odd_text(text)).and_then(|text| text.parse().ok())
    }

    /// Rewrites a number with a decimal point and without separators between thousands.
    fn local(&self, text: &str) -> Option<String> {
        let (whole, fraction) = match text.split_once(self.decimal) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => match text.find(['e', 'E']) {
                // of a whole number with an exponent
                Some(at) if text.starts_with(|c: char| !c.is_alphabetic()) => {
                    return Some(format!("{}{}", self.whole(&text[..at])?, &text[at..]));
                }
                _ => (text, None),
            },
        };
        let mut out = self.whole(whole)?;
        if let Some(fraction) = fraction {
            if fraction.contains(['.', ',']) {
                return None;
            }
            out.push('.');
            out.push_str(fraction);
        }
        Some(out)
    }

    /// Takes the separators out of the digits before the decimal separator.
    fn whole(&self, text: &str) -> Option<String> {
        let Some(by) = self.thousands else {
            return (!text.contains(['.', ','])).then(|| text.to_owned());
        };
        let is_separator = |c: char| match by {
            ' ' => is_space(c),
            '\'' => c == '\'' || c == '’',
            _ => c == by,
        };
        let mut groups = text.split(is_separator);
        let first = groups.next()?;
        let mut out = first.to_owned();
        let digits = first.trim_start_matches(['-', '+']).len();
        for group in groups {
            let is_group = group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit());
            if !is_group || !(1..=3).contains(&digits) {
                return None;
            }
            out.push_str(group);
        }
        (!out.contains(['.', ','])).then_some(out)
    }

    /// Says whether words were given beside the usual ones.
    pub(super) fn has_missing_words(&self) -> bool {
        !self.missing_words.is_empty()
    }

    /// Says whether a text is one of the words that were given.
    pub(super) fn is_missing_word(&self, text: &str) -> bool {
        self.missing_words.iter().any(|word| word.trim() == text)
    }

    /// Says whether a text is a category or class, whatever it means otherwise.
    pub(super) fn is_kept_word(&self, text: &str) -> bool {
        self.kept_words.iter().map(|word| word.trim()).any(|word| word == text || word == "*")
    }

    /// Returns the formats of dates that hold for a column.
    pub(super) fn formats_of<'a>(&'a self, column: &'a str) -> impl Iterator<Item = &'a str> {
        self.date_formats.iter().filter_map(move |format| {
            let (of, own) = split_format(format);
            of.is_none_or(|of| of == column).then_some(own)
        })
    }

    /// Returns a date as days since 1970-01-01, in one of the formats of its column or as [`days`] reads it.
    pub fn date(&self, column: &str, text: &str) -> Option<f64> {
        let text = text.trim();
        self.formats_of(column).find_map(|format| formatted(text, format)).or_else(|| days(text))
    }
}

/// Splits `COLUMN=FORMAT`.
fn split_format(format: &str) -> (Option<&str>, &str) {
    match format.split_once('=') {
        Some((column, own)) if !column.contains('%') => (Some(column), own),
        _ => (None, format),
    }
}

/// Reads a number with a Unicode minus or Fortran's exponent.
fn odd(text: &str) -> Option<f64> {
    let is_odd = text.bytes().any(|byte| matches!(byte, b'D' | b'd' | b'"' | 0xe2));
    (is_odd && text.bytes().any(|byte| byte.is_ascii_digit()))
        .then(|| odd_text(text).parse().ok())
        .flatten()
}

fn odd_text(text: &str) -> String {
    let text = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    let mut text = text.trim().replace('\u{2212}', "-");
    // 1.5D+03
    if let Some(at) = text.find(['D', 'd'])
        && matches!(text.as_bytes().get(at + 1), Some(b'+' | b'-'))
        && at > 0
        && text.as_bytes()[at - 1].is_ascii_digit()
    {
        text.replace_range(at..=at, "E");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_other_countries() {
        let with =
            |decimal, thousands| ReadOptions { decimal, thousands, ..ReadOptions::default() };
        for (decimal, thousands, text, expected) in [
            (',', None, "12,5", Some(12.5)),
            (',', None, "-0,25", Some(-0.25)),
            (',', None, "12", Some(12.0)),
            (',', None, "1,5e3", Some(1500.0)),
            (',', None, "12.5", None),
            (',', None, "1,2,3", None),
            (',', Some('.'), "1.152.000,5", Some(1_152_000.5)),
            (',', Some('.'), "6.25", None),
            (',', Some('.'), "1152.2", None),
            ('.', Some(','), "1,152.2", Some(1152.2)),
            ('.', Some(','), "12,5", None),
            ('.', Some(','), "1e3", Some(1000.0)),
            ('.', Some(' '), "-1\u{a0}152", Some(-1152.0)),
            ('.', Some('\''), "1’152.5", Some(1152.5)),
            ('.', None, "\u{2212}1.5", Some(-1.5)),
            ('.', None, "1.1522D+03", Some(1152.2)),
            ('.', None, "5D01", None),
            ('.', None, "\"1.5\"", Some(1.5)),
        ] {
            assert_eq!(
                with(decimal, thousands).number(text),
                expected,
                "{text} with {decimal} {thousands:?}"
            );
        }
        assert!(with(',', None).number("nan").is_some_and(f64::is_nan));
    }

    #[test]
    fn options_that_cannot_be_meant_are_refused() {
        let with = |options: ReadOptions| options.check();
        assert!(with(ReadOptions::default()).is_ok());
        assert!(with(ReadOptions { decimal: ';', ..ReadOptions::default() }).is_err());
        assert!(
            with(ReadOptions { decimal: ',', thousands: Some(','), ..ReadOptions::default() })
                .is_err()
        );
        for (format, good) in [
            ("%d/%m/%Y", true),
            ("when=%Y%m%d", true),
            ("%H:%M", false),
            ("%Q%Y", false),
            ("dd.mm.yyyy", false),
        ] {
            let own = ReadOptions { date_formats: vec![format.into()], ..ReadOptions::default() };
            assert_eq!(with(own).is_ok(), good, "{format}");
        }
        let of = ReadOptions { date_formats: vec!["when=%Y%m%d".into()], ..ReadOptions::default() };
        assert_eq!(of.date("when", "20241231"), Some(20_088.0));
        assert_eq!(of.date("other", "20241231"), None);
    }
}

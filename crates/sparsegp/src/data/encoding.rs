//! Input columns that hold no numbers: how dates and categories become numbers, and what a model remembers of it.

use super::cells::shown;
use super::classes::{as_number, canonical, in_order, listed};
use super::options::ReadOptions;
use crate::error::{Error, Result};
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// Categories up to which a column is encoded one by one.
pub const MOST_ONE_HOT: usize = 100;
/// Categories up to which a column is encoded by codes.
pub const MOST_CODES: usize = 1000;

/// How an input column of a table becomes inputs of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// As the number that it is.
    #[default]
    Number,
    /// A date or a moment as days since 1970-01-01 00:00 UTC, see [`days`].
    Date,
    /// An input `column=category` for each category, 1 where the row has it, else 0; of two categories the second
    /// alone has one.
    OneHot(Categories),
    /// The place of the category among all, 0, 1, …: for kernels that read labels.
    Code(Categories),
}

/// An input column of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputColumn {
    /// Name in the file.
    pub name: String,
    /// How it becomes inputs.
    #[serde(default)]
    pub encoding: Encoding,
}

impl InputColumn {
    /// A column of numbers.
    pub fn number(name: impl Into<String>) -> Self {
        Self { name: name.into(), encoding: Encoding::Number }
    }

    /// Names of the inputs that it becomes.
    pub fn input_names(&self) -> Vec<String> {
        self.readings().into_iter().map(|(name, _)| name).collect()
    }

    /// The numbers for a cell, one for each of the [`InputColumn::input_names`].
    ///
    /// # Errors
    /// What is wrong with a cell that cannot be read so, to be put after the name of its row and column.
    ///
    /// ```
    /// use sparsegp::data::{Categories, Encoding, InputColumn};
    /// let all = Categories::new(["red", "blue", "green"])?;
    /// let column = InputColumn { name: "colour".into(), encoding: Encoding::OneHot(all) };
    /// assert_eq!(column.numbers("green"), Ok(vec![0.0, 1.0, 0.0]));
    /// assert!(column.numbers("yellow").is_err());
    /// # Ok::<(), sparsegp::Error>(())
    /// ```
    pub fn numbers(&self, cell: &str) -> std::result::Result<Vec<f64>, String> {
        let plain = ReadOptions::default();
        if super::cells::is_missing(cell, &plain) {
            return Err("is missing".into());
        }
        match &self.encoding {
            Encoding::Number => {
                let text = cell.trim();
                let number = plain.number(text).map(|value| vec![value]);
                number.ok_or_else(|| format!("`{}` is not a number", shown(text)))
            }
            Encoding::Date => days(cell).map(|value| vec![value]).ok_or_else(|| no_date(cell)),
            Encoding::Code(all) | Encoding::OneHot(all) => {
                let code = all.find(cell)?;
                Ok(self.readings().iter().map(|(_, reading)| reading.of_code(code)).collect())
            }
        }
    }

    /// What it becomes, with the names.
    pub(super) fn readings(&self) -> Vec<(String, Reading)> {
        match &self.encoding {
            Encoding::Number => vec![(self.name.clone(), Reading::Number)],
            Encoding::Date => vec![(self.name.clone(), Reading::Date)],
            Encoding::Code(all) => {
                vec![(
                    self.name.clone(),
                    Reading::Category { all: Arc::new(all.clone()), of: None },
                )]
            }
            Encoding::OneHot(all) => {
                let shared = Arc::new(all.clone());
                // one of two says it all
                let first = usize::from(all.labels.len() == 2);
                let one = |of: usize| {
                    let name = format!("{}={}", self.name, all.labels[of]);
                    (name, Reading::Category { all: shared.clone(), of: Some(of) })
                };
                (first..all.labels.len()).map(one).collect()
            }
        }
    }
}

/// The categories of a column, in their natural order: by value if all are numbers, else as texts. They are compared
/// as the labels of [`Classes`](super::Classes) are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Categories {
    labels: Vec<String>,
    codes: HashMap<String, usize>,
}

impl Categories {
    /// From labels in any order; repeated ones count once.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is none.
    pub fn new(labels: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self> {
        Self::try_from(in_order(labels.into_iter().map(|l| canonical(l.as_ref())).collect()))
    }

    /// In the order of their codes.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The code of a category.
    pub fn code(&self, label: &str) -> Option<usize> {
        let find = |label: &str| self.codes.get(label).copied();
        find(&canonical(label)).or_else(|| find(&as_number(label)?))
    }

    /// The code of a cell.
    pub(super) fn find(&self, cell: &str) -> Result<usize, String> {
        self.code(cell).ok_or_else(|| {
            format!(
                "`{}` is none of the categories that the model knows: {}; correct the cell, or learn from rows \
                 that have it",
                cell.trim(),
                listed(self.labels.iter().map(String::as_str).collect())
            )
        })
    }
}

/// In the order of their codes, as in a model file.
impl TryFrom<Vec<String>> for Categories {
    type Error = Error;

    fn try_from(labels: Vec<String>) -> Result<Self> {
        if labels.is_empty() {
            return Err(Error::Invalid("there is no category".into()));
        }
        let codes: HashMap<String, usize> =
            labels.iter().enumerate().map(|(code, label)| (label.clone(), code)).collect();
        if codes.len() < labels.len() {
            return Err(Error::Invalid("a category is given twice".into()));
        }
        Ok(Self { labels, codes })
    }
}

impl From<Categories> for Vec<String> {
    fn from(categories: Categories) -> Self {
        categories.labels
    }
}

/// How a cell becomes a number.
#[derive(Clone, Debug, Default)]
pub(super) enum Reading {
    #[default]
    Number,
    Date,
    /// 1 where the category is `of`, else 0; without `of` its code.
    Category {
        all: Arc<Categories>,
        of: Option<usize>,
    },
}

impl Reading {
    /// The number for a category.
    pub fn of_code(&self, code: usize) -> f64 {
        match self {
            Reading::Category { of: Some(own), .. } => f64::from(u8::from(*own == code)),
            _ => code as f64,
        }
    }
}

/// Reads a date or a moment as days since 1970-01-01 00:00 UTC: `2024-12-31`, `2024/12/31`, with a time after a blank or a
/// `T` (`13`, `13:05`, `13:05:00`, `13:05:00.25`), and after that `Z`, ` UTC`, ` GMT` or an offset such as `+01:00`; also
/// `20241231T130500` and `Tue, 31 Dec 2024 13:05:00 GMT`. Without an offset it is taken for UTC. None for anything else.
///
/// ```
/// use sparsegp::data::days;
/// assert_eq!(days("1970-01-02 12:00"), Some(1.5));
/// assert_eq!(days("2024-02-29"), Some(19782.0));
/// assert_eq!(days("29.2.2024"), None);
/// ```
pub fn days(text: &str) -> Option<f64> {
    const DAY: f64 = 86_400.0;
    let text = text.trim();
    // what is no date at all should not cost a dozen attempts
    let bytes = text.as_bytes();
    if bytes.len() < 8 {
        return None;
    }
    let seconds = |moment: NaiveDateTime| {
        let utc = moment.and_utc();
        utc.timestamp() as f64 + f64::from(utc.timestamp_subsec_nanos()) * 1e-9
    };
    if bytes[0].is_ascii_alphabetic() {
        // Mon, 25 Mar 2024 00:00:00 GMT
        let moment =
            (bytes[3] == b',').then(|| DateTime::parse_from_rfc2822(text).ok()).flatten()?;
        return Some(seconds(moment.naive_utc()) / DAY);
    }
    let basic = bytes.get(8) == Some(&b'T') && bytes[..8].iter().all(u8::is_ascii_digit);
    if !bytes[0].is_ascii_digit() || !(basic || matches!(bytes[4], b'-' | b'/')) {
        return None;
    }
    let mut text = text.replacen('/', "-", 2);
    if let Some(rest) = ["Z", "z", " UTC", " GMT"].iter().find_map(|zone| text.strip_suffix(zone)) {
        text = format!("{rest}+00:00");
    }
    // 00:00:00,123
    if text.len() > 19 && text.as_bytes()[19] == b',' {
        text.replace_range(19..20, ".");
    }
    if let Ok(date) = NaiveDate::parse_from_str(&text, "%Y-%m-%d") {
        return Some(seconds(date.and_time(NaiveTime::MIN)) / DAY);
    }
    let with_zone = [
        "%Y-%m-%dT%H:%M:%S%.f%#z",
        "%Y-%m-%d %H:%M:%S%.f%#z",
        "%Y-%m-%dT%H:%M%#z",
        "%Y-%m-%d %H:%M%#z",
        "%Y%m%dT%H%M%S%.f%#z",
        "%Y%m%dT%H%M%#z",
    ];
    for format in with_zone {
        if let Ok(moment) = DateTime::parse_from_str(&text, format) {
            return Some(seconds(moment.naive_utc()) / DAY);
        }
    }
    let moment = [
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M",
        "%Y%m%dT%H%M%S%.f",
    ]
    .into_iter()
    .find_map(|format| NaiveDateTime::parse_from_str(&text, format).ok());
    // 2024-03-25 06
    let hour = || {
        let (date, hour) = text.split_once([' ', 'T'])?;
        let hour: u32 = hour.parse().ok().filter(|_| hour.len() == 2)?;
        NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?.and_hms_opt(hour, 0, 0)
    };
    moment.or_else(hour).map(|moment| seconds(moment) / DAY)
}

/// Days since 1970-01-01 as a date, or where it is not midnight as a moment in UTC, as [`days`] reads it.
///
/// ```
/// use sparsegp::data::date_text;
/// assert_eq!(date_text(19782.0), "2024-02-29");
/// assert_eq!(date_text(1.5), "1970-01-02T12:00:00Z");
/// ```
pub fn date_text(days: f64) -> String {
    // to the microsecond, as much as such a number holds
    let micros = (days * 86_400e6).round();
    let moment = (micros.abs() < 9e18).then(|| DateTime::from_timestamp_micros(micros as i64));
    match moment.flatten() {
        None => days.to_string(),
        Some(moment) if micros % 86_400e6 == 0.0 => moment.format("%Y-%m-%d").to_string(),
        Some(moment) => moment.format("%Y-%m-%dT%H:%M:%S%.fZ").to_string(),
    }
}

/// The refusal of a cell that is no date.
pub(super) fn no_date(cell: &str) -> String {
    format!(
        "`{}` is no date where the column has dates; write it as `2024-12-31` or `2024-12-31T13:05:00Z`",
        cell.trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_moments_are_days() {
        for (text, expected) in [
            ("1970-01-01", 0.0),
            ("1969-12-31", -1.0),
            ("2000-03-01", 11_017.0),
            ("2024/02/29", 19_782.0),
            (" 2024-02-29T06:00 ", 19_782.25),
            ("2024-02-29 06:00:00", 19_782.25),
            ("2024-02-29T06:00:00Z", 19_782.25),
            ("2024-02-29T06:00:00.000000+06:00", 19_782.0),
            ("2024-02-29 00:00:00-12:00", 19_782.5),
            ("2024-02-29T06:00Z", 19_782.25),
            ("2024-02-29 06", 19_782.25),
            ("2024-02-29 06:00:00 UTC", 19_782.25),
            ("20240229T060000Z", 19_782.25),
            ("20240229T060000", 19_782.25),
            ("2024-02-29 06:00:00,000", 19_782.25),
            ("2024-02-29 06:00:00+01", 19_782.25 - 1.0 / 24.0),
            ("Thu, 29 Feb 2024 06:00:00 GMT", 19_782.25),
            ("2024-2-29", 19_782.0),
            ("1900-01-01", -25_567.0),
        ] {
            assert_eq!(days(text), Some(expected), "{text}");
        }
        let quarter = days("1970-01-01T00:00:00.25").unwrap();
        assert!((quarter - 0.25 / 86_400.0).abs() < 1e-15);
        for text in [
            "",
            "2024",
            "2024-02-30",
            "29.02.2024",
            "02/29/2024",
            "2024-13-01",
            "12:30",
            "2024-W07-1",
            "x024-01-01",
        ] {
            assert_eq!(days(text), None, "{text}");
        }
    }

    fn names(encoding: Encoding) -> Vec<String> {
        InputColumn { name: "c".into(), encoding }.input_names()
    }

    #[test]
    fn categories_become_inputs_with_names() {
        let all = |labels: &[&str]| Categories::new(labels).unwrap();
        assert_eq!(
            names(Encoding::OneHot(all(&["red", "blue", "red", "green"]))),
            ["c=blue", "c=green", "c=red"]
        );
        // two categories are one input
        assert_eq!(names(Encoding::OneHot(all(&["yes", "no"]))), ["c=yes"]);
        assert_eq!(names(Encoding::OneHot(all(&["only"]))), ["c=only"]);
        assert_eq!(names(Encoding::Code(all(&["yes", "no"]))), ["c"]);
        assert_eq!(names(Encoding::Number), ["c"]);
        assert!(Categories::new(Vec::<String>::new()).is_err());
    }

    #[test]
    fn cells_are_found_in_any_way_of_writing() {
        let all = Categories::new(["10", "9", "True"]).unwrap();
        assert_eq!(all.labels(), ["10", "9", "true"]);
        assert_eq!(all.find(" 9.0 "), Ok(1));
        assert_eq!(all.find("TRUE"), Ok(2));
        let error = all.find("11").unwrap_err();
        assert!(
            error.contains("`11` is none of the categories") && error.contains("`10`, `9`"),
            "{error}"
        );
    }

    #[test]
    fn files_keep_them() {
        let column = InputColumn {
            name: "c".into(),
            encoding: Encoding::OneHot(Categories::new(["b", "a"]).unwrap()),
        };
        let text = serde_json::to_string(&column).unwrap();
        assert_eq!(text, r#"{"name":"c","encoding":{"one-hot":["a","b"]}}"#);
        assert_eq!(serde_json::from_str::<InputColumn>(&text).unwrap(), column);
        assert!(serde_json::from_str::<Categories>(r#"["a","a"]"#).is_err());
        assert!(serde_json::from_str::<Categories>("[]").is_err());
    }
}

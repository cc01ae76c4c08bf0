//! Input columns that hold no numbers: how dates and categories become numbers, and what a model remembers of it.

use super::Holidays;
use super::classes::{as_number, canonical, in_order, with_exponent};
use super::sphere::{COORDINATES, check_latitude, check_longitude, place_name, place_point};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;

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
    /// A date or a moment as days since 1970-01-01 00:00 UTC, see [`days`](super::days).
    Date,
    /// A date as before, and after it an input `column=holiday` for each name of a day: 1 on its days, else 0.
    Calendar(Holidays),
    /// A latitude in degrees, with the longitude in another column: the point of the sphere in kilometres, of which each
    /// coordinate is an input.
    Place {
        /// The column of the longitude, in degrees.
        longitude: String,
    },
    /// An input `column=category` for each category, 1 where the row has it, else 0; of two
    /// categories only the second has one.
    OneHot(Categories),
    /// The place of the category among all, 0, 1, …: for kernels that read labels.
    Code(Categories),
    /// A number or a date, which is missing in some rows.
    Filled(Filled),
}

/// What becomes of categories that no training row had, in rows to predict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// They are refused, unless all kernels that read the column know groups of no training row
    /// ([`Kernel::open_labels`](crate::kernels::Kernel::open_labels)).
    #[default]
    Refuse,
    /// In columns with an input for each category they are taken for one more category, which is as far from the others as these
    /// are from each other ([`Categories::apart`]). Other columns refuse them as before.
    Ignore,
}

/// What takes the place of missing cells of a column of numbers or dates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filled {
    /// The number, or the date as days.
    pub value: f64,
    /// Whether the column holds dates.
    pub date: bool,
    /// Whether an input `column=missing` follows: 1 where the cell is missing, else 0.
    pub indicator: bool,
}

impl Filled {
    /// Returns the inputs of a cell, `None` where it is missing.
    pub fn inputs(&self, value: Option<f64>) -> Vec<f64> {
        let gap = self.indicator.then_some(f64::from(u8::from(value.is_none())));
        std::iter::once(value.unwrap_or(self.value)).chain(gap).collect()
    }
}

impl Encoding {
    /// Returns the categories, where there are some.
    pub fn categories(&self) -> Option<&Categories> {
        match self {
            Self::Number
            | Self::Date
            | Self::Calendar(_)
            | Self::Filled(_)
            | Self::Place { .. } => None,
            Self::OneHot(all) | Self::Code(all) => Some(all),
        }
    }

    /// Says whether the column holds dates.
    pub fn is_date(&self) -> bool {
        matches!(self, Self::Date | Self::Calendar(_) | Self::Filled(Filled { date: true, .. }))
    }

    /// Returns the holidays, where there are some.
    pub fn holidays(&self) -> Option<&Holidays> {
        match self {
            Self::Calendar(all) => Some(all),
            _ => None,
        }
    }

    /// Returns the inputs that a number or a date, as days, becomes.
    pub fn of_number(&self, value: f64) -> Vec<f64> {
        if let Self::Filled(own) = self {
            return own.inputs(Some(value));
        }
        let holidays = self.holidays().map(|all| all.on(value)).unwrap_or_default();
        std::iter::once(value).chain(holidays).collect()
    }
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
    /// Returns the column where categories that are none of its codes have a code too, that after the last: for kernels
    /// that know groups of no training row. Not to learn from: there all of them would be one.
    #[must_use]
    pub fn opened(mut self) -> Self {
        if let Encoding::Code(all) = &mut self.encoding {
            all.open = true;
        }
        self
    }

    /// Returns the column where categories that have no input have their place too, as [`Unknown`] says. Not to learn from.
    #[must_use]
    pub fn with_unknown(mut self, unknown: Unknown) -> Self {
        if let (Encoding::OneHot(all), Unknown::Ignore) = (&mut self.encoding, unknown) {
            all.open = true;
        }
        self
    }

    /// Returns whether its inputs, with those of the column first, are those of a category that has
    /// none: neither 0 nor 1.
    pub fn is_unknown(&self, inputs: &[f64]) -> bool {
        let Encoding::OneHot(all) = &self.encoding else { return false };
        inputs[..all.one_by_one().len()].iter().any(|value| *value != 0.0 && *value != 1.0)
    }

    /// Creates a column of numbers.
    pub fn number(name: impl Into<String>) -> Self {
        Self { name: name.into(), encoding: Encoding::Number }
    }

    /// Returns the names of the columns of the file that it is read from.
    pub fn sources(&self) -> Vec<&str> {
        match &self.encoding {
            Encoding::Place { longitude } => vec![&self.name, longitude],
            _ => vec![&self.name],
        }
    }

    /// Returns the name to show: of a place that of both columns.
    pub fn title(&self) -> String {
        match &self.encoding {
            Encoding::Place { longitude } => place_name(&self.name, longitude),
            _ => self.name.clone(),
        }
    }

    /// Returns the inputs that the numbers of its columns become, if these are a place or numbers.
    ///
    /// # Errors
    /// What is wrong with a number, after the name of its column.
    pub fn of_numbers(&self, values: &[f64]) -> std::result::Result<Vec<f64>, String> {
        match (&self.encoding, values) {
            (Encoding::Place { longitude }, [first, second]) => {
                check_latitude(*first).map_err(|why| format!("column `{}`: {why}", self.name))?;
                check_longitude(*second).map_err(|why| format!("column `{longitude}`: {why}"))?;
                Ok(place_point(*first, *second).to_vec())
            }
            _ => Ok(values.to_vec()),
        }
    }

    /// Returns the names of the inputs that it becomes.
    pub fn input_names(&self) -> Vec<String> {
        match &self.encoding {
            Encoding::Number | Encoding::Date | Encoding::Code(_) => vec![self.name.clone()],
            Encoding::Calendar(all) => {
                let named = all.names().map(|name| format!("{}={name}", self.name));
                std::iter::once(self.name.clone()).chain(named).collect()
            }
            Encoding::Place { .. } => {
                let title = self.title();
                ["x", "y", "z"][..COORDINATES].iter().map(|own| format!("{title}={own}")).collect()
            }
            Encoding::OneHot(all) => {
                let one = |of: usize| format!("{}={}", self.name, all.shown(of));
                all.one_by_one().map(one).collect()
            }
            Encoding::Filled(own) => {
                let gap = own.indicator.then(|| format!("{}={MISSING}", self.name));
                std::iter::once(self.name.clone()).chain(gap).collect()
            }
        }
    }
}

/// The name of the category of missing cells, and of the input that says which cells are missing.
const MISSING: &str = "missing";

/// The categories of a column, in their natural order: by value if all are numbers, else as texts. They are compared
/// as the labels of [`Classes`](super::Classes) are. An empty label is that of missing cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Categories {
    labels: Vec<String>,
    codes: HashMap<String, usize>,
    /// Whether others are known too, all of them by the code after the last.
    pub(super) open: bool,
}

impl Categories {
    /// Creates categories from labels in any order; repeated ones count once.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is none.
    pub fn new(labels: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self> {
        Self::try_from(in_order(labels.into_iter().map(|l| canonical(l.as_ref())).collect()))
    }

    /// Returns the labels in the order of their codes.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Returns the label of a code as a person reads it, which is not empty.
    pub fn shown(&self, code: usize) -> &str {
        match self.labels[code].as_str() {
            "" if self.codes.contains_key(MISSING) => "(missing)",
            "" => MISSING,
            own => own,
        }
    }

    /// Returns the code of missing cells, where they are a category.
    pub fn missing(&self) -> Option<usize> {
        self.codes.get("").copied()
    }

    /// Returns these categories, and that of missing cells.
    #[cfg(feature = "tables")]
    pub(super) fn with_missing(&self) -> Result<Self> {
        let all = self.labels.iter().map(String::as_str);
        Ok(Self { open: self.open, ..Self::new(all.chain([""]))? })
    }

    /// Returns the code of a category.
    pub fn code(&self, label: &str) -> Option<usize> {
        let find = |label: &str| self.codes.get(label).copied();
        find(&canonical(label))
            .or_else(|| find(&as_number(label)?))
            .or_else(|| with_exponent(self.labels.iter().map(String::as_str), label))
    }

    /// Returns the value of all inputs of a column with one for each of K ≠ 2 categories, for a category that has none:
    /// $(1-\sqrt{1+K})/K$. So it is $\sqrt2$ away from every category, as these are from each other. Two categories share one
    /// input, on which no place is as far from both: ½ there.
    pub fn apart(&self) -> f64 {
        let k = self.labels.len() as f64;
        if self.labels.len() == 2 { 0.5 } else { (1.0 - (1.0 + k).sqrt()) / k }
    }

    /// Returns the codes that have an input each where there is one for a category: one of two says
    /// it all.
    pub(super) fn one_by_one(&self) -> Range<usize> {
        usize::from(self.labels.len() == 2)..self.labels.len()
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
        Ok(Self { labels, codes, open: false })
    }
}

impl From<Categories> for Vec<String> {
    fn from(categories: Categories) -> Self {
        categories.labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

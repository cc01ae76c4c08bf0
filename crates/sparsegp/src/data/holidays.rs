//! Days with their own effects, such as holidays.

use super::encoding::{InputColumn, MOST_ONE_HOT};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Days before and after a holiday, at most.
const WIDEST: u32 = 60;

/// Named days: each name becomes an input that is 1 on its days and 0 on all others.
///
/// Days before and after a holiday have their own names, such as `Easter -1` and `Easter +1`, since
/// their effects are others. Days are counted from 1970-01-01, in UTC as dates of tables are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, BTreeSet<i64>>", into = "BTreeMap<String, BTreeSet<i64>>")]
pub struct Holidays {
    days: BTreeMap<String, BTreeSet<i64>>,
}

/// A day with a name, and the days before and after it that count too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Holiday {
    /// What it is called.
    pub name: String,
    /// Days since 1970-01-01.
    pub day: i64,
    /// Days before it with an effect.
    #[serde(default)]
    pub before: u32,
    /// Days after it with an effect.
    #[serde(default)]
    pub after: u32,
}

impl Holidays {
    /// Creates holidays from days in any order; those that are given twice count once.
    ///
    /// # Errors
    /// [`Error::Invalid`] for none, a name that is empty, more than 60 days before or after one, and more than 100 names of days.
    ///
    /// ```
    /// use sparsegp::data::{Holiday, Holidays};
    /// let day = |day| Holiday { name: "fair".into(), day, before: 1, after: 0 };
    /// let all = Holidays::new([day(18_993), day(19_358)])?;
    /// assert_eq!(all.names().collect::<Vec<_>>(), ["fair", "fair -1"]);
    /// assert_eq!(all.on(19_357.8), [0.0, 1.0]);
    /// # Ok::<(), sparsegp::Error>(())
    /// ```
    pub fn new(all: impl IntoIterator<Item = Holiday>) -> Result<Self> {
        let mut days: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
        for Holiday { name, day, before, after } in all {
            let name = name.trim();
            if before.max(after) > WIDEST {
                return Err(Error::Invalid(format!(
                    "holiday `{name}`: {} days before or after it, at most {WIDEST} are possible",
                    before.max(after)
                )));
            }
            for offset in -i64::from(before)..=i64::from(after) {
                let name = if offset == 0 { name.to_owned() } else { format!("{name} {offset:+}") };
                days.entry(name).or_default().insert(day + offset);
            }
        }
        Self::try_from(days)
    }

    /// Returns the names of the days in the order of their inputs.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.days.keys().map(String::as_str)
    }

    /// Returns 1 for the names that a moment's day has, and 0 for the others.
    pub fn on(&self, moment: f64) -> Vec<f64> {
        (0..self.days.len()).map(|index| self.is_on(index, moment)).collect()
    }

    /// Returns 1 if a moment's day has the name of this place, else 0.
    pub(crate) fn is_on(&self, index: usize, moment: f64) -> f64 {
        let days = self.days.values().nth(index);
        f64::from(u8::from(days.is_some_and(|days| days.contains(&(moment.floor() as i64)))))
    }

    /// Returns the last day that has a name.
    pub fn last(&self) -> i64 {
        self.days.values().filter_map(BTreeSet::last).copied().max().unwrap_or_default()
    }
}

impl TryFrom<BTreeMap<String, BTreeSet<i64>>> for Holidays {
    type Error = Error;

    fn try_from(days: BTreeMap<String, BTreeSet<i64>>) -> Result<Self> {
        if days.is_empty() {
            return Err(Error::Invalid("there are no holidays".into()));
        }
        if days.keys().any(|name| name.trim().is_empty()) {
            return Err(Error::Invalid("a holiday has no name".into()));
        }
        if days.len() > MOST_ONE_HOT {
            return Err(Error::Invalid(format!(
                "{} names of holidays with the days before and after them; at most {MOST_ONE_HOT} are possible",
                days.len()
            )));
        }
        Ok(Self { days })
    }
}

impl From<Holidays> for BTreeMap<String, BTreeSet<i64>> {
    fn from(holidays: Holidays) -> Self {
        holidays.days
    }
}

/// Returns the places of the inputs that are holidays, of the inputs that these columns become.
pub(crate) fn inputs_of_holidays(columns: &[InputColumn]) -> Vec<usize> {
    let (mut places, mut first) = (Vec::new(), 0);
    for column in columns {
        let next = first + column.input_names().len();
        if column.encoding.holidays().is_some() {
            // the first one is the date
            places.extend(first + 1..next);
        }
        first = next;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::super::{Encoding, InputColumn};
    use super::*;

    fn day(name: &str, day: i64, before: u32, after: u32) -> Holiday {
        Holiday { name: name.into(), day, before, after }
    }

    #[test]
    fn days_have_the_names_of_their_holidays_and_of_those_near() {
        let all = Holidays::new([
            day("b", 100, 1, 2),
            day("a", 101, 0, 0),
            day("b", 200, 0, 0),
            day("b", 200, 0, 0),
        ])
        .unwrap();
        assert_eq!(all.names().collect::<Vec<_>>(), ["a", "b", "b +1", "b +2", "b -1"]);
        assert_eq!(all.on(100.0), [0.0, 1.0, 0.0, 0.0, 0.0]);
        // until midnight, and a day may have two names
        assert_eq!(all.on(101.999), [1.0, 0.0, 1.0, 0.0, 0.0]);
        assert_eq!(all.on(99.0), [0.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(all.on(-5.5), [0.0; 5]);
        assert_eq!(all.last(), 200);
    }

    #[test]
    fn what_cannot_be_a_calendar_is_refused() {
        let text = |own: Vec<Holiday>| Holidays::new(own).unwrap_err().to_string();
        assert!(text(Vec::new()).contains("no holidays"));
        assert!(text(vec![day(" ", 3, 0, 0)]).contains("no name"));
        assert!(text(vec![day("a", 3, 61, 0)]).contains("holiday `a`: 61 days"));
        assert!(text(vec![day("a", 3, 60, 60)]).contains("121 names"));
    }

    #[test]
    fn files_keep_them() {
        let all = Holidays::new([day("b", 100, 1, 0)]).unwrap();
        let column = InputColumn { name: "t".into(), encoding: Encoding::Calendar(all) };
        let text = serde_json::to_string(&column).unwrap();
        assert_eq!(text, r#"{"name":"t","encoding":{"calendar":{"b":[100],"b -1":[99]}}}"#);
        assert_eq!(serde_json::from_str::<InputColumn>(&text).unwrap(), column);
        assert_eq!(column.input_names(), ["t", "t=b", "t=b -1"]);
        assert!(serde_json::from_str::<Holidays>("{}").is_err());
        let plain = InputColumn::number("x");
        assert_eq!(inputs_of_holidays(&[plain.clone(), column, plain]), [2, 3]);
    }
}

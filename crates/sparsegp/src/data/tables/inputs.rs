//! How a cell of text becomes the inputs of its column.

use super::cells::{is_missing, shown};
use super::dates::{days, no_date};
use super::labels::listed;
use crate::data::Holidays;
use crate::data::encoding::{Categories, Encoding, InputColumn};
use crate::data::options::ReadOptions;
use crate::data::sphere::COORDINATES;
use std::sync::Arc;

impl InputColumn {
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
        if let Some(code) = self.encoding.categories().and_then(|all| all.code(cell)) {
            return Ok(self.readings().iter().map(|(_, reading)| reading.of_code(code)).collect());
        }
        if is_missing(cell, &plain) {
            return Err("is missing: leave such rows out, or fill them in".into());
        }
        match &self.encoding {
            Encoding::Number => {
                let text = cell.trim();
                let number = plain.number(text).map(|value| vec![value]);
                number.ok_or_else(|| format!("`{}` is not a number", shown(text)))
            }
            own @ (Encoding::Date | Encoding::Calendar(_)) => {
                days(cell).map(|value| own.of_number(value)).ok_or_else(|| no_date(cell))
            }
            Encoding::Place { longitude } => Err(format!(
                "is a latitude, which has a place with its longitude `{longitude}` only"
            )),
            Encoding::Code(all) | Encoding::OneHot(all) => {
                all.find(cell).map(|code| vec![code as f64])
            }
        }
    }

    /// What it becomes, with the names.
    pub(super) fn readings(&self) -> Vec<(String, Reading)> {
        let readings = match &self.encoding {
            Encoding::Number => vec![Reading::Number],
            // that both are numbers: they become coordinates when rows have been read
            Encoding::Place { .. } => vec![Reading::Number; COORDINATES],
            Encoding::Date => vec![Reading::Date],
            Encoding::Calendar(all) => {
                let shared = Arc::new(all.clone());
                let one = |of| Reading::Holiday { all: shared.clone(), of };
                std::iter::once(Reading::Date).chain((0..all.names().count()).map(one)).collect()
            }
            Encoding::Code(all) => {
                vec![Reading::Category { all: Arc::new(all.clone()), of: None }]
            }
            Encoding::OneHot(all) => {
                let shared = Arc::new(all.clone());
                let one = |of| Reading::Category { all: shared.clone(), of: Some(of) };
                all.one_by_one().map(one).collect()
            }
        };
        self.input_names().into_iter().zip(readings).collect()
    }
}

impl Categories {
    /// The code of a cell.
    pub(super) fn find(&self, cell: &str) -> Result<usize, String> {
        self.code(cell).or_else(|| self.open.then_some(self.labels().len())).ok_or_else(|| {
            format!(
                "`{}` is none of the categories that the model knows: {}; correct the cell, or learn from rows \
                 that have it",
                cell.trim(),
                listed(self.labels().iter().map(String::as_str).collect())
            )
        })
    }
}

/// How a cell becomes a number.
#[derive(Clone, Debug, Default)]
pub(super) enum Reading {
    #[default]
    Number,
    Date,
    /// 1 where the date has the name `of`, else 0.
    Holiday {
        all: Arc<Holidays>,
        of: usize,
    },
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

    /// The number for a date as days.
    pub fn of_date(&self, days: f64) -> f64 {
        match self {
            Reading::Holiday { all, of } => all.is_on(*of, days),
            _ => days,
        }
    }

    /// Says whether cells are dates.
    pub fn is_date(&self) -> bool {
        matches!(self, Reading::Date | Reading::Holiday { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}

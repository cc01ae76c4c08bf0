//! How a cell of text becomes the inputs of its column.

use super::cells::{is_missing, is_missing_number, shown};
use super::dates::no_date;
use super::labels::listed;
use crate::data::Holidays;
use crate::data::encoding::{Categories, Encoding, Filled, InputColumn};
use crate::data::options::ReadOptions;
use crate::data::sphere::COORDINATES;
use std::sync::Arc;

impl InputColumn {
    /// Returns the numbers for a cell, one for each of the [`InputColumn::input_names`].
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
        self.numbers_as(cell, &ReadOptions::default())
    }

    /// Returns the same for a cell that is written as these options say.
    ///
    /// # Errors
    /// As for [`InputColumn::numbers`].
    pub fn numbers_as(
        &self,
        cell: &str,
        written: &ReadOptions,
    ) -> std::result::Result<Vec<f64>, String> {
        if let Some(code) = self.encoding.categories().and_then(|all| all.code(cell)) {
            return Ok(self.of_code(code));
        }
        if let Encoding::Filled(own) = &self.encoding
            && (is_missing(cell, written) || !own.date && is_missing_number(cell, written))
        {
            return Ok(own.inputs(None));
        }
        if is_missing(cell, written) {
            if let Some(code) = self.encoding.categories().and_then(Categories::missing) {
                return Ok(self.of_code(code));
            }
            return Err("is missing: leave such rows out, or fill them in".into());
        }
        match &self.encoding {
            own if own.is_date() => {
                let days = written.date(&self.name, cell);
                days.map(|value| own.of_number(value)).ok_or_else(|| no_date(cell))
            }
            Encoding::Place { longitude } => Err(format!(
                "is a latitude, which has a place with its longitude `{longitude}` only"
            )),
            Encoding::Code(_) | Encoding::OneHot(_) => {
                let readings = self.readings();
                let code = readings.first().map(|(_, first)| first.find(cell)).transpose()?;
                Ok(code.map(|code| self.of_code(code)).unwrap_or_default())
            }
            own => {
                let text = cell.trim();
                let number = written.number(text).map(|value| own.of_number(value));
                let how = if written.decimal == ',' { " with a decimal comma" } else { "" };
                number.ok_or_else(|| format!("`{}` is not a number{how}", shown(text)))
            }
        }
    }

    fn of_code(&self, code: usize) -> Vec<f64> {
        self.readings().iter().map(|(_, reading)| reading.of_code(code)).collect()
    }

    /// Returns what takes the place of a missing cell, for each of the inputs; none where a missing
    /// cell is refused.
    pub(super) fn fillings(&self) -> Vec<Option<f64>> {
        match &self.encoding {
            Encoding::Filled(own) => own.inputs(None).into_iter().map(Some).collect(),
            own => match own.categories().and_then(Categories::missing) {
                Some(code) => self.of_code(code).into_iter().map(Some).collect(),
                None => vec![None; self.input_names().len()],
            },
        }
    }

    /// Returns what it becomes, with the names.
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
            Encoding::Filled(Filled { date, indicator, .. }) => {
                let first = if *date { Reading::Date } else { Reading::Number };
                let gap = indicator.then_some(Reading::Gap { date: *date });
                std::iter::once(first).chain(gap).collect()
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
    /// Returns the code of a cell.
    pub(super) fn find(&self, cell: &str) -> Result<usize, String> {
        self.code(cell).or_else(|| self.open.then_some(self.labels().len())).ok_or_else(|| {
            format!(
                "`{}` is none of the categories that the model knows: {}; correct the cell, or learn from rows \
                 that have it",
                cell.trim(),
                listed((0..self.labels().len()).map(|code| self.shown(code)).collect())
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
    /// 0, as a cell is there; what is missing is filled by 1.
    Gap {
        date: bool,
    },
    /// 1 where the category is `of`, else 0; without `of` its code.
    Category {
        all: Arc<Categories>,
        of: Option<usize>,
    },
}

impl Reading {
    /// Returns the number for a category.
    pub fn of_code(&self, code: usize) -> f64 {
        match self {
            Reading::Category { all, of: Some(_) } if code == all.labels().len() => all.apart(),
            Reading::Category { of: Some(own), .. } => f64::from(u8::from(*own == code)),
            _ => code as f64,
        }
    }

    /// Returns the code of a cell.
    ///
    /// # Errors
    /// The category that is unknown, and what to do about it; for anything but categories.
    pub fn find(&self, cell: &str) -> Result<usize, String> {
        let Reading::Category { all, of } = self else {
            return Err("holds no categories".into());
        };
        all.find(cell).map_err(|reason| match of {
            Some(_) => format!(
                "{reason}; predictions with `--unknown ignore` take it for one more category"
            ),
            None => reason,
        })
    }

    /// Returns the number for a date as days.
    pub fn of_date(&self, days: f64) -> f64 {
        match self {
            Reading::Holiday { all, of } => all.is_on(*of, days),
            own => own.of_number(days),
        }
    }

    /// Returns the number for a number.
    pub fn of_number(&self, value: f64) -> f64 {
        if matches!(self, Reading::Gap { .. }) { 0.0 } else { value }
    }

    /// Says whether cells are numbers.
    pub fn is_number(&self) -> bool {
        matches!(self, Reading::Number | Reading::Gap { date: false })
    }

    /// Says whether cells are dates.
    pub fn is_date(&self) -> bool {
        matches!(self, Reading::Date | Reading::Holiday { .. } | Reading::Gap { date: true })
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

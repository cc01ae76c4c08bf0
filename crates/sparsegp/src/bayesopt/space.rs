//! What may be tried: numbers, whole numbers and categories within bounds.

use crate::error::{Error, Result};
use crate::linalg::Mat;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::str::FromStr;

/// What an input may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Range {
    /// A number.
    Real {
        /// Least value.
        low: f64,
        /// Largest value.
        high: f64,
        /// Whether factors count, not differences.
        log: bool,
    },
    /// A whole number.
    Integer {
        /// Least value.
        low: i64,
        /// Largest value.
        high: i64,
        /// Whether factors count, not differences.
        log: bool,
    },
    /// One of these; a point has its place, from 0.
    Categories(Vec<String>),
}

/// An input with its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dimension {
    /// Name.
    pub name: String,
    /// What it may be.
    pub range: Range,
}

/// The inputs of what is optimised. A point is a number for each: the number itself, or the place of the category.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Space {
    dimensions: Vec<Dimension>,
}

/// Whole numbers beyond which differences of 1 are lost.
const LARGEST: u64 = 1 << 52;
/// Standard deviation of a uniform number between 0 and 1 has this inverse: inputs of models have a spread of 1.
const UNIFORM: f64 = 3.464_101_615_137_754_6;

/// Parts of a range up to which a number is its end.
const END: f64 = 1e-9;

/// `name=low:high`, with `:log` and `:integer` after it, or `name=a,b,c`.
impl FromStr for Dimension {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |reason: String| {
            Error::Invalid(format!(
                "cannot read the input `{text}`: {reason}; write `name=0.1:10`, `name=1e-5:1:log`, `name=1:8:integer` or \
                 `name=red,green,blue`"
            ))
        };
        let Some((name, rest)) = text.split_once('=') else {
            return Err(wrong("it has no `=`".into()));
        };
        let name = name.trim().to_owned();
        if rest.contains(',') {
            let all = rest.split(',').map(|part| part.trim().to_owned()).collect();
            return Ok(Self { name, range: Range::Categories(all) });
        }
        let parts: Vec<&str> = rest.split(':').map(str::trim).collect();
        let [low, high, words @ ..] = &parts[..] else {
            return Err(wrong("a range has two ends".into()));
        };
        if let Some(word) = words.iter().find(|word| !["log", "integer"].contains(*word)) {
            return Err(wrong(format!("after the range comes `log` or `integer`, not `{word}`")));
        }
        let number = |part: &str| {
            part.parse::<f64>().map_err(|_| wrong(format!("`{part}` is not a number")))
        };
        let whole = |part: &str| {
            part.parse::<i64>().map_err(|_| wrong(format!("`{part}` is not a whole number")))
        };
        let log = words.contains(&"log");
        let range = match words.contains(&"integer") {
            true => Range::Integer { low: whole(low)?, high: whole(high)?, log },
            false => Range::Real { low: number(low)?, high: number(high)?, log },
        };
        Ok(Self { name, range })
    }
}

impl Dimension {
    fn check(&self) -> Result<()> {
        let wrong =
            |reason: String| Err(Error::Invalid(format!("input `{}`: {reason}", self.name)));
        match &self.range {
            Range::Real { low, high, log } => {
                if !(low < high && (high - low).is_finite()) {
                    return wrong(format!(
                        "its range goes from {low} to {high}; give two finite numbers, the smaller one first"
                    ));
                }
                if *log && *low <= 0.0 {
                    return wrong(format!("a logarithmic range begins above 0, not at {low}"));
                }
            }
            Range::Integer { low, high, log } => {
                if low >= high || low.unsigned_abs().max(high.unsigned_abs()) > LARGEST {
                    return wrong(format!(
                        "its range goes from {low} to {high}; give two whole numbers of at most 2⁵², the smaller one first"
                    ));
                }
                if *log && *low < 1 {
                    return wrong(format!(
                        "a logarithmic range of whole numbers begins at 1 or above, not at {low}"
                    ));
                }
            }
            Range::Categories(all) => {
                let distinct: BTreeSet<&String> = all.iter().collect();
                if all.len() < 2 || distinct.len() < all.len() {
                    return wrong(format!(
                        "it has {} categories, {} of them distinct; give at least two, each once",
                        all.len(),
                        distinct.len()
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns how many values it may have; none for a number.
    pub fn levels(&self) -> Option<u64> {
        match &self.range {
            Range::Real { .. } => None,
            Range::Integer { low, high, .. } => Some(high.abs_diff(*low) + 1),
            Range::Categories(all) => Some(all.len() as u64),
        }
    }

    /// Returns whether it is one of several categories.
    pub(super) fn is_category(&self) -> bool {
        matches!(self.range, Range::Categories(_))
    }

    /// Returns the value at a part of the range, from 0 to 1: every whole number and every category
    /// has an equal share of it, by logarithms where these count.
    pub(super) fn at(&self, part: f64) -> f64 {
        let part = part.clamp(0.0, 1.0);
        match &self.range {
            // the ends to the bit
            Range::Real { low, .. } if part < END => *low,
            Range::Real { high, .. } if part > 1.0 - END => *high,
            Range::Real { low, high, log: false } => (low + part * (high - low)).clamp(*low, *high),
            Range::Real { low, high, log: true } => {
                (low.ln() + part * (high.ln() - low.ln())).exp().clamp(*low, *high)
            }
            Range::Integer { low, high, log } => {
                let (low, high) = (*low as f64, *high as f64);
                let (a, b) = (low - 0.5, high + 0.5);
                let value = if *log { a * (b / a).powf(part) } else { a + part * (b - a) };
                value.round().clamp(low, high)
            }
            Range::Categories(all) => (part * all.len() as f64).floor().min(all.len() as f64 - 1.0),
        }
    }

    /// Returns the part of the range at which a value is: the inverse of [`Dimension::at`], in the
    /// middle of a share.
    pub(super) fn part(&self, value: f64) -> f64 {
        let part = match &self.range {
            Range::Real { low, high, log: false } => (value - low) / (high - low),
            Range::Real { low, high, log: true } => {
                (value.ln() - low.ln()) / (high.ln() - low.ln())
            }
            Range::Integer { low, high, log } => {
                let (a, b) = (*low as f64 - 0.5, *high as f64 + 0.5);
                if *log { (value / a).ln() / (b / a).ln() } else { (value - a) / (b - a) }
            }
            Range::Categories(all) => (value + 0.5) / all.len() as f64,
        };
        part.clamp(0.0, 1.0)
    }

    /// Refuses a value that it cannot have.
    fn check_value(&self, value: f64) -> Result<()> {
        let wrong = |expected: String| {
            Err(Error::Invalid(format!("input `{}` is {value}; it must be {expected}", self.name)))
        };
        match &self.range {
            // ends that were written with fewer digits
            Range::Real { low, high, log } => {
                let slack = |end: f64| 1e-9 * if *log { end } else { high - low };
                match value >= low - slack(*low) && value <= high + slack(*high) {
                    true => Ok(()),
                    false => wrong(format!("from {low} to {high}")),
                }
            }
            Range::Integer { low, high, .. } => {
                let inside = value >= *low as f64 && value <= *high as f64;
                match inside && value.fract() == 0.0 {
                    true => Ok(()),
                    false => wrong(format!("a whole number from {low} to {high}")),
                }
            }
            Range::Categories(all) => {
                match value >= 0.0 && value < all.len() as f64 && value.fract() == 0.0 {
                    true => Ok(()),
                    false => wrong(format!("the place of one of {} categories", all.len())),
                }
            }
        }
    }

    /// Returns the number of inputs of a model: one of a number and of two categories, else one for
    /// every category.
    fn features(&self) -> usize {
        match &self.range {
            Range::Categories(all) if all.len() > 2 => all.len(),
            _ => 1,
        }
    }
}

impl Space {
    /// Makes a space of these inputs.
    ///
    /// # Errors
    /// [`Error::Invalid`] for none, for names that are empty or not distinct, and for ranges without two values.
    pub fn new(dimensions: Vec<Dimension>) -> Result<Self> {
        if dimensions.is_empty() {
            return Err(Error::Invalid("a space has at least one input".into()));
        }
        let mut names = BTreeSet::new();
        for own in &dimensions {
            own.check()?;
            if own.name.is_empty() || !names.insert(&own.name) {
                return Err(Error::Invalid(format!(
                    "the inputs of a space have distinct names; `{}` is empty or there twice",
                    own.name
                )));
            }
        }
        Ok(Self { dimensions })
    }

    /// Reads inputs written as `lr=1e-5:1:log`, `layers=1:8:integer` or `kind=a,b,c`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what cannot be read; as for [`Space::new`].
    pub fn parse(texts: &[impl AsRef<str>]) -> Result<Self> {
        let all = texts.iter().map(|text| text.as_ref().parse()).collect::<Result<_>>()?;
        Self::new(all)
    }

    /// Returns the inputs.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// Returns how many points there are; none where an input is a number, or where there are more than 2⁵³.
    pub fn points(&self) -> Option<u64> {
        let most = 1_u64 << 53;
        self.dimensions.iter().try_fold(1_u64, |product, own| {
            product.checked_mul(own.levels()?).filter(|points| *points <= most)
        })
    }

    /// Refuses a point that is not in the space.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of inputs, [`Error::Invalid`] for a value that an input cannot have.
    pub fn check(&self, point: &[f64]) -> Result<()> {
        if point.len() != self.dimensions.len() {
            return Err(Error::Shape {
                what: "a point".into(),
                expected: format!("{} values, one for every input", self.dimensions.len()),
                found: format!("{}", point.len()),
            });
        }
        self.dimensions.iter().zip(point).try_for_each(|(own, value)| own.check_value(*value))
    }

    /// Returns the point at these parts of the ranges.
    pub(super) fn at(&self, parts: &[f64]) -> Vec<f64> {
        self.dimensions.iter().zip(parts).map(|(own, part)| own.at(*part)).collect()
    }

    /// Returns at which parts of the ranges a point is.
    pub(super) fn parts(&self, point: &[f64]) -> Vec<f64> {
        self.dimensions.iter().zip(point).map(|(own, value)| own.part(*value)).collect()
    }

    /// Returns the number of inputs of a model.
    pub(super) fn features(&self) -> usize {
        self.dimensions.iter().map(Dimension::features).sum()
    }

    /// Returns points as a model sees them, N×E. Numbers have mean 0 and standard deviation 1 over
    /// their range, by logarithms where these count; categories that differ are as far apart as two
    /// random numbers are on average (by the mean square).
    pub(super) fn encoded(&self, parts: &[Vec<f64>]) -> Mat<f64> {
        let mut x = Mat::zeros(parts.len(), self.features());
        for (i, parts) in parts.iter().enumerate() {
            let mut at = 0;
            for (own, part) in self.dimensions.iter().zip(parts) {
                match &own.range {
                    Range::Categories(all) if all.len() > 2 => {
                        x[(i, at + own.at(*part) as usize)] = 1.0
                    }
                    Range::Categories(_) => x[(i, at)] = own.at(*part) * std::f64::consts::SQRT_2,
                    _ => x[(i, at)] = (part - 0.5) * UNIFORM,
                }
                at += own.features();
            }
        }
        x
    }

    /// Returns slopes in the parts of the ranges from slopes in what a model sees; 0 of categories.
    pub(super) fn pulled(&self, slopes: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut at = 0;
        let one = |own: &Dimension| {
            let first = at;
            at += own.features();
            if own.is_category() { 0.0 } else { UNIFORM * slopes(first) }
        };
        self.dimensions.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed() -> Space {
        Space::parse(&[
            "a=-2:3",
            "lr=1e-5:10:log",
            "n=1:7:integer",
            "k=4:4096:integer:log",
            "c=x,y,z",
            "b=no, yes",
        ])
        .expect("a space")
    }

    #[test]
    fn parts_and_values_are_inverse() {
        let space = mixed();
        for own in space.dimensions() {
            for step in 0..=200 {
                let value = own.at(f64::from(step) / 200.0);
                own.check_value(value).expect("inside");
                let again = own.at(own.part(value));
                assert!(
                    (again - value).abs() <= 1e-12 * value.abs().max(1.0),
                    "{}: {value} {again}",
                    own.name
                );
            }
        }
        // every whole number and every category has its share
        let count = |own: &Dimension, value| {
            (0..7000).filter(|i| own.at((f64::from(*i) + 0.5) / 7000.0) == value).count()
        };
        assert_eq!(count(&space.dimensions()[2], 1.0), 1000);
        assert_eq!(count(&space.dimensions()[2], 7.0), 1000);
        assert_eq!(count(&space.dimensions()[5], 1.0), 3500);
        assert!((space.dimensions()[1].at(0.5) - 0.01).abs() < 1e-15);
        assert_eq!(space.points(), None);
        assert_eq!(
            Space::parse(&["n=1:7:integer", "c=x,y,z"]).expect("a space").points(),
            Some(21)
        );
    }

    #[test]
    fn models_see_standard_scales() {
        let space = mixed();
        assert_eq!(space.features(), 8);
        let parts: Vec<Vec<f64>> =
            (0..1000).map(|i| vec![(f64::from(i) + 0.5) / 1000.0; 6]).collect();
        let x = space.encoded(&parts);
        for q in 0..4 {
            let square = x.col_as_slice(q).iter().map(|v| v * v).sum::<f64>() / 1000.0;
            assert!((square - 1.0).abs() < 1e-3, "{q}: {square}");
        }
        let apart = |i: usize, j: usize, q: std::ops::Range<usize>| {
            q.map(|q| (x[(i, q)] - x[(j, q)]).powi(2)).sum::<f64>()
        };
        assert!(
            (apart(0, 999, 4..7) - 2.0).abs() < 1e-12 && (apart(0, 999, 7..8) - 2.0).abs() < 1e-12
        );
        // slopes against differences of what models see
        let slopes = space.pulled(|q| 1.0 + q as f64);
        let of = |part: f64| {
            let x = space.encoded(&[vec![part, 0.5, 0.5, 0.5, 0.5, 0.5]]);
            (0..8).map(|q| (1.0 + q as f64) * x[(0, q)]).sum::<f64>()
        };
        assert!((slopes[0] - (of(0.6) - of(0.4)) / 0.2).abs() < 1e-9);
        assert_eq!(&slopes[4..], [0.0, 0.0]);
    }

    #[test]
    fn what_is_wrong_is_refused_by_name() {
        for (texts, part) in [
            (&["a"][..], "no `=`"),
            (&["a=1"], "two ends"),
            (&["a=1:x"], "`x` is not a number"),
            (&["a=1.5:3:integer"], "`1.5` is not a whole number"),
            (&["a=1:2:ln"], "not `ln`"),
            (&["a=2:1"], "the smaller one first"),
            (&["a=0:1:log"], "begins above 0"),
            (&["a=0:5:integer:log"], "begins at 1"),
            (&["a=x,x"], "each once"),
            (&["a=0:1", "a=0:2"], "distinct names"),
            (&[], "at least one input"),
        ] {
            let refused = Space::parse(texts).expect_err(part).to_string();
            assert!(refused.contains(part), "{refused}");
        }
        let space = mixed();
        let inside = [0.0, 1.0, 3.0, 9.0, 2.0, 1.0];
        space.check(&inside).expect("inside");
        for (at, value, part) in [
            (0, 4.0, "from -2 to 3"),
            (1, f64::NAN, "from 0.00001 to 10"),
            (2, 2.5, "a whole number from 1 to 7"),
            (4, 3.0, "one of 3 categories"),
        ] {
            let mut point = inside;
            point[at] = value;
            let refused = space.check(&point).expect_err(part).to_string();
            assert!(refused.contains(part), "{refused}");
        }
        assert!(space.check(&inside[..3]).is_err());
    }
}

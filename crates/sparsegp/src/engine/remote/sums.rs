//! Answers of shards: a list of vectors and matrices as one vector of numbers, which can be added.
//!
//! In front stand a 1, the length of the shape and the shape. In a sum of S answers they are S
//! times that, so that the sum tells how many answers are in it, and that all had one shape.

use crate::engine::passed::{Part, PartMut};
use crate::error::{Error, Result};

/// An answer in the making.
#[derive(Default)]
pub struct Packed {
    shape: Vec<f64>,
    values: Vec<f64>,
}

impl Packed {
    /// Adds a vector.
    pub fn vector(&mut self, values: &[f64]) {
        self.shape.push(values.len() as f64);
        self.values.extend_from_slice(values);
    }

    /// Adds what counts of a matrix.
    pub(in crate::engine) fn part(&mut self, part: Part<'_>) {
        self.shape.extend([part.all.nrows() as f64, part.all.ncols() as f64]);
        (0..part.all.ncols()).for_each(|j| self.values.extend_from_slice(part.column(j)));
    }

    /// Returns the answer.
    pub fn finish(self) -> Vec<f64> {
        let mut answer = vec![1.0, self.shape.len() as f64];
        answer.extend(self.shape);
        answer.extend(self.values);
        answer
    }
}

/// A sum of answers that is read, part after part.
pub struct Unpacked<'a> {
    shards: f64,
    shape: &'a [f64],
    values: &'a [f64],
}

fn damaged() -> Error {
    Error::Invalid("the answers of the shards have different shapes".into())
}

impl<'a> Unpacked<'a> {
    /// Begins to unpack the answers of so many shards.
    ///
    /// # Errors
    /// [`Error::Invalid`] if another number of shards, or shards with answers of different shapes,
    /// were added.
    pub fn new(answer: &'a [f64], shards: usize) -> Result<Self> {
        let (&count, rest) = answer.split_first().ok_or_else(damaged)?;
        if count != shards as f64 {
            return Err(Error::Invalid(format!(
                "{count} answers were added up, and there are {shards} shards"
            )));
        }
        let (&length, rest) = rest.split_first().ok_or_else(damaged)?;
        let length = length / count;
        let whole = length >= 0.0 && length.fract() == 0.0;
        let at = if whole { length as usize } else { usize::MAX };
        let (shape, values) = rest.split_at_checked(at).ok_or_else(damaged)?;
        Ok(Self { shards: count, shape, values })
    }

    /// Returns the next number of the shape.
    fn count(&mut self) -> Result<usize> {
        let (&first, rest) = self.shape.split_first().ok_or_else(damaged)?;
        self.shape = rest;
        let count = first / self.shards;
        let whole = count >= 0.0 && count.fract() == 0.0;
        if whole { Ok(count as usize) } else { Err(damaged()) }
    }

    fn values(&mut self, length: usize) -> Result<&'a [f64]> {
        let (own, rest) = self.values.split_at_checked(length).ok_or_else(damaged)?;
        self.values = rest;
        Ok(own)
    }

    /// Returns a vector.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a sum of other parts.
    pub fn vector(&mut self) -> Result<Vec<f64>> {
        let length = self.count()?;
        Ok(self.values(length)?.to_vec())
    }

    /// Reads what counts of a matrix of known shape.
    ///
    /// # Errors
    /// As for [`Unpacked::vector`].
    pub(in crate::engine) fn part(&mut self, mut part: PartMut<'_>) -> Result<()> {
        if (self.count()?, self.count()?) != (part.all.nrows(), part.all.ncols()) {
            return Err(damaged());
        }
        for j in 0..part.all.ncols() {
            let own = part.column(j);
            own.copy_from_slice(self.values(own.len())?);
        }
        Ok(())
    }

    /// Refuses what is left.
    ///
    /// # Errors
    /// As for [`Unpacked::vector`].
    pub fn end(self) -> Result<()> {
        if self.shape.is_empty() && self.values.is_empty() { Ok(()) } else { Err(damaged()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Mat;

    fn answer(factor: f64, size: usize) -> Vec<f64> {
        let mut packed = Packed::default();
        packed.vector(&[factor, 2.0 * factor]);
        let full = Mat::from_fn(2, 3, |i, j| factor * (i + 10 * j) as f64);
        packed.part(Part { all: full.as_ref(), lower: false });
        let lower = Mat::from_fn(size, size, |i, j| factor * (i.max(j) + 1) as f64);
        packed.part(Part { all: lower.as_ref(), lower: true });
        packed.finish()
    }

    #[test]
    fn sums_tell_of_how_many_answers_they_are() {
        let sum = |a: Vec<f64>, b: Vec<f64>| -> Vec<f64> {
            a.into_iter().zip(b).map(|(a, b)| a + b).collect()
        };
        let both = sum(answer(1.5, 4), answer(2.0, 4));
        let (mut full, mut lower) = (Mat::zeros(2, 3), Mat::zeros(4, 4));
        let whole = |a: &mut Mat<f64>, lower, read: &mut Unpacked<'_>| {
            read.part(PartMut { all: a.as_mut(), lower })
        };
        let mut read = Unpacked::new(&both, 2).unwrap();
        assert_eq!(read.vector().unwrap(), [3.5, 7.0]);
        whole(&mut full, false, &mut read).unwrap();
        assert_eq!(full[(1, 2)], 3.5 * 21.0);
        whole(&mut lower, true, &mut read).unwrap();
        assert_eq!((lower[(3, 1)], lower[(1, 3)]), (3.5 * 4.0, 0.0));
        assert!(read.count().is_err() && read.end().is_ok());
        // one answer is missing
        assert!(Unpacked::new(&both, 3).is_err() && Unpacked::new(&[], 1).is_err());
        // something is left
        assert!(Unpacked::new(&both, 2).unwrap().end().is_err());
        // another shape
        let other = sum(answer(1.0, 4), answer(1.0, 3));
        let mut read = Unpacked::new(&other, 2).unwrap();
        assert!(read.vector().is_ok() && whole(&mut full, false, &mut read).is_ok());
        assert!(whole(&mut lower, true, &mut read).is_err());
        let mut read = Unpacked::new(&both, 2).unwrap();
        assert!(read.vector().is_ok() && whole(&mut lower, false, &mut read).is_err());
    }
}

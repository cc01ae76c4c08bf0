//! Answers of shards: a list of vectors and matrices as one vector of numbers, which can be added.
//!
//! In front stand a 1, the length of the shape and the shape. In a sum of S answers they are S times that, so that the sum
//! tells how many answers are in it, and that all had one shape.

use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, column, mirror_lower};

/// An answer in the making.
#[derive(Default)]
pub struct Packed {
    shape: Vec<f64>,
    values: Vec<f64>,
}

impl Packed {
    /// Adds the length of a list of further parts.
    pub fn count(&mut self, count: usize) {
        self.shape.push(count as f64);
    }

    /// Adds a vector.
    pub fn vector(&mut self, values: &[f64]) {
        self.count(values.len());
        self.values.extend_from_slice(values);
    }

    /// Adds a matrix.
    pub fn full(&mut self, a: MatRef<'_, f64>) {
        self.count(a.nrows());
        self.count(a.ncols());
        (0..a.ncols()).for_each(|j| self.values.extend_from_slice(column(a, j)));
    }

    /// Adds the lower triangle of a square matrix.
    pub fn lower(&mut self, a: MatRef<'_, f64>) {
        self.count(a.nrows());
        (0..a.ncols()).for_each(|j| self.values.extend_from_slice(&column(a, j)[j..]));
    }

    /// The answer.
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
    /// Of the answers of so many shards.
    ///
    /// # Errors
    /// [`Error::Invalid`] if another number of shards, or shards with answers of different shapes, were added.
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

    /// The length of a list.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a sum of other parts.
    pub fn count(&mut self) -> Result<usize> {
        let (&first, rest) = self.shape.split_first().ok_or_else(damaged)?;
        self.shape = rest;
        let count = first / self.shards;
        let whole = count >= 0.0 && count.fract() == 0.0;
        if whole { Ok(count as usize) } else { Err(damaged()) }
    }

    fn part(&mut self, length: usize) -> Result<&'a [f64]> {
        let (part, rest) = self.values.split_at_checked(length).ok_or_else(damaged)?;
        self.values = rest;
        Ok(part)
    }

    /// A vector.
    ///
    /// # Errors
    /// As for [`Unpacked::count`].
    pub fn vector(&mut self) -> Result<Vec<f64>> {
        let length = self.count()?;
        Ok(self.part(length)?.to_vec())
    }

    /// A matrix.
    ///
    /// # Errors
    /// As for [`Unpacked::count`].
    pub fn full(&mut self) -> Result<Mat<f64>> {
        let (rows, columns) = (self.count()?, self.count()?);
        let values = self.part(rows.checked_mul(columns).ok_or_else(damaged)?)?;
        Ok(Mat::from_fn(rows, columns, |i, j| values[j * rows + i]))
    }

    /// A square matrix of which the lower triangle was sent; 0 above.
    ///
    /// # Errors
    /// As for [`Unpacked::count`].
    pub fn lower(&mut self) -> Result<Mat<f64>> {
        let size = self.count()?;
        let mut a = Mat::zeros(size, size);
        for j in 0..size {
            let own = self.part(size - j)?;
            a.col_as_slice_mut(j)[j..].copy_from_slice(own);
        }
        Ok(a)
    }

    /// The same, symmetric.
    ///
    /// # Errors
    /// As for [`Unpacked::count`].
    pub fn symmetric(&mut self) -> Result<Mat<f64>> {
        let mut a = self.lower()?;
        mirror_lower(a.as_mut());
        Ok(a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(factor: f64, size: usize) -> Vec<f64> {
        let mut packed = Packed::default();
        packed.vector(&[factor, 2.0 * factor]);
        packed.full(Mat::from_fn(2, 3, |i, j| factor * (i + 10 * j) as f64).as_ref());
        packed.count(1);
        packed.lower(Mat::from_fn(size, size, |i, j| factor * (i.max(j) + 1) as f64).as_ref());
        packed.finish()
    }

    #[test]
    fn sums_tell_of_how_many_answers_they_are() {
        let sum = |a: Vec<f64>, b: Vec<f64>| -> Vec<f64> {
            a.into_iter().zip(b).map(|(a, b)| a + b).collect()
        };
        let both = sum(answer(1.5, 4), answer(2.0, 4));
        let mut read = Unpacked::new(&both, 2).unwrap();
        assert_eq!(read.vector().unwrap(), [3.5, 7.0]);
        assert_eq!(read.full().unwrap()[(1, 2)], 3.5 * 21.0);
        assert_eq!(read.count().unwrap(), 1);
        let lower = read.symmetric().unwrap();
        assert_eq!((lower[(3, 1)], lower[(1, 3)]), (3.5 * 4.0, 3.5 * 4.0));
        assert!(read.count().is_err());
        // one answer is missing
        assert!(Unpacked::new(&both, 3).is_err() && Unpacked::new(&[], 1).is_err());
        // another shape
        let other = sum(answer(1.0, 4), answer(1.0, 3));
        let mut read = Unpacked::new(&other, 2).unwrap();
        assert!(read.vector().is_ok() && read.full().is_ok() && read.count().is_ok());
        assert!(read.lower().is_err());
    }
}

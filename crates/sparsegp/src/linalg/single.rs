//! Products of single precision between matrices of double precision.
//!
//! Factors are rounded to 24 bits, multiplied and summed in single precision, and the result is added in double
//! precision: an entry of a product of inner size K has a relative error of about √K·6·10⁻⁸ of the sum of the
//! absolute values of its terms. A product takes half the time and memory traffic; rounding the factors is
//! O(entries).

use super::products::shared;
use super::{Accum, Mat, MatMut, MatRef, Par, Structure, column, column_mut, sized, structured};
use faer::reborrow::ReborrowMut;
use faer::traits::RealField;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::ops::{Mul, SubAssign};

/// What products are made in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 53 bits.
    #[default]
    Double,
    /// 24 bits.
    Single,
}

/// Entries of matrices: `f64` and `f32`.
pub trait Real: 'static + RealField + Copy + Into<f64> + Mul<Output = Self> + SubAssign {
    /// Rows of the tiles in which matrices are multiplied at the full rate.
    const TILE: usize;
    /// The nearest number.
    fn of(value: f64) -> Self;
    /// The same matrix in double precision: itself, or a copy in `memory`.
    fn doubled<'a>(a: MatRef<'a, Self>, memory: &'a mut Mat<f64>) -> MatRef<'a, f64>;
    /// A matrix of double precision, or the transpose of one, in this one: itself, or a copy in `memory`.
    fn rounded<'a>(a: MatRef<'a, f64>, memory: &'a mut Mat<Self>) -> MatRef<'a, Self>;
    /// As [`structured`], from factors of this precision into double precision: at once, or by way of `memory`.
    fn product_into(
        dst: (MatMut<'_, f64>, Structure),
        accum: Accum,
        a: (MatRef<'_, Self>, Structure),
        b: (MatRef<'_, Self>, Structure),
        alpha: f64,
        memory: &mut Mat<Self>,
        par: Par,
    );
}

impl Real for f64 {
    const TILE: usize = 48;

    fn of(value: f64) -> Self {
        value
    }

    fn doubled<'a>(a: MatRef<'a, f64>, _: &'a mut Mat<f64>) -> MatRef<'a, f64> {
        a
    }

    fn rounded<'a>(a: MatRef<'a, f64>, _: &'a mut Mat<f64>) -> MatRef<'a, f64> {
        a
    }

    fn product_into(
        dst: (MatMut<'_, f64>, Structure),
        accum: Accum,
        a: (MatRef<'_, f64>, Structure),
        b: (MatRef<'_, f64>, Structure),
        alpha: f64,
        _: &mut Mat<f64>,
        par: Par,
    ) {
        structured(dst, accum, a, b, alpha, par);
    }
}

impl Real for f32 {
    const TILE: usize = 96;

    fn of(value: f64) -> Self {
        value as f32
    }

    fn doubled<'a>(a: MatRef<'a, f32>, memory: &'a mut Mat<f64>) -> MatRef<'a, f64> {
        sized(memory, a.nrows(), a.ncols());
        for j in 0..a.ncols() {
            let pairs = memory.col_as_slice_mut(j).iter_mut().zip(column(a, j));
            pairs.for_each(|(t, v)| *t = f64::from(*v));
        }
        memory.as_ref()
    }

    fn rounded<'a>(a: MatRef<'a, f64>, memory: &'a mut Mat<f32>) -> MatRef<'a, f32> {
        let transposed = a.row_stride() != 1;
        let source = if transposed { a.transpose() } else { a };
        sized(memory, source.nrows(), source.ncols());
        for j in 0..source.ncols() {
            let pairs = memory.col_as_slice_mut(j).iter_mut().zip(column(source, j));
            pairs.for_each(|(t, v)| *t = *v as f32);
        }
        if transposed { memory.transpose() } else { memory.as_ref() }
    }

    fn product_into(
        (mut dst, of_dst): (MatMut<'_, f64>, Structure),
        accum: Accum,
        a: (MatRef<'_, f32>, Structure),
        b: (MatRef<'_, f32>, Structure),
        alpha: f64,
        memory: &mut Mat<f32>,
        par: Par,
    ) {
        let (rows, cols) = (dst.nrows(), dst.ncols());
        sized(memory, rows, cols);
        shared((memory.as_mut(), of_dst), Accum::Replace, a, b, 1.0, par);
        for j in 0..cols {
            let range = match of_dst {
                Structure::TriangularLower => j.min(rows)..rows,
                Structure::TriangularUpper => 0..(j + 1).min(rows),
                _ => 0..rows,
            };
            let own = &mut column_mut(dst.rb_mut(), j)[range.clone()];
            let pairs = own.iter_mut().zip(&memory.col_as_slice(j)[range]);
            match accum {
                Accum::Replace => pairs.for_each(|(t, v)| *t = alpha * f64::from(*v)),
                Accum::Add => pairs.for_each(|(t, v)| *t += alpha * f64::from(*v)),
            }
        }
    }
}

/// Half a unit in the last place of single precision, relative.
pub const SINGLE_ROUNDING: f64 = 5.960_464_477_539_063e-8;

/// Rounded factors and their product.
struct Buffers([Mat<f32>; 3]);

thread_local! {
    /// Taken out while it is in use: whoever comes meanwhile makes new ones.
    static BUFFERS: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// As [`structured`], in the precision asked for.
pub fn structured_in(
    precision: Precision,
    (dst, of_dst): (MatMut<'_, f64>, Structure),
    accum: Accum,
    (a, of_a): (MatRef<'_, f64>, Structure),
    (b, of_b): (MatRef<'_, f64>, Structure),
    alpha: f64,
    par: Par,
) {
    if precision == Precision::Double {
        return structured((dst, of_dst), accum, (a, of_a), (b, of_b), alpha, par);
    }
    let mut buffers =
        BUFFERS.take().unwrap_or_else(|| Box::new(Buffers([Mat::new(), Mat::new(), Mat::new()])));
    let Buffers([left, right, product]) = &mut *buffers;
    let a = (f32::rounded(a, left), of_a);
    let b = (f32::rounded(b, right), of_b);
    f32::product_into((dst, of_dst), accum, a, b, alpha, product, par);
    BUFFERS.set(Some(buffers));
}

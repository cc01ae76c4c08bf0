//! Products of single precision between matrices of double precision.
//!
//! Factors are rounded to 24 bits, multiplied and summed in single precision, and the result is added in double
//! precision: an entry of a product of inner size K has a relative error of about √K·6·10⁻⁸ of the sum of the
//! absolute values of its terms. A product takes half the time and memory traffic; rounding the factors is
//! O(entries).

use super::exp::{Vectorised, dispatch};
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
    /// Returns the nearest number.
    fn of(value: f64) -> Self;
    /// Hands over a matrix for one of double precision: the matrices change places, or the entries are copied.
    fn hand_over(own: &mut Mat<Self>, double: &mut Mat<f64>);
    /// Takes a matrix of double precision: the matrices change places unless it is `kept`, or the entries are copied.
    /// Numbers between 0 and `floor` become `floor` where they are rounded.
    fn take(own: &mut Mat<Self>, double: &mut Mat<f64>, kept: bool, floor: f64);
    /// Returns the same matrix in double precision: itself, or a copy in `memory`.
    fn doubled<'a>(a: MatRef<'a, Self>, memory: &'a mut Mat<f64>) -> MatRef<'a, f64>;
    /// Returns a matrix of double precision, or the transpose of one, in this one: itself, or a
    /// copy in `memory`.
    fn rounded<'a>(a: MatRef<'a, f64>, memory: &'a mut Mat<Self>) -> MatRef<'a, Self>;
    /// Multiplies as [`structured`] does, from factors of this precision into double precision: at
    /// once, or by way of `memory`.
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

    fn hand_over(own: &mut Mat<f64>, double: &mut Mat<f64>) {
        std::mem::swap(own, double);
    }

    fn take(own: &mut Mat<f64>, double: &mut Mat<f64>, kept: bool, _: f64) {
        if kept {
            sized(own, double.nrows(), double.ncols());
            own.copy_from(&*double);
        } else {
            std::mem::swap(own, double);
        }
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

/// Numbers of double precision, rounded; those between 0 and the floor become the floor.
struct Round<'a>(&'a mut [f32], &'a [f64], f32);

impl Vectorised for Round<'_> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (t, v) in self.0.iter_mut().zip(self.1) {
            let v = *v as f32;
            *t = if v > 0.0 && v < self.2 { self.2 } else { v };
        }
    }
}

/// Numbers of single precision times a factor, in double precision.
struct Widen<'a>(&'a mut [f64], &'a [f32], f64);

impl Vectorised for Widen<'_> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        self.0.iter_mut().zip(self.1).for_each(|(t, v)| *t = self.2 * f64::from(*v));
    }
}

/// The same, added.
struct Adding<'a>(&'a mut [f64], &'a [f32], f64);

impl Vectorised for Adding<'_> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        self.0.iter_mut().zip(self.1).for_each(|(t, v)| *t += self.2 * f64::from(*v));
    }
}

impl Real for f32 {
    const TILE: usize = 96;

    fn of(value: f64) -> Self {
        value as f32
    }

    fn hand_over(own: &mut Mat<f32>, double: &mut Mat<f64>) {
        Self::doubled(own.as_ref(), double);
    }

    fn take(own: &mut Mat<f32>, double: &mut Mat<f64>, _: bool, floor: f64) {
        sized(own, double.nrows(), double.ncols());
        for j in 0..double.ncols() {
            dispatch(Round(own.col_as_slice_mut(j), double.col_as_slice(j), floor as f32));
        }
    }

    fn doubled<'a>(a: MatRef<'a, f32>, memory: &'a mut Mat<f64>) -> MatRef<'a, f64> {
        sized(memory, a.nrows(), a.ncols());
        for j in 0..a.ncols() {
            dispatch(Widen(memory.col_as_slice_mut(j), column(a, j), 1.0));
        }
        memory.as_ref()
    }

    fn rounded<'a>(a: MatRef<'a, f64>, memory: &'a mut Mat<f32>) -> MatRef<'a, f32> {
        let transposed = a.row_stride() != 1;
        let source = if transposed { a.transpose() } else { a };
        sized(memory, source.nrows(), source.ncols());
        for j in 0..source.ncols() {
            dispatch(Round(memory.col_as_slice_mut(j), column(source, j), 0.0));
        }
        if transposed { memory.transpose() } else { memory.as_ref() }
    }

    fn product_into(
        (dst, of_dst): (MatMut<'_, f64>, Structure),
        accum: Accum,
        (a, of_a): (MatRef<'_, f32>, Structure),
        (b, of_b): (MatRef<'_, f32>, Structure),
        alpha: f64,
        memory: &mut Mat<f32>,
        par: Par,
    ) {
        if is_whole(of_a) && is_whole(of_b) && dst.nrows().min(dst.ncols()) > SIDE {
            return tiles((dst, of_dst), accum, (a, b), alpha, matches!(par, Par::Seq));
        }
        sized(memory, dst.nrows(), dst.ncols());
        shared((memory.as_mut(), of_dst), Accum::Replace, (a, of_a), (b, of_b), 1.0, par);
        add((dst, of_dst), accum, memory.as_ref(), alpha);
    }
}

fn is_whole(structure: Structure) -> bool {
    matches!(structure, Structure::Rectangular)
}

/// Sets or adds `alpha` times a product within the structure of `dst`.
fn add(
    (mut dst, of_dst): (MatMut<'_, f64>, Structure),
    accum: Accum,
    product: MatRef<'_, f32>,
    alpha: f64,
) {
    let rows = dst.nrows();
    for j in 0..dst.ncols() {
        let range = match of_dst {
            Structure::TriangularLower => j.min(rows)..rows,
            Structure::TriangularUpper => 0..(j + 1).min(rows),
            _ => 0..rows,
        };
        let own = &mut column_mut(dst.rb_mut(), j)[range.clone()];
        let product = &column(product, j)[range];
        match accum {
            Accum::Replace => dispatch(Widen(own, product, alpha)),
            Accum::Add => dispatch(Adding(own, product, alpha)),
        }
    }
}

/// Sides of the tiles in which a large product is made and added: what is between its two precisions stays in the cache.
const SIDE: usize = 288;

thread_local! {
    /// One tile.
    static TILE: Cell<Option<Mat<f32>>> = const { Cell::new(None) };
}

/// Computes two parts of a result, one after the other or at the same time.
fn both(alone: bool, first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
    if alone {
        first();
        second();
    } else {
        rayon::join(first, second);
    }
}

/// Computes a product into double precision, tile by tile. How it is divided depends only on its
/// size.
fn tiles(
    (dst, of_dst): (MatMut<'_, f64>, Structure),
    accum: Accum,
    (a, b): (MatRef<'_, f32>, MatRef<'_, f32>),
    alpha: f64,
    alone: bool,
) {
    const WHOLE: Structure = Structure::Rectangular;
    let (rows, columns) = (dst.nrows(), dst.ncols());
    let part = |dst, of, a, b| tiles((dst, of), accum, (a, b), alpha, alone);
    let cut = (rows.max(columns) / 2).next_multiple_of(f32::TILE);
    if rows.max(columns) <= SIDE {
        let mut tile = TILE.take().unwrap_or_else(Mat::new);
        sized(&mut tile, rows, columns);
        shared((tile.as_mut(), of_dst), Accum::Replace, (a, WHOLE), (b, WHOLE), 1.0, Par::Seq);
        add((dst, of_dst), accum, tile.as_ref(), alpha);
        TILE.set(Some(tile));
    } else if !is_whole(of_dst) {
        let ((above, below), (before, after)) = (a.split_at_row(cut), b.split_at_col(cut));
        let (first, right, left, second) = dst.split_at_mut(cut, cut);
        let lower = matches!(of_dst, Structure::TriangularLower);
        let (between, a, b) = if lower { (left, below, before) } else { (right, above, after) };
        let corners = || {
            part(first, of_dst, above, before);
            part(second, of_dst, below, after);
        };
        both(alone, corners, || part(between, WHOLE, a, b));
    } else if rows >= columns {
        let ((above, below), (upper, lower)) = (a.split_at_row(cut), dst.split_at_row_mut(cut));
        both(alone, || part(upper, WHOLE, above, b), || part(lower, WHOLE, below, b));
    } else {
        let ((before, after), (left, right)) = (b.split_at_col(cut), dst.split_at_col_mut(cut));
        both(alone, || part(left, WHOLE, a, before), || part(right, WHOLE, a, after));
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

/// Multiplies as [`structured`] does, in the precision asked for.
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

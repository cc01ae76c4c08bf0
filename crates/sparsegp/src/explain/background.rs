//! The rows that effects are averages over, and the columns of the table that they have.

use crate::data::moments::centred;
use crate::data::sphere::{COORDINATES, places_of};
use crate::data::{Encoding, InputColumn, first_longitude, place_point, point_place};
use crate::error::{Error, Result};
use crate::fit::Fitted;
use crate::linalg::{Mat, MatRef};
use crate::rng::{permutation, stream};
use std::borrow::Cow;
use std::ops::Range;

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// Values of a column of numbers at which curves are evaluated.
    pub points: usize,
    /// Rows that curves are averages over, picked at random.
    pub rows: usize,
    /// Joint draws of which the intervals of curves are quantiles.
    pub draws: usize,
    /// Rows that sensitivities are estimated from, for each of D + 2 designs.
    pub samples: usize,
    /// Drawn functions of which sensitivities are averages and their intervals quantiles.
    pub functions: usize,
    /// The seed.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { points: 20, rows: 200, draws: 400, samples: 1024, functions: 50, seed: 0 }
    }
}

impl Options {
    fn check(&self) -> Result<()> {
        let least = [
            ("points", self.points, 2),
            ("rows", self.rows, 1),
            ("draws", self.draws, 2),
            ("samples", self.samples, 2),
            ("functions", self.functions, 2),
        ];
        match least.iter().find(|(_, value, least)| value < least) {
            Some((name, value, least)) => {
                Err(Error::Invalid(format!("{name} is {value}: give at least {least}")))
            }
            None => Ok(()),
        }
    }
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers.
    Numbers,
    /// Dates, as days since 1970-01-01.
    Dates,
    /// Categories.
    Levels,
}

/// A column of the table, with the inputs of the model that it becomes; latitude and longitude are two columns.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// Columns of the inputs, in which a place has its latitude and its longitude.
    pub inputs: Range<usize>,
    encoding: Encoding,
}

impl Column {
    /// Returns the name of a value: of a category its label.
    pub(super) fn label(&self, value: &[f64]) -> String {
        match &self.encoding {
            Encoding::Code(all) => {
                let code = value[0] as usize;
                let known = (code < all.labels().len()).then(|| all.shown(code).to_owned());
                known.unwrap_or_else(|| "other".into())
            }
            Encoding::OneHot(all) => {
                // one of two categories has no input, as have those that are not known
                let first = all.labels().len() - value.len();
                let at = value.iter().position(|v| *v != 0.0).map(|at| at + first);
                let label = at.or((first > 0).then_some(0)).map(|at| all.shown(at).to_owned());
                label.unwrap_or_else(|| "other".into())
            }
            _ => value[0].to_string(),
        }
    }
}

/// Explains a model by the rows of a table.
#[derive(Debug)]
pub struct Explainer<'a> {
    pub(super) fitted: Cow<'a, Fitted>,
    /// All rows that were given, in the data's own units, with latitudes and longitudes for points.
    pub(super) all: Mat<f64>,
    /// Those of curves.
    pub(super) rows: Mat<f64>,
    pub(super) columns: Vec<Column>,
    pub(super) options: Options,
}

impl<'a> Explainer<'a> {
    /// Takes rows N×D, in the data's own units as predictions take them, over which effects are averages: those of the
    /// training, or others that the model is used for. Errors of inputs are left out: effects are those of the function itself.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs; [`Error::Invalid`] for no rows, missing values and options that
    /// are too small.
    pub fn new(fitted: &'a Fitted, x: MatRef<'_, f64>, options: Options) -> Result<Self> {
        options.check()?;
        let given = fitted.input_names.len();
        let fitted = match fitted.input_deviations.is_empty() {
            true => Cow::Borrowed(fitted),
            false => Cow::Owned(fitted.clone().without_input_deviations()),
        };
        let inputs = fitted.input_names.len();
        if x.ncols() != given && x.ncols() != inputs {
            return Err(Error::Shape {
                what: "rows to explain a model by".into(),
                expected: format!("{inputs} columns"),
                found: x.ncols().to_string(),
            });
        }
        if x.nrows() == 0 {
            return Err(Error::Invalid("a model is explained by rows, and there is none".into()));
        }
        let all = Mat::from_fn(x.nrows(), inputs, |i, q| x[(i, q)]);
        if let Some(q) = (0..inputs).find(|q| all.col_as_slice(*q).iter().any(|v| !v.is_finite())) {
            let name = &fitted.input_names[q];
            return Err(Error::Invalid(format!(
                "`{name}` has missing or infinite values: a model is explained by complete rows"
            )));
        }
        let all = on_the_map(&fitted, all);
        let inputs = all.ncols();
        let mut rng = stream(options.seed, "explain/rows");
        let mut picked = permutation(&mut rng, all.nrows(), options.rows);
        picked.sort_unstable();
        let rows = Mat::from_fn(picked.len(), inputs, |i, q| all[(picked[i], q)]);
        let columns = columns(&fitted);
        Ok(Self { fitted, all, rows, columns, options })
    }

    /// Returns the columns that can be explained, in the order of the model's inputs.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns names of what is predicted: targets, or classes as `p_LABEL`.
    pub fn responses(&self) -> Vec<String> {
        self.fitted.response_names()
    }

    /// Returns the two columns of numbers that are most correlated over the rows, and by how much; none for fewer than two.
    pub fn most_correlated(&self) -> Option<(&str, &str, f64)> {
        let varies = |own: &&Column| {
            let values = self.all.col_as_slice(own.inputs.start);
            own.kind != Kind::Levels && values.iter().any(|v| *v != values[0])
        };
        let numbers: Vec<&Column> = self.columns.iter().filter(varies).collect();
        let of = |own: &&Column| centred(self.all.col_as_slice(own.inputs.start));
        let centred: Vec<Vec<f64>> = numbers.iter().map(of).collect();
        let mut most: Option<(&str, &str, f64)> = None;
        for (a, one) in centred.iter().enumerate() {
            for (b, other) in centred.iter().enumerate().take(a) {
                let own: f64 = one.iter().zip(other).map(|(v, w)| v * w).sum();
                if own.abs() > most.map_or(0.0, |(.., r)| r.abs()) {
                    most = Some((&numbers[b].name, &numbers[a].name, own));
                }
            }
        }
        most
    }

    /// Returns the inputs of the model: points for latitudes and longitudes.
    pub(super) fn inputs(&self, rows: &Mat<f64>) -> Mat<f64> {
        let places = places(&self.fitted);
        let width = rows.ncols() + places.len();
        let mut x = Mat::zeros(rows.nrows(), width);
        let (mut from, mut to) = (0, 0);
        while to < width {
            if places.contains(&to) {
                for i in 0..rows.nrows() {
                    let point = place_point(rows[(i, from)], rows[(i, from + 1)]);
                    point.into_iter().enumerate().for_each(|(q, v)| x[(i, to + q)] = v);
                }
                (from, to) = (from + 2, to + COORDINATES);
            } else {
                (0..rows.nrows()).for_each(|i| x[(i, to)] = rows[(i, from)]);
                (from, to) = (from + 1, to + 1);
            }
        }
        x
    }

    pub(super) fn column(&self, at: usize) -> Result<&Column> {
        self.columns.get(at).ok_or_else(|| {
            let count = self.columns.len();
            Error::Invalid(format!("there is no column {at}: the model has {count}"))
        })
    }
}

/// Returns whether it is known which columns of a table the inputs come from.
fn knows_columns(fitted: &Fitted) -> bool {
    let known: usize = fitted.columns.iter().map(|own| own.input_names().len()).sum();
    known == fitted.input_names.len()
}

/// Returns the first inputs of places.
fn places(fitted: &Fitted) -> Vec<usize> {
    if knows_columns(fitted) { places_of(&fitted.columns) } else { Vec::new() }
}

/// Returns rows with latitudes and longitudes for points.
fn on_the_map(fitted: &Fitted, x: Mat<f64>) -> Mat<f64> {
    let places = places(fitted);
    if places.is_empty() {
        return x;
    }
    let mut rows = Mat::zeros(x.nrows(), x.ncols() - places.len());
    let (mut from, mut to) = (0, 0);
    while from < x.ncols() {
        if places.contains(&from) {
            let all: Vec<(f64, f64)> =
                (0..x.nrows()).map(|i| point_place([0, 1, 2].map(|q| x[(i, from + q)]))).collect();
            let least = first_longitude(all.iter().map(|place| place.1));
            for (i, (latitude, longitude)) in all.into_iter().enumerate() {
                rows[(i, to)] = latitude;
                rows[(i, to + 1)] = longitude + if longitude < least { 360.0 } else { 0.0 };
            }
            (from, to) = (from + COORDINATES, to + 2);
        } else {
            (0..x.nrows()).for_each(|i| rows[(i, to)] = x[(i, from)]);
            (from, to) = (from + 1, to + 1);
        }
    }
    rows
}

/// Returns a date and its holidays, a latitude and its longitude, and a number and whether it is
/// missing, as separate columns.
fn apart(column: &InputColumn) -> Vec<InputColumn> {
    match &column.encoding {
        Encoding::Calendar(_) | Encoding::Filled(_) => {
            let mut all: Vec<InputColumn> =
                column.input_names().into_iter().map(InputColumn::number).collect();
            if column.encoding.is_date() {
                all[0].encoding = Encoding::Date;
            }
            all
        }
        Encoding::Place { .. } => column.sources().into_iter().map(InputColumn::number).collect(),
        _ => vec![column.clone()],
    }
}

/// Returns the columns of the table, or the inputs themselves where it is not known which they come
/// from.
fn columns(fitted: &Fitted) -> Vec<Column> {
    let names = &fitted.input_names;
    let own: Vec<InputColumn> = match knows_columns(fitted) {
        true => fitted.columns.iter().flat_map(apart).collect(),
        false => names.iter().map(InputColumn::number).collect(),
    };
    // inputs that kernels read as labels
    let labels: Vec<usize> = fitted.model.input_kernels().iter().flat_map(|k| k.labels()).collect();
    let places = places(fitted);
    let mut start = 0;
    // of an input after places, which have one more
    let of_model = |mut q: usize| {
        places.iter().for_each(|first| q += usize::from(q > first + 1));
        q
    };
    let one = |InputColumn { name, encoding }: InputColumn| {
        let count =
            InputColumn { name: name.clone(), encoding: encoding.clone() }.input_names().len();
        let inputs = start..start + count;
        start += count;
        let kind = match &encoding {
            Encoding::Date => Kind::Dates,
            Encoding::Number if !labels.contains(&of_model(inputs.start)) => Kind::Numbers,
            _ => Kind::Levels,
        };
        Column { name, kind, inputs, encoding }
    };
    own.into_iter().map(one).collect()
}

//! Places on Earth among the inputs: how many dimensions they have, and columns that look like them.

use super::Dataset;
use crate::data::sphere::{COORDINATES, check_latitude, check_longitude, places_of};
use crate::data::{Encoding, InputColumn, Statistics, point_place};
use crate::error::in_shell;
use crate::linalg::{MatRef, column};

/// Names of columns of latitudes, and of longitudes.
const LATITUDES: [&str; 2] = ["lat", "latitude"];
const LONGITUDES: [&str; 4] = ["lon", "long", "lng", "longitude"];

impl Dataset {
    /// Returns in how many directions inputs vary: a place has three coordinates, and is on a surface.
    pub(super) fn dimensions(&self) -> usize {
        self.source.inputs() - places_of(&self.columns).len()
    }
}

/// Returns the inputs of rows of the model's scale by name, with latitudes and longitudes for the coordinates of places: what
/// rows may be put in order by.
pub(super) fn by_name(dataset: &Dataset, x: MatRef<f64>) -> Vec<(String, Vec<f64>)> {
    let (places, mut all, mut q) = (places_of(&dataset.columns), Vec::new(), 0);
    let mut sources = dataset.columns.iter().map(InputColumn::sources).filter(|own| own.len() > 1);
    while q < x.ncols() {
        if let (true, Some(names)) = (places.contains(&q), sources.next()) {
            let at = |i: usize| {
                [0, 1, 2].map(|own| dataset.scaler.unscaled_input(q + own, x[(i, q + own)]))
            };
            let (latitudes, longitudes) = (0..x.nrows()).map(|i| point_place(at(i))).unzip();
            all.push((names[0].to_owned(), latitudes));
            all.push((names[1].to_owned(), longitudes));
            q += COORDINATES;
        } else {
            let name = dataset.input_names.get(q).cloned().unwrap_or_default();
            all.push((name, column(x, q).to_vec()));
            q += 1;
        }
    }
    all
}

/// Returns what is to be said about places: those that are all one, and columns of numbers that look like some.
pub(super) fn remarks(columns: &[InputColumn], statistics: &Statistics) -> Vec<String> {
    let mut remarks = Vec::new();
    let constant = statistics.constant_inputs();
    let places = places_of(columns);
    let own = columns.iter().filter(|own| matches!(own.encoding, Encoding::Place { .. }));
    for (first, column) in places.iter().zip(own) {
        if (*first..first + COORDINATES).all(|q| constant.contains(&q)) {
            let title = column.title();
            remarks.push(format!(
                "all rows are at one `{title}`: it cannot help and is kept without effect"
            ));
        }
    }
    if let (true, Some((latitude, longitude))) =
        (places.is_empty(), look_alike(columns, statistics))
    {
        remarks.push(format!(
            "columns `{latitude}` and `{longitude}` look like places on Earth: `--places {}` (in Python \
             `places=[({latitude:?}, {longitude:?})]`) has distances in kilometres",
            in_shell(&format!("{latitude},{longitude}"))
        ));
    }
    remarks
}

/// Returns the only columns with names of latitudes and longitudes, if values are some that vary.
fn look_alike<'a>(
    columns: &'a [InputColumn],
    statistics: &Statistics,
) -> Option<(&'a str, &'a str)> {
    let mut first = 0;
    let (mut latitudes, mut longitudes) = (Vec::new(), Vec::new());
    for column in columns {
        let name = column.name.to_lowercase();
        let within = |check: fn(f64) -> Result<(), String>| {
            let (least, most) = statistics.input_range(first);
            let varies = least < most;
            column.encoding == Encoding::Number
                && varies
                && check(least).is_ok()
                && check(most).is_ok()
        };
        if LATITUDES.contains(&name.as_str()) && within(check_latitude) {
            latitudes.push(column.name.as_str());
        }
        if LONGITUDES.contains(&name.as_str()) && within(check_longitude) {
            longitudes.push(column.name.as_str());
        }
        first += column.input_names().len();
    }
    match (&latitudes[..], &longitudes[..]) {
        ([latitude], [longitude]) => Some((latitude, longitude)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::nearby;
    use super::*;
    use crate::data::{Loaded, place_point};
    use crate::fit::FitOptions;
    use crate::linalg::Mat;

    /// Two places and as many other inputs, with the first place at `place`.
    fn dataset(rows: usize, others: usize, place: impl Fn(usize) -> (f64, f64)) -> Dataset {
        let own = |latitude: &str, longitude: &str| InputColumn {
            name: latitude.into(),
            encoding: Encoding::Place { longitude: longitude.into() },
        };
        let mut columns = vec![own("a", "b"), own("c", "d")];
        columns.extend((0..others).map(|i| InputColumn::number(format!("e{i}"))));
        let x = Mat::from_fn(rows, 6 + others, |i, q| {
            let (latitude, longitude) = place(i);
            match q {
                0..3 => place_point(latitude, longitude)[q],
                3..6 => place_point(longitude / 4.0, latitude)[q - 3],
                _ => ((i * (q + 3)) as f64).sin(),
            }
        });
        let input_names = columns.iter().flat_map(InputColumn::input_names).collect();
        Dataset::from_loaded(
            Loaded {
                y: Mat::from_fn(rows, 1, |i, _| (i as f64).cos()),
                x,
                weights: Vec::new(),
                extra: Vec::new(),
                ids: Vec::new(),
                input_names,
                columns,
                target_names: vec!["y".into()],
                weight_name: None,
                extra_name: None,
                classes: None,
                id_names: Vec::new(),
                rows: (0..rows).collect(),
                deviations: Vec::new(),
                dropped: 0,
                remarks: Vec::new(),
            },
            true,
        )
        .expect("a data set")
    }

    #[test]
    fn a_place_is_two_dimensions_and_has_latitudes_and_longitudes() {
        let place = |i: usize| ((i % 83) as f64 - 40.0, (i % 97) as f64);
        let few = dataset(100, 1, place);
        assert_eq!((few.dimensions(), few.source.inputs()), (5, 7));
        let rows = crate::methods::collect(&*few.source).expect("rows");
        let named = by_name(&few, rows.x.as_ref());
        let names: Vec<&str> = named.iter().map(|own| own.0.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e0"]);
        for i in 0..100 {
            assert!((named[0].1[i] - place(i).0).abs() < 1e-8);
            assert!((named[1].1[i] - place(i).1).abs() < 1e-8);
        }
        // as many directions as `auto` tries neighbours for, and one more
        let options = FitOptions::default();
        assert!(nearby::possible(&dataset(4400, 0, place), &options));
        assert!(!nearby::possible(&dataset(4400, 1, place), &options));
    }
}

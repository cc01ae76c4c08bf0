//! Places on Earth among the inputs: how many dimensions they have, and columns that look like them.

use super::Dataset;
use crate::data::sphere::{COORDINATES, check_latitude, check_longitude, places_of};
use crate::data::{Encoding, InputColumn, Statistics};

/// Names of columns of latitudes, and of longitudes.
const LATITUDES: [&str; 2] = ["lat", "latitude"];
const LONGITUDES: [&str; 4] = ["lon", "long", "lng", "longitude"];

impl Dataset {
    /// Returns in how many directions inputs vary: a place has three coordinates, and is on a surface.
    pub(super) fn dimensions(&self) -> usize {
        self.source.inputs() - places_of(&self.columns).len()
    }
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
            "columns `{latitude}` and `{longitude}` look like places on Earth: `--places {latitude},{longitude}` (in Python \
             `places=[({latitude:?}, {longitude:?})]`) has distances in kilometres"
        ));
    }
    remarks
}

/// The only columns with names of latitudes and longitudes, if values are some that vary.
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

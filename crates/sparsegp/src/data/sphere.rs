//! Places on Earth: latitude and longitude as points of a sphere, between which distances are kilometres.
//!
//! Degrees have no distance: those of longitude shrink towards the poles, and 180° is beside −180°. On a sphere of radius R a place is
//! R (cos φ cos λ, cos φ sin λ, sin φ), and the distance of two such points is the chord 2R sin(d/2R) of the great circle
//! of length d between them, under which every stationary kernel of three inputs is positive definite. As functions of d
//! itself many are not: the squared exponential, and Matérn kernels of more than half a derivative (Gneiting 2013, Strictly and non-strictly positive
//! definite functions on spheres, Table 1).

use super::encoding::{Encoding, InputColumn};
use super::scaler::Scaler;

/// The mean radius of the Earth in kilometres (R₁ of the IUGG, Moritz 2000).
pub const EARTH_RADIUS: f64 = 6371.0088;

/// Inputs that a place becomes.
pub(crate) const COORDINATES: usize = 3;

/// Returns the point at a latitude and a longitude in degrees, in kilometres from the centre: towards 0° N 0° E, towards 0° N 90° E and
/// towards the north pole.
///
/// ```
/// use sparsegp::data::place_point;
/// let (fiji, tonga) = (place_point(-17.8, 179.5), place_point(-17.8, -179.5));
/// let squares = fiji.iter().zip(tonga).map(|(a, b)| (a - b) * (a - b));
/// assert!((squares.sum::<f64>().sqrt() - 105.87).abs() < 0.01);
/// ```
pub fn place_point(latitude: f64, longitude: f64) -> [f64; 3] {
    let ((sin, cos), (east, north)) =
        (latitude.to_radians().sin_cos(), longitude.to_radians().sin_cos());
    [EARTH_RADIUS * cos * north, EARTH_RADIUS * cos * east, EARTH_RADIUS * sin]
}

/// Returns the latitude and the longitude, from −180 to 180, of the direction in which a point lies.
pub fn point_place([x, y, z]: [f64; 3]) -> (f64, f64) {
    (z.atan2(x.hypot(y)).to_degrees(), y.atan2(x).to_degrees())
}

/// Returns the longitude, from −180 on, from which all of these lie closest together: the middle of the widest gap between
/// them. Those that are less count as 360 more on maps and curves.
pub fn first_longitude(longitudes: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = longitudes.collect();
    all.sort_by(f64::total_cmp);
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return -180.0 };
    // none is wider than that across the date line
    let mut widest = (first + 360.0 - last, -180.0);
    for pair in all.windows(2) {
        if pair[1] - pair[0] > widest.0 {
            widest = (pair[1] - pair[0], 0.5 * (pair[0] + pair[1]));
        }
    }
    widest.1
}

/// Refuses what is not a latitude.
pub(crate) fn check_latitude(value: f64) -> Result<(), String> {
    if (-90.0..=90.0).contains(&value) {
        return Ok(());
    }
    Err(format!(
        "the latitude `{value}` is not from -90 to 90 degrees: places are given as LATITUDE,LONGITUDE, in this order"
    ))
}

/// Refuses what is not a longitude.
pub(crate) fn check_longitude(value: f64) -> Result<(), String> {
    if (-180.0..=360.0).contains(&value) {
        return Ok(());
    }
    Err(format!(
        "the longitude `{value}` is not from -180 to 360 degrees: places are given as LATITUDE,LONGITUDE, in this order"
    ))
}

/// Returns the name of a place in these columns, as it is shown.
pub(crate) fn place_name(latitude: &str, longitude: &str) -> String {
    format!("place({latitude}, {longitude})")
}

/// Returns the names of the columns of the place that an input of this name is a coordinate of.
pub(crate) fn parts_of_place(input: &str) -> Option<(&str, &str)> {
    let (place, coordinate) = input.rsplit_once('=')?;
    let parts = place.strip_prefix("place(")?.strip_suffix(')')?;
    ["x", "y", "z"].contains(&coordinate).then(|| parts.split_once(", "))?
}

/// Returns the name of an input as it is shown where the coordinates of a place are one.
pub fn input_title(input: &str) -> &str {
    match (parts_of_place(input), input.rsplit_once('=')) {
        (Some(_), Some((place, _))) => place,
        _ => input,
    }
}

/// Returns the first coordinates of places among inputs of these names.
pub(crate) fn places_in(inputs: &[String]) -> Vec<usize> {
    let all = |first: &usize| {
        let own = inputs.get(*first..first + COORDINATES);
        own.is_some_and(|own| {
            let parts = parts_of_place(&own[0]);
            let ends = own.iter().zip(["=x", "=y", "=z"]).all(|(name, end)| name.ends_with(end));
            parts.is_some() && ends && own.iter().all(|name| parts_of_place(name) == parts)
        })
    };
    (0..inputs.len()).filter(all).collect()
}

/// Returns the first inputs of places, of the inputs that these columns become.
pub(crate) fn places_of(columns: &[InputColumn]) -> Vec<usize> {
    let (mut places, mut first) = (Vec::new(), 0);
    for column in columns {
        if matches!(column.encoding, Encoding::Place { .. }) {
            places.push(first);
        }
        first += column.input_names().len();
    }
    places
}

/// Returns the inputs that are coordinates of places, of the inputs that these columns become.
pub(crate) fn inputs_of_places(columns: &[InputColumn]) -> Vec<usize> {
    places_of(columns).into_iter().flat_map(|first| first..first + COORDINATES).collect()
}

impl Scaler {
    /// Returns this scaler, with one scale for the three coordinates of each place that begins at
    /// one of these inputs: the root mean square of their standard deviations, so that distances
    /// are those on Earth. `same`: whether an input has one value.
    #[must_use]
    pub(crate) fn with_places(mut self, places: &[usize], same: impl Fn(usize) -> bool) -> Self {
        for first in places {
            let all = *first..first + COORDINATES;
            let squares =
                all.clone().filter(|q| !same(*q)).map(|q| self.x_scale[q] * self.x_scale[q]);
            let mean = squares.sum::<f64>() / COORDINATES as f64;
            let scale = if mean > 0.0 { mean.sqrt() } else { 1.0 };
            all.for_each(|q| self.x_scale[q] = scale);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chord(a: (f64, f64), b: (f64, f64)) -> f64 {
        let (a, b) = (place_point(a.0, a.1), place_point(b.0, b.1));
        a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    }

    #[test]
    fn distances_are_chords_of_great_circles() {
        // haversine formula
        let circle = |(a, b): (f64, f64), (c, d): (f64, f64)| {
            let [a, b, c, d] = [a, b, c, d].map(f64::to_radians);
            let h =
                ((c - a) / 2.0).sin().powi(2) + a.cos() * c.cos() * ((d - b) / 2.0).sin().powi(2);
            2.0 * EARTH_RADIUS * h.sqrt().asin()
        };
        for (a, b) in [
            ((-17.8, 179.5), (-17.8, -179.5)),
            ((52.5, 13.4), (48.9, 2.4)),
            ((89.9, 10.0), (89.9, -170.0)),
            ((0.0, 0.0), (0.0, 180.0)),
        ] {
            let d = circle(a, b);
            let expected = 2.0 * EARTH_RADIUS * (d / (2.0 * EARTH_RADIUS)).sin();
            assert!((chord(a, b) - expected).abs() < 1e-8, "{a:?} {b:?}");
        }
        // a pole has one point, and longitudes may be counted either way
        assert!(chord((90.0, 17.0), (90.0, -120.0)) < 1e-9);
        assert!(chord((10.0, 350.0), (10.0, -10.0)) < 1e-9);
    }

    #[test]
    fn points_and_places_are_inverse() {
        for place in [(12.5, -33.0), (-89.0, 179.0), (0.0, 0.0), (45.0, -180.0)] {
            let (latitude, longitude) = point_place(place_point(place.0, place.1));
            assert!((latitude - place.0).abs() < 1e-10);
            assert!((longitude.to_radians().cos() - place.1.to_radians().cos()).abs() < 1e-12);
            assert!((longitude.to_radians().sin() - place.1.to_radians().sin()).abs() < 1e-12);
        }
    }

    #[test]
    fn longitudes_are_counted_from_the_widest_gap() {
        assert_eq!(first_longitude([-3.0, 14.0, 90.0].into_iter()), -180.0);
        assert_eq!(first_longitude([179.0, -179.0, 171.0].into_iter()), -4.0);
        assert_eq!(first_longitude(std::iter::empty()), -180.0);
    }

    #[test]
    fn what_is_not_a_place_is_refused() {
        assert!(check_latitude(90.0).is_ok() && check_longitude(360.0).is_ok());
        for text in [check_latitude(90.5), check_latitude(f64::NAN), check_longitude(-180.1)] {
            assert!(text.unwrap_err().contains("LATITUDE,LONGITUDE"));
        }
    }

    #[test]
    fn a_place_has_one_scale() {
        let columns = [
            InputColumn::number("depth"),
            InputColumn {
                name: "lat".into(),
                encoding: Encoding::Place { longitude: "long".into() },
            },
        ];
        assert_eq!(
            columns[1].input_names(),
            ["place(lat, long)=x", "place(lat, long)=y", "place(lat, long)=z"]
        );
        assert_eq!(parts_of_place("place(lat, long)=y"), Some(("lat", "long")));
        assert_eq!(parts_of_place("place(lat)=y").or(parts_of_place("lat=y")), None);
        assert_eq!((places_of(&columns), inputs_of_places(&columns)), (vec![1], vec![1, 2, 3]));
        let names: Vec<String> = columns.iter().flat_map(InputColumn::input_names).collect();
        assert_eq!((places_in(&names), places_in(&names[..3])), (vec![1], vec![]));
        let mut scaler = Scaler::identity(4, 1);
        scaler.x_scale = vec![7.0, 3.0, 4.0, 1.0];
        let scaler = scaler.with_places(&[1], |q| q == 3);
        let scale = (25.0_f64 / 3.0).sqrt();
        assert_eq!(scaler.x_scale, [7.0, scale, scale, scale]);
        let text = serde_json::to_string(&columns[1]).unwrap();
        assert_eq!(text, r#"{"name":"lat","encoding":{"place":{"longitude":"long"}}}"#);
        assert_eq!(serde_json::from_str::<InputColumn>(&text).unwrap(), columns[1]);
    }
}

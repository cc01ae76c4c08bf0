//! Places on Earth on a map: longitude across, latitude up.

use super::contour::Grid;
use sparsegp::data::{Encoding, first_longitude, place_point, point_place};
use sparsegp::fit::Fitted;
use sparsegp::linalg::Mat;

/// Returns whether the only input is a place.
pub fn is_place(fitted: &Fitted) -> bool {
    matches!(&fitted.columns[..], [own] if matches!(own.encoding, Encoding::Place { .. }))
}

/// Two numbers that inputs are drawn by.
pub enum Plane {
    /// The inputs.
    Inputs,
    /// Longitude and latitude, with the least longitude.
    Earth(f64),
}

impl Plane {
    /// Creates the plane of a model with these training rows. Longitudes are counted from the
    /// widest gap between them.
    pub fn of(fitted: &Fitted, x: &Mat<f64>) -> Self {
        if !is_place(fitted) {
            return Self::Inputs;
        }
        Self::Earth(first_longitude((0..x.nrows()).map(|i| place(x, i).1)))
    }

    /// Returns where a row is, across and up.
    pub fn at(&self, x: &Mat<f64>, row: usize) -> (f64, f64) {
        match self {
            Self::Inputs => (x[(row, 0)], x[(row, 1)]),
            Self::Earth(least) => {
                let (latitude, longitude) = place(x, row);
                (if longitude < *least { longitude + 360.0 } else { longitude }, latitude)
            }
        }
    }

    /// Returns a grid around points.
    pub fn grid(&self, points: impl Iterator<Item = (f64, f64)> + Clone) -> Grid {
        let mut grid = Grid::around(points);
        if let Self::Earth(_) = self {
            grid.y = (grid.y.0.max(-90.0), grid.y.1.min(90.0));
        }
        grid
    }

    /// Returns the inputs at points.
    pub fn inputs(&self, points: &[(f64, f64)]) -> Mat<f64> {
        match self {
            Self::Inputs => {
                Mat::from_fn(points.len(), 2, |i, q| if q == 0 { points[i].0 } else { points[i].1 })
            }
            Self::Earth(_) => {
                Mat::from_fn(points.len(), 3, |i, q| place_point(points[i].1, points[i].0)[q])
            }
        }
    }

    /// Returns the names of both directions.
    pub fn names(&self, fitted: &Fitted) -> (String, String) {
        match self {
            Self::Inputs => (fitted.input_names[0].clone(), fitted.input_names[1].clone()),
            Self::Earth(_) => {
                let sources = fitted.columns[0].sources();
                (sources[1].to_owned(), sources[0].to_owned())
            }
        }
    }
}

fn place(x: &Mat<f64>, row: usize) -> (f64, f64) {
    point_place([x[(row, 0)], x[(row, 1)], x[(row, 2)]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longitudes_continue_across_the_date_line() {
        let plane = Plane::Earth(100.0);
        let x = plane.inputs(&[(179.0, -20.0), (181.0, -21.0)]);
        let (first, second) = (plane.at(&x, 0), plane.at(&x, 1));
        assert!((first.0 - 179.0).abs() < 1e-9 && (second.0 - 181.0).abs() < 1e-9);
        assert!((second.1 + 21.0).abs() < 1e-9);
    }
}

//! Marks that stand out from coloured ground: on a rim of another colour.

use super::Drawn;
use super::look::Area;
use super::style::{Chart, INK, class_colour};
use plotters::prelude::*;

/// A mark.
#[derive(Clone, Copy, Debug)]
pub enum Marker {
    /// A row of a class: classes differ in colour, and in turn in shape.
    Class(usize),
    /// A row with its own colour.
    Value(RGBColor),
    /// An inducing point.
    Inducing,
}

impl Marker {
    /// Draws it at a pixel of an area.
    pub fn draw(self, area: &Area<'_>, at: (i32, i32)) -> Drawn {
        let disk = |radius: i32, colour: RGBColor| Circle::new(at, radius, colour.filled());
        let triangle = |size: i32, colour: RGBColor| TriangleMarker::new(at, size, colour.filled());
        let square = |half: i32, colour: RGBColor| {
            let corners = [(at.0 - half, at.1 - half), (at.0 + half, at.1 + half)];
            Rectangle::new(corners, colour.filled())
        };
        match self {
            Self::Class(class) => {
                let colour = class_colour(class);
                match class % 3 {
                    0 => {
                        area.draw(&disk(4, WHITE))?;
                        area.draw(&disk(3, colour))?;
                    }
                    1 => {
                        area.draw(&triangle(7, WHITE))?;
                        area.draw(&triangle(5, colour))?;
                    }
                    _ => {
                        area.draw(&square(4, WHITE))?;
                        area.draw(&square(3, colour))?;
                    }
                }
            }
            Self::Value(colour) => {
                for layer in [disk(5, WHITE), disk(4, INK), disk(3, colour)] {
                    area.draw(&layer)?;
                }
            }
            Self::Inducing => {
                area.draw(&Cross::new(at, 5, WHITE.stroke_width(4)))?;
                area.draw(&Cross::new(at, 4, INK.stroke_width(2)))?;
            }
        }
        Ok(())
    }

    /// Draws marks at places of a chart.
    pub fn draw_all(
        chart: &Chart<'_, '_>,
        marks: impl Iterator<Item = ((f64, f64), Self)>,
    ) -> Drawn {
        let area = chart.plotting_area();
        let (left, top) = area.get_pixel_range();
        let pixels = area.strip_coord_spec();
        for (at, mark) in marks {
            let (x, y) = area.map_coordinate(&at);
            mark.draw(&pixels, (x - left.start, y - top.start))?;
        }
        Ok(())
    }
}

//! What people may choose about how a picture looks, and the part of a picture that knows it.

use plotters::coord::Shift;
use plotters::prelude::*;
use std::ops::Deref;
use std::rc::Rc;

/// Sides of a panel in pixels that are still a picture.
const SIDES: std::ops::RangeInclusive<u32> = 200..=10_000;

/// Title, names of the axes and size.
#[derive(Clone, Debug)]
pub struct Look {
    /// Instead of the caption.
    pub title: Option<String>,
    /// Instead of the name of what runs to the right.
    pub x_label: Option<String>,
    /// Instead of the name of what runs upwards.
    pub y_label: Option<String>,
    /// Width and height of a panel in pixels.
    pub size: (u32, u32),
}

impl Default for Look {
    fn default() -> Self {
        Self { title: None, x_label: None, y_label: None, size: (900, 520) }
    }
}

/// Reads a size such as `900x520`.
pub fn size(text: &str) -> Result<(u32, u32), String> {
    let sides = text.split_once(['x', 'X', '×']).and_then(|(width, height)| {
        Some((width.trim().parse().ok()?, height.trim().parse().ok()?))
    });
    match sides {
        Some((width, height)) if SIDES.contains(&width) && SIDES.contains(&height) => {
            Ok((width, height))
        }
        _ => Err(format!(
            "give WIDTHxHEIGHT in pixels, such as 1200x700, each from {} to {}",
            SIDES.start(),
            SIDES.end()
        )),
    }
}

/// Pixels of a picture.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A part of a picture.
pub struct Panel<'a> {
    area: Area<'a>,
    pub look: Rc<Look>,
}

impl<'a> Panel<'a> {
    pub fn new(area: Area<'a>, look: &Look) -> Self {
        Self { area, look: Rc::new(look.clone()) }
    }

    /// Returns a part of this one.
    pub fn part(&self, area: Area<'a>) -> Self {
        Self { area, look: self.look.clone() }
    }
}

impl<'a> Deref for Panel<'a> {
    type Target = Area<'a>;

    fn deref(&self) -> &Self::Target {
        &self.area
    }
}

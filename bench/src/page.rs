//! Tables of Markdown, options of programs, and pictures in `docs`.

use plotters::coord::Shift;
use plotters::prelude::*;
use rand::Rng;
use sparsegp::rng;
use std::path::Path;

/// What a picture or a table may end in.
pub type Drawn = Result<(), Box<dyn std::error::Error>>;
/// An area of a picture.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The value after an option.
pub fn option(arguments: &[String], name: &str) -> Option<String> {
    let at = arguments.iter().position(|a| a == name)?;
    arguments.get(at + 1).cloned()
}

/// A number after an option.
///
/// # Panics
/// If what follows is none.
pub fn number(arguments: &[String], name: &str, default: f64) -> f64 {
    option(arguments, name).map_or(default, |text| text.parse().expect("a number"))
}

/// Runs the part that the first argument names, with the arguments after it; without one, all of `names`.
///
/// # Errors
/// What `run` gives.
pub fn dispatch(names: &[&str], run: fn(&str, &[String]) -> Drawn) -> Drawn {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((what, rest)) => run(what, rest),
        None => names.iter().try_for_each(|what| run(what, &[])),
    }
}

/// Prints the head of a table of Markdown.
pub fn head(names: &[&str]) {
    println!("\n| {} |\n|{}", names.join(" | "), " --- |".repeat(names.len()));
}

/// Prints a row.
pub fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

/// A standard normal number (Box & Muller 1958).
pub fn normal(generator: &mut (impl Rng + ?Sized)) -> f64 {
    let (u, v) = (1.0 - rng::uniform(generator), rng::uniform(generator));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Draws areas of a picture in `docs`, side by side.
///
/// # Errors
/// What `draw` gives; a picture that cannot be written.
pub fn picture(name: &str, count: usize, draw: impl FnOnce(&[Area<'_>]) -> Drawn) -> Drawn {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    let root = SVGBackend::new(&path, (340 * count as u32, 300)).into_drawing_area();
    root.fill(&WHITE)?;
    draw(&root.split_evenly((1, count)))?;
    root.present()?;
    println!("\nwrote docs/{name}");
    Ok(())
}

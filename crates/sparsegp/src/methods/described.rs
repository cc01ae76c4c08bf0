//! What requests to other processes name, made again from its description.
//!
//! To add a kind: one line in its table.

use super::collapsed::{parts, power_ep};
use super::uncollapsed::{guesses, mixed, rows};
use crate::engine::{Description, Pointwise, Sweep};
use crate::error::{Error, Result};

/// The rows that a description is to fit.
#[derive(Clone, Copy, Debug)]
pub struct Fitting {
    /// Inputs D.
    pub inputs: usize,
    /// Targets P.
    pub outputs: usize,
    /// Latent functions of all targets, L.
    pub latents: usize,
}

impl Fitting {
    /// Refuses what does not fit.
    pub(super) fn check(holds: bool) -> Result<()> {
        if holds { Ok(()) } else { Err(Error::Invalid("the request is of other rows".into())) }
    }
}

/// Makes a thing of its description.
type Make<T> = fn(&Description, Fitting) -> Result<Box<T>>;

const POINTWISE: &[(&str, Make<dyn Pointwise>)] = &[
    (parts::GAUSSIAN_ROWS, parts::described),
    (power_ep::FIRST_ROWS, power_ep::first),
    (power_ep::SECOND_ROWS, power_ep::second),
    (rows::LIKELIHOOD_ROWS, rows::described),
    (mixed::MIXED_ROWS, mixed::described),
    (guesses::AT_GUESSES, guesses::rows_described),
];

const SWEEPS: &[(&str, Make<dyn Sweep>)] = &[(guesses::GUESSES, guesses::described)];

fn made<T: ?Sized>(
    table: &[(&str, Make<T>)],
    description: &Description,
    rows: Fitting,
) -> Option<Result<Box<T>>> {
    let own = table.iter().find(|(kind, _)| *kind == description.kind);
    own.map(|(_, make)| make(description, rows))
}

/// Returns what rows contribute.
///
/// # Errors
/// [`Error::Invalid`] for a description of something else, and of other rows.
pub fn pointwise(description: &Description, rows: Fitting) -> Result<Box<dyn Pointwise>> {
    let unknown = || Err(Error::Invalid(format!("nothing is known of `{}`", description.kind)));
    made(POINTWISE, description, rows).unwrap_or_else(unknown)
}

/// Returns a sweep of a method's own; none for others.
pub fn sweep(description: &Description, rows: Fitting) -> Option<Result<Box<dyn Sweep>>> {
    made(SWEEPS, description, rows)
}

//! What requests to other processes name, made again from its description.
//!
//! To add a kind: one line in its table.

use super::collapsed::{parts, power_ep};
use super::uncollapsed::{guesses, mixed, rows};
use crate::engine::{Description, Local, Pointwise, Sweep};
use crate::error::{Error, Result};

/// Makes a thing of its description.
type Make<T> = fn(&Description) -> Result<Box<T>>;

const LOCALS: &[(&str, Make<dyn Local>)] =
    &[(parts::GAUSSIAN_ROWS, parts::described), (power_ep::POWER_ROWS, power_ep::first)];

const POINTWISE: &[(&str, Make<dyn Pointwise>)] = &[
    (power_ep::POWER_ROWS, power_ep::second),
    (rows::LIKELIHOOD_ROWS, rows::described),
    (mixed::MIXED_ROWS, mixed::described),
    (guesses::AT_GUESSES, guesses::rows_described),
];

const SWEEPS: &[(&str, Make<dyn Sweep>)] = &[(guesses::GUESSES, guesses::described)];

fn made<T: ?Sized>(table: &[(&str, Make<T>)], description: &Description) -> Option<Result<Box<T>>> {
    let own = table.iter().find(|(kind, _)| *kind == description.kind);
    own.map(|(_, make)| make(description))
}

fn unknown<T>(description: &Description) -> Result<T> {
    Err(Error::Invalid(format!("nothing is known of `{}`", description.kind)))
}

/// What rows contribute, for [`crate::engine::Engine::fold`] and `unfold`.
///
/// # Errors
/// [`Error::Invalid`] for a description of something else.
pub fn local(description: &Description) -> Result<Box<dyn Local>> {
    made(LOCALS, description).unwrap_or_else(|| unknown(description))
}

/// The same for [`crate::engine::Engine::pass`].
///
/// # Errors
/// As for [`local`].
pub fn pointwise(description: &Description) -> Result<Box<dyn Pointwise>> {
    made(POINTWISE, description).unwrap_or_else(|| unknown(description))
}

/// A sweep of a method's own; none for others.
pub fn sweep(description: &Description) -> Option<Result<Box<dyn Sweep>>> {
    made(SWEEPS, description)
}

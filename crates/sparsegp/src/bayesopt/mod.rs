//! Bayesian optimisation: the next points to try of a function that is expensive to evaluate.
//!
//! A Gaussian process says what the trials so far tell of the objective at every other point, and the point is tried next that
//! promises most ([`Acquisition`]). [`Optimiser::ask`] gives points, [`Optimiser::tell`] takes what came of them; points that
//! were asked for and not yet reported are under way, and others keep away from them.
//!
//! ```
//! use sparsegp::bayesopt::{Optimiser, Options, Space};
//!
//! # fn main() -> sparsegp::Result<()> {
//! let space = Space::parse(&["x=-2:3", "kind=plain,tilted"])?;
//! let mut optimiser = Optimiser::new(space, Options::default())?; // minimises
//! for _ in 0..15 {
//!     let point = optimiser.ask(1)?.remove(0); // a number, and the place of a category
//!     let value = (point[0] - 1.0).powi(2) + if point[1] == 1.0 { point[0] } else { 1.5 };
//!     optimiser.tell(&point, &[value])?;
//! }
//! let best = optimiser.best()?.expect("some trial");
//! assert!((best.point[0] - 0.5).abs() < 0.1 && best.point[1] == 1.0); // the smallest value is 0.75
//! # Ok(())
//! # }
//! ```
//!
//! | module part | what |
//! | --- | --- |
//! | [`Space`], [`Dimension`], [`Range`] | what may be tried |
//! | [`Constraint`] | bounds of further outcomes |
//! | [`Acquisition`], [`log_expected_improvement`], [`log_probability_below`] | what a point promises, with slopes |
//! | [`Optimiser`], [`Options`], [`Trial`] | the loop |

mod acquisition;
mod constraint;
mod design;
mod models;
mod optimiser;
mod promise;
mod search;
mod space;
#[cfg(test)]
mod tests;
mod trials;

pub use acquisition::{Acquisition, Slopes, log_expected_improvement, log_probability_below};
pub use constraint::Constraint;
pub use optimiser::{Best, Optimiser, Prediction};
pub use space::{Dimension, Range, Space};
pub use trials::{Goal, Options, Outcome, Trial};

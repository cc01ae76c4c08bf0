//! Model files: what is saved comes back to the bit, and what is not a model file is refused with a
//! sentence.

#[path = "io/damaged.rs"]
mod damaged;
#[path = "io/history.rs"]
mod history;
#[path = "io/layout.rs"]
mod layout;
#[path = "io/lost.rs"]
mod lost;
#[path = "io/old.rs"]
mod old;
#[path = "io/round_trip.rs"]
mod round_trip;
#[path = "io/support.rs"]
mod support;

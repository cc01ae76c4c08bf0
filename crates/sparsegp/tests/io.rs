//! Model files: what is saved comes back to the bit, and what is no model file is refused with a
//! sentence.

#[path = "io/damaged.rs"]
mod damaged;
#[path = "io/layout.rs"]
mod layout;
#[path = "io/old.rs"]
mod old;
#[path = "io/round_trip.rs"]
mod round_trip;
#[path = "io/support.rs"]
mod support;

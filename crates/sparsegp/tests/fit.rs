//! From data to a fitted model: training, choices, odd data, units, seeds.

#[path = "fit/choices.rs"]
mod choices;
#[path = "fit/inducing.rs"]
mod inducing;
#[path = "fit/noiseless.rs"]
mod noiseless;
#[path = "fit/odd.rs"]
mod odd;
#[path = "fit/recorder.rs"]
mod recorder;
#[path = "fit/seeds.rs"]
mod seeds;
#[path = "fit/support.rs"]
mod support;
#[path = "fit/training.rs"]
mod training;
#[path = "fit/units.rs"]
mod units;

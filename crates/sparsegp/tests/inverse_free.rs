//! L-SVGP and R-SVGP at random problems: gradients against differences, their place on the ladder of methods,
//! invariances, prediction and training.

#[path = "inverse_free/gradients.rs"]
mod gradients;
#[path = "inverse_free/ladder.rs"]
mod ladder;
#[path = "ladder/problem.rs"]
#[allow(dead_code)]
mod problem;
#[path = "inverse_free/single.rs"]
mod single;
#[path = "inverse_free/support.rs"]
mod support;
#[path = "inverse_free/training.rs"]
mod training;

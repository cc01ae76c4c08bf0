//! The equivalence ladder and other properties that hold at any parameters.
//!
//! Problems are drawn at random: sizes, kernels (sums and products among them), mean functions, noise
//! and scales far from 1. Tolerances are there only for rounding; each says what it allows for.

#[path = "ladder/gradients.rs"]
mod gradients;
#[path = "ladder/input_gradients.rs"]
mod input_gradients;
#[path = "ladder/leave_one_out.rs"]
mod leave_one_out;
#[path = "ladder/order.rs"]
mod order;
#[path = "ladder/pathwise.rs"]
mod pathwise;
#[path = "ladder/posterior.rs"]
mod posterior;
#[path = "ladder/problem.rs"]
mod problem;
#[path = "ladder/rows.rs"]
mod rows;
#[path = "common/streamed.rs"]
mod streamed;
#[path = "ladder/sums.rs"]
mod sums;

/// 64 cases, or as many as `PROPTEST_CASES` says.
fn config() -> proptest::prelude::ProptestConfig {
    let mut config = proptest::prelude::ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 64;
    }
    config.failure_persistence = None;
    config
}

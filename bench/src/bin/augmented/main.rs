//! Costs of likelihoods with local variables: `cargo run --release -p sparsegp-bench --bin augmented -- [WHAT] [OPTION VALUE …]`.
//!
//! - `sweeps` (the default): a Gibbs sweep against its factorisation and products.
//! - `classes [--side 10] [--rows 10000] [--inducing 100] [--batch 100] [--seconds 20]`: a hundred classes, all or some of
//!   which move in a step; `--csv FILE` writes the same numbers.

mod classes;
mod common;
mod sweeps;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("classes") => classes::run(&arguments[1..]),
        _ => sweeps::run(),
    }
}

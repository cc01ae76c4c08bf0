//! Gaussian particle flow and its rivals: `cargo run --release -p sparsegp-bench --bin flows -- [WHAT] [OPTION VALUE …]`.
//!
//! The experiments of Galy-Fajou, Perrone & Opper 2021, §5, and of chapter 6 of Galy-Fajou's thesis:
//!
//! - `gaussian [--runs 10] [--steps 30000] [--dimensions 20]`: Gaussian targets of rising condition numbers; writes
//!   `docs/flows-gaussian.svg`.
//! - `rank [--steps 20000] [--rate 0.001]`: what N particles leave out of 50 dimensions; `docs/flows-rank.svg`.
//! - `low-rank [--runs 3] [--steps 5000]`: 500 dimensions of which few matter.
//! - `banana`: particles on a bent density, by plain steps and by Adam; `docs/flows-banana.svg`.
//! - `logistic [--folds 10] [--steps 5000] [--rate 0.0001]`: logistic regression on small tables; `docs/flows-logistic.svg`.
//! - `network [--hidden 50] [--steps 1000] [--rows 8000] [--full 1]`: a network of two hidden layers on `mnist-t10k`; `--full 1`
//!   has layers of 200 and 5001 steps.
//!
//! Without WHAT all of them run. All print Markdown.

mod common;
mod gaussian;
mod logistic;
mod network;
mod shapes;

use common::Drawn;
use sparsegp_bench::page::{dispatch, picture};

fn run(what: &str, rest: &[String]) -> Drawn {
    match what {
        "gaussian" => picture("flows-gaussian.svg", 3, |areas| gaussian::conditions(rest, areas)),
        "rank" => picture("flows-rank.svg", 1, |areas| gaussian::ranks(rest, &areas[0])),
        "low-rank" => gaussian::low_rank(rest),
        "banana" => picture("flows-banana.svg", 4, |areas| shapes::banana(rest, areas)),
        "logistic" => picture("flows-logistic.svg", 3, |areas| logistic::tables(rest, areas)),
        "network" => network::classes(rest),
        other => Err(format!("nothing is called `{other}`").into()),
    }
}

fn main() -> Drawn {
    dispatch(&["gaussian", "rank", "low-rank", "banana", "logistic", "network"], run)
}

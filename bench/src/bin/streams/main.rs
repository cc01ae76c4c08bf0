//! Streams: `cargo run --release -p sparsegp-bench --bin streams -- [WHAT] [OPTION VALUE …]`.
//!
//! - `regression`, `classes`: the streams of Bui, Nguyen & Turner 2017. The first writes `docs/streams-regression.svg`.
//! - `scaling [--rows 20000] [--inducing 100]`: a stream against minibatches and all rows at once.
//! - `electricity [--rows 1000000] [--inducing 300] [--batch 1000]`: a long stream.
//! - `drift [--forget 1,0.9]`: relations that turn.
//!
//! Without WHAT all of them run. All print Markdown.

mod blocks;
mod common;
mod scaling;

use common::Drawn;
use sparsegp_bench::page::{dispatch, picture};

fn run(what: &str, rest: &[String]) -> Drawn {
    match what {
        "regression" => {
            picture("streams-regression.svg", 3, |areas| blocks::regression(rest, areas))
        }
        "classes" => blocks::classes(rest),
        "scaling" => scaling::against(rest),
        "electricity" => scaling::electricity(rest),
        "drift" => scaling::drift(rest),
        other => Err(format!("nothing is called `{other}`").into()),
    }
}

fn main() -> Drawn {
    dispatch(&["regression", "classes", "scaling", "drift", "electricity"], run)
}

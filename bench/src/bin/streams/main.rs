//! Streams and points chosen online: `cargo run --release -p sparsegp-bench --bin streams -- [WHAT] [OPTION VALUE …]`.
//!
//! - `points [--draws 10]`: how many points OIPS takes, what they leave, how probable their sets are (Galy-Fajou & Opper 2020,
//!   Figures 3 to 5); writes `docs/streams-points.svg`.
//! - `toy [--seeds 5] [--steps 100]`: four ways to have points on three streams (ibid., Figure 2); `long`: a long series (as
//!   Figure 1); `regression`, `classes`: the streams of Bui, Nguyen & Turner 2017. They write `docs/streams-toy.svg`,
//!   `docs/streams-long.svg` and `docs/streams-regression.svg`.
//! - `scaling [--rows 20000] [--inducing 100]`: a stream against minibatches and all rows at once.
//! - `electricity [--rows 1000000] [--inducing 300] [--batch 1000]`: a long stream.
//! - `drift [--forget 1,0.9]`: relations that turn.
//!
//! Without WHAT all of them run. All print Markdown.

mod common;
mod points;
mod scaling;
mod toy;

use common::Drawn;
use sparsegp_bench::page::{dispatch, picture};

fn run(what: &str, rest: &[String]) -> Drawn {
    match what {
        "points" => picture("streams-points.svg", 3, |areas| {
            points::probable(rest, &areas[0])?;
            points::count(rest, &areas[1])?;
            points::nystroem(rest, &areas[2])
        }),
        "toy" => picture("streams-toy.svg", 3, |areas| toy::toys(rest, areas)),
        "long" => picture("streams-long.svg", 3, |areas| toy::long(rest, areas)),
        "regression" => picture("streams-regression.svg", 3, |areas| toy::regression(rest, areas)),
        "classes" => toy::classes(rest),
        "scaling" => scaling::against(rest),
        "electricity" => scaling::electricity(rest),
        "drift" => scaling::drift(rest),
        other => Err(format!("nothing is called `{other}`").into()),
    }
}

fn main() -> Drawn {
    dispatch(
        &["points", "toy", "long", "regression", "classes", "scaling", "drift", "electricity"],
        run,
    )
}

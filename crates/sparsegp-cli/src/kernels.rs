//! `sparsegp kernels`: what a kernel can be made of.

use crate::context::Reply;
use crate::format::{Align, Table};
use sparsegp::kernels::REGISTRY;

/// How a specification is written.
pub const LANGUAGE: &str = "
A specification adds (+) and multiplies (*) kernels; brackets group, and values are JSON:

  rbf                                    one lengthscale per input column
  matern52(ard=false)                    one lengthscale for all of them
  matern32 + linear                      a rough function around a trend
  rbf(active_dims=[\"age\"]) * linear      on some input columns, by name or by index from 0
  rbf(variance=2, lengthscales=[1, 0.5]) starting values, on the model's scale
  rbf + additive(base=matern52)          a function of all of them, and one of each
  periodic(base=matern32) * rbf + linear waves that change slowly, on a trend; the period starts from the data
  changepoints(kernels=[linear, rbf])    one function, then another (active_dims says along which input column)
  warped(base=matern52)                  inputs bent by two numbers each: faster at one end than at the other
  rbf(active_dims=[\"t\"]) * coregion(output_dim=3, active_dims=[\"site\"])
                                         a function of t for each of the labels 0, 1, 2 in `site`
  rbf + categorical(active_dims=[\"shop\"]) a level for every shop; rbf leaves that column out
  {\"type\": \"rbf\", \"variance\": {\"value\": 2, \"frozen\": true}}
                                         JSON: values may be frozen or have a prior

ϱ² is Σ ((x − x′)/lengthscale)² over the input columns of the kernel. Columns of labels are not standardised.
";

/// Returns the kernels.
pub fn table() -> Table {
    let mut table =
        Table::new(&[("kernel", Align::Left), ("what", Align::Left), ("also called", Align::Left)]);
    for e in REGISTRY {
        table.row(vec![e.name.into(), e.about.into(), e.aliases.join(", ")]);
    }
    table
}

/// Runs the command.
pub fn run() -> Reply {
    let json = REGISTRY
        .iter()
        .map(|e| serde_json::json!({ "name": e.name, "aliases": e.aliases, "about": e.about }))
        .collect();
    Reply { text: table().render_within(100) + LANGUAGE, json, is_result: true }
}

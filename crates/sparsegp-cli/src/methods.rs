//! `sparsegp methods`: the family.

use crate::context::Reply;
use crate::format::{Align, Table};
use sparsegp::methods::REGISTRY;

/// Runs the command.
pub fn run() -> Reply {
    let mut table = Table::new(&[
        ("method", Align::Left),
        ("objective", Align::Left),
        ("cost of an evaluation", Align::Left),
        ("source", Align::Left),
    ]);
    for e in REGISTRY {
        table.row(vec![e.name.into(), e.about.into(), e.cost.into(), e.source.into()]);
    }
    let text = format!(
        "{}\nN rows, M inducing points. For the same parameters and inducing points\n  \
         titsias2009 ≤ spherical ≤ titsias2025 ≤ exact:\nthe tighter the bound, the less it biases \
         what is learnt, at the same order of cost.\n\nWith q at its best, svgp reaches titsias2009, svgp2025 titsias2025.\nfitc and pep have no place in this \
         order: their objective may be above the log evidence, and they tend to too little noise.\n\n`--method auto` takes exact up to {} rows \
         (unless --inducing is given), else titsias2025; where minibatches cost less than all rows at once,\nit trains by \
         svgp2025 first. For other likelihoods than Gaussian noise, and for columns of weights or noise\nvariances, it takes tsvgp \
         on all rows, or svgp by minibatches, whichever costs less.\n",
        table.render(0),
        sparsegp::fit::AUTO_EXACT
    );
    let json = REGISTRY
        .iter()
        .map(|e| {
            serde_json::json!({
                "name": e.name, "aliases": e.aliases, "about": e.about, "cost": e.cost,
                "source": e.source,
            })
        })
        .collect();
    Reply { text, json, is_result: true }
}

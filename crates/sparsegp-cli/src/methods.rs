//! `sparsegp methods`: the family.

use crate::context::Reply;
use crate::format::{Align, Table, wrapped};
use sparsegp::fit::auto_rule;
use sparsegp::methods::{Entry, REGISTRY};

/// Widest line.
const WIDTH: usize = 100;

/// Returns the methods with their costs and sources.
pub fn table(of: impl Fn(&Entry) -> String, aliases: bool) -> Table {
    let mut table = Table::new(&[
        ("method", Align::Left),
        ("also", Align::Left),
        ("objective", Align::Left),
        ("cost of an evaluation", Align::Left),
        ("source", Align::Left),
    ]);
    for e in REGISTRY {
        // a column that is empty is not printed
        let also = if aliases { e.aliases.join(", ") } else { String::new() };
        table.row(vec![of(e), also, e.about.into(), e.cost.into(), e.source.into()]);
    }
    table
}

/// Returns the names of the methods of a kind, separated by commas.
pub fn names(of: impl Fn(&Entry) -> bool) -> String {
    REGISTRY.iter().filter(|e| of(e)).map(|e| e.name).collect::<Vec<_>>().join(", ")
}

/// Returns what is to be known beside the table: paragraphs.
pub fn notes() -> Vec<String> {
    vec![
        "N rows, M inducing points, B rows of a minibatch; memory is apart from the data. At the same parameters and inducing \
         points titsias2009 ≤ spherical ≤ titsias2025 ≤ exact: the tighter the bound, the less it biases what is learnt. \
         With the best q, svgp equals titsias2009 and svgp2025 equals titsias2025."
            .into(),
        format!(
            "{} are not part of this ordering: their objective is not a lower bound. fitc and pep tend to underestimate the noise.",
            names(|e| !e.method.is_bound())
        ),
        format!("Trained by minibatches: {}.", names(|e| e.method.in_minibatches())),
        format!("Without inducing points: {}.", names(|e| !e.method.is_sparse())),
        format!(
            "For likelihoods with local variables (`sparsegp likelihoods`): {}.",
            names(|e| e.method.augments())
        ),
    ]
}

/// Runs the command.
pub fn run() -> Reply {
    let mut text = table(|e| e.name.into(), false).render_within(WIDTH);
    for note in notes() {
        text += &format!("\n{}\n", wrapped(&note, WIDTH).join("\n"));
    }
    text += "\n--method auto takes\n";
    for rule in auto_rule().replace('`', "").lines() {
        text += &format!("  {}\n", wrapped(rule, WIDTH - 2).join("\n    "));
    }
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

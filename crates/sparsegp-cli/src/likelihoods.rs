//! `sparsegp likelihoods`: what targets can be.

use crate::context::Reply;
use crate::fit_options::takers;
use crate::format::{Align, Table};
use crate::kind::option_of;
use sparsegp::fit::likelihood;
use sparsegp::likelihoods::REGISTRY;

const LANGUAGE: &str = "
A specification is a name with what should not be left to the data:

  poisson                          a rate e^f
  bernoulli(link=logit)            two classes
  student-t(df=4, scale=0.3)       starting values, on the model's scale; --freeze likelihood keeps them
  softmax                          as many classes as there are labels
  {\"type\": \"student-t\", \"df\": {\"value\": 4, \"frozen\": true}}
                                   JSON: values may be frozen or have a prior

`gaussian` has all methods, the others those that train q: svgp and svgp-spherical.
";

/// Runs the command.
pub fn run() -> Reply {
    let mut table =
        Table::new(&[("likelihood", Align::Left), ("targets", Align::Left), ("what", Align::Left)]);
    let mut json = Vec::new();
    for e in REGISTRY {
        let extra = likelihood(Some(e.name), None)
            .or_else(|_| likelihood(Some(e.name), Some(2)))
            .ok()
            .and_then(|built| built.extra());
        table.row(vec![e.name.into(), e.targets.into(), e.about.into()]);
        json.push(serde_json::json!({
            "name": e.name, "aliases": e.aliases, "about": e.about, "targets": e.targets,
            "latents": e.latents, "extra": extra.map(|extra| extra.name),
        }));
    }
    let takers = |extra: &str| {
        let names: Vec<&str> = takers(extra);
        format!("  {:<17} {}\n", option_of(extra), names.join(", "))
    };
    let columns: String = ["exposure", "trials", "variance"].map(takers).concat();
    let text = table.render(0) + LANGUAGE + "\nColumns of further numbers:\n" + &columns;
    Reply { text, json: json.into(), is_result: true }
}

//! `sparsegp likelihoods`: what targets can be.

use crate::context::Reply;
use crate::fit_options::takers;
use crate::format::{Align, Table, wrapped};
use crate::kind::option_of;
use crate::methods;
use sparsegp::fit::likelihood;
use sparsegp::likelihoods::{Entry, Likelihood, REGISTRY};

/// Widest line.
const WIDTH: usize = 100;

/// How a specification is written.
pub const LANGUAGE: &str = "
A specification is a name with what should not be left to the data:

  poisson                          a rate e^f
  bernoulli(link=logit)            two classes
  student-t(df=4, scale=0.3)       starting values, on the model's scale; --freeze likelihood keeps them
  softmax                          as many classes as there are labels
  {\"type\": \"student-t\", \"df\": {\"value\": 4, \"frozen\": true}}
                                   JSON: values may be frozen or have a prior
";

/// Returns the likelihood of an entry, with two classes or as its description writes it where a
/// name does not suffice.
fn built(entry: &Entry) -> Option<Box<dyn Likelihood>> {
    let spec = || entry.about.rsplit(": ").next().filter(|spec| spec.starts_with(entry.name));
    likelihood(Some(entry.name), None)
        .or_else(|_| likelihood(Some(entry.name), Some(3)))
        .or_else(|_| likelihood(spec(), None))
        .ok()
        .filter(|built| built.name() == entry.name)
}

/// Returns the option without which a likelihood has no local variables.
fn option(entry: &Entry) -> Option<String> {
    let own = built(entry)?;
    if !entry.augmented || own.augmented().is_some() {
        return None;
    }
    ["link=logit", "scale=logistic"]
        .map(|option| format!("{}({option})", entry.name))
        .into_iter()
        .find(|spec| likelihood(Some(spec), None).is_ok_and(|l| l.augmented().is_some()))
}

/// Returns likelihoods that the same methods serve, with the names of the methods.
pub fn served() -> Vec<(Vec<String>, String)> {
    let mut groups: Vec<(Vec<String>, String)> = Vec::new();
    let mut add = |name: String, own: &dyn Likelihood| {
        let methods = methods::names(|e| e.takes(own));
        match groups.iter_mut().find(|(_, known)| *known == methods) {
            Some((names, _)) => names.push(name),
            None => groups.push((vec![name], methods)),
        }
    };
    for entry in REGISTRY {
        if let Some(own) = built(entry) {
            add(entry.name.into(), &*own);
        }
        if let Some((spec, own)) =
            option(entry).and_then(|spec| Some((spec.clone(), likelihood(Some(&spec), None).ok()?)))
        {
            add(spec, &*own);
        }
    }
    groups
}

/// Returns the likelihoods.
pub fn table() -> Table {
    let mut table =
        Table::new(&[("likelihood", Align::Left), ("targets", Align::Left), ("what", Align::Left)]);
    for e in REGISTRY {
        table.row(vec![e.name.into(), e.targets.into(), e.about.into()]);
    }
    table
}

/// Returns options that give a column, and the likelihoods that take it.
pub fn columns() -> [(&'static str, String); 3] {
    ["exposure", "trials", "variance"].map(|extra| (option_of(extra), takers(extra).join(", ")))
}

/// Runs the command.
pub fn run() -> Reply {
    let mut json = Vec::new();
    for e in REGISTRY {
        let extra = built(e).and_then(|built| built.extra());
        json.push(serde_json::json!({
            "name": e.name, "aliases": e.aliases, "about": e.about, "targets": e.targets,
            "latents": e.latents, "extra": extra.map(|extra| extra.name),
        }));
    }
    let mut text = table().render_within(WIDTH) + LANGUAGE + "\nMethods that serve them:\n";
    for (names, methods) in served() {
        text += &format!("  {}\n", wrapped(&names.join(", "), WIDTH - 2).join("\n  "));
        text += &format!("    {}\n", wrapped(&methods, WIDTH - 4).join("\n    "));
    }
    text += "\nColumns that rows may bring:\n";
    for (option, names) in columns() {
        text += &format!("  {option:<17} {names}\n");
    }
    Reply { text, json: json.into(), is_result: true }
}

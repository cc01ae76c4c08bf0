//! Writes a page for every paper, and a front page.

use super::result::count;
use super::{Body, Check, Entry, Outcome, PAPERS, Paper, Table, Verdict, stored};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

/// A statement of an abstract or a text, with the checks that bear on it.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The paper's slug.
    pub paper: &'static str,
    /// The statement, in our words.
    pub says: &'static str,
    /// Experiments and names of their checks; an empty name stands for all of an experiment.
    pub checks: &'static [(&'static str, &'static str)],
}

/// What an entry came to, in words.
fn words(entry: &Entry, outcome: Option<&Outcome>) -> String {
    match (entry.body, outcome.and_then(Outcome::verdict)) {
        (Body::Drawing, _) => "a drawing".into(),
        (Body::Program(_) | Body::WithData(_), Some(verdict)) => verdict.words().into(),
        (Body::WithData(_), None) => "cannot be run here".into(),
        (Body::Program(_), None) => "not run".into(),
    }
}

const WORDS: [&str; 6] = [
    "reproduced",
    "direction holds",
    "not reproduced",
    "cannot be run here",
    "not run",
    "a drawing",
];

type Found<'a> = Vec<(&'a Entry, Option<Outcome>)>;

/// The folder of `docs` that keeps the results which its pages are made of.
const KEPT: &str = "results";

/// Returns the result of an entry: the one in `out`, which is kept from now on, or the one that was kept.
fn result(entry: &Entry, out: &Path, docs: &Path) -> std::io::Result<Option<Outcome>> {
    let kept = docs.join(KEPT);
    let Some(outcome) = stored(entry, out) else { return Ok(stored(entry, &kept)) };
    let name = format!("{}.json", entry.name);
    std::fs::copy(out.join(&name), kept.join(&name))?;
    for picture in &outcome.pictures {
        std::fs::copy(out.join(picture), docs.join(picture))?;
    }
    Ok(Some(outcome))
}

/// Refuses claims that name a check which a result does not have.
fn check_claims(claims: &[Claim], found: &Found<'_>) -> Result<(), String> {
    for (name, what) in claims.iter().flat_map(|claim| claim.checks) {
        let outcome = found.iter().find(|(entry, _)| entry.name == *name);
        let Some((_, Some(outcome))) = outcome else { continue };
        if !what.is_empty() && !outcome.checks.iter().any(|check| check.what == *what) {
            return Err(format!("a claim names the check `{what}`, which `{name}` does not have"));
        }
    }
    Ok(())
}

/// Writes the pages into `docs`, with the pictures, from the results in `out` and, of experiments that have none there, from those
/// that were kept in `docs`. Results in `out` are kept.
///
/// # Errors
/// A file that cannot be written or copied; a claim about a check that a result does not have.
pub fn report(
    entries: &[Entry],
    claims: &[Claim],
    out: &Path,
    docs: &Path,
) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(docs.join(KEPT))?;
    let mut front = String::from(HEAD);
    let mut counts = Table::new("", &[&["", "rows"][..], &WORDS].concat());
    let checks_of = ["", "checks", "reproduced", "direction holds", "not reproduced"];
    let mut all_checks = Table::new("", &checks_of);
    let mut said = Table::new("", &["", "the paper says", "verdict"]);
    let mut total = [0; WORDS.len() + 1];
    for paper in &PAPERS {
        let own = entries.iter().filter(|entry| entry.paper == paper.slug);
        let found = own.map(|entry| Ok((entry, result(entry, out, docs)?)));
        let found: Found<'_> = found.collect::<std::io::Result<_>>()?;
        check_claims(claims, &found)?;
        let mut count = [0; WORDS.len() + 1];
        for (entry, outcome) in &found {
            let verdict = words(entry, outcome.as_ref());
            let at = WORDS.iter().position(|word| *word == verdict).ok_or("a verdict")?;
            count[0] += entry.panels;
            count[at + 1] += entry.panels;
        }
        total.iter_mut().zip(count).for_each(|(all, own)| *all += own);
        let mut cells = vec![format!("[{}]({}.md)", paper.title, paper.slug)];
        cells.extend(count.iter().map(usize::to_string));
        counts.row(cells);
        let judged: Vec<Verdict> = found
            .iter()
            .filter_map(|(_, outcome)| outcome.as_ref())
            .flat_map(|outcome| outcome.checks.iter().map(|check| check.verdict))
            .collect();
        let of = |verdict| judged.iter().filter(|own| **own == verdict).count().to_string();
        let counts = [Verdict::Reproduced, Verdict::Direction, Verdict::Not].map(of);
        let head = [format!("[{}]({}.md)", paper.slug, paper.slug), judged.len().to_string()];
        all_checks.row([&head[..], &counts].concat());
        let own = claims.iter().filter(|claim| claim.paper == paper.slug);
        let own: Vec<&Claim> = own.collect();
        for claim in &own {
            let verdict = verdict(&bearing(claim, &found));
            let link = format!("[{}]({}.md#claims)", paper.slug, paper.slug);
            said.row(vec![link, claim.says.into(), verdict.into()]);
        }
        let text = page(paper, &found, &own);
        std::fs::write(docs.join(format!("{}.md", paper.slug)), text)?;
    }
    let mut cells = vec!["all".to_owned()];
    cells.extend(total.iter().map(usize::to_string));
    counts.row(cells);
    front += &counts.markdown();
    front += &format!("\nCheck by check:\n\n{}", all_checks.markdown());
    front += &format!("\n## Claims of speed and accuracy\n\n{}", said.markdown());
    std::fs::write(docs.join("README.md"), front)?;
    Ok(())
}

const HEAD: &str = "\
# The papers, table by table

Every table and figure of the papers behind this library, run by one command:

```text
cargo run --release -p sparsegp-bench --bin papers -- list
cargo run --release -p sparsegp-bench --bin papers -- run NAME… --scale quick
cargo run --release -p sparsegp-bench --bin papers -- report
```

`quick` takes minutes, `day` hours, `full` has the sizes of the papers. `--seed`, `--threads` and
`--data FOLDER` (tables that are not bundled) are options of `run`. Results go to `target/papers` as
JSON, Markdown and SVG; a run that was interrupted skips what it has. These pages are written by
`report` from such results and from those in `results` beside them, where it keeps them: do not edit
them.

A verdict is the worst of the checks of an item. A check of a number is *reproduced* if it differs by no
more than two standard errors; a check of a statement if the statement holds. Where the run was
smaller than the paper's, either counts as *direction holds* at best.

The numbers count panels and data sets of the items. Times are those of the build and machine that a
page names; `dev` builds of this workspace are optimised, but check for overflow.

";

fn page(paper: &Paper, found: &Found<'_>, claims: &[&Claim]) -> String {
    let mut text = format!(
        "# {}\n\n{}. [All papers](README.md) · [errata](../guide/errata.md#{})\n\n\
         Written by `papers -- report`.\n\n",
        paper.title, paper.reference, paper.errata
    );
    let mut table = Table::new("", &["item", "shows", "verdict"]);
    for (entry, outcome) in found {
        let item = format!("[{}](#{})", entry.item, entry.name);
        table.row(vec![item, entry.shows.into(), words(entry, outcome.as_ref())]);
    }
    text += &table.markdown();
    if !claims.is_empty() {
        text += &format!("\n## Claims\n\n{}", judged(claims, found).markdown());
    }
    for (entry, outcome) in found {
        text += &section(entry, outcome.as_ref());
    }
    text
}

/// Returns the checks that bear on a claim, each with its experiment.
fn bearing<'a>(claim: &Claim, found: &'a Found<'_>) -> Vec<(&'a str, &'a Check)> {
    let mut checks = Vec::new();
    for (name, what) in claim.checks {
        let own = found.iter().find(|(entry, _)| entry.name == *name);
        let Some((entry, Some(outcome))) = own else { continue };
        let own = outcome.checks.iter().filter(|check| what.is_empty() || check.what == *what);
        checks.extend(own.map(|check| (entry.name, check)));
    }
    checks
}

/// Returns the verdict on checks in words.
fn verdict(checks: &[(&str, &Check)]) -> &'static str {
    checks.iter().map(|(_, check)| check.verdict).min().map_or("not run", Verdict::words)
}

/// Most checks of a claim that are spelt out; of more there are the counts.
const SPELT_OUT: usize = 4;

/// Returns claims with the checks that bear on them.
fn judged(claims: &[&Claim], found: &Found<'_>) -> Table {
    let mut table = Table::new("", &["the paper says", "verdict", "paper; here"]);
    for claim in claims {
        let checks = bearing(claim, found);
        let figures = match checks.len() {
            0..=SPELT_OUT => {
                let each = checks.iter();
                let each = each
                    .map(|(name, c)| format!("[{}](#{name}): {}; {}", c.what, c.printed, c.ours));
                each.collect::<Vec<_>>().join("<br>")
            }
            _ => {
                let mut names: Vec<&str> = checks.iter().map(|(name, _)| *name).collect();
                names.dedup();
                let links: Vec<String> =
                    names.iter().map(|name| format!("[{name}](#{name})")).collect();
                let all: Vec<&Check> = checks.iter().map(|(_, check)| *check).collect();
                format!("{}: {}", links.join(", "), count(&all))
            }
        };
        table.row(vec![claim.says.into(), verdict(&checks).into(), figures]);
    }
    table
}

fn section(entry: &Entry, outcome: Option<&Outcome>) -> String {
    let mut text =
        format!("\n<a id=\"{}\"></a>\n\n## {}: {}\n\n", entry.name, entry.item, entry.shows);
    let verdict = words(entry, outcome);
    match (entry.body, outcome) {
        (Body::Program(_) | Body::WithData(_), Some(o)) => {
            let _ = writeln!(
                text,
                "**{verdict}** ({}). `papers -- run {} --scale {} --seed {}`: {:.0} s on {} ({} \
                 threads, {} build), tree `{}`.\n",
                o.count(),
                entry.name,
                o.scale,
                o.seed,
                o.seconds.max(1.0),
                o.machine,
                o.threads,
                o.build,
                o.tree
            );
        }
        (Body::WithData(_), None) => {
            let _ = writeln!(
                text,
                "**{verdict}**: the data are not bundled; `--data` names a folder of them.\n"
            );
        }
        _ => {
            let _ = writeln!(text, "**{verdict}**.\n");
        }
    }
    let data: Vec<String> = entry.data.iter().map(ToString::to_string).collect();
    let smaller = outcome.map(|o| o.smaller.join("; ")).unwrap_or_default();
    let printed: Vec<String> =
        entry.printed.iter().map(|p| format!("{} {}", p.what, p.value)).collect();
    let lines = [
        ("Data", data.join("; ").as_str()),
        ("Protocol", entry.protocol),
        ("Differs from the paper", entry.scaled),
        ("Smaller in this run", smaller.as_str()),
        ("Printed", printed.join("; ").as_str()),
        ("Verdict by", entry.rule),
    ]
    .map(|(name, value)| match value {
        "" => String::new(),
        value => format!("- {name}: {value}.\n"),
    });
    text += &lines.concat();
    if let Some(o) = outcome {
        text += &format!("\n{}", o.markdown());
        for picture in &o.pictures {
            text += &format!("\n![{}]({picture})\n", entry.shows);
        }
    }
    text
}

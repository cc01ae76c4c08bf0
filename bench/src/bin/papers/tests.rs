//! Every table and figure has an entry, every entry its fields and its place on a page, and programs run.

use crate::claims::CLAIMS;
use crate::registry::entries;
use sparsegp_bench::papers::{Body, PAPERS, Scale, Settings, Verdict, execute, report, stored};
use std::collections::BTreeSet;

/// Tables and figures of the papers by paper, panels and data sets counted one by one.
const PANELS: [(&str, usize); 10] = [
    ("dual", 7),
    ("inverse-free", 14),
    ("bounds", 34),
    ("basics", 6),
    ("xgpc", 8),
    ("classes", 7),
    ("aaci", 8),
    ("flow", 10),
    ("more", 6),
    ("oips", 5),
];

#[test]
fn every_table_and_figure_is_registered() {
    for (paper, panels) in PANELS {
        let own = entries().into_iter().filter(|entry| entry.paper == paper);
        assert_eq!(own.map(|entry| entry.panels).sum::<usize>(), panels, "{paper}");
    }
    assert_eq!(PANELS.map(|(paper, _)| paper), PAPERS.each_ref().map(|paper| paper.slug));
}

#[test]
fn every_entry_says_what_it_is() {
    let mut names = BTreeSet::new();
    for entry in entries() {
        let name = entry.name;
        assert!(names.insert(name), "{name} is there twice");
        assert!(name.starts_with(&format!("{}-", entry.of().slug)), "{name}");
        assert!(!entry.item.is_empty() && !entry.shows.is_empty(), "{name}");
        if let Body::Program(_) | Body::WithData(_) = entry.body {
            assert!(!entry.data.is_empty(), "{name} has no data");
            assert!(!entry.protocol.is_empty() && !entry.rule.is_empty(), "{name}");
        }
        // fields are sentences of a list: the page adds the full stop
        for text in [entry.shows, entry.protocol, entry.scaled, entry.rule] {
            assert!(!text.ends_with('.') && !text.contains("  "), "{name}: {text}");
        }
    }
}

#[test]
fn every_entry_has_its_section_on_a_page() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/papers");
    for entry in entries() {
        let page = docs.join(format!("{}.md", entry.paper));
        let text = std::fs::read_to_string(&page).expect("a page of every paper");
        let anchor = format!("<a id=\"{}\"></a>", entry.name);
        assert!(text.contains(&anchor), "{}: run `papers report`", entry.name);
    }
}

#[test]
fn claims_name_experiments() {
    let entries = entries();
    for claim in CLAIMS {
        for (name, _) in claim.checks {
            let entry = entries.iter().find(|entry| entry.name == *name);
            assert_eq!(entry.expect(name).paper, claim.paper, "{name}");
        }
    }
}

#[test]
fn experiments_run_and_are_reported() {
    let out = std::env::temp_dir().join(format!("sparsegp-papers-{}", std::process::id()));
    let settings = Settings {
        scale: Scale::Smallest,
        seed: 0,
        threads: 1,
        data: None,
        out: out.join("results"),
    };
    let all = entries();
    let chosen = ["bounds-table3", "dual-figure1-left", "oips-figure4"];
    for name in chosen {
        let entry = all.iter().find(|entry| entry.name == name).expect(name);
        let outcome = execute(entry, &settings).expect(name).expect("a program");
        let read = stored(entry, &settings.out).expect("a result");
        assert_eq!(read.checks.len(), outcome.checks.len(), "{name}");
        assert!(!read.checks.is_empty() && read.verdict().is_some(), "{name}");
        assert!(read.pictures.iter().all(|own| settings.out.join(own).is_file()), "{name}");
    }
    // the only one whose smallest size is the paper's
    let table3 = all.iter().find(|entry| entry.name == "bounds-table3").expect("an entry");
    let table3 = stored(table3, &settings.out).expect("a result");
    assert_eq!(table3.verdict(), Some(Verdict::Reproduced));
    report(&all, CLAIMS, &settings.out, &out.join("docs")).expect("pages");
    let page = std::fs::read_to_string(out.join("docs/bounds.md")).expect("a page");
    assert!(page.contains("| Exact GP, σ² | 0.0715 | 0.07148 | reproduced |"), "{page}");
    std::fs::remove_dir_all(out).expect("the folder of this test");
}

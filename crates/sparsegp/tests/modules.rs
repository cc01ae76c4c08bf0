//! No module uses one above it: the order of the modules of the crate, from the bottom up. No source is long, and
//! texts are plain English.

#[path = "modules/words.rs"]
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// From the bottom up: a module uses only modules to the left and above.
const ORDER: &[&str] = &[
    "error",
    "rng",
    "special",
    "guests",
    "limits",
    "atomic",
    "linalg",
    "data",
    "params",
    "spec",
    "dual_numbers",
    "optim",
    "metrics",
    "kernels",
    "markov",
    "distributions",
    "likelihoods",
    "means",
    "terms",
    "bounds",
    "engine",
    "vecchia",
    "inverse_free",
    "variational",
    "inducing",
    "psi",
    "online",
    "deep",
    "flow",
    "latent",
    "model",
    "methods",
    "train",
    "samplers",
    "fit",
    "bayesopt",
    "explain",
    "export",
    "shards",
    "guide",
    "testing",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    sources_of(folder, &["rs"], found);
}

/// Adds the files in a folder whose names end so, but for what has been built or installed there.
fn sources_of(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    let is_of = |path: &Path| {
        path.extension().is_some_and(|own| endings.iter().any(|ending| own == *ending))
    };
    for entry in std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry")) {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        match path.is_dir() {
            true if name.starts_with('.') || name == "target" || name == "testdata" => {}
            true => sources_of(&path, endings, found),
            false if is_of(&path) => found.push(path),
            false => {}
        }
    }
}

/// Whether a file of the sources has only tests.
fn is_test(name: &str) -> bool {
    name.contains("tests") || name.contains("test_") || name.contains("identities")
}

/// What a file says without comments and without the tests at its end.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines();
    lines.map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// Modules of the crate that a file names after `crate::`.
fn named(code: &str) -> BTreeSet<String> {
    let word = |text: &str| -> String {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => {
                found.insert(word(rest));
            }
            Some(list) => {
                // the names at the first level
                let mut depth = 0;
                let mut begins = true;
                for (i, c) in list.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => begins = true,
                        _ if begins && !c.is_whitespace() => {
                            found.insert(word(&list[i..]));
                            begins = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    found
}

#[test]
fn no_module_uses_one_above_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let place = |name: &str| ORDER.iter().position(|own| *own == name);
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut up = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for path in files {
        let own = path.strip_prefix(&src).expect("a source");
        let name = own.to_string_lossy().into_owned();
        let module = own.components().next().map(|c| c.as_os_str().to_string_lossy().into_owned());
        let module = module.unwrap_or_default().trim_end_matches(".rs").to_owned();
        if module == "lib" || is_test(&name) {
            continue;
        }
        let Some(own) = place(&module) else { panic!("{name}: give `{module}` a place in ORDER") };
        seen.insert(module.clone());
        let text = std::fs::read_to_string(&path).expect("a source");
        for used in named(&code(&text)) {
            if place(&used).is_some_and(|other| other > own) {
                up.insert((module.clone(), used));
            }
        }
    }
    assert!(up.is_empty(), "these use modules above them: {up:?}");
    let missing: Vec<_> = ORDER.iter().filter(|name| !seen.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?} are not modules: take them out of ORDER");
}

/// Lines of a source, at most: what is longer has more than one subject.
const MOST_LINES: usize = 500;

/// Of every crate that is published or built into a package; tests may be as long as they are.
#[test]
fn sources_are_no_longer_than_one_subject_takes() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for name in ["sparsegp", "sparsegp-cli", "sparsegp-python"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    let mut long = BTreeSet::new();
    for path in &files {
        let name =
            path.strip_prefix(&crates).expect("a source").to_string_lossy().replace('\\', "/");
        let lines = std::fs::read_to_string(path).expect("a source").lines().count();
        if lines > MOST_LINES && !is_test(&name) {
            long.insert(name);
        }
    }
    assert!(
        long.is_empty(),
        "divide these along their subjects, they have over 500 lines: {long:?}"
    );
}

/// Lines of a function, at most.
const LONGEST: usize = 80;

/// The name of the function that begins at a line, with its indentation.
fn function(line: &str) -> Option<(&str, &str)> {
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    let (before, after) = text.split_once("fn ")?;
    let word = |word: &str| {
        ["const", "async", "unsafe"].contains(&word)
            || word.starts_with("pub")
            || word.ends_with(')')
    };
    let name = after.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
    (before.split_whitespace().all(word) && !name.is_empty()).then_some((indent, name))
}

/// The functions of a source with their lines, as `rustfmt` writes them: they end at a brace that is indented as they are.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = code_lines(text);
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((indent, name)) = function(line) else { continue };
        let end = format!("{indent}}}");
        let length = lines[at..].iter().position(|own| *own == end);
        // a declaration without a body
        let declared = lines[at..].iter().position(|own| {
            own.ends_with(';') && own.starts_with(indent) && !own[indent.len()..].starts_with(' ')
        });
        if let Some(length) = length.filter(|end| declared.is_none_or(|other| other > *end)) {
            found.push((name.to_owned(), length + 1));
        }
    }
    found
}

/// The lines before the tests.
fn code_lines(text: &str) -> Vec<&str> {
    text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).collect()
}

#[test]
fn functions_are_no_longer_than_a_page() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for name in ["sparsegp", "sparsegp-cli", "sparsegp-python"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    let mut found = BTreeSet::new();
    for path in &files {
        let file =
            path.strip_prefix(&crates).expect("a source").to_string_lossy().replace('\\', "/");
        if is_test(&file) {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("a source");
        for (name, lines) in functions(&text).into_iter().filter(|own| own.1 > LONGEST) {
            found.insert((file.clone(), name, lines));
        }
    }
    assert!(found.is_empty(), "divide these, they have over {LONGEST} lines: {found:?}");
}

/// Words that the documentation of a function does not begin with: a verb says what it does.
const NO_VERBS: &[&str] = &[
    "The", "A", "An", "What", "Whether", "How", "Which", "Where", "Why", "Of", "From", "With",
    "Without", "For", "At", "By", "In", "As", "One", "All", "Every", "Each", "Number", "Its",
    "This", "These", "Those", "That", "Only", "See",
];

/// Finds the documented functions of a source before its tests, with the first words of their
/// documentation.
fn first_words(text: &str) -> Vec<(&str, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let tests = |pair: &[&str]| {
        pair[0] == "#[cfg(test)]" && pair[1].contains("mod ") && pair[1].ends_with('{')
    };
    let end = lines.windows(2).position(tests).unwrap_or(lines.len());
    let mut found = Vec::new();
    // the first line of a comment whose item is still to come, and the open brackets of an attribute
    let mut comment = None;
    let mut open = 0;
    for line in &lines[..end] {
        let own = line.trim_start();
        if open > 0 || own.starts_with("#[") {
            open += own.matches('[').count();
            open -= own.matches(']').count().min(open);
        } else if let Some(documentation) = own.strip_prefix("///") {
            comment = comment.or(Some(documentation.trim_start()));
        } else if !own.starts_with("//") {
            if let (Some(documentation), Some((_, name))) = (comment, function(line)) {
                let word = documentation.split(|c: char| !c.is_alphabetic()).next();
                found.push((name, word.unwrap_or("")));
            }
            comment = None;
        }
    }
    found
}

#[test]
fn documentation_of_functions_begins_with_a_verb() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for name in ["sparsegp", "sparsegp-cli", "sparsegp-python"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    let mut found = BTreeSet::new();
    for path in &files {
        let file =
            path.strip_prefix(&crates).expect("a source").to_string_lossy().replace('\\', "/");
        if is_test(&file) {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("a source");
        for (name, word) in first_words(&text) {
            if NO_VERBS.contains(&word) {
                found.insert((file.clone(), name.to_owned(), word.to_owned()));
            }
        }
    }
    assert!(
        found.is_empty(),
        "let the documentation of these begin with a verb, such as `Returns`: {found:?}"
    );
}

/// The reading order of DESIGN.md is this one, from the top down.
#[test]
fn the_reading_order_is_that_of_the_design() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../DESIGN.md");
    let text = std::fs::read_to_string(path).expect("DESIGN.md");
    let (_, rest) = text.split_once("## 2. Modules in reading order").expect("the chapter");
    let (chapter, _) = rest.split_once("## 3.").expect("its end");
    let name =
        |line: &str| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name.to_owned());
    let read: Vec<String> = chapter.lines().filter_map(name).collect();
    let order: Vec<String> = ORDER.iter().rev().map(|name| (*name).to_owned()).collect();
    assert_eq!(read, order);
}

/// The test sees what it is to see.
#[test]
fn names_are_found_in_lists_and_paths() {
    let text = "use crate::{a::{b, c}, d};\nlet x = crate::e::f(); // crate::g\n#[cfg(test)]\nmod tests {\n crate::h";
    let found: Vec<String> = named(&code(text)).into_iter().collect();
    assert_eq!(found, ["a", "d", "e"]);
}

/// And how long functions are.
#[test]
fn functions_are_found_with_their_lines() {
    let text = "pub(crate) fn a(\n    x: f64,\n) -> f64 {\n    x\n}\n\ntrait T {\n    fn b(&self);\n    const fn c() {\n    }\n}\n\
                #[cfg(test)]\nfn d() {\n}\n";
    assert_eq!(functions(text), [("a".to_owned(), 5), ("c".to_owned(), 2)]);
}

/// And how their documentation begins.
#[test]
fn first_words_are_found_with_their_functions() {
    let text = "/// Returns a.\n/// The rest.\n#[must_use]\npub fn a() {}\n\n/// The b.\nstruct B;\n\nfn c() {}\n\n\
                trait T {\n    /// `d`.\n    #[cfg(any(\n        unix,\n    ))]\n    // why\n    fn d(&self);\n    /// A, e.\n    fn e();\n}\n\
                #[cfg(test)]\nmod tests {\n    /// The f.\n    fn f() {}\n}\n";
    assert_eq!(first_words(text), [("a", "Returns"), ("d", ""), ("e", "A")]);
}

//! Texts are plain English: phrases that readers have stumbled over do not come back.

use super::sources_of;
use std::path::Path;

/// Phrases, and what to write instead. Each is sought at whole words, across the ends of lines.
const PHRASES: &[(&str, &str)] = &[
    ("told", "reported, stated, distinguished"),
    ("goes on", "continues, resumes"),
    ("go on", "continue, resume"),
    ("going on", "continuing, resuming"),
    ("went on", "continued, resumed"),
    ("of its own", "its own, a separate"),
    ("of their own", "their own, separate"),
    ("of one's own", "your own"),
    ("anew", "again, from scratch"),
    ("for ever", "forever, without end"),
    ("for want of", "without"),
    ("has no sense", "does not apply"),
];

/// "is no date" is "is not a date"; after these words, or before those, "no" is plain English.
const BEFORE_NO: [&str; 4] = ["is", "are", "was", "were"];
const FINE_AFTER: [&str; 18] = [
    "longer", "more", "less", "better", "worse", "larger", "smaller", "higher", "lower", "wider",
    "faster", "slower", "greater", "further", "shorter", "nearer", "fewer", "finer",
];

/// The words of a text in lower case, with the number of the line that each is in; marks of comments and lists are not words.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let all = line.split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '_'));
        found.extend(all.filter(|w| !w.is_empty()).map(|w| (at + 1, w.to_lowercase())));
    }
    found
}

/// The phrases in a text, with their lines.
fn found(text: &str) -> Vec<(usize, String)> {
    let words = words(text);
    let mut found = Vec::new();
    for (at, (line, word)) in words.iter().enumerate() {
        let follows = |phrase: &str| {
            let mut own = words[at..].iter().map(|(_, word)| word.as_str());
            phrase.split(' ').all(|word| own.next() == Some(word))
        };
        for (phrase, better) in PHRASES.iter().filter(|(phrase, _)| follows(phrase)) {
            found.push((*line, format!("`{phrase}`: write {better}")));
        }
        let next = |by: usize| words.get(at + by).map_or("", |(_, word)| word.as_str());
        let there = at > 0 && words[at - 1].1 == "there";
        let is_no = BEFORE_NO.contains(&word.as_str()) && next(1) == "no";
        if is_no && !there && !FINE_AFTER.contains(&next(2)) {
            found.push((*line, format!("`{word} no {}`: write `{word} not`", next(2))));
        }
    }
    found
}

#[test]
fn texts_are_plain_english() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["crates", "docs", "bench", "scripts"] {
        sources_of(&root.join(folder), &["rs", "md", "py", "pyi"], &mut files);
    }
    for name in ["README", "DESIGN", "NOTATION", "CONTRIBUTING", "CHANGELOG", "SECURITY"] {
        files.push(root.join(format!("{name}.md")));
    }
    let own = Path::new("modules").join("words.rs");
    let mut all = Vec::new();
    for path in files.iter().filter(|path| !path.ends_with(&own)) {
        let text = std::fs::read_to_string(path).expect("a text");
        let name = path.strip_prefix(&root).unwrap_or(path).display().to_string();
        all.extend(found(&text).into_iter().map(|(line, what)| format!("{name}:{line}: {what}")));
    }
    assert!(all.is_empty(), "{} phrases:\n{}", all.len(), all.join("\n"));
}

#[test]
fn phrases_are_found_at_whole_words_and_across_lines() {
    let lines = |text: &str| found(text).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
    assert_eq!(
        lines("It goes\n/// on here, and foretold `go_on`.\n// Each has a file of its\n// own"),
        [1, 3]
    );
    assert_eq!(
        lines("This is no date.\nThere is no date; it is no longer one, and no date is."),
        [1]
    );
    assert_eq!(lines("these are\n  # no columns"), [1]);
}

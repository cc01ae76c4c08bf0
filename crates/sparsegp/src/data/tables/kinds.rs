//! What a column of text holds, as all of the cells that are looked at tell.

use super::cells::{Like, categorical, is_missing, is_missing_number, is_odd_word, like, shown};
use super::dates::{days, fitting_formats};
use crate::data::options::ReadOptions;
use crate::error::in_shell;
use std::collections::HashSet;

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Numbers,
    Dates,
    Categories,
    /// None of these without a word of the user: the row (from 0) that shows it, where it is one, and the reason.
    Unclear(Option<usize>, String),
}

/// Whether a column becomes inputs or is a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Input,
    /// An input whose categories a kernel reads as labels: there may be many.
    Codes,
    Target,
}

/// Rows from which on a column is said to differ in nearly every row.
const FEW: usize = 10;

/// Tells what a column of texts holds.
pub(super) fn judge(cells: &[String], column: &str, role: Role, options: &ReadOptions) -> Holds {
    let mut numbers = HashSet::new();
    let (mut of_numbers, mut dates) = (0, 0);
    let mut likes: Vec<(usize, Like)> = Vec::new();
    let mut words: Vec<usize> = Vec::new();
    let mut dashes = 0;
    for (i, cell) in cells.iter().enumerate() {
        let text = cell.trim();
        if is_missing(text, options) {
            continue;
        }
        if options.is_kept_word(text) && is_odd_word(text, options) {
            dashes += 1;
            words.push(i);
        } else if options.formats_of(column).next().is_some()
            && options.date(column, text).is_some()
        {
            dates += 1;
        } else if options.number(text).is_some() {
            of_numbers += 1;
            numbers.insert(text);
        } else if is_missing_number(text, options) {
            dashes += 1;
            words.push(i);
        } else if options.date(column, text).is_some() {
            dates += 1;
        } else if let Some(kind) = like(text, options) {
            likes.push((i, kind));
        } else {
            words.push(i);
        }
    }
    let texts = likes.len() + words.len();
    // what is a dash among numbers is a missing value, and among words a word
    let texts_but_dashes = texts - dashes;
    if dates > 0 && dates >= of_numbers + texts_but_dashes {
        return Holds::Dates;
    }
    if texts_but_dashes == 0 && (of_numbers > 0 || texts == 0) {
        return Holds::Numbers;
    }
    // a few texts among numbers are mistakes or missing values: reading names the first
    if of_numbers > 0 && of_numbers >= texts_but_dashes {
        return Holds::Numbers;
    }
    let remedy = match role {
        Role::Target => "`--classes` if these are classes".to_owned(),
        _ => categorical(column, "these are categories"),
    };
    if of_numbers == 0
        && let Some(holds) = judge_dates(cells, &remedy, &likes, &words)
    {
        return holds;
    }
    if let Some(holds) = judge_likes(cells, &remedy, &likes, of_numbers + texts_but_dashes) {
        return holds;
    }
    if numbers.len() > FEW {
        let i = words.first().or(likes.first().map(|(i, _)| i)).copied().unwrap_or(0);
        return Holds::Unclear(
            Some(i),
            format!(
                "`{}` is a word, and {of_numbers} of the {} cells that were looked at are numbers: pass \
                 `--missing-words WORD,…` for words that mean a missing value, or {remedy}",
                shown(cells[i].trim()),
                of_numbers + texts
            ),
        );
    }
    judge_words(cells, column, role, &words)
}

/// Refuses a column in which texts that look like numbers prevail.
fn judge_likes(
    cells: &[String],
    remedy: &str,
    likes: &[(usize, Like)],
    all: usize,
) -> Option<Holds> {
    let (first, kind) = likes.first()?;
    if 2 * likes.len() < all {
        return None;
    }
    // `1st`, `2nd` and the like differ in their letters: they are names
    if matches!(kind, Like::Unit(_)) && likes.iter().any(|(_, other)| other != kind) {
        return None;
    }
    // of several ways to read the first the one that the others allow
    let telling = likes.iter().find(|(i, other)| {
        other != kind || (*kind == Like::DecimalComma && cells[*i].contains('.'))
    });
    let (i, kind) = match telling {
        Some((i, other)) if matches!(kind, Like::DecimalComma | Like::Thousands(_)) => (*i, other),
        _ => (*first, kind),
    };
    Some(Holds::Unclear(Some(i), kind.reason(cells[i].trim(), Some(remedy))))
}

/// Refuses dates in other formats than those that were given, and times of day.
fn judge_dates(
    cells: &[String],
    remedy: &str,
    likes: &[(usize, Like)],
    words: &[usize],
) -> Option<Holds> {
    let mut places: Vec<usize> =
        likes.iter().map(|(i, _)| *i).chain(words.iter().copied()).collect();
    places.sort_unstable();
    let texts = || places.iter().map(|&i| cells[i].trim());
    let i = *places.first()?;
    let first = shown(cells[i].trim());
    let formats = fitting_formats(texts());
    if let Some(format) = formats.first() {
        let other = formats.get(1).filter(|other| other.to_lowercase() != format.to_lowercase());
        let also = match other {
            Some(other) => format!(" or `--date-format '{other}'`, whichever is meant"),
            None => String::new(),
        };
        let reason = format!(
            "`{first}` looks like a date: pass `--date-format '{format}'`{also}, or {remedy}; without that, dates are written \
             as `2024-12-31`"
        );
        return Some(Holds::Unclear(Some(i), reason));
    }
    let begins = |text: &str| text.get(..10).is_some_and(|date| days(date).is_some());
    if texts().all(begins) {
        let reason = format!(
            "`{first}` begins like a date and cannot be read as one: write a time as `13:05:00`, and a zone as its offset, \
             such as `+01:00`"
        );
        return Some(Holds::Unclear(Some(i), reason));
    }
    texts().all(is_time).then(|| {
        let reason = format!(
            "`{first}` is a time of day without a date: write it as a number, such as hours, or with its date"
        );
        Holds::Unclear(Some(i), reason)
    })
}

/// Tells categories from texts that differ too much for that.
fn judge_words(cells: &[String], column: &str, role: Role, words: &[usize]) -> Holds {
    let texts = || words.iter().map(|&i| cells[i].trim());
    let different: HashSet<&str> = texts().collect();
    let (count, of) = (different.len(), words.len());
    let mut first: Vec<&str> = texts().collect();
    let mut seen = HashSet::new();
    first.retain(|text| seen.insert(*text));
    let first: Vec<String> =
        first.iter().take(3).map(|text| format!("`{}`", shown(text))).collect();
    let first = first.join(", ");
    match role {
        Role::Target if count > FEW && 2 * count >= of => Holds::Unclear(
            None,
            format!(
                "holds {count} different texts in the {of} rows that were looked at ({first}, …): pass `--classes` if these \
                 are classes, or choose another target"
            ),
        ),
        Role::Input if count >= FEW && 10 * count >= 9 * of => Holds::Unclear(
            None,
            format!(
                "holds a different text in nearly every row ({count} in the {of} that were looked at: {first}, …): leave it \
                 out (`--ignore {}`), or pass {}",
                in_shell(column),
                categorical(column, "these are categories")
            ),
        ),
        _ => Holds::Categories,
    }
}

/// Says whether a text is a time of day.
fn is_time(text: &str) -> bool {
    let text = text.trim_end_matches(|c: char| c.is_alphabetic() || c == ' ');
    let mut parts = text.split(':');
    let digits =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let count = text.split(':').count();
    (2..=3).contains(&count) && parts.all(|part| digits(part) && part.len() <= 12)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(cells: &[&str], role: Role) -> Holds {
        let cells: Vec<String> = cells.iter().map(|&cell| cell.to_owned()).collect();
        judge(&cells, "c", role, &ReadOptions::default())
    }

    #[track_caller]
    fn unclear(cells: &[&str], role: Role, parts: &[&str]) {
        let Holds::Unclear(_, reason) = judged(cells, role) else {
            panic!("{cells:?} is {:?}", judged(cells, role))
        };
        for part in parts {
            assert!(reason.contains(part), "`{reason}` lacks `{part}`");
        }
    }

    #[test]
    fn numbers_with_some_words_are_numbers() {
        for cells in [
            &["N/A", "1", "2"][..],
            &["-", "-", "-", "1", "2"],
            &["unknown", "1", "2"],
            &[".", "1.5", "2"],
            &["#DIV/0!", "1", "2"],
            &["130 hp", "1", "2"],
            &["12,5", "1", "2"],
            &["kg", "1", "2"],
            &["\u{2212}1.5", "\u{2212}2"],
            &["NA", ""],
            &[],
        ] {
            assert_eq!(judged(cells, Role::Input), Holds::Numbers, "{cells:?}");
            assert_eq!(judged(cells, Role::Target), Holds::Numbers, "{cells:?}");
        }
    }

    #[test]
    fn text_that_looks_like_numbers_is_refused() {
        for role in [Role::Input, Role::Target] {
            unclear(&["12,5", "7,25"], role, &["`12,5`", "--decimal ,"]);
            unclear(&["1,152", "1,152.2"], role, &["`1,152.2`", "--thousands ,"]);
            unclear(&["1,5", "1.152,2"], role, &["`1.152,2`", "--decimal , --thousands ."]);
            unclear(&["12%", "13 %", "x"], role, &["`12%`", "per cent", "write only the numbers"]);
            unclear(&["12 kg", "13 kg"], role, &["`12 kg`", "the unit `kg`"]);
            unclear(
                &["31/12/2024", "01/02/2024"],
                role,
                &["`31/12/2024`", "--date-format '%d/%m/%Y'"],
            );
            unclear(&["11/12/2024"], role, &["%d/%m/%Y", "%m/%d/%Y"]);
            unclear(&["2024Q1", "2023Q4", "2024Q1"], role, &["`2024Q1`", "'%YQ%q'"]);
            unclear(&["Jan 2024", "Feb 2024"], role, &["`Jan 2024`", "'%b %Y'"]);
            unclear(&["2024-W05", "2024-W06"], role, &["`2024-W05`", "'%G-W%V'"]);
            unclear(&["00:00:00", "06:00:00"], role, &["time of day"]);
        }
        let many: Vec<String> = (0..40).map(|i| i.to_string()).collect();
        let mixed: Vec<&str> =
            many.iter().map(String::as_str).chain(["unknown"; 60].iter().copied()).collect();
        unclear(&mixed, Role::Input, &["`unknown`", "40 of the 100 cells", "--missing-words"]);
    }

    #[test]
    fn words_are_categories_unless_they_all_differ() {
        for cells in [
            &["a", "b", "a"][..],
            &["1st", "2nd", "3rd"],
            &["true", "false"],
            &["-", "x", "y"],
            &["a", "b", "1"],
            &["25-34", "35-44"],
        ] {
            assert_eq!(judged(cells, Role::Input), Holds::Categories, "{cells:?}");
            assert_eq!(judged(cells, Role::Target), Holds::Categories, "{cells:?}");
        }
        let names: Vec<String> = (0..30).map(|i| format!("name {i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        unclear(
            &names,
            Role::Input,
            &["30 in the 30", "`name 0`", "--ignore c", "--categorical c"],
        );
        unclear(&names, Role::Target, &["30 different texts", "--classes"]);
        assert_eq!(judged(&names, Role::Codes), Holds::Categories);
        assert_eq!(judged(&["2024-01-01", "2024-01-02", "?"], Role::Input), Holds::Dates);
        assert_eq!(judged(&["2024-01-01", "2024-01-02", "-"], Role::Input), Holds::Dates);
    }
}

//! What is missing in rows that are left out, column by column.

use super::cells::shown;
use std::collections::BTreeMap;

/// Words that are quoted of a column.
const MOST_WORDS: usize = 20;

/// Counts missing cells of rows that are left out.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    columns: BTreeMap<String, Column>,
}

#[derive(Clone, Debug, Default)]
struct Column {
    rows: usize,
    /// Words that stand for a missing value: how many, and the first row (from 0).
    words: BTreeMap<String, (usize, usize)>,
}

impl Tally {
    /// Counts a missing cell; `text`: what stands in it.
    pub fn add(&mut self, column: &str, row: usize, text: &str) {
        if !self.columns.contains_key(column) {
            self.columns.insert(column.to_owned(), Column::default());
        }
        let Some(own) = self.columns.get_mut(column) else { return };
        own.rows += 1;
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if let Some((count, _)) = own.words.get_mut(text) {
            *count += 1;
        } else if own.words.len() < MOST_WORDS {
            own.words.insert(text.to_owned(), (1, row));
        }
    }

    /// Names the columns and the rows that each of them costs.
    pub fn columns(&self) -> String {
        let mut all: Vec<(&String, usize)> =
            self.columns.iter().map(|(name, own)| (name, own.rows)).collect();
        all.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
        let one = |(name, rows): &(&String, usize)| format!("`{}` in {rows}", shown(name));
        let mut shown: Vec<String> = all.iter().take(6).map(one).collect();
        if all.len() > shown.len() {
            shown.push(format!("{} more columns", all.len() - shown.len()));
        }
        shown.join(", ")
    }

    /// Quotes the words that were taken for missing values.
    pub fn words(&self) -> Vec<String> {
        let plain = |word: &str| matches!(word, "NA" | "nan" | "NaN" | "null");
        let of = |(name, own): (&String, &Column)| {
            let words: Vec<String> = own
                .words
                .iter()
                .filter(|(word, _)| !plain(word))
                .map(|(word, (count, first))| {
                    let rows = if *count == 1 { "row" } else { "rows" };
                    format!("`{}` in {count} {rows} (first: row {})", shown(word), first + 1)
                })
                .collect();
            (!words.is_empty()).then(|| {
                format!(
                    "column `{}`: words that count as missing values: {}",
                    shown(name),
                    words.join(", ")
                )
            })
        };
        self.columns.iter().filter_map(of).collect()
    }
}

//! Holds what an experiment came to.

use serde::{Deserialize, Serialize};

/// How a result stands to the paper's, from the worst to the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Verdict {
    /// The paper's statement fails here.
    Not,
    /// The order is the paper's, the numbers are not, or the size is smaller.
    Direction,
    /// Numbers agree within errors, and statements hold at the paper's size.
    Reproduced,
}

impl Verdict {
    /// Returns it in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Not => "not reproduced",
            Self::Direction => "direction holds",
            Self::Reproduced => "reproduced",
        }
    }
}

/// One statement or number of the paper beside ours.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    /// Names it.
    pub what: String,
    /// The paper's side.
    pub printed: String,
    /// Our side.
    pub ours: String,
    /// How they agree.
    pub verdict: Verdict,
}

/// A table of texts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Stands above it.
    pub caption: String,
    /// Names of its columns.
    pub head: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table without rows.
    pub fn new(caption: &str, head: &[&str]) -> Self {
        let head = head.iter().map(|name| (*name).to_owned()).collect();
        Self { caption: caption.into(), head, rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has another number of cells than the head.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.head.len(), "cells of a row of `{}`", self.caption);
        self.rows.push(cells);
    }

    /// Returns it as Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule = format!("|{}\n", " --- |".repeat(self.head.len()));
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        let caption = match self.caption.as_str() {
            "" => String::new(),
            caption => format!("{caption}\n\n"),
        };
        format!("{caption}{}{rule}{rows}", line(&self.head))
    }
}

/// The result of a run, as its file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The experiment.
    pub entry: String,
    /// The scale.
    pub scale: String,
    /// The seed.
    pub seed: u64,
    /// Threads that it had.
    pub threads: usize,
    /// Git's name of the tree that was compiled; ends in `+` where files were changed.
    pub tree: String,
    /// The processor.
    pub machine: String,
    /// `release` or `dev`.
    pub build: String,
    /// Seconds that it took.
    pub seconds: f64,
    /// What was smaller than in the paper in this run.
    pub smaller: Vec<String>,
    /// Statements and numbers, judged.
    pub checks: Vec<Check>,
    /// Tables of numbers.
    pub tables: Vec<Table>,
    /// Sentences for the reader.
    pub notes: Vec<String>,
    /// Files of pictures beside this one.
    pub pictures: Vec<String>,
}

impl Outcome {
    /// Returns the verdict on all checks: the worst of them.
    pub fn verdict(&self) -> Option<Verdict> {
        self.checks.iter().map(|check| check.verdict).min()
    }

    /// Returns how many checks have each verdict, in words.
    pub fn count(&self) -> String {
        count(&self.checks.iter().collect::<Vec<_>>())
    }

    /// Returns the table of the checks.
    pub fn comparison(&self) -> Table {
        let mut table = Table::new("", &["", "paper", "here", "verdict"]);
        for check in &self.checks {
            let cells = [&check.what, &check.printed, &check.ours].map(|text| text.clone());
            table.row([&cells[..], &[check.verdict.words().to_owned()]].concat());
        }
        table
    }

    /// Returns the result as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        if !self.checks.is_empty() {
            text += &self.comparison().markdown();
        }
        for table in &self.tables {
            text += &format!("\n{}", table.markdown());
        }
        for note in &self.notes {
            text += &format!("\n{note}\n");
        }
        text
    }
}

/// Returns how many checks have each verdict, in words.
pub(super) fn count(checks: &[&Check]) -> String {
    let all = [Verdict::Reproduced, Verdict::Direction, Verdict::Not];
    let of = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let some = all.into_iter().filter(|verdict| of(*verdict) > 0);
    let parts: Vec<String> = some.map(|v| format!("{} {}", of(v), v.words())).collect();
    parts.join(", ")
}

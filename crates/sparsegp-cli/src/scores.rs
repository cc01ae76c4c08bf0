//! Scores as tables and as JSON.

use crate::format::{Align, Table, number, rounded};
use crate::score::{AllScores, Score};
use serde_json::{Value, json};
use sparsegp::metrics::classes::ClassScores;
use sparsegp::metrics::density::DensityScores;

/// Classes up to which the table of confusions is printed.
const MOST_CLASSES: usize = 12;

fn maybe(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or("–".into(), text)
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// Returns the names and cells of a score, the number of rows apart.
fn cells(score: &Score) -> Vec<(&'static str, String)> {
    let four = |value: f64| number(value, 4);
    match score {
        Score::Gaussian(s) => vec![
            ("RMSE", four(s.rmse)),
            ("MAE", four(s.mae)),
            ("R²", maybe(s.r2, |v| rounded(v, 4))),
            ("NLPD", four(s.nlpd)),
            ("MSLL", maybe(s.msll, |v| rounded(v, 4))),
            ("CRPS", four(s.crps)),
            ("in 50 %", percent(s.coverage_50)),
            ("in 90 %", percent(s.coverage_90)),
            ("in 95 %", percent(s.coverage_95)),
        ],
        Score::Classes(s) => vec![
            ("accuracy", format!("{:.4}", s.accuracy)),
            ("error", format!("{:.4}", s.error)),
            ("log loss", format!("{:.4}", s.log_loss)),
            ("Brier", format!("{:.4}", s.brier)),
            ("AUC", maybe(s.auc, |v| format!("{v:.4}"))),
            ("ECE", format!("{:.4}", s.ece)),
        ],
        Score::Counts(s) => {
            let mut all = vec![("deviance", four(s.deviance))];
            all.extend(density_cells(&s.general));
            all
        }
        Score::Density(s) => density_cells(s),
    }
}

fn density_cells(s: &DensityScores) -> Vec<(&'static str, String)> {
    let four = |value: f64| number(value, 4);
    let mut all = vec![
        ("RMSE", maybe(s.rmse, four)),
        ("MAE", maybe(s.mae, four)),
        ("NLPD", maybe(s.nlpd, four)),
    ];
    let names = ["in 50 %", "in 90 %", "in 95 %"];
    all.extend(names.into_iter().zip(&s.coverage).map(|(name, c)| (name, percent(c.share))));
    all
}

/// Returns a line per set of rows and target.
pub fn table(sets: &[(&str, &AllScores)]) -> String {
    let mut header = vec![("scores", Align::Left), ("rows", Align::Right)];
    if let Some((_, first)) = sets.first() {
        header.extend(cells(&first.overall).into_iter().map(|(name, _)| (name, Align::Right)));
    }
    let mut table = Table::new(&header);
    let mut add = |label: String, score: &Score| {
        let mut row = vec![label, score.rows().to_string()];
        row.extend(cells(score).into_iter().map(|(_, cell)| cell));
        table.row(row);
    };
    for (label, scores) in sets {
        add((*label).to_owned(), &scores.overall);
        if scores.targets.len() > 1 {
            scores.targets.iter().for_each(|(name, s)| add(format!("  {name}"), s));
        }
    }
    table.render(2)
}

/// Returns how often rows of each class were predicted as which; nothing for very many classes.
pub fn confusion(labels: &[String], scores: &ClassScores) -> String {
    if labels.len() > MOST_CLASSES {
        return String::new();
    }
    let mut header = vec![("true \\ predicted", Align::Left)];
    header.extend(labels.iter().map(|label| (label.as_str(), Align::Right)));
    let mut table = Table::new(&header);
    for (label, row) in labels.iter().zip(&scores.confusion) {
        let mut cells = vec![label.clone()];
        cells.extend(row.iter().map(f64::to_string));
        table.row(cells);
    }
    format!("\n{}", table.render(2))
}

/// Returns scores for machines.
pub fn json(scores: &AllScores) -> serde_json::Result<Value> {
    let mut targets = serde_json::Map::new();
    for (name, s) in &scores.targets {
        targets.insert(name.clone(), serde_json::to_value(s)?);
    }
    Ok(json!({ "overall": scores.overall, "targets": targets }))
}

/// Scores by name.
pub type Named = Vec<(&'static str, f64)>;

/// Returns the scores that are compared, the one that decides first: smaller is better.
pub fn compared(score: &Score) -> Named {
    let known = |pairs: Vec<(&'static str, Option<f64>)>| {
        pairs.into_iter().map(|(name, value)| (name, value.unwrap_or(f64::NAN))).collect()
    };
    match score {
        Score::Gaussian(s) => vec![
            ("NLPD", s.nlpd),
            ("RMSE", s.rmse),
            ("MAE", s.mae),
            ("CRPS", s.crps),
            ("in 95 %", 100.0 * s.coverage_95),
        ],
        Score::Classes(s) => known(vec![
            ("log loss", Some(s.log_loss)),
            ("error", Some(s.error)),
            ("Brier", Some(s.brier)),
            ("AUC", s.auc),
            ("ECE", Some(s.ece)),
        ]),
        Score::Counts(s) => known(vec![
            ("NLPD", s.general.nlpd),
            ("deviance", Some(s.deviance)),
            ("RMSE", s.general.rmse),
            ("in 95 %", s.general.coverage.last().map(|c| 100.0 * c.share)),
        ]),
        Score::Density(s) => known(vec![
            ("NLPD", s.nlpd),
            ("RMSE", s.rmse),
            ("MAE", s.mae),
            ("in 95 %", s.coverage.last().map(|c| 100.0 * c.share)),
        ]),
    }
}

//! What scores of a model come to, in the sentences that a report begins with.

use crate::format::number;
use crate::kind::labels;
use crate::score::{AllScores, Score};
use sparsegp::fit::Fitted;
use sparsegp::metrics::classes::ClassScores;

/// Targets that have their own sentence.
const MOST: usize = 4;
/// Level of the intervals that are spoken of.
const LEVEL: f64 = 0.95;
/// What the share of targets within them may be off by, beside three standard errors of chance.
const OFF: f64 = 0.02;

/// Returns a sentence for every target, about the rows that `rows` names, such as "rows that were held out".
pub fn sentences(fitted: &Fitted, scores: &AllScores, rows: &str) -> Vec<String> {
    let one = |name: &str, score: &Score| {
        let count = score.rows();
        match score {
            Score::Gaussian(s) => {
                let explained = s.r2.map(|r2| (100.0 * r2).round());
                let part = match explained {
                    Some(part) if part > 0.0 => format!(", and explain {part} % of the variance"),
                    Some(_) => ", no better than their mean".into(),
                    None => String::new(),
                };
                let mae = number(s.mae, 3);
                format!(
                    "Predictions of {name} are off by {mae} on average{part}, on {count} {rows}. {}",
                    held(s.coverage_95, count)
                )
            }
            Score::Counts(s) => density(name, rows, count, s.general.mae, &s.general.coverage),
            Score::Density(s) => density(name, rows, count, s.mae, &s.coverage),
            Score::Classes(s) => classes(name, rows, s, &labels(fitted)),
        }
    };
    if scores.targets.len() < 2 {
        let name = fitted.target_names.first().map_or("the target", String::as_str);
        return vec![one(name, &scores.overall)];
    }
    scores.targets.iter().take(MOST).map(|(name, score)| one(name, score)).collect()
}

fn density(
    name: &str,
    rows: &str,
    count: u64,
    mae: Option<f64>,
    coverage: &[sparsegp::metrics::density::Coverage],
) -> String {
    let off = match mae {
        Some(mae) => format!("are off by {} on average", number(mae, 3)),
        None => "have no mean".into(),
    };
    let share = coverage.iter().find(|own| own.level == LEVEL).map(|own| held(own.share, count));
    // leave-one-out knows no intervals of what is not Gaussian
    let share = share.map_or(String::new(), |share| format!(" {share}"));
    format!("Predictions of {name} {off}, on {count} {rows}.{share}")
}

/// Says what share of the targets lies within the intervals, and whether these are too narrow or too wide.
fn held(share: f64, rows: u64) -> String {
    let chance = (LEVEL * (1.0 - LEVEL) / rows.max(1) as f64).sqrt();
    let bar = OFF.max(3.0 * chance);
    let verdict = match share - LEVEL {
        off if off < -bar => ": they are too narrow",
        off if off > bar => ": they are wider than they need to be",
        _ => "",
    };
    format!("Intervals of 95 % hold {:.1} % of them{verdict}.", 100.0 * share)
}

fn classes(name: &str, rows: &str, s: &ClassScores, labels: &[String]) -> String {
    let sizes: Vec<f64> = s.confusion.iter().map(|row| row.iter().sum()).collect();
    let largest = (0..sizes.len()).max_by(|a, b| sizes[*a].total_cmp(&sizes[*b]));
    let always = largest.map_or(String::new(), |class| {
        let share = 100.0 * sizes[class] / s.weight;
        let own = labels.get(class).map_or("the most frequent one", String::as_str);
        format!("; always saying `{own}` would be right for {share:.1} %")
    });
    format!(
        "The most probable class of {name} is the true one for {:.1} % of {} {rows}{always}. Probabilities are off by {:.1} points on \
         average.",
        100.0 * s.accuracy,
        s.rows,
        100.0 * s.ece
    )
}

#[cfg(test)]
mod tests {
    use super::held;

    #[test]
    fn intervals_are_judged_by_what_chance_explains() {
        assert_eq!(held(0.962, 300), "Intervals of 95 % hold 96.2 % of them.");
        assert!(held(0.9, 20).ends_with("90.0 % of them."));
        assert!(held(0.9, 5000).ends_with("too narrow."));
        assert!(held(0.99, 5000).ends_with("wider than they need to be."));
    }
}

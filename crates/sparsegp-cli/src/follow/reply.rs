//! What is said at the end of a stream.

use super::Following;
use crate::context::Reply;
use crate::fail::{Fail, Result};
use crate::format::{count, number, seconds};
use crate::{scores, update};
use std::time::Duration;

/// Returns the reply of a run that has passed over so many rows, in the time it took.
pub fn reply(own: &Following<'_>, skipped: usize, spent: Duration) -> Result<Reply> {
    let (args, spent) = (own.args, spent.as_secs_f64());
    let points = own.fitted.posterior.points().nrows();
    let scores = match own.learnt {
        0 => None,
        _ => Some(own.running.all(&own.fitted, own.dropped)?),
    };
    let mut text = match &scores {
        Some(scores) => scores::table(&[("before learning", scores)]),
        None => "no new rows\n".to_owned(),
    };
    let left_out = match own.dropped {
        0 => String::new(),
        dropped => format!(", {} with missing numbers left out", count(dropped, "row")),
    };
    text += &format!(
        "\nrows       {} in {}, {} ({} in all){left_out}\n{}",
        own.learnt,
        if own.batches == 1 { "1 batch".into() } else { format!("{} batches", own.batches) },
        seconds(spent),
        own.fitted.rows,
        update::lines(&own.fitted, own.added, own.bound),
    );
    for change in &own.changes {
        text += &format!(
            "change     from row {} on, NLPD {} after {}\n",
            change.first_row,
            number(change.nlpd_since, 4),
            number(change.nlpd_before, 4)
        );
    }
    if let Some(path) = args.predictions.as_ref().filter(|path| path.exists()) {
        text += &format!("\npredictions written to {}", path.display());
    }
    text += &format!("\nmodel written to {}\n", args.output.display());
    let before = scores.as_ref().map(scores::json).transpose();
    let json = serde_json::json!({
        "command": "follow",
        "model": args.model,
        "data": args.data,
        "rows": own.learnt,
        "rows_in_all": own.fitted.rows,
        "skipped": skipped,
        "dropped": own.dropped,
        "late": own.late,
        "batches": own.batches,
        "seconds": spent,
        "points": points,
        "added_points": own.added,
        "uncovered": own.uncovered,
        "left": own.fitted.posterior.past().map_or(0, |past| past.rows),
        "bound": own.bound,
        "before": before.map_err(|e| Fail::Work(e.to_string()))?,
        "changes": own.changes,
        "warnings": own.said,
        "files": { "model": args.output, "predictions": args.predictions },
    });
    Ok(Reply { text, json, is_result: false })
}

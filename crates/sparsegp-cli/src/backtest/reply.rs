//! What a backtest says: a table of scores by part of the horizon, with those of simple forecasts.

use super::baselines::{Errors, Simple};
use super::{Backtest, known};
use crate::context::Reply;
use crate::fail::Result;
use crate::format::{Align, Table, count, number};
use serde_json::{Map, Value, json};

/// Returns a share in percent, or another score.
fn cell(name: &str, value: f64) -> String {
    match name.starts_with("in ") {
        true if value.is_finite() => format!("{value:.1}"),
        _ => number(value, 4),
    }
}

fn of_simple(name: &str, errors: &Errors) -> Option<f64> {
    match name {
        "RMSE" => Some(errors.rmse()),
        "MAE" => Some(errors.mae()),
        _ => None,
    }
}

/// Returns how much better the model is than the best simple forecast.
fn sentence(model: f64, simple: &[Simple], all: usize) -> String {
    let best = simple.iter().min_by(|a, b| a.errors[all].rmse().total_cmp(&b.errors[all].rmse()));
    let Some(best) = best else { return String::new() };
    let other = best.errors[all].rmse();
    let share = 100.0 * (1.0 - model / other);
    match share {
        share if !share.is_finite() => String::new(),
        share if share >= 0.0 => {
            format!(
                "\nThe model's RMSE is {share:.0} % below that of the best simple forecast, {}.\n",
                best.name
            )
        }
        share => format!(
            "\nThe model's RMSE is {:.0} % above that of the simple forecast {}: it adds nothing to it here.\n",
            -share, best.name
        ),
    }
}

/// Returns scores by part of the horizon: the table, the same for machines, and the model's RMSE on
/// all rows.
fn scored(own: &Backtest<'_>, simple: &[Simple]) -> Result<(Table, Vec<Value>, f64)> {
    let parts = own.cuts.parts.len();
    let mut blocks = Vec::new();
    for (i, scored) in own.scored.iter().enumerate() {
        blocks.extend(known(scored)?.map(|(rows, scores)| (i, rows, scores)));
    }
    let names: Vec<&str> =
        blocks.first().map_or(Vec::new(), |(.., all)| all.iter().map(|own| own.0).collect());
    let mut header =
        vec![("ahead", Align::Left), ("rows", Align::Right), ("forecast", Align::Left)];
    header.extend(names.iter().map(|name| (*name, Align::Right)));
    let mut table = Table::new(&header);
    let (mut machines, mut rmse) = (Vec::new(), f64::NAN);
    for (i, rows, scores) in &blocks {
        let ahead = own.cuts.parts.get(*i).map_or("all".into(), |part| format!("to {part}"));
        let mut cells = vec![ahead.clone(), rows.to_string(), "model".into()];
        cells.extend(scores.iter().map(|(name, value)| cell(name, *value)));
        table.row(cells);
        if *i == parts {
            rmse = scores.iter().find(|(own, _)| *own == "RMSE").map_or(f64::NAN, |own| own.1);
        }
        let mut others = Map::new();
        for other in simple {
            let errors = &other.errors[*i];
            let mut cells = vec![String::new(), String::new(), other.name.clone()];
            let of = |name: &&str| of_simple(name, errors).map_or("–".into(), |v| number(v, 4));
            cells.extend(names.iter().map(of));
            table.row(cells);
            let both = json!({ "RMSE": errors.rmse(), "MAE": errors.mae() });
            others.insert(other.name.clone(), both);
        }
        let model: Map<String, Value> =
            scores.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        machines.push(json!({ "ahead": ahead, "rows": rows, "model": model, "simple": others }));
    }
    Ok((table, machines, rmse))
}

/// Returns the table and the document.
pub fn reply(own: &Backtest<'_>, simple: &[Simple]) -> Result<Reply> {
    let (table, machines, rmse) = scored(own, simple)?;
    let fit = &own.args.fit.0;
    let (first, last) = (&own.cuts.cuts[0], &own.cuts.cuts[own.cuts.cuts.len() - 1]);
    let mut text = format!(
        "{} from {} to {}, horizon {}; {} predicted after learning from {} to {}\n\n",
        count(own.runs.len(), "cut-off"),
        own.name(first),
        own.name(last),
        own.args.horizon,
        count(own.runs.iter().map(|run| run.rows.1).sum(), "row"),
        own.runs[0].rows.0,
        own.runs[own.runs.len() - 1].rows.0,
    );
    text += &table.render(2);
    text += &sentence(rmse, simple, own.cuts.parts.len());
    let files: Map<String, Value> = [("predictions", &fit.output), ("plot", &fit.plot)]
        .into_iter()
        .filter_map(|(name, path)| Some((name.to_owned(), json!(path.as_ref()?))))
        .collect();
    text += "\n";
    for (name, path) in &files {
        text += &format!("{name} written to {}\n", path.as_str().unwrap_or_default());
    }
    let runs: Vec<Value> = own
        .cuts
        .cuts
        .iter()
        .zip(&own.runs)
        .map(|(cut, run)| {
            json!({
                "time": own.name(cut), "rows": run.rows.0, "predicted": run.rows.1, "kernel": run.kernel,
                "seconds": run.seconds,
            })
        })
        .collect();
    let json = json!({
        "command": "backtest", "data": fit.data, "time": own.rows.name, "horizon": own.args.horizon,
        "every": own.args.every, "cutoffs": runs, "scores": machines, "files": files,
    });
    Ok(Reply { text, json, is_result: true })
}

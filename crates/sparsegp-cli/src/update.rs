//! `sparsegp update`: new rows for a saved model, without the old ones.

use crate::context::{Context, Reply};
use crate::data::{self, MissingChoice, Split};
use crate::fail::{Fail, Result};
use crate::follow::known::{self, Recognised};
use crate::format::{count, number};
use crate::outputs::refuse_overwriting;
use crate::table_args::TableArgs;
use crate::{kind, saving, score, scores, values};
use clap::Args;
use serde::{Deserialize, Serialize};
use sparsegp::Error;
use sparsegp::atomic;
use sparsegp::data::{Mask, Selected, Selection};
use sparsegp::fit::{Division, Fitted, UpdateOptions};
use sparsegp::io;
use std::path::PathBuf;
use std::sync::Arc;

const AFTER: &str = "\
Examples:
  sparsegp update model.safetensors monday.csv -o model.safetensors
  sparsegp update model.safetensors log.csv -o model.safetensors    # a table that grows: its new rows
  sparsegp update model.safetensors new.csv --forget 0.95 -o model.safetensors

Old rows are not needed: what they said is kept by the model's inducing points, and the new rows are added to it
(streaming sparse GPs; Bui, Nguyen & Turner 2017). With Gaussian noise and points that stay, that is the
posterior of all rows together. Scales stay as they were, and kernel and noise too without --train: fit again when they no longer
suit.
Rows that the model has seen are noticed: a table that was used before is refused, and of one that has grown only the
new rows are taken. New rows far from all inducing points become such points.
Models of method markov have no inducing points: they keep their latest rows and the state after those before, from which all
later times are predicted as by all rows. Earlier times are refused then, and so are late rows that lie there.";

/// How new rows are learnt.
#[derive(Clone, Copy, Debug, Args)]
pub struct LearnArgs {
    /// New rows become inducing points where their prior correlation with all others is below this; 0 for none
    #[arg(long, value_name = "RHO", default_value_t = 0.8)]
    pub correlation: f64,
    /// Most inducing points; by default the model's number or 512, whichever is more
    #[arg(long, value_name = "M")]
    pub most_points: Option<usize>,
    /// What is left of what old rows said after a table, or after --batch rows of a stream: 1 forgets nothing, 0.95 a twentieth
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub forget: f64,
    /// Train kernel and noise on new rows too, by at most so many iterations for each batch, with what old rows said held
    #[arg(long, value_name = "ITERATIONS", default_value_t = 0)]
    pub train: usize,
    /// With --train: move the inducing points too
    #[arg(long, requires = "train")]
    pub train_points: bool,
    /// Latest rows that a model of method markov keeps, or all; what the others say of later times stays [default: all, and 10000
    /// with `follow` unless it forgets]
    #[arg(long, value_name = "ROWS", value_parser = values::rows_or_all)]
    pub keep_rows: Option<usize>,
}

impl LearnArgs {
    /// Returns the library's options.
    ///
    /// # Errors
    /// For one that is out of its range.
    pub fn options(&self) -> Result<UpdateOptions> {
        let options = UpdateOptions {
            correlation: self.correlation,
            most_points: self.most_points,
            forget: self.forget,
            train: self.train,
            train_points: self.train_points,
            keep_rows: self.keep_rows,
            ..UpdateOptions::default()
        };
        options.check().map_err(Self::fail)?;
        Ok(options)
    }

    /// Returns the failure of an update: of the command line where an option is out of range.
    pub fn fail(error: Error) -> Fail {
        match error {
            Error::InvalidParameter { .. } => Fail::of_usage(error),
            other => other.into(),
        }
    }
}

/// Returns the columns of a table that further rows of a model need.
pub fn selection_for(fitted: &Fitted) -> Selection {
    let mut selection = kind::with_targets(fitted);
    selection.weight.clone_from(&fitted.weight_name);
    selection.extra.clone_from(&fitted.extra_name);
    if fitted.classes.is_some() { selection.categorical() } else { selection }
}

/// Options of `sparsegp update`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct UpdateArgs {
    /// Model file
    pub model: PathBuf,
    /// Table with new rows, or the table of the fit with rows added at its end
    pub data: PathBuf,
    /// Where the updated model goes; may be the model file itself
    #[arg(long, short, value_name = "MODEL.safetensors")]
    pub output: PathBuf,
    #[command(flatten)]
    pub learn: LearnArgs,
    /// Take rows that the model has seen all the same: they then count twice
    #[arg(long)]
    pub again: bool,
    /// What to do with rows that lack a number
    #[arg(long, value_enum, default_value_t)]
    pub missing: MissingChoice,
    /// How the table is written.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Name of the annotation that lists updates.
const UPDATES: &str = "updates";

/// A table that was taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Taken {
    rows: usize,
    fingerprint: u64,
}

fn taken(fitted: &Fitted) -> Vec<Taken> {
    let text = fitted.annotations.get(UPDATES);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The rows of a table that are new, and what the model should know of the table afterwards.
struct New {
    rows: Selected,
    note: Option<String>,
    division: Option<Division>,
    taken: Option<Taken>,
}

fn new_rows(
    args: &UpdateArgs,
    fitted: &Fitted,
    all: &Selected,
    stream: Option<&Recognised>,
) -> Result<New> {
    let data = args.data.display();
    let total = all.count_rows()?;
    let own = Taken { rows: total, fingerprint: Division::fingerprint(&[all], total)? };
    let plain = |division| New { rows: all.clone(), note: None, division, taken: Some(own) };
    if args.again {
        return Ok(plain(fitted.division.clone()));
    }
    if taken(fitted).contains(&own) {
        return Err(Fail::usage(format!(
            "{data}: the model was updated with these {} before, and they would count twice; --again to do that",
            count(total, "row")
        )));
    }
    let known = match &fitted.division {
        Some(division) => division.recognises(all)?.map(|_| division),
        None => None,
    };
    let of_fit = known.map_or(0, |division| division.rows);
    let followed = stream.and_then(|stream| stream.learnt.as_ref()).map_or(0, |own| own.rows);
    // as far as it was learnt, in whatever way
    let seen = of_fit.max(followed).min(total);
    if seen == 0 {
        return Ok(plain(fitted.division.clone()));
    }
    let added = total - seen;
    let what = match followed > of_fit {
        true => "that the model has followed",
        false => "that the model was fitted on",
    };
    if added == 0 {
        return Err(Fail::usage(format!(
            "{data}: this is the table {what}, and has no further rows; --again to let them count twice"
        )));
    }
    let mask = Mask::new("the rows that were added", (0..total).map(|row| row >= seen));
    let grown = known.map(|division| {
        let longer = |mask: &Option<Mask>| {
            let mask = mask.as_ref()?;
            let kept = |row: usize| mask.get(row) == Some(true);
            Some(Mask::new("rows of the fit", (0..total).map(kept)))
        };
        Division {
            rows: total,
            held_out: longer(&division.held_out),
            aside: longer(&division.aside),
            fingerprint: own.fingerprint,
        }
    });
    Ok(New {
        rows: all.clone().rows_where(Arc::new(mask), true),
        note: Some(format!(
            "{data} is the table {what} with {} added: those are taken",
            count(added, "row")
        )),
        division: grown.or_else(|| fitted.division.clone()),
        taken: None,
    })
}

/// Returns the lines of a reply: inducing points, new ones among them, or the rows that are kept
/// instead, and the evidence in nats.
pub fn lines(updated: &Fitted, added: usize, bound: f64) -> String {
    let known = match updated.posterior.kept_rows() {
        Some(rows) => {
            let left = updated.posterior.past().map(|past| {
                let from = updated.kept_from().unwrap_or_default();
                format!("; {} up to {from} have left", count(past.rows, "row"))
            });
            format!("kept       {}{}", count(rows.x.nrows(), "row"), left.unwrap_or_default())
        }
        None => {
            let points = updated.posterior.points().nrows();
            format!("points     {}, {added} of them new", count(points, "inducing point"))
        }
    };
    format!("{known}\nevidence   {} nats: about log p(new rows | old rows)\n", number(bound, 6))
}

/// Runs the command.
pub fn run(args: &UpdateArgs, context: &Context) -> Result<Reply> {
    refuse_overwriting([&args.output], [&args.data])?;
    let options = args.learn.options()?;
    atomic::check_writable(&args.output)?;
    let fitted = io::load(&args.model)?;
    let table = args.table.open_for(&args.data, &fitted)?;
    let selection = selection_for(&fitted);
    let mut opened = data::open(table, &selection, args.missing.into(), &Split::None)?;
    opened.know(fitted.classes.as_ref());
    let before = known::all(&fitted);
    let stream = known::recognise(&args.data, &before, &|| context.interrupted())?;
    let new = new_rows(args, &fitted, &opened.train, stream.as_ref())?;
    if let Some(note) = &new.note {
        context.note(note);
    }
    opened.train = new.rows;
    opened.check(&*fitted.model.likelihood)?;
    let (dataset, dropped) = opened.on_scale_of(&fitted)?;
    if dropped > 0 {
        context.warn(&[format!("{} with missing numbers left out", count(dropped, "row"))]);
    }
    // prequential: before anything is learnt from them
    let scored = score::score(&fitted, &opened.train, context)?;
    let mut watch = |done: usize, of: usize| {
        if done > 0 {
            context.note(&format!("{done} of {of} rows"));
        }
        if context.interrupted() { Err(sparsegp::Error::Interrupted) } else { Ok(()) }
    };
    let (mut updated, report) =
        sparsegp::fit::update(&fitted, &dataset, &options, &mut watch).map_err(LearnArgs::fail)?;
    context.warn(&updated.warnings);
    updated.division = new.division;
    let mut all = taken(&fitted);
    all.extend(new.taken);
    let text = serde_json::to_string(&all).unwrap_or_default();
    updated.annotations.insert(UPDATES.into(), text);
    if let Some(stream) = &stream {
        known::note(&mut updated, &before, stream.learnt.as_ref(), &stream.whole);
    }
    saving::save(&updated, &args.output)?;
    let text = format!(
        "{}\nnew rows   {} ({} in all); scores are from before they were learnt\n\
         {}\n\
         model written to {}\n",
        scores::table(&[("new rows", &scored)]),
        report.rows,
        updated.rows,
        lines(&updated, report.added, report.bound),
        args.output.display(),
    );
    let json = serde_json::json!({
        "command": "update",
        "model": args.model,
        "data": args.data,
        "rows": report.rows,
        "rows_in_all": updated.rows,
        "dropped": dropped,
        "points": report.points,
        "added_points": report.added,
        "uncovered": report.uncovered,
        "left": report.left,
        "bound": report.bound,
        "before": scores::json(&scored).map_err(|e| Fail::Work(e.to_string()))?,
        "warnings": updated.warnings,
        "files": { "model": args.output },
    });
    Ok(Reply { text, json, is_result: false })
}

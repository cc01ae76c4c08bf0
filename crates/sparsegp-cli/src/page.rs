//! `sparsegp report`: a model on one page of HTML that needs nothing else, to send to a colleague.

use crate::context::{Context, Reply};
use crate::data::{MissingChoice, Opened};
use crate::facts;
use crate::fail::{Fail, Result};
use crate::format::{count, moment};
use crate::headline;
use crate::kind::Kind;
use crate::outputs::{has_extension, refuse_overwriting};
use crate::plot::{self, What};
use crate::remembered::{self, Rows};
use crate::score::AllScores;
use crate::table_args::TableArgs;
use crate::{inducing, kind, report, score, scores};
use clap::Args;
use sparsegp::fit::quality::QualityOptions;
use sparsegp::fit::{Fitted, Made};
use sparsegp::{atomic, io};
use std::fmt::Write;
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  sparsegp report model.safetensors data.csv --output report.html
  sparsegp report model.safetensors data.csv --test-mask masks.csv:split0 --output report.html";

/// Options of `sparsegp report`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct ReportArgs {
    /// Model file
    pub model: PathBuf,
    /// Table with the model's input and target columns
    pub data: PathBuf,
    /// Where the page goes
    #[arg(long, short, value_name = "FILE.html")]
    pub output: PathBuf,
    /// Rows that this column of this file marks are judged as test rows; without it those that the fit held out, or each row
    /// by the others where it held none out
    #[arg(long, value_name = "FILE:COLUMN")]
    pub test_mask: Option<String>,
    /// What to do with rows that lack a number
    #[arg(long, value_enum, default_value_t)]
    pub missing: MissingChoice,
    /// How the table is written.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Rows up to which each is predicted by the others.
const LEFT_OUT: u64 = 20_000;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#2d2d32;--paper:#fff;--box:#f5f6f8;--note:#8a4b00;--pale:#777}
@media (prefers-color-scheme:dark){:root{--ink:#e4e4e9;--paper:#17181c;--box:#24262c;--note:#f0b060;--pale:#9a9aa2}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:940px;margin:2em auto;padding:0 1em}
h1{font-size:1.6em}h2{font-size:1.2em;margin-top:2em}p.lead{font-size:1.15em}
table{border-collapse:collapse}th{text-align:left;font-weight:600;vertical-align:top;padding:.15em 1.2em .15em 0;
white-space:nowrap}td{vertical-align:top;padding:.15em 0;overflow-wrap:anywhere}
pre{background:var(--box);padding:1em;overflow-x:auto;font-size:13px;line-height:1.45}
svg{max-width:100%;height:auto;background:#fff}p.note{color:var(--note)}footer{color:var(--pale);margin-top:3em;font-size:13px}
@media (max-width:600px){body{margin:1em auto}th{white-space:normal}pre{font-size:11px}}
@media print{:root{--ink:#000;--paper:#fff;--box:#fff;--pale:#555}body{max-width:none;margin:0}svg,pre{break-inside:avoid}
h2{break-after:avoid}}";

/// Returns the text as HTML has it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() && c != '\n' => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// Returns the names and values as a table whose long lines wrap.
fn table_of(facts: &[(String, String)]) -> String {
    let row = |(name, value): &(String, String)| {
        format!("<tr><th>{}</th><td>{}</td></tr>\n", escaped(name), escaped(value))
    };
    format!("<table>\n{}</table>", facts.iter().map(row).collect::<String>())
}

/// Returns what the scores of a kind of model mean.
fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::Classes => {
            "Accuracy is the share of the rows whose most probable class is the true one, and error the rest. Log loss (mean \
             negative log probability of the true class) and Brier score (squared distance of the probabilities from the \
             truth, from 0 to 2) are better the smaller they are, AUC (area under the ROC curve; of more than two classes the \
             mean of one against the rest) the nearer it is to 1. ECE is how far the probabilities are from the shares that \
             come true, in 15 bins: near 0 they can be taken at their word."
        }
        Kind::Counts => {
            "Deviance (mean Poisson deviance), RMSE, MAE and NLPD (mean negative log predictive probability) are better the \
             smaller they are; the share of targets within the intervals should be near their levels, or above them."
        }
        Kind::Gaussian | Kind::Other => {
            "RMSE, MAE, NLPD (mean negative log predictive density) and CRPS are better the smaller they are, R² the nearer it \
             is to 1; MSLL below 0 is better than knowing only mean and variance; the share of targets within the 95 % \
             intervals should be near 95."
        }
    }
}

/// What the page says, besides the model itself.
struct Contents<'a> {
    facts: &'a [(String, String)],
    judged: &'a Judged,
    pictures: &'a [(What, String)],
    inducing: Option<&'a (String, String)>,
}

/// Returns a picture (SVG) with its title for those who do not see it.
fn with_title(svg: &str, title: &str) -> String {
    svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{}\" ", escaped(title)), 1)
}

/// Returns the page: what the model is worth in sentences, scores, pictures, then what it is.
fn page(fitted: &Fitted, contents: &Contents<'_>) -> String {
    let targets = escaped(&fitted.target_names.join(", "));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>{targets}: a Gaussian \
         process</title>\n<style>{STYLE}</style></head>\n<body>\n<h1>{targets}: a Gaussian process</h1>\n"
    );
    let judged = contents.judged;
    for lead in &judged.lead {
        // writing to a string cannot fail
        let _ = writeln!(html, "<p class=\"lead\">{}</p>", escaped(lead));
    }
    let mut part = |title: &str, body: String| {
        let _ = write!(html, "<h2>{title}</h2>\n{body}\n");
    };
    let pre = |text: &str| format!("<pre>{}</pre>", escaped(text.trim_end()));
    if !fitted.warnings.is_empty() {
        let lines = fitted.warnings.iter();
        part("Warnings", lines.map(|w| format!("<p class=\"note\">{}</p>", escaped(w))).collect());
    }
    for (what, svg) in contents.pictures {
        part(what.title(), with_title(svg, what.title()));
    }
    let scores = pre(&judged.table);
    part(
        "How good it is",
        format!("<p>{}</p>{scores}<p>{}</p>", escaped(&judged.sentence), meaning(Kind::of(fitted))),
    );
    part("The model", table_of(contents.facts));
    if let Some((text, svg)) = contents.inducing {
        part("Inducing points", pre(text) + &with_title(svg, "Inducing points"));
    }
    part("Parameters", pre(&report::parameters_table(fitted, false)));
    let version = env!("CARGO_PKG_VERSION");
    let _ = write!(html, "<footer>Made by sparsegp {version}.</footer>\n</body></html>\n");
    html
}

/// Returns all pictures that there are of a model.
fn pictures(
    fitted: &Fitted,
    opened: &Opened,
    judged: &AllScores,
    look: &plot::Look,
    context: &Context,
) -> Result<Vec<(What, String)>> {
    let mut pictures = Vec::new();
    for what in [
        What::Shares,
        What::Fit,
        What::Predictions,
        What::Calibration,
        What::Effects,
        What::Relevance,
        What::Terms,
        What::Training,
        What::Patches,
        What::Layers,
    ] {
        // what the first picture shows already is not shown again
        let inputs = fitted.measured_names().len();
        let function = inputs <= 2;
        let again = match what {
            What::Predictions => !function,
            What::Calibration => kind::Kind::of(fitted) == kind::Kind::Classes && inputs != 2,
            _ => false,
        };
        if again || what.cannot(fitted).is_some() {
            continue;
        }
        context.check_stop()?;
        let svg = match what.needs_rows() {
            true => plot::of_rows(what, fitted, opened, judged, look)?,
            false => plot::of_model(what, fitted, look)?,
        };
        pictures.push((what, svg));
    }
    Ok(pictures)
}

/// The scores of the rows of a table.
struct Judged {
    train: AllScores,
    test: Option<AllScores>,
    /// As text.
    table: String,
    /// Which rows the table of scores has.
    sentence: String,
    /// What they come to.
    lead: Vec<String>,
}

/// Scores a model on the rows of a table: those that were learnt from and held out, or each by the others.
fn judge(fitted: &Fitted, opened: &Opened, known: Rows, context: &Context) -> Result<Judged> {
    let train = score::score(fitted, &opened.train, context)?;
    let test = match &opened.test {
        Some(rows) => Some(score::score(fitted, rows, context)?),
        None => None,
    };
    // where nothing was held out, each row is predicted by the others
    let others = match (known, &fitted.weight_name) {
        (Rows::Learnt, None) if train.overall.rows() <= LEFT_OUT => {
            context.check_stop()?;
            score::left_out(fitted, &opened.train).ok()
        }
        _ => None,
    };
    let mut sets = Vec::new();
    sets.extend(test.as_ref().map(|test| (known.tested(), test)));
    sets.extend(others.as_ref().map(|others| ("each by the others", others)));
    let mut table = scores::table(&sets);
    // leave-one-out knows fewer scores of what is not Gaussian
    let apart = others.is_some() && Kind::of(fitted) != Kind::Gaussian;
    match apart {
        true => table += &format!("\n{}", scores::table(&[(known.others(), &train)])),
        false => {
            sets.push((known.others(), &train));
            table = scores::table(&sets);
        }
    }
    let sentence = match (known, &others) {
        (Rows::Learnt, Some(_)) => format!(
            "The fit held nothing out. In the line \"each by the others\" every row is predicted by all others \
             (leave-one-out, without refitting); the line \"{}\" has the rows that the model learnt from, which \
             flatters it.",
            known.others()
        ),
        (Rows::Learnt, None) => {
            format!("{} The scores flatter it: nothing was held out.", known.sentence())
        }
        _ => known.sentence(),
    };
    let lead = match (&test, &others, known) {
        (Some(test), ..) => {
            headline::sentences(fitted, test, "rows that the model has not learnt from")
        }
        (None, Some(others), _) => {
            headline::sentences(fitted, others, "rows, each predicted by the others")
        }
        (None, None, Rows::Unknown) => headline::sentences(fitted, &train, "rows"),
        _ => headline::sentences(
            fitted,
            &train,
            "rows that the model learnt from, which flatters it",
        ),
    };
    Ok(Judged { train, test, table, sentence, lead })
}

/// Returns how well inducing points stand for the rows, as text and picture, of a model that has
/// any.
fn inducing_part(
    fitted: &Fitted,
    opened: &Opened,
    look: &plot::Look,
    context: &Context,
) -> Result<Option<(String, String)>> {
    if inducing::cannot(fitted).is_some() {
        return Ok(None);
    }
    context.check_stop()?;
    let quality = inducing::judge(fitted, opened, None)?;
    let text = inducing::text(fitted, &quality, QualityOptions::default().fraction);
    Ok(Some((text, plot::explained(fitted, &quality, look)?)))
}

/// Runs the command.
pub fn run(args: &ReportArgs, context: &Context) -> Result<Reply> {
    let path = &args.output;
    refuse_overwriting([path], [&args.model, &args.data])?;
    if !has_extension(path, "html") {
        let path = path.display();
        return Err(Fail::usage(format!(
            "--output {path}: the page is HTML; end its name in .html"
        )));
    }
    atomic::check_writable(path)?;
    let fitted = io::load(&args.model)?;
    let table = args.table.open_for(&args.data, &fitted)?;
    let (selection, note) = kind::judged(&fitted, &table);
    context.warn(note.as_slice());
    let mask = args.test_mask.as_deref();
    let (opened, known) = remembered::open(table, &selection, args.missing.into(), &fitted, mask)?;
    let found = judge(&fitted, &opened, known, context)?;
    let (train, test) = (&found.train, &found.test);
    let judged = test.as_ref().unwrap_or(train);
    let look = plot::Look::default();
    let pictures = pictures(&fitted, &opened, judged, &look, context)?;
    let inducing = inducing_part(&fitted, &opened, &look, context)?;
    let mut facts = facts::facts(&fitted);
    facts.extend(report::origin(&fitted));
    facts.push(("model file".into(), args.model.display().to_string()));
    let rows = train.overall.rows() + test.as_ref().map_or(0, |test| test.overall.rows());
    let rows = count(usize::try_from(rows).unwrap_or(usize::MAX), "target");
    facts.push(("table".into(), format!("{} ({rows})", args.data.display())));
    if let Some(now) = Made::now().at {
        facts.push(("this page".into(), moment(now)));
    }
    let (facts, inducing) = (&facts, inducing.as_ref());
    let html = page(&fitted, &Contents { facts, judged: &found, pictures: &pictures, inducing });
    let mut titles: Vec<&str> = pictures.iter().map(|(what, _)| what.title()).collect();
    titles.extend(inducing.is_some().then_some(What::Inducing.title()));
    atomic::write_atomically(path, html.as_bytes())?;
    Ok(Reply {
        text: format!("report written to {}\n", path.display()),
        json: serde_json::json!({
            "command": "report",
            "model": args.model,
            "data": args.data,
            "rows": judged.overall.rows(),
            "summary": found.lead,
            "judged": found.sentence,
            "pictures": titles,
            "files": { "report": path },
        }),
        is_result: false,
    })
}

//! `sparsegp report`: a model on one page of HTML that needs nothing else, to send to a colleague.

use crate::context::{Context, Reply};
use crate::data::{self, MissingChoice, Split};
use crate::fail::{Fail, Result};
use crate::plot::{self, What};
use crate::table_args::TableArgs;
use crate::{inducing, kind, report, score, scores};
use clap::Args;
use sparsegp::fit::Fitted;
use sparsegp::inducing::QualityOptions;
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
    /// Rows that this column of this file marks are judged as test rows
    #[arg(long, value_name = "FILE:COLUMN")]
    pub test_mask: Option<String>,
    /// What to do with rows that lack a number
    #[arg(long, value_enum, default_value_t)]
    pub missing: MissingChoice,
    /// How the table is written.
    #[command(flatten)]
    pub table: TableArgs,
}

const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;color:#2d2d32;max-width:940px;margin:2em auto;padding:0 1em}
h1{font-size:1.6em}h2{font-size:1.2em;margin-top:2em}
pre{background:#f5f6f8;padding:1em;overflow-x:auto;font-size:13px;line-height:1.45}
svg{max-width:100%;height:auto}p.note{color:#8a4b00}footer{color:#777;margin-top:3em;font-size:13px}";

/// Text as HTML has it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// The page: summary, scores, pictures (SVG), parameters.
fn page(
    fitted: &Fitted,
    scores: &str,
    pictures: &[(What, String)],
    inducing: Option<&(String, String)>,
) -> String {
    let targets = escaped(&fitted.target_names.join(", "));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>{targets}: a Gaussian \
         process</title>\n<style>{STYLE}</style></head>\n<body>\n<h1>{targets}: a Gaussian process</h1>\n"
    );
    let mut part = |title: &str, body: String| {
        // writing to a string cannot fail
        let _ = write!(html, "<h2>{title}</h2>\n{body}\n");
    };
    let pre = |text: &str| format!("<pre>{}</pre>", escaped(text.trim_end()));
    part("The model", pre(&report::summary(fitted)));
    if !fitted.warnings.is_empty() {
        let lines = fitted.warnings.iter();
        part("Warnings", lines.map(|w| format!("<p class=\"note\">{}</p>", escaped(w))).collect());
    }
    part(
        "How good it is",
        pre(scores)
            + "<p>RMSE, MAE, NLPD (mean negative log predictive density) and CRPS are better the smaller they \
               are; the share of targets within the 95 % intervals should be near 95.</p>",
    );
    for (what, svg) in pictures {
        part(what.title(), svg.clone());
    }
    if let Some((text, svg)) = inducing {
        part("Inducing points", pre(text) + svg);
    }
    part("Parameters", pre(&report::parameters_table(fitted, false)));
    let version = env!("CARGO_PKG_VERSION");
    let _ = write!(html, "<footer>Made by sparsegp {version}.</footer>\n</body></html>\n");
    html
}

/// Runs the command.
pub fn run(args: &ReportArgs, context: &Context) -> Result<Reply> {
    let path = &args.output;
    if [&args.model, &args.data].contains(&path) {
        let path = path.display();
        return Err(Fail::usage(format!("{path} would be overwritten; choose another name")));
    }
    if !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("html")) {
        let path = path.display();
        return Err(Fail::usage(format!(
            "--output {path}: the page is HTML; end its name in .html"
        )));
    }
    atomic::check_writable(path)?;
    let fitted = io::load(&args.model)?;
    let table = args.table.open(&args.data)?;
    let (selection, note) = kind::judged(&fitted, &table);
    context.warn(note.as_slice());
    let split = args.test_mask.as_deref().map_or(Split::None, Split::Mask);
    let mut opened = data::open(table, &selection, args.missing.into(), &split)?;
    opened.know(fitted.classes.as_ref());
    let train = score::score(&fitted, &opened.train, context)?;
    let test = match &opened.test {
        Some(rows) => Some(score::score(&fitted, rows, context)?),
        None => None,
    };
    let name = if test.is_some() { "train" } else { "rows" };
    let mut sets = vec![(name, &train)];
    sets.extend(test.as_ref().map(|test| ("test", test)));
    let judged = test.as_ref().unwrap_or(&train);
    let mut pictures = Vec::new();
    for what in [What::Fit, What::Predictions, What::Calibration, What::Relevance, What::Training] {
        // what the first picture shows already is not shown again
        let function = fitted.input_names.len() <= 2;
        let again = match what {
            What::Predictions => !function,
            What::Calibration => {
                kind::Kind::of(&fitted) == kind::Kind::Classes && fitted.input_names.len() != 2
            }
            _ => false,
        };
        if again || what.cannot(&fitted).is_some() {
            continue;
        }
        context.go_on()?;
        let svg = match what.needs_rows() {
            true => plot::of_rows(what, &fitted, &opened, judged)?,
            false => plot::of_model(what, &fitted)?,
        };
        pictures.push((what, svg));
    }
    let inducing = match inducing::cannot(&fitted) {
        Some(_) => None,
        None => {
            context.go_on()?;
            let quality = inducing::judge(&fitted, &opened, None)?;
            let fraction = QualityOptions::default().fraction;
            let text = inducing::text(&fitted, &quality, fraction);
            Some((text, plot::explained(&fitted, &quality)?))
        }
    };
    let html = page(&fitted, &scores::table(&sets), &pictures, inducing.as_ref());
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
            "pictures": titles,
            "files": { "report": path },
        }),
        is_result: false,
    })
}

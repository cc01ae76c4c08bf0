//! What is asked for, and what is answered.

use super::http::{Answer, Request};
use super::rows::Columns;
use crate::fail::Fail;
use crate::predictions::{Cell, Form};
use serde_json::{Map, Value, json};
use sparsegp::fit::{Fitted, Of};

/// Quantiles unless others are asked for.
const QUANTILES: [f64; 2] = [0.025, 0.975];
/// Most quantiles of a request.
const MOST_QUANTILES: usize = 100;
/// Most numbers of the rows of a request and of its answer together: they are in memory, some of them several times.
const MOST_NUMBERS: usize = 1_000_000;
/// How this machine calls itself.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// A model that answers.
pub struct Service {
    fitted: Fitted,
    columns: Columns,
    /// Whether only this machine asks: then a page in a browser here, which asks by another name,
    /// does not.
    local: bool,
}

/// What a request for predictions says.
struct Asked {
    rows: Vec<Value>,
    quantiles: Vec<f64>,
    of: Of,
}

/// Returns the entries of a request for predictions.
fn asked(body: &[u8]) -> Result<Asked, String> {
    let form = "give {\"rows\": [{\"column\": value, …}, …]}";
    let parsed: Value = serde_json::from_slice(body)
        .map_err(|error| format!("the body is not JSON ({error}): {form}"))?;
    let Value::Object(mut entries) = parsed else {
        return Err(format!("the body is not an object: {form}"));
    };
    let rows = match entries.remove("rows") {
        Some(Value::Array(rows)) if !rows.is_empty() => rows,
        Some(Value::Array(_)) => return Err("`rows` is empty: give at least one row".into()),
        Some(_) => return Err(format!("`rows` is not a list: {form}")),
        None => return Err(format!("there are no `rows`: {form}")),
    };
    let quantiles = match entries.remove("quantiles") {
        None => QUANTILES.to_vec(),
        Some(given) => quantiles(&given)?,
    };
    let of = match entries.remove("latent") {
        None | Some(Value::Bool(false)) => Of::Observations,
        Some(Value::Bool(true)) => Of::Latent,
        Some(_) => return Err("`latent` is true or false".into()),
    };
    match entries.keys().next() {
        Some(other) => {
            Err(format!("there is no `{other}`: requests have `rows`, `quantiles` and `latent`"))
        }
        None => Ok(Asked { rows, quantiles, of }),
    }
}

fn quantiles(given: &Value) -> Result<Vec<f64>, String> {
    let wrong = || {
        format!(
            "`quantiles` are numbers between 0 and 1, at most {MOST_QUANTILES}, as in [0.05, 0.95]"
        )
    };
    let all = given.as_array().filter(|all| all.len() <= MOST_QUANTILES).ok_or_else(wrong)?;
    let one = |level: &Value| level.as_f64().filter(|level| *level > 0.0 && *level < 1.0);
    all.iter().map(one).collect::<Option<Vec<f64>>>().ok_or_else(wrong)
}

impl Service {
    pub fn new(fitted: Fitted, local: bool) -> Self {
        let columns = Columns::of(&fitted);
        Self { fitted, columns, local }
    }

    /// Returns the answer to a request.
    pub fn answer(&self, request: &Request) -> Answer {
        let (path, method) = (request.path.as_str(), request.method.as_str());
        if let Some(host) = request.host.as_ref().filter(|own| !LOCAL.contains(&own.as_str()))
            && self.local
        {
            let text = format!(
                "`{host}` is not this machine: ask localhost, or start the server with --host"
            );
            return Answer::refusal(403, text);
        }
        let allowed = match path {
            "/" | "/health" => "GET",
            "/predict" => "POST",
            _ => {
                let text =
                    format!("there is no `{path}`: there are GET /, GET /health and POST /predict");
                return Answer::refusal(404, text);
            }
        };
        if method != allowed {
            let text = format!("`{path}` is asked for by {allowed}, not by {method}");
            return Answer { allow: Some(allowed), ..Answer::refusal(405, text) };
        }
        match path {
            "/" => Answer::ok(self.described()),
            "/health" => Answer::ok(json!({ "status": "ok" })),
            _ => self.predicted(&request.body).map_or_else(|refusal| refusal, Answer::ok),
        }
    }

    /// Returns what the model is.
    pub fn described(&self) -> Value {
        let fitted = &self.fitted;
        let extra = self.columns.extra.as_ref().map(
            |(name, extra)| json!({ "name": name, "kind": extra.name, "default": extra.default }),
        );
        let columns = Form::new(fitted, Of::Observations, &[], &QUANTILES).names();
        json!({
            "program": "sparsegp",
            "version": env!("CARGO_PKG_VERSION"),
            "inputs": self.columns.described(),
            "extra": extra,
            "targets": fitted.target_names,
            "classes": fitted.classes.as_ref().map(|classes| classes.labels()),
            "likelihood": fitted.model.likelihood.name(),
            "method": fitted.model.method.name(),
            "kernels": fitted.model.kernels.iter().map(|kernel| kernel.to_json()).collect::<Vec<_>>(),
            "rows": fitted.rows,
            "columns": columns,
        })
    }

    /// Returns predictions for the rows of a request.
    fn predicted(&self, body: &[u8]) -> Result<Value, Answer> {
        let wrong = |reason: String| Answer::refusal(400, reason);
        let Asked { rows, quantiles, of } = asked(body).map_err(wrong)?;
        let form = Form::new(&self.fitted, of, &[], &quantiles);
        let names = form.names();
        let each = self.columns.width() + names.len();
        if rows.len().saturating_mul(each) > MOST_NUMBERS {
            let most = (MOST_NUMBERS / each.max(1)).max(1);
            return Err(Answer::refusal(
                413,
                format!(
                    "{} rows with {each} numbers each are too many at once: send at most {most} rows in a request",
                    rows.len()
                ),
            ));
        }
        let block = self.columns.block(&rows).map_err(wrong)?;
        let cells = form.cells("request", &self.fitted, &block).map_err(|fail| match fail {
            Fail::Work(text) => wrong(text),
            other => wrong(other.to_string()),
        })?;
        let value = |cell: &Cell| match cell {
            Cell::Text(text) => Value::from(text.as_str()),
            // JSON has no infinity: it is null
            Cell::Number(number) => json!(number),
        };
        let row = |cells: &Vec<Cell>| -> Map<String, Value> {
            names.iter().cloned().zip(cells.iter().map(value)).collect()
        };
        Ok(json!({ "predictions": cells.iter().map(row).collect::<Vec<_>>() }))
    }
}

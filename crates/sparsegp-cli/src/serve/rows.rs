//! Rows in JSON, read as cells of a table are.

use serde_json::{Map, Value};
use sparsegp::data::{Block, Encoding, InputColumn, ReadOptions};
use sparsegp::fit::Fitted;
use sparsegp::likelihoods::Extra;
use sparsegp::linalg::Mat;

/// The columns that rows have, as a model reads them.
pub struct Columns {
    inputs: Vec<InputColumn>,
    /// How texts are written: as in the table that the model learnt from.
    written: ReadOptions,
    /// Name of the column of further numbers, and what they are.
    pub extra: Option<(String, Extra)>,
    width: usize,
}

/// Returns what is not a cell.
fn no_cell(value: &Value) -> String {
    let what = if value.is_array() { "a list" } else { "an object" };
    format!("is {what}: give a number or a text")
}

fn missing() -> String {
    "is missing: give it a value".into()
}

/// Returns the numbers of a cell; its text, if it is one, is written so.
fn numbers(column: &InputColumn, value: &Value, written: &ReadOptions) -> Result<Vec<f64>, String> {
    match (value, &column.encoding) {
        (Value::Null, _) => column.numbers("").map_err(|_| missing()),
        (Value::Number(number), Encoding::Number) => {
            number.as_f64().map(|v| vec![v]).ok_or_else(|| format!("`{number}` is not a number"))
        }
        // as the cell is written in a table with a decimal point
        (Value::Number(number), _) => column.numbers(&number.to_string()),
        (Value::Bool(value), _) => column.numbers(&value.to_string()),
        (Value::String(text), _) => column.numbers_as(text, written),
        (other, _) => Err(no_cell(other)),
    }
}

/// Returns the inputs that the cells of a column become; of a place those of both its columns.
fn of_column(
    column: &InputColumn,
    cells: &Map<String, Value>,
    written: &ReadOptions,
) -> Result<Vec<f64>, String> {
    let cell = |name: &str, as_is: &InputColumn| {
        let value = cells.get(name).unwrap_or(&Value::Null);
        numbers(as_is, value, written).map_err(|reason| format!("column `{name}` {reason}"))
    };
    if let Encoding::Place { .. } = column.encoding {
        let of = |name: &str| cell(name, &InputColumn::number(name));
        let both = column.sources().into_iter().map(of).collect::<Result<Vec<_>, _>>()?;
        return column.of_numbers(&both.concat());
    }
    cell(&column.name, column)
}

impl Columns {
    pub fn of(fitted: &Fitted) -> Self {
        let inputs: Vec<InputColumn> =
            (0..fitted.columns.len()).map(|at| fitted.column_of_new(at)).collect();
        let extra = match (&fitted.extra_name, fitted.model.likelihood.extra()) {
            (Some(name), Some(extra)) => Some((name.clone(), extra)),
            _ => None,
        };
        let width = inputs.iter().map(|column| column.input_names().len()).sum();
        Self { inputs, written: fitted.read_options(), extra, width }
    }

    /// Returns the number of numbers in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the further number of a row, where the model was trained with such a column.
    fn extra_of(&self, row: &Map<String, Value>) -> Result<Option<f64>, String> {
        let Some((name, extra)) = &self.extra else { return Ok(None) };
        let wrong = |reason: String| format!("column `{name}` {reason}");
        let value = match row.get(name) {
            None | Some(Value::Null) => {
                return extra.default.map(Some).ok_or_else(|| wrong(missing()));
            }
            Some(Value::String(text)) => {
                InputColumn::number(name).numbers_as(text, &self.written).map(|own| own[0])
            }
            Some(Value::Number(number)) => {
                number.as_f64().ok_or_else(|| format!("`{number}` is not a number"))
            }
            Some(_) => Err("is not a number".into()),
        };
        let value = value.map_err(wrong)?;
        let least = if extra.name == "variance" { 0.0 } else { f64::MIN_POSITIVE };
        match value.is_finite() && value >= least {
            true => Ok(Some(value)),
            false if least == 0.0 => {
                Err(wrong(format!("is {value}: the {} of a row is not negative", extra.name)))
            }
            false => Err(wrong(format!("is {value}: the {} of a row is positive", extra.name))),
        }
    }

    /// Returns a block of rows.
    ///
    /// # Errors
    /// What is wrong with a cell, after the number of its row and the name of its column.
    pub fn block(&self, rows: &[Value]) -> Result<Block, String> {
        let mut x = Mat::zeros(rows.len(), self.width);
        let mut extra = Vec::new();
        for (i, row) in rows.iter().enumerate() {
            let at = |reason: String| format!("row {}: {reason}", i + 1);
            let Value::Object(cells) = row else {
                return Err(at("it is not an object: give {\"column\": value, …}".into()));
            };
            let mut q = 0;
            for column in &self.inputs {
                let own = of_column(column, cells, &self.written).map_err(at)?;
                for value in own {
                    if !value.is_finite() {
                        return Err(at(format!("column `{}` is not finite", column.name)));
                    }
                    x[(i, q)] = value;
                    q += 1;
                }
            }
            extra.extend(self.extra_of(cells).map_err(at)?);
        }
        let (start, numbers) = (0, (0..rows.len()).collect());
        let y = Mat::zeros(rows.len(), 0);
        Ok(Block { start, rows: numbers, x, y, weights: Vec::new(), extra, ids: Vec::new() })
    }

    /// Returns what the columns are, for machines.
    pub fn described(&self) -> Value {
        let one = |column: InputColumn| {
            let mut own = serde_json::json!({ "name": column.name });
            own["kind"] = match &column.encoding {
                Encoding::OneHot(_) | Encoding::Code(_) => "category",
                own if own.is_date() => "date",
                _ => "number",
            }
            .into();
            if let Some(all) = column.encoding.categories() {
                let shown = (0..all.labels().len()).map(|code| all.shown(code));
                own["levels"] = serde_json::json!(shown.collect::<Vec<_>>());
            }
            own
        };
        // latitude and longitude are two numbers
        let each = |column: &InputColumn| match column.encoding {
            Encoding::Place { .. } => {
                column.sources().into_iter().map(InputColumn::number).collect()
            }
            _ => vec![column.clone()],
        };
        Value::Array(self.inputs.iter().flat_map(each).map(one).collect())
    }
}

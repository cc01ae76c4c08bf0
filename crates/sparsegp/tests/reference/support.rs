//! Reading JSON and collecting comparisons.

use serde_json::{Map, Value};
use sparsegp::linalg::{Mat, MatRef};
use std::path::Path;

/// What a check returns: an error is a file that cannot be read as expected, or a refusal of the
/// library.
pub type Outcome<T = ()> = Result<T, String>;

/// Comparisons of one file.
pub struct Report {
    file: String,
    /// The case within the file.
    pub case: String,
    /// Relative tolerance, see [`Report::close`].
    pub tolerance: f64,
    /// How many arrays were compared.
    pub comparisons: usize,
    /// Largest difference in units of what was allowed.
    pub worst: f64,
    /// Whether the file could not be run, for a reason that is not a fault.
    pub skipped: bool,
    /// One line each.
    pub failures: Vec<String>,
}

impl Report {
    /// An empty report.
    pub fn new(file: &str, tolerance: f64) -> Self {
        Self {
            file: file.into(),
            case: String::new(),
            tolerance,
            comparisons: 0,
            worst: 0.0,
            skipped: false,
            failures: Vec::new(),
        }
    }

    /// The rule of comparison, per array: max|x − ref| ≤ tolerance·max(1, max|ref|).
    pub fn close(&mut self, field: &str, own: &[f64], reference: &[f64]) {
        self.close_to(field, own, reference, self.tolerance);
    }

    /// [`Report::close`] with its own tolerance.
    pub fn close_to(&mut self, field: &str, own: &[f64], reference: &[f64], tolerance: f64) {
        self.comparisons += 1;
        if own.len() != reference.len() {
            let lengths = format!("{} numbers, the file has {}", own.len(), reference.len());
            return self.fail(field, &lengths);
        }
        let size = reference.iter().fold(1.0_f64, |m, r| m.max(r.abs()));
        let (mut difference, mut at) = (0.0_f64, 0);
        for (i, (x, r)) in own.iter().zip(reference).enumerate() {
            let d = (x - r).abs();
            // a NaN is the worst difference of all
            if d.is_nan() || d > difference {
                (difference, at) = (if d.is_nan() { f64::INFINITY } else { d }, i);
            }
        }
        let allowed = tolerance * size;
        self.worst = self.worst.max(difference / allowed);
        if difference > allowed {
            let (x, r) = (own[at], reference[at]);
            self.fail(
                field,
                &format!(
                    "off by {difference:.3e}, allowed {allowed:.3e} ([{at}]: {x:e} for {r:e})"
                ),
            );
        }
    }

    /// Records a failure.
    pub fn fail(&mut self, field: &str, message: &str) {
        let case = if self.case.is_empty() { String::new() } else { format!(" [{}]", self.case) };
        self.failures.push(format!("{}{case} {field}: {message}", self.file));
    }

    /// Records a failure unless `holds`; counts as a comparison.
    pub fn require(&mut self, field: &str, holds: bool, message: &str) {
        self.comparisons += 1;
        if !holds {
            self.fail(field, message);
        }
    }

    /// Takes the tolerance from the file.
    pub fn read_tolerance(&mut self, json: &Value) -> Outcome {
        self.tolerance = number(get(json, "rtol")?)?;
        Ok(())
    }
}

/// An entry of an object.
pub fn get<'a>(json: &'a Value, key: &str) -> Outcome<&'a Value> {
    json.get(key).ok_or_else(|| format!("the entry `{key}` is missing"))
}

/// All entries of an object.
pub fn entries(json: &Value) -> Outcome<&Map<String, Value>> {
    json.as_object().ok_or_else(|| format!("expected an object, found {json}"))
}

/// The items of a list.
pub fn items(json: &Value) -> Outcome<&Vec<Value>> {
    json.as_array().ok_or_else(|| format!("expected a list, found {json}"))
}

/// Own things, each with its item of a list: there are as many of both.
pub fn paired<'a, T>(own: &'a [T], json: &'a Value) -> Outcome<Vec<(&'a T, &'a Value)>> {
    let theirs = items(json)?;
    if own.len() != theirs.len() {
        return Err(format!("{} things of ours, the file has {}", own.len(), theirs.len()));
    }
    Ok(own.iter().zip(theirs).collect())
}

/// The values of a path, of several parameters.
pub fn named<'a>(all: &'a [(String, Vec<f64>)], path: &str) -> Outcome<&'a Vec<f64>> {
    let found = all.iter().find(|(own, _)| own == path);
    found.map(|(_, values)| values).ok_or_else(|| format!("there is no parameter {path}"))
}

/// A text.
pub fn text(json: &Value) -> Outcome<&str> {
    json.as_str().ok_or_else(|| format!("expected a text, found {json}"))
}

/// A number.
pub fn number(json: &Value) -> Outcome<f64> {
    json.as_f64().ok_or_else(|| format!("expected a number, found {json}"))
}

/// All numbers of a number or of nested lists, last index fastest.
pub fn numbers(json: &Value) -> Outcome<Vec<f64>> {
    match json {
        Value::Array(items) => Ok(items.iter().map(numbers).collect::<Outcome<Vec<_>>>()?.concat()),
        other => Ok(vec![number(other)?]),
    }
}

/// A matrix from a list of rows; a plain list is one column.
pub fn matrix(json: &Value) -> Outcome<Mat<f64>> {
    let rows = items(json)?.iter().map(numbers).collect::<Outcome<Vec<_>>>()?;
    let cols = rows.first().map_or(0, Vec::len);
    if rows.iter().any(|row| row.len() != cols) {
        return Err("a matrix with rows of different lengths".into());
    }
    Ok(Mat::from_fn(rows.len(), cols, |i, j| rows[i][j]))
}

/// The numbers of a matrix row by row, as the files list them.
pub fn by_rows(a: MatRef<f64>) -> Vec<f64> {
    (0..a.nrows()).flat_map(|i| (0..a.ncols()).map(move |j| a[(i, j)])).collect()
}

/// An error of the library as a text.
pub fn own<T>(result: sparsegp::Result<T>) -> Outcome<T> {
    result.map_err(|e| format!("the library refuses: {e}"))
}

/// Fails on entries of a case that are not among `known`.
pub fn check_known(case: &Value, known: &[&str], report: &mut Report) -> Outcome {
    for key in entries(case)?.keys().filter(|key| !known.contains(&key.as_str())) {
        report.fail(key, "an entry that the check does not know");
    }
    Ok(())
}

/// The list of a family's files; a folder with other numbers may hold only some of them.
pub fn index(family: &str, json: &Value, folder: &Path, report: &mut Report) -> Outcome {
    check_known(json, &["set", "float", "layout", "comparison", "files"], report)?;
    let stated = text(get(json, "comparison")?)?.contains("atol + rtol*max|b|");
    report.require("comparison", stated, "another rule than the one that is applied");
    for name in entries(get(json, "files")?)?.keys() {
        let listed = crate::is_listed(&format!("{family}/{name}"));
        report.require(name, listed, "nobody knows this file");
        let there = folder.join(format!("{name}.json")).exists();
        println!("{name}: {}", if there { "there" } else { "not there" });
    }
    Ok(())
}

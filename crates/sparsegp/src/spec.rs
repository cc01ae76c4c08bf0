//! The specification language: `matern52 + linear`, `rbf(active_dims=[0,1]) * linear(variance=2)`,
//! or the JSON that it stands for.
//!
//! ```text
//! sum     = product { "+" product }
//! product = atom { "*" atom }
//! atom    = "(" sum ")" | name [ "(" [ entry "=" JSON { "," entry "=" JSON } ] ")" ]
//! ```
//! Values are JSON, in which words may go without quotation marks: `active_dims=[age, height]`. A value
//! that is not JSON is a kernel (`base=rbf(lengthscales=0.5)`) or a list of kernels in brackets.

use crate::data::sphere::{COORDINATES, parts_of_place, places_in};
use crate::error::{Error, Result};
use crate::params::Param;
use serde_json::{Map, Value, json};

/// The input columns that a kernel will see.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// How many.
    pub dim: usize,
    /// Their names, if any, for `active_dims`.
    pub names: Option<&'a [String]>,
    /// Those that are groups, which a kernel sees only if it is given them.
    pub groups: &'a [usize],
}

impl<'a> Inputs<'a> {
    /// Creates unnamed columns.
    pub fn unnamed(dim: usize) -> Self {
        Self { dim, names: None, groups: &[] }
    }

    /// Creates named columns.
    pub fn named(names: &'a [String]) -> Self {
        Self { dim: names.len(), names: Some(names), groups: &[] }
    }

    /// Returns the index of a column.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.names?.iter().position(|n| n == name)
    }

    /// Returns the places in this list of columns of the coordinates of each place on Earth that is
    /// in it as a whole.
    pub fn of_places(&self, dims: &[usize]) -> Vec<Vec<usize>> {
        let at = |q: usize| dims.iter().position(|own| *own == q);
        let whole = |first: usize| {
            let mut own: Vec<usize> =
                (first..first + COORDINATES).map(at).collect::<Option<_>>()?;
            own.sort_unstable();
            Some(own)
        };
        places_in(self.names.unwrap_or_default()).into_iter().filter_map(whole).collect()
    }

    /// Returns whether a column is a latitude or a longitude of a place.
    pub fn is_of_place(&self, name: &str) -> bool {
        let parts = |own: &String| parts_of_place(own).is_some_and(|(a, b)| a == name || b == name);
        self.names.unwrap_or_default().iter().any(parts)
    }

    /// Returns the columns of this name: one, or where a table's column of categories became
    /// several, all of those (`colour=blue`, `colour=red` for `colour`), or the coordinates of a
    /// place (for its latitude and its longitude).
    pub fn positions(&self, name: &str) -> Vec<usize> {
        if let Some(position) = self.position(name) {
            return vec![position];
        }
        let names = self.names.unwrap_or_default().iter().enumerate();
        let of_column =
            |own: &str| own.strip_prefix(name).is_some_and(|rest| rest.starts_with('='));
        let of_place = |own: &str| parts_of_place(own).is_some_and(|(a, b)| a == name || b == name);
        names
            .filter(|(_, own)| of_column(own) || of_place(own))
            .map(|(position, _)| position)
            .collect()
    }
}

/// Reads a specification into JSON. Text that starts with `{` is JSON already.
///
/// # Errors
/// [`Error::Spec`] with the position of the problem.
pub fn read(spec: &str) -> Result<Value> {
    read_as(spec, "the name of a kernel, such as `rbf` or `matern52`")
}

/// Reads as [`read`] does, for other things than kernels, in the same language; `what` is said to
/// be expected where a name is missing.
///
/// # Errors
/// As for [`read`].
pub fn read_as(spec: &str, what: &'static str) -> Result<Value> {
    if spec.trim_start().starts_with('{') {
        return serde_json::from_str(spec).map_err(|e| Error::Spec {
            spec: spec.to_owned(),
            position: e.column().saturating_sub(1),
            reason: format!("not valid JSON: {e}"),
        });
    }
    let mut parser = Parser { spec, position: 0, depth: 0, what };
    let value = parser.sum()?;
    parser.skip_space();
    if parser.position < spec.len() {
        return Err(parser.wrong("expected `+`, `*` or the end"));
    }
    Ok(value)
}

struct Parser<'a> {
    spec: &'a str,
    position: usize,
    /// Brackets around the position.
    depth: usize,
    what: &'static str,
}

/// Most brackets within brackets: what is read becomes JSON, whose reader has a limit too.
const DEEPEST: usize = 32;

impl Parser<'_> {
    fn wrong(&self, reason: impl Into<String>) -> Error {
        Error::Spec { spec: self.spec.to_owned(), position: self.position, reason: reason.into() }
    }

    fn rest(&self) -> &str {
        &self.spec[self.position..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.position += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, symbol: char) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(symbol);
        if found {
            self.position += symbol.len_utf8();
        }
        found
    }

    fn operands(
        &mut self,
        symbol: char,
        name: &str,
        operand: fn(&mut Self) -> Result<Value>,
    ) -> Result<Value> {
        let mut kernels = vec![operand(self)?];
        while self.take(symbol) {
            kernels.push(operand(self)?);
        }
        Ok(match kernels.pop() {
            Some(only) if kernels.is_empty() => only,
            last => {
                kernels.extend(last);
                json!({ "type": name, "kernels": kernels })
            }
        })
    }

    fn sum(&mut self) -> Result<Value> {
        self.operands('+', "sum", Self::product)
    }

    fn product(&mut self) -> Result<Value> {
        self.operands('*', "product", Self::atom)
    }

    fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong(format!("more than {DEEPEST} brackets within each other")));
        }
        Ok(())
    }

    fn word(&mut self) -> String {
        self.skip_space();
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-' && c != '/')
            .unwrap_or(rest.len());
        let word = rest[..end].to_owned();
        self.position += end;
        word
    }

    fn atom(&mut self) -> Result<Value> {
        if self.take('(') {
            self.deeper()?;
            let inner = self.sum()?;
            self.depth -= 1;
            return if self.take(')') { Ok(inner) } else { Err(self.wrong("expected `)`")) };
        }
        let name = self.word();
        if name.is_empty() {
            return Err(self.wrong(format!("expected {}", self.what)));
        }
        let mut entries = Map::new();
        entries.insert("type".into(), json!(name));
        if self.take('(') && !self.take(')') {
            loop {
                let entry = self.word();
                if entry.is_empty() {
                    return Err(self.wrong("expected an entry, such as `variance=2.0`"));
                }
                if !self.take('=') {
                    return Err(self.wrong(format!("expected `=` after `{entry}`")));
                }
                let value = self.json()?;
                if entries.insert(entry.clone(), value).is_some() {
                    return Err(self.wrong(format!("`{entry}` is given twice")));
                }
                if self.take(')') {
                    break;
                }
                if !self.take(',') {
                    return Err(self.wrong("expected `,` or `)`"));
                }
            }
        }
        Ok(Value::Object(entries))
    }

    /// Reads one value, ended by `,` or `)` outside brackets and strings.
    fn json(&mut self) -> Result<Value> {
        self.skip_space();
        let rest = self.rest();
        let (mut depth, mut in_string, mut escaped) = (0_i32, false, false);
        let end = rest
            .find(|c: char| {
                if in_string {
                    in_string = escaped || c != '"';
                    escaped = !escaped && c == '\\';
                    return false;
                }
                match c {
                    '"' => in_string = true,
                    '[' | '{' | '(' => depth += 1,
                    ']' | '}' => depth -= 1,
                    ')' if depth > 0 => depth -= 1,
                    ',' | ')' => return depth == 0,
                    _ => {}
                }
                false
            })
            .unwrap_or(rest.len());
        let text = rest[..end].trim_end();
        let value = serde_json::from_str(&quote_words(text)).or_else(|e| {
            let kernel = text.trim_start_matches(['[', '(', ' ']);
            if !kernel.starts_with(|c: char| c.is_ascii_alphabetic()) {
                let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                return Err(self.wrong(match number.parse::<f64>() {
                    Ok(_) if number.len() < text.len() => format!(
                        "`{text}` is a number with a unit; numbers have none, and are in the data's units with \
                         `--kernel-units data` (`kernel_units=\"data\"`)"
                    ),
                    _ => format!("`{text}` is not a value: {e}"),
                }));
            }
            self.kernels(text.len())
        })?;
        self.position += end;
        Ok(value)
    }

    /// Returns the kernel, or list of kernels, that is written in the next `length` bytes.
    fn kernels(&self, length: usize) -> Result<Value> {
        let end = self.position + length;
        let mut inner = Parser {
            spec: &self.spec[..end],
            position: self.position,
            depth: self.depth,
            what: self.what,
        };
        inner.deeper()?;
        let read = |inner: &mut Parser<'_>| -> Result<Value> {
            if !inner.take('[') {
                return inner.sum();
            }
            let mut all = vec![inner.sum()?];
            while inner.take(',') {
                all.push(inner.sum()?);
            }
            if inner.take(']') { Ok(all.into()) } else { Err(inner.wrong("expected `,` or `]`")) }
        };
        let value = read(&mut inner).and_then(|value| {
            inner.skip_space();
            let done = inner.position == end;
            if done { Ok(value) } else { Err(inner.wrong("expected `+`, `*` or the end")) }
        });
        value.map_err(|error| match error {
            // in the words of the whole
            Error::Spec { position, reason, .. } => {
                Error::Spec { spec: self.spec.to_owned(), position, reason }
            }
            other => other,
        })
    }
}

/// Returns JSON with quotation marks around bare words other than `true`, `false` and `null`.
fn quote_words(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
        let end = if first == '"' {
            // a string goes through as it is
            let mut escaped = true;
            let close = rest.find(|c: char| {
                let ends = c == '"' && !escaped;
                escaped = !escaped && c == '\\';
                ends
            });
            close.map_or(rest.len(), |i| i + 1)
        } else if inside(first) {
            rest.find(|c: char| !inside(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, tail) = rest.split_at(end);
        // as Python writes them too
        let token = match token {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            other => other,
        };
        let word =
            (first.is_alphabetic() || first == '_') && !["true", "false", "null"].contains(&token);
        if word {
            quoted.push('"');
        }
        quoted.push_str(token);
        if word {
            quoted.push('"');
        }
        rest = tail;
    }
    quoted
}

/// Sets starting values from the data, moved inside the parameter's range where they are not; a
/// value that the specification gave stays.
pub fn initialise(param: &mut Param, values: &[f64]) {
    if !param.given {
        param.start(values);
    }
}

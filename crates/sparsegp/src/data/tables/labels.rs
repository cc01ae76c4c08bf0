//! Labels of a target, as they come in a pass over a file.

use crate::data::classes::{Classes, as_number, canonical, too_many, with_exponent};
use std::collections::HashMap;

/// Turns labels into codes during a pass over a file.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    codes: HashMap<String, usize>,
    /// Whether other labels are refused; else they get the next code, which is provisional.
    closed: bool,
}

impl Encoder {
    pub fn new(known: Option<&Classes>) -> Self {
        let labels = known.map_or(&[][..], Classes::labels);
        let codes = labels.iter().zip(0..).map(|(label, code)| (label.clone(), code)).collect();
        Self { codes, closed: known.is_some() }
    }

    /// Returns the code of a label.
    ///
    /// # Errors
    /// What is wrong with it, for an error that names the cell.
    pub fn encode(&mut self, label: &str) -> Result<f64, String> {
        let label = canonical(label);
        if let Some(&code) = self.codes.get(&label) {
            return Ok(code as f64);
        }
        if self.closed {
            if let Some(&code) = as_number(&label).and_then(|label| self.codes.get(&label)) {
                return Ok(code as f64);
            }
            if let Some(code) = with_exponent(self.classes_by_code().into_iter(), &label) {
                return Ok(code as f64);
            }
            return Err(format!(
                "`{label}` is none of the classes that the model knows: {} (no row learnt from has this \
                 label; leave such rows out, or divide the rows by another seed)",
                listed(self.classes_by_code())
            ));
        }
        if self.codes.len() == Classes::MOST {
            return Err(too_many());
        }
        let code = self.codes.len();
        self.codes.insert(label, code);
        Ok(code as f64)
    }

    /// Returns the labels seen.
    pub fn labels(&self) -> impl Iterator<Item = &String> {
        self.codes.keys()
    }

    fn classes_by_code(&self) -> Vec<&str> {
        let mut all: Vec<_> = self.codes.iter().collect();
        all.sort_by_key(|(_, code)| **code);
        all.into_iter().map(|(label, _)| label.as_str()).collect()
    }
}

/// Returns the first of some labels, for an error.
pub(super) fn listed(labels: Vec<&str>) -> String {
    const MOST: usize = 10;
    let first: Vec<String> = labels.iter().take(MOST).map(|label| format!("`{label}`")).collect();
    match labels.len().saturating_sub(MOST) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_models_know_their_labels() {
        let old: Classes = serde_json::from_str(r#"["1","1000"]"#).unwrap();
        assert_eq!(Encoder::new(Some(&old)).encode("1e3"), Ok(1.0));
    }
}

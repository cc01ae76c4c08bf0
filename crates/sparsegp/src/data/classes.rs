//! Labels of a class target: texts, numbers or truth values become the codes 0, 1, ….

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The labels of a class target; the code of a label is its place. They stand in their natural order:
/// by value if all are numbers, else as texts (so `false` before `true`).
///
/// Labels are compared as texts after plain decimal numbers have been written in one way (`1`, `1.0` and `+1` are
/// `1`), truth values too (`True` is `true`), and blanks around have been cut. What a number would not give back stays as
/// it is written: `01`, `1e3`, and numbers of more than 15 digits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Classes {
    labels: Vec<String>,
    /// Whether their order means something.
    ordered: bool,
}

/// Only labels count.
impl PartialEq for Classes {
    fn eq(&self, other: &Self) -> bool {
        self.labels == other.labels
    }
}

impl Eq for Classes {}

impl Classes {
    /// More labels than this are taken for a mistake.
    pub const MOST: usize = 1000;

    /// Sorts labels, given in any order; repeated ones count once.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two classes or more than [`Classes::MOST`].
    pub fn new(labels: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self> {
        let sorted = in_order(labels.into_iter().map(|l| canonical(l.as_ref())).collect());
        let numbers = sorted.iter().all(|label| label.parse::<f64>().is_ok());
        Ok(Self::try_from(sorted)?.with_order(numbers))
    }

    /// Takes levels in the order given, lowest first. They need not all occur.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a level that is given twice, fewer than two, or more than [`Classes::MOST`].
    pub fn levels(levels: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self> {
        let levels: Vec<String> = levels.into_iter().map(|l| canonical(l.as_ref())).collect();
        Self::try_from(levels)
    }

    /// Says whether the order of the labels means something, as that of numbers or of given levels does; that of texts is
    /// the alphabet.
    #[must_use]
    pub fn with_order(mut self, ordered: bool) -> Self {
        self.ordered = ordered;
        self
    }

    /// Returns whether the order of the labels means something.
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Returns the labels, in the order of their codes.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Returns the number of classes C, at least 2.
    pub fn count(&self) -> usize {
        self.labels.len()
    }

    /// Returns the label of a code.
    pub fn label(&self, code: usize) -> Option<&str> {
        self.labels.get(code).map(String::as_str)
    }

    /// Returns the code of a label.
    pub fn code(&self, label: &str) -> Option<usize> {
        let find = |label: &str| self.labels.iter().position(|known| known == label);
        find(&canonical(label))
            .or_else(|| find(&as_number(label)?))
            .or_else(|| with_exponent(self.labels.iter().map(String::as_str), label))
    }
}

/// Labels in the order of their codes, as in a model file.
impl TryFrom<Vec<String>> for Classes {
    type Error = Error;

    fn try_from(labels: Vec<String>) -> Result<Self> {
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = labels.iter().find(|label| !seen.insert(label.as_str())) {
            return Err(Error::Invalid(format!("the class `{twice}` is given twice")));
        }
        match &labels[..] {
            [] => Err(Error::Invalid("there is no class: no label was found".into())),
            [one] => Err(Error::Invalid(format!(
                "there is only one class, `{one}`: a classifier needs at least two"
            ))),
            many if many.len() > Self::MOST => Err(Error::Invalid(too_many())),
            _ => Ok(Self { labels, ordered: true }),
        }
    }
}

impl From<Classes> for Vec<String> {
    fn from(classes: Classes) -> Self {
        classes.labels
    }
}

pub(super) fn too_many() -> String {
    format!(
        "there are more than {} different labels: is it a label, or a number to be predicted, or \
         an identifier?",
        Classes::MOST
    )
}

/// Returns labels (as they are compared) in their natural order, each once: by value if all are
/// numbers, else as texts.
pub(super) fn in_order(mut labels: Vec<String>) -> Vec<String> {
    let numbers: Option<Vec<f64>> = labels.iter().map(|label| label.parse().ok()).collect();
    match numbers {
        Some(numbers) => {
            let mut both: Vec<(f64, String)> = numbers.into_iter().zip(labels).collect();
            // numbers beyond 2^53 may be the same number and other labels
            both.sort_by(|(a, x), (b, y)| {
                a.total_cmp(b).then(x.len().cmp(&y.len())).then_with(|| x.cmp(y))
            });
            labels = both.into_iter().map(|(_, label)| label).collect();
        }
        None => labels.sort(),
    }
    labels.dedup();
    labels
}

/// Writes a label as it is compared.
pub(super) fn canonical(label: &str) -> String {
    let label = label.trim();
    match label.parse::<f64>() {
        // Adding 0 turns −0 into 0.
        Ok(number) if is_plain(label) => (number + 0.0).to_string(),
        _ if label.eq_ignore_ascii_case("true") => "true".into(),
        _ if label.eq_ignore_ascii_case("false") => "false".into(),
        _ => label.into(),
    }
}

/// Says whether a number gives its label back: decimal digits without an exponent or leading zeros, 15 at most.
fn is_plain(label: &str) -> bool {
    const DIGITS: usize = 15;
    let digits = label.strip_prefix(['-', '+']).unwrap_or(label);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let led = whole.is_empty() || whole.len() > 1 && whole.starts_with('0');
    !led && all(whole) && all(fraction) && whole.len() + fraction.len() <= DIGITS
}

/// Writes a label that is a number as models of before did: `01` and `1e0` as `1`.
pub(super) fn as_number(label: &str) -> Option<String> {
    let number: f64 = label.trim().parse().ok()?;
    number.is_finite().then(|| (number + 0.0).to_string())
}

/// Returns the place of the only label that is the same number, written with an exponent: R writes `100000` as `1e+05`.
pub(super) fn with_exponent<'a>(
    labels: impl Iterator<Item = &'a str>,
    label: &str,
) -> Option<usize> {
    let number = as_number(label)?;
    let is_same = |own: &&str| own.contains(['e', 'E']) && as_number(own).as_ref() == Some(&number);
    let mut all = labels.enumerate().filter(|(_, own)| is_same(own)).map(|(place, _)| place);
    all.next().filter(|_| all.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stand_in_their_natural_order() {
        let labels = |given: &[&str]| Classes::new(given).unwrap().labels().join(" ");
        assert_eq!(labels(&["10", "9", "-1", "2.50"]), "-1 2.5 9 10");
        assert_eq!(labels(&["b", "10", "9", " a "]), "10 9 a b");
        assert_eq!(labels(&["True", "false", "TRUE"]), "false true");
        assert_eq!(labels(&["1.0", "+1", "-0", "0"]), "0 1");
        // what a number would not give back stays apart
        assert_eq!(labels(&["001", "1", "01", "1e0"]), "1 01 001 1e0");
        assert_eq!(labels(&["1000", "1e3"]), "1e3 1000");
        assert_eq!(
            labels(&["9007199254740993", "9007199254740992"]),
            "9007199254740992 9007199254740993"
        );
    }

    #[test]
    fn codes_and_labels_are_inverse_and_survive_a_file() {
        let classes = Classes::new(["7", "30", "-2"]).unwrap();
        for code in 0..classes.count() {
            assert_eq!(classes.code(classes.label(code).unwrap()), Some(code));
        }
        assert_eq!(
            (classes.code("7.0"), classes.code("8"), classes.label(3)),
            (Some(1), None, None)
        );
        let big = Classes::new(["1e+05", "2e+05", "150000"]).unwrap();
        let codes = ["100000", "1.5e5", "300000"].map(|label| big.code(label));
        assert_eq!(codes, [big.code("1e+05"), big.code("150000"), None]);
        let text = serde_json::to_string(&classes).unwrap();
        assert_eq!(text, r#"["-2","7","30"]"#);
        assert_eq!(serde_json::from_str::<Classes>(&text).unwrap(), classes);
        assert!(serde_json::from_str::<Classes>(r#"["a","a"]"#).is_err());
    }

    #[test]
    fn levels_keep_their_order_and_old_models_their_labels() {
        let levels = Classes::levels(["low", "medium", "high"]).unwrap();
        assert_eq!(levels.labels(), ["low", "medium", "high"]);
        assert!(levels.is_ordered() && Classes::new(["3", "1"]).unwrap().is_ordered());
        assert!(!Classes::new(["low", "high"]).unwrap().is_ordered());
        assert!(
            Classes::levels(["a", "b", "a"])
                .unwrap_err()
                .to_string()
                .contains("`a` is given twice")
        );
        // of before, where all numbers were written in one way
        let old: Classes = serde_json::from_str(r#"["1","1000"]"#).unwrap();
        assert_eq!((old.code("01"), old.code("1e3"), old.code("2")), (Some(0), Some(1), None));
    }

    #[test]
    fn too_few_and_too_many_classes_are_refused() {
        let fails = |labels: Vec<String>, part: &str| {
            let text = Classes::new(labels).unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        };
        fails(vec![], "no class");
        fails(vec!["a".into(), "a ".into()], "only one class, `a`");
        fails((0..1001).map(|i| i.to_string()).collect(), "more than 1000 different labels: is it");
        assert_eq!(Classes::new((0..1000).map(|i| i.to_string())).unwrap().count(), 1000);
    }
}

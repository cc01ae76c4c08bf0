//! What a cell of text says: a number, a missing value, or neither, and what the neighbours of such cells are.

use crate::data::options::ReadOptions;
use crate::error::in_shell;

/// Words that mean "no value" in every column (with every spelling of NaN that parses as a number).
const MISSING: [&str; 18] = [
    "", "NA", "nan", "null", "None", "?", "N/A", "n/a", "NULL", "Null", "<NA>", "#N/A", "#NA",
    "NaT", "\\N", "#N/A N/A", "1.#QNAN", "-1.#IND",
];

/// Words that mean "no value" among numbers, and may be categories or classes elsewhere.
const MISSING_NUMBERS: [&str; 17] = [
    "-", "--", "---", "–", "—", ".", "..", "...", "none", "na", "#DIV/0!", "#VALUE!", "#REF!",
    "#NAME?", "#NUM!", "#NULL!", "*",
];

/// Says what a cell holds.
pub(super) enum Cell {
    Number(f64),
    /// How the value is missing.
    Missing(String),
    Text(String),
}

/// Reads a cell of a column of numbers.
pub(super) fn cell(bytes: &[u8], options: &ReadOptions) -> Cell {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Cell::Text(String::from_utf8_lossy(bytes).into_owned());
    };
    let text = text.trim();
    match options.number(text) {
        Some(value) if value.is_finite() => {
            if options.has_missing_words() && options.is_missing_word(text) {
                return Cell::Missing(format!("`{}` is a missing value", shown(text)));
            }
            Cell::Number(value)
        }
        Some(value) if value.is_nan() => Cell::Missing(format!("`{text}` is not a number")),
        Some(_) => Cell::Missing(format!("`{}` is not finite", shown(text))),
        None if text.is_empty() => Cell::Missing("the cell is empty".into()),
        None if is_missing_number(text, options) => {
            Cell::Missing(format!("`{}` is a missing value", shown(text)))
        }
        None => Cell::Text(text.to_owned()),
    }
}

/// Says whether a word stands for a missing number.
pub(super) fn is_missing_number(text: &str, options: &ReadOptions) -> bool {
    let text = text.trim();
    MISSING.contains(&text) || MISSING_NUMBERS.contains(&text) || options.is_missing_word(text)
}

/// Says whether a text among categories would mean a missing value or no number elsewhere.
pub(super) fn is_odd_word(text: &str, options: &ReadOptions) -> bool {
    is_missing_number(text, options) || text.parse::<f64>().is_ok_and(|value| !value.is_finite())
}

/// Says how a cell of labels, categories or dates is missing; none if it is there.
pub(super) fn missing_text(text: &str, options: &ReadOptions) -> Option<String> {
    let text = text.trim();
    if text.is_empty() {
        return Some("the cell is empty".into());
    }
    if options.is_kept_word(text) {
        return None;
    }
    let word = shown(text);
    let what = match text.parse::<f64>() {
        _ if MISSING.contains(&text) || options.is_missing_word(text) => "a missing value",
        Ok(value) if value.is_nan() => "not a number",
        Ok(value) if value.is_infinite() => "not finite",
        _ => return None,
    };
    let kept = in_shell(&word);
    Some(format!("`{word}` is {what} (a category or class of this name: `--kept-words {kept}`)"))
}

/// Says whether a cell of labels, categories or dates is missing.
pub(super) fn is_missing(text: &str, options: &ReadOptions) -> bool {
    missing_text(text, options).is_some()
}

/// Returns at most forty characters of a text, with control characters escaped, for a message.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 40;
    let mut out = String::new();
    for (i, character) in text.chars().enumerate() {
        if i == MOST {
            out.push('…');
            break;
        }
        match character.is_control() {
            true => out.extend(character.escape_default()),
            false => out.push(character),
        }
    }
    out
}

/// What makes a text that looks like a number none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Like {
    DecimalComma,
    DecimalPoint,
    Thousands(char),
    Percent,
    Currency,
    /// The unit.
    Unit(String),
    /// In parentheses, as accountants write what is below 0.
    Negative,
    /// With a sign before it, as what lies below or above what can be measured.
    Bound,
    /// To the base 16.
    Hexadecimal,
}

/// Says in which way a text that is not a number looks like one.
pub(super) fn like(text: &str, options: &ReadOptions) -> Option<Like> {
    const CURRENCIES: [char; 6] = ['$', '€', '£', '¥', '₹', '₩'];
    let text = text.trim().replace('\u{2212}', "-");
    if !text.contains(|c: char| c.is_ascii_digit()) || text.len() > 60 {
        return None;
    }
    if let Some(inner) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'))
        && is_shape(inner)
    {
        return Some(Like::Negative);
    }
    if let Some(rest) = text.strip_prefix(['<', '>', '≤', '≥']) {
        let number = rest.trim_start_matches('=');
        return is_shape(number).then_some(Like::Bound);
    }
    let digits = text.trim_start_matches(['-', '+']);
    if let Some(digits) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        return all.then_some(Like::Hexadecimal);
    }
    let bare = text.trim_start_matches(['-', '+', '(']).trim_start();
    let sign_cut = text.trim_end_matches(')');
    if let Some(rest) = bare.strip_prefix(CURRENCIES) {
        return is_shape(rest.trim_end_matches(')')).then_some(Like::Currency);
    }
    if let Some(rest) = sign_cut.strip_suffix(CURRENCIES) {
        return is_shape(rest).then_some(Like::Currency);
    }
    if let Some(rest) = text.strip_suffix(['%', '‰']) {
        return is_shape(rest).then_some(Like::Percent);
    }
    if is_shape(&text) {
        return separators(&text, options);
    }
    // a number, and letters after it
    let end = text.find(|c: char| c.is_alphabetic() || "°µ²³".contains(c))?;
    let (number, unit) = text.split_at(end);
    let of_unit = |c: char| c.is_alphanumeric() || "°µ²³/^·*.-²³ ".contains(c);
    let is_unit = unit.chars().count() <= 12 && unit.chars().all(of_unit);
    (is_shape(number) && is_unit).then(|| Like::Unit(unit.trim().to_owned()))
}

/// Says whether a text has the shape of a number in some country.
fn is_shape(text: &str) -> bool {
    let text = text.trim();
    let text = text.strip_prefix(['-', '+']).unwrap_or(text).trim_start();
    let mantissa = match text.find(['e', 'E']) {
        Some(at) if at > 0 => {
            let exponent = text[at + 1..].trim_start_matches(['-', '+']);
            if exponent.is_empty() || !exponent.bytes().all(|b| b.is_ascii_digit()) {
                return false;
            }
            &text[..at]
        }
        _ => text,
    };
    let is_part = |c: char| {
        c.is_ascii_digit() || c == '.' || c == ',' || c == '\'' || is_space(c) || c == '’'
    };
    mantissa.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == ',')
        && mantissa.contains(|c: char| c.is_ascii_digit())
        && mantissa.chars().all(is_part)
        && !mantissa.contains("..")
        && !mantissa.contains(",,")
        && mantissa.matches('.').count().min(mantissa.matches(',').count()) <= 1
}

/// Says whether this is a space that groups digits.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}')
}

/// Says which separators keep a text from being a number.
fn separators(text: &str, options: &ReadOptions) -> Option<Like> {
    if text.contains(['\'', '’']) {
        return Some(Like::Thousands('\''));
    }
    if text.trim().contains(is_space) {
        return Some(Like::Thousands(' '));
    }
    let (commas, points) = (text.matches(',').count(), text.matches('.').count());
    let last = text.rfind(['.', ',']).map(|at| text.as_bytes()[at]);
    match (commas, points) {
        (0, 0) => None,
        (0, 1) => Some(Like::DecimalPoint),
        (0, _) => Some(Like::Thousands('.')),
        (1, 0) => Some(Like::DecimalComma),
        (_, 0) => Some(Like::Thousands(',')),
        _ if last == Some(b',') => match options.decimal {
            ',' => Some(Like::Thousands('.')),
            _ => Some(Like::DecimalComma),
        },
        _ => Some(Like::Thousands(',')),
    }
}

/// Returns the option that reads a column as categories, and when to give it.
pub(super) fn categorical(column: &str, when: &str) -> String {
    format!("`--categorical {}` if {when}", in_shell(column))
}

impl Like {
    /// Says what is wrong with a cell, and what would read it. `remedy`: the option for cells that
    /// are not numbers.
    pub fn reason(&self, text: &str, remedy: Option<&str>) -> String {
        let text = shown(text);
        let or = remedy.map(|remedy| format!(", or pass {remedy}")).unwrap_or_default();
        let lone = format!("write only the numbers{or}");
        match self {
            Self::DecimalComma if text.contains('.') => format!(
                "`{text}` has a decimal comma and points between thousands: pass `--decimal , --thousands .`"
            ),
            Self::DecimalComma => format!(
                "`{text}` has a comma: pass `--decimal ,` if it is a decimal comma, or `--thousands ,` if it separates \
                 thousands"
            ),
            Self::DecimalPoint => format!(
                "`{text}` has a decimal point where `--decimal ,` was given or is remembered: pass `--decimal .` if all \
                 numbers have points, or `--thousands .` if it separates thousands"
            ),
            Self::Thousands(by) => {
                let by = if *by == ' ' { "' '".to_owned() } else { by.to_string() };
                format!("`{text}` has separators between thousands: pass `--thousands {by}`")
            }
            Self::Percent => format!("`{text}` has a per cent sign: {lone}"),
            Self::Currency => format!("`{text}` has a currency sign: {lone}"),
            Self::Negative => {
                format!("`{text}` is in parentheses: write a number below 0 with a minus{or}")
            }
            Self::Bound => format!(
                "`{text}` is a bound and no number: write the number that is meant (half of a limit of detection is usual), or leave \
                 such rows out{or}"
            ),
            Self::Hexadecimal => {
                format!("`{text}` is a hexadecimal number: write it in decimal digits{or}")
            }
            Self::Unit(unit) => format!("`{text}` has the unit `{}`: {lone}", shown(unit)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_number_is_distinguished_from_what_does_not() {
        let plain = ReadOptions::default();
        for (text, expected) in [
            ("12,5", Like::DecimalComma),
            ("1.152,2", Like::DecimalComma),
            ("1,152.2", Like::Thousands(',')),
            ("1,152,000", Like::Thousands(',')),
            ("1 152", Like::Thousands(' ')),
            ("1\u{a0}152", Like::Thousands(' ')),
            ("1'152", Like::Thousands('\'')),
            ("1.152.000", Like::Thousands('.')),
            ("12%", Like::Percent),
            ("-12.5 %", Like::Percent),
            ("$12", Like::Currency),
            ("-$1,200", Like::Currency),
            ("12 €", Like::Currency),
            ("130 hp", Like::Unit("hp".into())),
            ("2b", Like::Unit("b".into())),
            ("20°C", Like::Unit("°C".into())),
            ("(0.1422)", Like::Negative),
            ("<0.006", Like::Bound),
            (">= 5", Like::Bound),
            ("0x1F", Like::Hexadecimal),
        ] {
            assert_eq!(like(text, &plain), Some(expected), "{text}");
        }
        for text in [
            "",
            "word",
            "L27",
            "25-34",
            "0-39g/day",
            "<1l",
            "75+",
            "x1",
            "1/2",
            "12:30",
            "A 12",
            "u0",
        ] {
            assert_eq!(like(text, &plain), None, "{text}");
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(shown("a\tb\u{0}\u{1b}[31m\nc"), "a\\tb\\u{0}\\u{1b}[31m\\nc");
        assert_eq!(shown(&"é".repeat(50)).chars().count(), 41);
    }
}

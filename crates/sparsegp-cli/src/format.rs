//! Numbers and tables for people.

use sparsegp::error::escaped;

/// Returns a number with about `digits` significant digits: plain where that is readable, else
/// scientific.
pub fn number(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let exponent = value.abs().log10().floor();
    if !exponent.is_finite() {
        return value.to_string();
    }
    let exponent = exponent as i32;
    if (-4..7).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        format!("{value:.decimals$}")
    } else {
        format!("{value:.*e}", digits.saturating_sub(1))
    }
}

/// Returns a number with so many decimals; what rounds to 0 has no sign.
pub fn rounded(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.bytes().all(|b| matches!(b, b'0' | b'.')) => zero.to_owned(),
        _ => text,
    }
}

/// Returns numbers separated by spaces; a long list is abbreviated unless `full`.
pub fn numbers(values: &[f64], full: bool) -> String {
    const SHOWN: usize = 6;
    let list = |values: &[f64]| values.iter().map(|v| number(*v, 4)).collect::<Vec<_>>().join("  ");
    if full || values.len() <= SHOWN + 1 {
        return list(values);
    }
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!(
        "{}  … ({} values from {} to {})",
        list(&values[..3]),
        values.len(),
        number(least, 4),
        number(most, 4)
    )
}

/// Returns seconds in words.
pub fn seconds(s: f64) -> String {
    // rounded first: there are no 60 seconds, and no 1000 milliseconds
    let whole = |unit: f64| (s / unit).round();
    match s {
        s if !s.is_finite() => "an unknown time".into(),
        s if s < 0.00995 => format!("{:.1} ms", s * 1e3),
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s if s < 99.95 => format!("{s:.1} s"),
        _ if whole(1.0) < 6000.0 => {
            format!("{:.0} min {:.0} s", (whole(1.0) / 60.0).floor(), whole(1.0) % 60.0)
        }
        _ => format!("{:.0} h {:.0} min", (whole(60.0) / 60.0).floor(), whole(60.0) % 60.0),
    }
}

/// Returns seconds since the beginning of 1970 as a date and a time of day (UTC).
pub fn moment(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // days since 0000-03-01, of which 400 years have 146 097 (Hinnant, "chrono-compatible low-level date algorithms")
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + 400 * era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest % 3600 / 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Returns `1 row`, `2 rows`; thousands set apart.
pub fn count(n: usize, what: &str) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && digits.len() > 4 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    format!("{text} {what}{}", if n == 1 { "" } else { "s" })
}

/// Which way a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table with a header line; the columns are as wide as they must be.
pub struct Table {
    header: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these columns.
    pub fn new(header: &[(&str, Align)]) -> Self {
        let header = header.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect();
        Self { header, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.iter().map(|cell| escaped(cell)).collect());
    }

    /// Returns the text, each line indented. A column that is empty in every row is left out.
    pub fn render(&self, indent: usize) -> String {
        let width = |j: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(j));
            let longest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            longest.max(self.header[j].0.chars().count())
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let filled =
            |j: usize| self.rows.iter().any(|row| row.get(j).is_some_and(|c| !c.is_empty()));
        let line = |cells: Vec<&str>| {
            let mut text = " ".repeat(indent);
            for (j, cell) in cells.iter().enumerate().filter(|(j, _)| filled(*j)) {
                let pad = " ".repeat(widths[j].saturating_sub(cell.chars().count()));
                match self.header[j].1 {
                    Align::Left => text.extend([cell, pad.as_str()]),
                    Align::Right => text.extend([pad.as_str(), cell]),
                }
                text.push_str("  ");
            }
            format!("{}\n", text.trim_end())
        };
        let mut text = line(self.header.iter().map(|(name, _)| name.as_str()).collect());
        let rules: Vec<String> = widths.iter().map(|w| "─".repeat(*w)).collect();
        text.push_str(&line(rules.iter().map(String::as_str).collect()));
        for row in &self.rows {
            text.push_str(&line(row.iter().map(String::as_str).collect()));
        }
        text
    }
}

/// Shortest width that a column of text is wrapped to.
const NARROWEST: usize = 16;

impl Table {
    /// Returns the text with the widest columns of text wrapped, so that lines have at most `width`
    /// characters where that is possible.
    pub fn render_within(&self, width: usize) -> String {
        let mut widths: Vec<usize> = (0..self.header.len())
            .map(|j| {
                let cells = self.rows.iter().filter_map(|row| row.get(j));
                let longest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
                // a column that is empty is left out
                if longest == 0 { 0 } else { longest.max(self.header[j].0.chars().count()) }
            })
            .collect();
        let gaps = 2 * widths.iter().filter(|w| **w > 0).count().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > width {
            let text = |j: &usize| self.header[*j].1 == Align::Left && widths[*j] > NARROWEST;
            let Some(j) = (0..widths.len()).filter(text).max_by_key(|j| widths[*j]) else { break };
            widths[j] -= 1;
        }
        let mut narrow = Self { header: self.header.clone(), rows: Vec::new() };
        for row in &self.rows {
            let cells: Vec<Vec<String>> =
                row.iter().zip(&widths).map(|(cell, width)| wrapped(cell, *width)).collect();
            for k in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let line = cells.iter().map(|lines| lines.get(k).cloned().unwrap_or_default());
                narrow.rows.push(line.collect());
            }
        }
        narrow.render(0)
    }

    /// Returns whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the table in Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| {
            let escaped = cells.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>();
            format!("| {} |\n", escaped.join(" | "))
        };
        let mut text = line(self.header.iter().map(|(name, _)| name.clone()).collect());
        text += &line(self.header.iter().map(|_| "---".to_owned()).collect());
        for row in &self.rows {
            text += &line(row.clone());
        }
        text
    }
}

/// Returns the lines of a text of at most so many characters, broken at blanks.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut length = 0;
    for word in text.split_whitespace() {
        let own = word.chars().count();
        if length > 0 && length + 1 + own > width {
            lines.push(String::new());
            length = 0;
        }
        let last = lines.len() - 1;
        if length > 0 {
            lines[last].push(' ');
            length += 1;
        }
        lines[last].push_str(word);
        length += own;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1.000"),
            (-0.01234567, "-0.01235"),
            (123456.789, "123457"),
            (1.5e-9, "1.500e-9"),
            (-2e12, "-2.000e12"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(number(value, 4), text);
        }
        assert!(number(f64::NAN, 4).contains("NaN"));
        assert_eq!(numbers(&[1.0, 2.0], false), "1.000  2.000");
        let many: Vec<f64> = (0..100).map(f64::from).collect();
        assert!(numbers(&many, false).ends_with("… (100 values from 0 to 99.00)"));
        assert!(numbers(&many, true).ends_with("99.00"));
    }

    #[test]
    fn what_rounds_to_zero_has_no_sign() {
        for (value, decimals, text) in [
            (-0.001, 2, "0.00"),
            (-0.0, 3, "0.000"),
            (-0.4, 0, "0"),
            (-0.005_1, 2, "-0.01"),
            (1.26, 1, "1.3"),
            (f64::NEG_INFINITY, 2, "-inf"),
        ] {
            assert_eq!(rounded(value, decimals), text);
        }
        assert_eq!(rounded(f64::NAN, 2), "NaN");
    }

    #[test]
    fn counts_and_times() {
        assert_eq!(count(1, "row"), "1 row");
        assert_eq!(count(1503, "row"), "1503 rows");
        assert_eq!(count(1234567, "row"), "1 234 567 rows");
        assert_eq!(seconds(0.25), "250 ms");
        assert_eq!(seconds(125.0), "2 min 5 s");
        assert_eq!(seconds(7300.0), "2 h 2 min");
        for (value, text) in [
            (2519.7, "42 min 0 s"),
            (7199.0, "2 h 0 min"),
            (5999.6, "1 h 40 min"),
            (0.9999, "1.0 s"),
            (99.97, "1 min 40 s"),
            (0.00999, "10 ms"),
            (f64::NAN, "an unknown time"),
        ] {
            assert_eq!(seconds(value), text);
        }
    }

    #[test]
    fn moments_are_dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_709_164_800, "2024-02-29 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(moment(seconds), text);
        }
    }

    #[test]
    fn tables_align() {
        let columns = [("name", Align::Left), ("empty", Align::Left), ("x", Align::Right)];
        let mut table = Table::new(&columns);
        table.row(vec!["σ²".into(), String::new(), "1.5".into()]);
        table.row(vec!["longer".into(), String::new(), "22.5".into()]);
        assert_eq!(
            table.render(2),
            "  name       x\n  ──────  ────\n  σ²       1.5\n  longer  22.5\n"
        );
    }
}

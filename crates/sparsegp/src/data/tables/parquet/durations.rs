//! Columns of durations, which Parquet has no type for: only the metadata that a writer leaves for itself tells them from counts.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parquet::file::metadata::KeyValue;
use serde_json::Value;
use std::collections::HashSet;

/// Key of the schema of Arrow, which its writers (pyarrow, Polars) leave: a message of Flatbuffers in base 64.
const ARROW: &str = "ARROW:schema";
/// Key of the description that pandas leaves: JSON.
const PANDAS: &str = "pandas";
/// Number of a duration among the types of Arrow.
const DURATION: u8 = 18;
/// Number of an interval between two moments.
const INTERVAL: u8 = 11;

/// Returns the names of the columns that hold durations. Metadata that cannot be read have none.
pub(super) fn named(metadata: Option<&Vec<KeyValue>>) -> HashSet<String> {
    let value = |key: &str| {
        metadata?.iter().find(|entry| entry.key == key).and_then(|entry| entry.value.as_deref())
    };
    let mut names = value(ARROW).and_then(of_arrow).unwrap_or_default();
    names.extend(value(PANDAS).and_then(of_pandas).unwrap_or_default());
    names.into_iter().collect()
}

fn of_pandas(text: &str) -> Option<Vec<String>> {
    let described: Value = serde_json::from_str(text).ok()?;
    let is_duration = |column: &&Value| {
        let kind = |key: &str| column[key].as_str().unwrap_or_default();
        kind("numpy_type").starts_with("timedelta64")
            || kind("pandas_type").starts_with("timedelta")
    };
    let name = |column: &Value| {
        column["field_name"].as_str().or_else(|| column["name"].as_str()).map(String::from)
    };
    Some(described["columns"].as_array()?.iter().filter(is_duration).filter_map(name).collect())
}

/// Reads the fields of the schema: `Message.header`, `Schema.fields`, and of each `Field.name` and `Field.type`.
fn of_arrow(text: &str) -> Option<Vec<String>> {
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    let message = match bytes.get(..4)? {
        // what announces a message, and its length
        [0xff, 0xff, 0xff, 0xff] => bytes.get(8..)?,
        _ => bytes.get(4..)?,
    };
    let root = Flat { bytes: message, at: 0 }.follow(0)?;
    let fields = root.table(2)?.table(1)?;
    let of_field = |i: usize| {
        let field = fields.follow(4 + 4 * i)?;
        let kind = field.place(2).and_then(|at| field.bytes.get(at)).copied().unwrap_or(0);
        matches!(kind, DURATION | INTERVAL).then(|| field.text(0)).flatten()
    };
    let count = (fields.word(0)? as usize).min(message.len() / 4);
    Some((0..count).filter_map(of_field).collect())
}

/// A place in a buffer of Flatbuffers: of a table, a vector or a text.
#[derive(Clone, Copy)]
struct Flat<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Flat<'a> {
    /// Returns the word that lies so far on.
    fn word(self, further: usize) -> Option<u32> {
        let bytes = self.bytes.get(self.at.checked_add(further)?..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*bytes))
    }

    /// Goes to what the offset that lies so far on points to.
    fn follow(self, further: usize) -> Option<Self> {
        let at = self.at.checked_add(further)?.checked_add(self.word(further)? as usize)?;
        Some(Self { at, ..self })
    }

    /// Returns where the table has its n-th entry, if it has it.
    fn place(self, n: usize) -> Option<usize> {
        let back = i64::from(self.word(0)?.cast_signed());
        let entries = usize::try_from(i64::try_from(self.at).ok()? - back).ok()?;
        let short = |at: usize| {
            let bytes = self.bytes.get(at..)?.first_chunk::<2>()?;
            Some(usize::from(u16::from_le_bytes(*bytes)))
        };
        let end = short(entries)?;
        let offset = (4 + 2 * n < end).then(|| short(entries + 4 + 2 * n)).flatten()?;
        (offset > 0).then_some(self.at + offset)
    }

    /// Goes to the table, vector or text that is the n-th entry of the table.
    fn table(self, n: usize) -> Option<Self> {
        Self { at: self.place(n)?, ..self }.follow(0)
    }

    fn text(self, n: usize) -> Option<String> {
        let text = self.table(n)?;
        let length = text.word(0)? as usize;
        let bytes = text.bytes.get(text.at + 4..)?.get(..length)?;
        String::from_utf8(bytes.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_PYARROW: &str = "/////9gAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAMAAAB4AAAAPAAAAAQAAA\
         Ck////AAABAhAAAAAcAAAABAAAAAAAAAABAAAAbgAAAAgADAAIAAcACAAAAAAAAAFAAAAA2P///wAAAQMQAAAAFAAA\
         AAQAAAAAAAAAAQAAAHkAAADG////AAACABAAFAAIAAYABwAMAAAAEAAQAAAAAAABEhAAAAAcAAAABAAAAAAAAAADAA\
         AAZ2FwAAAABgAIAAYABgAAAAAAAgA=";
    const OF_POLARS: &str = "/////9QAAAAEAAAA8v///xQAAAAEAAEAAAAKAAsACAAKAAQA+P///wwAAAAIAAgAAAAEAAMAAABsAAAANAAAAAQAAA\
         CM////IAAAABAAAAAIAAAAAQMAAAAAAAD6////AgAGAAYABAABAAAAeQAAALj///8oAAAAEAAAAAgAAAABCQAAAAAA\
         APT///9AAAAAAwAAAAgACgAIAAQAAQAAAHQAAADs////LAAAACAAAAAYAAAAARIAABAAEgAEABAAEQAIAAAADAAAAA\
         AA/P///wQABAADAAAAZ2FwAA==";

    fn of(key: &str, text: &str) -> Vec<String> {
        let entry = KeyValue { key: key.into(), value: Some(text.into()) };
        named(Some(&vec![entry])).into_iter().collect()
    }

    #[test]
    fn writers_say_which_columns_are_durations() {
        // of the columns gap, y, n and gap, t, y
        assert_eq!(of(ARROW, OF_PYARROW), ["gap"]);
        assert_eq!(of(ARROW, OF_POLARS), ["gap"]);
        let pandas = r#"{"columns": [{"name": "gap", "field_name": "gap", "numpy_type": "timedelta64[us]"},
            {"name": "y", "field_name": "y", "numpy_type": "float64"}]}"#;
        assert_eq!(of(PANDAS, pandas), ["gap"]);
        assert!(named(None).is_empty());
    }

    #[test]
    fn damaged_metadata_are_none() {
        let bytes = BASE64_STANDARD.decode(OF_PYARROW).unwrap();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut own = bytes.clone();
                own[at] = value;
                of(ARROW, &BASE64_STANDARD.encode(&own));
            }
            of(ARROW, &BASE64_STANDARD.encode(&bytes[..at]));
        }
        assert!(of(ARROW, "no base 64").is_empty() && of(PANDAS, "[]").is_empty());
    }
}

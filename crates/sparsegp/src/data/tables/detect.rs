//! What kind of file a table is, as its first bytes tell.

use super::charset;
use super::text::{Dialect, Text, layout};
use crate::data::options::ReadOptions;
use crate::error::{Error, Result};
use encoding_rs::{Encoding, UTF_8};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Beginnings of files that are mistaken for tables, and what to do about them.
const FOREIGN: [(&[u8], &str); 6] = [
    (b"PK\x03\x04", "is a ZIP archive or a spreadsheet; unpack it or export it as CSV"),
    (b"\x28\xb5\x2f\xfd", "is compressed with Zstandard; decompress it or compress it with gzip"),
    (b"BZh", "is compressed with bzip2; decompress it or compress it with gzip"),
    (b"ARROW1", "is an Arrow (Feather) file; write it as Parquet or CSV"),
    (b"PARE", "is an encrypted Parquet file; write it without encryption"),
    (b"\xfd7zXZ", "is compressed with xz; decompress it or compress it with gzip"),
];

/// Returns the dialect of a text file, or `None` for Parquet. Looks at the bytes first: a wrong extension is
/// common, a wrong magic number is not.
pub(super) fn detect(path: &Path, options: &ReadOptions) -> Result<Option<Dialect>> {
    let fail = |reason: &str| Err(Error::File { path: path.into(), reason: reason.into() });
    if path.as_os_str() == "-" {
        return fail(
            "a table is read more than once and has to be a file; `follow` reads from `-`",
        );
    }
    let metadata = std::fs::metadata(path).map_err(|error| Error::io(path, &error))?;
    if !metadata.is_file() {
        return fail("is not a regular file; a table is read more than once and has to be a file");
    }
    let start = first_bytes(path, false, UTF_8)?;
    // A header may begin with a column called `PAR1`; then there is text after it.
    let is_text = start.len() > 8
        && start.iter().take(64).all(|byte| *byte >= b' ' || b"\t\r\n".contains(byte));
    if start.starts_with(b"PAR1") && !is_text {
        return Ok(None);
    }
    if let Some((_, what)) = FOREIGN.iter().find(|(magic, _)| start.starts_with(magic) && !is_text)
    {
        return fail(what);
    }
    let gzip = start.starts_with(b"\x1f\x8b");
    let text = if gzip { first_bytes(path, true, UTF_8)? } else { start };
    if gzip && text.starts_with(b"PAR1\x15") {
        return fail("is a Parquet file inside gzip; decompress it (Parquet compresses by itself)");
    }
    let encoding = charset::of_text(&text, options.encoding.as_deref().and_then(charset::named));
    let text = match encoding == UTF_8 {
        true => text,
        false => first_bytes(path, gzip, encoding)?,
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if let Some(at) = text.iter().position(|&byte| byte == 0) {
        let few = text.iter().filter(|&&byte| byte == 0).count() * 1000 < text.len();
        if few && !name.ends_with(".parquet") {
            let line = 1 + text[..at].iter().filter(|&&byte| byte == b'\n').count();
            return fail(&format!("line {line} holds a NUL byte, which no text has; remove it"));
        }
        // of two bytes to a letter one is 0 nearly everywhere
        let zeros = text.iter().filter(|&&byte| byte == 0).count();
        let halves = [0, 1].map(|odd| text.iter().skip(odd).step_by(2).all(|&byte| byte != 0));
        if halves != [false; 2] && zeros * 10 >= text.len() * 4 && !name.ends_with(".parquet") {
            let order = if halves[0] { "utf-16le" } else { "utf-16be" };
            return fail(&format!(
                "seems to be UTF-16 text without a byte order mark: pass `--encoding {order}`, or save it as UTF-8"
            ));
        }
        return fail(match name.ends_with(".parquet") {
            true => "does not begin with `PAR1`: it is damaged or not a Parquet file",
            false => "holds binary data: it is neither CSV (plain or gzip) nor Parquet",
        });
    }
    let tabs = name.trim_end_matches(".gz").ends_with(".tsv");
    layout(path, &text, (gzip, encoding), tabs).map(Some)
}

/// Reads as much of the beginning as it takes to tell what a file is. Failures that are the business of the
/// reader (a truncated gzip stream, a row that is too long) end the text early here.
fn first_bytes(path: &Path, gzip: bool, encoding: &'static Encoding) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    let mut text = Text::open(path, gzip, encoding)?.take(1 << 16);
    match text.read_to_end(&mut start) {
        Err(error) if !gzip && error.kind() != ErrorKind::FileTooLarge => {
            Err(Error::io(path, &error))
        }
        _ => Ok(start),
    }
}

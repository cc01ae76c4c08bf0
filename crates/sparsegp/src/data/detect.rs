//! What kind of file a table is, as its first bytes tell.

use super::text::{Dialect, Text, layout};
use crate::error::{Error, Result};
use std::io::Read;
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
pub(super) fn detect(path: &Path) -> Result<Option<Dialect>> {
    let fail = |reason: &str| Err(Error::File { path: path.into(), reason: reason.into() });
    let metadata = std::fs::metadata(path).map_err(|error| Error::io(path, &error))?;
    if !metadata.is_file() {
        return fail("is not a regular file; a table is read more than once and has to be a file");
    }
    let start = first_bytes(path, false)?;
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
    let text = if gzip { first_bytes(path, true)? } else { start };
    if gzip && text.starts_with(b"PAR1\x15") {
        return fail("is a Parquet file inside gzip; decompress it (Parquet compresses by itself)");
    }
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
        return fail("is UTF-16 text; save it as UTF-8");
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if let Some(at) = text.iter().position(|&byte| byte == 0) {
        let few = text.iter().filter(|&&byte| byte == 0).count() * 1000 < text.len();
        if few && !name.ends_with(".parquet") {
            let line = 1 + text[..at].iter().filter(|&&byte| byte == b'\n').count();
            return fail(&format!("line {line} holds a NUL byte, which no text has; remove it"));
        }
        return fail(match name.ends_with(".parquet") {
            true => "does not begin with `PAR1`: it is damaged or not a Parquet file",
            false => "holds binary data: it is neither CSV (plain or gzip) nor Parquet",
        });
    }
    let tabs = name.trim_end_matches(".gz").ends_with(".tsv");
    layout(path, &text, gzip, tabs).map(Some)
}

/// Reads as much of the beginning as it takes to tell what a file is. Failures that are the business of the
/// reader (a truncated gzip stream) end the text early here.
fn first_bytes(path: &Path, gzip: bool) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    let mut text = Text::open(path, gzip)?.take(1 << 16);
    match text.read_to_end(&mut start) {
        Err(error) if !gzip => Err(Error::io(path, &error)),
        _ => Ok(start),
    }
}

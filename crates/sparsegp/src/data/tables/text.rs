//! How a text file is laid out: what stands above its header, and what separates its columns.

use super::cells::shown;
use super::charset::Decoded;
use crate::error::{Error, Result};
use crate::limits::ROW;
use csv::ByteRecord;
use encoding_rs::{Encoding, UTF_8};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// How a text file is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub delimiter: u8,
    pub gzip: bool,
    pub encoding: &'static Encoding,
    /// Bytes above the header.
    pub start: u64,
}

impl Dialect {
    /// Says whether the file can be read in order only.
    pub fn in_order(self) -> bool {
        self.gzip || self.encoding != UTF_8
    }
}

/// Small enough that reading from many places does not read much in vain.
pub(super) const BUFFER: usize = 1 << 15;

/// Follows the last byte of a file. It forms a separate record unless a quote is still open.
pub(super) const END: &[u8] = b"\n\x1eEND\x1e";

enum Inner {
    Plain(File),
    InOrder(Box<dyn Read + Send + Sync>),
}

/// The text of a file, decompressed, from its header on.
pub(super) struct Text {
    inner: Inner,
    start: u64,
    /// How much of [`END`] has been read; all of it where it is not wanted.
    ended: usize,
    /// Bytes read since a record began, as far as whoever reads says it, and the most there may be.
    record: u64,
    longest: u64,
}

impl Text {
    /// Opens a file, decompressed and as UTF-8.
    pub fn open(path: &Path, gzip: bool, encoding: &'static Encoding) -> Result<Self> {
        let file = File::open(path).map_err(|error| Error::io(path, &error))?;
        // The CSV reader has its own buffer; the decoder needs one below it.
        let unzipped = |file| MultiGzDecoder::new(BufReader::with_capacity(BUFFER, file));
        let inner = match (gzip, encoding == UTF_8) {
            (true, true) => Inner::InOrder(Box::new(unzipped(file))),
            (true, false) => Inner::InOrder(Box::new(Decoded::new(unzipped(file), encoding))),
            (false, false) => Inner::InOrder(Box::new(Decoded::new(file, encoding))),
            (false, true) => Inner::Plain(file),
        };
        Ok(Self { inner, start: 0, ended: END.len(), record: 0, longest: ROW.now() })
    }

    /// Says that a record begins.
    pub fn begin_record(&mut self) {
        self.record = 0;
    }

    /// Opens a file at its header, with [`END`] after its last byte.
    pub fn of(path: &Path, dialect: Dialect) -> Result<Self> {
        let mut text = Self::open(path, dialect.gzip, dialect.encoding)?;
        let skipped = match &mut text.inner {
            Inner::Plain(file) => file.seek(SeekFrom::Start(dialect.start)).map(drop),
            Inner::InOrder(decoder) => {
                io::copy(&mut decoder.by_ref().take(dialect.start), &mut io::sink()).map(drop)
            }
        };
        skipped.map_err(|error| Error::io(path, &error))?;
        (text.start, text.ended) = (dialect.start, 0);
        Ok(text)
    }
}

impl Read for Text {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.inner {
            Inner::Plain(file) => file.read(buffer)?,
            Inner::InOrder(decoder) => decoder.read(buffer)?,
        };
        self.record += count as u64;
        if self.record > self.longest {
            return Err(io::Error::from(ErrorKind::FileTooLarge));
        }
        if count > 0 || buffer.is_empty() {
            return Ok(count);
        }
        let rest = &END[self.ended..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.ended += count;
        Ok(count)
    }
}

impl Seek for Text {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let unsupported = |what| Err(io::Error::new(ErrorKind::Unsupported, what));
        match (&mut self.inner, to) {
            (Inner::Plain(file), SeekFrom::Start(byte)) => {
                self.ended = 0;
                Ok(file.seek(SeekFrom::Start(self.start + byte))? - self.start)
            }
            (Inner::Plain(_), _) => unsupported("only from the start"),
            (Inner::InOrder(_), _) => unsupported("gzip is read in order"),
        }
    }
}

/// Separators of columns, likely ones first.
const SEPARATORS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// Tells how a text file is laid out by its beginning, which is UTF-8 by now. `tabs`: its name says that tabs separate its
/// columns.
pub(super) fn layout(
    path: &Path,
    text: &[u8],
    (gzip, encoding): (bool, &'static Encoding),
    tabs: bool,
) -> Result<Dialect> {
    let (start, said) = above(text);
    let body = &text[start..];
    let dialect = |delimiter| Dialect { delimiter, gzip, encoding, start: start as u64 };
    if let Some(delimiter) = said {
        return Ok(dialect(delimiter));
    }
    if tabs && first_line(body).contains(&b'\t') {
        return Ok(dialect(b'\t'));
    }
    let mut best: Option<(usize, usize, u8)> = None;
    let mut below = 0;
    for separator in SEPARATORS {
        let widths = widths(body, separator);
        let Some((&header, rows)) = widths.split_first() else { continue };
        if header > 1 {
            let agree = rows.iter().filter(|&&width| width == header).count();
            if best.is_none_or(|(most, fields, _)| (agree, header) > (most, fields)) {
                best = Some((agree, header, separator));
            }
        } else if let Some(&width) = rows.last().filter(|&&width| width > 1) {
            let alike = rows.iter().filter(|&&other| other == width).count();
            if alike > 1 && alike + 2 > rows.len() {
                below = width;
            }
        }
    }
    if let Some((_, _, separator)) = best {
        return Ok(dialect(separator));
    }
    let fail = |reason: String| Err(Error::File { path: path.into(), reason });
    let header = String::from_utf8_lossy(first_line(body)).trim().to_owned();
    if below > 1 {
        return fail(format!(
            "the first line (`{}`) is not a header: the rows below it have {below} fields; remove what stands above the \
             header",
            shown(&header)
        ));
    }
    let words =
        |line: &[u8]| line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
    let mut lines =
        body.split(|&byte| byte == b'\n' || byte == b'\r').filter(|line| !line.is_empty());
    let (first, second) = (lines.next().map_or(0, words), lines.next().map_or(0, words));
    if first > 1 && second >= first && !header.starts_with('"') || header.contains("\" \"") {
        return fail(format!(
            "the columns seem to be separated by blanks (`{}`); separate them by commas or tabs",
            shown(&header)
        ));
    }
    Ok(dialect(b','))
}

/// Returns the numbers of fields of the first records.
fn widths(body: &[u8], separator: u8) -> Vec<usize> {
    const RECORDS: usize = 20;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .from_reader(body);
    let mut record = ByteRecord::new();
    let mut widths = Vec::with_capacity(RECORDS);
    while widths.len() < RECORDS && reader.read_byte_record(&mut record).unwrap_or(false) {
        widths.push(record.len());
    }
    widths
}

fn first_line(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == b'\n' || byte == b'\r').next().unwrap_or_default()
}

/// Says how many bytes stand above the header: comments, and a line `sep=;` with the separator that it names.
fn above(text: &[u8]) -> (usize, Option<u8>) {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let mut at = if text.starts_with(MARK) { MARK.len() } else { 0 };
    let mark = at;
    let mut said = None;
    let mut comment: Option<&[u8]> = None;
    loop {
        let line = first_line(&text[at..]);
        let bare = line.trim_ascii();
        let is_sep =
            bare.len() == 5 && bare[..4].eq_ignore_ascii_case(b"sep=") || line == b"sep=\t";
        if is_sep && said.is_none() {
            said = line.get(4).copied();
        } else if line.starts_with(b"#") {
            comment = Some(line);
        } else if !(bare.is_empty() && (comment.is_some() || said.is_some())) {
            break;
        }
        let end = at + line.len();
        let breaks =
            text[end..].iter().take(2).take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        let breaks = if text[end..].starts_with(b"\n") { 1 } else { breaks };
        if breaks == 0 {
            // nothing but comments: the last one is all there is
            return (mark, said);
        }
        at = end + breaks;
    }
    // a header with a mark before it, as NumPy writes it
    if let Some(comment) = comment {
        let data = first_line(&text[at..]);
        for separator in said.map_or(SEPARATORS.to_vec(), |one| vec![one]) {
            let fields = |line: &[u8]| line.split(|&byte| byte == separator).count();
            let is_number = |cell: &[u8]| {
                std::str::from_utf8(cell).is_ok_and(|cell| cell.trim().parse::<f64>().is_ok())
            };
            let of_numbers = data.split(|&byte| byte == separator).all(is_number);
            if fields(comment) == fields(data) && fields(data) > 1 && of_numbers {
                let offset = comment.as_ptr() as usize - text.as_ptr() as usize;
                let blanks = comment[1..].iter().take_while(|byte| **byte == b' ').count();
                return (offset + 1 + blanks, said);
            }
        }
    }
    (if at == mark { 0 } else { at }, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_separator_is_the_one_that_rows_agree_on() {
        for (text, separator, start) in [
            ("a,b\n1,2\n", b',', 0),
            ("a;b;y\n1,5;2;3\n", b';', 0),
            ("a;\"b, kg\";y\n1;2;3\n", b';', 0),
            ("a;b (m,n);y\n1;2;3\n", b';', 0),
            ("a|b|y\n1|2|3\n", b'|', 0),
            ("a\tb, kg\ty\n1\t2\t3\n", b'\t', 0),
            ("a;b\r1;2\r3;4\r", b';', 0),
            ("sep=;\r\na;b\r\n1;2\r\n", b';', 7),
            ("# by hand\n# m, kg\na,b,y\n1,2,3\n", b',', 18),
            ("# a,b\n1,2\n", b',', 2),
            ("\u{feff}# x\na;b\n1;2\n", b';', 7),
            ("#a;b\nc;d\n", b';', 5),
            ("y\n1\n", b',', 0),
            ("", b',', 0),
        ] {
            let found = layout(Path::new("f"), text.as_bytes(), (false, UTF_8), false).unwrap();
            assert_eq!((found.delimiter, found.start), (separator, start), "{text:?}");
        }
    }

    #[test]
    fn what_is_not_a_header_is_refused() {
        for (text, part) in [
            (
                "Report\n\na,b\n1,2\n3,4\n",
                "(`Report`) is not a header: the rows below it have 2 fields",
            ),
            ("a  b  y\n1  2  3\n", "separated by blanks"),
            ("\"a\" \"y\"\n\"1\" 2 3\n", "separated by blanks"),
        ] {
            let error = layout(Path::new("f"), text.as_bytes(), (false, UTF_8), false)
                .unwrap_err()
                .to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}

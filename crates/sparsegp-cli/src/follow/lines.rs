//! The rows of a stream of text, as they come.

use crate::fail::{Fail, Result};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Bytes of a row above which a quote was never closed.
const LONGEST: usize = 1 << 20;
/// Rows that wait to be taken.
const WAITING: usize = 1 << 14;
/// How often a wait looks whether it should end.
const GLANCE: Duration = Duration::from_millis(100);

/// What a wait for rows came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// As many rows as were asked for are there, or no more come in the time.
    Rows,
    /// No row has come until the deadline.
    Idle,
    /// The stream has ended.
    End,
    /// Somebody asked to stop.
    Stopped,
}

/// Rows that a thread reads while others are learnt.
pub struct Lines {
    rows: Receiver<std::result::Result<Vec<u8>, String>>,
    /// The names of the columns, below a line that says how cells are separated if there is one.
    pub header: Vec<u8>,
    /// Rows that were read and not taken.
    pub pending: VecDeque<Vec<u8>>,
    ended: bool,
    /// Why no more can be read, which is reported when what was read has been taken.
    failed: Option<String>,
    name: String,
}

impl Lines {
    /// Begins to read a file, or stdin for `-`, and waits for its header.
    ///
    /// # Errors
    /// For what is not a stream of text, has no header or cannot be read; an interruption.
    pub fn open(path: &Path, stopped: &dyn Fn() -> bool) -> Result<Self> {
        let (name, source): (String, Box<dyn Read + Send>) = match path.as_os_str() == "-" {
            true => ("stdin".into(), Box::new(std::io::stdin())),
            false => {
                let opened = File::open(path);
                let name = path.display().to_string();
                let opened = opened.map_err(|e| Fail::Work(format!("{name}: {e}")))?;
                (name, Box::new(opened))
            }
        };
        let (sender, rows) = sync_channel(WAITING);
        std::thread::spawn(move || read(BufReader::with_capacity(1 << 16, source), &sender));
        let (header, pending) = (Vec::new(), VecDeque::new());
        let mut lines = Self { rows, header, pending, ended: false, failed: None, name };
        let (mut separator, mut comment) = (Vec::new(), None);
        loop {
            match lines.wait(1, None, None, stopped)? {
                Waited::Stopped => return Err(Fail::Interrupted),
                Waited::End => break,
                _ => {}
            }
            let Some(mut line) = lines.pending.pop_front() else { break };
            if let Some(rest) = line.strip_prefix(b"\xef\xbb\xbf") {
                line = rest.to_vec();
            }
            let text = line.trim_ascii();
            if text.len() >= 4 && text[..4].eq_ignore_ascii_case(b"sep=") {
                separator = line;
            } else if text.starts_with(b"#") {
                comment = Some(line);
            } else if !text.is_empty() {
                lines.header = separator;
                match comment.and_then(|comment| marked(&comment, &line)) {
                    // names with a mark before them, as NumPy writes them: this is a row
                    Some(names) => {
                        lines.header.extend(names);
                        lines.pending.push_front(line);
                    }
                    None => lines.header.extend(line),
                }
                return Ok(lines);
            }
        }
        Err(Fail::Work(format!("{}: it ended before there was a header", lines.name)))
    }

    /// Waits until `count` rows are pending, the stream ends, nothing has come for `patience` (none: as long as it takes) while some
    /// are there, or nothing is there at `deadline`.
    ///
    /// # Errors
    /// What reading gives, once all rows before it have been taken.
    pub fn wait(
        &mut self,
        count: usize,
        patience: Option<Duration>,
        deadline: Option<Instant>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Waited> {
        let mut last = Instant::now();
        while self.pending.len() < count && !self.ended {
            match self.rows.recv_timeout(GLANCE) {
                Ok(Ok(row)) => {
                    self.pending.push_back(row);
                    last = Instant::now();
                }
                Ok(Err(reason)) => (self.failed, self.ended) = (Some(reason), true),
                Err(RecvTimeoutError::Disconnected) => self.ended = true,
                Err(RecvTimeoutError::Timeout) => {
                    if stopped() {
                        return Ok(Waited::Stopped);
                    }
                    let over = patience.is_some_and(|patience| last.elapsed() >= patience);
                    if over && !self.pending.is_empty() {
                        return Ok(Waited::Rows);
                    }
                    if self.pending.is_empty() && deadline.is_some_and(|d| Instant::now() >= d) {
                        return Ok(Waited::Idle);
                    }
                }
            }
        }
        if !self.pending.is_empty() {
            return Ok(Waited::Rows);
        }
        match self.failed.take() {
            Some(reason) => Err(Fail::Work(format!("{}: {reason}", self.name))),
            None => Ok(Waited::End),
        }
    }

    /// Takes at most so many rows that are pending.
    pub fn take(&mut self, most: usize) -> Vec<Vec<u8>> {
        let count = most.min(self.pending.len());
        self.pending.drain(..count).collect()
    }

    /// Gives back rows that were taken last.
    pub fn give_back(&mut self, rows: Vec<Vec<u8>>) {
        rows.into_iter().rev().for_each(|row| self.pending.push_front(row));
    }

    /// Returns what errors call the stream.
    pub fn name(&self) -> PathBuf {
        PathBuf::from(&self.name)
    }
}

/// Returns the names in a comment, if it has as many cells as the numbers below it.
fn marked(comment: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    let names = comment.trim_ascii().strip_prefix(b"#")?.trim_ascii_start();
    let of_numbers = |separator: u8| {
        let is_number = |cell: &[u8]| {
            std::str::from_utf8(cell).is_ok_and(|cell| cell.trim().parse::<f64>().is_ok())
        };
        let cells = |line: &[u8]| line.split(|byte| *byte == separator).count();
        cells(names) == cells(data)
            && cells(data) > 1
            && data.split(|byte| *byte == separator).all(is_number)
    };
    SEPARATORS.iter().any(|s| of_numbers(*s)).then(|| [names, b"\n"].concat())
}

/// What may separate cells.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Where a reader of cells is.
#[derive(Clone, Copy, Default)]
struct Quotes {
    quoted: bool,
    /// Within quotes, after one that ends them unless another follows.
    after: bool,
    /// Not at the beginning of a cell.
    inside: bool,
}

impl Quotes {
    /// Passes over some bytes of a row; quotes open only at the beginning of a cell.
    fn pass(&mut self, bytes: &[u8], separator: Option<u8>) {
        for byte in bytes {
            if self.quoted {
                match (*byte, self.after) {
                    (b'"', true) => self.after = false,
                    (b'"', false) => self.after = true,
                    (_, false) => {}
                    (_, true) => (self.quoted, self.after) = (false, false),
                }
                if self.quoted {
                    continue;
                }
            }
            let separates = match separator {
                Some(one) => *byte == one,
                None => SEPARATORS.contains(byte),
            };
            match *byte {
                b'"' if !self.inside => (self.quoted, self.inside) = (true, true),
                _ => self.inside = !separates,
            }
        }
    }

    fn open(self) -> bool {
        self.quoted && !self.after
    }
}

/// Cuts the stream at the ends of rows: at line ends outside of quotes.
fn read(mut source: BufReader<Box<dyn Read + Send>>, to: &SyncSender<Result<Vec<u8>, String>>) {
    if let Some(reason) = source.fill_buf().ok().and_then(no_text) {
        let _ = to.send(Err(reason.into()));
        return;
    }
    let (mut row, mut count, mut quotes) = (Vec::new(), 0_usize, Quotes::default());
    // that which is most frequent in the names
    let mut separator = None;
    let unclosed = |count: usize| {
        Err(format!(
            "data row {count} has a quote that is never closed: close it, or double a quote that is part of a text"
        ))
    };
    loop {
        let before = row.len();
        match source.read_until(b'\n', &mut row) {
            Err(error) => {
                let _ = to.send(Err(format!("cannot be read after {count} lines: {error}")));
                return;
            }
            Ok(0) => break,
            Ok(_) => {}
        }
        quotes.pass(&row[before..], separator);
        if quotes.open() {
            if row.len() > LONGEST {
                let _ = to.send(unclosed(count));
                return;
            }
            continue;
        }
        quotes = Quotes::default();
        let own = std::mem::take(&mut row);
        // blank lines are not rows
        if own.iter().all(|byte| matches!(byte, b'\r' | b'\n')) && count > 0 {
            continue;
        }
        if count == 0 && !own.trim_ascii().is_empty() && !own.starts_with(b"#") {
            let times = |s: &u8| own.iter().filter(|byte| *byte == s).count();
            separator = SEPARATORS.into_iter().max_by_key(times).filter(|s| times(s) > 0);
            if own.trim_ascii().contains(&b'\r') {
                let _ = to.send(Err(
                    "ends its lines with only a carriage return: pass it through `tr '\\r' '\\n'`"
                        .into(),
                ));
                return;
            }
        }
        if to.send(Ok(own)).is_err() {
            return;
        }
        count += 1;
    }
    if !row.is_empty() {
        let _ = to.send(match quotes.open() {
            true => unclosed(count),
            false => Ok(row),
        });
    }
}

/// Returns why these first bytes are of no stream of text.
fn no_text(first: &[u8]) -> Option<&'static str> {
    match first {
        [0x1f, 0x8b, ..] => Some(
            "is gzip-compressed: unpack it into the pipe, `zcat FILE | sparsegp follow MODEL -`",
        ),
        [b'P', b'A', b'R', b'1', ..] => {
            Some("is a Parquet file: `sparsegp update` takes such tables")
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            Some("is UTF-16: pass it through `iconv -f utf-16 -t utf-8`")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Quotes, marked};

    #[test]
    fn quotes_open_at_the_beginning_of_a_cell() {
        let open = |text: &str, separator| {
            // in pieces of any size
            let mut all = Quotes::default();
            all.pass(text.as_bytes(), separator);
            let mut pieces = Quotes::default();
            text.as_bytes().chunks(2).for_each(|piece| pieces.pass(piece, separator));
            assert_eq!(all.open(), pieces.open(), "{text}");
            all.open()
        };
        for closed in
            ["1,2\n", "\"a\",2", "5\" pipe,3", "\"a \"\"b\"\" c\",1", "", "1;\"x\";2", "\"\",1"]
        {
            assert!(!open(closed, None), "{closed}");
        }
        for text in ["\"a\n", "1,\"two\nlines", "1;\"", "\"a \"\"", "\"\"\""] {
            assert!(open(text, None), "{text}");
        }
        assert!(!open("a, \"b\t2", Some(b'\t')) && !open("x,\"b\t2", Some(b'\t')));
    }

    #[test]
    fn names_with_a_mark_are_names() {
        assert_eq!(marked(b"# x,y\n", b"1,2\n"), Some(b"x,y\n".to_vec()));
        for (comment, data) in [("# from the meter", "x,y"), ("# a,b", "x,y"), ("# a,b,c", "1,2")] {
            assert_eq!(marked(comment.as_bytes(), data.as_bytes()), None, "{comment}");
        }
    }
}

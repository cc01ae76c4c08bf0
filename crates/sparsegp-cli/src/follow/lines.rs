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
    /// The stream has ended.
    End,
    /// Somebody asked to stop.
    Stopped,
}

/// Rows that a thread reads while others are learnt.
pub struct Lines {
    rows: Receiver<std::result::Result<Vec<u8>, String>>,
    /// Everything up to the names of the columns.
    pub header: Vec<u8>,
    /// Rows that were read and not taken.
    pub pending: VecDeque<Vec<u8>>,
    ended: bool,
    name: String,
}

impl Lines {
    /// Begins to read a file, or stdin for `-`, and waits for its header.
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
        let mut lines = Self { rows, header, pending, ended: false, name };
        let mut more = Waited::Rows;
        while more != Waited::End {
            more = lines.wait(1, None, stopped)?;
            if more == Waited::Stopped {
                return Err(Fail::Interrupted);
            }
            let Some(line) = lines.pending.pop_front() else { break };
            lines.header.extend_from_slice(&line);
            // comments and Excel's line come before the names
            let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line).trim_ascii();
            let before = text.is_empty() || text.starts_with(b"#") || text.starts_with(b"sep=");
            if !before {
                return Ok(lines);
            }
        }
        Err(Fail::Work(format!("{}: it ended before there was a header", lines.name)))
    }

    /// Waits until `count` rows are pending, the stream ends, or nothing has come for `patience` (none: as long as it takes) while some
    /// are there.
    ///
    /// # Errors
    /// What reading gives.
    pub fn wait(
        &mut self,
        count: usize,
        patience: Option<Duration>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Waited> {
        let mut last = Instant::now();
        while self.pending.len() < count && !self.ended {
            match self.rows.recv_timeout(GLANCE) {
                Ok(Ok(row)) => {
                    self.pending.push_back(row);
                    last = Instant::now();
                }
                Ok(Err(reason)) => return Err(Fail::Work(format!("{}: {reason}", self.name))),
                Err(RecvTimeoutError::Disconnected) => self.ended = true,
                Err(RecvTimeoutError::Timeout) => {
                    if stopped() {
                        return Ok(Waited::Stopped);
                    }
                    let over = patience.is_some_and(|patience| last.elapsed() >= patience);
                    if over && !self.pending.is_empty() {
                        return Ok(Waited::Rows);
                    }
                }
            }
        }
        Ok(if self.ended && self.pending.is_empty() { Waited::End } else { Waited::Rows })
    }

    /// Takes at most so many rows that are pending.
    pub fn take(&mut self, most: usize) -> Vec<Vec<u8>> {
        let count = most.min(self.pending.len());
        self.pending.drain(..count).collect()
    }

    /// What errors call the stream.
    pub fn name(&self) -> PathBuf {
        PathBuf::from(&self.name)
    }
}

/// Cuts the stream at the ends of rows: at line ends outside of quotes, which open at the beginning of a cell alone.
fn read(mut source: BufReader<Box<dyn Read + Send>>, to: &SyncSender<Result<Vec<u8>, String>>) {
    if let Some(reason) = source.fill_buf().ok().and_then(no_text) {
        let _ = to.send(Err(reason.into()));
        return;
    }
    let (mut row, mut count) = (Vec::new(), 0_usize);
    loop {
        let before = row.len();
        match source.read_until(b'\n', &mut row) {
            Err(error) => {
                let _ = to.send(Err(format!("cannot be read after {count} lines: {error}")));
                return;
            }
            Ok(0) => break,
            Ok(_) if open_quote(&row) => {
                if row.len() > LONGEST {
                    let _ = to.send(Err(format!(
                        "data row {count} has a quote that is never closed: close it, or double a quote that is part of \
                         a text"
                    )));
                    return;
                }
                continue;
            }
            Ok(_) => {}
        }
        // blank lines are no rows
        let blank = before == 0 && row.trim_ascii().is_empty() && count > 0;
        let own = std::mem::take(&mut row);
        if !blank && to.send(Ok(own)).is_err() {
            return;
        }
        count += usize::from(!blank);
    }
    if !row.is_empty() {
        let _ = to.send(Err(format!(
            "data row {count} has a quote that is never closed: close it, or double a quote that is part of a text"
        )));
    }
}

/// Why these first bytes are of no stream of text.
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

/// Whether a quote is open at the end of this text.
fn open_quote(text: &[u8]) -> bool {
    let (mut quoted, mut begins) = (false, true);
    let mut bytes = text.iter().peekable();
    while let Some(byte) = bytes.next() {
        if quoted {
            if *byte == b'"' {
                // a doubled one is part of the text
                quoted = bytes.next_if(|next| **next == b'"').is_some();
            }
            continue;
        }
        quoted = begins && *byte == b'"';
        begins = matches!(byte, b',' | b';' | b'\t' | b'|') || (begins && *byte == b' ');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::open_quote;

    #[test]
    fn quotes_open_at_the_beginning_of_a_cell() {
        for closed in ["1,2\n", "\"a\",2", "5\" pipe,3", "\"a \"\"b\"\" c\",1", "", "1; \"x\";2"] {
            assert!(!open_quote(closed.as_bytes()), "{closed}");
        }
        for open in ["\"a\n", "1,\"two\nlines", "1;\"", "1, \"a\"\""] {
            assert!(open_quote(open.as_bytes()), "{open}");
        }
    }
}

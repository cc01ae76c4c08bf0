//! The file of predictions, which a resumed run cuts where the last save was.

use crate::fail::{Fail, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Where predictions go, as they come.
pub struct Sink {
    file: File,
    name: String,
    /// Bytes so far.
    pub written: u64,
}

impl Sink {
    /// Begins a file with this header, or resumes after its first bytes, if a run has left so many:
    /// what it wrote after its last save is predicted again. Refuses a file that is another.
    pub fn open(path: &Path, header: &str, behind: u64) -> Result<Self> {
        let name = path.display().to_string();
        let failed = |e: std::io::Error| Fail::output(&name, &e);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(failed)?;
        let resumes = behind > 0 && file.metadata().map_err(failed)?.len() > 0;
        if resumes {
            let mut first = vec![0; header.len()];
            let mut last = [0];
            let same = file.read_exact(&mut first).is_ok()
                && first == header.as_bytes()
                && file.seek(SeekFrom::Start(behind - 1)).is_ok()
                && file.read_exact(&mut last).is_ok()
                && last == *b"\n";
            if !same {
                return Err(Fail::usage(format!(
                    "{name}: these are not the predictions that the stream had so far; choose another name, or remove the file"
                )));
            }
        }
        let kept = if resumes { behind } else { 0 };
        let mut sink = Self { file, name, written: kept };
        sink.back_to(kept)?;
        if !resumes {
            sink.write(header)?;
        }
        Ok(sink)
    }

    /// Cuts off what was written after so many bytes.
    pub fn back_to(&mut self, bytes: u64) -> Result<()> {
        let done = self.file.set_len(bytes).and_then(|()| self.file.seek(SeekFrom::Start(bytes)));
        done.map_err(|e| Fail::output(&self.name, &e))?;
        self.written = bytes;
        Ok(())
    }

    /// Adds text.
    pub fn write(&mut self, text: &str) -> Result<()> {
        let done = self.file.write_all(text.as_bytes());
        done.map_err(|e| Fail::output(&self.name, &e))?;
        self.written += text.len() as u64;
        Ok(())
    }
}

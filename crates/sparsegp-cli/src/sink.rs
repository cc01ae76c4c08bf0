//! Lines of CSV to a file, compressed or not, or to stdout.

use crate::fail::{Fail, Result};
use crate::outputs::has_extension;
use flate2::Compression;
use flate2::write::GzEncoder;
use sparsegp::atomic::AtomicFile;
use std::io::{BufWriter, Stdout, Write};
use std::path::Path;

/// Where lines go.
pub enum Sink {
    Plain(BufWriter<AtomicFile>),
    Gzip(GzEncoder<BufWriter<AtomicFile>>),
    Stdout(BufWriter<Stdout>),
}

impl Sink {
    /// Opens a file, compressed if its name ends in .gz, or stdout.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Ok(Sink::Stdout(BufWriter::new(std::io::stdout()))) };
        let file = BufWriter::new(AtomicFile::create(path)?);
        Ok(match has_extension(path, "gz") {
            true => Sink::Gzip(GzEncoder::new(file, Compression::default())),
            false => Sink::Plain(file),
        })
    }

    /// Writes some lines.
    pub fn write(&mut self, text: &str) -> std::io::Result<()> {
        match self {
            Sink::Plain(sink) => sink.write_all(text.as_bytes()),
            Sink::Gzip(sink) => sink.write_all(text.as_bytes()),
            Sink::Stdout(sink) => sink.write_all(text.as_bytes()),
        }
    }

    /// Ends the file, which is there from now on.
    pub fn finish(self, path: &str) -> Result<()> {
        let failed = |e: std::io::Error| Fail::output(path, &e);
        let file = match self {
            Sink::Stdout(mut sink) => return sink.flush().map_err(failed),
            Sink::Plain(sink) => sink,
            Sink::Gzip(sink) => sink.finish().map_err(failed)?,
        };
        Ok(file.into_inner().map_err(|e| failed(e.into_error()))?.commit()?)
    }
}

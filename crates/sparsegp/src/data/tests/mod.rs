//! Tests of the readers on files that are written here.

mod batches;
mod csv;
mod encoding;
mod filling;
mod labels;
mod layout;
mod malformed;
mod many;
mod parquet;
mod side;
mod split;
mod stream;
mod written;

use super::*;
use crate::error::{Error, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder of files that disappears with the test.
pub(super) struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }
}

pub(super) fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}

/// All columns but `y` as inputs.
pub(super) fn load(path: &PathBuf) -> Result<Loaded> {
    Table::open(path)?.select(&Selection::targets(["y"]))?.read_all()
}

pub(super) fn column(mat: &faer::Mat<f64>, j: usize) -> Vec<f64> {
    mat.col_as_slice(j).to_vec()
}

/// The error's sentence, after checking that it has these parts.
#[track_caller]
pub(super) fn fails<T>(result: Result<T>, parts: &[&str]) -> Error {
    let Err(error) = result else { panic!("this should have failed: {parts:?}") };
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "`{text}` lacks `{part}`");
    }
    error
}

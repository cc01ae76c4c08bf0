//! What stands for Parquet without the feature `parquet`: such files are refused by name.

#[path = "parquet/kind.rs"]
#[allow(dead_code)] // nothing makes a column that cannot be read
mod kind;

use super::cursor::{Plan, Reader};
use crate::error::{Error, Result};
pub(super) use kind::Kind;
use std::path::Path;
use std::sync::Arc;

/// Rows between two places to read from.
pub(super) const NEAR: usize = 1 << 10;

/// A column of a schema that is never read.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub name: String,
    pub kind: Kind,
}

fn refused(path: &Path) -> Error {
    Error::File {
        path: path.into(),
        reason: "is a Parquet file, and this program was built without the feature `parquet` of sparsegp: build it with the feature, or \
                 write the table as CSV"
            .into(),
    }
}

/// Refuses the file.
pub(super) fn schema(path: &Path) -> Result<(Vec<Column>, usize)> {
    Err(refused(path))
}

/// Refuses the file.
pub(super) fn reader(plan: &Plan, _: &Arc<Vec<Column>>) -> Result<Box<dyn Reader>> {
    Err(refused(&plan.path))
}

//! What single rows contribute, encoded in bytes, so that another process does the same.

use crate::error::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A kind of thing, by its name, and the state of one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Name of the kind.
    pub kind: String,
    state: Vec<u8>,
}

impl Description {
    /// Creates the description of a thing of this kind in this state.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a state that cannot be written, which is a bug.
    pub fn new(kind: &str, state: &impl Serialize) -> Result<Self> {
        let state = postcard::to_stdvec(state)
            .map_err(|e| Error::Invalid(format!("`{kind}` cannot be sent: {e}")))?;
        Ok(Self { kind: kind.into(), state })
    }

    /// Returns the state.
    ///
    /// # Errors
    /// [`Error::Invalid`] for that of another kind.
    pub fn state<T: DeserializeOwned>(&self) -> Result<T> {
        postcard::from_bytes(&self.state)
            .map_err(|e| Error::Invalid(format!("`{}` cannot be read: {e}", self.kind)))
    }
}

/// Returns the error of what cannot be sent to other processes.
///
/// # Errors
/// Always: [`Error::Invalid`] with the reason.
pub(crate) fn stays<T>(reason: &str) -> Result<T> {
    Err(Error::Invalid(format!("the rows are in other processes, and {reason}")))
}

//! Which coordinates q takes as dependent.

use crate::error::{Error, Result};

/// Blocks of coordinates: q is independent between them (structured mean field).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Blocks {
    /// All coordinates in one.
    #[default]
    Whole,
    /// Every coordinate for itself: mean field.
    Diagonal,
    /// Of these indices.
    Of(Vec<Vec<usize>>),
}

impl Blocks {
    /// Makes blocks of consecutive coordinates of these sizes, such as the layers of a network.
    pub fn consecutive(sizes: &[usize]) -> Self {
        let mut from = 0;
        let block = |size: &usize| {
            from += size;
            (from - size..from).collect()
        };
        Blocks::Of(sizes.iter().map(block).collect())
    }

    /// Checks that every one of D coordinates is in exactly one block.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the first coordinate that is in none or in several, or does not exist.
    pub fn check(&self, dim: usize) -> Result<()> {
        let Blocks::Of(blocks) = self else { return Ok(()) };
        let mut seen = vec![false; dim];
        for i in blocks.iter().flatten() {
            match seen.get_mut(*i) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => return invalid(format!("coordinate {i} is in several blocks")),
                None => {
                    return invalid(format!("there is no coordinate {i} among {dim}, from 0 on"));
                }
            }
        }
        if blocks.iter().any(Vec::is_empty) {
            return invalid("a block has no coordinates".into());
        }
        match seen.iter().position(|seen| !seen) {
            None => Ok(()),
            Some(i) => invalid(format!("coordinate {i} is in no block")),
        }
    }

    /// Returns the indices of every block for D coordinates.
    pub fn indices(&self, dim: usize) -> Vec<Vec<usize>> {
        match self {
            Blocks::Whole => vec![(0..dim).collect()],
            Blocks::Diagonal => (0..dim).map(|i| vec![i]).collect(),
            Blocks::Of(blocks) => blocks.clone(),
        }
    }
}

fn invalid(text: String) -> Result<()> {
    Err(Error::Invalid(format!("{text}: every coordinate belongs to one block")))
}

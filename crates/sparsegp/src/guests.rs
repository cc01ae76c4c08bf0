//! Names that other crates give their kernels, likelihoods and mean functions, in this process.

use crate::error::{Error, Result};
use std::sync::{PoisonError, RwLock};

/// An entry of a registry.
pub trait Named: Copy + 'static {
    /// What it is, for messages: `kernel`.
    const WHAT: &'static str;
    /// Returns its name.
    fn name(&self) -> &'static str;
    /// Returns other names that are understood.
    fn aliases(&self) -> &'static [&'static str];
    /// Returns whether another entry is this one.
    fn is(&self, other: &Self) -> bool;
    /// Returns the entries of this crate.
    fn own() -> &'static [Self];
}

/// The entries of other crates.
pub struct Guests<E: 'static>(RwLock<Vec<&'static E>>);

impl<E: Named> Guests<E> {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self(RwLock::new(Vec::new()))
    }

    /// Returns every entry, those of this crate first.
    pub fn all(&self) -> Vec<&'static E> {
        let guests = self.0.read().unwrap_or_else(PoisonError::into_inner);
        E::own().iter().chain(guests.iter().copied()).collect()
    }

    /// Finds the entry of a name or alias, in any capitals.
    pub fn find(&self, name: &str) -> Option<&'static E> {
        let name = name.to_ascii_lowercase();
        let called = |e: &&E| e.name() == name || e.aliases().contains(&name.as_str());
        // a look at those of this crate needs no lock
        E::own().iter().find(called).or_else(|| self.all().into_iter().find(called))
    }

    /// Adds an entry; the same one may be added again.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name or alias that is taken, or that specifications could not name.
    pub fn register(&self, entry: E) -> Result<()> {
        let mut guests = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if guests.iter().any(|e| e.is(&entry)) {
            return Ok(());
        }
        for name in entry.aliases().iter().chain([&entry.name()]) {
            let plain =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
            let what = E::WHAT;
            if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
                return Err(Error::Invalid(format!(
                    "a {what} cannot be registered as `{name}`: names are small letters, digits, `_` and `-`, a letter \
                     first"
                )));
            }
            let mut others = E::own().iter().chain(guests.iter().copied());
            if others.any(|e| e.name() == *name || e.aliases().contains(name)) {
                return Err(Error::Invalid(format!(
                    "a {what} cannot be registered as `{name}`: there is another one of this name"
                )));
            }
        }
        // once for each of a program
        guests.push(Box::leak(Box::new(entry)));
        Ok(())
    }
}

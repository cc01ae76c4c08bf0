//! Kernels in parts, and what may be done to them.

/// What may be done to a kernel, in the order in which it is tried.
#[derive(Clone, Copy)]
pub(super) enum Change {
    /// A rougher family.
    Family(&'static str),
    /// Functions of one and two inputs instead of all.
    OfPairs,
    /// One lengthscale for all inputs.
    Shared,
    /// A lengthscale for each input again.
    Own,
    /// Another term.
    Plus(Term),
}

/// A term beside the first.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Term {
    Linear,
    /// What varies slowly beside what varies fast.
    Slow,
    Wave,
    Periodic,
    OfEachInput,
}

/// A smooth term with a state-space form.
const SLOW: &str = " + matern52";

/// A kernel in parts.
#[derive(Clone)]
pub(super) struct Structure {
    pub(super) family: &'static str,
    pub(super) of_pairs: bool,
    pub(super) shared: bool,
    pub(super) terms: Vec<Term>,
    /// Terms of known periods, after all others.
    pub(super) seasons: String,
}

impl Structure {
    pub(super) fn with(&self, change: Change) -> Self {
        let mut own = self.clone();
        match change {
            Change::Family(family) => own.family = family,
            Change::OfPairs => own.of_pairs = true,
            Change::Shared => own.shared = true,
            Change::Own => own.shared = false,
            Change::Plus(term) => own.terms.push(term),
        }
        own
    }

    pub(super) fn specification(&self) -> String {
        let shared = if self.shared { "ard=false" } else { "" };
        let mut all = match (self.of_pairs, self.shared) {
            (false, false) => self.family.to_owned(),
            (false, true) => format!("{}({shared})", self.family),
            (true, false) => format!("additive(base={}, order=2)", self.family),
            (true, true) => format!("additive(base={}, order=2, {shared})", self.family),
        };
        for term in &self.terms {
            all += match term {
                Term::Linear => " + linear",
                Term::Slow => SLOW,
                Term::Wave => " + cosine",
                Term::Periodic => " + periodic",
                Term::OfEachInput => " + additive",
            };
        }
        all + &self.seasons
    }

    /// Returns whether a change makes it another.
    pub(super) fn may(&self, change: Change) -> bool {
        match change {
            Change::Plus(Term::OfEachInput) => !self.of_pairs,
            Change::Own => self.shared,
            _ => true,
        }
    }
}

//! Equal rows: w rows that are equal in everything are one row of weight w to a likelihood, and cost as much as one.

use super::dataset::counted;
use super::{AUTO_EXACT, Dataset, Scaling};
use crate::data::{Loaded, duplicate_rows};
use crate::error::Result;
use crate::likelihoods::Likelihood;
use crate::methods;

/// What rows are to be learnt by.
#[derive(Clone, Copy, Debug)]
pub struct Purpose<'a> {
    /// The method, by name or `auto`.
    pub method: &'a str,
    /// The likelihood, of however many classes.
    pub likelihood: &'a dyn Likelihood,
    /// Whether inducing points, or a number of them, were asked for.
    pub inducing: bool,
}

impl Dataset {
    /// Creates a data set from a table in memory, to be learnt in this way: where the method counts
    /// weights, rows that are equal in everything are made one of their weights' sum
    /// ([`Loaded::merged`]). The objective is the same, scales are those of all rows, and
    /// [`Dataset::rows`] counts them all.
    ///
    /// # Errors
    /// As for [`Dataset::from_loaded`]; an unknown method.
    pub fn for_purpose(
        loaded: Loaded,
        scaling: impl Into<Scaling>,
        purpose: Purpose<'_>,
    ) -> Result<Self> {
        let (rows, repeated) = (loaded.x.nrows(), duplicate_rows(loaded.x.as_ref()));
        let counted = counted(&loaded);
        let isolated = (repeated > 0).then(|| loaded.statistics().isolated().to_vec());
        let loaded = purpose.merged(loaded, repeated)?;
        let mut dataset = Self::of_rows(loaded, scaling.into(), rows, counted, repeated)?;
        if let Some(isolated) = isolated.filter(|all| all.len() == dataset.isolated.len()) {
            // with the numbers of all rows
            dataset.isolated = isolated;
        }
        Ok(dataset)
    }
}

impl Purpose<'_> {
    fn merged(&self, loaded: Loaded, repeated: usize) -> Result<Loaded> {
        // all weights 0 is an error, which another names
        let none = loaded.weights.iter().all(|weight| *weight == 0.0);
        let plain = loaded.weights.is_empty();
        if !loaded.deviations.is_empty() {
            // every row has its own q of inputs
            return Ok(loaded);
        }
        let samples = |entry: &methods::Entry| entry.method.sampler().is_some();
        let chains = methods::find(self.method).is_ok_and(samples);
        // chains sample a latent value of every row, and know no weights
        if chains || (plain && repeated == 0) || (!plain && none) {
            return Ok(loaded);
        }
        let weight_name = loaded.weight_name.clone();
        let merge = || Loaded { weight_name: weight_name.clone(), ..loaded.merged() };
        if !plain {
            return Ok(merge());
        }
        let exact = self.likelihood.as_gaussian().is_some();
        if self.method == "auto" {
            if exact && self.inducing {
                return Ok(loaded);
            }
            // the bound for many rows knows no weights
            let merged = merge();
            return Ok(if exact && merged.x.nrows() > AUTO_EXACT { loaded } else { merged });
        }
        let entry = methods::find(self.method)?;
        let weighs = matches!(entry.name, "exact" | "svgp" | "tsvgp" | "tvgp");
        Ok(if weighs || entry.method.augments() { merge() } else { loaded })
    }
}

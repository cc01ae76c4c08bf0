//! The input along which a series moves.

use super::Model;
use crate::error::{Error, Result};
use crate::markov::not_labels;

impl Model {
    /// Returns which of so many inputs is the time of a series: the one that no kernel reads as labels.
    ///
    /// # Errors
    /// [`Error::Invalid`] for several such inputs or none, and for a kernel that takes labels for the time; those of
    /// [`crate::kernels::Kernel::state_space`].
    pub(crate) fn time(&self, inputs: usize) -> Result<usize> {
        let rest = not_labels(&self.kernels, inputs);
        let (name, &[time]) = (self.method.name(), &rest[..]) else {
            return Err(self.several(inputs, rest.len()));
        };
        if inputs > 1 {
            let mut read = Vec::new();
            for kernel in &self.kernels {
                kernel.state_space()?.times(&mut read);
            }
            if let Some(other) = read.iter().find(|own| **own != time) {
                return Err(Error::Invalid(format!(
                    "method `{name}` has one time, input {time}, and a kernel takes input {other} for it, which another reads as labels: \
                     give `active_dims`"
                )));
            }
        }
        Ok(time)
    }

    /// Says that so many of the inputs may be the time.
    fn several(&self, inputs: usize, times: usize) -> Error {
        let name = self.method.name();
        if times == 0 {
            return Error::Invalid(format!(
                "method `{name}` needs an input that is the time, and the kernel reads all {inputs} as labels: use `exact`, or add \
                 the time to the table"
            ));
        }
        Error::Invalid(format!(
            "method `{name}` is for one input beside labels that `coregion` reads, and there are {times}: use {}",
            match self.method.sampler() {
                None => "`exact` for small tables, or a sparse method such as titsias2025",
                Some(_) => "`gibbs` for small tables, or `gibbs-sparse`",
            }
        ))
    }
}

//! Rows in other processes: what a process that has some of them does.
//!
//! A [`Shard`] is some of the rows, in memory. It reports its [`Statistics`]; scaled as those of
//! all shards together say, it answers requests ([`Shard::answer`]) and gives single rows
//! ([`Shard::take`]). Every call is a function only of its arguments, so that a lost shard can be
//! made again. How messages travel is the caller's matter: see [`crate::data::shards`] for what the
//! process that drives the fit needs of it, and the guide for Dask and MPI.
//!
//! ```
//! use sparsegp::data::shards::{Shards, total};
//! use sparsegp::data::{InMemory, Loaded, Statistics};
//! use sparsegp::engine::{Cpu, Remote};
//! use sparsegp::fit::{Dataset, FitOptions, Scaling, fit};
//! use sparsegp::linalg::Mat;
//! use sparsegp::shards::Shard;
//!
//! /// Shards in this process.
//! struct Here(Vec<Shard>, Cpu);
//! impl Shards for Here {
//!     fn round(&self, request: Vec<u8>) -> sparsegp::Result<Vec<f64>> {
//!         let answers = self.0.iter().map(|shard| shard.answer(&request, &self.1));
//!         total(answers.collect::<Result<_, _>>()?)
//!     }
//!     fn take(&self, wanted: &[(usize, Vec<usize>)]) -> sparsegp::Result<Vec<f64>> {
//!         let rows = wanted.iter().map(|(shard, places)| self.0[*shard].take(places));
//!         Ok(rows.collect::<Result<Vec<_>, _>>()?.concat())
//!     }
//! }
//!
//! let part = |of: usize| {
//!     let x = Mat::from_fn(100, 1, |i, _| (i + 100 * of) as f64 / 30.0);
//!     let y = Mat::from_fn(100, 1, |i, _| x[(i, 0)].sin() + 0.1 * (7.0 * i as f64).cos());
//!     InMemory::new(x, y).map(Shard::new)
//! };
//! let parts: Vec<Shard> = (0..3).map(part).collect::<Result<_, _>>()?;
//! let statistics = Statistics::gathered(parts.iter().map(Shard::statistics))?;
//! let scaler = Scaling::from(true).scaler(&statistics, None, &["x".into()]);
//! let scaled = parts.iter().enumerate().map(|(i, part)| part.scaled(&scaler, i, 100 * i));
//! let shards = Box::new(Here(scaled.collect::<Result<_, _>>()?, Cpu::default()));
//!
//! let head = Loaded::head(vec!["x".into()], vec!["y".into()]);
//! let data = Dataset::from_shards(head, shards, &[100; 3], &statistics, scaler)?;
//! let options = FitOptions { inducing: Some(20), ..FitOptions::default() };
//! let cpu = Cpu::default();
//! let fitted = fit(&data, &options, &Remote { cpu: &cpu }, &mut ())?;
//! assert_eq!((fitted.rows, fitted.model.method.name()), (300, "titsias2025"));
//! # Ok::<(), sparsegp::Error>(())
//! ```

use crate::data::{InMemory, Rows, Scaler, Source, Statistics};
use crate::engine::remote::{Features, OwnSpread, Packed, Work};
use crate::engine::{Cpu, Engine, Job, Passed, Process};
use crate::error::{Error, Result};
use crate::fit::checks;
use crate::linalg::Mat;
use crate::methods::described::{self, Fitting};

/// Some of the rows.
#[derive(Clone, Debug)]
pub struct Shard {
    rows: InMemory,
    /// Index of the partition in messages.
    index: usize,
    /// Index of the first row among all.
    first: usize,
}

impl Shard {
    /// Takes rows in the data's units; [`Shard::scaled`] makes those that answer.
    pub fn new(rows: InMemory) -> Self {
        Self { rows, index: 0, first: 0 }
    }

    /// Creates the same as one that was sent: with the index of its partition and of its first row.
    pub fn placed(rows: InMemory, index: usize, first: usize) -> Self {
        Self { rows, index, first }
    }

    /// Returns the rows, the index of the partition and of the first row.
    pub fn parts(&self) -> (&InMemory, usize, usize) {
        (&self.rows, self.index, self.first)
    }

    /// Returns means, spreads and isolated values of these rows.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::new(self.rows.inputs(), self.rows.outputs());
        self.add_to(&mut statistics);
        statistics
    }

    /// Makes the second pass that [`Statistics::gathered`] asks for where there are isolated
    /// values.
    pub fn bodies(&self, all: &Statistics) -> Statistics {
        let mut bodies = all.without_isolated();
        self.add_to(&mut bodies);
        bodies
    }

    fn add_to(&self, statistics: &mut Statistics) {
        let InMemory { x, y, weights, extra } = &self.rows;
        statistics.add_weighted(x.as_ref(), y.as_ref(), weights);
        statistics.add_extra(extra);
    }

    /// Returns the rows as a model sees them, of the partition `index`, whose first row is the row
    /// `first` of all.
    ///
    /// # Errors
    /// [`Error::Shape`] for a scaler of other columns.
    pub fn scaled(&self, scaler: &Scaler, index: usize, first: usize) -> Result<Self> {
        let mut rows = self.rows.clone();
        scaler.scale_x(rows.x.as_mut())?;
        scaler.scale_y(rows.y.as_mut())?;
        scaler.scale_extra(&mut rows.extra);
        Ok(Self { rows, index, first })
    }

    /// Returns the rows at these places, of each D inputs, P targets, its weight and its further
    /// number where there are some.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a place beyond the last row.
    pub fn take(&self, places: &[usize]) -> Result<Vec<f64>> {
        let InMemory { x, y, weights, extra } = &self.rows;
        let mut found = Vec::new();
        for &i in places {
            if i >= x.nrows() {
                return Err(self.named(Error::Invalid(format!(
                    "row {i} was asked for, and it has {}",
                    x.nrows()
                ))));
            }
            found.extend((0..x.ncols()).map(|j| x[(i, j)]));
            found.extend((0..y.ncols()).map(|j| y[(i, j)]));
            found.extend(weights.get(i));
            found.extend(extra.get(i));
        }
        Ok(found)
    }

    /// Returns what these rows contribute to a request.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the partition: for a request of another release, and for rows that are refused.
    pub fn answer(&self, request: &[u8], cpu: &Cpu) -> Result<Vec<f64>> {
        self.answered(request, cpu).map_err(|error| self.named(error))
    }

    fn named(&self, error: Error) -> Error {
        Error::Invalid(format!("partition {}: {error}", self.index))
    }

    fn answered(&self, request: &[u8], cpu: &Cpu) -> Result<Vec<f64>> {
        let (inputs, outputs) = (self.rows.inputs(), self.rows.outputs());
        let fitting = |latents: usize| Fitting { inputs, outputs, latents };
        match Work::from_bytes(request)? {
            Work::Pass(sent) => {
                let parts: Vec<(Features, Mat<f64>, OwnSpread)> =
                    sent.processes.iter().map(|p| p.read(inputs)).collect::<Result<_>>()?;
                let inducing: Vec<_> =
                    parts.iter().map(|(features, ..)| features.inducing()).collect();
                let processes: Vec<Process<'_>> = parts
                    .iter()
                    .zip(&inducing)
                    .map(|((features, mean, spread), inducing)| Process {
                        inducing,
                        basis: &features.basis,
                        mean: mean.as_ref(),
                        spread: spread.spread(),
                    })
                    .collect();
                let latents = sent.processes.iter().map(|p| p.latents()).sum();
                let mean = sent.mean.read(inputs, latents)?;
                let pointwise = described::pointwise(&sent.pointwise, fitting(latents))?;
                let job = Job {
                    processes: &processes,
                    mean: &*mean,
                    pointwise: &*pointwise,
                    scale: sent.scale,
                    want: sent.want,
                };
                let mut passed = Passed::default();
                cpu.pass_in(sent.precision, &job, self, &mut passed)?;
                Ok(passed.pack())
            }
            Work::Sweep(description) => {
                let sweep = described::sweep(&description, fitting(outputs))
                    .or_else(|| checks::described(&description, inputs, outputs))
                    .unwrap_or_else(|| {
                        Err(Error::Invalid(format!("nothing is known of `{}`", description.kind)))
                    })?;
                let mut packed = Packed::default();
                packed.vector(&crate::engine::sweep(self, &*sweep)?);
                Ok(packed.finish())
            }
        }
    }
}

impl Source for Shard {
    fn rows(&self) -> usize {
        self.rows.rows()
    }
    fn inputs(&self) -> usize {
        self.rows.inputs()
    }
    fn outputs(&self) -> usize {
        self.rows.outputs()
    }
    fn is_plain(&self) -> bool {
        self.rows.is_plain()
    }
    fn is_resident(&self) -> bool {
        true
    }
    fn for_each_chunk(
        &self,
        chunk_rows: usize,
        f: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        // among all rows, for what messages say
        self.rows.for_each_chunk(chunk_rows, &mut |rows| {
            f(Rows { start: self.first + rows.start, ..rows })
        })
    }
}

#[cfg(test)]
mod tests;

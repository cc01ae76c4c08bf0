//! Constant target columns beside others. Columns share kernel and noise, and a constant would have the noise smaller than
//! it is. So nothing is learnt of it: the data set has NaN in its place ([`Scaler::y_constant`]). Methods that train q
//! take that for missing targets; for the others the columns here are left out of training, and are 0 in conditioning.
//!
//! [`Scaler::y_constant`]: crate::data::Scaler::y_constant

use super::Dataset;
use crate::data::{Batches, Rows, ShardedRows, Source};
use crate::error::Result;
use crate::linalg::{Mat, column};
use crate::means;
use crate::methods::Method;
use crate::model::Model;

/// The rows of a data set with other target columns: for each a column of theirs, or zeros.
pub(super) struct Targets<'a> {
    inner: &'a dyn Source,
    /// None where they are as they are.
    columns: Option<Vec<Option<usize>>>,
}

impl Dataset {
    /// Returns for every target its column, none for constants.
    fn columns_that_vary(&self) -> impl Iterator<Item = Option<usize>> {
        let is_constant = |p| self.scaler.is_constant(p);
        (0..self.target_names.len()).map(move |p| (!is_constant(p)).then_some(p))
    }

    pub(super) fn has_constants(&self) -> bool {
        self.scaler.y_constant.contains(&true)
    }

    /// Returns the rows as they are.
    fn as_they_are(&self) -> Targets<'_> {
        Targets { inner: &*self.source, columns: None }
    }

    /// Returns the rows without constant targets.
    pub(super) fn varying(&self) -> Targets<'_> {
        let columns = || self.columns_that_vary().filter(Option::is_some).collect();
        Targets { columns: self.has_constants().then(columns), ..self.as_they_are() }
    }

    /// Returns the rows with zeros for constant targets.
    pub(super) fn filled(&self) -> Targets<'_> {
        let columns = || self.columns_that_vary().collect();
        Targets { columns: self.has_constants().then(columns), ..self.as_they_are() }
    }

    /// Returns the rows that a method trains on.
    pub(super) fn trained_by(&self, method: &dyn Method) -> Targets<'_> {
        if method.has_q() { self.as_they_are() } else { self.varying() }
    }

    /// Returns the rows that a trained model is conditioned on, with all targets; its mean function
    /// becomes one of all.
    pub(super) fn conditioning(&self, model: &mut Model) -> Result<Targets<'_>> {
        if model.method.has_q() {
            return Ok(self.as_they_are());
        }
        if self.has_constants() {
            self.widen_mean(model)?;
        }
        Ok(self.filled())
    }

    /// Gives a model of all targets a mean function of the varying ones, where its method trains on these.
    pub(super) fn narrow_mean(&self, model: &mut Model) -> Result<()> {
        if !self.has_constants() || model.method.has_q() {
            return Ok(());
        }
        let varying: Vec<usize> = self.columns_that_vary().flatten().collect();
        let mut mean = means::of_outputs(&*model.mean, self.source.inputs(), varying.len())?;
        if mean.num_params() == model.mean.num_params() {
            return Ok(());
        }
        for ((path, own), (_, all)) in mean.params_mut().into_iter().zip(model.mean.params()) {
            let each = all.len() / self.target_names.len();
            let part = |p: &usize| all.value()[p * each..(p + 1) * each].to_vec();
            let values: Vec<f64> = varying.iter().flat_map(part).collect();
            own.bound(&path, all.bounds())?;
            own.set(&path, &values)?;
            (own.frozen, own.given) = (all.frozen, all.given);
            (own.prior, own.assumed) = (all.prior, all.assumed);
            own.groups.clone_from(&all.groups);
        }
        model.mean = mean;
        Ok(())
    }

    /// Gives a model of the varying targets a mean function of all: 0 for constants.
    fn widen_mean(&self, model: &mut Model) -> Result<()> {
        let inputs = self.source.inputs();
        let varying: Vec<usize> = self.columns_that_vary().flatten().collect();
        let mut mean = means::of_outputs(&*model.mean, inputs, self.target_names.len())?;
        if mean.num_params() == model.mean.num_params() {
            return Ok(());
        }
        for ((path, all), (_, own)) in mean.params_mut().into_iter().zip(model.mean.params()) {
            // output by output
            let each = own.len() / varying.len().max(1);
            let mut values = vec![0.0; all.len()];
            for (from, &p) in varying.iter().enumerate() {
                let part = &own.value()[from * each..(from + 1) * each];
                values[p * each..(p + 1) * each].copy_from_slice(part);
            }
            all.set(&path, &values)?;
            (all.frozen, all.given) = (own.frozen, own.given);
            (all.prior, all.assumed) = (own.prior, own.assumed);
            all.groups.clone_from(&own.groups);
        }
        model.mean = mean;
        Ok(())
    }
}

impl Source for Targets<'_> {
    fn rows(&self) -> usize {
        self.inner.rows()
    }
    fn inputs(&self) -> usize {
        self.inner.inputs()
    }
    fn outputs(&self) -> usize {
        self.columns.as_ref().map_or_else(|| self.inner.outputs(), Vec::len)
    }
    fn is_plain(&self) -> bool {
        self.inner.is_plain()
    }
    fn population(&self) -> usize {
        self.inner.population()
    }
    fn scale(&self) -> f64 {
        self.inner.scale()
    }
    fn is_resident(&self) -> bool {
        self.inner.is_resident()
    }
    fn sharded(&self) -> Option<&ShardedRows> {
        // what other processes have are the rows as they are
        self.inner.sharded().filter(|_| self.columns.is_none())
    }
    fn batches(&self, size: usize, seed: u64) -> Result<Box<dyn Batches + '_>> {
        // only methods that train q ask, and they have missing targets
        self.inner.batches(size, seed)
    }
    fn for_each_chunk(
        &self,
        chunk_rows: usize,
        f: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(columns) = &self.columns else { return self.inner.for_each_chunk(chunk_rows, f) };
        self.inner.for_each_chunk(chunk_rows, &mut |rows| {
            let mut y = Mat::zeros(rows.y.nrows(), columns.len());
            for (to, from) in columns.iter().enumerate() {
                if let Some(from) = from {
                    y.col_as_slice_mut(to).copy_from_slice(column(rows.y, *from));
                }
            }
            f(Rows { y: y.as_ref(), ..rows })
        })
    }
}

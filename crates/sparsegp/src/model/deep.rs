//! Models with hidden layers: from and to [`crate::deep`].

use super::{Method, Model};
use crate::deep::{Deep, Group, LastBound, Layer, Points};
use crate::error::{Error, Result};
use crate::kernels::Kernel;

impl Model {
    /// Makes a model of a deep one: its last layer's kernel, mean, inducing points and q become the model's own, the layers
    /// before it [`Model::hidden`].
    ///
    /// # Errors
    /// [`Error::Invalid`] for a last layer of several groups, or of other inducing variables than points.
    pub fn of_deep(deep: Deep, method: &'static dyn Method) -> Result<Self> {
        let Deep { mut layers, likelihood, .. } = deep;
        let last = layers.pop();
        let (Some(layer), Some(group)) = (&last, last.as_ref().and_then(|l| l.groups.first()))
        else {
            return Err(Error::Invalid("a deep model has at least one layer, found 0".into()));
        };
        let points = group.inducing.as_points().filter(|_| layer.groups.len() == 1);
        let Some(points) = points else {
            return Err(Error::Invalid(
                "the last layer of a model has one kernel for all functions, and inducing points: others are used by \
                 `sparsegp::deep`"
                    .into(),
            ));
        };
        Ok(Self {
            kernels: vec![points.kernel.clone()],
            mean: layer.mean.clone(),
            likelihood,
            inducing: vec![points.z.clone()],
            q: Some(group.q.clone()),
            method,
            jitter: layer.jitter,
            hidden: layers,
        })
    }

    /// Makes the deep model again, of the hidden layers and the model's own as the last.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a model without q or with several kernels, and as for [`Deep::check`].
    pub fn to_deep(&self, bound: LastBound) -> Result<Deep> {
        let ([kernel], [z], Some(q)) = (&self.kernels[..], &self.inducing[..], &self.q) else {
            return Err(Error::Invalid(
                "the last layer of a deep model has one kernel, one set of inducing points and a q"
                    .into(),
            ));
        };
        let points = Points { kernel: kernel.clone(), z: z.clone() };
        let group = Group::with(Box::new(points), q.clone())?;
        let mut last = Layer::new(vec![group], self.mean.clone());
        last.jitter = self.jitter;
        let below = self.hidden.last().map_or(last.inputs(), Layer::outputs);
        last.skip = last.inputs() != below;
        let layers = self.hidden.iter().cloned().chain([last]).collect();
        let mut deep = Deep::new(layers, self.likelihood.clone())?;
        deep.bound = bound;
        deep.check()?;
        Ok(deep)
    }

    /// Returns the kernels that see the inputs: those of the first hidden layer, or the model's
    /// own.
    pub fn input_kernels(&self) -> Vec<&dyn Kernel> {
        let Some(first) = self.hidden.first() else {
            return self.kernels.iter().map(|kernel| &**kernel).collect();
        };
        let points = first.groups.iter().filter_map(|group| group.inducing.as_points());
        points.map(|points| &*points.kernel).collect()
    }

    /// Refuses what sees one layer of a model that has several.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names what was asked for.
    pub fn check_shallow(&self, what: &str) -> Result<()> {
        if self.hidden.is_empty() {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "{what} is for models of one layer, and this one has {}: choose another method than `{}`",
            self.hidden.len() + 1,
            self.method.name()
        )))
    }
}

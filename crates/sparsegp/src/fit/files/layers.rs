//! Hidden layers of deep models in a file: what their tensors `layers[l].…` do not say.

use super::foreign;
use super::header::{Kept, QHeader};
use super::read::{Reader, read_q};
use crate::deep::{Group, Identity, Layer, Projection, Sampling};
use crate::error::{Error, Result};
use crate::kernels::{self, Inputs};
use crate::linalg::Jitter;
use crate::means::Mean;
use crate::params::Role;
use serde::{Deserialize, Serialize};

/// A hidden layer over inducing points.
#[derive(Serialize, Deserialize)]
pub(super) struct LayerHeader {
    /// Its functions, or the first of their groups.
    #[serde(flatten)]
    first: GroupHeader,
    /// The other groups, where functions have separate kernels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<GroupHeader>,
    mean: String,
    jitter: Jitter,
    /// Number of columns of its rows.
    inputs: usize,
    #[serde(default)]
    skip: bool,
    /// Whether it is sampled as functions.
    #[serde(default)]
    functions: bool,
}

/// Functions that share a kernel and inducing points.
#[derive(Serialize, Deserialize)]
struct GroupHeader {
    kernel: serde_json::Value,
    inducing: Kept,
    q: QHeader,
}

impl GroupHeader {
    fn of(group: &Group) -> std::result::Result<Self, String> {
        let Some(points) = group.inducing.as_points() else {
            return Err(
                "cannot be written: a hidden layer has other inducing variables than points".into(),
            );
        };
        let kernel = points.kernel.to_json();
        Ok(Self { kernel, inducing: Kept::of(&points.z), q: QHeader::of(&group.q) })
    }

    /// Reads the group of a layer of so many inputs; `index` is empty, or `[1]` where there are
    /// several ([`Layer::visit`]).
    fn read(self, layer: usize, index: &str, inputs: usize, tensors: &Reader<'_>) -> Result<Group> {
        let points = format!("layers[{layer}].inducing.points{index}");
        let z = tensors.matrix(&points)?;
        if z.ncols() != inputs {
            return Err(foreign(format!("tensor `{points}` does not fit its layer")));
        }
        let kernel = kernels::build(&self.kernel, Inputs::unnamed(inputs))?;
        let q = read_q(self.q, tensors, &format!("layers[{layer}].q{index}"))?;
        let mut group = Group::new(kernel, z.as_ref(), q)
            .map_err(|error: Error| foreign(format!("layer {layer}: {error}")))?;
        group.inducing.visit_mut("", &mut |_, param| {
            if param.role() == Role::Points {
                param.frozen = self.inducing.frozen;
                param.prior = self.inducing.prior;
            }
        });
        Ok(group)
    }
}

impl LayerHeader {
    /// Returns the number of columns of its rows.
    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    /// Creates the header of a layer.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub(super) fn of(layer: &Layer) -> std::result::Result<Self, String> {
        if layer.grid.is_some() {
            return Err("cannot be written: a hidden layer is of images".into());
        }
        let mean = layer.mean.name();
        if !["identity", "projection"].contains(&mean) {
            return Err(format!(
                "cannot be written: the mean of a hidden layer is `{mean}`, and `identity` and `projection` can be read again"
            ));
        }
        let groups = layer.groups.iter().map(GroupHeader::of);
        let mut groups = groups.collect::<std::result::Result<Vec<_>, _>>()?.into_iter();
        let first = groups.next().ok_or("cannot be written: a hidden layer has no functions")?;
        Ok(Self {
            first,
            others: groups.collect(),
            mean: mean.into(),
            jitter: layer.jitter,
            inputs: layer.inputs(),
            skip: layer.skip,
            functions: layer.sampling == Sampling::Functions,
        })
    }

    /// Reads the layer; values of its parameters are read with all others.
    pub(super) fn read(self, at: usize, tensors: &Reader<'_>) -> Result<Layer> {
        let several = !self.others.is_empty();
        let groups = std::iter::once(self.first).chain(self.others).enumerate().map(|(g, own)| {
            let index = if several { format!("[{g}]") } else { String::new() };
            own.read(at, &index, self.inputs, tensors)
        });
        let groups = groups.collect::<Result<Vec<_>>>()?;
        let outputs: usize = groups.iter().map(Group::outputs).sum();
        let mean: Box<dyn Mean> = match self.mean.as_str() {
            "identity" if outputs == self.inputs => Box::new(Identity),
            "projection" => {
                let path = format!("layers[{at}].mean.weights");
                let weights = tensors.matrix(&path)?;
                if (weights.nrows(), weights.ncols()) != (self.inputs, outputs) {
                    return Err(foreign(format!("tensor `{path}` does not fit its layer")));
                }
                Box::new(Projection::new(weights.as_ref()))
            }
            other => return Err(foreign(format!("layer {at} has a mean function `{other}`"))),
        };
        let mut layer = Layer::new(groups, mean);
        layer.jitter = self.jitter;
        layer.skip = self.skip;
        if self.functions {
            layer.sampling = Sampling::Functions;
        }
        Ok(layer)
    }
}

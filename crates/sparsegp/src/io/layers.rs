//! Hidden layers of deep models in a file: what their tensors `layers[l].…` do not say.

use super::foreign;
use super::header::{Kept, QHeader};
use super::read::{Reader, read_q};
use crate::deep::{Group, Identity, Layer, Projection, Sampling};
use crate::error::{Error, Result};
use crate::kernels::{self, Inputs};
use crate::linalg::Jitter;
use crate::means::Mean;
use serde::{Deserialize, Serialize};

/// A hidden layer of one kernel over inducing points.
#[derive(Serialize, Deserialize)]
pub(super) struct LayerHeader {
    kernel: serde_json::Value,
    mean: String,
    inducing: Kept,
    q: QHeader,
    jitter: Jitter,
    /// Number of columns of its rows.
    inputs: usize,
    #[serde(default)]
    skip: bool,
    /// Whether it is sampled as functions.
    #[serde(default)]
    functions: bool,
}

impl LayerHeader {
    /// Number of columns of its rows.
    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    /// Of a layer.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub(super) fn of(layer: &Layer) -> std::result::Result<Self, String> {
        let group = layer.groups.first().filter(|_| layer.groups.len() == 1);
        let points = group.and_then(|group| group.inducing.as_points());
        let (Some(group), Some(points), None) = (group, points, &layer.grid) else {
            return Err(
                "cannot be written: a hidden layer has several kernels, or other inducing variables than points"
                    .into(),
            );
        };
        let mean = layer.mean.name();
        if !["identity", "projection"].contains(&mean) {
            return Err(format!(
                "cannot be written: the mean of a hidden layer is `{mean}`, and `identity` and `projection` can be read again"
            ));
        }
        Ok(Self {
            kernel: points.kernel.to_json(),
            mean: mean.into(),
            inducing: Kept::of(&points.z),
            q: QHeader::of(&group.q),
            jitter: layer.jitter,
            inputs: layer.inputs(),
            skip: layer.skip,
            functions: layer.sampling == Sampling::Functions,
        })
    }

    /// The layer; values of its parameters are read with all others.
    pub(super) fn read(self, at: usize, tensors: &Reader<'_>) -> Result<Layer> {
        let path = |name: &str| format!("layers[{at}].{name}");
        let z = tensors.matrix(&path("inducing.points"))?;
        if z.ncols() != self.inputs {
            return Err(foreign(format!(
                "tensor `{}` does not fit its layer",
                path("inducing.points")
            )));
        }
        let kernel = kernels::build(&self.kernel, Inputs::unnamed(self.inputs))?;
        let q = read_q(self.q, tensors, &path(""))?;
        let mean: Box<dyn Mean> = match self.mean.as_str() {
            "identity" if q.latents() == self.inputs => Box::new(Identity),
            "projection" => {
                let weights = tensors.matrix(&path("mean.weights"))?;
                if (weights.nrows(), weights.ncols()) != (self.inputs, q.latents()) {
                    return Err(foreign(format!(
                        "tensor `{}` does not fit its layer",
                        path("mean.weights")
                    )));
                }
                Box::new(Projection::new(weights.as_ref()))
            }
            other => return Err(foreign(format!("layer {at} has a mean function `{other}`"))),
        };
        let mut group = Group::new(kernel, z.as_ref(), q)
            .map_err(|error: Error| foreign(format!("layer {at}: {error}")))?;
        group.inducing.visit_mut("", &mut |path, param| {
            if path.to_string() == "inducing.points" {
                param.frozen = self.inducing.frozen;
                param.prior = self.inducing.prior;
            }
        });
        let mut layer = Layer::new(vec![group], mean);
        layer.jitter = self.jitter;
        layer.skip = self.skip;
        if self.functions {
            layer.sampling = Sampling::Functions;
        }
        Ok(layer)
    }
}

//! The JSON header of a model file.

use super::layers::LayerHeader;
use crate::data::{Classes, InputColumn, Scaler};
use crate::linalg::Jitter;
use crate::params::{Param, Prior, listed};
use crate::train::TrainReport;
use crate::variational::{Form, Variational};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) written_by: String,
    /// A list where every latent function has its own.
    pub(super) kernel: serde_json::Value,
    pub(super) mean: serde_json::Value,
    pub(super) likelihood: serde_json::Value,
    /// One for each set of inducing points.
    pub(super) inducing: Vec<Kept>,
    /// For methods that train q.
    #[serde(default)]
    pub(super) q: Option<QHeader>,
    /// Hidden layers of a deep model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) layers: Vec<LayerHeader>,
    pub(super) method: String,
    pub(super) reason: String,
    pub(super) jitter: Jitter,
    /// The absolute jitter in the posterior's factor.
    pub(super) jitter_used: f64,
    pub(super) inputs: Vec<String>,
    /// The columns of a table that the inputs come from, where some hold no numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) columns: Vec<InputColumn>,
    /// Inputs whose standard deviations the last inputs are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) deviations: Vec<usize>,
    pub(super) targets: Vec<String>,
    #[serde(default)]
    pub(super) weight: Option<String>,
    #[serde(default)]
    pub(super) extra: Option<String>,
    #[serde(default)]
    pub(super) classes: Option<Classes>,
    pub(super) scaler: Scaler,
    pub(super) target_mean: Vec<f64>,
    pub(super) target_variance: Vec<f64>,
    pub(super) rows: usize,
    /// Sum of the weights of the rows, where they have weights.
    #[serde(default)]
    pub(super) total_weight: Option<f64>,
    /// Of every target the sum of the weights of the rows in which it is missing, where some are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) absent: Vec<f64>,
    /// Of transformed targets, where some are.
    #[serde(default)]
    pub(super) log_slope: f64,
    /// Whether inputs and 1 are in the basis of a mean function whose uncertainty is known, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) trend: Option<[bool; 2]>,
    pub(super) seed: u64,
    pub(super) report: Option<TrainReport>,
    pub(super) warnings: Vec<String>,
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) division: Option<Divided>,
}

/// What stands in the place of a header that is too long for the file's own.
#[derive(Serialize, Deserialize)]
pub(super) struct Elsewhere {
    pub(super) version: u32,
    pub(super) written_by: String,
    /// The tensor of bytes that holds it.
    pub(super) header: String,
}

/// What masks do not say of a division of rows.
#[derive(Serialize, Deserialize)]
pub(super) struct Divided {
    pub(super) rows: usize,
    /// In hexadecimal digits: 64 bits are too many for a number of JSON.
    pub(super) fingerprint: String,
}

/// What a tensor does not say about its parameter.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) frozen: bool,
    #[serde(default)]
    pub(super) prior: Option<Prior>,
}

impl Kept {
    pub(super) fn of(param: &Param) -> Self {
        Self { frozen: param.frozen, prior: param.prior }
    }

    pub(super) fn apply(self, param: &mut Param) {
        param.frozen = self.frozen;
        param.prior = self.prior;
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct QHeader {
    pub(super) form: Form,
    pub(super) diagonal: bool,
    /// Whether there are factors v.
    pub(super) factors: bool,
    /// In the order of the parameters.
    pub(super) params: Vec<Kept>,
    #[serde(default)]
    pub(super) floor: f64,
}

impl QHeader {
    pub(super) fn of(q: &Variational) -> Self {
        Self {
            form: q.form,
            floor: q.floor,
            diagonal: q.is_diagonal(),
            factors: q.v.is_some(),
            params: listed(|v| q.visit(v)).into_iter().map(|(_, param)| Kept::of(param)).collect(),
        }
    }
}

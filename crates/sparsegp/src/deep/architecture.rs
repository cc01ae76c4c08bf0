//! What a deep model is made of, before there are data: layers, widths, kinds.

use super::{Kind, Sampling};

/// Widest hidden layer unless a width is given (Salimbeni & Deisenroth 2017, in their experiments).
pub const WIDEST: usize = 30;

/// How many layers a deep model has, and of which kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Architecture {
    /// Layers in all, the last one included.
    pub layers: usize,
    /// Outputs of every hidden layer; 0 for as many as there are inputs, [`WIDEST`] at most.
    pub width: usize,
    /// How the layers keep q.
    pub kind: Kind,
    /// Samples of the hidden layers in a step of the training.
    pub samples: usize,
    /// Whether hidden layers are sampled as functions, not row by row; for the kinds W and M.
    pub functions: bool,
    /// Whether layers after the first see the inputs, too.
    pub skip: bool,
    /// Whether every function of a hidden layer has its own kernel and inducing points.
    pub own_kernels: bool,
}

impl Architecture {
    /// Two layers of kind L.
    pub const DEFAULT: Self = Self {
        layers: 2,
        width: 0,
        kind: Kind::L,
        samples: 1,
        functions: false,
        skip: false,
        own_kernels: false,
    };

    /// Returns the outputs of the hidden layers over so many inputs.
    pub fn hidden(&self, inputs: usize) -> Vec<usize> {
        let width = if self.width > 0 { self.width } else { inputs.min(WIDEST) };
        vec![width; self.layers - 1]
    }

    /// Returns whether q of its layers has no root: no functions are drawn with it, and no
    /// natural-gradient steps made.
    pub fn is_rootless(&self) -> bool {
        matches!(self.kind, Kind::L | Kind::R)
    }

    /// Returns how hidden layers are sampled.
    pub fn sampling(&self) -> Sampling {
        if self.functions { Sampling::Functions } else { Sampling::Rows }
    }
}

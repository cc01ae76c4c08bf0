//! Deep models as a method: hidden layers before the layer of the model, trained by minibatches
//! ([`crate::deep`]; Salimbeni & Deisenroth 2017).

use super::{Entry, Evaluation, Method};
use crate::data::Source;
use crate::deep::{Kind, Sampling};
use crate::engine::Engine;
use crate::error::{Error, Result, nearest};
use crate::model::{Model, Posterior};
use std::sync::{Mutex, PoisonError};

/// Most layers that a specification may ask for.
const MOST_LAYERS: usize = 20;
/// Widest hidden layer unless a width is given (Salimbeni & Deisenroth 2017, in their experiments).
pub const WIDEST: usize = 30;
/// Options of the method, as they are written.
const OPTIONS: [&str; 7] = ["layers", "width", "kind", "samples", "functions", "skip", "kernels"];

/// A deep model: how many layers, and of which kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Deep {
    /// Its name, with the options that are not the registered ones.
    pub name: &'static str,
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
    /// Whether every function of a hidden layer has a kernel and inducing points of its own.
    pub own_kernels: bool,
}

impl Deep {
    /// The registered one.
    pub const DEFAULT: Self = Self {
        name: "deep",
        layers: 2,
        width: 0,
        kind: Kind::L,
        samples: 1,
        functions: false,
        skip: false,
        own_kernels: false,
    };

    /// The method `deep` with these options, as [`super::find`] gives it for `deep(layers=3, kind=w)`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown option or a value out of range.
    pub fn entry(options: &str) -> Result<&'static Entry> {
        let registered = super::find("deep")?;
        let mut own = Self::DEFAULT;
        for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            own.read(option)?;
        }
        if own.functions && own.is_rootless() {
            return Err(invalid(
                "layers of kind l and r have no root to draw functions with: add kind=w or kind=m, or leave \
                 functions out",
            ));
        }
        if own == Self::DEFAULT {
            return Ok(registered);
        }
        // methods live as long as the program: one for all that is asked for
        static OTHERS: Mutex<Vec<(Deep, &'static Entry)>> = Mutex::new(Vec::new());
        let mut others = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, entry)) = others.iter().find(|(other, _)| *other == own) {
            return Ok(entry);
        }
        let name: &'static str = Box::leak(own.specification().into_boxed_str());
        let method: &'static dyn Method = Box::leak(Box::new(Self { name, ..own.clone() }));
        let entry: &'static Entry = Box::leak(Box::new(Entry { name, method, ..*registered }));
        others.push((own, entry));
        Ok(entry)
    }

    fn read(&mut self, option: &str) -> Result<()> {
        let Some((key, value)) = option.split_once('=').map(|(k, v)| (k.trim(), v.trim())) else {
            return Err(invalid(&format!("`{option}` is not of the form option=value")));
        };
        let whole = |least: usize, most: usize| {
            let number = value.parse::<usize>().ok().filter(|v| (least..=most).contains(v));
            number.ok_or_else(|| {
                invalid(&format!("{key}={value}: must be a whole number from {least} to {most}"))
            })
        };
        match key {
            "layers" => self.layers = whole(1, MOST_LAYERS)?,
            "width" => self.width = whole(1, 10_000)?,
            "samples" => self.samples = whole(1, 10_000)?,
            "kind" => {
                self.kind = match value {
                    "w" => Kind::W,
                    "m" => Kind::M,
                    "l" => Kind::L,
                    "r" => Kind::R,
                    _ => {
                        return Err(invalid(&format!(
                            "kind={value}: must be w (whitened), m (marginal), l (pseudo-observations) or r (the same \
                             without factorisations)"
                        )));
                    }
                }
            }
            "functions" | "skip" => {
                let given = value
                    .parse()
                    .map_err(|_| invalid(&format!("{key}={value}: must be true or false")))?;
                *(if key == "skip" { &mut self.skip } else { &mut self.functions }) = given;
            }
            "kernels" => {
                self.own_kernels = match value {
                    "shared" => false,
                    "own" => true,
                    _ => {
                        return Err(invalid(&format!(
                            "kernels={value}: must be shared (by the functions of a hidden layer) or own (one for each)"
                        )));
                    }
                }
            }
            _ => {
                return Err(invalid(&format!(
                    "unknown option `{key}`; nearest: {}; known: {}",
                    nearest(key, OPTIONS).join(", "),
                    OPTIONS.join(", ")
                )));
            }
        }
        Ok(())
    }

    /// The name with all options that are not the registered ones.
    fn specification(&self) -> String {
        let default = Self::DEFAULT;
        let mut options = Vec::new();
        if self.layers != default.layers {
            options.push(format!("layers={}", self.layers));
        }
        if self.width != default.width {
            options.push(format!("width={}", self.width));
        }
        if self.kind != default.kind {
            options.push(format!("kind={}", format!("{:?}", self.kind).to_ascii_lowercase()));
        }
        if self.samples != default.samples {
            options.push(format!("samples={}", self.samples));
        }
        if self.functions {
            options.push("functions=true".into());
        }
        if self.skip {
            options.push("skip=true".into());
        }
        if self.own_kernels {
            options.push("kernels=own".into());
        }
        format!("deep({})", options.join(", "))
    }

    /// Outputs of the hidden layers over so many inputs.
    pub fn hidden(&self, inputs: usize) -> Vec<usize> {
        let width = if self.width > 0 { self.width } else { inputs.min(WIDEST) };
        vec![width; self.layers - 1]
    }

    /// Whether q of its layers has no root: no functions are drawn with it, and no natural-gradient steps made.
    pub fn is_rootless(&self) -> bool {
        matches!(self.kind, Kind::L | Kind::R)
    }

    /// How hidden layers are sampled.
    pub fn sampling(&self) -> Sampling {
        if self.functions { Sampling::Functions } else { Sampling::Rows }
    }
}

fn invalid(reason: &str) -> Error {
    Error::Invalid(format!("method `deep`: {reason}"))
}

impl Method for Deep {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn has_q(&self) -> bool {
        true
    }

    fn in_minibatches(&self) -> bool {
        true
    }

    fn deep(&self) -> Option<&Deep> {
        Some(self)
    }

    fn check(&self, model: &Model) -> Result<()> {
        match model.likelihood.mixing() {
            None => Ok(()),
            Some(_) => Err(invalid(&format!(
                "the likelihood `{}` mixes functions of its own, which a last layer does not: the targets of a deep \
                 model share their hidden layers as it is",
                model.likelihood.name()
            ))),
        }
    }

    fn evaluate(&self, _: &Model, _: &dyn Engine, _: &dyn Source) -> Result<Evaluation> {
        Err(invalid(
            "its bound is an estimate by samples of the hidden layers (`crate::deep::Deep::evaluate`)",
        ))
    }

    fn posterior(&self, model: &Model, _: &dyn Engine, _: &dyn Source) -> Result<Posterior> {
        Posterior::of_q(model)
    }
}

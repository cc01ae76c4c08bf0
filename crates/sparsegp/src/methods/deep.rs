//! Deep models as a method: hidden layers before the layer of the model, trained by minibatches
//! ([`crate::deep`]; Salimbeni & Deisenroth 2017).

use super::{Entry, Evaluation, Method};
use crate::data::Source;
use crate::deep::{Architecture, Kind};
use crate::engine::Engine;
use crate::error::{Error, Result, nearest};
use crate::model::{Model, Posterior};

/// Most layers that a specification may ask for.
const MOST_LAYERS: usize = 20;
/// Options of the method, as they are written.
const OPTIONS: [&str; 7] = ["layers", "width", "kind", "samples", "functions", "skip", "kernels"];

/// A deep model: its layers, and its name.
#[derive(Clone, Debug)]
pub struct Deep {
    /// Its name, with the options that are not the registered ones.
    pub name: &'static str,
    /// Its layers.
    pub architecture: Architecture,
}

impl Deep {
    /// The registered one.
    pub const DEFAULT: Self = Self { name: "deep", architecture: Architecture::DEFAULT };

    /// Returns the method `deep` with these options, as [`super::find`] gives it for
    /// `deep(layers=3, kind=w)`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown option or a value out of range.
    pub fn entry(options: &str) -> Result<&'static Entry> {
        let registered = super::find("deep")?;
        let mut own = Architecture::DEFAULT;
        for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            read(&mut own, option)?;
        }
        if own.functions && own.is_rootless() {
            return Err(invalid(
                "layers of kind l and r have no root to draw functions with: add kind=w or kind=m, or leave \
                 functions out",
            ));
        }
        if own == Architecture::DEFAULT {
            return Ok(registered);
        }
        let name = specification(&own);
        Ok(registered.variant(name, |name| Box::new(Self { name, architecture: own })))
    }
}

/// Reads `option=value` into an architecture.
fn read(own: &mut Architecture, option: &str) -> Result<()> {
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
        "layers" => own.layers = whole(1, MOST_LAYERS)?,
        "width" => own.width = whole(1, 10_000)?,
        "samples" => own.samples = whole(1, 10_000)?,
        "kind" => {
            own.kind = match value {
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
            *(if key == "skip" { &mut own.skip } else { &mut own.functions }) = given;
        }
        "kernels" => {
            own.own_kernels = match value {
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

/// Returns the name with all options that are not the registered ones.
fn specification(own: &Architecture) -> String {
    let default = Architecture::DEFAULT;
    let mut options = Vec::new();
    if own.layers != default.layers {
        options.push(format!("layers={}", own.layers));
    }
    if own.width != default.width {
        options.push(format!("width={}", own.width));
    }
    if own.kind != default.kind {
        options.push(format!("kind={}", format!("{:?}", own.kind).to_ascii_lowercase()));
    }
    if own.samples != default.samples {
        options.push(format!("samples={}", own.samples));
    }
    if own.functions {
        options.push("functions=true".into());
    }
    if own.skip {
        options.push("skip=true".into());
    }
    if own.own_kernels {
        options.push("kernels=own".into());
    }
    format!("deep({})", options.join(", "))
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

    fn architecture(&self) -> Option<&Architecture> {
        Some(&self.architecture)
    }

    fn check(&self, model: &Model) -> Result<()> {
        match model.likelihood.mixing() {
            None => Ok(()),
            Some(_) => Err(invalid(&format!(
                "the likelihood `{}` mixes latent functions itself, which a last layer does not support: the targets of a deep \
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

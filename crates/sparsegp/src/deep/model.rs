//! The model: layers, a likelihood and the bound of the last layer.

use super::bound::Work;
use super::layer::{Layer, LayerWork};
use crate::bounds::{Bound, Hensman, Spherical, Titsias2025};
use crate::error::{Error, Result, nearest};
use crate::inverse_free::{Solved, SolverOptions};
use crate::likelihoods::Likelihood;
use crate::params::{
    Named, NamedMut, Visitor, VisitorMut, count, listed, listed_mut, prefixed, prefixed_mut,
};

/// What the last layer's functions are integrated by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LastBound {
    /// E[log p(y ∣ f)], f ~ N(μ, s + v r): Hensman, Matthews & Ghahramani 2015; with factors v of the layer Titsias 2025,
    /// Eq. 22–23.
    #[default]
    Expectation,
    /// Gaussian noise, the best factor for every row and sample: log N(y; μ, σ²) − s/2σ² − ½ log(1 + r/σ²) (Titsias 2025,
    /// Eq. 18–19). Never below the other; for last layers of kind W and M.
    Tighter,
}

/// A deep Gaussian process.
#[derive(Clone, Debug)]
pub struct Deep {
    /// The layers, the first one's rows are the inputs.
    pub layers: Vec<Layer>,
    /// What the last layer's functions are observed with.
    pub likelihood: Box<dyn Likelihood>,
    /// What they are integrated by.
    pub bound: LastBound,
}

impl Deep {
    /// Makes a model of layers and a likelihood, with the usual bound.
    ///
    /// # Errors
    /// As for [`Deep::check`].
    pub fn new(layers: Vec<Layer>, likelihood: Box<dyn Likelihood>) -> Result<Self> {
        let model = Self { layers, likelihood, bound: LastBound::Expectation };
        model.check()?;
        Ok(model)
    }

    /// Refuses what does not fit together: widths of consecutive layers, outputs of the last and latent functions of a
    /// target, a tighter bound without Gaussian noise or without a part r.
    ///
    /// # Errors
    /// [`Error::Shape`] with both numbers, [`Error::Invalid`] with what would be right.
    pub fn check(&self) -> Result<()> {
        let Some(first) = self.layers.first() else {
            return Err(Error::Invalid("a deep model has at least one layer, found 0".into()));
        };
        if first.skip {
            return Err(Error::Invalid(
                "the rows of the first layer are the inputs: `skip` is for the layers after it"
                    .into(),
            ));
        }
        for (l, layer) in self.layers.iter().enumerate() {
            layer.check(&format!("layer {l}"))?;
            if l == 0 {
                continue;
            }
            let below = self.layers[l - 1].outputs();
            let expected = below + if layer.skip { first.inputs() } else { 0 };
            if layer.inputs() != expected {
                return Err(Error::Shape {
                    what: format!("inducing points of layer {l}"),
                    expected: format!(
                        "{expected} columns, {below} for what layer {} gives{}",
                        l - 1,
                        if layer.skip { " and the rest for the inputs" } else { "" }
                    ),
                    found: format!("{}", layer.inputs()),
                });
            }
        }
        let last = &self.layers[self.layers.len() - 1];
        if last.grid.is_some() {
            return Err(Error::Invalid(
                "the last layer gives images: let functions of them follow, such as one of patches (`Patches`)".into(),
            ));
        }
        let each = self.likelihood.latents();
        if self.likelihood.mixing().is_some() {
            return Err(Error::Invalid(format!(
                "the likelihood `{}` mixes latent functions itself, which a last layer does not support: give every target its \
                 functions, or a linear layer before it",
                self.likelihood.name()
            )));
        }
        if !last.outputs().is_multiple_of(each) {
            return Err(Error::Shape {
                what: "outputs of the last layer".into(),
                expected: format!(
                    "a multiple of {each}, the latent functions of a target of `{}`",
                    self.likelihood.name()
                ),
                found: format!("{}", last.outputs()),
            });
        }
        if self.bound == LastBound::Tighter {
            Titsias2025.check(&*self.likelihood)?;
            if last.groups.iter().any(|group| group.shares() || group.q.v.is_some()) {
                return Err(Error::Invalid(
                    "the tighter bound of the last layer needs its r apart and without factors v: keep q of that layer by \
                     its moments (W or M), without v"
                        .into(),
                ));
            }
        }
        Ok(())
    }

    /// Returns what a row of the last layer contributes.
    pub(super) fn last(&self) -> &'static dyn Bound {
        let last = &self.layers[self.layers.len() - 1];
        match self.bound {
            LastBound::Tighter => &Titsias2025,
            LastBound::Expectation if last.groups.iter().any(|g| g.q.v.is_some()) => &Spherical,
            LastBound::Expectation => &Hensman,
        }
    }

    /// Returns the number of input columns D.
    pub fn inputs(&self) -> usize {
        self.layers.first().map_or(0, Layer::inputs)
    }

    /// Returns the number of functions of the last layer.
    pub fn latents(&self) -> usize {
        self.layers.last().map_or(0, Layer::outputs)
    }

    /// Returns the number of target columns.
    pub fn targets(&self) -> usize {
        self.latents() / self.likelihood.latents()
    }

    /// Shows the parameters with their paths: `layers[l].…` of every layer ([`Layer::visit`]), then `likelihood.…`.
    pub fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        for (l, layer) in self.layers.iter().enumerate() {
            prefixed(&format!("layers[{l}]"), visitor, |v| layer.visit(v));
        }
        prefixed(&"likelihood", visitor, |v| self.likelihood.visit(v));
    }

    /// Shows the same, to change them.
    pub fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        for (l, layer) in self.layers.iter_mut().enumerate() {
            prefixed_mut(&format!("layers[{l}]"), visitor, |v| layer.visit_mut(v));
        }
        prefixed_mut(&"likelihood", visitor, |v| self.likelihood.visit_mut(v));
    }

    /// Returns the list of what [`Deep::visit`] shows.
    pub fn params(&self) -> Vec<Named<'_>> {
        listed(|v| self.visit(v))
    }

    /// Returns the same, to change them.
    pub fn params_mut(&mut self) -> Vec<NamedMut<'_>> {
        listed_mut(|v| self.visit_mut(v))
    }

    /// Returns the number of numbers among the parameters.
    pub fn num_params(&self) -> usize {
        count(|v| self.visit(v))
    }

    /// Sets a parameter by its path; one number is spread over all.
    ///
    /// # Errors
    /// [`Error::UnknownParameter`] with the nearest paths, [`Error::InvalidParameter`] for values that it cannot take.
    pub fn set(&mut self, path: &str, values: &[f64]) -> Result<()> {
        let mut found = None;
        self.visit_mut(&mut |own, param| {
            if found.is_none() && own.to_string() == path {
                found = Some(param.set(path, values));
            }
        });
        found.unwrap_or_else(|| {
            let existing = self.params();
            let names = existing.iter().map(|(path, _)| path.as_str());
            Err(Error::UnknownParameter { path: path.to_owned(), nearest: nearest(path, names) })
        })
    }

    /// Brings T of every R layer up to date by natural-gradient steps (Cortinovis et al., Eq. 6), before an evaluation at
    /// new parameters. Hidden layers stop by ‖E‖/√M. Returns how each went.
    ///
    /// # Errors
    /// As for [`crate::inverse_free::Inversion::solve`].
    pub fn settle(&mut self, options: &SolverOptions) -> Result<Vec<Solved>> {
        let mut all = Vec::new();
        for layer in &mut self.layers {
            all.extend(LayerWork::default().settle(layer, options)?);
        }
        Ok(all)
    }

    /// Does the same in memory that is kept.
    pub(super) fn settle_in(&mut self, options: &SolverOptions, work: &mut Work) -> Result<()> {
        work.layers.resize_with(self.layers.len(), LayerWork::default);
        let pairs = self.layers.iter_mut().zip(&mut work.layers);
        pairs.into_iter().try_for_each(|(layer, own)| own.settle(layer, options).map(|_| ()))
    }
}

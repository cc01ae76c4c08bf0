//! Covariance functions.
//!
//! A [`Kernel`] fills blocks of covariances and pulls cotangents back to its hyperparameters and to
//! both inputs. To add one: one file (for a stationary kernel only a [`radial::Profile`]) and one
//! line in [`REGISTRY`]. For kernels of other crates there are [`custom`] (stationary, by κ only)
//! and [`general`] (any, by values); [`register`] gives them a name in specifications and model
//! files.

pub mod additive;
pub mod arccosine;
mod blocks;
pub mod categorical;
pub mod change_points;
pub mod composite;
pub mod constant;
pub mod convolutional;
pub mod coregion;
pub mod cosine;
pub mod custom;
pub mod exponential;
mod form;
pub mod gamma_exponential;
mod gaps;
pub mod general;
mod harmonics;
pub mod inducing;
mod inner;
pub mod linear;
pub mod matern;
pub mod periodic;
mod periodogram;
mod periods;
pub mod polynomial;
pub mod product;
pub mod radial;
pub mod rational_quadratic;
mod registry;
mod repeating;
pub use crate::spec;
pub mod squared_exponential;
pub mod state_space;
pub mod sum;
mod tape;
pub mod terms;
pub mod warped;
pub mod white;

pub use blocks::{covariances, factor, features, of_latent, place_of, read_features};
pub use form::{Form, slopes};
pub use registry::{Args, Entry, REGISTRY, build, register};
pub(crate) use repeating::repeats;
pub use spec::Inputs;
pub use state_space::StateSpace;
pub use tape::Tape;
pub use terms::Term;

use crate::error::{Error, Result};
use crate::linalg::{Mat, MatMut, MatRef};
use crate::params::{Named, NamedMut, Visitor, VisitorMut, count, listed, listed_mut};
use serde_json::Value;

/// The unit of a hyperparameter, as powers of the units of an input column and of the target: what
/// turns a value found on standardised data into the data's own units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Input column and its power.
    pub input: Option<(usize, i32)>,
    /// Power of the target's unit.
    pub output: i32,
    /// Whether it is a place along that input column: then its origin is the column's too.
    pub place: bool,
}

impl Unit {
    /// A pure number.
    pub const NONE: Unit = Unit { input: None, output: 0, place: false };
    /// A variance of the target.
    pub const VARIANCE: Unit = Unit::NONE.times_output(2);

    /// Returns a power of the unit of an input column.
    pub const fn input(column: usize, power: i32) -> Unit {
        Unit { input: Some((column, power)), ..Unit::NONE }
    }

    /// Returns a place along an input column.
    pub const fn place(column: usize) -> Unit {
        Unit { place: true, ..Unit::input(column, 1) }
    }

    /// Returns this unit with another power of the target's.
    #[must_use]
    pub const fn times_output(self, output: i32) -> Unit {
        Unit { output, ..self }
    }
}

/// Where cotangents are added to.
pub struct Cotangents<'a> {
    /// Gradient with respect to the constrained hyperparameters, in the order of [`Kernel::params`].
    pub params: &'a mut [f64],
    /// Gradient with respect to the first inputs, B×D.
    pub x: Option<MatMut<'a, f64>>,
    /// Gradient with respect to the second inputs, M×D. Unused where the second inputs are the first:
    /// then `x` receives both parts.
    pub z: Option<MatMut<'a, f64>>,
}

impl Cotangents<'_> {
    /// Returns the same sinks for a child whose parameters are `range` of the parent's.
    pub fn child(&mut self, range: std::ops::Range<usize>) -> Cotangents<'_> {
        Cotangents {
            params: &mut self.params[range],
            x: self.x.as_mut().map(|m| m.rb_mut()),
            z: self.z.as_mut().map(|m| m.rb_mut()),
        }
    }
}

/// A covariance function k(x, x′) of D-dimensional inputs.
///
/// Inputs are blocks of rows (B×D, M×D). The second inputs are `None` for the covariance of the
/// first with themselves, K(X): the two differ where a kernel looks at identity, not at place
/// ([`white`]), and K(X) is exactly symmetric with an exact diagonal.
pub trait Kernel: Send + Sync + std::fmt::Debug {
    /// Returns the name in the registry.
    fn name(&self) -> &'static str;

    /// Shows the hyperparameters with their paths, in a fixed order.
    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>);

    /// Shows the same, to change them.
    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>);

    /// Returns the list of what [`Kernel::visit`] shows.
    fn params(&self) -> Vec<Named<'_>> {
        listed(|v| self.visit(v))
    }

    /// Returns the same, to change them.
    fn params_mut(&mut self) -> Vec<NamedMut<'_>> {
        listed_mut(|v| self.visit_mut(v))
    }

    /// Returns the number of numbers among the parameters.
    fn num_params(&self) -> usize {
        count(|v| self.visit(v))
    }

    /// Computes covariances k(xᵢ, zⱼ) into `out` (B×M; B×B without `z`). Whatever [`Kernel::vjp`]
    /// will need is pushed on the tape if that records.
    fn evaluate(&self, x: MatRef<f64>, z: Option<MatRef<f64>>, out: MatMut<f64>, tape: &mut Tape);

    /// Pulls `k_bar`, the cotangent of `k` = what [`Kernel::evaluate`] gave for the same arguments
    /// with this recording `tape`, back into `sinks`. `k_bar` is scratch afterwards.
    fn vjp(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        k: MatRef<f64>,
        k_bar: MatMut<f64>,
        tape: &mut Tape,
        sinks: &mut Cotangents<'_>,
    );

    /// Computes variances k(xᵢ, xᵢ), the diagonal of K(X), into `out`.
    fn diag(&self, x: MatRef<f64>, out: &mut [f64]);

    /// Pulls the cotangent of the variances back into `sinks` (hyperparameters and `x`).
    fn diag_vjp(&self, x: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>);

    /// Returns the unit of every number among the hyperparameters, in the order of
    /// [`Kernel::params`]; `None` where a number serves several input columns and so has no single
    /// unit.
    fn units(&self) -> Vec<Option<Unit>> {
        vec![None; self.num_params()]
    }

    /// Raises `relevance[q]` to at least 1/ℓ for every input column q that the kernel sees at
    /// lengthscale ℓ: how finely the function may vary along it. Kernels without a lengthscale do
    /// not change it.
    fn relevance(&self, relevance: &mut [f64]) {
        let _ = relevance;
    }

    /// Gives the hyperparameters starting values on the scale of the data: `spreads` are standard
    /// deviations of the input columns, `variance` is what the kernel should explain in all. A value
    /// that the specification gave stays.
    fn initialise(&mut self, spreads: &[f64], variance: f64);

    /// Sets starting values that take a look at rows: `x` are inputs (N×D), `y` the targets (N×P,
    /// NaN where missing). Called after [`Kernel::initialise`]; a value that the specification gave
    /// stays. Most kernels need no look.
    fn initialise_from_rows(&mut self, x: MatRef<f64>, y: MatRef<f64>) {
        let _ = (x, y);
    }

    /// Returns kernels with other starting values than this one has, where rows leave it open which are the best: other
    /// periods, other places of a change. For inputs (N×D) and targets (N×P, NaN where missing), on the scale of the data;
    /// a value that the specification gave stays.
    fn other_starts(&self, x: MatRef<f64>, y: MatRef<f64>) -> Vec<Box<dyn Kernel>> {
        let _ = (x, y);
        Vec::new()
    }

    /// Takes out of targets (N×P) what the starting values explain without a fit, such as waves of a period, so that another
    /// kernel of a sum looks for something else.
    fn take_out(&self, x: MatRef<f64>, y: MatMut<f64>) {
        let _ = (x, y);
    }

    /// Returns the input columns that the kernel reads as labels 0, 1, …: they must not be
    /// standardised.
    fn labels(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Returns those of the labels of which values that no training row has are known too: groups.
    fn open_labels(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Returns the input columns of one kind, such as the pixels of an image, group by group: those
    /// of a group are standardised with one mean and one scale, or they could not be compared any
    /// more.
    fn alike(&self) -> Vec<Vec<usize>> {
        Vec::new()
    }

    /// Refuses inputs (N×D) that the kernel knows nothing of: without some column that it reads, or with a label that is
    /// none.
    ///
    /// # Errors
    /// [`Error::Shape`] with both numbers of columns, [`Error::Invalid`] that names the value.
    fn check(&self, x: MatRef<f64>) -> Result<()> {
        let _ = x;
        Ok(())
    }

    /// Tries the kernel at a few of these inputs (N×D) before a fit, at its starting values: kernels of others may be no
    /// covariance functions.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the kernel and says what is wrong.
    fn trial(&self, x: MatRef<f64>) -> Result<()> {
        let _ = x;
        Ok(())
    }

    /// Returns the inducing variables of another domain than the inputs, which the kernel takes in
    /// their place wherever rows have as many columns as they, such as patches for images; `None`
    /// for a kernel that knows only inputs.
    fn interdomain(&self) -> Option<Interdomain> {
        None
    }

    /// Chooses at most so many distinct places of such variables at random, from inputs (N×D).
    fn choose_interdomain(&self, x: MatRef<f64>, most: usize, rng: &mut dyn rand::Rng) -> Mat<f64> {
        let _ = (most, rng);
        Mat::zeros(0, x.ncols())
    }

    /// Adds to every row of `out` (F×D) a draw ω from the spectral density of the kernel, independent of the
    /// other rows: k(x, x′) = σ² E cos ωᵀ(x − x′) (Bochner's theorem). Returns σ². Random functions of such
    /// waves have this covariance ([`crate::model::Posterior::sample_functions`]). Linear terms of sums are left out
    /// ([`slopes`]).
    ///
    /// # Errors
    /// [`Error::Invalid`] that names a kernel without a spectral density to draw from.
    fn spectral(&self, out: MatMut<f64>, rng: &mut dyn rand::Rng) -> Result<f64> {
        let _ = (out, rng);
        Err(no_spectrum(self.name()))
    }

    /// Returns the kernel's form, where its expectations under Gaussian inputs are known; `None`
    /// for others.
    fn form(&self) -> Option<Form<'_>> {
        None
    }

    /// Returns the kernel as a linear function of a Markov process, where it is one, at its present hyperparameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names a kernel without such a form, [`Error::NonFinite`] where a series would be too long.
    fn state_space(&self) -> Result<Box<dyn StateSpace>> {
        Err(state_space::none(self.name()))
    }

    /// Returns independent functions whose sum has this covariance, with names of which `names`, those of the inputs, are a
    /// part: one for a kernel that is not a sum. [`terms::terms`] numbers equal names.
    fn terms(&self, names: &[String]) -> Vec<Term> {
        vec![Term { name: terms::name(&self.to_json(), names), kernel: self.clone_box() }]
    }

    /// Returns the kernel as a function of distances that somebody else measures; `None` if it is
    /// not such a function.
    fn into_stationary(self: Box<Self>) -> Option<Box<dyn radial::Stationary>> {
        None
    }

    /// Returns the kernel as JSON, which [`build`] reads.
    fn to_json(&self) -> Value;

    /// Returns a copy.
    fn clone_box(&self) -> Box<dyn Kernel>;
}

/// Variables of another domain ([`Kernel::interdomain`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interdomain {
    /// Columns of their places.
    pub columns: usize,
    /// Columns of the inputs.
    pub inputs: usize,
}

/// Returns whether inducing points of so many columns belong to a kernel of so many inputs.
pub fn points_fit(kernel: &dyn Kernel, columns: usize, inputs: usize) -> bool {
    let of_another = Interdomain { columns, inputs };
    columns == inputs || kernel.interdomain() == Some(of_another)
}

/// Refuses inputs (N×D) without some of the columns that a kernel reads.
fn check_columns(name: &str, columns: &[usize], x: MatRef<f64>) -> Result<()> {
    let needed = columns.iter().max().map_or(0, |last| last + 1);
    if x.ncols() >= needed {
        return Ok(());
    }
    let expected = format!("{needed} columns, since it reads column {}", needed - 1);
    Err(Error::shape(format!("inputs of the kernel `{name}`"), expected, x.ncols()))
}

/// Returns what [`Kernel::spectral`] says of a kernel that has none.
fn no_spectrum(name: &str) -> Error {
    Error::Invalid(format!(
        "the kernel `{name}` has no spectral density to draw from, which functions by random features need: draw \
         them jointly at given inputs instead, or use stationary kernels, their sums and products"
    ))
}

impl Clone for Box<dyn Kernel> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

/// Parses a kernel from its specification, either the short form (`matern52 + linear`) or JSON.
///
/// # Errors
/// [`crate::Error::Spec`] that names the position and what would be right;
/// [`crate::Error::InvalidParameter`] for values out of range.
pub fn parse(spec: &str, inputs: Inputs<'_>) -> Result<Box<dyn Kernel>> {
    let json = spec::read(spec)?;
    build(&json, inputs).map_err(|error| match error {
        // in the words that were given, at the first of them that the reason names
        Error::Spec { reason, .. } => Error::Spec {
            spec: spec.to_owned(),
            position: reason.split('`').skip(1).find_map(|word| spec.find(word)).unwrap_or(0),
            reason,
        },
        other => other,
    })
}

/// Returns which of these columns the kernels of a specification (one, or several separated by `;`)
/// read as labels ([`Kernel::labels`]). What cannot be read has none: it is refused, with the
/// reason, where a model is made of it.
pub fn label_columns(specification: &str, names: &[String]) -> Vec<usize> {
    let mut found = Vec::new();
    for_each_kernel(specification, names, &mut |kernel| found.extend(kernel.labels()));
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns which of these columns the kernels of a specification take for columns of one kind
/// ([`Kernel::alike`]); groups with a column in common are one. As for [`label_columns`] otherwise.
pub fn alike_columns(specification: &str, names: &[String]) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    for_each_kernel(specification, names, &mut |kernel| {
        for mut group in kernel.alike() {
            let (joined, others): (Vec<_>, Vec<_>) = found
                .drain(..)
                .partition(|other| other.iter().any(|column| group.contains(column)));
            found = others;
            group.extend(joined.into_iter().flatten());
            group.sort_unstable();
            group.dedup();
            found.push(group);
        }
    });
    found
}

/// Calls `f` with every kernel of a specification that can be built for these columns.
fn for_each_kernel(specification: &str, names: &[String], f: &mut dyn FnMut(&dyn Kernel)) {
    fn of(json: &serde_json::Value, inputs: Inputs<'_>, f: &mut dyn FnMut(&dyn Kernel)) {
        match json {
            serde_json::Value::Object(entries) => {
                // every kernel for itself: another may have values for other columns
                match build(json, inputs).ok().filter(|_| entries.contains_key("type")) {
                    Some(kernel) => f(&*kernel),
                    None => entries.values().for_each(|value| of(value, inputs, f)),
                }
            }
            serde_json::Value::Array(all) => all.iter().for_each(|value| of(value, inputs, f)),
            _ => {}
        }
    }
    for json in specification.split(';').filter_map(|part| spec::read(part.trim()).ok()) {
        of(&json, Inputs::named(names), f);
    }
}

use faer::reborrow::ReborrowMut;

#[cfg(test)]
mod far_tests;
#[cfg(test)]
mod groups_tests;
#[cfg(test)]
mod identities;
#[cfg(test)]
mod tests;

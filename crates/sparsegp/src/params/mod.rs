//! Parameters: named, constrained, possibly frozen, possibly with a prior.
//!
//! A component (kernel, mean, likelihood, inducing points) owns its [`Param`]s and lists them in a
//! fixed order, each under a path such as `kernel.kernels[0].lengthscales`. Values are *constrained*
//! (a variance, a lengthscale); optimisers see the flat vector of *free* numbers of those that are
//! not frozen. Gradients are passed around with respect to the constrained values, in the order of
//! the list, and mapped to the free vector in one place ([`free_gradient`]).

mod bounds;
mod free;
mod paths;
mod prior;
mod role;
mod steps;
mod tied;
mod transform;

pub(crate) use bounds::Ruler;
pub use bounds::{Bounds, remarks};
pub use free::{free_count, free_gradient, free_values, set_free_values};
pub use paths::{in_group, unknown};
pub use prior::{Group, Prior, assumed_log_prior, log_prior};
pub use role::Role;
pub(crate) use steps::STEP;
pub use transform::Transform;

use crate::error::{Error, Result};
use crate::linalg::MatRef;
use serde_json::{Value, json};
use std::fmt::Display;

/// Shape of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One number.
    Scalar,
    /// A list of numbers.
    Vector(usize),
    /// Rows × columns, stored column by column.
    Matrix(usize, usize),
    /// So many lower-triangular matrices of this size, one after the other, each column by column
    /// from the diagonal down.
    Lower(usize, usize),
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shape::Scalar => write!(f, "scalar"),
            Shape::Vector(n) => write!(f, "{n}"),
            Shape::Matrix(n, m) => write!(f, "{n}×{m}"),
            Shape::Lower(count, size) => write!(f, "{count}×{size}×{size}, lower triangles"),
        }
    }
}

/// A parameter: constrained value, transform to free numbers, optional prior, frozen or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    value: Vec<f64>,
    shape: Shape,
    /// Of the values without bounds.
    natural: Transform,
    /// Of the values within the bounds.
    transform: Transform,
    bounds: Bounds,
    role: Role,
    /// Density of the constrained value, added to the objective (no Jacobian: MAP of the value).
    pub prior: Option<Prior>,
    /// Whether nobody asked for the prior: it steadies the training, and comparisons of models leave it out.
    pub assumed: bool,
    /// Numbers that an assumed prior takes for alike; a number is in one group at most.
    pub groups: Vec<Group>,
    /// Numbers that are one.
    tied: Vec<Group>,
    /// Whether optimisers do not change it.
    pub frozen: bool,
    /// Whether a specification gave the value, so that starting values from the data keep away.
    pub given: bool,
}

impl Param {
    /// Creates a positive scalar (softplus transform).
    pub fn positive(value: f64) -> Self {
        Self::with(vec![value], Shape::Scalar, Transform::POSITIVE)
    }

    /// Makes a scalar that may be any number.
    pub fn real(value: f64) -> Self {
        Self::with(vec![value], Shape::Scalar, Transform::Identity)
    }

    /// Creates a list of positive numbers (softplus transform).
    pub fn positive_vector(value: Vec<f64>) -> Self {
        let shape = Shape::Vector(value.len());
        Self::with(value, shape, Transform::POSITIVE)
    }

    /// Creates a parameter with every part given. `value` holds matrices column by column.
    pub fn with(value: Vec<f64>, shape: Shape, transform: Transform) -> Self {
        let (natural, bounds) = (transform, Bounds::default());
        let (prior, assumed, frozen, given) = (None, false, false, false);
        let role = Role::default();
        let (groups, tied) = (Vec::new(), Vec::new());
        Self {
            value,
            shape,
            natural,
            transform,
            bounds,
            role,
            prior,
            assumed,
            groups,
            tied,
            frozen,
            given,
        }
    }

    /// Says what its numbers are.
    #[must_use]
    pub fn of(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// Returns what its numbers are.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Makes a parameter of a matrix.
    pub fn of_matrix(a: MatRef<f64>, transform: Transform) -> Self {
        let values = (0..a.ncols()).flat_map(|j| (0..a.nrows()).map(move |i| a[(i, j)])).collect();
        Self::with(values, Shape::Matrix(a.nrows(), a.ncols()), transform)
    }

    /// Returns the constrained values as a matrix of their shape; a list is one column.
    pub fn matrix(&self) -> MatRef<'_, f64> {
        let (rows, columns) = match self.shape {
            Shape::Matrix(rows, columns) => (rows, columns),
            _ => (self.len(), 1),
        };
        MatRef::from_column_major_slice(&self.value, rows, columns)
    }

    /// Returns the constrained values; a matrix column by column.
    pub fn value(&self) -> &[f64] {
        &self.value
    }

    /// Returns the same, to change them within the transform's range.
    pub(crate) fn value_mut(&mut self) -> &mut [f64] {
        &mut self.value
    }

    /// Returns the value of a scalar (the first of several).
    pub fn scalar(&self) -> f64 {
        self.value[0]
    }

    /// Returns the number of numbers.
    pub fn len(&self) -> usize {
        self.value.len()
    }

    /// Returns whether there are no numbers.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// Returns the shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the transform between constrained and free values.
    pub fn transform(&self) -> Transform {
        self.transform
    }

    /// Returns the transform that there would be without bounds.
    pub fn natural(&self) -> Transform {
        self.natural
    }

    /// Returns the bounds that were given, for every value the same.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Keeps all values between these bounds from now on; values outside are moved inside.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for bounds in the wrong order, or that are not within the range that the
    /// parameter has by nature.
    pub fn bound(&mut self, path: &str, bounds: Bounds) -> Result<()> {
        let invalid = |reason| Error::InvalidParameter { path: path.to_owned(), reason };
        self.transform = bounds.within(self.natural).map_err(invalid)?;
        self.bounds = bounds;
        if bounds.any() {
            self.value = self.value.iter().map(|v| self.inside(*v)).collect();
        }
        Ok(())
    }

    /// Returns how values within the bounds are measured; none without bounds.
    pub(crate) fn ruler(&self) -> Option<Ruler> {
        self.bounds.any().then(|| self.bounds.ruler(self.natural))
    }

    /// Returns a starting value as it can be: near a bound that it is beyond (or at). One outside
    /// of the natural range of a parameter without bounds becomes that whose free number is 0.
    fn inside(&self, value: f64) -> f64 {
        let near = self.ruler().map_or(value, |ruler| ruler.start(value));
        if self.transform.contains(near) { near } else { self.transform.to_constrained(0.0) }
    }

    /// Sets starting values, moved inside the bounds and the natural range where they are not. One number is spread
    /// over all.
    pub fn start(&mut self, values: &[f64]) {
        let mut inside: Vec<f64> = values.iter().map(|v| self.inside(*v)).collect();
        self.level(&mut inside);
        // the number of values fits by construction and each is in range
        let set = self.set("", &inside);
        debug_assert!(set.is_ok());
    }

    /// Returns the values that are at a bound: their places, and the bound by its name and number.
    /// At it is what lies within a thousandth of the interval's length, of logarithms where the
    /// parameter is positive.
    pub fn at_bounds(&self) -> Vec<(usize, &'static str, f64)> {
        let Some(ruler) = self.ruler() else { return Vec::new() };
        let ends = [("min", self.bounds.min), ("max", self.bounds.max)];
        let mut found = Vec::new();
        for (at, value) in self.value.iter().enumerate() {
            let measure = ruler.measure(*value);
            let reached = |bound: f64| ruler.is_at(measure, ruler.measure(bound));
            let ends = ends.iter().filter_map(|(name, bound)| Some((*name, (*bound)?)));
            found.extend(ends.filter(|(_, b)| reached(*b)).map(|(name, b)| (at, name, b)));
        }
        found
    }

    /// Sets the values; one number is spread over all.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if the number of values differs, one is outside the transform's
    /// range, or tied ones differ ([`Param::tie`]).
    pub fn set(&mut self, path: &str, value: &[f64]) -> Result<()> {
        let invalid = |reason| Error::InvalidParameter { path: path.to_owned(), reason };
        if value.len() != self.len() && value.len() != 1 {
            return Err(invalid(format!(
                "has {} values, {} were given; give all of them or one for all",
                self.len(),
                value.len()
            )));
        }
        if let Some(bad) = value.iter().find(|v| !self.transform.contains(**v)) {
            return Err(invalid(format!("{bad} is outside {}", self.transform.range())));
        }
        if value.len() == self.len() {
            self.check_tied(value).map_err(invalid)?;
        }
        if value.len() == 1 {
            self.value.fill(value[0]);
        } else {
            self.value.copy_from_slice(value);
        }
        Ok(())
    }

    /// Returns JSON: plain numbers, or an object with `value`, `min`, `max`, `prior`, `frozen`,
    /// `transform` where these differ from what `default_transform` and a fresh parameter have.
    pub fn to_json(&self, default_transform: Transform) -> Value {
        let value = match self.shape {
            Shape::Scalar => json!(self.value[0]),
            _ => json!(self.value),
        };
        let plain =
            self.prior.is_none() && !self.frozen && !self.bounds.any() && self.tied.is_empty();
        if plain && self.natural == default_transform {
            return value;
        }
        let mut object = json!({ "value": value });
        for (name, bound) in [("min", self.bounds.min), ("max", self.bounds.max)] {
            if let Some(bound) = bound {
                object[name] = json!(bound);
            }
        }
        if let Some(prior) = &self.prior {
            object["prior"] = json!(prior);
        }
        if self.assumed {
            object["assumed"] = json!(true);
        }
        if !self.groups.is_empty() {
            object["alike"] = json!(self.groups);
        }
        if !self.tied.is_empty() {
            object["tied"] = json!(self.tied);
        }
        if self.frozen {
            object["frozen"] = json!(true);
        }
        if self.natural != default_transform {
            object["transform"] = json!(self.natural);
        }
        object
    }

    /// Reads what [`Param::to_json`] writes into `self`: the number of values may change only from
    /// and to a scalar (which callers then spread).
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for anything else than numbers or the object form.
    pub fn read_json(&mut self, path: &str, json: &Value) -> Result<()> {
        let invalid = |reason: String| Error::InvalidParameter { path: path.to_owned(), reason };
        let numbers = |v: &Value| -> Result<Vec<f64>> {
            match v {
                Value::Number(_) => Ok(vec![v.as_f64().unwrap_or(f64::NAN)]),
                Value::Array(items) => items
                    .iter()
                    .map(|item| {
                        item.as_f64().ok_or_else(|| invalid(format!("{item} is not a number")))
                    })
                    .collect(),
                other => Err(invalid(format!("{other} is not a number or a list of numbers"))),
            }
        };
        let Value::Object(object) = json else {
            return self.set(path, &numbers(json)?);
        };
        let (mut bounds, mut tied) = (self.bounds, None);
        for (key, entry) in object {
            match key.as_str() {
                "transform" => {
                    self.natural = serde_json::from_value(entry.clone())
                        .map_err(|e| invalid(format!("transform: {e}")))?;
                    self.transform = self.natural;
                }
                "min" => bounds.min = Bounds::read(entry, key).map_err(invalid)?,
                "max" => bounds.max = Bounds::read(entry, key).map_err(invalid)?,
                "prior" => {
                    let prior: Option<Prior> = serde_json::from_value(entry.clone())
                        .map_err(|e| invalid(format!("prior: {e}")))?;
                    self.prior = prior;
                }
                "assumed" => {
                    self.assumed = entry
                        .as_bool()
                        .ok_or_else(|| invalid(format!("assumed: {entry} is not true or false")))?;
                }
                "alike" => {
                    let groups: Vec<Group> = serde_json::from_value(entry.clone())
                        .map_err(|e| invalid(format!("alike: {e}")))?;
                    self.groups = groups;
                }
                "tied" => {
                    let groups: Vec<Group> = serde_json::from_value(entry.clone())
                        .map_err(|e| invalid(format!("tied: {e}")))?;
                    tied = Some(groups);
                }
                "frozen" => {
                    self.frozen = entry
                        .as_bool()
                        .ok_or_else(|| invalid(format!("frozen: {entry} is not true or false")))?;
                }
                "value" => {}
                other => {
                    return Err(invalid(format!(
                        "unknown entry `{other}`; known are value, min, max, prior, assumed, alike, tied, frozen, transform"
                    )));
                }
            }
        }
        if bounds.any() {
            self.bound(path, bounds)?;
        }
        self.set_prior(path, self.prior)?;
        if let Some(value) = object.get("value") {
            self.set(path, &numbers(value)?)?;
        }
        if let Some(groups) = tied {
            self.tie(path, groups)?;
        }
        match tied::are_distinct(&self.groups, self.len()) {
            true => Ok(()),
            false => Err(invalid("alike: places are those of values, each at most once".into())),
        }
    }
}

/// A path with its parameter.
pub type Named<'a> = (String, &'a Param);
/// A path with its parameter, to change it.
pub type NamedMut<'a> = (String, &'a mut Param);

/// Is shown every parameter of a component, in order, with its path within the component. Components
/// list their parameters by visits, because training asks for them at every step and a visit needs no
/// memory; [`listed`] makes a list of it.
pub type Visitor<'a, 'v> = &'v mut (dyn FnMut(&dyn Display, &'a Param) + 'v);
/// The same, to change them.
pub type VisitorMut<'a, 'v> = &'v mut (dyn FnMut(&dyn Display, &'a mut Param) + 'v);

/// Returns what a component shows its visitor.
pub fn listed<'a>(visit: impl FnOnce(Visitor<'a, '_>)) -> Vec<Named<'a>> {
    let mut all = Vec::new();
    visit(&mut |path, param| all.push((path.to_string(), param)));
    all
}

/// Returns the same, to change them.
pub fn listed_mut<'a>(visit: impl FnOnce(VisitorMut<'a, '_>)) -> Vec<NamedMut<'a>> {
    let mut all = Vec::new();
    visit(&mut |path, param| all.push((path.to_string(), param)));
    all
}

/// Returns how many numbers a component shows its visitor.
pub fn count<'a>(visit: impl FnOnce(Visitor<'a, '_>)) -> usize {
    let mut count = 0;
    visit(&mut |_, param| count += param.len());
    count
}

/// Shows a visitor the parameters of a part, with `prefix.` before every path.
pub fn prefixed<'a>(
    prefix: &dyn Display,
    visitor: Visitor<'a, '_>,
    visit: impl FnOnce(Visitor<'a, '_>),
) {
    visit(&mut |path, param| visitor(&format_args!("{prefix}.{path}"), param));
}

/// Shows the same, to change them.
pub fn prefixed_mut<'a>(
    prefix: &dyn Display,
    visitor: VisitorMut<'a, '_>,
    visit: impl FnOnce(VisitorMut<'a, '_>),
) {
    visit(&mut |path, param| visitor(&format_args!("{prefix}.{path}"), param));
}

#[cfg(test)]
mod tests;

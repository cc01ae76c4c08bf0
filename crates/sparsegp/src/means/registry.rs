//! Mean functions by name.

use super::{Constant, Linear, Mean, Zero};
use crate::error::{Error, Result, nearest};
use crate::guests::{Guests, Named};
use crate::params::NamedMut;
use serde_json::{Map, Value};

/// What a mean function is built from.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    /// The name that was written.
    pub name: &'a str,
    /// The other entries of the specification.
    pub entries: &'a Map<String, Value>,
    /// D.
    pub inputs: usize,
    /// P.
    pub outputs: usize,
}

impl Args<'_> {
    /// Returns an entry.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.get(name)
    }

    /// Sets parameters to the entries of their names, and refuses entries that are neither these nor `further`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown entry, [`Error::InvalidParameter`] for bad values.
    pub fn read<'k>(
        &self,
        params: Vec<NamedMut<'_>>,
        further: impl IntoIterator<Item = &'k str>,
    ) -> Result<()> {
        let further: Vec<&str> = further.into_iter().collect();
        let paths: Vec<String> = params.iter().map(|(path, _)| path.clone()).collect();
        let known = |key: &&String| {
            *key == "type" || paths.contains(key) || further.contains(&key.as_str())
        };
        if let Some(key) = self.entries.keys().find(|key| !known(key)) {
            return Err(Error::Invalid(format!(
                "mean `{}`: unknown entry `{key}`; known: {}",
                self.name,
                if paths.is_empty() { "none".into() } else { paths.join(", ") }
            )));
        }
        for (path, param) in params {
            if let Some(value) = self.entries.get(&path) {
                param.read_json(&format!("mean.{path}"), value)?;
                param.given = value.as_object().is_none_or(|object| object.contains_key("value"));
            }
        }
        Ok(())
    }
}

/// A mean function that can be named.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name that is written.
    pub name: &'static str,
    /// What it is, for help texts.
    pub about: &'static str,
    /// Makes it.
    pub build: fn(Args<'_>) -> Result<Box<dyn Mean>>,
}

/// The mean functions of this crate.
pub const REGISTRY: &[Entry] = &[
    Entry { name: "zero", about: "0", build: |args| read(Zero, args) },
    Entry {
        name: "constant",
        about: "a number for every output",
        build: |args| read(Constant::new(args.outputs), args),
    },
    Entry {
        name: "linear",
        about: "a linear function of the inputs for every output",
        build: |args| read(Linear::new(args.inputs, args.outputs), args),
    },
];

fn read(mut mean: impl Mean + 'static, args: Args<'_>) -> Result<Box<dyn Mean>> {
    args.read(mean.params_mut(), [])?;
    Ok(Box::new(mean))
}

impl Named for Entry {
    const WHAT: &'static str = "mean function";

    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn is(&self, other: &Self) -> bool {
        self.name == other.name && std::ptr::fn_addr_eq(self.build, other.build)
    }

    fn own() -> &'static [Self] {
        REGISTRY
    }
}

static ENTRIES: Guests<Entry> = Guests::new();

/// Gives a mean function of another crate a name, in this process, as [`crate::kernels::register`] does for kernels.
///
/// # Errors
/// [`Error::Invalid`] for a name that is taken, or that options could not have.
pub fn register(entry: Entry) -> Result<()> {
    ENTRIES.register(entry)
}

/// Lists the names that are known: those of this crate first.
pub fn names() -> Vec<&'static str> {
    ENTRIES.all().into_iter().map(|entry| entry.name).collect()
}

/// Makes a mean function by name, for D inputs and P outputs, with the parameters that it starts from: 0 in those of this crate.
///
/// # Errors
/// [`Error::Invalid`] for an unknown name.
pub fn by_name(name: &str, inputs: usize, outputs: usize) -> Result<Box<dyn Mean>> {
    build(name, &Map::new(), inputs, outputs)
}

fn build(
    name: &str,
    entries: &Map<String, Value>,
    inputs: usize,
    outputs: usize,
) -> Result<Box<dyn Mean>> {
    if let Some(entry) = ENTRIES.find(name) {
        return (entry.build)(Args { name, entries, inputs, outputs });
    }
    if let Some(class) = entries.get("class").and_then(Value::as_str) {
        return Err(Error::Invalid(format!(
            "the mean function is the class `{class}` of Python, which nothing else can load: use the model from Python"
        )));
    }
    let names = names();
    Err(Error::Invalid(format!(
        "unknown mean function `{name}`; nearest: {}; known: {}",
        nearest(name, names.iter().copied()).join(", "),
        names.join(", ")
    )))
}

/// Writes JSON of a mean function: its name and its parameters.
pub fn to_json(mean: &dyn Mean) -> Value {
    mean.to_json()
}

/// Reads a mean function from its JSON.
///
/// # Errors
/// [`Error::Invalid`] for an unknown name or entry, [`Error::InvalidParameter`] for bad values.
pub fn from_json(json: &Value, inputs: usize, outputs: usize) -> Result<Box<dyn Mean>> {
    let name = json.get("type").and_then(Value::as_str);
    let name = name.ok_or_else(|| Error::Invalid(format!("mean {json}: `type` is missing")))?;
    let none = Map::new();
    build(name, json.as_object().unwrap_or(&none), inputs, outputs)
}

/// Returns a mean function of other outputs with the same name: those of other crates stay as they
/// are.
pub(crate) fn of_outputs(mean: &dyn Mean, inputs: usize, outputs: usize) -> Result<Box<dyn Mean>> {
    match REGISTRY.iter().any(|entry| entry.name == mean.name()) {
        true => by_name(mean.name(), inputs, outputs),
        false => Ok(mean.clone_box()),
    }
}

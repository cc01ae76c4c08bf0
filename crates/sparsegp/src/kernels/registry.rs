//! The list of kernels by name, and how a kernel is built from JSON.

use super::{
    Inputs, Kernel, additive, arccosine, categorical, change_points, constant, convolutional,
    coregion, cosine, exponential, gamma_exponential, linear, matern, periodic, polynomial,
    product, rational_quadratic, spec, squared_exponential, sum, warped, white,
};
use crate::error::{Error, Result, nearest};
use crate::guests::{Guests, Named};
use crate::params::{Param, Role, Transform};
use serde_json::{Map, Value};

/// A kernel that can be named in a specification.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name that is written.
    pub name: &'static str,
    /// Other names that are understood.
    pub aliases: &'static [&'static str],
    /// One line for people.
    pub about: &'static str,
    /// Builds it with starting values 1.
    pub build: fn(Args<'_>) -> Result<Box<dyn Kernel>>,
}

/// Every kernel: one line each.
pub const REGISTRY: &[Entry] = &[
    squared_exponential::ENTRY,
    matern::ENTRY_12,
    matern::ENTRY_32,
    matern::ENTRY_52,
    exponential::ENTRY,
    gamma_exponential::ENTRY,
    rational_quadratic::ENTRY,
    additive::ENTRY,
    periodic::ENTRY,
    cosine::ENTRY,
    linear::ENTRY,
    polynomial::ENTRY,
    arccosine::ENTRY,
    constant::ENTRY,
    white::ENTRY,
    coregion::ENTRY,
    categorical::ENTRY,
    change_points::ENTRY,
    warped::ENTRY,
    convolutional::ENTRY,
    sum::ENTRY,
    product::ENTRY,
];

impl Named for Entry {
    const WHAT: &'static str = "kernel";

    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    fn is(&self, other: &Self) -> bool {
        self.name == other.name && std::ptr::fn_addr_eq(self.build, other.build)
    }

    fn own() -> &'static [Self] {
        REGISTRY
    }
}

static ENTRIES: Guests<Entry> = Guests::new();

/// Gives a kernel of another crate a name, in this process: specifications ([`FitOptions::kernel`], sums and products), model
/// files, checkpoints and rows in other processes know it from then on, as they know the kernels in [`REGISTRY`]. Call it before
/// a model file with the kernel is read. The same entry may be registered again.
///
/// # Errors
/// [`Error::Invalid`] for a name or alias that is taken, or that specifications could not name.
///
/// [`FitOptions::kernel`]: crate::fit::FitOptions::kernel
pub fn register(entry: Entry) -> Result<()> {
    ENTRIES.register(entry)
}

/// Returns the entry of a registered name or alias, in any capitals.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.find(name)
}

/// Builds a kernel from JSON: `{"type": "rbf", "variance": 2.0, "active_dims": [0, 1]}`.
///
/// # Errors
/// [`Error::Spec`] for an unknown type or entry, [`Error::InvalidParameter`] for values out of range.
pub fn build(json: &Value, inputs: Inputs<'_>) -> Result<Box<dyn Kernel>> {
    // a kernel within a kernel may be in the short form
    if let Value::String(short) = json {
        return build(&spec::read(short)?, inputs);
    }
    let wrong = |reason: String| Error::Spec { spec: json.to_string(), position: 0, reason };
    let Value::Object(entries) = json else {
        return Err(wrong("a kernel is an object with an entry `type`".into()));
    };
    let Some(Value::String(name)) = entries.get("type") else {
        return Err(wrong("the entry `type` is missing".into()));
    };
    let Some(entry) = find(name) else {
        if let Some(class) = entries.get("class").and_then(Value::as_str) {
            return Err(wrong(format!(
                "the kernel is the class `{class}` of Python, which nothing else can load: use the model from Python"
            )));
        }
        let names: Vec<&str> = ENTRIES.all().into_iter().map(|e| e.name).collect();
        return Err(wrong(format!(
            "unknown kernel `{name}`; nearest: {}; known: {}",
            nearest(&name.to_ascii_lowercase(), names.iter().copied()).join(", "),
            names.join(", ")
        )));
    };
    let mut groups = groups(json, inputs);
    groups.extend(inputs.groups);
    let inputs = Inputs { groups: &groups, ..inputs };
    (entry.build)(Args { name: entry.name, entries, inputs })
}

/// Returns the columns that kernels of groups were given, anywhere in a kernel: others leave them
/// out unless they are given columns too, since between groups there is no distance.
fn groups(json: &Value, inputs: Inputs<'_>) -> Vec<usize> {
    let own = |entries: &Map<String, Value>| {
        let name = entries.get("type").and_then(Value::as_str).and_then(find);
        let given = name.filter(|entry| entry.name == categorical::ENTRY.name);
        let given = given.and_then(|_| entries.get("active_dims")?.as_array());
        let column = |item: &Value| match item {
            Value::String(name) => inputs.positions(name),
            other => other.as_u64().map(|d| d as usize).into_iter().collect(),
        };
        given.into_iter().flatten().flat_map(column).collect::<Vec<_>>()
    };
    match json {
        Value::Object(entries) => {
            let inner = ["kernels", "base"].into_iter().filter_map(|key| entries.get(key));
            own(entries).into_iter().chain(inner.flat_map(|inner| groups(inner, inputs))).collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| groups(item, inputs)).collect(),
        Value::String(short) => {
            spec::read(short).map_or_else(|_| Vec::new(), |own| groups(&own, inputs))
        }
        _ => Vec::new(),
    }
}

/// The entries of a kernel's JSON object, with the inputs it will see.
pub struct Args<'a> {
    name: &'static str,
    entries: &'a Map<String, Value>,
    /// The inputs.
    pub inputs: Inputs<'a>,
}

impl<'a> Args<'a> {
    /// Creates the entries of a kernel of this name.
    pub fn new(name: &'static str, entries: &'a Map<String, Value>, inputs: Inputs<'a>) -> Self {
        Self { name, entries, inputs }
    }

    /// Returns an entry, if it was given.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.entries.get(name)
    }

    /// Returns the whole number called `name` from `least` on, if it was given.
    pub fn whole(&self, name: &str, least: u32) -> Result<Option<u32>> {
        let Some(given) = self.get(name) else { return Ok(None) };
        let number = given.as_f64().filter(|v| v.fract() == 0.0 && *v <= f64::from(u32::MAX));
        match number.filter(|v| *v >= f64::from(least)) {
            Some(number) => Ok(Some(number as u32)),
            None => {
                Err(self.wrong(format!("`{name}` is a whole number from {least} on, not {given}")))
            }
        }
    }

    /// Returns an [`Error::Spec`] for these arguments.
    pub fn wrong(&self, reason: String) -> Error {
        Error::Spec {
            spec: Value::Object(self.entries.clone()).to_string(),
            position: 0,
            reason: format!("kernel `{}`: {reason}", self.name),
        }
    }

    /// Refuses entries that nobody asked for.
    pub fn allow(&self, known: &[&str]) -> Result<()> {
        match self.entries.keys().find(|k| *k != "type" && !known.contains(&k.as_str())) {
            Some(key) => {
                let inside = ["base", "kernels"].into_iter().find(|inside| known.contains(inside));
                let remedy = match inside.filter(|_| key == "active_dims") {
                    Some("base") => format!(
                        "; columns are those of the kernel inside: {}(base=rbf(active_dims=…))",
                        self.name
                    ),
                    Some(_) => "; columns are those of the kernels inside".into(),
                    None => String::new(),
                };
                let all = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(self.wrong(format!("unknown entry `{key}`; known: {all}{remedy}")))
            }
            None => Ok(()),
        }
    }

    /// Returns the positive parameter called `name`, 1 where it is not given. `len` is the number
    /// of values of a vector; a vector may also be given as one number for all, and then stays a
    /// scalar unless the specification gave none and `ard` asks for one value per input. The
    /// lengthscales of the coordinates of a place are one, which may be given once.
    pub fn positive(&self, name: &str, len: Option<usize>, ard: bool) -> Result<Param> {
        let role = Role::of_kernel(name);
        let places = match len {
            Some(len) if role == Role::Lengthscales => self.places(len)?,
            _ => Vec::new(),
        };
        let expanded = len.and_then(|len| of_each(self.get(name)?, len, &places));
        let given = expanded.as_ref().or(self.get(name));
        let value = match given {
            Some(Value::Object(object)) => object.get("value"),
            other => other,
        };
        let only = len.is_some_and(|len| places.iter().any(|place| place.len() == len));
        let vector = match (len, value) {
            (None, _) => None,
            (Some(len), Some(Value::Array(items))) if items.len() == len => Some(len),
            (Some(len), Some(Value::Array(items))) => {
                return Err(self.wrong(format!(
                    "`{name}` has {} values for {len} active input columns",
                    items.len()
                )));
            }
            (Some(len), _) if only => Some(len),
            (Some(_), Some(_)) if !self.entries.contains_key("ard") => None,
            (Some(len), _) => ard.then_some(len),
        };
        let mut param = match vector {
            Some(len) => Param::positive_vector(vec![1.0; len]),
            None => Param::positive(1.0),
        }
        .of(role);
        read_into(name, given, &mut param)?;
        if vector.is_some() && param.tied().is_empty() {
            // values that differ were given by somebody who wants them
            let alike = |place: &Vec<usize>| {
                place.iter().all(|at| param.value()[*at] == param.value()[place[0]])
            };
            let places = places.into_iter().filter(alike).collect();
            param.tie(name, places)?;
        }
        Ok(param)
    }

    /// Returns the places among so many active input columns of the coordinates of each place on
    /// Earth.
    fn places(&self, len: usize) -> Result<Vec<Vec<usize>>> {
        let (dims, _) = self.active_dims()?;
        Ok(if dims.len() == len { self.inputs.of_places(&dims) } else { Vec::new() })
    }

    /// Reads the entry called `name`, if it was given, into a parameter that holds starting values.
    pub fn read(&self, name: &str, param: &mut Param) -> Result<()> {
        read_into(name, self.get(name), param)
    }

    /// Returns whether there is one lengthscale (or variance) per input column: the entry `ard`,
    /// else `default`.
    pub fn ard(&self, default: bool) -> Result<bool> {
        match self.entries.get("ard") {
            None => Ok(default),
            Some(Value::Bool(ard)) => Ok(*ard),
            Some(other) => Err(self.wrong(format!("`ard` is true or false, not {other}"))),
        }
    }

    /// Returns the indices of the input columns the kernel looks at, and whether they were given.
    pub fn active_dims(&self) -> Result<(Vec<usize>, bool)> {
        let Some(given) = self.entries.get("active_dims") else {
            let groups = self.inputs.groups;
            let dims: Vec<usize> = (0..self.inputs.dim).filter(|d| !groups.contains(d)).collect();
            if dims.is_empty() && self.inputs.dim > 0 {
                return Err(self.wrong(format!(
                    "all input columns are read as groups by `{}`, and none is left: give `active_dims`",
                    categorical::ENTRY.name
                )));
            }
            return Ok((dims, !groups.is_empty()));
        };
        let Value::Array(items) = given else {
            return Err(self.wrong(format!("`active_dims` is a list, not {given}")));
        };
        let mut dims = Vec::with_capacity(items.len());
        for item in items {
            let own = match item {
                Value::String(name) => self.inputs.positions(name),
                other => vec![other.as_u64().map(|d| d as usize).ok_or_else(|| {
                    self.wrong(format!("`active_dims`: {other} is not an index"))
                })?],
            };
            if own.is_empty() {
                let name = item.as_str().unwrap_or_default();
                let names = self.inputs.names.unwrap_or_default().iter().map(String::as_str);
                let near = match nearest(name, names) {
                    none if none.is_empty() => {
                        "columns have no names here, but numbers from 0".into()
                    }
                    near => format!("nearest: {}", near.join(", ")),
                };
                return Err(self
                    .wrong(format!("`active_dims`: no input column is called `{name}`; {near}")));
            }
            // latitude and longitude name the same coordinates
            if own.len() > 1
                && own.iter().all(|dim| dims.contains(dim))
                && item.as_str().is_some_and(|name| self.inputs.is_of_place(name))
            {
                continue;
            }
            for dim in own {
                if dim >= self.inputs.dim {
                    return Err(self.wrong(format!(
                        "`active_dims`: {dim} is out of range, there are {} input columns (from 0)",
                        self.inputs.dim
                    )));
                }
                if dims.contains(&dim) {
                    return Err(self.wrong(format!("`active_dims`: {dim} is given twice")));
                }
                dims.push(dim);
            }
        }
        if dims.is_empty() {
            return Err(self.wrong("`active_dims` is empty".into()));
        }
        Ok((dims, true))
    }

    /// Returns the only input column that the kernel looks at, and whether it was given.
    pub fn active_dim(&self) -> Result<(usize, bool)> {
        match self.active_dims()? {
            (dims, given) if dims.len() == 1 => Ok((dims[0], given)),
            (dims, _) => Err(self.wrong(format!(
                "it looks at one input column, not at {}: give `active_dims`, such as \
                 `active_dims=[{}]`",
                dims.len(),
                self.inputs.names.map_or("0", |names| &names[dims[0]])
            ))),
        }
    }

    /// Returns the children of a kernel that combines several.
    pub fn children(&self) -> Result<Vec<Box<dyn Kernel>>> {
        match self.entries.get("kernels") {
            Some(Value::Array(items)) if items.len() > MOST_CHILDREN => Err(self.wrong(format!(
                "{} kernels are combined; {MOST_CHILDREN} are the most",
                items.len()
            ))),
            Some(Value::Array(items)) if !items.is_empty() => {
                items.iter().map(|item| build(item, self.inputs)).collect()
            }
            _ => Err(self.wrong("`kernels` is a list of kernels".into())),
        }
    }
}

/// Reads an entry, if it was given, into a parameter.
fn read_into(name: &str, given: Option<&Value>, param: &mut Param) -> Result<()> {
    if let Some(json) = given {
        param.read_json(name, json)?;
        param.given = json.as_object().is_none_or(|object| object.contains_key("value"));
    }
    Ok(())
}

/// Returns an entry with a value for each of so many columns, if it has one for each column of the
/// table: places have one there.
fn of_each(given: &Value, len: usize, places: &[Vec<usize>]) -> Option<Value> {
    if let Value::Object(object) = given {
        let value = of_each(object.get("value")?, len, places)?;
        let mut own = object.clone();
        own.insert("value".into(), value);
        return Some(Value::Object(own));
    }
    let fewer = places.iter().map(|place| place.len() - 1).sum::<usize>();
    let items = given.as_array().filter(|all| fewer > 0 && all.len() + fewer == len)?;
    let (mut all, mut items) = (vec![Value::Null; len], items.iter());
    for at in 0..len {
        match places.iter().find(|place| place.contains(&at)) {
            Some(place) if place[0] != at => all[at] = all[place[0]].clone(),
            _ => all[at] = items.next()?.clone(),
        }
    }
    Some(Value::Array(all))
}

/// Most kernels that one combines: slopes of a product, and starts, look at all pairs.
const MOST_CHILDREN: usize = 100;

/// Returns JSON of a kernel from its parameters: plain numbers where nothing else is set.
pub fn object(name: &str, params: &[(&str, &Param)], dims: Option<&[usize]>) -> Value {
    let mut object = serde_json::json!({ "type": name });
    for (path, param) in params {
        object[*path] = param.to_json(Transform::POSITIVE);
    }
    if let Some(dims) = dims {
        object["active_dims"] = serde_json::json!(dims);
    }
    object
}

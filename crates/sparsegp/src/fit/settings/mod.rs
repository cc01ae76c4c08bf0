//! The settings of a fit, each written once: its names, what it does, what it may be, where it goes
//! in [`FitOptions`], and what a method must have for it to have an effect.
//!
//! The command line and the Python package are made of this table, and so is the page of options: a
//! new setting is a field and an entry.

mod kinds;
mod minibatches;
mod model;
mod training;
mod traits;

pub use kinds::{Bounds, Kind};
pub use traits::{Trait, Traits, Way, possible, traits_of};

use super::{BatchOptions, FitOptions};
use crate::error::{Error, Result};
use crate::methods;
use serde_json::{Map, Value};

/// A setting of a fit.
pub struct Setting {
    /// Its name; at the command line with - for _, and `no-` before it where it is a flag that is
    /// set by default.
    pub name: &'static str,
    /// Its name among the arguments of the estimators in Python, or among the entries of
    /// `sampling`; none where it has none.
    pub python: Option<&'static str>,
    /// The heading that it stands under.
    pub group: &'static str,
    /// What its value is called at the command line.
    pub takes: &'static str,
    /// What it does, in a sentence or two.
    pub about: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// What a method must have for it to have an effect.
    pub needs: &'static [Trait],
    /// What moreover a value needs, and its opposite does not.
    pub value_needs: fn(&Value) -> Option<Trait>,
    /// Whether a value asks for what is so anyway with a method: it has no effect, and is not a
    /// mistake.
    pub so_anyway: fn(&Value, &Traits) -> bool,
    /// Its value in options; null where it is left to the method or the data, or is not an option.
    pub read: fn(&FitOptions) -> Value,
    /// Refuses values of the right kind that mean nothing.
    pub check: fn(&Value) -> Result<()>,
    /// Puts an allowed value into options.
    pub write: fn(&mut FitOptions, &Value),
    /// What the default of these options means, where its value does not say it.
    pub default: Option<fn(&FitOptions) -> String>,
}

/// What entries have unless they say so.
const USUAL: Setting = Setting {
    name: "",
    python: None,
    group: "",
    takes: "",
    about: "",
    kind: Kind::Flag,
    needs: &[],
    value_needs: |_| None,
    so_anyway: |_, _| false,
    read: |_| Value::Null,
    check: |_| Ok(()),
    write: |_, _| {},
    default: None,
};

/// Where a value was given, and so how settings are called there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// At the command line.
    CommandLine,
    /// In Python.
    Python,
}

/// Returns every setting, in the order in which values are taken.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    let tables = [model::ENTRIES, training::ENTRIES, minibatches::ENTRIES, model::OF_DRAWS];
    tables.into_iter().flatten()
}

/// Returns a setting by its name.
pub fn find(name: &str) -> Option<&'static Setting> {
    all().find(|own| own.name == name)
}

/// Returns the options that a method is fitted with unless somebody says so.
pub fn defaults_of(method: &str) -> FitOptions {
    let batches = methods::find(method)
        .map_or_else(|_| BatchOptions::default(), |entry| BatchOptions::of(entry.method));
    FitOptions { method: method.into(), batches: Some(batches), ..FitOptions::default() }
}

/// Checks values by the names of their settings, and puts them into options.
///
/// # Errors
/// [`Error::Invalid`] that names the setting as it is called there, its value and what is allowed;
/// what reading texts gives.
pub fn apply(options: &mut FitOptions, values: &Map<String, Value>, door: Door) -> Result<()> {
    for setting in all() {
        if let Some(value) = values.get(setting.name) {
            setting.kind.check(&setting.called(door), value)?;
            (setting.check)(value)?;
            (setting.write)(options, value);
        }
    }
    match values.keys().find(|name| find(name).is_none()) {
        None => Ok(()),
        Some(name) => Err(Error::Invalid(format!("there is no setting `{name}`"))),
    }
}

/// Returns what is to be said of values that have no effect, whatever of `ways` it turns out to be.
pub fn without_effect(
    values: &Map<String, Value>,
    ways: &[Traits],
    asked: &Asked<'_>,
) -> Vec<String> {
    let given = all().filter_map(|own| Some((own, values.get(own.name)?)));
    given.filter_map(|(own, value)| own.refusal(value, ways, asked)).collect()
}

/// What was asked for, to be named where something has no effect.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Where.
    pub door: Door,
    /// The method, or what `auto` took.
    pub method: &'a str,
    /// Whether `auto` took it.
    pub by_auto: bool,
    /// How it goes about its training.
    pub way: Way,
}

impl Setting {
    /// Returns whether it is a flag that is set by default, which the command line unsets.
    pub fn is_set(&self) -> bool {
        self.default_value() == Value::Bool(true)
    }

    /// Returns what it is called where it is given; a key of `sampling` with that word.
    pub fn called(&self, door: Door) -> String {
        match (door, self.python) {
            (Door::CommandLine, _) | (_, None) => self.option(),
            (Door::Python, Some(name)) if self.needs.contains(&Trait::Draws) => {
                format!("sampling['{name}']")
            }
            (Door::Python, Some(name)) => name.into(),
        }
    }

    /// Returns the option of the command line.
    pub fn option(&self) -> String {
        let no = if self.is_set() { "no-" } else { "" };
        format!("--{no}{}", self.name.replace('_', "-"))
    }

    /// Returns its default value; null where it is left to the method or the data.
    pub fn default_value(&self) -> Value {
        (self.read)(&FitOptions::default())
    }

    /// Returns whether a value of it has an effect.
    pub fn acts(&self, value: &Value, on: &Traits) -> bool {
        self.lacks(value, on).is_none()
    }

    /// Returns what a method lacks for a value to have an effect.
    fn lacks(&self, value: &Value, on: &Traits) -> Option<Trait> {
        let more = (self.value_needs)(value);
        self.needs.iter().copied().chain(more).find(|need| !on.has(*need))
    }

    /// Returns the methods of the registry for which a value has an effect on one of these ways.
    fn methods(&self, value: &Value, ways: &[Way]) -> Vec<&'static str> {
        let acts = |e: &&methods::Entry| {
            ways.iter().any(|way| self.acts(value, &traits_of(e.method, *way)))
        };
        methods::REGISTRY.iter().filter(acts).map(|entry| entry.name).collect()
    }

    /// Returns the default in words, with the methods that have another one; empty where there is
    /// none to tell.
    pub fn default_text(&self) -> String {
        let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
        for name in self.methods(&self.default_value(), &WAYS) {
            let options = defaults_of(name);
            let text = match (self.default, (self.read)(&options)) {
                (Some(text), _) => text(&options),
                (None, Value::Null | Value::Bool(_)) => String::new(),
                (None, Value::Array(all)) if all.is_empty() => String::new(),
                (None, Value::String(word)) => word,
                (None, Value::Number(number)) => {
                    let text = number.to_string();
                    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
                }
                (None, value) => value.to_string(),
            };
            match groups.iter_mut().find(|(own, _)| *own == text) {
                Some((_, names)) => names.push(name),
                None => groups.push((text, vec![name])),
            }
        }
        groups.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
        let texts = groups.into_iter().enumerate().filter(|(_, (text, _))| !text.is_empty());
        let texts = texts.map(|(at, (text, names))| match at {
            0 => text,
            _ => format!("for {} {text}", quoted(&names)),
        });
        texts.collect::<Vec<_>>().join("; ")
    }

    /// Returns what its option does, with the default, and with the methods for which it does that
    /// where these are few.
    pub fn help(&self) -> String {
        let mut text = match self.is_set() {
            true => format!("Leave out {}", self.about),
            false => self.about.into(),
        };
        let methods = self.methods(&self.default_value(), &WAYS);
        if (1..=FEW).contains(&methods.len()) {
            text += &format!(" (for {})", quoted(&methods));
        }
        match self.default_text() {
            default if default.is_empty() => text,
            default => format!("{text} [default: {default}]"),
        }
    }

    /// Returns why a value has no effect, whatever of `ways` it turns out to be, and what to do;
    /// none where it may have one.
    pub fn refusal(&self, value: &Value, ways: &[Traits], asked: &Asked<'_>) -> Option<String> {
        if ways.iter().any(|own| (self.so_anyway)(value, own)) {
            return None;
        }
        let lacking = ways.iter().map(|own| self.lacks(value, own)).collect::<Option<Vec<_>>>()?;
        let lacking = *lacking.first()?;
        let Asked { door, method, by_auto, way } = *asked;
        let of = |name: &str| find(name).map_or_else(String::new, |own| own.called(door));
        let full = of("full_batch");
        let name = match value.as_str().filter(|_| (self.value_needs)(value) == Some(lacking)) {
            Some(word) => format!("{} {word}", self.called(door)),
            None => self.called(door),
        };
        let whole = ways.iter().all(|own| own.has(Trait::AllRows) && own.has(Trait::EitherWay));
        let whole = if whole { " on all rows at once" } else { "" };
        let with = match (door, by_auto) {
            (Door::CommandLine, false) => format!("--method {method}"),
            (Door::CommandLine, true) => format!("{method}{whole}, which --method auto took"),
            (Door::Python, false) => format!("method={method:?}"),
            (Door::Python, true) => format!("{method}{whole}, which method=\"auto\" took"),
        };
        let also = if way.full_batch && self.name != "full_batch" {
            format!(" and {full}")
        } else {
            String::new()
        };
        let entry = methods::find(method).ok();
        let acts = |way: Way| entry.is_some_and(|e| self.acts(value, &traits_of(e.method, way)));
        let turned = Way { full_batch: !way.full_batch, ..way };
        let remedy = match lacking {
            Trait::Adam if acts(Way { adam: true, ..way }) => match door {
                Door::CommandLine => "; add --optimiser adam, or leave it out".into(),
                Door::Python => "; with optimiser=\"adam\" it has".to_owned(),
            },
            Trait::Plateau if acts(Way { adam: false, ..way }) => match door {
                Door::CommandLine => "; leave it out, or --optimiser adam".into(),
                Door::Python => "; without optimiser=\"adam\" it has".into(),
            },
            _ if acts(turned) && way.full_batch => format!("; leave it out, or {full}"),
            _ if acts(turned) => format!("; leave it out, or add {full}"),
            _ if way.q_by_adam && acts(Way { q_by_adam: false, ..way }) => {
                "; leave it out, or what has Adam train q".into()
            }
            _ => format!("; methods with it: {}", self.methods(value, &WAYS).join(", ")),
        };
        Some(format!(
            "{name} has no effect with {with}{also}: it needs {}{remedy}",
            lacking.words()
        ))
    }
}

/// Returns names one after the other.
fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Most methods that the help of an option names: the refusal has them all.
const FEW: usize = 6;

/// The ways that there are to have something.
const WAYS: [Way; 3] = [
    Way { full_batch: false, adam: false, q_by_adam: false },
    Way { full_batch: true, adam: false, q_by_adam: false },
    Way { full_batch: true, adam: true, q_by_adam: false },
];

#[cfg(test)]
mod tests;

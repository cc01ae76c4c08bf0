//! The settings of a fit at the command line: their options are made of the library's table,
//! [`settings`].

use crate::values;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::{Map, Value};
use sparsegp::fit::settings::{self, Kind, Setting, Trait};

/// Values that were given, by the names of their settings.
#[derive(Clone, Debug, Default)]
pub struct Given(pub Map<String, Value>);

/// Returns what options need or exclude beside what methods have.
fn related(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "checkpoint_every" => arg.requires("checkpoint"),
        "patience" => arg.requires("early_stopping"),
        "natural_rate" | "e_steps" | "classes_per_step" => {
            arg.conflicts_with_all(["no_natural", "diagonal"])
        }
        _ => arg,
    }
}

/// Returns the option of a setting.
fn option(setting: &'static Setting) -> Arg {
    let kind = setting.kind;
    let arg = Arg::new(setting.name)
        .long(setting.option().trim_start_matches("--").to_owned())
        .help(setting.help())
        .help_heading(setting.group);
    let arg = match setting.name {
        "likelihood" | "kernel" | "method" => arg.short(setting.name.chars().next()),
        _ => arg,
    };
    let arg = match kind {
        Kind::Flag => return related(arg.action(ArgAction::SetTrue)),
        Kind::Whole(_) | Kind::Number(_) | Kind::Time | Kind::Jitter => {
            arg.allow_negative_numbers(true)
        }
        Kind::Texts | Kind::Values => arg.action(ArgAction::Append),
        Kind::Choice(_) | Kind::Text => arg,
    };
    let checked = |check: fn(&str) -> Result<String, String>| {
        move |text: &str| check(text).map(Value::String)
    };
    let arg = match (setting.name, kind) {
        ("likelihood", _) => arg.value_parser(checked(values::likelihood)),
        ("mean", _) => arg.value_parser(checked(values::mean)),
        ("method", _) => arg.value_parser(checked(values::method)),
        (_, Kind::Choice(words)) => {
            let word = |(name, about): &(&'static str, &'static str)| {
                PossibleValue::new(*name).help(*about)
            };
            let known = PossibleValuesParser::new(words.iter().map(word));
            arg.value_parser(known.map(Value::String))
        }
        _ => arg.value_parser(move |text: &str| kind.read(text)),
    };
    related(arg.value_name(setting.takes))
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command.args(settings::all().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut own = Self::default();
        own.update_from_arg_matches(matches)?;
        Ok(own)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in settings::all() {
            let name = setting.name;
            if matches.value_source(name) != Some(ValueSource::CommandLine) {
                continue;
            }
            let values = || matches.get_many::<Value>(name).into_iter().flatten().cloned();
            let value = match setting.kind {
                Kind::Flag => Some(Value::Bool(!setting.is_set())),
                Kind::Texts | Kind::Values => Some(values().collect()),
                _ => values().next(),
            };
            self.0.extend(value.map(|value| (name.to_owned(), value)));
        }
        Ok(())
    }
}

impl Given {
    /// Returns whether a value was given.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// Returns a whole number.
    pub fn whole(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    /// Returns a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.whole("seed").unwrap_or_default()
    }

    /// Returns the first option given that needs something of the method.
    pub fn first(&self, need: Trait) -> Option<String> {
        let given = settings::all().filter(|own| self.has(own.name));
        given.filter(|own| own.needs.contains(&need)).map(Setting::option).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    /// Every option of `fit` that is not of the table, the rows or what is written is a setting,
    /// and each setting an option.
    #[test]
    fn options_of_a_fit_are_the_settings() {
        let mut command = Cli::command();
        command.build();
        let fit = command.find_subcommand("fit").unwrap();
        for setting in settings::all() {
            let found = fit.get_arguments().find(|arg| arg.get_id() == setting.name);
            let arg = found.unwrap_or_else(|| panic!("{} is not an option", setting.name));
            assert_eq!(arg.get_help().unwrap().to_string(), setting.help());
        }
        // what is said of the rows and files, and parts of the name of a method
        let others = ["Data", "Reading the table", "Output", "Everywhere"];
        for arg in fit.get_arguments().filter(|arg| arg.get_long().is_some()) {
            let name = arg.get_id().as_str();
            let group = arg.get_help_heading().unwrap_or_default();
            assert!(
                settings::find(name).is_some()
                    || others.contains(&group)
                    || ["from", "alpha", "layers", "help"].contains(&name),
                "--{name} is not a setting"
            );
        }
    }
}
